# What the tests share; R CMD check also runs it by itself, which does nothing.

`%is%` <- function(found, expected) {
  if (!identical(found, expected)) {
    stop("found ", deparse1(found), "\nexpected ", deparse1(expected), call. = FALSE)
  }
  invisible(TRUE)
}

error_of <- function(expression) {
  what <- deparse1(substitute(expression))
  tryCatch({
    expression
    stop("there was no error in ", what, call. = FALSE)
  }, reconpriv_error = identity)
}

says <- function(error, ...) {
  for (text in c(...)) {
    if (!grepl(text, conditionMessage(error), fixed = TRUE)) {
      stop("'", text, "' is not in: ", conditionMessage(error), call. = FALSE)
    }
  }
}

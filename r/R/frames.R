# What the command printed as JSON, as vectors and data frames.

# A field of every row, or one of a field (as in c("labels", "sex")), as a vector; null is NA.
vector_of <- function(rows, field) {
  found <- lapply(rows, function(row) {
    for (name in field) row <- row[[name]]
    if (is.null(row)) NA else row
  })
  if (length(found)) unlist(found) else logical()
}

# The same for numbers. Infinite ones come as text; other text stays what it is.
numbers_of <- function(rows, field) {
  found <- vector_of(rows, field)
  if (!is.character(found)) return(as.numeric(found))
  values <- lapply(rows, function(row) if (is.null(row[[field]])) NA else row[[field]])
  text <- vapply(values, is.character, NA)
  if (!all(unlist(values[text]) %in% c("inf", "-inf", "nan"))) return(found)
  vapply(values, as.numeric, 0)
}

# Rows with the same scalar fields as a data frame.
frame_of <- function(rows, fields = unique(unlist(lapply(rows, names)))) {
  columns <- lapply(fields, function(field) vector_of(rows, field))
  named_frame(stats::setNames(columns, fields), length(rows))
}

named_frame <- function(columns, rows) {
  structure(columns, class = "data.frame", row.names = seq_len(rows))
}

# Fields of fields in one level: a$b becomes a_b; a list of texts is joined.
flattened <- function(row) {
  flat <- list()
  for (field in names(row)) {
    one <- row[[field]]
    if (is.list(one) && !is.null(names(one))) {
      inner <- flattened(one)
      if (length(inner)) flat[paste(field, names(inner), sep = "_")] <- inner
    } else if (is.list(one)) {
      flat[[field]] <- paste(unlist(one), collapse = ", ")
    } else {
      flat[field] <- list(one)
    }
  }
  flat
}

# Answers as rows: labels, or questions, and what the release says about each.
answers_frame <- function(labels, answers, more = list()) {
  answers <- lapply(answers, plain_answer)
  given <- function(field) !all(vapply(answers, function(one) is.null(one[[field]]), NA))
  columns <- list(figure = vector_of(answers, "name"))
  for (field in c("estimate", "low", "high", "confidence", "standard_error")) {
    columns[[field]] <- numbers_of(answers, field)
  }
  columns$exact <- vector_of(answers, "exact")
  if (given("difference")) {
    for (field in c("ratio", "ratio_low", "ratio_high", "p_value")) {
      columns[[field]] <- numbers_of(answers, field)
    }
  }
  columns$estimator <- as.character(vector_of(answers, "estimator"))
  for (field in c("records", "groups", "trials", "from_margins")) {
    columns[[field]] <- numbers_of(answers, field)
  }
  if (any(numbers_of(answers, "from_model") > 0, na.rm = TRUE)) {
    columns$mean_squared_error <- numbers_of(answers, "mean_squared_error")
    columns$from_model <- numbers_of(answers, "from_model")
  }
  columns$remarks <- vapply(answers, function(one) paste(one$remarks, collapse = "; "), "")
  side_by_side(labels, c(columns, more), length(answers))
}

# An answer with its estimate under one name, whether it is a count, a figure or a comparison.
plain_answer <- function(answer) {
  if (!is.null(answer$difference)) {
    answer$name <- "difference"
    answer$estimate <- answer$difference
    answer$low <- answer$difference_low
    answer$high <- answer$difference_high
  } else {
    answer$estimate <- if (is.null(answer$count)) answer$value else answer$count
  }
  answer
}

# Columns beside labels; one with the name of a label gets underscores.
side_by_side <- function(labels, columns, rows) {
  found <- as.list(labels)
  for (name in names(columns)) {
    free <- name
    while (free %in% names(found)) free <- paste0(free, "_")
    found[[free]] <- columns[[name]]
  }
  named_frame(found, rows)
}

# The labels of rows, one column for each name.
labels_of <- function(rows, names) {
  columns <- lapply(names, function(name) vector_of(rows, c("labels", name)))
  stats::setNames(columns, names)
}

# A result of several data frames. `says` are the sentences that print shows above them.
result <- function(kind, says, main, ...) {
  structure(
    list(...),
    class = c(paste0("reconpriv_", kind), "reconpriv_result"),
    says = says, main = main
  )
}

as.data.frame.reconpriv_result <- function(x, row.names = NULL, optional = FALSE, ...) {
  x[[attr(x, "main")]]
}

print.reconpriv_result <- function(x, ...) {
  for (text in attr(x, "says")) cat(strwrap(text), "", sep = "\n")
  main <- attr(x, "main")
  cat("$", main, "\n", sep = "")
  print(utils::head(x[[main]], 10), row.names = FALSE, ...)
  others <- setdiff(names(x), c(main, "json"))
  cat("\nalso:", paste0("$", others, collapse = ", "), "\n")
  invisible(x)
}

# Arguments in R as words of the command line. An argument has the name of its option, with _ for -.
# Those that are NULL were not given, and are not passed on.

# The words for arguments by their names; `kinds` says how each is written.
words_for <- function(given, kinds) {
  given <- Filter(Negate(is.null), given)
  unknown <- setdiff(names(given), names(kinds))
  stopifnot(length(unknown) == 0)
  unlist(lapply(names(given), function(name) kinds[[name]](name, given[[name]])))
}

option_name <- function(name) paste0("--", gsub("_", "-", name, fixed = TRUE))

# An option with its value. Text after = may begin with a dash.
option_word <- function(name, text) paste0(option_name(name), "=", text)

# Text as it is; numbers in as many digits as it takes to get them back, whole ones without e.
plain_text <- function(value) {
  if (!is.numeric(value) || is.object(value)) return(in_utf8(as.character(value)))
  text <- as.character(value)
  finite <- which(is.finite(value))
  number <- as.numeric(value[finite])
  short <- sprintf("%.15g", number)
  exact <- ifelse(as.numeric(short) == number, short, sprintf("%.17g", number))
  whole <- number == trunc(number) & abs(number) < 2^53
  text[finite] <- ifelse(whole, sprintf("%.0f", number), exact)
  text
}

# One value: a text or a number.
one_value <- function(name, value) {
  if (length(value) != 1 || is.list(value) || is.na(value)) {
    refuse("`", name, "` takes one value; got ", length(value), ".")
  }
  option_word(name, plain_text(value))
}

one_path <- function(name, value) {
  if (!is.character(value) || length(value) != 1 || is.na(value)) {
    refuse("`", name, "` takes the path of one file.")
  }
  option_word(name, path.expand(value))
}

# A switch: TRUE names the option, FALSE leaves it out.
switched <- function(name, value) {
  if (!isTRUE(value) && !isFALSE(value)) refuse("`", name, "` is TRUE or FALSE.")
  if (value) option_name(name)
}

# A switch whose opposite has an option of its own.
either_way <- function(name, value) {
  if (isFALSE(value)) paste0("--no-", gsub("_", "-", name, fixed = TRUE)) else switched(name, value)
}

# Names in double quotes, which may then hold anything.
in_quotes <- function(names) paste0("\"", gsub("\"", "\"\"", in_utf8(names), fixed = TRUE), "\"")

# A list of columns.
columns_list <- function(name, value) {
  if (!is.character(value) || anyNA(value) || length(value) == 0) {
    refuse("`", name, "` is a character vector of column names.")
  }
  option_word(name, paste(in_quotes(value), collapse = ","))
}

# The same, or "all" for every other column; I("all") is a column of that name.
columns_or_all <- function(name, value) {
  if (identical(value, "all")) return(option_word(name, "all"))
  columns_list(name, if (inherits(value, "AsIs")) unclass(value) else value)
}

# Sensitive values; NA is the missing one.
values_list <- function(name, value) {
  text <- ifelse(is.na(value), "NULL", in_quotes(plain_text(value)))
  if (length(text) == 0) refuse("`", name, "` is empty.")
  option_word(name, paste(text, collapse = ","))
}

# Something for each of several columns, as in c(age = "10"); several values make a list of borders.
by_name <- function(name, value) {
  if (is.null(names(value)) || anyNA(names(value)) || any(names(value) == "")) {
    refuse("`", name, "` has names, as in ", name, " = c(age = ", example_of(name), ").")
  }
  text <- vapply(as.list(value), function(one) paste(plain_text(one), collapse = ","), "")
  option_word(name, paste0(in_quotes(names(value)), "=", text))
}

example_of <- function(name) {
  switch(name, group = "\"bands.csv\"", protect = "\"merge\"", "10")
}

# The numbers that values stand for; a value is written as it is.
scores <- function(name, value) {
  if (!is.numeric(value) || is.null(names(value))) {
    refuse("`", name, "` is a numeric vector whose names are sensitive values.")
  }
  option_word(name, paste0(in_utf8(names(value)), "=", plain_text(value)))
}

# Tables of margins: a list of character vectors, or a character vector of single columns.
tables_list <- function(name, value) {
  joined <- vapply(as.list(value), function(one) paste(in_quotes(one), collapse = "+"), "")
  option_word(name, paste(joined, collapse = ","))
}

# A file of values, or several values, which are written to one in `folder`.
domain_in <- function(folder) {
  function(name, value) {
    if (length(value) < 2) return(one_path(name, value))
    file <- file.path(folder, "domain.json")
    write_text(paste0("[", paste(json_field(value, name), collapse = ", "), "]"), file)
    option_word(name, file)
  }
}

of_table <- list(
  sensitive = one_value, public = columns_or_all, drop = columns_list, person = one_value,
  rows_per_person = one_value, missing = one_value, bin = by_name, group = by_name,
  sql = one_value, table = one_value, labels = one_value, threads = one_value,
  memory = one_value, engine = one_value, master = one_value
)

of_policy <- list(
  preset = one_value, retention = one_value, tolerance = one_value, doubt = one_value,
  bound = one_value, sampling = one_value, exposed_above = one_value, harmless = values_list,
  unattainable = one_value, margins = one_value, margins_rho = one_value,
  margins_delta = one_value, margin_tables = tables_list, protect = by_name
)

of_acceptance <- list(
  keep_identifier = columns_list, keep_giveaway = columns_list, max_unique = one_value
)

of_answers <- list(
  where = one_value, shares = one_value, totals = switched, widest = one_value,
  estimator = one_value, confidence = one_value, simultaneous = switched, whole_bins = switched,
  score = scores, chart = one_path, overwrite = switched, memory = one_value, batch = one_path
)

# Text in UTF-8. What is of no known encoding is UTF-8 already, unless the locale has another one:
# left to itself, R would spell out what does not fit the locale, as in <c3>.
in_utf8 <- function(text) {
  locale <- l10n_info()
  if (locale[["UTF-8"]] || isTRUE(grepl("ASCII|ANSI_X3", locale$codeset))) {
    Encoding(text)[Encoding(text) == "unknown"] <- "UTF-8"
  }
  enc2utf8(text)
}

# A table as the command reads it: a path, or a data frame in a temporary file.

# The place of a table; a data frame is written to `folder`, which the caller removes.
table_place <- function(source, folder) {
  if (is.data.frame(source)) return(write_frame(source, file.path(folder, "data-frame.jsonl")))
  if (!is.character(source) || length(source) != 1 || is.na(source)) {
    refuse("A table is a data frame, or the path or address of one.")
  }
  if (source == "-") refuse("R cannot hand its standard input on: give a data frame or a path.")
  path.expand(source)
}

# Write a data frame as JSON lines, which tell numbers, text and missing values apart.
write_frame <- function(frame, file) {
  check_names(names(frame))
  if (nrow(frame) == 0) refuse("The data frame has no rows.")
  fields <- Map(json_field, as.list(frame), names(frame))
  keys <- paste0(json_text(names(frame)), ":")
  lines <- do.call(paste, c(Map(paste0, keys, fields), list(sep = ",")))
  write_text(paste0("{", lines, "}"), file)
  file
}

check_names <- function(names) {
  if (anyNA(names) || any(names == "")) refuse("A column of the data frame has no name.")
  alike <- duplicated(tolower(names))
  if (any(alike)) {
    twin <- names[tolower(names) == tolower(names[alike][1])]
    refuse(
      "Two columns of the data frame are called ",
      paste(dQuote(twin[1:2], FALSE), collapse = " and "),
      "; their names have to differ in more than case."
    )
  }
}

# The values of a column as JSON, or an error that names the column.
json_field <- function(column, name) {
  wrong <- function(...) refuse("Column \"", name, "\" of the data frame ", ...)
  if (inherits(column, "AsIs")) class(column) <- setdiff(class(column), "AsIs")
  if (!is.null(dim(column))) wrong("is a matrix. Make a column of each of its columns.")
  if (is.factor(column)) {
    text <- json_text(valid_text(levels(column), wrong))[as.integer(column)]
  } else if (inherits(column, "Date")) {
    text <- json_text(format(column, "%Y-%m-%d"))
  } else if (inherits(column, "POSIXt")) {
    text <- json_text(wall_clock(column))
  } else if (is.object(column) || !mode(column) %in% c("character", "logical", "numeric")) {
    wrong(
      "is of class ", class(column)[1], ". Convert it to numbers, text, a factor, logical values,",
      " dates or times (as.Date, as.POSIXct), or leave the column out of the data frame."
    )
  } else if (is.character(column)) {
    each <- unique(column)
    text <- json_text(valid_text(each, wrong))[match(column, each)]
  } else if (is.logical(column)) {
    text <- tolower(as.character(column))
  } else {
    if (any(is.infinite(column))) wrong("holds infinite numbers. Make them missing values (NA).")
    text <- plain_text(column)
  }
  ifelse(is.na(column), "null", text)
}

# Text as JSON, in double quotes.
json_text <- function(text) {
  quoted <- gsub("\"", "\\\"", gsub("\\", "\\\\", in_utf8(text), fixed = TRUE), fixed = TRUE)
  for (code in 1:31) {
    quoted <- gsub(intToUtf8(code), sprintf("\\u%04x", code), quoted, fixed = TRUE)
  }
  ifelse(is.na(text), NA, paste0("\"", quoted, "\""))
}

valid_text <- function(text, wrong) {
  text <- in_utf8(text)
  if (!all(validUTF8(text[!is.na(text)]))) {
    wrong("holds text that is not valid in its encoding. See ?Encoding and ?iconv.")
  }
  text
}

# Moments as the clock showed them where they are: what R prints.
wall_clock <- function(times) {
  times <- as.POSIXct(times)
  fraction <- any(as.numeric(times) %% 1 != 0, na.rm = TRUE)
  format(times, if (fraction) "%Y-%m-%d %H:%M:%OS6" else "%Y-%m-%d %H:%M:%S")
}

# Write questions as CSV; a missing value is an empty field: no condition.
write_questions <- function(questions, file) {
  if (is.list(questions) && !is.data.frame(questions)) {
    questions <- as.data.frame(questions, optional = TRUE, stringsAsFactors = FALSE)
  }
  if (!is.data.frame(questions)) refuse("`questions` is a data frame, one row for each question.")
  if (nrow(questions) == 0) refuse("`questions` has no rows.")
  fields <- lapply(questions, function(column) {
    text <- if (is.logical(column)) tolower(as.character(column)) else plain_text(column)
    ifelse(is.na(column), "", in_quotes(text))
  })
  lines <- do.call(paste, c(unname(fields), sep = ","))
  write_text(c(paste(in_quotes(names(questions)), collapse = ","), lines), file)
  questions
}

write_text <- function(lines, file) {
  connection <- file(file, open = "wb")
  on.exit(close(connection))
  writeLines(in_utf8(lines), connection, useBytes = TRUE)
}

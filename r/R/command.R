# The command: where it is, how it is run, and what it says.

# The command as a character vector: a program, and words that come before all others.
rp_command <- function() {
  found <- getOption("reconpriv.command")
  where <- " (the option reconpriv.command)"
  if (is.null(found)) {
    found <- Sys.getenv("RECONPRIV_COMMAND")
    where <- " (the environment variable RECONPRIV_COMMAND)"
  }
  if (identical(found, "")) {
    found <- "reconpriv"
    where <- " in PATH"
  }
  if (!is.character(found) || length(found) == 0 || anyNA(found)) {
    refuse("The option reconpriv.command is a program, or a program and its first arguments.")
  }
  program <- unname(Sys.which(path.expand(found[1])))
  if (is.na(program) || program == "") {
    refuse(
      "There is no command '", found[1], "'", where, ". Install it: in a copy of reconpriv's ",
      "repository, `python3 -m venv .venv && .venv/bin/pip install '.[query]'`. Then tell R where ",
      "it is: options(reconpriv.command = \"/path/to/.venv/bin/reconpriv\").",
      class = "reconpriv_not_found"
    )
  }
  c(program, found[-1])
}

rp_available <- function() {
  tryCatch({
    rp_command()
    TRUE
  }, reconpriv_error = function(error) FALSE)
}

# The result of a command as nested lists. Its warnings and notes become R's.
# `accepted` are the exit codes that come with a result.
answer_of <- function(command, words, places = character(), accepted = 0L) {
  ended <- run(c(command, words, "--json", "--", in_utf8(places)))
  for (text in ended$said$warning) signal_warning(text)
  for (text in ended$said$note) signal_note(text)
  if (!ended$code %in% accepted) {
    stop(command_error(ended))
  }
  found <- jsonlite::fromJSON(ended$printed, simplifyVector = FALSE)
  found$exit_code <- ended$code
  found
}

# Run the command with these words; what it printed, what it said, and its exit code.
run <- function(words) {
  command <- rp_command()
  folder <- private_folder()
  on.exit(unlink(folder, recursive = TRUE))
  printed <- file.path(folder, "printed")
  said <- file.path(folder, "said")
  shell <- if (.Platform$OS.type == "windows") "cmd2" else "sh"
  quoted <- shQuote(in_utf8(c(command[-1], words)), type = shell)
  # The bytes as they are, even where the locale has no such character.
  Encoding(quoted) <- "unknown"
  restore <- set_environment(child_environment())
  on.exit(restore(), add = TRUE)
  code <- suppressWarnings(
    system2(command[1], quoted, stdout = printed, stderr = said, stdin = nullfile())
  )
  list(code = code, printed = text_of(printed), said = sorted_messages(text_of(said)))
}

text_of <- function(file) {
  paste(readLines(file, warn = FALSE, encoding = "UTF-8"), collapse = "\n")
}

# What Python has to find other than R does: UTF-8 everywhere, its own libraries, no colours.
child_environment <- function() {
  found <- list(PYTHONUTF8 = "1", NO_COLOR = "1", COLUMNS = "2000")
  libraries <- Sys.getenv("LD_LIBRARY_PATH")
  if (nzchar(libraries)) {
    # R puts its own folders, and the system's, before those of the user.
    paths <- strsplit(libraries, ":", fixed = TRUE)[[1]]
    own <- startsWith(paths, R.home()) | grepl("^/(usr/)?lib(/|$)", paths)
    found$LD_LIBRARY_PATH <- paste(paths[!own], collapse = ":")
  }
  found
}

# Set environment variables; the function that is returned puts the former values back.
set_environment <- function(values) {
  former <- Sys.getenv(names(values), unset = NA, names = TRUE)
  do.call(Sys.setenv, values)
  function() {
    Sys.unsetenv(names(former)[is.na(former)])
    kept <- former[!is.na(former)]
    if (length(kept)) do.call(Sys.setenv, as.list(kept))
  }
}

# A folder that only this user can read.
private_folder <- function() {
  folder <- tempfile("reconpriv-")
  if (!dir.create(folder, mode = "0700")) refuse("A temporary folder cannot be made.")
  folder
}

# The lines of standard error by their kind. An error may have further lines: `details`.
sorted_messages <- function(text) {
  lines <- strsplit(text, "\n", fixed = TRUE)[[1]]
  begins <- "^(error|interrupted|warning|note): "
  kind <- ifelse(grepl(begins, lines), sub("^([a-z]+): .*$", "\\1", lines), "")
  words <- sub(begins, "", lines)
  last <- which(kind %in% c("error", "interrupted"))
  after <- if (length(last)) seq_along(lines) > last[1] & kind == "" else kind == ""
  list(
    error = words[last],
    warning = words[kind == "warning"],
    note = words[kind == "note"],
    details = lines[after]
  )
}

# The error of a command that failed. Words that it does not know, it reports in a box.
command_error <- function(ended) {
  message <- ended$said$error[1]
  details <- ended$said$details
  if (is.na(message)) {
    boxed <- grepl("^\u2502.*\u2502$", details)
    message <- trimws(gsub("^\u2502|\u2502$", "", details[boxed]))
    message <- paste(if (length(message)) message else details, collapse = " ")
  }
  if (!nzchar(trimws(message))) {
    message <- paste0("The command reconpriv ended with exit code ", ended$code, ".")
  }
  proposals <- match("To accept this proposal, type:", details)
  if (!is.na(proposals)) {
    # What follows is a command for a shell.
    details <- details[nzchar(details) & seq_along(details) < proposals]
    message <- paste(message, "rp_columns() proposes a role for each.")
  }
  if (startsWith(message, "No such option")) {
    message <- paste0(message, ". Is the command older than this package?")
  }
  condition("error", message, code = ended$code, details = details)
}

refuse <- function(..., class = NULL) {
  stop(condition("error", paste0(...), code = NA_integer_, class = class))
}

signal_warning <- function(text) warning(condition("warning", text))

signal_note <- function(text) message(condition("note", paste0(text, "\n"), base = "message"))

condition <- function(kind, message, ..., class = NULL, base = kind) {
  structure(
    class = c(class, paste0("reconpriv_", kind), base, "condition"),
    list(message = message, call = NULL, ...)
  )
}

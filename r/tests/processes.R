# A stand-in for the command: words arrive as they are, and nothing stays behind.

library(reconpriv)
source("helpers.R")
if (.Platform$OS.type != "unix") quit()

folder <- tempfile("a folder's $HOME `x`")
dir.create(folder)
program <- file.path(folder, "stand in")
heard <- file.path(folder, "heard")
script <- function(...) {
  writeLines(c(
    "#!/bin/sh",
    "dirname \"$0\" > /dev/null",
    "here=$(dirname \"$0\")",
    ": > \"$here/heard\"; for word in \"$@\"; do printf '%s|\\n' \"$word\" >> \"$here/heard\"; done",
    "env > \"$here/env\"", ...
  ), program)
  Sys.chmod(program, "0700")
}
script("echo '{\"columns\": []}'")
options(reconpriv.command = c(program, "--first arg"))
Sys.setenv(LD_LIBRARY_PATH = paste(R.home("lib"), "/usr/lib/x", "/opt/mine", sep = ":"))

odd <- c("plain", "two words", "it's", "\"quoted\"", "$HOME", "`id`", "a\nb", "*", "~", "a\\", "-x",
         "\u00e4\u65e5\u672c", "", "!!", ";#&|<>()")
for (word in odd) {
  rp_columns("data file's.csv", sensitive = word, sql = "SELECT '$x'")
  raw <- readChar(heard, 1e5, useBytes = TRUE)
  Encoding(raw) <- "UTF-8"
  expected <- c("--first arg", "columns", paste0("--sensitive=", word), "--sql=SELECT '$x'", "--json", "--",
                "data file's.csv")
  strsplit(raw, "|\n", fixed = TRUE)[[1]][c(1, 2, 5, 6, 7)] %is% expected[c(1, 2, 5, 6, 7)]
  stopifnot(enc2utf8(paste0("--sensitive=", word)) %in% strsplit(raw, "|\n", fixed = TRUE)[[1]])
}
seen <- readLines(file.path(folder, "env"))
stopifnot("LD_LIBRARY_PATH=/opt/mine" %in% seen, "PYTHONUTF8=1" %in% seen)
Sys.getenv("PYTHONUTF8", NA) %is% NA_character_
strsplit(Sys.getenv("LD_LIBRARY_PATH"), ":")[[1]][3] %is% "/opt/mine"

# A data frame is a file that only this user can read, and that goes away, also after an error.
left <- function() list.files(tempdir(), pattern = "^reconpriv-", recursive = TRUE)
spy <- "for word; do last=$word; done; ls -ld \"$(dirname \"$last\")\" > \"$here/mode\"; cat \"$last\" > \"$here/data\""
script(spy, "echo '{\"columns\": []}'")
rp_columns(data.frame(x = "secret"))
readLines(file.path(folder, "data")) %is% "{\"x\":\"secret\"}"
substr(readLines(file.path(folder, "mode")), 1, 10) %is% "drwx------"
left() %is% character()
script(spy, "echo 'warning: careful' >&2", "echo 'error: No.' >&2", "exit 2")
warned <- NULL
failed <- withCallingHandlers(
  error_of(rp_columns(data.frame(x = "secret"))),
  reconpriv_warning = function(one) {
    warned <<- conditionMessage(one)
    tryInvokeRestart("muffleWarning")
  }
)
warned %is% "careful"
conditionMessage(failed) %is% "No."
failed$code %is% 2L
left() %is% character()

# Notes are messages; audit's exit code 1 comes with a result.
script("echo 'note: by the way' >&2", "echo '{\"columns\": []}'")
noted <- tryCatch(rp_columns("x"), reconpriv_note = identity)
conditionMessage(noted) %is% "by the way\n"
script("echo 'error: no' >&2", "exit 1")
error_of(rp_columns("x"))$code %is% 1L
script("exit 70")
says(error_of(rp_info("x")), "ended with exit code 70")
says(error_of(rp_columns("-")), "standard input")
says(error_of(rp_columns(1)), "A table is")
unlink(folder, recursive = TRUE)

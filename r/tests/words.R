# Arguments become words, data frames become files, and messages become conditions: no command is run.

library(reconpriv)
source("helpers.R")
of <- function(name) getFromNamespace(name, "reconpriv")

# Words.
kinds <- c(of("of_table"), of("of_policy"), of("of_acceptance"))
words <- function(...) of("words_for")(list(...), kinds)
words(public = NULL) %is% NULL
words(public = c("age", "two, \"words\"")) %is% "--public=\"age\",\"two, \"\"words\"\"\""
words(public = "all") %is% "--public=all"
words(public = I("all")) %is% "--public=\"all\""
words(public = c("all", "age")) %is% "--public=\"all\",\"age\""
words(sensitive = "-s") %is% "--sensitive=-s"
words(bin = list(age = 10, pay = c(0, 1.5e5, 0.1))) %is% c("--bin=\"age\"=10", "--bin=\"pay\"=0,150000,0.1")
words(bin = c(age = "quantiles:5")) %is% "--bin=\"age\"=quantiles:5"
words(harmless = c("a,b", NA)) %is% "--harmless=\"a,b\",NULL"
words(margin_tables = list("age", c("age", "a+b"))) %is% "--margin-tables=\"age\",\"age\"+\"a+b\""
words(keep_identifier = "zip", max_unique = 0.75) %is% c("--keep-identifier=\"zip\"", "--max-unique=0.75")
words(tolerance = 1 / 3, threads = 100000) %is% c("--tolerance=0.33333333333333331", "--threads=100000")
of("switched")("test_key", FALSE) %is% NULL
of("switched")("test_key", TRUE) %is% "--test-key"
of("either_way")("columns", FALSE) %is% "--no-columns"
of("scores")("score", c(low = 1, "a=b" = 2.5)) %is% c("--score=low=1", "--score=a=b=2.5")
says(error_of(words(public = 1:2)), "`public` is a character vector of column names")
says(error_of(words(public = character())), "`public`")
says(error_of(words(public = c("a", NA))), "`public`")
says(error_of(words(bin = 10)), "`bin` has names")
says(error_of(words(retention = c(0.1, 0.2))), "`retention` takes one value; got 2")
says(error_of(words(retention = NA)), "`retention` takes one value")
says(error_of(of("switched")("overwrite", "yes")), "`overwrite` is TRUE or FALSE")

folder <- tempfile("of words")
dir.create(folder)
written <- of("domain_in")(folder)("domain", c("b", NA, "a \"q\""))
written %is% paste0("--domain=", file.path(folder, "domain.json"))
jsonlite::fromJSON(file.path(folder, "domain.json")) %is% c("b", NA, "a \"q\"")
of("domain_in")(folder)("domain", "codes.txt") %is% "--domain=codes.txt"

# Data frames as JSON lines.
lines_of <- function(frame) {
  file <- file.path(folder, "t.jsonl")
  of("write_frame")(frame, file)
  readLines(file, encoding = "UTF-8")
}
berlin <- as.POSIXct(c("2020-06-01 23:30:00", NA), tz = "Europe/Berlin")
frame <- data.frame(
  number = c(0.1, 1e5), whole = c(1L, NA), text = c("NA", NA), code = c("007", ""),
  factor = factor(c(NA, "x")), logical = c(TRUE, NA), date = as.Date(c("2020-01-31", NA)),
  time = berlin, stringsAsFactors = FALSE
)
frame[["a \"name\""]] <- c("\u00fc \"q\" \\", "line\nbreak\t\001")
found <- lines_of(frame)
found[1] %is% paste0(
  "{\"number\":0.1,\"whole\":1,\"text\":\"NA\",\"code\":\"007\",\"factor\":null,\"logical\":true,",
  "\"date\":\"2020-01-31\",\"time\":\"2020-06-01 23:30:00\",\"a \\\"name\\\"\":\"\u00fc \\\"q\\\" \\\\\"}"
)
found[2] %is% paste0(
  "{\"number\":100000,\"whole\":null,\"text\":null,\"code\":\"\",\"factor\":\"x\",\"logical\":null,",
  "\"date\":null,\"time\":null,\"a \\\"name\\\"\":\"line\\u000abreak\\u0009\\u0001\"}"
)
set.seed(1)
numbers <- c(rnorm(100), 1 / 3, 2^53 - 1, 2^60, 1e300, 5e-324, NaN)
back <- as.numeric(sub("null", "NaN", sub(".*:(.*)}", "\\1", lines_of(data.frame(x = numbers)))))
back %is% numbers
latin <- "stra\xdfe"
Encoding(latin) <- "latin1"
plain <- "stra\xc3\x9fe"
lines_of(data.frame(x = plain)) %is% "{\"x\":\"stra\u00dfe\"}"
lines_of(data.frame(x = latin)) %is% "{\"x\":\"stra\u00dfe\"}"

refused <- function(...) error_of(of("write_frame")(data.frame(..., check.names = FALSE), tempfile()))
says(refused(x = Inf), "Column \"x\"", "infinite")
says(refused(x = I(list(1, "a"))), "Column \"x\"", "class list")
says(refused(x = as.difftime(1, units = "mins")), "Column \"x\"", "class difftime")
says(refused(x = 1i), "Column \"x\"", "class complex")
says(refused(x = I(matrix(1:4, 2))), "matrix")
says(refused(x = "a\xff"), "not valid")
says(refused(x = 1, X = 2), "\"x\" and \"X\"")
says(refused(x = character()), "no rows")

# Questions.
file <- file.path(folder, "q.csv")
asked <- of("write_questions")(list(sex = c("f", NA), "a,b" = c("x \"y\"", "z"), n = c(1e5, 2)), file)
readLines(file) %is% c("\"sex\",\"a,b\",\"n\"", "\"f\",\"x \"\"y\"\"\",\"100000\"", ",\"z\",\"2\"")
names(asked) %is% c("sex", "a,b", "n")
says(error_of(of("write_questions")("SELECT 1", file)), "data frame")

# Messages.
sorted <- of("sorted_messages")(paste(
  "warning: first", "note: second", "error: third: and more", "  a line", "", sep = "\n"
))
sorted[c("warning", "note", "error")] %is% list(warning = "first", note = "second", error = "third: and more")
sorted$details %is% "  a line"
box <- of("sorted_messages")("Usage: x\n\u256d\u2500 Error \u2500\u256e\n\u2502 No such option: --x  \u2502\n")
error <- of("command_error")(list(code = 2L, said = box))
says(error, "No such option: --x. Is the command older")
class(error) %is% c("reconpriv_error", "error", "condition")
error$code %is% 2L
says(of("command_error")(list(code = 9L, said = of("sorted_messages")(""))), "ended with exit code 9")

# JSON.
rows <- list(list(a = 1, b = "inf", c = NULL), list(a = 2.5, b = 3, c = "x"))
of("numbers_of")(rows, "b") %is% c(Inf, 3)
of("numbers_of")(list(list(b = "a"), list(b = 1)), "b") %is% c("a", "1")
of("frame_of")(rows, c("a", "c"))$c %is% c(NA, "x")
of("side_by_side")(list(low = 1), list(low = 2, low_ = 3), 1) %is%
  structure(list(low = 1, low_ = 2, low__ = 3), class = "data.frame", row.names = 1L)

# No command.
options(reconpriv.command = "/no/such/reconpriv")
missing <- error_of(rp_info("release"))
says(missing, "There is no command '/no/such/reconpriv' (the option", "Install it", "options(reconpriv.command")
inherits(missing, "reconpriv_not_found") %is% TRUE
rp_available() %is% FALSE
options(reconpriv.command = 3)
says(error_of(rp_command()), "reconpriv.command")
options(reconpriv.command = NULL)
Sys.setenv(RECONPRIV_COMMAND = "/none")
says(error_of(rp_command()), "'/none' (the environment variable")
path <- Sys.getenv("PATH")
Sys.setenv(RECONPRIV_COMMAND = "", PATH = "/none")
says(error_of(rp_command()), "'reconpriv' in PATH")
Sys.setenv(PATH = path)
unlink(folder, recursive = TRUE)

# The command itself: a data frame becomes a release, and the release answers.

library(reconpriv)
source("helpers.R")
if (!rp_available()) {
  message("There is no command reconpriv, so nothing is tested.")
  quit()
}

folder <- tempfile("it's a folder $x \u00e4")
dir.create(folder)
key <- file.path(folder, "my key")
out <- file.path(folder, "a release")
rp_keygen(key) %is% key
says(error_of(rp_keygen(key)), "never overwritten")

# Values that are easily mixed up, under names that are easily broken.
n <- 1200
people <- data.frame(
  code = rep(c("007", "NA", "", NA), length.out = n),
  day = rep(as.Date(c("2020-01-31", NA)), each = 2, length.out = n),
  text = rep(c("12-11-2020", "11-11-2020", "it's \"\u00fc\", $HOME"), length.out = n),
  level = factor(rep(c("low", "high"), each = 3, length.out = n)),
  illness = rep(c("flu", "flu", "flu", "asthma", "none", NA, "NA"), length.out = n),
  stringsAsFactors = FALSE
)
names(people)[3] <- "a, \"b\"=c"
public <- names(people)[1:4]

found <- rp_columns(people, sensitive = "illness")
found$column %is% names(people)
found$kind %is% c("string", "date", "string", "string", "string")
found$missing %is% c(300L, 600L, 0L, 0L, 171L)
found$role[5] %is% "sensitive"

audit <- rp_audit(people, "illness", public, missing = "value", worst = 2, columns = FALSE)
audit$summary$records %is% 1200L
audit$summary$sensitive_values %is% 5L
nrow(audit$worst) %is% 2L
nrow(rp_audit(people, "illness", public[1], missing = "drop", worst = 0, columns = FALSE)$worst) %is% 0L
audit$passes %is% audit$summary$passes
as.data.frame(audit) %is% audit$summary
stopifnot(any(grepl("Not private|Every group", capture.output(print(audit)))))

release <- suppressMessages(rp_publish(
  people, out, "illness", public, key = key, missing = "value", format = "csv",
  retention = 1 - 1e-12, sampling = "none", margins = 0, harmless = c("none", NA)
))
release$release %is% out
release$summary$records %is% 1200L
release$policy$value[release$policy$setting == "retention"] %is% "0.999999999999"
published <- read.csv(file.path(out, "data.csv"), colClasses = "character", na.strings = character(),
                      check.names = FALSE, encoding = "UTF-8")
sort(names(published)) %is% sort(names(people))
setequal(published[["a, \"b\"=c"]], people[["a, \"b\"=c"]]) %is% TRUE

# With nearly all values kept and no sampling, answers are those of the table.
by_code <- rp_query(release, "SELECT code, count(*) FROM release WHERE illness = 'flu' GROUP BY code ORDER BY code")
truth <- vapply(by_code$code, function(code) sum(people$illness %in% "flu" & people$code %in% code), 0L)
by_code$code %is% c("", "007", "NA", NA)
round(by_code$estimate) %is% as.numeric(truth)
stopifnot(by_code$low <= by_code$estimate, by_code$estimate <= by_code$high, by_code$figure == "count")
names(by_code)[1:8] %is%
  c("code", "figure", "estimate", "low", "high", "confidence", "standard_error", "exact")

two <- rp_query(release, "SELECT level, count(*) AS n, share(illness = 'flu') FROM release GROUP BY level")
two$level %is% rep(c("high", "low"), each = 2)
two$figure[1] %is% "n"
two$estimate[c(1, 3)] %is% c(600, 600)
round(two$estimate[c(2, 4)], 4) %is%
  round(as.numeric(tapply(people$illness %in% "flu", people$level, mean)), 4)

one <- rp_query(out, "SELECT count(*) FROM release WHERE illness IS NULL", confidence = 0.5)
round(one$estimate) %is% 171
one$confidence %is% 0.5

questions <- data.frame(level = c("low", NA), illness = "flu", day = as.Date("2020-01-31"))
many <- rp_query(release, questions = questions)
many$level %is% questions$level
flu <- people$illness %in% "flu" & !is.na(people$day)
round(many$estimate) %is% as.numeric(c(sum(flu & people$level == "low"), sum(flu)))
compared <- rp_query(release, questions = list(a = "level = 'low'", b = "level = 'high'", illness = "flu"))
compared$figure %is% "difference"
round(compared$estimate, 4) %is% round(diff(two$estimate[c(2, 4)]), 4)
stopifnot(is.finite(compared$ratio), is.finite(compared$p_value))

table <- rp_crosstab(release, c("code", "level"), "illness", shares = "row", totals = TRUE, widest = "5%")
flus <- table[table$part == "cell" & table$level == "low" & table$illness %in% "flu" & table$code %in% "007", ]
round(flus$estimate) %is% as.numeric(sum(people$illness %in% "flu" & people$level == "low" & people$code %in% "007"))
total <- table[table$part == "total", ]
total$estimate %is% 1200
total$share %is% 1
is.logical(table$wide) %is% TRUE
scored <- rp_query(release, "SELECT avg(illness) FROM release WHERE illness IN ('flu', 'asthma')",
                   score = c(flu = 1, asthma = 3, none = 0, "NA" = 0))
round(scored$estimate, 3) %is% round((sum(people$illness %in% "flu") + 3 * sum(people$illness %in% "asthma")) /
                                     sum(people$illness %in% c("flu", "asthma")), 3)

info <- rp_info(release)
info$summary$sensitive %is% "illness"
info$promise %is% release$promise

# Mistakes.
says(error_of(rp_query(release, "SELECT count(*) FROM release WHERE job = 'x'")), "no column 'job'")
says(error_of(rp_query(release)), "Give either `sql` or `questions`")
says(error_of(rp_query(release, questions = data.frame(job = 1))), "no column 'job'")
says(error_of(rp_query(folder, "SELECT count(*) FROM release")), "is not a release")
says(error_of(rp_audit(people, "illness")), "have no role yet", "rp_columns()")
says(error_of(rp_audit(people, "illness", "town")), "no column 'town'")
says(error_of(rp_audit("no such.csv", "a", "b")), "There is no file 'no such.csv'")
again <- error_of(rp_publish(people, out, "illness", public, key = key, missing = "value"))
again$code %is% 2L
says(error_of(rp_publish(people, file.path(folder, "b"), "illness", public, key = "no/key")), "no/key")

# Made with the same key, it is the same release; the key is in none of its files.
secret <- readLines(key, warn = FALSE)
hidden <- function(path) {
  !any(vapply(list.files(path, recursive = TRUE, full.names = TRUE), function(file) {
    any(grepl(secret[1], readLines(file, warn = FALSE, skipNul = TRUE), fixed = TRUE, useBytes = TRUE))
  }, NA))
}
hidden(out) %is% TRUE
hidden(dirname(key)) %is% FALSE
list.files(tempdir(), pattern = "^reconpriv-") %is% character()
unlink(folder, recursive = TRUE)

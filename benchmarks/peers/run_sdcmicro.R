# sdcMicro's pram with the transition matrix of Eq. 1, and its inverse. Arguments and output are
# those of harness.py: --file FILE --rows N --domain-size M --retention P, one line of JSON.
suppressPackageStartupMessages(library(sdcMicro))

given <- commandArgs(trailingOnly = TRUE)
option <- function(name) given[match(paste0("--", name), given) + 1]
rows <- as.integer(option("rows"))
m <- as.integer(option("domain-size"))
p <- as.numeric(option("retention"))

levels <- sprintf("%02d", seq_len(m) - 1L)
codes <- readBin(option("file"), "integer", n = rows, size = 4L, endian = "little")
column <- factor(levels[codes + 1L], levels = levels)

# Each row must sum to 1 to the last bit, so the diagonal is what the others leave.
transition <- matrix((1 - p) / m, m, m, dimnames = list(levels, levels))
diag(transition) <- 1 - (m - 1) * (1 - p) / m

perturb_and_reconstruct <- function(column) {
  perturbed <- pram(column, pd = transition)$x_pram
  observed <- tabulate(as.integer(factor(perturbed, levels = levels)), m) / length(column)
  (observed - (1 - p) / m) / p
}

invisible(perturb_and_reconstruct(head(column, 1000L)))
seconds <- system.time(frequencies <- perturb_and_reconstruct(column))[["elapsed"]]
cat(sprintf(
  '{"seconds": %.6f, "result": [%s], "versions": {"sdcMicro": "%s", "R": "%s"}}\n',
  seconds, paste(sprintf("%.9f", frequencies), collapse = ", "),
  as.character(packageVersion("sdcMicro")), as.character(getRversion())
))

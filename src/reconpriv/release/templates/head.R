# Run it where the data are: Rscript «script»

p <- @retention
m <- @domain
sensitive <- «sensitive»
«read»
design <- c(«design»)
data[design] <- lapply(data[design], as.numeric)
«labels»
# How many of these rows hold one sensitive value, with the standard error.
# Take whole groups: choose rows by public columns.
corrected <- function(rows, value) {
  stray <- (1 - p) / m
  keep <- p + stray
  holds <- as.numeric(rows[[sensitive]] %in% value)
  observed <- sum(holds)
  weights <- rows$@weight
  holders <- (sum(weights * holds) - stray * sum(weights)) / p
  drawn <- holders * (keep * (1 - keep) - stray * (1 - stray)) +
    sum(weights) * stray * (1 - stray)
  groups <- rows[!duplicated(rows$@group), ]
  of_group <- tapply(holds, factor(rows$@group, groups$@group), sum)
  share <- as.numeric(of_group) / groups$@records
  trials <- groups$@trials
  part <- (groups$@records %% trials) / trials
  uneven <- part * (1 - part) * trials^2 / pmax(trials - 1, 1) * share * (1 - share)
  rounding <- ifelse(trials < groups$@records, groups$@weight^2 / 6, 0)
  c(
    count = (observed - stray * nrow(rows)) / p,
    standard_error = sqrt((max(drawn, 0) + sum(uneven)) / p^2 + sum(rounding))
  )
}

# An answer beside the one that the release gives.
compared <- function(what, found, expected) {
  cat(what, ": ", paste(format(found, digits = 10), collapse = ", standard error "), sep = "")
  cat("\n")
  stopifnot(all(abs(found - expected) <= 1e-6 * (1 + abs(expected))))
}

# Counts from people.csv, a randomised release made by reconpriv.
# Public columns are exact, but ill is randomised: a value was kept with probability p, else
# replaced by any of the m values, so a published count must be corrected: estimate = (n - N
# (1-p) / m) / p for n of N records.
# The rp_records records of a group rest on rp_trials independent trials, each of which
# stands for rp_weight records; programs that take rows as independent give standard errors
# that are too small, but those below are right.
# For intervals that also hold for small counts, ask reconpriv query.
# At the end, three answers are compared with those of the release.
# Run it where the data are: Rscript people.R

p <- 0.4
m <- 5
sensitive <- 'ill'
data <- read.csv('people.csv', colClasses = 'character', na.strings = '',
  check.names = FALSE, encoding = 'UTF-8')
design <- c('rp_group', 'rp_records', 'rp_trials', 'rp_weight')
data[design] <- lapply(data[design], as.numeric)
attr(data[['rp_group']], 'label') <- 'Group, randomised as one'
attr(data[['rp_records']], 'label') <- 'Records in the group'
attr(data[['rp_trials']], 'label') <- 'Independent trials that the records of the group rest on'
attr(data[['rp_weight']], 'label') <- 'Design weight: records per trial'
attr(data[['ill']], 'label') <- 'ill (randomised: estimate = (n - N*(1-0.4)/5)/0.4)'

# How many of these rows hold one sensitive value, with the standard error.
# Take whole groups: choose rows by public columns.
corrected <- function(rows, value) {
  stray <- (1 - p) / m
  keep <- p + stray
  holds <- as.numeric(rows[[sensitive]] %in% value)
  observed <- sum(holds)
  weights <- rows$rp_weight
  holders <- (sum(weights * holds) - stray * sum(weights)) / p
  drawn <- holders * (keep * (1 - keep) - stray * (1 - stray)) +
    sum(weights) * stray * (1 - stray)
  groups <- rows[!duplicated(rows$rp_group), ]
  of_group <- tapply(holds, factor(rows$rp_group, groups$rp_group), sum)
  share <- as.numeric(of_group) / groups$rp_records
  trials <- groups$rp_trials
  part <- (groups$rp_records %% trials) / trials
  uneven <- part * (1 - part) * trials^2 / pmax(trials - 1, 1) * share * (1 - share)
  rounding <- ifelse(trials < groups$rp_records, groups$rp_weight^2 / 6, 0)
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

compared('town = L\'Aquila', nrow(data[data[['town']] %in% 'L\'Aquila', ]), 1014)
compared('ill = Grippe \U{e0} l\'ancienne, all records',
  corrected(data, 'Grippe \U{e0} l\'ancienne'),
  c(950.0, 52.66587717))
compared('ill = Grippe \U{e0} l\'ancienne, town = L\'Aquila',
  corrected(data[data[['town']] %in% 'L\'Aquila', ], 'Grippe \U{e0} l\'ancienne'),
  c(650.8, 46.72959039))

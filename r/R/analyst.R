# The analyst's functions: they ask a release.

rp_info <- function(release) {
  release_result(answer_of("info", NULL, release_place(release)))
}

rp_query <- function(release, sql = NULL, questions = NULL, estimator = NULL, confidence = NULL,
                     simultaneous = FALSE, whole_bins = FALSE, score = NULL, chart = NULL,
                     overwrite = FALSE, memory = NULL) {
  given <- as.list(environment())
  given[c("release", "sql", "questions")] <- NULL
  if (is.null(sql) == is.null(questions)) refuse("Give either `sql` or `questions`.")
  folder <- private_folder()
  on.exit(unlink(folder, recursive = TRUE))
  place <- release_place(release)
  if (is.null(sql)) {
    given$batch <- file.path(folder, "questions.csv")
    questions <- write_questions(questions, given$batch)
    found <- answer_of("query", words_for(given, of_answers), place)
    return(answers_frame(questions, found$answers))
  }
  if (!is.character(sql) || length(sql) != 1 || is.na(sql)) refuse("`sql` is one SELECT.")
  found <- answer_of("query", words_for(given, of_answers), c(place, sql))
  if (is.null(found$rows)) return(answers_frame(list(), list(found)))
  by <- unlist(found$by)
  if (is.null(found$figures)) return(answers_frame(labels_of(found$rows, by), found$rows))
  # One row for each figure of each group.
  times <- length(found$figures)
  rows <- rep(found$rows, each = times)
  answers <- unlist(lapply(found$rows, function(row) row$figures), recursive = FALSE)
  frame <- answers_frame(labels_of(rows, by), answers)
  frame[[figure_column(by)]] <- rep(unlist(found$figures), length(found$rows))
  frame
}

# What the column of figures is called beside these labels.
figure_column <- function(by) {
  name <- "figure"
  while (name %in% by) name <- paste0(name, "_")
  name
}

rp_crosstab <- function(release, rows, column = NULL, where = NULL, shares = NULL,
                        totals = FALSE, widest = NULL, estimator = NULL, confidence = NULL,
                        simultaneous = FALSE, whole_bins = FALSE, chart = NULL,
                        overwrite = FALSE, memory = NULL) {
  given <- as.list(environment())
  given[c("release", "rows", "column")] <- NULL
  if (!is.character(rows) || length(rows) == 0) refuse("`rows` is a character vector of columns.")
  places <- c(release_place(release), paste(in_quotes(rows), collapse = ","), column)
  found <- answer_of("crosstab", words_for(given, of_answers), places)
  cells <- c(found$rows, found$totals)
  by <- unlist(found$by)
  more <- list()
  if (!is.null(found$totals)) {
    part <- vector_of(cells, "part")
    more$part <- ifelse(is.na(part), "cell", part)
  }
  if (!is.null(found$shares)) {
    for (field in c("value", "low", "high", "exact")) {
      name <- if (field == "value") "share" else paste0("share_", field)
      more[[name]] <- vector_of(cells, c("share", field))
    }
  }
  if (!is.null(found$widest)) more$wide <- vector_of(cells, "wide")
  answers_frame(labels_of(cells, by), cells, more)
}

# The folder of a release: a path, or what rp_publish and rp_info return.
release_place <- function(release) {
  if (inherits(release, "reconpriv_release")) release <- release$release
  if (!is.character(release) || length(release) != 1 || is.na(release)) {
    refuse("A release is the path of its folder, or what rp_publish() returned.")
  }
  path.expand(release)
}

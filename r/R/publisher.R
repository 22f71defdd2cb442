# The publisher's functions: each is the command of the same name.

rp_columns <- function(data, sensitive = NULL, sql = NULL, table = NULL, labels = NULL,
                       threads = NULL, memory = NULL, engine = NULL, master = NULL) {
  given <- as.list(environment())
  folder <- private_folder()
  on.exit(unlink(folder, recursive = TRUE))
  found <- answer_of("columns", table_words(given, folder), table_place(data, folder))
  frame_of(found$columns)
}

rp_audit <- function(data, sensitive, public = NULL, drop = NULL, person = NULL,
                     rows_per_person = NULL, domain = NULL, missing = NULL, bin = NULL,
                     group = NULL, sql = NULL, table = NULL, labels = NULL, threads = NULL,
                     memory = NULL, engine = NULL, master = NULL, preset = NULL,
                     retention = NULL, tolerance = NULL, doubt = NULL, bound = NULL,
                     sampling = NULL, exposed_above = NULL, harmless = NULL, margins = NULL,
                     margins_rho = NULL, margins_delta = NULL, margin_tables = NULL,
                     protect = NULL, worst = NULL, groups = NULL, exact_tails = FALSE, k = NULL,
                     columns = NULL, keep_identifier = NULL, keep_giveaway = NULL,
                     max_unique = NULL, report = NULL) {
  force(sensitive)
  given <- as.list(environment())
  folder <- private_folder()
  on.exit(unlink(folder, recursive = TRUE))
  kinds <- list(
    worst = one_value, groups = one_path, exact_tails = switched, k = one_value,
    columns = either_way, report = one_path
  )
  words <- table_words(given, folder, c(of_policy, of_acceptance, kinds))
  found <- answer_of("audit", words, table_place(data, folder), accepted = 0:1)
  verdict <- found$verdict
  alone <- verdict$single_records
  obstacles <- vapply(verdict$obstacles, function(one) one$sentence, "")
  result(
    "audit", c(verdict$sentence, obstacles), "summary",
    passes = verdict$passes,
    summary = named_frame(list(
      passes = verdict$passes,
      private = found$private,
      records = found$records,
      dropped = found$dropped,
      groups = found$groups,
      sensitive_values = found$domain_size,
      violating_groups = found$violating_groups,
      violating_records = found$violating_records,
      unattainable_groups = found$unattainable_groups,
      unique_records = alone$unique,
      records_below_k = alone$below_k
    ), 1),
    worst = worst_frame(found$worst),
    columns = frame_of(lapply(verdict$columns$each, flattened)),
    sizes = frame_of(found$size_distribution),
    margins = frame_of(lapply(found$margins$tables, flattened)),
    policy = policy_frame(found$policy),
    sentence = verdict$sentence,
    obstacles = obstacles,
    promise = found$promise,
    not_promised = found$not_promised,
    json = found
  )
}

rp_publish <- function(data, out = NULL, sensitive, public = NULL, key = NULL, drop = NULL,
                       person = NULL, rows_per_person = NULL, domain = NULL, missing = NULL,
                       bin = NULL, group = NULL, sql = NULL, table = NULL, labels = NULL,
                       threads = NULL, memory = NULL, engine = NULL, master = NULL,
                       preset = NULL, retention = NULL, tolerance = NULL, doubt = NULL,
                       bound = NULL, sampling = NULL, exposed_above = NULL, harmless = NULL,
                       unattainable = NULL, margins = NULL, margins_rho = NULL,
                       margins_delta = NULL, margin_tables = NULL, protect = NULL,
                       test_key = FALSE, format = NULL, overwrite = FALSE, to_table = NULL,
                       to = NULL, keep_identifier = NULL, keep_giveaway = NULL,
                       max_unique = NULL, second_sample = FALSE, role_change = FALSE,
                       report = NULL, record = NULL) {
  force(sensitive)
  given <- as.list(environment())
  given$out <- NULL
  folder <- private_folder()
  on.exit(unlink(folder, recursive = TRUE))
  kinds <- list(
    key = one_path, test_key = switched, format = one_value, overwrite = switched,
    to_table = one_value, to = one_value, second_sample = switched, role_change = switched,
    report = one_path, record = one_path
  )
  words <- table_words(given, folder, c(of_policy, of_acceptance, kinds))
  places <- c(table_place(data, folder), if (!is.null(out)) release_place(out))
  release_result(answer_of("publish", words, places))
}

rp_keygen <- function(file) {
  if (!is.character(file) || length(file) != 1 || is.na(file)) refuse("`file` is a path.")
  found <- answer_of("keygen", NULL, path.expand(file))
  invisible(found$key_file)
}

# The words of the arguments that describe a table, and of those that `kinds` lists.
table_words <- function(given, folder, kinds = NULL) {
  given$data <- NULL
  words_for(given, c(of_table, list(domain = domain_in(folder)), kinds))
}

# The groups that are closest to being reconstructed: their public values, then what was found.
worst_frame <- function(groups) {
  if (length(groups) == 0) return(frame_of(list()))
  public <- names(groups[[1]]$public)
  found <- frame_of(lapply(groups, function(one) flattened(one[names(one) != "public"])))
  found$largest_private_size <- numbers_of(groups, "largest_private_size")
  labels <- lapply(public, function(name) vector_of(groups, c("public", name)))
  side_by_side(stats::setNames(labels, public), found, length(groups))
}

policy_frame <- function(policy) {
  flat <- flattened(policy)
  shown <- vapply(flat, function(one) if (is.null(one)) NA_character_ else plain_text(one), "")
  named_frame(list(setting = names(flat), value = unname(shown)), length(flat))
}

# What publish and info print about a release, but for what has a place of its own.
release_facts <- c(
  "release", "sensitive", "records", "groups", "sampled_groups", "trials", "unattainable_groups",
  "unattainable_records", "unique_records", "records_in_groups_below_5", "local_dp_epsilon",
  "test_key"
)
release_texts <- c(
  "format_version", "created_by", "method", "promise", "not_promised", "public_counts_exact",
  "exit_code"
)

# A release in a few numbers, from what publish and info print about it.
release_result <- function(found) {
  scalar <- Filter(function(one) length(one) == 1 && !is.list(one), found)
  settings <- setdiff(names(scalar), c(release_facts, release_texts))
  policy <- if (is.null(found$policy)) scalar[settings] else found$policy
  result(
    "release",
    c(paste("Promised.", found$promise), paste("Not promised.", found$not_promised)), "summary",
    release = found$release,
    summary = named_frame(scalar[intersect(release_facts, names(scalar))], 1),
    margins = frame_of(lapply(found$margins$tables, flattened)),
    policy = policy_frame(policy),
    promise = found$promise,
    not_promised = found$not_promised,
    json = found
  )
}

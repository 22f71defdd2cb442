"""An R script; base R reads CSV, the package arrow reads Parquet."""

from __future__ import annotations

from reconpriv.release.scripts.base import Answer, Setting, filled
from reconpriv.schema import Column, Kind, Value, value_text

_CORRECTED = """\
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
  cat("\\n")
  stopifnot(all(abs(found - expected) <= 1e-6 * (1 + abs(expected))))
}
"""


def r_script(setting: Setting) -> str:
    """The whole script."""
    parquet = setting.data.lower().endswith(".parquet")
    read = (
        f"data <- as.data.frame(arrow::read_parquet({_text(setting.data)}))\n"
        "data[] <- lapply(data, as.character)"
        if parquet
        else f"data <- read.csv({_text(setting.data)}, colClasses = 'character', na.strings = '',\n"
        "  check.names = FALSE, encoding = 'UTF-8')"
    )
    design = setting.design
    columns = ", ".join(_text(name) for name in design.all)
    labels = [
        f"attr(data[[{_text(name)}]], 'label') <- {_text(label)}"
        for name, label in setting.labels.items()
    ]
    lines = [
        *setting.comments("# "),
        f"# Run it where the data are: Rscript {setting.script}",
        "",
        f"p <- {setting.retention!r}",
        f"m <- {setting.domain_size}",
        f"sensitive <- {_text(setting.sensitive.name)}",
        read,
        f"design <- c({columns})",
        "data[design] <- lapply(data[design], as.numeric)",
        *labels,
        "",
        filled(_CORRECTED, setting),
    ]
    lines += [_answer(setting, answer, parquet) for answer in setting.answers]
    return "\n".join(lines) + "\n"


def _answer(setting: Setting, answer: Answer, parquet: bool) -> str:
    rows, what = "data", "all records"
    if answer.among is not None:
        column, value = answer.among
        asked = _literal(column, value, parquet)
        rows = f"data[data[[{_text(column.name)}]] %in% {asked}, ]"
        what = f"{column.name} = {value_text(column.kind, value)}"
    if answer.holding is None:
        return f"compared({_text(what)}, nrow({rows}), {answer.count:.0f})"
    asked = _literal(setting.sensitive, answer.holding, parquet)
    held = f"{setting.sensitive.name} = {value_text(setting.sensitive.kind, answer.holding)}"
    return (
        f"compared({_text(f'{held}, {what}')},\n"
        f"  corrected({rows}, {asked}),\n"
        f"  c({answer.count!r}, {answer.standard_error!r}))"
    )


def _literal(column: Column, value: Value, parquet: bool) -> str:
    text = value_text(column.kind, value)
    if column.kind is Kind.BOOLEAN:
        text = text.upper() if parquet else text.lower()
    return _text(text)


def _text(text: str) -> str:
    """A literal in ASCII, which R reads the same in every locale."""
    letters = []
    for letter in text:
        code = ord(letter)
        if letter in "\\'":
            letters.append(f"\\{letter}")
        elif code < 32 or code == 127:
            letters.append(f"\\x{code:02x}")
        else:
            letters.append(letter if code < 127 else f"\\U{{{code:x}}}")
    return f"'{''.join(letters)}'"

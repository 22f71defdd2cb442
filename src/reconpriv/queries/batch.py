"""A file of queries in, a file of answers out."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from reconpriv.errors import InputError, ReconprivError
from reconpriv.messages.redaction import shown_file
from reconpriv.messages.side_files import read_side_file
from reconpriv.queries.answer import Selected
from reconpriv.queries.estimate import Estimate
from reconpriv.queries.sql import unknown_column
from reconpriv.sources.column_names import free_name

if TYPE_CHECKING:
    from reconpriv.release.release import Release

SQL_COLUMN = "sql"
_ANSWER_COLUMNS = (
    "count", "low", "high", "confidence", "standard_error", "exact", "records", "groups", "trials",
    "from_margins", "remarks",
)  # fmt: skip
_MODEL_COLUMNS = ("mean_squared_error", "from_model")  # of counts that lean on a model


def read_batch(
    path: Path, release: Release, *, whole_bins: bool = False
) -> tuple[list[list[str]], list[Selected]]:
    """Read queries: one column ``sql``, or one column per attribute (an empty field: no condition).

    Every line is checked before any is answered; an error gives the number of the bad line.
    """
    reader = csv.reader(io.StringIO(read_side_file(path, "batch file"), newline=""))
    try:
        numbered = [(reader.line_num, row) for row in reader if row]
    except csv.Error as error:
        raise InputError(
            f"The batch file {shown_file(path)!r} cannot be read ({type(error).__name__})."
        ) from None
    if not numbered:
        raise InputError(f"The batch file {shown_file(path)!r} is empty.")
    (_, header), *rows = numbered
    _check_header(header, path, release)
    selected = []
    for line, row in rows:
        if any("\0" in field for field in row):
            raise InputError(f"Line {line} of {shown_file(path)!r} holds a NUL character.")
        try:
            selected.append(_select(header, row, release, whole_bins))
        except ReconprivError as error:
            raise InputError(
                f"Line {line} of {shown_file(path)!r}: {error.what}", hint=error.advice
            ) from None
    return [header, *(row for _, row in rows)], selected


def _check_header(header: list[str], path: Path, release: Release) -> None:
    if [name.lower() for name in header] == [SQL_COLUMN]:
        return
    names = release.column_names()
    for i, name in enumerate(header):
        if name not in names:
            error = unknown_column(name, names)
            raise InputError(f"Line 1 of {shown_file(path)!r}: {error.what}", hint=error.advice)
        if name in header[:i]:
            raise InputError(
                f"The batch file {shown_file(path)!r} has two columns called {name!r}."
            )


def _select(header: list[str], row: list[str], release: Release, whole_bins: bool) -> Selected:
    if len(row) != len(header):
        raise InputError(f"It has {len(row)} fields where the header has {len(header)}.")
    if [name.lower() for name in header] == [SQL_COLUMN]:
        return release.select(row[0], whole_bins=whole_bins)
    asked = {name: text for name, text in zip(header, row, strict=True) if text != ""}
    return release.select(asked, whole_bins=whole_bins)


def write_answers(stream: TextIO, rows: Sequence[list[str]], answers: Iterable[Estimate]) -> None:
    """The queries as given, each with its answer.

    An answer column that has the same name as a query column gets underscores.
    """
    answers = list(answers)
    model = any(answer.leans for answer in answers)
    shown = (*_ANSWER_COLUMNS, "estimator", *_MODEL_COLUMNS) if model else _ANSWER_COLUMNS
    writer = csv.writer(stream, lineterminator="\n")
    header, *queries = rows
    names = list(header)
    for name in shown:
        names.append(free_name(name, names))
    writer.writerow(names)
    for row, answer in zip(queries, answers, strict=True):
        facts = answer.as_dict()
        facts["remarks"] = "; ".join(facts["remarks"])
        writer.writerow([*row, *(facts[name] for name in shown)])

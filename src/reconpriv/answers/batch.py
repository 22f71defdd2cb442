"""A file of queries in, a file of answers out."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from reconpriv.answers.figure import COUNT, SHARE, Answer
from reconpriv.ask.comparisons import unknown_column
from reconpriv.ask.question import ComparisonQuestion, Question, asked_share
from reconpriv.ask.selections import Selected
from reconpriv.errors import InputError, ReconprivError
from reconpriv.estimate.compare import Comparison
from reconpriv.estimate.counts import Estimate
from reconpriv.estimate.measures import Scores
from reconpriv.messages.redaction import shown_file
from reconpriv.messages.text_files import read_side_file
from reconpriv.sources.column_names import free_name

if TYPE_CHECKING:
    from reconpriv.release.release import Release

SQL_COLUMN = "sql"
# Besides the columns of the release: the figure, the records that it is among, and two conditions
# that are compared.
FIGURE, AMONG, SIDES = "figure", "among", ("a", "b")
_BASIS = (
    "low", "high", "confidence", "standard_error", "exact", "records", "groups", "trials",
    "from_margins", "remarks",
)  # fmt: skip
_MODEL_COLUMNS = ("estimator", "mean_squared_error", "from_model")  # of counts that lean on a model
_COMPARED_COLUMNS = ("ratio", "ratio_low", "ratio_high", "p_value")


@dataclass(frozen=True)
class BatchReader:
    """Reads the lines of a batch file as questions to a release."""

    release: Release
    header: list[str]
    whole_bins: bool
    scores: Scores | None

    @property
    def sql(self) -> bool:
        """True if every line is a SELECT."""
        return [name.lower() for name in self.header] == [SQL_COLUMN]

    def check_header(self, path: Path) -> None:
        """Refuse a column that the release does not have, and one that is there twice."""
        known = self.release.column_names()
        for i, name in enumerate(() if self.sql else self.header):
            if name not in (*known, FIGURE, AMONG, *SIDES):
                error = unknown_column(name, known)
                raise InputError(f"Line 1 of {shown_file(path)!r}: {error.what}", hint=error.advice)
            if name in self.header[:i]:
                raise InputError(
                    f"The batch file {shown_file(path)!r} has two columns called {name!r}."
                )

    def question(self, row: list[str]) -> Question | ComparisonQuestion:
        """The question of a line; an empty field sets no condition."""
        if len(row) != len(self.header):
            raise InputError(f"It has {len(row)} fields where the header has {len(self.header)}.")
        if self.sql:
            return self._select(row[0])
        known = self.release.column_names()
        given = {name: text for name, text in zip(self.header, row, strict=True) if text != ""}
        asked = {name: given.pop(name) for name in (FIGURE, AMONG, *SIDES)
                 if name in given and name not in known}  # fmt: skip
        answerer = self.release.answerer
        selected = answerer.select(None, dict(given), whole_bins=self.whole_bins)
        among = None
        if AMONG in asked:
            among = answerer.selected(asked[AMONG], whole_bins=self.whole_bins)
        if any(side in asked for side in SIDES):
            return self._comparison(asked, selected, among)
        question = Question(COUNT, selected)
        if FIGURE in asked:
            question = self._select(f"SELECT {asked[FIGURE]} FROM release", selected)
        if among is None:
            return question
        if question.kind != SHARE:
            raise InputError("Only a share or a comparison is among other records.")
        share = asked_share(question.selected, among)
        return replace(question, selected=share.selected, among=share.among, within=True)

    def _select(self, sql: str, base: Selected | None = None) -> Question:
        from reconpriv.ask.sql.select import parse_select  # noqa: PLC0415 - an extra

        answerer, whole = self.release.answerer, self.whole_bins
        query = parse_select(sql, answerer, scores=self.scores, whole_bins=whole, base=base)
        return query.single

    def _comparison(
        self, asked: dict[str, str], common: Selected, among: Selected | None
    ) -> ComparisonQuestion:
        if not all(side in asked for side in SIDES):
            raise InputError("A comparison needs two conditions, a and b.")
        of = asked.get(FIGURE, SHARE).removesuffix("(*)").lower()
        chosen = [
            self.release.answerer.selected(asked[side], whole_bins=self.whole_bins)
            for side in SIDES
        ]
        return ComparisonQuestion.of_sides(chosen, common, among, of)


def read_batch(
    path: Path, release: Release, *, whole_bins: bool = False, scores: Scores | None = None
) -> tuple[list[list[str]], list[Question | ComparisonQuestion]]:
    """Read queries: one column ``sql``, or one column per attribute (an empty field: no condition).

    Every line is checked before any is answered; an error gives the number of the bad line.
    """
    text = csv.reader(io.StringIO(read_side_file(path, "batch file"), newline=""))
    try:
        numbered = [(text.line_num, row) for row in text if row]
    except csv.Error as error:
        raise InputError(
            f"The batch file {shown_file(path)!r} cannot be read ({type(error).__name__})."
        ) from None
    if not numbered:
        raise InputError(f"The batch file {shown_file(path)!r} is empty.")
    (_, header), *rows = numbered
    reader = BatchReader(release, header, whole_bins, scores)
    reader.check_header(path)
    questions = []
    for line, row in rows:
        if any("\0" in field for field in row):
            raise InputError(f"Line {line} of {shown_file(path)!r} holds a NUL character.")
        try:
            questions.append(reader.question(row))
        except ReconprivError as error:
            raise InputError(
                f"Line {line} of {shown_file(path)!r}: {error.what}", hint=error.advice
            ) from None
    return [header, *(row for _, row in rows)], questions


def write_answers(
    stream: TextIO, rows: Sequence[list[str]], answers: Sequence[Answer | Comparison]
) -> None:
    """The queries as given, each with its answer.

    Counts are headed so; other figures have a value, and the figure that it is. An answer column
    that has the same name as a query column gets underscores.
    """
    counts = all(isinstance(one, Estimate) for one in answers)
    shown = [*((COUNT,) if counts else (FIGURE, "value")), *_BASIS]
    if any(isinstance(one, Answer) and one.leans for one in answers):
        shown += _MODEL_COLUMNS
    if any(isinstance(one, Comparison) for one in answers):
        shown += _COMPARED_COLUMNS
    writer = csv.writer(stream, lineterminator="\n")
    header, *queries = rows
    names = list(header)
    for name in shown:
        names.append(free_name(name, names))
    writer.writerow(names)
    for row, answer in zip(queries, answers, strict=True):
        facts = _facts(answer)
        writer.writerow([*row, *(facts.get(name) for name in shown)])


def _facts(answer: Answer | Comparison) -> dict[str, Any]:
    """What a line says of an answer; of a comparison, its difference and its ratio."""
    one, compared = (answer, {}) if isinstance(answer, Answer) else (
        answer.difference_answer, answer.as_dict()
    )  # fmt: skip
    facts = one.as_dict() | {FIGURE: one.kind, "value": one.value}
    facts |= {name: compared[name] for name in _COMPARED_COLUMNS if compared}
    remarks = answer.remarks
    return facts | {"remarks": "; ".join(remarks)}

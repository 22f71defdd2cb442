"""Public columns one by one: which are nearly unique, and what the audit would be without each."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from reconpriv.columns.schema import looks_like_identifier
from reconpriv.messages.phrases import listed
from reconpriv.messages.remedies import Advice, Control, Remedy, either


@dataclass(frozen=True)
class AuditFigures:
    """What an audit counts, for comparing a table with what it could become."""

    groups: int
    violating_groups: int
    violating_records: int
    unique: int
    below_k: int

    @property
    def shown(self) -> tuple[int, int, int, int]:
        """What tables show of them."""
        return self.groups, self.violating_records, self.unique, self.below_k


@dataclass(frozen=True)
class ExpectedErrors:
    """The analysts' expected mean relative error on the standard workload.

    ``published`` is that of a release, ``alone`` that of its records without the margins, and
    ``plain`` that of a table that is only perturbed.
    """

    published: float
    alone: float
    plain: float


@dataclass(frozen=True)
class WithoutColumn(AuditFigures):
    """The figures without a column.

    ``error`` is the expected mean relative error of those questions of the standard workload that
    do not use the column, ``error_now`` that of the same questions while the column is there.
    """

    error: float | None = None
    error_now: float | None = None


@dataclass(frozen=True)
class ColumnRisk:
    """A public column: how many values it has, and what leaving it out would do.

    ``without`` is None if it was not computed. A nearly unique column is ``kept`` if the publisher
    asked for that.
    """

    name: str
    distinct: int
    identifier: bool
    kept: bool = False
    without: WithoutColumn | None = None

    @property
    def refused(self) -> bool:
        """True if the column prevents a publication."""
        return self.identifier and not self.kept

    def as_dict(self) -> dict[str, Any]:
        """The column for JSON; ``without`` is null if it was not computed."""
        return asdict(self)


def column_risks(
    distinct: Mapping[str, int],
    records: int,
    *,
    kept: Collection[str] = (),
    without: Mapping[str, WithoutColumn] | None = None,
) -> tuple[ColumnRisk, ...]:
    """Every public column by its number of values and, if known, the figures without it."""
    figures = without or {}
    return tuple(
        ColumnRisk(
            name, values, looks_like_identifier(values, records), name in kept, figures.get(name)
        )
        for name, values in distinct.items()
    )


def identifier_note(column: ColumnRisk, records: int) -> str:
    """The warning about a nearly unique column."""
    note = (
        f"Public column {column.name!r} is nearly unique ({column.distinct:,} values in"
        f" {records:,} records): is it an identifier? It would be published as it is, and splits"
        " the table into tiny groups."
    )
    if column.kept:
        return f"{note} It is kept on request."
    return Advice(note, Remedy("leave it out", Control.DROP, (column.name,)))


def identifier_sentence(columns: Sequence[ColumnRisk], records: int, *, before: str = "") -> str:
    """The nearly unique columns and what to do about them; empty if there are none.

    ``before`` opens the sentence.
    """
    refused = [column for column in columns if column.refused]
    kept = [column for column in columns if column.identifier and column.kept]
    sentences: list[str] = []
    if refused:
        sentences.append(_capitalised(f"{before}{identifiers_named(refused, records)}."))
        sentences.append(identifier_remedies([column.name for column in refused]))
    if kept:
        them = "it reveals" if len(kept) == 1 else "they reveal"
        named = f"{'' if refused else before}{identifiers_named(kept, records)}"
        sentences.append(_capitalised(f"{named}, kept on request: {them} who a record is about."))
    return Advice(*sentences)


def _capitalised(text: str) -> str:
    return text[0].upper() + text[1:]


def identifier_remedies(names: Sequence[str]) -> Advice:
    """What can be done about nearly unique columns."""
    them = "it" if len(names) == 1 else "them"
    return either(
        Remedy(f"leave {them} out", Control.DROP, tuple(names)),
        Remedy(f"bin {them}", Control.BIN),
        Remedy(f"keep {them} on purpose", Control.KEEP_IDENTIFIER, tuple(names)),
    )


def identifiers_named(columns: Sequence[ColumnRisk], records: int) -> str:
    """A clause saying that these columns are nearly unique."""
    named = listed([f"{c.name!r} ({c.distinct:,} values)" for c in columns])
    noun, verb = ("column", "is") if len(columns) == 1 else ("columns", "are")
    return f"public {noun} {named} {verb} nearly unique in {records:,} records"


def effect_sentence(columns: Sequence[ColumnRisk], now: AuditFigures) -> str:
    """The column whose removal helps most, with what it costs; or that none helps."""
    judged = [(c.name, c.without) for c in columns if c.without is not None]
    if not judged:
        return ""
    name, best = min(
        judged, key=lambda pair: (pair[1].unique, pair[1].violating_records, pair[1].below_k)
    )
    if best.unique >= now.unique:
        name, best = min(judged, key=lambda pair: (pair[1].violating_records, pair[1].unique))
        if best.violating_records >= now.violating_records:
            return (
                "Leaving out any one column would lower neither the number of unique records nor"
                " the number of records in groups at risk."
            )
    return f"Without {name}, {change_words(now, best)}."


def change_words(now: AuditFigures, then: AuditFigures) -> str:
    """What changes, in words: unique records, records at risk and the error of the rest."""

    def instead(then: int, now: int) -> str:
        return f"{then:,} (as now)" if then == now else f"{then:,} instead of {now:,}"

    text = (
        f"{instead(then.unique, now.unique)} records would be unique and"
        f" {instead(then.violating_records, now.violating_records)} in groups at risk"
    )
    if isinstance(then, WithoutColumn) and then.error is not None and then.error_now is not None:
        then_error, now_error = f"{then.error:.1%}", f"{then.error_now:.1%}"
        compared = ", as now" if then_error == now_error else f" instead of {now_error}"
        text += f"; questions that do not use it would be off by {then_error} on average{compared}"
    return text

"""A first look at a table, before its columns have roles."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from reconpriv.columns.kinds import DATES, NUMBERS
from reconpriv.columns.schema import Kind, looks_like_identifier
from reconpriv.errors import InputError
from reconpriv.messages.arguments import checked

_SAMPLE = 6  # records that are shown


@dataclass(frozen=True)
class ColumnSummary:
    """A column: its kind, its values, and whether it is nearly unique."""

    name: str
    kind: str
    distinct: int
    missing: int
    identifier: bool
    low: str | None
    high: str | None
    common: tuple[str, ...]

    @property
    def numeric(self) -> bool:
        """True if it holds numbers."""
        return Kind(self.kind) in NUMBERS

    @property
    def dated(self) -> bool:
        """True if it holds dates or times of a day."""
        return Kind(self.kind) in DATES

    @property
    def publishable(self) -> bool:
        """True if it holds plain values; nested and binary ones cannot be published."""
        return Kind(self.kind) is not Kind.OTHER


@dataclass(frozen=True)
class TableSummary:
    """How many records a table has, its columns, and some records. For the publisher alone."""

    records: int
    columns: tuple[ColumnSummary, ...]
    sample: tuple[tuple[str, ...], ...] = field(default=(), compare=False)


@checked
def describe(source: Any, *, sql: str | None = None, table: str | None = None) -> TableSummary:
    """Look at a table, given as for :func:`reconpriv.read`, in one pass."""
    from reconpriv.engines.local import LocalEngine  # noqa: PLC0415 - no engine until used

    engine = LocalEngine(source, sql=sql, table=table)
    try:
        records, found = engine.summaries()
        sample = engine.sample(_SAMPLE)
    finally:
        engine.close()
    if not records:
        raise InputError("The table is empty.", hint="There is nothing to audit or to publish.")
    return TableSummary(
        records,
        tuple(
            ColumnSummary(
                name=column.name,
                kind=column.kind.value,
                distinct=facts["distinct"],
                missing=records - facts["filled"],
                identifier=looks_like_identifier(facts["distinct"], records),
                low=_text(facts["low"]),
                high=_text(facts["high"]),
                common=tuple(str(value) for value in facts["common"] or ()),
            )
            for column, facts in found
        ),
        tuple(tuple("" if value is None else str(value) for value in row) for row in sample),
    )


def _text(value: Any) -> str | None:
    return None if value is None else str(value)

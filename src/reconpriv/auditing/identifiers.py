"""Nearly unique public columns: found before anything is written, and refused unless named."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from reconpriv.auditing.column_risk import ColumnRisk, identifier_remedies, identifiers_named
from reconpriv.auditing.obstacles import Obstacle
from reconpriv.columns.schema import Column, Schema, looks_like_identifier
from reconpriv.messages.remedies import Advice, Control, Remedy

if TYPE_CHECKING:
    from reconpriv.engines.base import Engine


def distinct_values(engine: Engine, schema: Schema, *, drop_missing: bool) -> dict[str, int]:
    """How many values each public column has."""
    return _count(engine, schema, schema.public, drop_missing=drop_missing)


def find_identifiers(engine: Engine, schema: Schema, *, drop_missing: bool) -> dict[str, int]:
    """The nearly unique public columns with their number of values.

    A rough count, which needs one pass and little memory, singles out those worth counting.
    """
    rough = _count(engine, schema, schema.public, drop_missing=drop_missing, rough=True)
    # The count may be off by a third, so allow for twice as many values.
    suspects = [
        c for c in schema.public if looks_like_identifier(2 * rough[c.name], schema.records)
    ]
    exact = _count(engine, schema, suspects, drop_missing=drop_missing)
    return {name: n for name, n in exact.items() if looks_like_identifier(n, schema.records)}


def _count(
    engine: Engine,
    schema: Schema,
    columns: Sequence[Column],
    *,
    drop_missing: bool,
    rough: bool = False,
) -> dict[str, int]:
    if not columns:
        return {}
    present = schema.sensitive if drop_missing else None
    found = engine.distinct(columns, present=present, rough=rough)
    return {column.name: count for column, count in zip(columns, found, strict=True)}


def identifier_obstacle(
    found: Mapping[str, int], kept: frozenset[str], records: int
) -> Obstacle | None:
    """The nearly unique columns that nobody asked to keep."""
    refused = [
        ColumnRisk(name, n, identifier=True) for name, n in found.items() if name not in kept
    ]
    if not refused:
        return None
    names = [column.name for column in refused]
    return Obstacle("identifiers", identifiers_named(refused, records), identifier_remedies(names))


def identifier_note(column: ColumnRisk, records: int) -> str:
    """The warning about one such column."""
    note = (
        f"Public column {column.name!r} is nearly unique ({column.distinct:,} values in"
        f" {records:,} records): is it an identifier? It would be published as it is, and splits"
        " the table into tiny groups."
    )
    if column.kept:
        return f"{note} It is kept on request."
    return Advice(note, Remedy("leave it out", Control.DROP, (column.name,)))

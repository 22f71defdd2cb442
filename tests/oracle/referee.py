"""DuckDB on the original records, and whether an answer is the one that it gives."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import Any

import duckdb
import pyarrow as pa

from oracle.selects import PADDED, RAW, Asked, Select
from oracle.tables import ROW, MadeTable

NEAR = 1e-6
Row = tuple[Any, ...]


class Referee:
    """The original records in DuckDB.

    ``raw`` holds them; ``padded`` also holds, for every record and every sensitive value, a row
    that counts in no figure: nobody can tell from a release which combinations are empty.
    """

    def __init__(self, table: MadeTable) -> None:
        self.base = duckdb.connect()
        self.base.execute("SET TimeZone = 'UTC'")
        self.base.execute("SET threads = 1")
        raw = table.raw()
        self.base.register("given", raw)
        self.base.execute(f"CREATE TABLE {RAW} AS SELECT * FROM given")
        own = [name for name in raw.column_names if name.split(" #")[0] == table.sensitive.name]
        names = ", ".join('"' + name.replace('"', '""') + '"' for name in own)
        replaced = ", ".join(f'd."{name}" AS "{name}"' for name in own)
        self.base.execute(
            f"CREATE TABLE {PADDED} AS SELECT * FROM {RAW} UNION ALL BY NAME"
            f' SELECT r.* REPLACE ({replaced}, NULL::BIGINT AS "{ROW}")'
            f" FROM {RAW} r CROSS JOIN (SELECT DISTINCT {names} FROM {RAW}) d"
        )

    def rows(self, sql: str) -> list[Row]:
        """The rows of a query."""
        found: pa.Table = self.base.sql(sql).to_arrow_table()
        return list(zip(*(column.to_pylist() for column in found.columns), strict=True))

    def one(self, sql: str) -> Any:
        """The only value of a query."""
        ((found,),) = self.rows(sql)
        return found

    def close(self) -> None:
        """Let go of the records."""
        self.base.close()


def same(ours: Any, theirs: Any) -> bool:
    """Whether two values are the same, numbers up to rounding."""
    if ours is None or theirs is None:
        return ours is None and theirs is None
    if isinstance(theirs, bool | str | dt.date | dt.time) or isinstance(ours, bool | str):
        return bool(ours == theirs) and type(ours) is type(theirs)
    one, other = float(ours), float(theirs)
    return math.isclose(one, other, rel_tol=NEAR, abs_tol=NEAR) or (
        math.isnan(one) and math.isnan(other)
    )


def same_label(ours: Any, theirs: Any) -> bool:
    """Whether two labels are the same, to the last digit."""
    if isinstance(ours, float) and isinstance(theirs, float) and math.isnan(theirs):
        return math.isnan(ours)
    numbers = (int, float, Decimal)
    plain = isinstance(ours, numbers) and isinstance(theirs, numbers)
    alike = type(ours) is type(theirs) or (
        plain and not isinstance(ours, bool) and not isinstance(theirs, bool)
    )
    return alike and bool(ours == theirs)


def same_rank(ours: Any, theirs: Any) -> bool:
    """Whether two quantiles are the same: each is one of the values, to the last digit."""
    if isinstance(ours, str) or ours is None or theirs is None:
        return bool(ours == theirs)
    whole = isinstance(ours, int) and isinstance(theirs, int)
    return bool(ours == theirs if whole else float(ours) == float(theirs))


class WrongAnswerError(Exception):
    """An answer that the referee does not give."""


def check_value(ours: Any, theirs: Any, where: str = "", *, ranked: bool = False) -> None:
    """Refuse another value than the referee's."""
    if not (same_rank if ranked else same)(ours, theirs):
        raise WrongAnswerError(f"{ours!r} for {theirs!r}{where}")


def check_rows(
    select: Select, found: list[tuple[Row, Row]], exact: list[list[bool]], referee: Referee
) -> None:
    """Compare the rows of an answer, (labels, values) each, with the referee's."""
    labels = len(select.by)
    width = labels + len(select.figures)
    every = referee.rows(select.theirs())
    unknown = any(
        value is None and select.estimated(figure)
        for row in (
            referee.rows(select.theirs(whole=True)) if select.padded or select.having else every
        )
        for value, figure in zip(row[labels:width], select.figures, strict=True)
    )
    first = select.offset or 0
    wanted = every[first : None if select.limit is None else first + select.limit]
    chosen = any(k.figure for k in select.order) or bool(select.having)
    free = unknown and chosen  # nobody knows whether there is anybody: any order may be right
    if not free and len(found) != len(wanted):
        raise WrongAnswerError(f"{len(found)} rows for {len(wanted)}")
    rows = {lookup(row[:labels]): row for row in every}
    whole = rows if not free else {
        lookup(row[:labels]): row for row in referee.rows(select.theirs(whole=True))
    }  # fmt: skip
    seen = set()
    for (labelled, values), marks in zip(found, exact, strict=True):
        key = lookup(labelled)
        row = whole.get(key)
        if row is None or key in seen:
            raise WrongAnswerError(f"a row {labelled!r}")
        seen.add(key)
        if not all(map(same_label, labelled, row[:labels])):
            raise WrongAnswerError(f"the labels {labelled!r} for {row[:labels]!r}")
        for value, theirs, figure, mark in zip(
            values, row[labels:width], select.figures, marks, strict=True
        ):
            _check_figure(value, theirs, figure, select.estimated(figure), mark, labelled)
    if select.order and not free:
        _check_order(select, [whole[lookup(labelled)] for labelled, _ in found], wanted, width)


def _check_figure(
    ours: Any, theirs: Any, figure: Asked, estimated: bool, exact: bool, labels: Row
) -> None:
    if theirs is None and estimated:
        if exact and ours not in (None, 0.0):  # 0 of nobody may be 0 of somebody
            raise WrongAnswerError(f"{ours!r}, exact, for nobody at {labels!r}")
        return
    steps = figure.steps
    wanted = theirs if steps is None or theirs is None else steps[theirs]
    check_value(ours, wanted, f" at {labels!r}", ranked=figure.ranked)


def _check_order(select: Select, found: list[Row], wanted: list[Row], width: int) -> None:
    """Rows with equal keys may change places; estimates that are equal may differ a little."""
    keys = len(select.order)
    for i, key in enumerate(select.order):
        if key.figure and select.estimated(select.figures[key.place]):
            keys = i + 1
            break
    for ours, theirs in zip(found, wanted, strict=True):
        pairs = zip(ours[width : width + keys], theirs[width : width + keys], strict=True)
        if not all(same(one, other) for one, other in pairs):
            raise WrongAnswerError(f"the row {ours!r} in the place of {theirs!r}")


def lookup(row: Row) -> Row:
    """Numbers of any type as one (labels are compared by type as well); a NaN equal to itself."""
    numbers = [isinstance(one, int | float | Decimal) for one in row]
    return tuple(
        ("number", "nan" if math.isnan(one) else one) if number else (type(one), one)
        for one, number in zip(row, numbers, strict=True)
    )

"""A cross-tabulation: counts, shares by row or column, totals, and flags on wide intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import pyarrow as pa

from reconpriv.answers.answerer import Answerer
from reconpriv.answers.figure import Answer, Figure
from reconpriv.answers.table_shares import estimated_totals, table_shares
from reconpriv.answers.tables import EstimateTable, Tabular, json_labels
from reconpriv.ask.selections import Selected, describe
from reconpriv.columns.given_values import given_values
from reconpriv.columns.schema import Value
from reconpriv.errors import InputError
from reconpriv.estimate.counts import Estimate, Settings
from reconpriv.estimate.model import HINT, WITHOUT_MODEL, with_remark
from reconpriv.estimate.shares import Labels, check_unbiased
from reconpriv.messages.numbers import label
from reconpriv.sources.column_names import free_name

ROW, COLUMN, ALL = "row", "column", "all"
CELL, ROW_TOTAL, COLUMN_TOTAL, TOTAL = "cell", "row total", "column total", "total"

CellKey = tuple[Value, ...] | None  # None stands for a total
_A_TOTAL = WITHOUT_MODEL.format(reason="it is a total")
_HINT = 'For example 100 (records) or "20%" (of the estimate).'
_SHARE_HINT = 'For example 0.1 or "10%", which are ten percentage points.'


@dataclass(frozen=True)
class Widest:
    """A limit for the width of an interval, from its low end to its high end.

    It is in records, relative to the estimate, or, for shares, a share itself (0.1 is ten
    percentage points).
    """

    limit: float
    relative: bool
    shares: bool

    @property
    def words(self) -> str:
        """The limit for reading."""
        if self.relative:
            return f"{100 * self.limit:g} % of the estimate"
        if self.shares:
            points = f"{100 * self.limit:g}"
            return f"{points} percentage {'point' if points == '1' else 'points'}"
        return f"{self.limit:,g} {'record' if self.limit == 1 else 'records'}"

    def exceeded(self, answer: Answer) -> bool:
        """True if an interval is wider; one that is not there is as wide as can be."""
        if answer.exact:
            return False
        if answer.low is None or answer.high is None:
            return True
        size = abs(answer.number or 0.0) if self.relative else 1.0
        return float(answer.high) - float(answer.low) > self.limit * size

    def as_dict(self) -> dict[str, Any]:
        """The limit and its unit, for JSON."""
        unit = "estimate" if self.relative else "share" if self.shares else "records"
        return {"limit": self.limit, "of": unit}


def asked_widest(said: float | str, *, shares: bool) -> Widest:
    """A number (of records, or a share), or a text such as "10%".

    Of counts, a percentage is relative to the estimate; of shares, it is percentage points.
    """
    text = str(said).strip()
    percent = text.endswith("%")
    try:
        number = float(text.removesuffix("%"))
    except ValueError:
        number = math.nan
    if isinstance(said, bool) or not math.isfinite(number) or number <= 0:
        hint = _SHARE_HINT if shares else _HINT
        raise InputError(f"The widest interval is a number above 0; got {said!r}.", hint=hint)
    if percent:
        number /= 100
    if shares and number > 1:
        raise InputError(
            f"The widest interval of a share is at most 1, or 100%; got {said!r}.", hint=_SHARE_HINT
        )
    if not shares and not percent and number < 1:
        raise InputError(
            f"The widest interval of a count is at least one record; got {said!r}.",
            hint=f'Write "{100 * number:g}%" for a width relative to the estimate.',
        )
    return Widest(number, percent and not shares, shares)


@dataclass(frozen=True)
class CrosstabLayout:
    """Which attributes are the rows of a table, and which one its columns: the last of several."""

    by: tuple[str, ...]

    @property
    def rows(self) -> tuple[str, ...]:
        """The attributes down the side."""
        return self.by[:-1] if len(self.by) > 1 else self.by

    @property
    def columns(self) -> tuple[str, ...]:
        """The attribute across the top, if there is one."""
        return self.by[-1:] if len(self.by) > 1 else ()

    def among(self, shares: str) -> tuple[str, ...]:
        """The attributes whose values the denominator of a share has in common."""
        if shares not in (ROW, COLUMN, ALL):
            raise InputError(f"Shares are by {ROW!r}, {COLUMN!r} or {ALL!r}; got {shares!r}.")
        if shares == ROW and not self.columns:
            raise InputError(
                "Shares by row need a second column; each would be 100 %.",
                hint="Name another column, or ask for shares by column.",
            )
        return self.rows if shares == ROW else self.columns if shares == COLUMN else ()

    def parts(self, *, totals: bool) -> dict[str, tuple[str, ...]]:
        """The parts of a table with the attributes that each is counted by."""
        found = {CELL: self.by}
        if totals and self.columns:
            found |= {ROW_TOTAL: self.rows, COLUMN_TOTAL: self.columns}
        return found | ({TOTAL: ()} if totals else {})


@dataclass(frozen=True)
class CrosstabCell:
    """A cell or a total: its count, its share if asked for, and whether its interval is wide."""

    part: str
    labels: dict[str, Value]
    count: Estimate
    share: Figure | None
    wide: bool

    @property
    def shown(self) -> Answer:
        """The share if there is one, otherwise the count."""
        return self.count if self.share is None else self.share


@dataclass(frozen=True, repr=False)
class TwoWay(Tabular):
    """A cross-tabulation as people lay it out: rows down the side, columns across the top."""

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    cells: tuple[CrosstabCell, ...]
    shares: bool
    limit: tuple[str, ...] = ()

    @cached_property
    def grid(self) -> dict[tuple[CellKey, CellKey], CrosstabCell]:
        """Cells by the values of their row and of their column; a total has None."""
        return {(self._row(one), self._column(one)): one for one in self.cells}

    def _row(self, cell: CrosstabCell) -> CellKey:
        if cell.part in (COLUMN_TOTAL, TOTAL):
            return None
        return tuple(cell.labels[name] for name in self.rows)

    def _column(self, cell: CrosstabCell) -> CellKey:
        if self.columns and cell.part in (ROW_TOTAL, TOTAL):
            return None
        return tuple(cell.labels[name] for name in self.columns)

    @cached_property
    def row_keys(self) -> list[CellKey]:
        """The rows in their order, the total last."""
        return _total_last(dict.fromkeys(map(self._row, self._in_order(self.rows))))

    @cached_property
    def column_keys(self) -> list[CellKey]:
        """The columns in their order, the total last."""
        return _total_last(dict.fromkeys(map(self._column, self._in_order(self.columns))))

    def _in_order(self, names: Sequence[str]) -> list[CrosstabCell]:
        """Totals first, if there are any: they list every value in its order."""
        part = ROW_TOTAL if names == self.rows else COLUMN_TOTAL
        return [*(c for c in self.cells if c.part == part), *self.cells]

    def column_names(self) -> list[str]:
        """The headings of the columns; of a single one, what it holds."""
        if not self.columns:
            return ["share" if self.shares else "count"]
        return [TOTAL if key is None else label(key[0]) for key in self.column_keys]

    def to_arrow(self) -> pa.Table:
        """The figures without their intervals: row labels as text, then a column for each value."""
        names: list[str] = []
        arrays: list[Any] = []
        for i, name in enumerate(self.rows):
            shown = [TOTAL if key is None else label(key[i]) for key in self.row_keys]
            names.append(name)
            arrays.append(pa.array(shown, pa.string()))
        for key, name in zip(self.column_keys, self.column_names(), strict=True):
            found = [self.grid.get((row, key)) for row in self.row_keys]
            values = [None if cell is None else cell.shown.number for cell in found]
            names.append(free_name(name, names))
            arrays.append(pa.array(values, pa.float64()))
        return pa.Table.from_arrays(arrays, names=names)


def _total_last(keys: dict[CellKey, None]) -> list[CellKey]:
    return sorted(keys, key=lambda key: key is None)


@dataclass(frozen=True, repr=False)
class Crosstab(EstimateTable):
    """Counts by combinations of attributes, and what was asked for besides.

    ``rows`` are the counts. ``cells`` are the same with their shares and flags, followed by the
    totals, if asked for; a total has no label for the columns that it is over.
    """

    cells: tuple[CrosstabCell, ...] = ()
    condition: str = ""
    shares: str | None = None
    widest: Widest | None = None

    @property
    def plain(self) -> bool:
        """True if it is a table of counts and nothing else."""
        return self.shares is None and self.widest is None and len(self.cells) == len(self.rows)

    @property
    def totals(self) -> tuple[CrosstabCell, ...]:
        """The totals by row, by column and of everything."""
        return tuple(cell for cell in self.cells if cell.part != CELL)

    def total(self, **labels: Any) -> Answer:
        """A total: by the labels of its row or its column, or of everything."""
        wanted = {name: given_values(value) for name, value in labels.items()}
        for cell in self.totals:
            if cell.labels == wanted:
                return cell.shown
        raise InputError(f"The table has no total of {describe(None, wanted)}.")

    def two_way(self) -> TwoWay:
        """The same laid out in rows and columns."""
        if not self.cells:
            raise InputError(
                "No record is in this selection, so there are no rows and columns to lay out.",
                hint="Look at the condition.",
            )
        layout = CrosstabLayout(self.by)
        notes = () if self.widest is None else (self.widest.words,)
        return TwoWay(layout.rows, layout.columns, self.cells, self.shares is not None, notes)

    def as_dict(self) -> dict[str, Any]:
        """The table, its totals and what was asked for besides, for JSON."""
        found = super().as_dict()
        if self.plain:
            return found
        shown = [self._cell(cell) for cell in self.cells]
        found["rows"] = shown[: len(self.rows)]
        if self.totals:
            found["totals"] = shown[len(self.rows) :]
        if self.shares is not None:
            found["shares"] = self.shares
        if self.widest is not None:
            found["widest"] = self.widest.as_dict()
        return found

    def _cell(self, cell: CrosstabCell) -> dict[str, Any]:
        found: dict[str, Any] = {"labels": json_labels(cell.labels), **cell.count.as_dict()}
        if cell.part != CELL:
            found = {"part": cell.part, **found}
        if cell.share is not None:
            found["share"] = cell.share.as_dict()
        if self.widest is not None:
            found["wide"] = cell.wide
        return found

    def to_arrow(self) -> pa.Table:
        """A row for every cell and total: labels, count, share if asked for, and the flag.

        ``part`` tells cells from totals; a total has no label in the columns that it is over.
        """
        rows = tuple((dict.fromkeys(self.by) | cell.labels, cell.count) for cell in self.cells)
        table = EstimateTable(self.by, rows).to_arrow()
        added: dict[str, pa.Array] = {}
        if self.totals:
            added["part"] = pa.array([cell.part for cell in self.cells])
        if self.shares is not None:
            shares = [cell.share for cell in self.cells]
            for heading, name in _SHARE_COLUMNS.items():
                values = [None if one is None else getattr(one, name) for one in shares]
                added[heading] = pa.array(values, pa.bool_() if name == "exact" else pa.float64())
        if self.widest is not None:
            added["wide"] = pa.array([cell.wide for cell in self.cells], pa.bool_())
        for name, values in added.items():
            table = table.append_column(free_name(name, table.column_names), values)
        return table


_SHARE_COLUMNS = {
    "share": "value", "share_low": "low", "share_high": "high",
    "share_standard_error": "standard_error", "share_exact": "exact",
}  # fmt: skip


def cross_tabulate(
    answerer: Answerer,
    selected: Selected,
    by: Sequence[str],
    settings: Settings,
    *,
    shares: str | None = None,
    totals: bool = False,
    widest: float | str | None = None,
) -> Crosstab:
    """Every combination that occurs, with what was asked for besides.

    If all intervals are to hold together (Bonferroni), totals count as well, and so do shares
    whose limits are not those of counts.
    """
    layout = CrosstabLayout(tuple(by))
    among = None if shares is None else layout.among(shares)
    if among is not None and settings.how.model:
        check_unbiased(settings, "A share")
    limit = None if widest is None else asked_widest(widest, shares=shares is not None)
    if limit is not None and settings.how.model:
        raise InputError("Counts that lean on a model have no intervals to be wide.", hint=HINT)
    parts = layout.parts(totals=totals)
    found = _counts(answerer, selected, parts, replace(settings, simultaneous=False))
    if settings.simultaneous:
        twice = among is not None and estimated_totals(answerer, selected, among)
        settings = settings.together(len(found) * (2 if twice else 1))
        found = _counts(answerer, selected, parts, settings)
    counted = [(labels, one) for _, labels, one in found]
    shown: list[Figure | None] = [None] * len(found)
    if among is not None:
        shown = [*table_shares(answerer, selected, counted, among, settings)]
    cells = tuple(
        CrosstabCell(part, labels, count, share, bool(limit and limit.exceeded(share or count)))
        for (part, labels, count), share in zip(found, shown, strict=True)
    )
    rows = tuple((cell.labels, cell.count) for cell in cells if cell.part == CELL)
    return Crosstab(
        tuple(by), rows, cells=cells, condition=selected.text, shares=shares, widest=limit
    )


def _counts(
    answerer: Answerer, selected: Selected, parts: dict[str, tuple[str, ...]], settings: Settings
) -> list[tuple[str, Labels, Estimate]]:
    found = []
    for part, names in parts.items():
        model = settings.how.model and part != CELL
        how = replace(settings, estimator="mle") if model else settings
        rows = answerer.table(selected, list(names), how)
        found += [(part, labels, _total(one) if model else one) for labels, one in rows]
    return found


def _total(one: Estimate) -> Estimate:
    """A total beside counts that lean on a model, which is the unbiased one."""
    return one if one.exact else with_remark(one, _A_TOTAL)

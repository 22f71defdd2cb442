"""A cross-tabulation as text and as HTML: a list of counts, or rows and columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import RenderableType
from rich.text import Text

from reconpriv.messages.numbers import label
from reconpriv.show.estimates import estimate_table_html, estimate_table_view, remarks
from reconpriv.show.figures import figure_cells
from reconpriv.show.notebook import box, html_table
from reconpriv.show.rows import FittingTable

if TYPE_CHECKING:
    from reconpriv.queries.crosstab import Crosstab
    from reconpriv.queries.two_way import CrosstabCell, TwoWay

FLAG = "*"
_ABSENT = "-"


def crosstab_view(found: Crosstab) -> RenderableType:
    """Counts alone, or nothing, as a list; with shares, totals or a limit, rows and columns."""
    listed = found.plain or not found.cells
    return estimate_table_view(found) if listed else two_way_view(found.two_way())


def crosstab_html(found: Crosstab) -> str:
    """The same for a notebook."""
    listed = found.plain or not found.cells
    return estimate_table_html(found) if listed else two_way_html(found.two_way())


def two_way_view(found: TwoWay) -> FittingTable:
    """Each figure with its interval below it."""
    table = FittingTable(caption=_notes(found) or None)
    for name in found.rows:
        table.add_column(Text(name))
    for name in found.column_names():
        table.add_column(Text(name), justify="right")
    for row in found.row_keys:
        names = ["total", *[""] * (len(found.rows) - 1)] if row is None else map(label, row)
        cells = [_cell(found.grid.get((row, key))) for key in found.column_keys]
        table.add_row(*(Text(name) for name in names), *(Text(cell) for cell in cells))
    return table


def two_way_html(found: TwoWay) -> str:
    """The same for a notebook."""
    return box(html_table(two_way_view(found)))


def _cell(cell: CrosstabCell | None) -> str:
    if cell is None:
        return _ABSENT
    value, interval = figure_cells(cell.shown)
    return f"{value}{' ' + FLAG if cell.wide else ''}\n{interval}"


def _notes(found: TwoWay) -> str:
    """What the flag means, what is not there, and the remarks."""
    lines = []
    if found.limit:
        wide = sum(cell.wide for cell in found.cells)
        lines.append(
            f"{FLAG} the interval is wider than {found.limit[0]}"
            f" ({wide:,} of {len(found.cells):,})."
        )
    if len(found.grid) < len(found.row_keys) * len(found.column_keys):
        lines.append(f"{_ABSENT} no record.")
    said = remarks([cell.shown for cell in found.cells])
    return "\n".join([*lines, *([said] if said else [])])

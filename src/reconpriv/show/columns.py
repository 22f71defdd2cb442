"""A single column, as text and as HTML: reconstructed frequencies, and a matrix."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.table import Table as RichTable
from rich.text import Text

from reconpriv.messages.numbers import label, percent
from reconpriv.show.notebook import box, html_table, whisker
from reconpriv.show.rows import FittingTable
from reconpriv.show.text import pairs_table

if TYPE_CHECKING:
    from reconpriv.core.pram import PramMatrix
    from reconpriv.randomised_response import Frequencies

_SHOWN = 12  # values of a matrix


def frequencies_view(found: Frequencies) -> RenderableType:
    """A row per value, then what the perturbation costs and promises."""
    return Group(_frequency_table(found), Text(""), _facts(found))


def frequencies_html(found: Frequencies) -> str:
    """The same, with each interval on a line from 0 to the largest."""
    top = max(float(found.high.max()), 1e-9)
    ends = zip(found.low.tolist(), found.frequencies.tolist(), found.high.tolist(), strict=True)
    pictures = [whisker(low, value, high, top) for low, value, high in ends]
    return box(html_table(_frequency_table(found), pictures), html_table(_facts(found)))


def matrix_view(matrix: PramMatrix) -> RenderableType:
    """The probabilities, unless they are too many, and what they cost and promise."""
    tables: list[RenderableType] = [_facts(matrix)]
    if len(matrix.values) <= _SHOWN:
        tables = [_matrix_table(matrix), Text(""), *tables]
    return Group(*tables)


def matrix_html(matrix: PramMatrix) -> str:
    """The same for a notebook."""
    small = len(matrix.values) <= _SHOWN
    return box(html_table(_matrix_table(matrix)) if small else None, html_table(_facts(matrix)))


def _frequency_table(found: Frequencies) -> RichTable:
    table = FittingTable()
    table.add_column("value")
    for heading in (
        "published",
        "frequency",
        "standard error",
        f"{100 * found.confidence:g} % interval",
    ):
        table.add_column(heading, justify="right")
    for row, published in zip(found.as_rows(), found.published.tolist(), strict=True):
        table.add_row(
            Text(label(row["value"])),
            f"{published:.4f}",
            f"{row['frequency']:.4f}",
            f"{row['standard_error']:.4f}",
            f"{row['low']:.4f} to {row['high']:.4f}",
        )
    return table


def _matrix_table(matrix: PramMatrix) -> RichTable:
    table = FittingTable()
    table.add_column("published as")
    for value in matrix.values:
        table.add_column(Text(label(value)), justify="right")
    for value, row in zip(matrix.values, matrix.probabilities.tolist(), strict=True):
        table.add_row(Text(label(value)), *(percent(share) for share in row))
    return table


def _facts(said: Frequencies | PramMatrix) -> RichTable:
    level = said.local_privacy_level
    promise = f"ε = {level:.3g} of local differential privacy for one value"
    facts = [
        ("values", f"{len(said.values):,}"),
        ("condition number", f"{said.condition_number:,.3g}"),
        ("privacy", "no local privacy level" if math.isinf(level) else promise),
    ]
    records = getattr(said, "records", None)
    if records is not None:
        facts[0] = ("records", f"{records:,}")
    table = pairs_table(facts)
    for remark in said.remarks:
        table.add_row("note", Text(f"{remark}."))
    return table

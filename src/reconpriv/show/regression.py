"""A regression as text and as HTML, in the order of columns that statsmodels prints."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.table import Table as RichTable
from rich.text import Text

from reconpriv.show.notebook import headed_tables
from reconpriv.show.rows import FittingTable
from reconpriv.show.text import pairs_table

if TYPE_CHECKING:
    from reconpriv.learning.regression import Coefficient, Regression


def regression_view(found: Regression) -> RenderableType:
    """What was fitted, what it rests on, and its coefficients."""
    return Group(Text(f"{found.title}\n", style="bold"), *_tables(found))


def regression_html(found: Regression) -> str:
    """The same for a notebook."""
    return headed_tables(found.title, "inherit", _tables(found))


def _tables(found: Regression) -> list[RichTable]:
    compared = ", ".join(f"{name} = {_shown(value)}" for name, value in found.reference.items())
    facts = [
        ("condition", found.condition),
        ("records", f"{found.records:,} in {found.groups:,} groups, {found.trials:,.0f} trials"),
    ]
    if found.margins:
        facts.append(("fitted to", "records and margins"))
    if compared:
        facts.append(("reference", compared))
    tables = [pairs_table(facts)]
    blocks: dict[object, list[Coefficient]] = {}
    for one in found.coefficients:
        blocks.setdefault(one.outcome, []).append(one)
    for number, (outcome, rows) in enumerate(blocks.items(), 1):
        title = f"\n{found.outcome} = {_shown(outcome)}" if found.kind == "multinomial" else "\n"
        notes = "\n".join(f"note: {remark}." for remark in found.remarks)
        last = notes if number == len(blocks) else None
        tables.append(_coefficients(rows, title, last, found.confidence))
    return tables


def _coefficients(
    rows: list[Coefficient], title: str, notes: str | None, confidence: float
) -> RichTable:
    table = FittingTable(title=title, caption=notes)
    table.add_column("")
    tail = (1.0 - confidence) / 2.0
    headings = ("coef", "std err", "z", "P>|z|", f"[{tail:.4g}", f"{1.0 - tail:.4g}]")
    for heading in headings:
        table.add_column(Text(heading), justify="right")
    for one in rows:
        tested = ["", ""]
        if one.statistic is not None and one.p_value is not None:
            tested = [f"{one.statistic:.3f}", f"{one.p_value:.3f}"]
        table.add_row(
            Text(one.term), f"{one.estimate:.4f}", f"{one.standard_error:.4f}", *tested,
            f"{one.low:.4f}", f"{one.high:.4f}",
        )  # fmt: skip
    return table


def _shown(value: object) -> str:
    return "(missing)" if value is None else str(value)

"""Shares, averages, quantiles and comparisons, on a terminal and in a notebook."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.table import Table as RichTable
from rich.text import Text

from reconpriv.messages.numbers import label
from reconpriv.show.markup import tag
from reconpriv.show.notebook import box, headed_tables, html_table
from reconpriv.show.rows import FittingTable

if TYPE_CHECKING:
    from reconpriv.queries.compare import Comparison
    from reconpriv.queries.estimate import Estimate
    from reconpriv.queries.figure import Figure
    from reconpriv.queries.figure_table import FigureTable


def figure_html(figure: Figure) -> str:
    """The number in large, its interval and the remarks."""
    large = tag("span", figure.shown(figure.value), style="font-size:1.6em;font-weight:600")
    parts = [tag("div", large, " ", tag("span", figure.query))]
    if figure.exact:
        parts.append(tag("div", "exact: it asks about public attributes alone"))
    else:
        level = f"{100 * figure.confidence:g}%"
        parts += [
            tag("div", f"{level} interval for the {figure.kind} in the original table: ",
                tag("b", figure.interval)),
            tag("div", f"from {figure.groups:,} groups and {figure.trials:,.0f} independent"
                f" trials{f'; {figure.margins_words}' if figure.margins_words else ''}"),
        ]  # fmt: skip
    notes = [tag("div", tag("small", f"note: {remark}.")) for remark in figure.remarks]
    return box(parts, notes)


def figure_cells(one: Estimate | Figure) -> tuple[str, str]:
    """A count or another figure, and its interval."""
    from reconpriv.queries.figure import Figure  # noqa: PLC0415 - loaded by now
    from reconpriv.show.estimates import estimate_cells  # noqa: PLC0415

    if isinstance(one, Figure):
        return one.shown(one.value), one.interval
    value, interval, *_ = estimate_cells(one, ())
    return value, interval


def comparison_view(found: Comparison) -> RenderableType:
    """The verdict, then both sides, their difference and their ratio."""
    return Group(Text(f"{found.verdict}\n", style="bold"), _comparison_table(found))


def comparison_html(found: Comparison) -> str:
    """The comparison for a notebook."""
    return headed_tables(found.verdict, "inherit", [_comparison_table(found)])


def _comparison_table(found: Comparison) -> RichTable:
    from reconpriv.queries.estimate import margins_words  # noqa: PLC0415 - loaded by now

    table = FittingTable(caption="\n".join(f"note: {one}." for one in found.remarks) or None)
    table.add_column("")
    table.add_column(found.of, justify="right")
    table.add_column("interval", justify="right")
    sides = (("a", found.a), ("b", found.b))
    margins = any(one.from_margins > 0 for _, one in sides)
    if margins:
        table.add_column("from margins", justify="right")
    for name, one in sides:
        told = (margins_words(one.from_margins),) if margins else ()
        table.add_row(Text(f"{name}: {one.query}"), *figure_cells(one), *told)
    table.add_row("a - b", *difference_cells(found))
    if found.ratio is not None:
        table.add_row("a / b", *ratio_cells(found))
    return table


def difference_cells(found: Comparison) -> tuple[str, str]:
    """The difference of a comparison, and its interval."""
    value, low, high = (
        _shown(found, number)
        for number in (found.difference, found.difference_low, found.difference_high)
    )
    return value, "exact" if found.exact else f"{low} to {high}"


def ratio_cells(found: Comparison) -> tuple[str, str]:
    """The ratio of a comparison that has one, and its interval."""
    high = "no limit" if found.ratio_high is None else f"{found.ratio_high:,.3f}"
    return f"{found.ratio:,.3f}", "exact" if found.exact else f"{found.ratio_low:,.3f} to {high}"


def _shown(found: Comparison, number: float) -> str:
    if found.of == "share":
        return f"{100 * number:+z,.2f} points"
    return f"{number:+z,.0f}" if found.exact else f"{number:+z,.1f}"


def figure_table_view(rows: FigureTable) -> RichTable:
    """One row per combination; every figure with its interval."""
    from reconpriv.show.estimates import remarks  # noqa: PLC0415

    every = [one for _, answers in rows for one in answers]
    table = FittingTable(caption=remarks(every))
    for name in rows.by:
        table.add_column(Text(name))
    for name in rows.names:
        table.add_column(Text(name), justify="right")
        table.add_column("interval", justify="right")
    for labels, answers in rows:
        shown = [Text(label(value)) for value in labels.values()]
        table.add_row(*shown, *(cell for one in answers for cell in figure_cells(one)))
    return table


def figure_table_html(rows: FigureTable) -> str:
    """The table for a notebook."""
    return box(html_table(figure_table_view(rows)))


def answer_view(answer: object) -> RenderableType:
    """Whatever a query answers, for a terminal."""
    from reconpriv.queries.estimate import Estimate  # noqa: PLC0415 - loaded by now
    from reconpriv.queries.figure import Figure  # noqa: PLC0415
    from reconpriv.queries.figure_table import FigureTable  # noqa: PLC0415
    from reconpriv.queries.table import EstimateTable  # noqa: PLC0415
    from reconpriv.show.estimates import estimate_table_view, estimates_view  # noqa: PLC0415

    if isinstance(answer, Estimate):
        return estimates_view([answer])
    if isinstance(answer, EstimateTable):
        return estimate_table_view(answer)
    if isinstance(answer, Figure):
        return figure_table_view(FigureTable((), (answer.name,), (({}, (answer,)),)))
    assert isinstance(answer, FigureTable)
    return figure_table_view(answer)

"""Estimates with their intervals and remarks, on a terminal and in a notebook."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.table import Table as RichTable
from rich.text import Text

from reconpriv.messages.numbers import label
from reconpriv.show import markup
from reconpriv.show.markup import Html, tag
from reconpriv.show.notebook import LEFT, RIGHT, box, whisker

if TYPE_CHECKING:
    from reconpriv.queries.estimate import Estimate
    from reconpriv.queries.figure import Figure
    from reconpriv.queries.table import EstimateTable

_FROM_MARGINS = "from margins"
_ERROR = "root mean squared error"


def estimate_headings(estimates: list[Estimate], name: str = "count") -> tuple[str, ...]:
    """What is shown of estimates; margins and a model's error, if any of them rests on some."""
    margins = (_FROM_MARGINS,) if any(one.from_margins > 0 for one in estimates) else ()
    error = (_ERROR,) if any(one.leans for one in estimates) else ()
    return name, "interval", "groups", "trials", *margins, *error


def estimate_cells(estimate: Estimate, headings: tuple[str, ...]) -> tuple[str, ...]:
    """Count, interval, groups and trials of an estimate, and what else is headed."""
    from reconpriv.queries.estimate import (  # noqa: PLC0415 - needs numpy, loaded by now
        WHOLE_BINS,
        margins_words,
    )

    interval = f"{estimate.low:z,.1f} to {estimate.high:z,.1f}"
    count = f"{estimate.count:z,.1f}"
    own = f"{estimate.standard_error:,.1f}" if estimate.leans else "-"
    if estimate.leans:
        interval = "-" if _ERROR in headings else f"{_ERROR} {own}"
    if estimate.exact or estimate.estimator == WHOLE_BINS:
        interval = "exact" if estimate.exact else WHOLE_BINS
        count = f"{estimate.count:z,.0f}"
    margins = (margins_words(estimate.from_margins),) if _FROM_MARGINS in headings else ()
    error = (own,) if _ERROR in headings else ()
    return count, interval, f"{estimate.groups:,}", f"{estimate.trials:,.0f}", *margins, *error


def remarks(estimates: Sequence[Estimate | Figure]) -> str | None:
    """Each remark once; if it concerns only some estimates, with their number."""
    found: dict[str, int] = {}
    for estimate in estimates:
        for remark in estimate.remarks:
            found[remark] = found.get(remark, 0) + 1
    lines = []
    for remark, times in found.items():
        share = "" if times == len(estimates) else f" ({times} of {len(estimates)} estimates)"
        lines.append(f"note: {remark}{share}.")
    return "\n".join(lines) or None


def estimates_view(estimates: list[Estimate]) -> RichTable:
    """Estimates with their queries."""
    table = RichTable(
        box=None, padding=(0, 2, 0, 0), caption=remarks(estimates), caption_justify="left"
    )
    table.add_column("query", overflow="fold")
    headings = estimate_headings(estimates, estimates[0].name if len(estimates) == 1 else "count")
    for heading in headings:
        table.add_column(Text(heading), justify="right")
    for estimate in estimates:
        table.add_row(Text(estimate.query), *estimate_cells(estimate, headings))
    return table


def estimate_table_view(rows: EstimateTable) -> RichTable:
    """A cross table, one row per combination."""
    estimates = [estimate for _, estimate in rows]
    table = RichTable(
        box=None, padding=(0, 2, 0, 0), caption=remarks(estimates), caption_justify="left"
    )
    for name in rows.by:
        table.add_column(Text(name))
    headings = estimate_headings(estimates, rows.name)
    for heading in headings:
        table.add_column(Text(heading), justify="right")
    for labels, estimate in rows:
        shown = (Text("(missing)" if value is None else str(value)) for value in labels.values())
        table.add_row(*shown, *estimate_cells(estimate, headings))
    return table


def estimate_html(estimate: Estimate) -> str:
    """The number, its interval on a line from 0 to the records it is among, and the remarks."""
    headings = estimate_headings([estimate])
    count, interval, groups, trials, *_ = cells = estimate_cells(estimate, headings)
    further = dict(zip(headings[4:], cells[4:], strict=True))
    large = tag("span", count, style="font-size:1.6em;font-weight:600")
    parts = [tag("div", large, " ", tag("span", estimate.query))]
    if estimate.exact:
        parts.append(tag("div", "exact: it asks about public attributes alone"))
    elif interval == "whole bins":
        parts.append(tag("div", "counted for whole bins, not for what was asked"))
    else:
        level = f"{100 * estimate.confidence:g}%"
        words = [f"{level} interval for the count in the original table: ", tag("b", interval), " "]
        parts += [
            tag("div", *([] if estimate.leans else words), _whisker(estimate, estimate.records)),
            tag("div", f"among {estimate.records:,} records, from {groups} groups and {trials}"
                " independent trials", *_further_words(further)),
        ]  # fmt: skip
    return box(parts, _notes([estimate]))


def _whisker(estimate: Estimate, top: float) -> Html:
    """The interval on a line; of a count that leans on a model, its root mean squared error."""
    low, high = estimate.low, estimate.high
    if estimate.leans:
        low, high = (estimate.count + sign * estimate.standard_error for sign in (-1, 1))
    return whisker(max(low, 0.0), estimate.count, high, max(top, 1.0))


def _further_words(further: dict[str, str]) -> list[str]:
    """What an estimate has besides: its share from margins, and a model's error."""
    margins = [f"; {further[_FROM_MARGINS]} from margins"] if _FROM_MARGINS in further else []
    error = [f"; {_ERROR} {further[_ERROR]}"] if _ERROR in further else []
    return margins + error


def estimate_table_html(rows: EstimateTable) -> str:
    """A cross table, each row with its interval on a common scale."""
    estimates = [estimate for _, estimate in rows]
    top = max([1.0, *(one.count if one.leans else one.high for one in estimates)])
    headings = estimate_headings(estimates, rows.name)
    body = []
    for labels, estimate in rows:
        count, interval, *rest = estimate_cells(estimate, headings)
        picture = _whisker(estimate, top)
        body.append([*map(label, labels.values()), count, interval, picture, *rest])
    head = (*rows.by, *headings[:2], "", *headings[2:])
    columns = [*([LEFT] * len(rows.by)), RIGHT, RIGHT, LEFT, *([RIGHT] * len(headings[2:]))]
    return box(markup.table(head, body, columns), _notes(estimates))


def _notes(estimates: list[Estimate]) -> list[Html]:
    text = remarks(estimates)
    found = [] if text is None else text.splitlines()
    return [tag("div", tag("small", line)) for line in found]

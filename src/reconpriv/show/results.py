"""How each kind of result is shown: the functions that make its text and HTML."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from rich.console import RenderableType

from reconpriv.show import (
    attacks,
    audit,
    columns,
    crosstab,
    estimates,
    figures,
    learning,
    proposals,
    regression,
    release,
    text,
    tuning,
)

if TYPE_CHECKING:
    from reconpriv.show.chart import Chart


class _Views(NamedTuple):
    """What a terminal prints and what a notebook shows."""

    terminal: Callable[[Any], RenderableType]
    notebook: Callable[[Any], str]


# By class name: importing all results would take longer than showing one.
_VIEWS = {
    "AttackResult": _Views(attacks.attack_view, attacks.attack_html),
    "AuditReport": _Views(audit.audit_view, audit.audit_html),
    "Estimate": _Views(str, estimates.estimate_html),
    "EstimateTable": _Views(estimates.estimate_table_view, estimates.estimate_table_html),
    "Crosstab": _Views(crosstab.crosstab_view, crosstab.crosstab_html),
    "TwoWay": _Views(crosstab.two_way_view, crosstab.two_way_html),
    "Frequencies": _Views(columns.frequencies_view, columns.frequencies_html),
    "Comparison": _Views(figures.comparison_view, figures.comparison_html),
    "FigureTable": _Views(figures.figure_table_view, figures.figure_table_html),
    "Figure": _Views(str, figures.figure_html),
    "IndependenceTest": _Views(learning.independence_view, learning.independence_html),
    "PramMatrix": _Views(columns.matrix_view, columns.matrix_html),
    "Proposals": _Views(proposals.proposals_view, proposals.proposals_html),
    "Regression": _Views(regression.regression_view, regression.regression_html),
    "Release": _Views(release.release_view, release.release_html),
    "TuneReport": _Views(tuning.tune_view, tuning.tune_html),
}


def text_of(result: object) -> str:
    """A result as plain text."""
    return text.as_text(_VIEWS[type(result).__name__].terminal(result))


def html_of(result: object) -> str:
    """A result as HTML."""
    return _VIEWS[type(result).__name__].notebook(result)


def chart_of(result: object, *, most: int, order: str) -> Chart:
    """A result as a chart."""
    from reconpriv.show.chart import Chart  # noqa: PLC0415 - text needs none of it

    return Chart.of(result, most=most, order=order)

"""The options that draw an answer, for the commands that answer with estimates."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from reconpriv.cli.options.declared import option
from reconpriv.cli.process.output import give
from reconpriv.cli.process.streams import echo
from reconpriv.errors import PolicyError
from reconpriv.messages.redaction import shown_path

if TYPE_CHECKING:
    from reconpriv.messages.readable import Plottable

CHART: Any = option(
    "--chart FILE",
    "Also draw the answer with its intervals: .html, .svg, .png or .json (Vega-Lite).",
)
OVERWRITE_CHART: Any = option("--overwrite", "Replace the chart.", False)


def check_chart_option(chart: Path | None, *, overwrite: bool) -> None:
    """Refuse a chart that cannot be written, before any work is done."""
    if chart is not None:
        from reconpriv.show.charts.chart import check_chart

        check_chart(chart, overwrite=overwrite)
    elif overwrite:
        raise PolicyError("--overwrite needs --chart.")


def give_answer(answer: Any, chart: Path | None, *, overwrite: bool, json: bool) -> None:
    """Draw an answer if asked to, then print it; a chart that fails leaves nothing behind."""
    if chart is not None:
        drawn: Plottable = answer
        drawn.plot().save(chart, overwrite=overwrite)
    # A crosstab as a list would not show that it has columns.
    shown = answer.two_way() if hasattr(answer, "two_way") and not json else answer
    give(shown, json=json, **({} if chart is None else {"chart": str(chart)}))
    if chart is not None and not json:
        echo(f"Chart written to {shown_path(chart)}.")

"""The option that draws an answer, for the commands that answer with estimates."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from reconpriv.cli.output import show, show_json
from reconpriv.cli.streams import echo
from reconpriv.errors import PolicyError
from reconpriv.messages.redaction import shown_path

if TYPE_CHECKING:
    from collections.abc import Callable

    from reconpriv.messages.readable import Plottable

ChartFile = Annotated[
    Path | None,
    typer.Option(
        "--chart",
        metavar="FILE",
        help="Also draw the answer with its intervals: .html, .svg, .png or .json (Vega-Lite).",
    ),
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace the chart.")]


def check_chart_option(chart: Path | None, *, overwrite: bool) -> None:
    """Refuse a chart that cannot be written, before any work is done."""
    if chart is not None:
        from reconpriv.show.chart import check_chart

        check_chart(chart, overwrite=overwrite)
    elif overwrite:
        raise PolicyError("--overwrite needs --chart.")


def give_answer(
    answer: Any, view: Callable[[Any], Any], chart: Path | None, *, overwrite: bool, json: bool
) -> None:
    """Draw an answer if asked to, then print it; a chart that fails leaves nothing behind."""
    if chart is not None:
        drawn: Plottable = answer
        drawn.plot().save(chart, overwrite=overwrite)
    if json:
        show_json(answer.as_dict() | ({} if chart is None else {"chart": str(chart)}))
        return
    show(view(answer))
    if chart is not None:
        echo(f"Chart written to {shown_path(chart)}.")

"""What of the paper's study holds, on a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.table import Table as RichTable
from rich.text import Text

if TYPE_CHECKING:
    from reconpriv.research.run import Study


def findings_view(study: Study) -> RenderableType:
    """Which of the paper's findings hold."""
    table = RichTable(box=None, padding=(0, 2, 1, 0))
    table.add_column("the paper says", overflow="fold", ratio=4)
    table.add_column("verdict")
    table.add_column("measured", overflow="fold", ratio=5)
    colours = {"holds": "green", "holds in part": "yellow", "does not hold": "red"}
    for finding in study.findings:
        verdict = Text(finding.verdict, style=colours.get(finding.verdict, ""))
        table.add_row(Text(finding.statement), verdict, Text(finding.evidence))
    done = f"{len(study.files)} files in {study.folder}, {study.seconds:.0f} s; open index.html"
    return Group(table, Text(done))

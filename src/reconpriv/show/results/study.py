"""What of the paper's study holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reconpriv.show.document import Document, Field, Grid, Paragraph

if TYPE_CHECKING:
    from reconpriv.research.run import Study

_COLOURS = {"holds": "green", "holds in part": "yellow", "does not hold": "red"}


def study_document(study: Study) -> Document:
    """Which of the paper's findings hold."""
    rows = [(one.statement, one.verdict, one.evidence) for one in study.findings]
    fields = [Field("the paper says"), Field("verdict"), Field("measured")]

    def tone(row: int, column: int) -> str:
        return _COLOURS.get(rows[row][1], "") if column == 1 else ""

    done = f"{len(study.files)} files in {study.folder}, {study.seconds:.0f} s; open index.html"
    return [Grid(fields, rows, spaced=True, tones=tone), Paragraph(done, joined=True)]

"""What is installed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reconpriv._version import __version__
from reconpriv.show.document import Document, Field, Grid, Headline, Paragraph

if TYPE_CHECKING:
    from reconpriv.doctor import Examination

_PARTS = {
    "python": "Python",
    "machine": "Machine",
    "core": "Core",
    "extra": "Extras",
    "system": "System",
    "data": "Data",
}


def doctor_document(examination: Examination) -> Document:
    """What is installed and what is not, followed by the commands that would add the rest."""
    rows: list[tuple[str, str, str, str]] = []
    part = ""
    for check in examination.checks:
        if check.part != part:
            part = check.part
            rows.append(("", f"\n{_PARTS[part]}", "", ""))
        rows.append(("ok" if check.ok else "-", check.name, check.found, check.use))
    tones = {"ok": "green", "-": "yellow"}

    def tone(row: int, column: int) -> str:
        mark = rows[row][0]
        return {0: tones.get(mark, ""), 1: "" if mark else "bold", 3: "dim"}.get(column, "")

    missing = [check for check in examination.checks if not check.ok and check.add]
    return [
        Headline(f"reconpriv {__version__}"),
        Grid([Field("")] * 4, rows, headed=False, joined=True, tones=tone),
        *([Headline("To add what is missing")] if missing else []),
        *(Paragraph(f"{check.name}: {check.add}", joined=True) for check in missing),
    ]

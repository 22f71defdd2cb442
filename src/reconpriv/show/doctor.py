"""What is installed, on a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.table import Table as RichTable
from rich.text import Text

from reconpriv._version import __version__

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


def doctor_view(examination: Examination) -> RenderableType:
    """What is installed and what is not, followed by the commands that would add the rest."""
    table = RichTable(box=None, padding=(0, 2, 0, 0), show_header=False)
    for overflow in ("ignore", "fold", "fold", "fold"):
        table.add_column(overflow=overflow)
    part = ""
    for check in examination.checks:
        if check.part != part:
            part = check.part
            table.add_row("", Text(f"\n{_PARTS[part]}", style="bold"), "", "")
        mark = Text("ok", style="green") if check.ok else Text("-", style="yellow")
        table.add_row(mark, Text(check.name), Text(check.found), Text(check.use, style="dim"))
    missing = [check for check in examination.checks if not check.ok and check.add]
    parts: list[RenderableType] = [Text(f"reconpriv {__version__}", style="bold"), table]
    if missing:
        parts.append(Text("\nTo add what is missing", style="bold"))
        parts += [Text(f"{check.name}: {check.add}", overflow="fold") for check in missing]
    return Group(*parts)

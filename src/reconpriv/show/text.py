"""Tables and figures as text: the same on a terminal and piped."""

from __future__ import annotations

from io import StringIO
from typing import Any

from rich.console import Console, RenderableType
from rich.segment import Segment, Segments
from rich.table import Table as RichTable
from rich.text import Text

from reconpriv.messages.one_line import printable, shortened
from reconpriv.messages.phrases import group_words
from reconpriv.show.rows import FittingTable

_PLAIN_WIDTH = 110


def as_text(renderable: RenderableType, width: int = _PLAIN_WIDTH) -> str:
    """A rich renderable as plain text, without colour."""
    stream = StringIO()
    _console(file=stream, width=width, color_system=None, force_jupyter=False).print(renderable)
    text = printable(stream.getvalue())
    return "\n".join(line.rstrip() for line in text.rstrip().split("\n"))


def print_safely(renderable: RenderableType) -> None:
    """Print to the terminal, which must not obey control characters in a name or a value."""
    console = _console()
    console.print(
        Segments(
            part if part.control else Segment(printable(part.text), part.style)
            for part in console.render(renderable)
        ),
        end="",
    )


def _console(**settings: Any) -> Console:
    """A console that shows a text as it is: a name like ``[/x]`` or ``:x:`` is not markup."""
    return Console(markup=False, emoji=False, highlight=False, **settings)


def pairs_table(rows: list[tuple[str, str]]) -> RichTable:
    """Names and values, without a heading."""
    table = FittingTable(show_header=False)
    table.add_column(style="dim")
    table.add_column()
    for row in rows:
        table.add_row(*row)
    return table


def rows_table(title: str, rows: tuple[dict[str, Any], ...]) -> RichTable:
    """Rows of figures under the names of their columns."""
    table = FittingTable(title=title)
    for name, value in rows[0].items():
        number = isinstance(value, int | float) and not isinstance(value, bool)
        table.add_column(Text(name), justify="right" if number else "left")
    for row in rows:
        table.add_row(*(Text(figure(value)) for value in row.values()))
    return table


def figure(value: Any) -> str:
    """A figure for display: three digits, thousands separated, a group by its columns."""
    if isinstance(value, dict):
        return group_words(value)
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.3g}" if isinstance(value, float) else shortened(str(value))

"""A document as text: the same on a terminal and piped."""

from __future__ import annotations

from collections.abc import Iterator
from io import StringIO
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.segment import Segment, Segments
from rich.text import Text

from reconpriv.messages.one_line import printable
from reconpriv.show.document import (
    Document,
    Facts,
    Field,
    Grid,
    Heading,
    Headline,
    OnTerminal,
    Paragraph,
    Part,
)
from reconpriv.show.rows import FittingTable

_PLAIN_WIDTH = 110
_COLOURS = {"": "bold", "good": "bold green", "fair": "bold yellow", "bad": "bold red"}


def as_text(shown: Document | RenderableType, width: int = _PLAIN_WIDTH) -> str:
    """A document as plain text, without colour."""
    stream = StringIO()
    console = _console(file=stream, width=width, color_system=None, force_jupyter=False)
    console.print(_renderable(shown))
    text = printable(stream.getvalue())
    return "\n".join(line.rstrip() for line in text.rstrip().split("\n"))


def print_safely(shown: Document | RenderableType) -> None:
    """Print to the terminal, which must not obey control characters in a name or a value."""
    console = _console()
    console.print(
        Segments(
            part if part.control else Segment(printable(part.text), part.style)
            for part in console.render(_renderable(shown))
        ),
        end="",
    )


def _console(**settings: Any) -> Console:
    """A console that shows a text as it is: a name like ``[/x]`` or ``:x:`` is not markup."""
    return Console(markup=False, emoji=False, highlight=False, **settings)


def _renderable(shown: Document | RenderableType) -> RenderableType:
    if not isinstance(shown, list | tuple):
        return shown  # type: ignore[return-value]
    lines: list[RenderableType] = []
    for part in _flat(shown):
        if lines and not getattr(part, "joined", False):
            lines.append(Text(""))
        lines.append(_part(part))
    return Group(*lines)


def _flat(parts: Document) -> Iterator[Part]:
    """The parts that a terminal shows."""
    for part in parts:
        match part:
            case OnTerminal():
                yield from _flat(part.parts)
            case Headline() | Heading() | Paragraph() | Facts() | Grid():
                yield part


def _part(part: Part) -> RenderableType:
    match part:
        case Headline():
            first = Text(part.text, style=_COLOURS[part.tone])
            return Text.assemble(first, *(f" {sentence}" for sentence in part.rest))
        case Heading():
            return Text(part.text, style="bold cyan")
        case Paragraph():
            return Text(f"{part.name}: {part.text}" if part.name else part.text, overflow="fold")
        case Facts():
            grid = Grid([Field(""), Field("")], part.rows, headed=False, spaced=part.spaced)
            return FittingTable(grid, names="bold" if part.spaced else "dim")
        case Grid():
            return FittingTable(part)
    raise AssertionError(part)

"""A document as text: the same on a terminal and piped.

Rows of figures stay readable in a narrow terminal: a table, narrower tables, or blocks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from io import StringIO
from typing import Any

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.segment import Segment, Segments
from rich.table import Table as RichTable
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

_PLAIN_WIDTH = 110
_COLOURS = {"": "bold", "good": "bold green", "fair": "bold yellow", "bad": "bold red"}
_GAP = 2
_INTERVAL = "interval"  # the heading of limits, beside their estimate
_HEADER_LINES = 3
_PERCENT = re.compile(r"(?<=\d) %")  # a number and its unit stay on one line
_JOINT = "\ufdd0"  # between them while lines are filled; no text holds it, and no line ends at it


def as_text(shown: Document, width: int = _PLAIN_WIDTH) -> str:
    """A document as plain text, without colour."""
    stream = StringIO()
    console = _console(file=stream, width=width, color_system=None, force_jupyter=False)
    console.print(_renderable(shown))
    text = _shown(stream.getvalue())
    return "\n".join(line.rstrip() for line in text.rstrip().split("\n"))


def print_safely(shown: Document) -> None:
    """Print to the terminal, which must not obey control characters in a name or a value."""
    console = _console()
    console.print(
        Segments(
            part if part.control else Segment(_shown(part.text), part.style)
            for part in console.render(_renderable(shown))
        ),
        end="",
    )


def _joined(text: str) -> str:
    return _PERCENT.sub(f"{_JOINT}%", text)


def _shown(text: str) -> str:
    return printable(text.replace(_JOINT, " "))


def _console(**settings: Any) -> Console:
    """A console that shows a text as it is: a name like ``[/x]`` or ``:x:`` is not markup."""
    return Console(markup=False, emoji=False, highlight=False, **settings)


def _renderable(shown: Document) -> RenderableType:
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
            first = Text(_joined(part.text), style=_COLOURS[part.tone])
            return Text.assemble(first, *(f" {_joined(sentence)}" for sentence in part.rest))
        case Heading():
            return Text(part.text, style="bold cyan")
        case Paragraph():
            text = f"{part.name}: {part.text}" if part.name else part.text
            return Text(_joined(text), overflow="fold")
        case Facts():
            grid = Grid([Field(""), Field("")], part.rows, headed=False, spaced=part.spaced)
            return FittingTable(grid, names="bold" if part.spaced else "dim")
        case Grid():
            return FittingTable(part)
    raise AssertionError(part)


@dataclass(frozen=True)
class _Column:
    """A column with the widths at which it is comfortable, wraps no cell, and breaks no word."""

    name: str
    cells: Sequence[str]
    right: bool
    natural: int
    unwrapped: int
    least: int

    @classmethod
    def of(cls, name: str, cells: Sequence[str], *, right: bool) -> _Column:
        whole = max((_longest(cell.splitlines()) for cell in cells), default=0)
        # A figure stays on one line, with or without spaces.
        least = whole if right else max((_longest(cell.split()) for cell in cells), default=0)
        head = _heading_width(name)
        return cls(name, cells, right, max(whole, cell_len(name)), max(whole, head),
                   max(least, head))  # fmt: skip


class FittingTable:
    """A table without borders that never breaks a word or a figure unless the width is too small.

    If it is too wide, headings and texts wrap between words. If that is not enough, the columns
    are split over several tables, each beginning with the columns that identify the rows; and if
    not even one more column fits, each row becomes a block of names and values.
    """

    def __init__(self, grid: Grid, names: str = "") -> None:
        """``names`` is the style of the first column of a grid without headings."""
        self._grid, self._names = grid, names
        fields = [field for field in grid.fields if not field.picture]
        self._texts = [[_joined(text) for text in row] for row in grid.texts]
        cells = list(zip(*self._texts, strict=True)) or [()] * len(fields)
        self._columns = [
            _Column.of(field.name if grid.headed else "", column, right=field.right)
            for field, column in zip(fields, cells, strict=True)
        ]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Any:
        """Render the title, the rows in the layout that fits, and the note."""
        if self._grid.title:
            yield Text(_joined(self._grid.title), style="table.title")
        yield from self._laid_out(options.max_width)
        if self._grid.note:
            yield Text(_joined(self._grid.note), style="table.caption")

    def _laid_out(self, width: int) -> Iterator[RenderableType]:
        """The rows in tables, or blocks, of at most this width."""
        columns = self._columns
        if not self._grid.headed:
            yield self._part(list(range(len(columns))), _names_first(columns, width))
            return
        parts = _split(columns, width)
        if not parts:
            yield from self._blocks(width)
        for number, part in enumerate(parts):
            if number:
                yield Text("")
            yield self._part(part, _shared([columns[i] for i in part], width))

    def _part(self, chosen: list[int], widths: list[int]) -> RichTable:
        """Some columns of the table."""
        part = _plain_table(headed=self._grid.headed, gap=int(self._grid.spaced))
        for i, width in zip(chosen, widths, strict=True):
            column = self._columns[i]
            part.add_column(
                Text(column.name), justify="right" if column.right else "left", width=width,
                overflow="fold", style="" if i or self._grid.headed else self._names,
            )  # fmt: skip
        tones = self._grid.tones
        for row, texts in enumerate(self._texts):
            part.add_row(*(Text(texts[i], tones(row, i) if tones else "") for i in chosen))
        return part

    def _blocks(self, width: int) -> Iterator[RenderableType]:
        """One block per row, with one line for each name and value."""
        names = [column.name for column in self._columns]
        room = min(_longest(names), width // 2)
        for number, row in enumerate(self._texts):
            if number:
                yield Text("")
            block = _plain_table(headed=False)
            block.add_column(style="dim", width=room)
            block.add_column(overflow="fold", width=max(1, width - room - _GAP))
            for name, cell in zip(names, row, strict=True):
                if name or cell:
                    block.add_row(Text(name), Text(cell))
            yield block


def _split(columns: list[_Column], width: int) -> list[list[int]]:
    """Which columns go into each table; empty if blocks read better."""

    def fits(chosen: list[int]) -> bool:
        return _total([columns[i].least for i in chosen]) <= width

    everything = list(range(len(columns)))
    if fits(everything):
        return [everything]
    keys = _keys(columns)
    parts = [keys]
    for figure in _figures(columns, everything[len(keys) :]):
        if parts[-1] == keys or fits([*parts[-1], *figure]):
            parts[-1] = [*parts[-1], *figure]
        else:
            parts.append([*keys, *figure])
    crowded = 2 * len(parts) > len(everything) - len(keys)
    return [] if crowded or not all(map(fits, parts)) else parts


def _figures(columns: list[_Column], places: list[int]) -> list[list[int]]:
    """Columns that must not be torn apart: an estimate and its interval."""
    found: list[list[int]] = []
    for i in places:
        if found and columns[i].name == _INTERVAL:
            found[-1].append(i)
        else:
            found.append([i])
    return found


def _keys(columns: list[_Column]) -> list[int]:
    """The fewest columns from the left that distinguish all rows; an estimate is none of them."""
    names = [column.name for column in columns]
    most = names.index(_INTERVAL) - 1 if _INTERVAL in names else len(columns)
    rows = list(zip(*(column.cells for column in columns), strict=True))
    for count in range(1, most):
        if len({row[:count] for row in rows}) == len(rows):
            return list(range(count))
    return list(range(max(most, 0)))


def _heading_width(heading: str) -> int:
    """The smallest width at which a heading takes few lines and no word is broken."""
    words = heading.split()
    width = _longest(words)
    while _lines(words, width) > _HEADER_LINES:
        width += 1
    return width


def _lines(words: list[str], width: int) -> int:
    """How many lines of at most this width the words take."""
    count, used = (1, -1) if words else (0, 0)
    for word in words:
        if used + 1 + cell_len(word) > width:
            count, used = count + 1, cell_len(word)
        else:
            used += 1 + cell_len(word)
    return count


def _shared(columns: list[_Column], available: int) -> list[int]:
    """Widths that fit: headings wrap first, then texts; the widest column shrinks first."""
    found = [one.natural for one in columns]
    for least in ([one.unwrapped for one in columns], [one.least for one in columns]):
        while _total(found) > available:
            spare = [i for i, width in enumerate(found) if width > least[i]]
            if not spare:
                break
            found[max(spare, key=lambda i: found[i])] -= 1
    return found


def _names_first(columns: list[_Column], available: int) -> list[int]:
    """Widths for names and values; a value without a break point is split over lines."""
    *names, last = columns
    room = available - _total([*(one.least for one in names), 0])
    value = replace(last, least=max(1, min(last.least, room)))
    return _shared([*names, value], available)


def _plain_table(*, headed: bool, gap: int = 0) -> RichTable:
    padding = (0, _GAP, gap, 0)
    return RichTable(show_header=headed, box=None, padding=padding, pad_edge=False)


def _total(widths: list[int]) -> int:
    return sum(widths) + _GAP * (len(widths) - 1)


def _longest(words: list[str]) -> int:
    return max(map(cell_len, words), default=0)

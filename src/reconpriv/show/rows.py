"""Rows of figures that stay readable in a narrow terminal: a table, narrower tables, or blocks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType
from rich.table import Column
from rich.table import Table as RichTable
from rich.text import Text

_GAP = 2
_INTERVAL = "interval"  # the heading of limits, beside their estimate
_HEADER_LINES = 3


class FittingTable(RichTable):
    """A table without borders that never breaks a word or a figure unless the width is too small.

    If it is too wide, headings and texts wrap between words. If that is not enough, the columns
    are split over several tables, each beginning with the columns that identify the rows; and if
    not even one more column fits, each row becomes a block of names and values.
    """

    def __init__(self, *headers: Any, **settings: Any) -> None:
        """Take the arguments of rich's table; there is no box, and the padding is fixed."""
        looks: dict[str, Any] = {"title_justify": "left", "caption_justify": "left"}
        super().__init__(*headers, **looks | settings | {"box": None, "padding": (0, _GAP, 0, 0)})

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Any:
        """Render the title, the rows in the layout that fits, and the caption."""
        if self.title:
            yield Text(str(self.title), style="table.title")
        yield from lay_out(self, options.max_width)
        if self.caption:
            yield Text(str(self.caption), style="table.caption")


@dataclass(frozen=True)
class _Widths:
    """The widths at which a column is comfortable, wraps no cell, and breaks no word."""

    natural: int
    unwrapped: int
    least: int


def lay_out(table: RichTable, width: int) -> Iterator[RenderableType]:
    """The rows of a table in tables, or blocks, of at most this width."""
    columns = table.columns
    widths = [_widths(column, table.show_header) for column in columns]
    if not table.show_header:
        yield _part(table, list(range(len(columns))), _names_first(widths, width))
        return
    parts = _split(columns, widths, width)
    if not parts:
        yield from _blocks(table, width)
    for number, part in enumerate(parts):
        if number:
            yield Text("")
        yield _part(table, part, _shared([widths[i] for i in part], width))


def _split(columns: list[Column], widths: list[_Widths], width: int) -> list[list[int]]:
    """Which columns go into each table; empty if blocks read better."""

    def fits(chosen: list[int]) -> bool:
        return _total([widths[i].least for i in chosen]) <= width

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


def _figures(columns: list[Column], places: list[int]) -> list[list[int]]:
    """Columns that must not be torn apart: an estimate and its interval."""
    found: list[list[int]] = []
    for i in places:
        if found and _plain(columns[i].header) == _INTERVAL:
            found[-1].append(i)
        else:
            found.append([i])
    return found


def _keys(columns: list[Column]) -> list[int]:
    """The fewest columns from the left that distinguish all rows; an estimate is none of them."""
    headings = [_plain(column.header) for column in columns]
    most = headings.index(_INTERVAL) - 1 if _INTERVAL in headings else len(columns)
    rows = list(zip(*(map(_plain, column.cells) for column in columns), strict=True))
    for count in range(1, most):
        if len({row[:count] for row in rows}) == len(rows):
            return list(range(count))
    return list(range(max(most, 0)))


def _widths(column: Column, headed: bool) -> _Widths:
    cells = [_plain(cell) for cell in column.cells]
    heading = _plain(column.header) if headed else ""
    whole = max((_longest(cell.splitlines()) for cell in cells), default=0)
    # A figure stays on one line, with or without spaces.
    least = whole if column.justify == "right" else max(map(_longest_word, cells), default=0)
    head = _heading_width(heading)
    return _Widths(max(whole, cell_len(heading)), max(whole, head), max(least, head))


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


def _shared(widths: list[_Widths], available: int) -> list[int]:
    """Widths that fit: headings wrap first, then texts; the widest column shrinks first."""
    found = [one.natural for one in widths]
    for least in ([one.unwrapped for one in widths], [one.least for one in widths]):
        while _total(found) > available:
            spare = [i for i, width in enumerate(found) if width > least[i]]
            if not spare:
                break
            found[max(spare, key=lambda i: found[i])] -= 1
    return found


def _names_first(widths: list[_Widths], available: int) -> list[int]:
    """Widths for names and values; a value without a break point is split over lines."""
    *names, last = widths
    room = available - _total([*(one.least for one in names), 0])
    value = replace(last, least=max(1, min(last.least, room)))
    return _shared([*names, value], available)


def _part(table: RichTable, chosen: list[int], widths: list[int]) -> RichTable:
    """Some columns of a table."""
    part = _plain_table(headed=table.show_header)
    for i, width in zip(chosen, widths, strict=True):
        column = table.columns[i]
        part.add_column(
            column.header, justify=column.justify, style=column.style, width=width, overflow="fold"
        )
    for cells in zip(*(table.columns[i].cells for i in chosen), strict=True):
        part.add_row(*cells)
    return part


def _blocks(table: RichTable, width: int) -> Iterator[RenderableType]:
    """One block per row, with one line for each name and value."""
    names = [_plain(column.header) for column in table.columns]
    room = min(_longest(names), width // 2)
    for number, cells in enumerate(zip(*(c.cells for c in table.columns), strict=True)):
        if number:
            yield Text("")
        block = _plain_table(headed=False)
        block.add_column(style="dim", width=room)
        block.add_column(overflow="fold", width=max(1, width - room - _GAP))
        for name, cell in zip(names, cells, strict=True):
            if name or _plain(cell):
                block.add_row(Text(name), cell)
        yield block


def _plain_table(*, headed: bool) -> RichTable:
    return RichTable(show_header=headed, box=None, padding=(0, _GAP, 0, 0), pad_edge=False)


def _total(widths: list[int]) -> int:
    return sum(widths) + _GAP * (len(widths) - 1)


def _longest_word(text: str) -> int:
    return _longest(text.split())


def _longest(words: list[str]) -> int:
    return max(map(cell_len, words), default=0)


def _plain(cell: RenderableType) -> str:
    return cell.plain if isinstance(cell, Text) else str(cell)

"""The first lines of a CSV: its delimiter and the names of its columns, or why they are not there.

Both engines read headers this way.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence

from reconpriv.errors import InputError
from reconpriv.messages.text_files import through
from reconpriv.sources.column_names import check_names

SAMPLE = 20  # lines below the first one that tell a title from a header

_DELIMITERS = ",;\t|"
_EXCEL = re.compile(r'"?sep=.?"?', re.I)


def parse_header(
    first: str, following: Sequence[str], file: str, shown: str
) -> tuple[str, list[str]]:
    """The delimiter that occurs most in the header, outside quotes, and the names there."""
    above = 1 if _EXCEL.fullmatch(first.rstrip("\r\n")) else _titles([first, *following])
    if above:
        line = "a line for Excel (sep=)" if _EXCEL.match(first) else "a title"
        raise InputError(
            f"{shown} starts with {line} instead of the names of its columns.",
            hint=through(file, shown, f"tail -n +{above + 1}", "table"),
        )
    delimiter = _delimiter([first])
    try:
        names = next(csv.reader([first.rstrip("\r\n")], delimiter=delimiter))
    except csv.Error:
        raise InputError(
            f"The header of {shown} cannot be read: a name is too long or broken off."
        ) from None
    check_names(names, shown)
    return delimiter, names


def _delimiter(lines: Sequence[str]) -> str:
    outside = "".join(part for line in lines for part in line.split('"')[::2])
    return max(_DELIMITERS, key=outside.count)


def _titles(lines: Sequence[str]) -> int:
    """How many lines with at most one text stand above a table of several columns."""
    delimiter = _delimiter(lines[1:])
    try:
        rows = [next(csv.reader([line.rstrip("\r\n")], delimiter=delimiter), []) for line in lines]
    except csv.Error:
        return 0
    above = next((i for i, row in enumerate(rows) if len([*filter(None, row)]) > 1), 0)
    widths = {len(row) for row in rows[above:]}
    # "name," may be a header that lacks a name; "title,," above three columns is none.
    padded = len(rows[0]) > 1
    several = len(widths) == 1 and min(widths) > 1 + padded
    return above if several and len(rows) > above + 1 else 0

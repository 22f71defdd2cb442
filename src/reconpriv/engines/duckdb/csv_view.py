"""A CSV as a view of DuckDB: its header names the columns, and its fields are texts at first.

What a column of texts is turned into, :mod:`reconpriv.engines.duckdb.csv_texts` says.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Sequence
from typing import IO

import duckdb

from reconpriv.columns.schema import Column, Kind
from reconpriv.columns.schema import quote_identifier as quote
from reconpriv.engines.duckdb.csv_texts import CsvTexts
from reconpriv.engines.duckdb.literals import file_list, literal
from reconpriv.errors import InputError
from reconpriv.messages.text_files import not_utf8
from reconpriv.sources.csv_header import SAMPLE, parse_header

_LONGEST_HEADER = 16 << 20
_LONGEST_SAMPLED = 1 << 16
# Each thread reads pieces, as is DuckDB's own habit; see csv_lines for when that goes wrong.
_IN_PIECES = "parallel=true, buffer_size=32000000, max_line_size=2000000"
# From the beginning to the end; texts that Parquet can hold may be long.
_IN_ONE = "parallel=false, max_line_size=67108864"
_DECLARED = {
    Kind.INTEGER: "BIGINT",
    Kind.NUMBER: "DOUBLE",
    Kind.BOOLEAN: "BOOLEAN",
    Kind.DATE: "DATE",
    Kind.TIME: "TIME",
}


def _csv(files: list[str], shown: str, reading: str) -> str:
    """A CSV as text, nothing guessed: the header names the columns, a ragged row is refused.

    ``reading`` are further options of DuckDB's reader.
    """
    delimiter, names = _header(files[0], shown)
    for file in files[1:]:
        if _header(file, shown) != (delimiter, names):
            raise InputError(f"The files of {shown!r} differ in their columns or delimiter.")
    columns = ", ".join(f"{literal(name)}: 'VARCHAR'" for name in names)
    return (
        f"SELECT * FROM read_csv({file_list(files)}, auto_detect=false, header=true,"
        f" delim={literal(delimiter)}, quote='\"', escape='\"', allow_quoted_nulls=false,"
        f" {reading}, columns={{{columns}}})"
    )


def _header(file: str, shown: str) -> tuple[str, list[str]]:
    opener: Callable[..., IO[str]] = gzip.open if file.endswith(".gz") else open
    try:
        with opener(file, "rt", encoding="utf-8-sig", newline="") as stream:
            first = _first_line(stream)
            following = [stream.readline(_LONGEST_SAMPLED) for _ in range(SAMPLE)]
    except UnicodeDecodeError:
        raise not_utf8(file, shown) from None
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{shown} cannot be read ({type(error).__name__}).") from None
    if first is None:
        raise InputError(
            f"The header of {shown} has a quoted field that is never closed, or is longer than"
            f" {_LONGEST_HEADER >> 20} MB.",
            hint="Look for a stray double quote in its first line.",
        )
    if not first.strip():
        raise InputError(f"{shown} is empty.", hint="A CSV starts with a line of column names.")
    if first.count("\0") > len(first) // 3:  # every other byte of UTF-16 is one
        raise not_utf8(file, shown)
    return parse_header(first, [line for line in following if line], file, shown)


def _first_line(stream: IO[str]) -> str | None:
    """The header with the line breaks inside its quotes; None if it does not end."""
    parts, length, quotes = [], 0, 0
    while length <= _LONGEST_HEADER and (part := stream.readline(_LONGEST_HEADER)):
        parts.append(part)
        length += len(part)
        quotes += part.count('"')
        if quotes % 2 == 0 and part.endswith(("\n", "\r")):
            break
    return None if quotes % 2 or length > _LONGEST_HEADER else "".join(parts)


def csv_texts(files: list[str], shown: str) -> CsvTexts:
    """A CSV of texts, to be read in pieces by several threads, or in one by one."""
    _, names = _header(files[0], shown)
    in_pieces, in_one = (_csv(files, shown, reading) for reading in (_IN_PIECES, _IN_ONE))
    return CsvTexts(in_pieces, in_one, tuple(names), tuple(files), shown)


def declared_csv(
    connection: duckdb.DuckDBPyConnection, files: list[str], shown: str, columns: Sequence[Column]
) -> str:
    """A CSV whose columns are known: each is cast to its kind, whatever it looks like."""
    text = _csv(files, shown, _IN_ONE)
    _, names = _header(files[0], shown)
    kinds = {column.name: column.kind for column in columns}
    chosen = []
    for name in names:
        kind = kinds.get(name, Kind.STRING)
        target = _DECLARED.get(kind)
        if kind is Kind.DECIMAL:
            digits = f"max(length(split_part({quote(name)}, '.', 2)))"
            scale = connection.execute(f"SELECT {digits} FROM ({text})").fetchall()[0][0] or 0
            target = f"DECIMAL(38, {scale})"
        elif kind is Kind.DATETIME:
            zoned = f"count(*) FILTER (WHERE {quote(name)} LIKE '%Z')"
            with_zone = connection.execute(f"SELECT {zoned} FROM ({text})").fetchall()[0][0]
            target = "TIMESTAMPTZ" if with_zone else "TIMESTAMP"
        chosen.append(f"{quote(name)}::{target} AS {quote(name)}" if target else quote(name))
    return f"SELECT {', '.join(chosen)} FROM ({text})"

"""CSV files: every field is a text at first, and what a column of texts is, all its texts decide.

Types depend on the texts that occur, not on how often they do: they are settled on what was kept,
which is the cells, or the records if a query needs them.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

import duckdb
import numpy as np
import pyarrow as pa

from reconpriv.columns.schema import Column, Kind
from reconpriv.columns.schema import quote_identifier as quote
from reconpriv.engines.duckdb.dialect import file_list, literal
from reconpriv.errors import InputError
from reconpriv.messages.text_files import is_utf8, not_utf8
from reconpriv.sources.csv_header import SAMPLE, parse_header
from reconpriv.sources.lazy import LazyTable

_LONGEST_HEADER = 16 << 20
_LONGEST_SAMPLED = 1 << 16
# Each thread reads pieces, as is DuckDB's own habit; see on_lines_of_their_own.
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
_LOSSLESS = ("BIGINT", "DOUBLE", "BOOLEAN", "DATE", "TIMESTAMP")
_KEPT = "reconpriv_texts"
_FIRST = 2048  # rows that rule out most types, so that the others are not looked at
_TOGETHER = 50  # columns; planning a query with hundreds of sums takes minutes
_CHUNK = 1 << 20


class CsvTexts(LazyTable):
    """CSV files with one header, read once: their cells or records are kept as texts."""

    can_count = True

    def __init__(self, files: list[str], shown: str) -> None:
        self._files, self._shown = files, shown
        self._delimiter, names = _header(files[0], shown)
        for file in files[1:]:
            if _header(file, shown) != (self._delimiter, names):
                raise InputError(f"The files of {shown!r} differ in their columns or delimiter.")
        self.schema = pa.schema([(name, pa.string()) for name in names])

    def _reader(self, reading: str) -> str:
        """The call that reads every field as text, guessing nothing; a ragged row is refused."""
        columns = ", ".join(f"{literal(name)}: 'VARCHAR'" for name in self.schema.names)
        return (
            f"read_csv({file_list(self._files)}, auto_detect=false, header=true,"
            f" delim={literal(self._delimiter)}, quote='\"', escape='\"',"
            f" allow_quoted_nulls=false, {reading}, columns={{{columns}}})"
        )

    def query(
        self, connection: duckdb.DuckDBPyConnection, names: Sequence[str], count: str | None = None
    ) -> str:
        """Keep these columns of the records, or their cells; return the query that types them."""
        columns, total, rest = ", ".join(map(quote, names)), "count(*)", ""
        if count is not None:
            columns, rest = f"{columns}, count(*) AS {quote(count)}", "GROUP BY ALL"
            total = f"sum({quote(count)})"
        # As Parquet they would be smaller, but texts take three times as long to write.
        self._keep(connection, f"SELECT {columns}", total, rest)
        kinds = _kinds_of(connection, names)
        typed = [
            f"{quote(name)}::{kinds[name]} AS {quote(name)}" if name in kinds else quote(name)
            for name in names
        ]
        typed += [] if count is None else [quote(count)]
        return f"SELECT {', '.join(typed)} FROM {_KEPT}"

    def _keep(
        self, connection: duckdb.DuckDBPyConnection, what: str, total: str, rest: str
    ) -> None:
        """Make the table, in pieces if that goes well; ``total`` gives its number of records."""

        def read(reading: str) -> None:
            query = f"{what} FROM {self._reader(reading)} {rest}"
            connection.execute(f"CREATE OR REPLACE TEMP TABLE {_KEPT} AS {query}")

        if not any(file.endswith(".gz") for file in self._files):
            # What is wrong with the file, the other way of reading says better.
            with suppress(duckdb.InvalidInputException, duckdb.NotImplementedException):
                read(_IN_PIECES)
                records = connection.execute(f"SELECT {total} FROM {_KEPT}").fetchall()[0][0]
                if on_lines_of_their_own(self._files, int(records or 0)):
                    return
        try:
            read(_IN_ONE)
        except duckdb.InvalidInputException:
            # DuckDB does not say which of the files it is, nor what it looks like.
            other = next((file for file in self._files if not is_utf8(file)), None)
            if other is None:
                raise
            single = len(self._files) == 1
            raise not_utf8(other, self._shown if single else Path(other).name) from None

    def declared(self, connection: duckdb.DuckDBPyConnection, columns: Sequence[Column]) -> str:
        """The query that casts each column to its known kind, whatever it looks like."""
        text = self._reader(_IN_ONE)
        kinds = {column.name: column.kind for column in columns}
        chosen = []
        for name in self.schema.names:
            kind = kinds.get(name, Kind.STRING)
            target = _DECLARED.get(kind)
            if kind is Kind.DECIMAL:
                digits = f"max(length(split_part({quote(name)}, '.', 2)))"
                scale = connection.execute(f"SELECT {digits} FROM {text}").fetchall()[0][0] or 0
                target = f"DECIMAL(38, {scale})"
            elif kind is Kind.DATETIME:
                zoned = f"count(*) FILTER (WHERE {quote(name)} LIKE '%Z')"
                with_zone = connection.execute(f"SELECT {zoned} FROM {text}").fetchall()[0][0]
                target = "TIMESTAMPTZ" if with_zone else "TIMESTAMP"
            chosen.append(f"{quote(name)}::{target} AS {quote(name)}" if target else quote(name))
        return f"SELECT {', '.join(chosen)} FROM {text}"


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


def _kinds_of(connection: duckdb.DuckDBPyConnection, names: Sequence[str]) -> dict[str, str]:
    """The type of each column of texts in which every text is that type's own spelling.

    So 02139 stays text, and the types do not depend on which rows come first.
    """
    found: dict[str, str] = {}
    for first in range(0, len(names), _TOGETHER):
        possible: Mapping[str, Sequence[str]] = dict.fromkeys(
            names[first : first + _TOGETHER], _LOSSLESS
        )
        columns = ", ".join(map(quote, possible))
        for relation in (f"(SELECT {columns} FROM {_KEPT} LIMIT {_FIRST})", _KEPT):
            possible = _fitting(connection, relation, possible)
        if possible:
            counts = ", ".join(f"count({quote(name)})" for name in possible)
            texts = connection.execute(f"SELECT {counts} FROM {_KEPT}").fetchall()[0]
            found |= {
                name: kinds[0]
                for (name, kinds), n in zip(possible.items(), texts, strict=True)
                if n
            }
    return found


def _fitting(
    connection: duckdb.DuckDBPyConnection, relation: str, possible: Mapping[str, Sequence[str]]
) -> dict[str, list[str]]:
    """Of the types that each column may have, those that all its texts are spelled as."""
    tried = [(name, kind) for name, kinds in possible.items() for kind in kinds]
    if not tried:
        return {}
    checks = (
        f"count(*) FILTER (WHERE TRY_CAST({quote(name)} AS {kind})::VARCHAR"
        f" IS DISTINCT FROM {quote(name)} AND {quote(name)} IS NOT NULL) = 0"
        for name, kind in tried
    )
    row = connection.execute(f"SELECT {', '.join(checks)} FROM {relation}").fetchall()[0]
    fitting: dict[str, list[str]] = {}
    for (name, kind), fits in zip(tried, row, strict=True):
        if fits:
            fitting.setdefault(name, []).append(kind)
    return fitting


def on_lines_of_their_own(files: Sequence[str], records: int) -> bool:
    """True if the files, each with a header, have as many lines as that many records need.

    DuckDB's threads begin to read in the middle of a file. If a quoted text has several lines, one
    may take a line of that text for a record, and records are lost without an error. Without
    quotes, no text can have several lines, and nothing is counted.
    """
    if not any(b'"' in chunk for file in files for chunk in _chunks(file)):
        return True
    lines = 0
    for file in files:
        last = b"\n"
        for chunk in _chunks(file):
            lines += int(np.count_nonzero(np.frombuffer(chunk, dtype=np.uint8) == ord("\n")))
            last = chunk[-1:]
        lines += last != b"\n"
    return lines == records + len(files)


def _chunks(file: str) -> Iterator[bytes]:
    with open(file, "rb") as stream:
        while chunk := stream.read(_CHUNK):
            yield chunk

"""JSON lines: what DuckDB takes a text for, and what it is."""

from __future__ import annotations

import duckdb

from reconpriv.columns.schema import quote_identifier as quote
from reconpriv.engines.duckdb.dialect import file_list, literal
from reconpriv.errors import InputError

_DATE = r"\d{4}-\d\d-\d\d"
# How ISO 8601 spells them.
_SPELLINGS = {
    "DATE": _DATE,
    "TIME": r"\d\d:\d\d:\d\d(\.\d+)?",
    "TIMESTAMP": f"{_DATE}([T ].*)?",
    "TIMESTAMP WITH TIME ZONE": f"{_DATE}[T ].*",
}
_TEXT = "VARCHAR"
# What DuckDB makes of texts; a UUID has no type of its own here.
_GUESSES = {*_SPELLINGS, "UUID"}
_ALL_NULL = '"NULL"'


def json_lines(connection: duckdb.DuckDBPyConnection, files: list[str]) -> str:
    """The query that reads JSON lines with the types that all lines agree on.

    A text is a date or a time only if every one in its column is spelled as in ISO 8601: DuckDB
    would take 12-11-2020 for a day in November.
    """
    options = f"{file_list(files)}, format='newline_delimited', hive_partitioning=false"
    guessed = connection.sql(f"SELECT * FROM read_json({options}, sample_size=-1)")
    kinds = dict(zip(guessed.columns, map(str, guessed.types), strict=True))
    if kinds == {"json": "JSON"} or not kinds:
        raise InputError("The table is empty.", hint="There is nothing to audit or to publish.")
    if _GUESSES.isdisjoint(kinds.values()):
        return f"SELECT * FROM read_json({options}, sample_size=-1)"
    texts = {*_GUESSES, _ALL_NULL}
    columns = ", ".join(
        f"{literal(name)}: {literal(_TEXT if kind in texts else kind)}"
        for name, kind in kinds.items()
    )
    source = f"read_json({options}, columns={{{columns}}})"
    spelled = {name: kind for name, kind in kinds.items() if kind in _SPELLINGS}
    typed = ", ".join(
        f"{quote(name)}::{spelled[name]} AS {quote(name)}"
        for name in _all_spelled(connection, source, spelled)
    )
    return f"SELECT *{f' REPLACE ({typed})' if typed else ''} FROM {source}"


def _all_spelled(
    connection: duckdb.DuckDBPyConnection, source: str, kinds: dict[str, str]
) -> list[str]:
    """The columns in which every text is spelled as its type is in ISO 8601."""
    if not kinds:
        return []
    checks = ", ".join(
        f"coalesce(bool_and(regexp_full_match({quote(name)}, {literal(_SPELLINGS[kind])})), true)"
        for name, kind in kinds.items()
    )
    found = connection.execute(f"SELECT {checks} FROM {source}").fetchall()[0]
    return [name for name, all_spelled in zip(kinds, found, strict=True) if all_spelled]

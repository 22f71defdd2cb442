"""DuckDB's literals and types."""

from __future__ import annotations

import glob

from reconpriv.columns.schema import Kind, quote_identifier
from reconpriv.engines.recode_sql import Dialect

NANOSECONDS = {"TIMESTAMP_NS": "TIMESTAMP", "TIMESTAMPTZ_NS": "TIMESTAMPTZ", "TIME_NS": "TIME"}
_KINDS = {
    # What is not a number is missing, and + 0.0 makes -0.0 and 0.0 one value.
    "FLOAT": (Kind.NUMBER, "(CASE WHEN isnan({0}) THEN NULL ELSE {0} + 0.0 END)::DOUBLE"),
    "DOUBLE": (Kind.NUMBER, "(CASE WHEN isnan({0}) THEN NULL ELSE {0} + 0.0 END)"),
    "VARCHAR": (Kind.STRING, "{}"),
    "BOOLEAN": (Kind.BOOLEAN, "{}"),
    "DATE": (Kind.DATE, "{}"),
    "TIME": (Kind.TIME, "{}"),
    "TIME_NS": (Kind.TIME, "{}::TIME"),
    "TIMESTAMP": (Kind.DATETIME, "{}"),
    "TIMESTAMP WITH TIME ZONE": (Kind.DATETIME, "{}"),
    "TIMESTAMPTZ_NS": (Kind.DATETIME, "{}::TIMESTAMPTZ"),
    "BIGINT": (Kind.INTEGER, "{}"),
    **dict.fromkeys(("UUID", '"NULL"', "ENUM"), (Kind.STRING, "{}::VARCHAR")),
    **dict.fromkeys(
        ("TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"), (Kind.DATETIME, "{}::TIMESTAMP")
    ),
    **dict.fromkeys(
        ("TINYINT", "SMALLINT", "INTEGER", "UTINYINT", "USMALLINT", "UINTEGER"),
        (Kind.INTEGER, "{}::BIGINT"),
    ),
}


def literal(text: str) -> str:
    """An SQL string."""
    return "'" + text.replace("'", "''") + "'"


def file_list(files: list[str]) -> str:
    """A list of files, each taken by its very name."""
    # DuckDB would take a bracket or star in a name for a pattern.
    return "[" + ", ".join(literal(glob.escape(file)) for file in files) + "]"


DIALECT = Dialect(literal, quote_identifier, _KINDS, "regexp_full_match")

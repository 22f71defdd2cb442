"""DuckDB's types: what they mean to a release, and the expression for the canonical type."""

from __future__ import annotations

from reconpriv.columns.schema import Kind

KINDS = {
    # What is not a number is missing, and + 0.0 makes -0.0 and 0.0 one value.
    "FLOAT": (Kind.NUMBER, "(CASE WHEN isnan({0}) THEN NULL ELSE {0} + 0.0 END)::DOUBLE"),
    "DOUBLE": (Kind.NUMBER, "(CASE WHEN isnan({0}) THEN NULL ELSE {0} + 0.0 END)"),
    "VARCHAR": (Kind.STRING, "{}"),
    "UUID": (Kind.STRING, "{}::VARCHAR"),
    '"NULL"': (Kind.STRING, "{}::VARCHAR"),
    "BOOLEAN": (Kind.BOOLEAN, "{}"),
    "DATE": (Kind.DATE, "{}"),
    "TIME": (Kind.TIME, "{}"),
    "TIMESTAMP": (Kind.DATETIME, "{}"),
    "TIMESTAMP_S": (Kind.DATETIME, "{}::TIMESTAMP"),
    "TIMESTAMP_MS": (Kind.DATETIME, "{}::TIMESTAMP"),
    "TIMESTAMP_NS": (Kind.DATETIME, "{}::TIMESTAMP"),
    "TIMESTAMP WITH TIME ZONE": (Kind.DATETIME, "{}"),
    "TIMESTAMPTZ_NS": (Kind.DATETIME, "{}::TIMESTAMPTZ"),
    "TIME_NS": (Kind.TIME, "{}::TIME"),
    "BIGINT": (Kind.INTEGER, "{}"),
    **dict.fromkeys(
        ("TINYINT", "SMALLINT", "INTEGER", "UTINYINT", "USMALLINT", "UINTEGER"),
        (Kind.INTEGER, "{}::BIGINT"),
    ),
}
WIDE = ("HUGEINT", "UHUGEINT", "UBIGINT")
NANOSECONDS = {"TIMESTAMP_NS": "TIMESTAMP", "TIMESTAMPTZ_NS": "TIMESTAMPTZ", "TIME_NS": "TIME"}
OUTSIDE_YEARS = "v NOT BETWEEN DATE '0001-01-01' AND DATE '9999-12-31'"  # Python knows no such date

"""PostgreSQL's types as Arrow's: what to select, so that equal values are equal bytes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from reconpriv.columns.schema import quote_identifier
from reconpriv.sources.databases.postgresql_connection import Connection

_DIGITS = 38  # of the widest decimal that Arrow and DuckDB share
# Infinite dates and those before the year 1 become one past 9999, which is refused later on;
# otherwise the driver would turn them into some other date.
_DATE = (
    "CASE WHEN {0} BETWEEN '0001-01-01' AND '9999-12-31' OR {0} IS NULL THEN {0}"
    " ELSE '10000-01-01' END"
)
_MOMENT = (
    "CASE WHEN {0} >= '0001-01-01' AND {0} < '10000-01-01' OR {0} IS NULL THEN {0}"
    " ELSE '10000-01-01' END"
)
# Whatever the collation of a column, texts are equal if their bytes are.
_TEXT = '{0}::text COLLATE "C"'
_KNOWN = {
    "bool": (pa.bool_(), "{0}"),
    **dict.fromkeys(("int2", "int4", "int8"), (pa.int64(), "{0}::int8")),
    "oid": (pa.int64(), "{0}::int8"),
    # As the server shows it: a cast to text would add /32 to the address of a single machine.
    "inet": (pa.string(), _TEXT.format("abbrev({0})")),
    **dict.fromkeys(("float4", "float8"), (pa.float64(), "{0}::float8")),
    "date": (pa.date32(), _DATE),
    "time": (pa.time64("us"), "{0}"),
    "timestamp": (pa.timestamp("us"), _MOMENT),
    "timestamptz": (pa.timestamp("us", "UTC"), _MOMENT),
    **dict.fromkeys(("uuid", "cidr", "macaddr", "macaddr8", "char", "name"), (pa.string(), _TEXT)),
}
_NUMBER = "nullif({0}, 'NaN')"


@dataclass(frozen=True)
class PostgresColumn:
    """A column: what to select for it, and what that is in Arrow."""

    name: str
    kind: pa.DataType
    expression: str
    open_number: bool = False  # a numeric whose digits are only known from its values


def describe_column(
    name: str, type_name: str, type_kind: str, category: str, modifier: int
) -> PostgresColumn:
    """What a column gives; nested and binary values as bytes, which cannot be published."""
    quoted = quote_identifier(name)
    if type_name == "numeric":
        return _numeric(name, quoted, modifier)
    if type_name in _KNOWN:
        kind, pattern = _KNOWN[type_name]
        return PostgresColumn(name, kind, pattern.format(quoted))
    if category == "S" or type_kind == "e":
        return PostgresColumn(name, pa.string(), _TEXT.format(quoted))
    if type_name == "bytea":
        return PostgresColumn(name, pa.binary(), quoted)
    return PostgresColumn(name, pa.binary(), f"convert_to({quoted}::text, 'UTF8')")


def _numeric(name: str, quoted: str, modifier: int) -> PostgresColumn:
    """numeric(p, s) as a decimal; without p and s, or with too many digits, by its values."""
    expression = f"{_NUMBER.format(quoted)}::text"
    if modifier >= 0:
        packed = modifier - 4
        precision, scale = packed >> 16, ((packed & 0x7FF) ^ 1024) - 1024
        # numeric(3, 5) is .00xxx, numeric(3, -2) is xxx00.
        digits = max(precision, scale) if scale >= 0 else precision - scale
        if digits <= _DIGITS:
            return PostgresColumn(name, pa.decimal128(digits, max(scale, 0)), expression)
    return PostgresColumn(name, pa.decimal128(_DIGITS, 0), expression, open_number=True)


def fitted_numbers(
    columns: Sequence[PostgresColumn], relation: str, connection: Connection
) -> list[PostgresColumn]:
    """Give numbers of any length the type that all their values fit; otherwise they stay text."""
    unknown = [column for column in columns if column.open_number]
    if not unknown:
        return list(columns)
    facts = []
    for column in unknown:
        value = quote_identifier(column.name)
        finite = f"FILTER (WHERE {value}::text !~ '[Ny]')"  # neither NaN nor infinity
        facts += [
            f"max(min_scale({value})) {finite}",
            f"max(length(trunc(abs({value}))::text)) {finite}",
            f"count(*) FILTER (WHERE {value}::text ~ 'y')",
        ]
    (row,) = connection.ask(f"SELECT {', '.join(facts)} FROM {relation}")
    fitted = {
        column.name: _fitting(column, *row[i * 3 : i * 3 + 3]) for i, column in enumerate(unknown)
    }
    return [fitted.get(column.name, column) for column in columns]


def _fitting(column: PostgresColumn, scale: Any, digits: Any, infinite: int) -> PostgresColumn:
    if infinite or (digits or 0) + (scale or 0) > _DIGITS:
        # Trailing zeros are not part of a number's value, so they are not part of its text.
        value = f"trim_scale({_NUMBER.format(quote_identifier(column.name))})"
        return replace(column, kind=pa.string(), expression=_TEXT.format(value))
    value = f"round({_NUMBER.format(quote_identifier(column.name))}, {scale or 0})"
    return replace(column, kind=pa.decimal128(_DIGITS, scale or 0), expression=f"{value}::text")

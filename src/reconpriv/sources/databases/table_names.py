"""Names of tables as they are written in SQL: schema.table, "Odd Names" in double quotes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from reconpriv.columns.schema import quote_identifier
from reconpriv.errors import InputError
from reconpriv.messages.nearest import nearest_name
from reconpriv.messages.redaction import shown_path
from reconpriv.messages.remedies import Advice, Control, Remedy

_PART = re.compile(r'\s*(?:"((?:[^"]|"")+)"|([^".]+))\s*(\.|$)')
_SHOWN = 20
_MAIN = "main"


@dataclass(frozen=True)
class TableName:
    """A table, in a schema if one was named; as written, and in PostgreSQL's lower case."""

    schema: str | None
    table: str
    folded_schema: str | None
    folded_table: str


def parse_table_name(text: str) -> TableName:
    """Split a name at the dots outside quotes."""
    parts: list[tuple[str, str]] = []
    at = 0
    while found := _PART.match(text, at):
        quoted, plain, dot = found.groups()
        name = quoted.replace('""', '"') if quoted else plain.strip()
        parts.append((name, name if quoted else name.lower()))
        at = found.end()
        if not dot:
            break
    if at != len(text) or not 1 <= len(parts) <= 2 or text.endswith(".") or not all(parts[-1]):
        raise InputError(
            f"{shown_path(text)!r} is not the name of a table.",
            hint='Write table or schema.table, and odd names in double quotes: "My Schema".People.',
        )
    schema, folded = parts[0] if len(parts) == 2 else (None, None)
    return TableName(schema, parts[-1][0], folded, parts[-1][1])


def quoted_name(schema: str | None, table: str) -> str:
    """A table in SQL, in its schema if there is one."""
    return ".".join(quote_identifier(part) for part in (schema, table) if part is not None)


def shown_name(name: str, schema: str | None = None) -> str:
    """A name as it must be written: in double quotes unless it is plain."""
    plain = re.fullmatch(r"[a-z_][a-z0-9_]*", name)
    before = "" if schema is None else f"{shown_name(schema)}."
    return before + (name if plain else quote_identifier(name))


def find_table(table: str | None, known: Sequence[tuple[str, str]]) -> tuple[str, str]:
    """The schema and name of a table of a file, in which upper and lower case are the same."""
    shown = [shown_name(name, None if place == _MAIN else place) for place, name in known]
    if table is None:
        raise no_table_named(shown)
    asked = parse_table_name(table)
    wanted = (asked.schema or _MAIN).lower(), asked.table.lower()
    for place, name in known:
        if (place.lower(), name.lower()) == wanted:
            return place, name
    raise no_such_table(table, shown)


def no_table_named(tables: Sequence[str]) -> InputError:
    """No table was named: list the tables."""
    name_it = Remedy("name it with {}", Control.TABLE)
    return InputError("Which table of the database?", hint=Advice(name_it, _list(tables)))


def no_such_table(name: str, tables: Sequence[str]) -> InputError:
    """The table is not there: name the nearest, or list the tables."""
    plain = {table.replace('"', "").lower(): table for table in tables}
    last = {key.rsplit(".", 1)[-1]: table for key, table in plain.items()}
    asked = name.replace('"', "").lower()
    near = nearest_name(asked, plain)
    near_last = nearest_name(asked.rsplit(".", 1)[-1], last)
    found = plain[near] if near else last[near_last] if near_last else None
    hint = f"Did you mean {found}?" if found else _list(tables)
    return InputError(f"The database has no table {shown_path(name)}.", hint=hint)


def _list(tables: Sequence[str]) -> str:
    if not tables:
        return "It has none that you may read."
    more = f" and {len(tables) - _SHOWN:,} more" if len(tables) > _SHOWN else ""
    return f"It has: {', '.join(tables[:_SHOWN])}{more}."

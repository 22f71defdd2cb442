"""Column names and texts as a person writes them in SQL."""

from __future__ import annotations

import re

from reconpriv.columns.schema import quote_identifier

_RESERVED = (
    "all analyze and any array as asc asymmetric begin between both by case cast check"
    " collate column constraint create cross current_date current_time current_timestamp"
    " default delete desc distinct drop else end except exists false fetch filter for foreign"
    " from full grant group having ilike in index initially inner insert intersect interval"
    " into is isnull join key lateral leading left like limit natural not notnull null offset"
    " on only or order outer over partition placing primary qualify references returning right"
    " row select set show some symmetric table then to trailing true union unique update using"
    " values variadic view when where window with"
)


def written_name(column: str) -> str:
    """A column name for SQL, quoted only if necessary."""
    plain = column.isascii() and column.isidentifier() and column.lower() not in _RESERVED.split()
    return column if plain else quote_identifier(column)


def written_text(text: str) -> str:
    """A text literal for SQL."""
    return "'" + text.replace("'", "''") + "'"


# A text literal, or a quoted name.
_QUOTED = re.compile(r"""'(?:[^']|'')*'|"((?:[^"]|"")*)\"""")


def quoted_names(sql: str) -> set[str]:
    """The quoted names in a condition: its columns, once it is parsed."""
    found = (one[1] for one in _QUOTED.finditer(sql))
    return {name.replace('""', '"') for name in found if name is not None}


def written_condition(sql: str) -> str:
    """A condition as a person writes it: names are quoted only where necessary."""
    return _QUOTED.sub(
        lambda found: found[0] if found[1] is None else written_name(found[1].replace('""', '"')),
        sql,
    )

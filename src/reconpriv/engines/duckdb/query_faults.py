"""What DuckDB finds wrong with a query, in our own words.

Its connections are opened with ``errors_as_json``, so that what went wrong, and where, can be
extracted instead of quoted: DuckDB's text may hold values of the table, and refers to what was
built around the user's words.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from reconpriv.messages.nearest import nearest_name, sql_column_hint

JSON_ERRORS = {"errors_as_json": "true"}

_TYPES = (
    (r"(U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?|INTEGER_LITERAL|U?INT\d+)", "a whole number"),
    (r"(DECIMAL.*|DOUBLE|FLOAT|REAL|BIGNUM)", "a number"),
    (r"(VARCHAR|STRING_LITERAL|ENUM.*|CHAR)", "text"),
    (r"BOOL(EAN)?", "true or false"),
    (r"DATE", "a date"),
    (r"TIMESTAMP.*", "a moment"),
    (r"TIME.*", "a time of day"),
    (r"INTERVAL", "a span of time"),
    (r"BLOB", "bytes"),
    (r'"?NULL"?', "a missing value"),
    (r".*\[\d*\]", "a list"),
    (r"(STRUCT|MAP).*", "a structure"),
)
_OPERATORS = {"~~": "LIKE", "!~~": "NOT LIKE", "~~*": "ILIKE", "!~~*": "NOT ILIKE"}
_ONE_TYPE = "Use values of one type."
_MIXED = "{types[0]} and {types[1]} are mixed"
_UNGROUPED = "column {0!r} is neither in GROUP BY nor inside an aggregate function"
_NO_COLUMN = "there is no column {0!r}"
# Patterns in what DuckDB says, the sentence, which may name groups or their types, and the hint.
_BINDER = (
    (
        r"Cannot compare values of type (.+?) and type (.+?)(?: - |$)",
        "{types[0]} cannot be compared with {types[1]}",
        _ONE_TYPE,
    ),
    (r"Cannot mix values of type (.+?) and (.+?) in", _MIXED, _ONE_TYPE),
    (r"Cannot combine types of (.+?) and (.+?)(?: - |$)", _MIXED, _ONE_TYPE),
    (r'column "(.+?)" must appear', _UNGROUPED, ""),
    (r'column "(.+?)" in (?:EXCLUDE|REPLACE|RENAME) list', _NO_COLUMN, ""),
    (r'Referenced column "(.+?)"', _NO_COLUMN, ""),
    (r'Referenced table "(.+?)" not found', "there is no table {0!r}", ""),
    ("same number of result columns", "its parts have different numbers of columns", ""),
    ("Subquery returns", "a subquery in place of a value returns more than one column", ""),
    ("cannot be nested", "an aggregate function is inside another", ""),
    ("cannot contain aggregates", "an aggregate function is in WHERE; use HAVING", ""),
    ("cannot be negative", "LIMIT and OFFSET cannot be negative", ""),
    ("cannot contain window functions", "a window function is where none is allowed", ""),
    ("UNNEST", "UNNEST takes a list", ""),
    ("Ambiguous reference", "a column's name is ambiguous", "Put its table and a dot before it."),
    ("Duplicate alias", "two tables have the same name", "Give one of them another with AS."),
    ("", "DuckDB cannot make sense of it", ""),
)


@dataclass(frozen=True)
class Fault:
    """A failed query: what is wrong, what may help, and where in the text (in bytes)."""

    what: str
    hint: str = ""
    position: int | None = None


def details(message: str) -> dict[str, str]:
    """The parts of DuckDB's message; its kind and text if it is not JSON."""
    kind, _, rest = message.partition(" Error: ")
    found = {"exception_type": kind, "exception_message": rest}
    with suppress(ValueError):
        said = json.loads(rest)
        found |= {name: str(part) for name, part in said.items()} if isinstance(said, dict) else {}
    return found


def fault(message: str, columns: Sequence[str] = (), table: str = "input") -> Fault | None:
    """What is wrong with the query itself; None if it is something else, such as the file.

    ``columns`` are those that the query may name, ``table`` is what its table is called.
    """
    found = details(message)
    words, place = _words(found, columns, table), found.get("position", "")
    return None if words is None else Fault(*words, int(place) if place.isdigit() else None)


def _words(found: dict[str, str], columns: Sequence[str], table: str) -> tuple[str, str] | None:
    message = found["exception_message"]
    candidates = [one for one in found.get("candidates", "").split(",") if one]
    if found.get("error_subtype") == "COLUMN_NOT_FOUND":
        name = found.get("name", "")
        return _NO_COLUMN.format(name), sql_column_hint(name, columns or candidates)
    words: tuple[str, str] | None = None
    match found["exception_type"]:
        case "Catalog":
            words = _no_entry(found, candidates, table)
        case "Parser" if "unterminated" in message:
            words = "a quotation or comment is never closed", ""
        case "Parser":
            words = "it cannot be parsed", ""
        case "Conversion":
            words = conversion(message)
        case "Binder":
            words = _binder(message, columns or candidates)
        case "Invalid Input" if "parameters" in message:
            words = "placeholders such as ? or $1 cannot be filled", ""
        case "IO" | "HTTP" | "Permission":
            words = "a file or address that it names cannot be read", ""
    return words


def _no_entry(found: dict[str, str], candidates: Sequence[str], table: str) -> tuple[str, str]:
    named = re.findall(r"with name \"?([^\s\"]+)", found["exception_message"])
    name, entry = found.get("name") or "".join(named[:1]), found.get("type", "")
    if entry.startswith("Table") and "Function" not in entry:
        return f"there is no table {name!r}", f"The table is called {table}."
    what = "function" if "Function" in entry or "Macro" in entry else "type"
    near = nearest_name(name, candidates)
    return f"there is no {what} {name!r}", f"Did you mean {near!r}?" if near else ""


def _binder(message: str, columns: Sequence[str]) -> tuple[str, str]:
    called = re.search(r"argument types '(.+?)\((.*?)\)'\. You", message, re.I | re.S)
    for pattern, sentence, hint in _BINDER if called is None else ():
        if found := re.search(pattern, message, re.I | re.S):
            groups = found.groups()
            what = sentence.format(*groups, types=[type_words(one) for one in groups])
            return what, sql_column_hint(groups[0], columns) if sentence is _NO_COLUMN else hint
    assert called is not None  # the last pattern fits everything
    name = _OPERATORS.get(called[1], called[1].strip('"'))
    # Types are split at the commas outside brackets.
    kinds = [type_words(kind) for kind in re.split(r",\s*(?![^(]*\))", called[2]) if kind]
    taken = " and ".join(filter(None, [", ".join(kinds[:-1]), *kinds[-1:]])) or "no value at all"
    what = "function" if re.fullmatch(r"\w+", name) and name.islower() else "operator"
    hint = "Convert it first, for example with CAST(… AS VARCHAR)." if kinds else ""
    return f"the {what} {name!r} does not take {taken}", hint


def conversion(message: str) -> tuple[str, str]:
    """Say that a value is not of the expected type, without showing the value itself."""
    kind = re.search(r"\bto (?:type )?([A-Z][A-Z0-9_]*(?:\(.*?\))?)", message)
    column = re.search(r"source column (.+?)(?:\s|$)", message)
    what = f"a value of column {column[1]!r}" if column else "a value"
    if "date field" in message:
        return f"{what} is not a date", "Write dates as '2024-12-31'."
    if "timestamp field" in message:
        return f"{what} is not a timestamp", "Write timestamps as '2024-12-31 23:59:59'."
    wanted = type_words(kind[1]) if kind else "what it is compared with"
    return f"{what} cannot be read as {wanted}", "TRY_CAST makes such a value a missing one."


def type_words(name: str) -> str:
    """What a reader would call a value of a DuckDB type."""
    for pattern, words in _TYPES:
        if re.fullmatch(pattern, name.strip()):
            return words
    return "a value of another type"

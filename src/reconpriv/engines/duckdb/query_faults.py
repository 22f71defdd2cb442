"""What DuckDB finds wrong with a query, in our own words.

Its connections are opened with ``errors_as_json``, so that what went wrong, and where, can be
extracted instead of quoted: DuckDB's text may hold values of the table, and refers to what was
built around the user's words.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
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


@dataclass(frozen=True)
class Fault:
    """A failed query: what is wrong, what may help, and where in the text (in bytes)."""

    what: str
    hint: str = ""
    position: int | None = None


@dataclass(frozen=True)
class _Details:
    kind: str
    message: str
    subtype: str
    name: str
    entry: str
    candidates: tuple[str, ...]
    position: int | None


def details(message: str) -> _Details:
    """The parts of DuckDB's message; its kind and text if it is not JSON."""
    kind, _, rest = message.partition(" Error: ")
    try:
        said = json.loads(rest)
    except ValueError:
        said = {}
    if not isinstance(said, dict):
        said = {}
    position = str(said.get("position", ""))
    return _Details(
        kind=str(said.get("exception_type", kind)),
        message=str(said.get("exception_message", rest)),
        subtype=str(said.get("error_subtype", "")),
        name=str(said.get("name", "")),
        entry=str(said.get("type", "")),
        candidates=tuple(c for c in str(said.get("candidates", "")).split(",") if c),
        position=int(position) if position.isdigit() else None,
    )


def fault(message: str, columns: Sequence[str] = (), table: str = "input") -> Fault | None:
    """What is wrong with the query itself; None if it is something else, such as the file.

    ``columns`` are those that the query may name, ``table`` is what its table is called.
    """
    found = details(message)
    words = _words(found, columns, table)
    return None if words is None else Fault(*words, found.position)


def _words(found: _Details, columns: Sequence[str], table: str) -> tuple[str, str] | None:
    known = tuple(columns) or found.candidates
    if found.subtype == "COLUMN_NOT_FOUND":
        return no_such_column(found.name, known)
    match found.kind:
        case "Catalog":
            words = _no_entry(found, table)
        case "Parser":
            closed = "unterminated" not in found.message
            words = (
                "it cannot be parsed" if closed else "a quotation or comment is never closed",
                "",
            )
        case "Conversion":
            words = conversion(found.message)
        case "Binder":
            words = _binder(found.message, known)
        case "Invalid Input" if "parameters" in found.message:
            words = "placeholders such as ? or $1 cannot be filled", ""
        case "IO" | "HTTP" | "Permission":
            words = "a file or address that it names cannot be read", ""
        case _:
            return None
    return words


def no_such_column(name: str, known: Sequence[str]) -> tuple[str, str]:
    """Say that there is no such column, and hint at the nearest one that exists."""
    return f"there is no column {name!r}", sql_column_hint(name, known)


def _no_entry(found: _Details, table: str) -> tuple[str, str]:
    name = found.name or "".join(re.findall(r"with name \"?([^\s\"]+)", found.message)[:1])
    if found.entry.startswith("Table") and "Function" not in found.entry:
        return f"there is no table {name!r}", f"The table is called {table}."
    what = "function" if "Function" in found.entry or "Macro" in found.entry else "type"
    near = nearest_name(name, found.candidates)
    return f"there is no {what} {name!r}", f"Did you mean {near!r}?" if near else ""


def _binder(message: str, columns: Sequence[str]) -> tuple[str, str]:
    for pattern, words in _BINDER:
        found = re.search(pattern, message, re.I | re.S)
        if found:
            return words if isinstance(words, tuple) else words(found, columns)
    return "DuckDB cannot make sense of it", ""


_Builder = Callable[[re.Match[str], Sequence[str]], tuple[str, str]]


def _compared(found: re.Match[str], _: Sequence[str]) -> tuple[str, str]:
    left, right = type_words(found[1]), type_words(found[2])
    return f"{left} cannot be compared with {right}", "Compare values of one type."


def _mixed(found: re.Match[str], _: Sequence[str]) -> tuple[str, str]:
    left, right = type_words(found[1]), type_words(found[2])
    return f"{left} and {right} are mixed", "Use values of one type."


def _called(found: re.Match[str], _: Sequence[str]) -> tuple[str, str]:
    name = _OPERATORS.get(found[1], found[1].strip('"'))
    taken = _listed([type_words(kind) for kind in _split(found[2])])
    what = "function" if re.fullmatch(r"\w+", name) and name.islower() else "operator"
    hint = "Convert it first, for example with CAST(… AS VARCHAR)." if found[2] else ""
    return f"the {what} {name!r} does not take {taken}", hint


def _ungrouped(found: re.Match[str], _: Sequence[str]) -> tuple[str, str]:
    return f"column {found[1]!r} is neither in GROUP BY nor inside an aggregate function", ""


def _unlisted(found: re.Match[str], columns: Sequence[str]) -> tuple[str, str]:
    return no_such_column(found[1], columns)


def _no_table(found: re.Match[str], _: Sequence[str]) -> tuple[str, str]:
    return f"there is no table {found[1]!r}", ""


_BINDER: tuple[tuple[str, tuple[str, str] | _Builder], ...] = (
    (r"Cannot compare values of type (.+?) and type (.+?)(?: - |$)", _compared),
    (r"Cannot mix values of type (.+?) and (.+?) in", _mixed),
    (r"Cannot combine types of (.+?) and (.+?)(?: - |$)", _mixed),
    (r"argument types '(.+?)\((.*?)\)'\. You", _called),
    (r'column "(.+?)" must appear', _ungrouped),
    (r'column "(.+?)" in (?:EXCLUDE|REPLACE|RENAME) list', _unlisted),
    (r'Referenced column "(.+?)"', _unlisted),
    (r'Referenced table "(.+?)" not found', _no_table),
    ("same number of result columns", ("its parts have different numbers of columns", "")),
    ("Subquery returns", ("a subquery in place of a value returns more than one column", "")),
    ("cannot be nested", ("an aggregate function is inside another", "")),
    ("cannot contain aggregates", ("an aggregate function is in WHERE; use HAVING", "")),
    ("cannot be negative", ("LIMIT and OFFSET cannot be negative", "")),
    ("cannot contain window functions", ("a window function is where none is allowed", "")),
    ("UNNEST", ("UNNEST takes a list", "")),
    ("Ambiguous reference", ("a column's name is ambiguous", "Put its table and a dot before it.")),
    ("Duplicate alias", ("two tables have the same name", "Give one of them another with AS.")),
)


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


def _split(kinds: str) -> list[str]:
    """Split types at the commas outside brackets."""
    return [kind for kind in re.split(r",\s*(?![^(]*\))", kinds) if kind]


def _listed(words: list[str]) -> str:
    if not words:
        return "no value at all"
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)

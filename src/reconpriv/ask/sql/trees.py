"""Trees of SQL: parsing with sqlglot, and what is read off single nodes.

sqlglot is an extra, so whoever needs SQL imports this module when it is needed.
"""

from __future__ import annotations

import functools
import logging
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ParamSpec, TypeVar

from reconpriv.answers.figure import SHARE
from reconpriv.ask.sql.text import written_name
from reconpriv.columns.recoding import as_number
from reconpriv.columns.schema import Value
from reconpriv.engines.local import DIALECT
from reconpriv.errors import InputError
from reconpriv.extras import install_hint
from reconpriv.messages.one_line import offset_words, place_words

try:
    import sqlglot
    from sqlglot import exp as _exp
    from sqlglot.errors import SqlglotError
except ImportError:
    raise InputError(
        "Conditions in SQL need the package sqlglot.", hint=install_hint("query")
    ) from None

exp: Any = _exp

_P = ParamSpec("_P")
_R = TypeVar("_R")

SUPPORTED = (
    "Supported: SELECT [columns,] count(*), share(…), avg(…), sum(…), median(…) or quantile(…, q)"
    " FROM release [WHERE …] [GROUP BY …] [HAVING …] [ORDER BY …] [LIMIT …], where each condition"
    " joined by AND is about public columns only, or about the sensitive column only."
)

_QUOTED_NAMES = "A column whose name has blanks or signs in it goes in double quotes."

OPERATORS = {"EQ": "=", "NEQ": "<>", "LT": "<", "LTE": "<=", "GT": ">", "GTE": ">="}
NO_LITERAL = object()
_CAST = re.compile(r"CAST\(('(?:[^']|'')*') AS (DATE|TIMESTAMP|TIMESTAMPTZ)\)")
_TIMES = ("date", "timestamp", "timestampntz", "timestamptz")


def refused(what: str) -> InputError:
    """The error for SQL that a release cannot answer."""
    return InputError(f"{what}.", hint=SUPPORTED)


def not_too_deep(parse: Callable[_P, _R]) -> Callable[_P, _R]:
    """Refuse SQL that is nested more deeply than it can be walked through."""

    @functools.wraps(parse)
    def parsed(*args: _P.args, **settings: _P.kwargs) -> _R:
        try:
            return parse(*args, **settings)
        except RecursionError:
            raise refused("The SQL is nested too deeply") from None

    return parsed


def parse_statement(text: str, before: str = "") -> Any:
    """Parse SQL; ``before`` is put in front of what was typed and ignored in error positions."""
    # sqlglot logs what it does not know; the error below says it in one sentence.
    logging.getLogger("sqlglot").setLevel(logging.CRITICAL)
    try:
        trees = sqlglot.parse(before + text, dialect=DIALECT)
    except SqlglotError as error:
        what = f"The SQL cannot be parsed{_place(error, text, before)}."
        raise InputError(what, hint=f"{SUPPORTED} {_QUOTED_NAMES}") from None
    found = [tree for tree in trees if tree is not None]
    if len(found) != 1:
        raise refused("Only one statement can be answered at a time")
    for node in found[0].walk():
        node.pop_comments()
    return found[0]


def _place(error: Exception, text: str, before: str) -> str:
    """Where in the typed text sqlglot stopped, after a space; empty if it does not say."""
    details = (getattr(error, "errors", None) or [{}])[0]
    if details.get("col"):
        # sqlglot counts to the end of the unexpected token.
        begin = details["col"] - len(details.get("highlight") or " ") + 1
        line = details["line"] - before.count("\n")
        return f" {place_words(text, line, max(begin, 1))}" if line >= 1 else ""
    unclosed = re.match(r"Missing (\S+) from \d+:(\d+)", str(error.__cause__ or ""))
    if unclosed:
        at = offset_words(text, int(unclosed[2]) - len(before))
        return f" {at}: a quotation is never closed"
    return ""


def sql_of(node: Any) -> str:
    """A tree as text in the dialect of the engine."""
    return str(node.sql(dialect=DIALECT))


def conjuncts(tree: Any) -> list[Any]:
    """The parts of a condition that AND joins."""
    found, waiting = [], [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, exp.Paren) and isinstance(node.this, exp.And | exp.Paren):
            waiting.append(node.this)
        elif isinstance(node, exp.And):
            waiting += [node.right, node.left]
        else:
            found.append(node)
    return found


def is_share(node: Any) -> bool:
    """True if this is share(…), which sqlglot does not know."""
    return isinstance(node, exp.Anonymous) and str(node.this).lower() == SHARE


def literal_text(node: Any) -> tuple[str, bool] | None:
    """The text of a literal, with its sign, and whether it is quoted; None for anything else."""
    node = node.unnest()
    if isinstance(node, exp.Neg):
        found = literal_text(node.this)
        return None if found is None or found[1] else (f"-{found[0]}", False)
    return (str(node.this), bool(node.is_string)) if isinstance(node, exp.Literal) else None


def literal(node: Any) -> Any:
    """A text, number, truth value or, as its text, a time written as a literal."""
    node = node.unnest()
    if isinstance(node, exp.Cast) and node.is_type(*_TIMES):
        text = literal(node.this)
        if not isinstance(text, str):
            return NO_LITERAL
        return text.strip()[:10] if node.is_type("date") else text
    if isinstance(node, exp.Boolean):
        return bool(node.this)
    text, quoted = literal_text(node) or (None, False)
    found = text if quoted or text is None else as_number(text.removeprefix("--"))
    return NO_LITERAL if found is None else found


def shown_condition(node: Any) -> str:
    """A condition as its user may have written it: names are quoted only if they must be."""
    copy = node.copy()
    for name in copy.find_all(exp.Identifier):
        if written_name(str(name.this)) == name.this:
            name.set("quoted", False)
    return _CAST.sub(r"\2 \1", sql_of(copy))


def present(node: Any) -> Any:
    """The condition that an expression, or a condition, is not NULL."""
    inner = exp.Paren(this=node.copy())
    return exp.Not(this=exp.Is(this=inner, expression=exp.Null()))


def may_be_unknown(node: Any, known: Mapping[str, Sequence[Value]]) -> bool:
    """True if a condition may be neither true nor false, as one about a missing value is."""
    missing = {name.lower() for name, values in known.items() if None in values}
    sure = (
        exp.Predicate, exp.Connector, exp.Not, exp.Paren, exp.Neg, exp.Column, exp.Identifier,
        exp.Literal, exp.Boolean,
    )  # fmt: skip
    return any(
        not isinstance(one, sure) or (isinstance(one, exp.Column) and one.name.lower() in missing)
        for one in node.walk()
    )

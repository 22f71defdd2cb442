"""The supported count queries, parsed from SQL with sqlglot.

A query counts records under a condition. Each conjunct of the condition is either about public
attributes alone (any boolean expression) or about the sensitive attribute alone (a set of values).
"""

from __future__ import annotations

import functools
import logging
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ParamSpec, TypeVar

from reconpriv.engines.local import DIALECT
from reconpriv.errors import InputError
from reconpriv.extras import install_hint
from reconpriv.messages.nearest import nearest_name, sql_column_hint
from reconpriv.messages.positions import offset_words, place_words
from reconpriv.queries.aggregates import (
    Aggregate,
    FigureReader,
    Having,
    OrderBy,
    is_share,
    settled_having,
    settled_order,
)
from reconpriv.queries.bins import misused
from reconpriv.queries.comparisons import settle_comparisons
from reconpriv.queries.estimate import COUNT
from reconpriv.queries.figure import QUANTILE
from reconpriv.queries.grouping import Shape, ShapeReader
from reconpriv.queries.rewrite import may_be_unknown, present, rewrite_recoded, shown_condition
from reconpriv.schema import Kind, Schema, Value

_P = ParamSpec("_P")
_R = TypeVar("_R")

SUPPORTED = (
    "Supported: SELECT [columns,] count(*), share(…), avg(…), sum(…), median(…) or quantile(…, q)"
    " FROM release [WHERE …] [GROUP BY …] [HAVING …] [ORDER BY …] [LIMIT …], where each condition"
    " joined by AND is about public columns only, or about the sensitive column only."
)

# A condition is parsed on a separate line, so positions in it need no shift.
_BEFORE_CONDITION = "SELECT count(*) FROM release WHERE\n"
_CONDITION_CLAUSES = ("expressions", "from_", "from", "where")
_QUERY_CLAUSES = (*_CONDITION_CLAUSES, "group", "order", "limit", "offset")

_CLAUSES = {"joins": "A join", "with_": "WITH", "laterals": "A lateral join"}

# Functions whose value does not depend on the record alone.
_VOLATILE = (
    "Rand", "Randn", "Uuid", "CurrentDate", "CurrentDatetime", "CurrentTime", "CurrentTimestamp",
    "CurrentUser", "Localtime", "Localtimestamp",
)  # fmt: skip


@dataclass(frozen=True)
class Condition:
    """A condition split into what it asks of public attributes and of the sensitive one.

    ``equalities`` holds the public part if it consists only of column = value; ``public`` and
    ``sensitive`` are SQL with every column name checked and quoted.
    """

    public: tuple[str, ...] = ()
    sensitive: tuple[str, ...] = ()
    equalities: dict[str, Value] | None = field(default_factory=dict)
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True)
class CountQuery:
    """A parsed SELECT."""

    text: str
    condition: Condition
    shape: Shape


@dataclass(frozen=True)
class Argument:
    """What is averaged: a column, or an expression over public columns in SQL."""

    text: str
    column: str | None
    expression: str | None


@dataclass(frozen=True)
class FigureAsked:
    """One figure of a SELECT with its columns resolved: see :mod:`queries.aggregates`."""

    kind: str
    name: str
    argument: Argument | None
    condition: Condition | None
    filtered: Condition | None
    share: float
    alias: str = ""
    summed: bool = False


@dataclass(frozen=True)
class FigureQuery:
    """A parsed SELECT of one figure or several.

    Its rows are those of ``count``; the first ``shown`` figures are shown.
    """

    count: CountQuery
    figures: tuple[FigureAsked, ...]
    shown: int
    having: tuple[Having, ...]
    order: tuple[OrderBy, ...]

    @property
    def counts(self) -> bool:
        """Whether it asks for nothing but the number of records."""
        one = self.figures[0]
        return len(self.figures) == 1 and one.kind == COUNT and not (one.condition or one.filtered)


def _not_too_deep(parse: Callable[_P, _R]) -> Callable[_P, _R]:
    """Refuse SQL that is nested more deeply than it can be walked through."""

    @functools.wraps(parse)
    def parsed(*args: _P.args, **settings: _P.kwargs) -> _R:
        try:
            return parse(*args, **settings)
        except RecursionError:
            raise _refused("The SQL is nested too deeply") from None

    return parsed


@_not_too_deep
def parse_figures(
    text: str, schema: Schema, known: Mapping[str, Sequence[Value]], *, whole_bins: bool = False
) -> FigureQuery:
    """Parse a whole SELECT; refuse what is outside the supported form."""
    exp, tree = _parse_select(text)
    _check_nodes(exp, tree, shares=True)
    figures = FigureReader(exp, tree, _refused).read()
    count = _count_query(exp, tree, text, schema, known, whole_bins)

    kinds = {column.name.lower(): column.kind for column in schema.columns}

    def condition(node: Any) -> Condition:
        inner = node.unnest()
        column = isinstance(inner, exp.Column)
        if column and kinds.get(inner.name.lower(), Kind.BOOLEAN) is not Kind.BOOLEAN:
            raise _refused(f"{shown_condition(exp, inner)!r} is a column, not a condition")
        return _condition(exp, node, schema, known, whole_bins)

    def argument(node: Any) -> Argument:
        inner = node.unnest()
        shown = shown_condition(exp, inner)
        holder = exp.Paren(this=inner.copy())
        names = {_quote_column(exp, column, schema) for column in holder.find_all(exp.Column)}
        if isinstance(inner, exp.Column):
            return Argument(shown, next(iter(names)), None)
        if not names:
            raise _refused(f"{shown!r} names no column")
        if schema.sensitive.name in names:
            raise InputError(
                f"{shown!r} computes with the sensitive column, which can only be averaged as it"
                " is.",
                hint="Give scores for its values instead.",
            )
        for recoding in filter(None, map(schema.recoding, sorted(names))):
            raise misused(recoding, shown)
        settle_comparisons(exp, holder, schema, known)
        return Argument(shown, None, holder.sql(dialect=DIALECT))

    def filtered(one: Aggregate) -> Condition | None:
        every = [one.filtered] if one.filtered is not None else []
        own = one.condition if one.decided else None
        if own is not None and one.summed and condition(own).sensitive:
            own = None  # whether there is anything to add up is not known anyway
        if own is not None and may_be_unknown(exp, own, known):
            every.append(present(exp, own))
        return condition(exp.and_(*every, wrap=True)) if every else None

    aggregates = tuple(
        FigureAsked(
            one.kind,
            one.name,
            None if one.argument is None else argument(one.argument),
            None if one.condition is None else condition(one.condition),
            filtered(one),
            one.share,
            one.alias,
            one.summed,
        )
        for one in figures.aggregates
    )
    quantiles = [
        one.argument.column if one.argument and one.kind == QUANTILE else None for one in aggregates
    ]
    having = tuple(
        settled_having(one, quantiles[one.aggregate], schema, _refused, whole_bins=whole_bins)
        for one in figures.having
    )
    order = settled_order(figures, count.shape)
    return FigureQuery(count, aggregates, figures.shown, having, order)


def _parse_select(text: str) -> tuple[Any, Any]:
    if not text.strip():
        raise _refused("The query is empty")
    exp, tree = _parse(text)
    if not isinstance(tree, exp.Select):
        raise _refused("Only a SELECT can be answered")
    return exp, tree


def _count_query(
    exp: Any,
    tree: Any,
    text: str,
    schema: Schema,
    known: Mapping[str, Sequence[Value]],
    whole_bins: bool,
) -> CountQuery:
    _check_shape(exp, tree, _QUERY_CLAUSES)

    def settle(node: Any) -> set[str]:
        names = {_quote_column(exp, column, schema) for column in node.find_all(exp.Column)}
        if any(map(schema.recoding, names)):
            return names  # bins and groups can be grouped by only as they are
        settle_comparisons(exp, node, schema, known)
        return names

    shape = ShapeReader(exp, tree, schema, settle, _refused).read()
    where = tree.args.get("where")
    condition = Condition()
    if where:
        condition = _condition(exp, where.this, schema, known, whole_bins)
    return CountQuery(text.strip().rstrip(";"), condition, shape)


@_not_too_deep
def parse_condition(
    text: str, schema: Schema, known: Mapping[str, Sequence[Value]], *, whole_bins: bool = False
) -> Condition:
    """Parse what follows WHERE."""
    if not isinstance(text, str):
        raise InputError(
            f"A condition is text in SQL; got {type(text).__name__}.",
            hint="Name columns with their values as arguments, for example sex='Female'.",
        )
    if not text.strip():
        raise InputError("The condition is empty.", hint="For example \"sex = 'Female'\".")
    exp, tree = _parse(text, _BEFORE_CONDITION)
    if not isinstance(tree, exp.Select) or any(
        tree.args.get(clause) for clause in _QUERY_CLAUSES if clause not in _CONDITION_CLAUSES
    ):
        raise _refused("A condition is only what comes after WHERE")
    _check_shape(exp, tree, _CONDITION_CLAUSES)
    return _condition(exp, tree.args["where"].this, schema, known, whole_bins)


def _parse(text: str, before: str = "") -> tuple[Any, Any]:
    """Parse SQL; ``before`` is put in front of what was typed and ignored in error positions."""
    try:
        import sqlglot  # noqa: PLC0415 - an extra
        from sqlglot import exp  # noqa: PLC0415
        from sqlglot.errors import SqlglotError  # noqa: PLC0415
    except ImportError:
        raise InputError(
            "Conditions in SQL need the package sqlglot.", hint=install_hint("query")
        ) from None
    # sqlglot logs what it does not know; the error below says it in one sentence.
    logging.getLogger("sqlglot").setLevel(logging.CRITICAL)
    try:
        trees = sqlglot.parse(before + text, dialect=DIALECT)
    except SqlglotError as error:
        raise _refused(f"The SQL cannot be parsed{_place(error, text, before)}") from None
    found = [tree for tree in trees if tree is not None]
    if len(found) != 1:
        raise _refused("Only one statement can be answered at a time")
    for node in found[0].walk():
        node.pop_comments()
    return exp, found[0]


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


def _check_shape(exp: Any, tree: Any, clauses: Sequence[str]) -> None:
    """Require a single table called release, and no clause that a count cannot use."""
    for clause, content in tree.args.items():
        if content and clause not in clauses:
            raise _refused(
                f"{_CLAUSES.get(clause, clause.upper().replace('_', ' ').strip())} is not supported"
            )
    origin = tree.args.get("from_") or tree.args.get("from")
    table = origin.this if origin is not None else None
    if not isinstance(table, exp.Table) or table.name.lower() != "release":
        raise _refused("The table of a query is called release")
    if any(content for clause, content in table.args.items() if clause != "this"):
        raise _refused("FROM takes the name release and nothing else")
    _check_nodes(exp, tree)
    for node in tree.walk():
        if isinstance(node, exp.AggFunc) and not _is_the_count(exp, node):
            raise _refused(f"{node.sql(dialect=DIALECT)!r} cannot be estimated from a release")


def _check_nodes(exp: Any, tree: Any, *, shares: bool = False) -> None:
    """Refuse what does not depend on the record alone; ``shares`` lets share(…) pass."""
    volatile = tuple(getattr(exp, name) for name in _VOLATILE if hasattr(exp, name))
    forbidden = (
        exp.Subquery, exp.Select, exp.Window, exp.Anonymous, exp.Placeholder, *volatile
    )  # fmt: skip
    for node in tree.walk():
        if node is not tree and isinstance(node, forbidden):
            if shares and is_share(exp, node):
                continue
            raise _refused(f"{node.sql(dialect=DIALECT)!r} is not supported")


def _is_the_count(exp: Any, node: Any) -> bool:
    """Whether this is the count(*) of the SELECT itself."""
    counts = isinstance(node, exp.Count) and isinstance(node.this, exp.Star)
    return counts and isinstance(node.parent, exp.Select)


def _condition(
    exp: Any, tree: Any, schema: Schema, known: Mapping[str, Sequence[Value]], whole_bins: bool
) -> Condition:
    public: list[str] = []
    sensitive: list[str] = []
    equalities: dict[str, Value] | None = {}
    remarks: list[str] = []
    for written in _conjuncts(exp, tree):
        names = {_quote_column(exp, node, schema) for node in written.find_all(exp.Column)}
        conjunct, said = rewrite_recoded(exp, written, schema, known, whole_bins=whole_bins)
        remarks += said
        settle_comparisons(exp, conjunct, schema, known)
        sql = conjunct.sql(dialect=DIALECT)
        if schema.sensitive.name in names and len(names) > 1:
            raise _refused(
                f"The condition {shown_condition(exp, written)} mixes the sensitive column with"
                " public ones, so it cannot be reconstructed"
            )
        if schema.sensitive.name in names:
            sensitive.append(sql)
            continue
        public.append(sql)
        equality = _equality(exp, conjunct, schema)
        if equality is None or equalities is None or equality[0] in equalities:
            equalities = None
        else:
            equalities[equality[0]] = equality[1]
    return Condition(tuple(public), tuple(sensitive), equalities, tuple(dict.fromkeys(remarks)))


def _conjuncts(exp: Any, tree: Any) -> list[Any]:
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


def _quote_column(exp: Any, node: Any, schema: Schema) -> str:
    """Find the column that a name means, and spell it as the release does."""
    names = [column.name for column in schema.columns]
    if node.args.get("table") is not None and node.table.lower() != "release":
        raise _refused(f"There is no table {node.table!r}")
    wanted = str(node.name)
    if wanted not in names:
        folded = [name for name in names if name.lower() == wanted.lower()]
        if len(folded) != 1:
            raise _meant_as_text(exp, node, names) or unknown_column(wanted, names)
        wanted = folded[0]
    node.set("this", exp.to_identifier(wanted, quoted=True))
    node.set("table", None)
    return wanted


def _meant_as_text(exp: Any, node: Any, names: Sequence[str]) -> InputError | None:
    """The error for a text in the quotes of a name, or in none, that a column is compared with."""
    known = {name.lower() for name in names}
    compared = node.parent
    if not isinstance(compared, exp.Predicate) or not any(
        one.name.lower() in known for one in compared.find_all(exp.Column)
    ):
        return None
    if not node.this.args.get("quoted") and nearest_name(node.name, names) is not None:
        return None
    meant = compared.copy()
    for one in list(meant.find_all(exp.Column)):
        if one.name.lower() not in known:
            one.replace(exp.Literal.string(one.name))
    return InputError(
        f"The release has no column {node.name!r}; a text goes in single quotes.",
        hint=f"Write: {shown_condition(exp, meant)}",
    )


def unknown_column(name: str, names: Sequence[str]) -> InputError:
    """The error for a column that does not exist, suggesting the nearest one."""
    return InputError(f"The release has no column {name!r}.", hint=sql_column_hint(name, names))


def _equality(exp: Any, node: Any, schema: Schema) -> tuple[str, Value] | None:
    """(column, value) of a plain column = literal; None for anything else."""
    if isinstance(node, exp.Paren):
        return _equality(exp, node.this, schema)
    if not isinstance(node, exp.EQ):
        return None
    left, right = node.left, node.right
    if isinstance(left, exp.Literal):
        left, right = right, left
    if not (isinstance(left, exp.Column) and isinstance(right, exp.Literal)):
        return None
    kind = next(column.kind for column in schema.columns if column.name == left.name)
    if kind is Kind.STRING and right.is_string:
        return left.name, right.this
    if kind is Kind.INTEGER and not right.is_string and right.this.isdigit():
        return left.name, int(right.this)
    return None


def _refused(what: str) -> InputError:
    return InputError(f"{what}.", hint=SUPPORTED)

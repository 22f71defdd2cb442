"""The count queries that are understood, parsed from SQL with sqlglot.

A query counts records under a condition. Each conjunct of the condition speaks either of public
attributes alone (any boolean expression) or of the sensitive attribute alone (a set of values).
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from reconpriv.errors import InputError
from reconpriv.extras import install_hint
from reconpriv.nearest import nearest_name
from reconpriv.schema import Column, Kind, Schema, Value

SUPPORTED = (
    "Supported: SELECT [columns,] count(*) FROM release [WHERE …] [GROUP BY columns], where each"
    " condition joined by AND is about public columns only, or about the sensitive column only."
)


_CLAUSES = {"joins": "A join", "with_": "WITH", "laterals": "A lateral join"}

# Functions whose value does not depend on the record alone.
_VOLATILE = (
    "Rand", "Randn", "Uuid", "CurrentDate", "CurrentDatetime", "CurrentTime", "CurrentTimestamp",
    "CurrentUser", "Localtime", "Localtimestamp",
)  # fmt: skip


@dataclass(frozen=True)
class Condition:
    """A condition taken apart: what it asks of public attributes and of the sensitive one.

    ``equalities`` holds the public part where it is nothing but column = value; ``public`` and
    ``sensitive`` are SQL with every column name checked and quoted.
    """

    public: tuple[str, ...] = ()
    sensitive: tuple[str, ...] = ()
    equalities: dict[str, Value] | None = field(default_factory=dict)


@dataclass(frozen=True)
class CountQuery:
    """A parsed SELECT."""

    text: str
    condition: Condition
    by: tuple[str, ...] = ()


def parse_query(text: str, schema: Schema, known: Mapping[str, Sequence[Value]]) -> CountQuery:
    """Parse a whole SELECT; refuse what is outside the supported form."""
    exp, tree = _parse(text)
    if not isinstance(tree, exp.Select):
        raise _refused("Only a SELECT can be answered")
    _check_shape(exp, tree)
    grouped = tree.args.get("group")
    by = [_column_name(exp, node, schema) for node in grouped.expressions] if grouped else []
    if grouped and any(v for k, v in grouped.args.items() if k != "expressions"):
        raise _refused("Only a plain GROUP BY of columns can be answered")
    check_distinct(by)
    counted = 0
    for projection in tree.expressions:
        node = projection.unalias()
        if isinstance(node, exp.Count) and isinstance(node.this, exp.Star):
            counted += 1
        elif isinstance(node, exp.Column):
            name = _column_name(exp, node, schema)
            if name not in by:
                raise _refused(f"Column {name!r} is selected but not in GROUP BY")
        else:
            raise _refused(f"{node.sql(dialect='duckdb')!r} cannot be estimated from a release")
    if counted != 1:
        raise _refused("A query selects count(*) once")
    where = tree.args.get("where")
    condition = _condition(exp, where.this, schema, known) if where else Condition()
    return CountQuery(text.strip().rstrip(";"), condition, tuple(by))


def parse_condition(text: str, schema: Schema, known: Mapping[str, Sequence[Value]]) -> Condition:
    """Parse what stands after WHERE."""
    if not text.strip():
        raise InputError("The condition is empty.", hint="For example \"sex = 'Female'\".")
    exp, tree = _parse(f"SELECT count(*) FROM release WHERE {text}")
    if not isinstance(tree, exp.Select) or tree.args.get("group"):
        raise _refused("A condition holds nothing but what stands after WHERE")
    _check_shape(exp, tree)
    return _condition(exp, tree.args["where"].this, schema, known)


def _parse(text: str) -> tuple[Any, Any]:
    try:
        import sqlglot  # noqa: PLC0415 - an extra
        from sqlglot import exp  # noqa: PLC0415
        from sqlglot.errors import SqlglotError  # noqa: PLC0415
    except ImportError:
        raise InputError(
            "Conditions in SQL need the package sqlglot.",
            hint=install_hint("query"),
        ) from None
    # sqlglot logs what it does not know; the refusal below says it in one sentence.
    logging.getLogger("sqlglot").setLevel(logging.CRITICAL)
    try:
        trees = sqlglot.parse(text, dialect="duckdb")
    except SqlglotError as error:
        details = getattr(error, "errors", None) or [{}]
        where = details[0].get("col")
        place = f" near character {where}" if where else ""
        raise _refused(f"The SQL cannot be parsed{place}") from None
    trees = [tree for tree in trees if tree is not None]
    if len(trees) != 1:
        raise _refused("One statement is answered at a time")
    return exp, trees[0]


def _check_shape(exp: Any, tree: Any) -> None:
    """One table called release, and none of the clauses that a count has no use for."""
    for clause, content in tree.args.items():
        if content and clause not in ("expressions", "from_", "from", "where", "group"):
            raise _refused(
                f"{_CLAUSES.get(clause, clause.upper().replace('_', ' ').strip())} is not supported"
            )
    origin = tree.args.get("from_") or tree.args.get("from")
    table = origin.this if origin is not None else None
    if not isinstance(table, exp.Table) or table.name.lower() != "release":
        raise _refused("A query is FROM release")
    if any(content for clause, content in table.args.items() if clause != "this"):
        raise _refused("A query is FROM release, plainly")
    volatile = tuple(getattr(exp, name) for name in _VOLATILE if hasattr(exp, name))
    forbidden = (
        exp.Subquery, exp.Select, exp.Window, exp.Anonymous, exp.Placeholder, *volatile
    )  # fmt: skip
    for node in tree.walk():
        if node is not tree and isinstance(node, forbidden):
            raise _refused(f"{node.sql(dialect='duckdb')!r} is not supported")
        if isinstance(node, exp.AggFunc) and not (
            isinstance(node, exp.Count) and node.parent_select is tree and node.depth <= 2
        ):
            raise _refused(f"{node.sql(dialect='duckdb')!r} cannot be estimated from a release")


def _condition(
    exp: Any, tree: Any, schema: Schema, known: Mapping[str, Sequence[Value]]
) -> Condition:
    public: list[str] = []
    sensitive: list[str] = []
    equalities: dict[str, Value] | None = {}
    for conjunct in _conjuncts(exp, tree):
        names = {_quote_column(exp, node, schema) for node in conjunct.find_all(exp.Column)}
        _check_values(exp, conjunct, schema, known)
        sql = conjunct.sql(dialect="duckdb")
        if schema.sensitive.name in names and len(names) > 1:
            raise _refused(
                f"The condition {sql!r} mixes the sensitive column with public ones, so it cannot"
                " be reconstructed"
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
    return Condition(tuple(public), tuple(sensitive), equalities)


def _conjuncts(exp: Any, node: Any) -> list[Any]:
    if isinstance(node, exp.Paren) and isinstance(node.this, exp.And | exp.Paren):
        return _conjuncts(exp, node.this)
    if isinstance(node, exp.And):
        return [*_conjuncts(exp, node.left), *_conjuncts(exp, node.right)]
    return [node]


def _column_name(exp: Any, node: Any, schema: Schema) -> str:
    if not isinstance(node, exp.Column):
        raise _refused(f"GROUP BY {node.sql(dialect='duckdb')!r} is not a column")
    return _quote_column(exp, node, schema)


def _quote_column(exp: Any, node: Any, schema: Schema) -> str:
    """Find the column a name means, and write it the way it is spelled in the release."""
    names = [column.name for column in schema.columns]
    if node.args.get("table") is not None and node.table.lower() != "release":
        raise _refused(f"There is no table {node.table!r}")
    wanted = str(node.name)
    if wanted not in names:
        folded = [name for name in names if name.lower() == wanted.lower()]
        if len(folded) != 1:
            raise unknown_column(wanted, names)
        wanted = folded[0]
    node.set("this", exp.to_identifier(wanted, quoted=True))
    node.set("table", None)
    return wanted


def check_distinct(by: Sequence[str]) -> None:
    """Refuse a column that is grouped by twice."""
    repeated = [name for i, name in enumerate(by) if name in by[:i]]
    if repeated:
        raise InputError(f"Column {repeated[0]!r} is grouped by twice.")


def unknown_column(name: str, names: Sequence[str]) -> InputError:
    """No such column, with the nearest one."""
    near = nearest_name(name, names)
    hint = f"Did you mean {near!r}?" if near else f"It has: {', '.join(names)}."
    return InputError(f"The release has no column {name!r}.", hint=hint)


_COMPARED = 10_000  # values that a slip is compared with


def unknown_value(column: str, value: Value, known: Sequence[Value]) -> InputError:
    """No such value, with the nearest one."""
    texts = [str(other) for other in itertools.islice(known, _COMPARED) if other is not None]
    near = nearest_name(str(value), texts)
    few = ", ".join(texts[:8]) + (", …" if len(texts) > 8 else "")
    hint = f"Did you mean {near!r}?" if near else f"Known: {few}."
    return InputError(f"Column {column!r} has no value {value!r}.", hint=hint)


def _check_values(
    exp: Any, conjunct: Any, schema: Schema, known: Mapping[str, Sequence[Value]]
) -> None:
    """A text that is compared with a column of texts must occur in it: else it is a slip."""
    columns = {column.name: column for column in schema.columns}
    for node in conjunct.find_all(exp.EQ, exp.NEQ, exp.In):
        others = node.expressions if isinstance(node, exp.In) else [node.right, node.left]
        targets = [node.this] if isinstance(node, exp.In) else [node.left, node.right]
        for target in targets:
            if not isinstance(target, exp.Column):
                continue
            column = columns[target.name]
            for other in others:
                if isinstance(other, exp.Literal):
                    _check_literal(column, other, known[column.name])


def _check_literal(column: Column, literal: Any, known: Sequence[Value]) -> None:
    value = literal.this
    if column.kind is Kind.STRING and literal.is_string and value not in known:
        raise unknown_value(column.name, value, known)
    if column.kind in (Kind.INTEGER, Kind.NUMBER):
        try:
            float(value)
        except ValueError:
            raise InputError(f"Column {column.name!r} holds numbers; {value!r} is none.") from None


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

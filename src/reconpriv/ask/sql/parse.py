"""Conditions in SQL, parsed with sqlglot.

Each conjunct is either about public attributes alone (any boolean expression) or about the
sensitive attribute alone (a set of values). Conditions on recoded columns are rewritten to the
labels that stand for them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from reconpriv.ask.bins import LabelTest, answer_test, mirrored, misused, opposite
from reconpriv.ask.comparisons import unknown_column
from reconpriv.ask.selections import Condition
from reconpriv.ask.sql.checks import settle_comparisons
from reconpriv.ask.sql.trees import (
    NO_LITERAL,
    OPERATORS,
    conjuncts,
    exp,
    is_share,
    literal,
    not_too_deep,
    parse_statement,
    refused,
    shown_condition,
    sql_of,
)
from reconpriv.columns.recoding import Recoding
from reconpriv.columns.schema import Kind, Schema, Value
from reconpriv.errors import InputError
from reconpriv.messages.nearest import nearest_name

# A condition is parsed on a separate line, so positions in it need no shift.
_BEFORE_CONDITION = "SELECT count(*) FROM release WHERE\n"
_CONDITION_CLAUSES = ("expressions", "from_", "from", "where")
QUERY_CLAUSES = (*_CONDITION_CLAUSES, "group", "having", "order", "limit", "offset")

_CLAUSES = {"joins": "A join", "with_": "WITH", "laterals": "A lateral join"}

# Functions whose value does not depend on the record alone.
_VOLATILE = (
    "Rand", "Randn", "Uuid", "CurrentDate", "CurrentDatetime", "CurrentTime", "CurrentTimestamp",
    "CurrentUser", "Localtime", "Localtimestamp",
)  # fmt: skip


@not_too_deep
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
    tree = parse_statement(text, _BEFORE_CONDITION)
    if not isinstance(tree, exp.Select) or any(
        tree.args.get(clause) for clause in QUERY_CLAUSES if clause not in _CONDITION_CLAUSES
    ):
        raise refused("A condition is only what comes after WHERE")
    check_shape(tree, _CONDITION_CLAUSES)
    return split_condition(tree.args["where"].this, schema, known, whole_bins)


def check_shape(tree: Any, clauses: Sequence[str]) -> None:
    """Require a single table called release, and no clause that a count cannot use."""
    for clause, content in tree.args.items():
        if content and clause not in clauses:
            raise refused(
                f"{_CLAUSES.get(clause, clause.upper().replace('_', ' ').strip())} is not supported"
            )
    origin = tree.args.get("from_") or tree.args.get("from")
    table = origin.this if origin is not None else None
    if not isinstance(table, exp.Table) or table.name.lower() != "release":
        raise refused("The table of a query is called release")
    if any(content for clause, content in table.args.items() if clause != "this"):
        raise refused("FROM takes the name release and nothing else")
    volatile = tuple(getattr(exp, name) for name in _VOLATILE if hasattr(exp, name))
    forbidden = (
        exp.Subquery, exp.Select, exp.Window, exp.Anonymous, exp.Placeholder, *volatile
    )  # fmt: skip
    for node in tree.walk():
        if node is not tree and isinstance(node, forbidden) and not is_share(node):
            raise refused(f"{sql_of(node)!r} is not supported")
    for clause in ("where", "group"):
        for node in tree.args[clause].walk() if tree.args.get(clause) else ():
            if isinstance(node, exp.AggFunc) or is_share(node):
                raise refused(f"{sql_of(node)!r} cannot be estimated from a release")


def split_condition(
    tree: Any, schema: Schema, known: Mapping[str, Sequence[Value]], whole_bins: bool
) -> Condition:
    """The conjuncts of a condition with their columns and values checked."""
    public: list[str] = []
    sensitive: list[str] = []
    equalities: dict[str, Value] | None = {}
    remarks: list[str] = []
    for written in conjuncts(tree):
        names = {quote_column(node, schema) for node in written.find_all(exp.Column)}
        conjunct, said = _rewritten(written, schema, known, whole_bins=whole_bins)
        remarks += said
        settle_comparisons(conjunct, schema, known)
        sql = sql_of(conjunct)
        if schema.sensitive.name in names and len(names) > 1:
            raise refused(
                f"The condition {shown_condition(written)} mixes the sensitive column with"
                " public ones, so it cannot be reconstructed"
            )
        if schema.sensitive.name in names:
            sensitive.append(sql)
            continue
        public.append(sql)
        equality = _equality(conjunct, schema)
        if equality is None or equalities is None or equality[0] in equalities:
            equalities = None
        else:
            equalities[equality[0]] = equality[1]
    return Condition(tuple(public), tuple(sensitive), equalities, tuple(dict.fromkeys(remarks)))


def quote_column(node: Any, schema: Schema) -> str:
    """Find the column that a name means, and spell it as the release does."""
    names = [column.name for column in schema.columns]
    if node.args.get("table") is not None and node.table.lower() != "release":
        raise refused(f"There is no table {node.table!r}")
    wanted = str(node.name)
    if wanted not in names:
        folded = [name for name in names if name.lower() == wanted.lower()]
        if len(folded) != 1:
            raise _meant_as_text(node, names) or unknown_column(wanted, names)
        wanted = folded[0]
    node.set("this", exp.to_identifier(wanted, quoted=True))
    node.set("table", None)
    return wanted


def _meant_as_text(node: Any, names: Sequence[str]) -> InputError | None:
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
        hint=f"Write: {shown_condition(meant)}",
    )


def _equality(node: Any, schema: Schema) -> tuple[str, Value] | None:
    """(column, value) of a plain column = literal; None for anything else."""
    if isinstance(node, exp.Paren):
        return _equality(node.this, schema)
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


def _rewritten(
    condition: Any, schema: Schema, known: Mapping[str, Sequence[Value]], *, whole_bins: bool
) -> tuple[Any, tuple[str, ...]]:
    """The condition in terms of labels, and the remarks for the answer.

    Columns have already been checked and quoted. Only comparisons with values are accepted.
    """
    if not any(schema.recoding(node.name) for node in condition.find_all(exp.Column)):
        return condition, ()
    holder = exp.Paren(this=condition.copy())
    remarks = []
    for column in list(holder.find_all(exp.Column)):
        recoding = schema.recoding(column.name)
        if recoding is None:
            continue
        side, test = column, column.parent
        while isinstance(test, exp.Paren) and test is not holder:
            side, test = test, test.parent
        if isinstance(test, exp.Is) and isinstance(test.expression, exp.Null):
            continue
        negated = _negated(test, holder)
        answered = _tested(side, test, recoding, whole_bins, negated=bool(negated))
        labels = [label for label in answered.labels if label in known[column.name]]
        told = answered.remark
        if told is not None and negated is None:
            told = f"{shown_condition(test)} is taken as {answered.taken_as}"
        # If a NOT around the test stays in place, what is answered is the opposite of the test.
        test.replace(_membership(column.copy(), labels, answered.negated != bool(negated)))
        if told is not None:
            remarks.append(told)
    return holder.this, tuple(dict.fromkeys(remarks))


def _negated(test: Any, holder: Any) -> bool | None:
    """True if a test is under an odd number of NOTs; None if it is inside anything else."""
    negated, node = False, test.parent if test is not holder else holder
    while node is not holder:
        if isinstance(node, exp.Not):
            negated = not negated
        elif not isinstance(node, exp.And | exp.Or | exp.Paren):
            return None
        node = node.parent
    return negated


def _tested(
    side: Any, test: Any, recoding: Recoding, whole_bins: bool, *, negated: bool
) -> LabelTest:
    """What a comparison covers; ``side`` is the side that holds the column.

    Under NOT the opposite is answered, so NOT age < 65 means age >= 65.
    """
    text = shown_condition(test)
    operator, values = OPERATORS.get(type(test).__name__, ""), []
    if operator:
        on_left = test.this is side
        values = [test.expression if on_left else test.this]
        operator = operator if on_left else mirrored(operator)
    elif isinstance(test, exp.Between) and test.this is side and not test.args.get("symmetric"):
        operator, values = "BETWEEN", [test.args["low"], test.args["high"]]
    elif isinstance(test, exp.In) and test.this is side:
        operator, values = "=", test.expressions
    found = [literal(one) for one in values]
    if found and NO_LITERAL not in found:
        operator = opposite(operator) if negated else operator
        return answer_test(recoding, operator, found, text, whole_bins=whole_bins)
    raise misused(recoding, text)


def _membership(column: Any, labels: Sequence[str], negated: bool) -> Any:
    """The test that the column has one of these labels; unknown if it is missing."""
    texts = [exp.Literal.string(label) for label in labels]
    if not texts:
        never = exp.EQ if negated else exp.NEQ
        return exp.Paren(this=never(this=column, expression=column.copy()))
    if len(texts) == 1:
        equal = exp.NEQ if negated else exp.EQ
        return exp.Paren(this=equal(this=column, expression=texts[0]))
    inside = exp.In(this=column, expressions=texts)
    return exp.Paren(this=exp.Not(this=inside) if negated else inside)

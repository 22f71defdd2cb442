"""Made conditions, each as the release is asked and as the referee is."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from oracle.tables import Made, MadeTable
from oracle.values import literal

_PATTERNS = ("'%a%'", "'_'", "'a%'", "''", "'%''%'")
COMPARED = ("=", "<>", "<", "<=", ">", ">=")


@dataclass(frozen=True)
class Two:
    """A piece of SQL for the release, and for the referee, whose columns are not in bins."""

    ours: str
    theirs: str

    @classmethod
    def same(cls, text: str) -> Two:
        """The same text for both."""
        return cls(text, text)

    def __str__(self) -> str:
        """What the release is asked."""
        return self.ours


def put(pattern: str, *parts: Two) -> Two:
    """Pieces put into a larger one."""
    ours, theirs = ([getattr(one, side) for one in parts] for side in ("ours", "theirs"))
    return Two(pattern.format(*ours), pattern.format(*theirs))


def public_condition(rng: Random, table: MadeTable, depth: int = 0) -> Two:
    """A condition on public columns."""
    if depth < 2 and rng.random() < 0.4:
        left = public_condition(rng, table, depth + 1)
        right = public_condition(rng, table, depth + 1)
        pattern = rng.choice(("({} OR {})", "({} AND {})", "NOT ({})", "({} AND NOT ({}))"))
        return put(pattern, left, right)
    if rng.random() < 0.08:
        when, then, otherwise = (_atom(rng, rng.choice(table.public)) for _ in range(3))
        return put("CASE WHEN {} THEN {} ELSE {} END", when, then, otherwise)
    return _atom(rng, rng.choice(table.public))


def sensitive_condition(rng: Random, table: MadeTable) -> Two:
    """A condition on the sensitive column."""
    one = _atom(rng, table.sensitive)
    if rng.random() < 0.2:
        return put("({} OR {})", one, _atom(rng, table.sensitive))
    return put("NOT ({})", one) if rng.random() < 0.1 else one


def _atom(rng: Random, column: Made) -> Two:
    name = column.sql
    if rng.random() < 0.1:
        return Two.same(f"{name} IS {rng.choice(('', 'NOT '))}NULL")
    if column.recoded is not None:
        return _recoded_atom(rng, column)
    values = [literal(one) for one in rng.choices(column.present, k=3)]
    low, high = sorted(rng.choices(column.present, k=2))
    operator = rng.choice(COMPARED)
    ways = [
        f"{name} = {values[0]}",
        f"{name} <> {values[0]}",
        f"{name} IN ({', '.join(values)})",
        f"{name} NOT IN ({', '.join(values[:2])})",
        f"{name} IS DISTINCT FROM {values[0]}",
        f"{name} IS NOT DISTINCT FROM {values[0]}",
        f"{values[0]} = {name}",
    ]
    if column.kind == "boolean":
        ways += [name, f"NOT {name}", f"{name} IS TRUE", f"{name} IS NOT TRUE", f"{name} IS FALSE"]
        return Two.same(rng.choice(ways))
    if column.kind == "code":
        ways = [*ways[:4], f"length({name}) > {rng.choice((1, 2))}", f"{name} LIKE '0%'"]
        return Two.same(rng.choice(ways))
    ways += [
        f"{name} {operator} {values[0]}",
        f"{values[0]} {operator} {name}",
        f"{name} BETWEEN {literal(low)} AND {literal(high)}",
        f"{name} NOT BETWEEN {literal(low)} AND {literal(high)}",
        f"coalesce({name}, {values[1]}) {operator} {values[2]}",
        f"CASE WHEN {name} = {values[0]} THEN TRUE WHEN {name} = {values[1]} THEN FALSE END",
    ]
    return Two.same(rng.choice([*ways, *_own(rng, column, values[0], operator)]))


def _own(rng: Random, column: Made, value: str, operator: str) -> list[str]:
    """What only columns of a kind can be asked."""
    name = column.sql
    if column.kind == "integer":
        return [
            f"{name} % 2 = {rng.randrange(2)}",
            f"{name} // 3 {operator} 1",
            f"-{name} {operator} {value}",
            f"{name} / 2 {operator} 1.5",
            f"abs({name} - 1) {operator} 2",
            f"{name} = {value}.0",
            f"{name} {operator} 1.5",
        ]
    if column.kind in ("float", "decimal"):
        return [f"{name} * 2 {operator} {value}", f"abs({name}) {operator} 1", f"{name} > -1e5"]
    if column.kind == "text":
        return [
            f"{name} LIKE {rng.choice(_PATTERNS)}",
            f"{name} NOT LIKE '%b'",
            f"{name} ILIKE 'ä%'",
            f"length({name}) {operator} 1",
            f"upper({name}) = upper({value})",
            f"{name} || 'z' = {value} || 'z'",
            f"trim({name}) <> {name}",
            f"starts_with({name}, 'a')",
            f"substr({name}, 1, 1) = 'a'",
            f"replace({name}, 'a', 'b') = 'b'",
        ]
    if column.kind == "date":
        return [
            f"year({name}) {operator} 2020",
            f"month({name}) = 1",
            f"{name} + INTERVAL 1 DAY {operator} {value}",
            f"{name} = {value[5:]}",
            f"date_trunc('year', {name}) = DATE '2020-01-01'",
            f"extract(day FROM {name}) {operator} 15",
        ]
    if column.kind in ("timestamp", "zoned"):
        return [
            f"hour({name}) {operator} 12",
            f"{name}::DATE = DATE '2020-01-01'",
            f"{name} {operator} DATE '2020-01-01'",
            f"{name} {operator} TIMESTAMP '2020-01-01 12:30:00'",
        ]
    return [f"hour({name}) {operator} 1"] if column.kind == "time" else []


def cutting_condition(rng: Random, table: MadeTable) -> Two | None:
    """A condition on a recoded column that may cut its bins: refused, or answered as it is."""
    columns = [one for one in table.columns if one.recoded is not None]
    if not columns:
        return None
    column = rng.choice(columns)
    assert column.recoded is not None
    name, known = column.sql, [literal(one) for one in column.recoded.label_of]
    values = [rng.choice([*known, *column.recoded.borders]) for _ in range(3)]
    ways = ["{n} = {0}", "{n} <> {0}", "{n} IN ({0}, {1}, {2})", "{n} NOT IN ({0}, {1})",
            "{n} IN ({every})", "{n} NOT IN ({0}, NULL)", "{n} IS DISTINCT FROM {0}"]  # fmt: skip
    if column.kind != "groups":
        ways += ["{n} BETWEEN {0} AND {1}", "{n} NOT BETWEEN {0} AND {1}", "{n} > {0}",
                 "{n} <= {0}", "({n} >= {0} AND {n} < {1})", "NOT ({n} < {0} OR {n} > {1})",
                 "({n} >= {0}) IS NOT TRUE", "coalesce({n} < {0}, TRUE)"]  # fmt: skip
    every = ", ".join(known)
    return Two.same(rng.choice(ways).format(*values, n=name, every=every))


def _recoded_atom(rng: Random, column: Made) -> Two:
    """Conditions that cut no bin; a label is asked for by itself."""
    recoded = column.recoded
    assert recoded is not None
    name, label = column.sql, column.beside("label")
    ways = []
    if recoded.borders:
        border, other = rng.choice(recoded.borders), rng.choice(recoded.borders)
        ways += [Two.same(f"{name} {rng.choice(('<', '>='))} {border}")] * 3
        ways += [Two.same(f"{border} {rng.choice(('>', '<='))} {name}")]
        ways += [Two.same(f"NOT {name} < {border}")]
        low, high = sorted((border, other), key=recoded.borders.index)
        ways += [Two.same(f"({name} >= {low} AND {name} < {high})")]
        if column.kind == "bins" and column.type == "int64" and low != high:
            ways += [Two.same(f"{name} BETWEEN {low} AND {int(high) - 1}")]
    texts = rng.choices(recoded.labels, k=2)
    shown = [literal(one) for one in texts]
    ways += [
        Two(f"{name} = {shown[0]}", f"{label} = {shown[0]}"),
        Two(f"{name} <> {shown[0]}", f"{label} <> {shown[0]}"),
        Two(f"{name} IN ({', '.join(shown)})", f"{label} IN ({', '.join(shown)})"),
        Two(f"{name} NOT IN ({shown[0]})", f"{label} NOT IN ({shown[0]})"),
    ]
    if column.kind == "groups":
        listed = [literal(v) for v, g in recoded.label_of.items() if g == texts[0]]
        ways += [Two.same(f"{name} IN ({', '.join(listed)})")]
    return rng.choice(ways)

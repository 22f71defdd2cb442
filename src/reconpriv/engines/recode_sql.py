"""The SQL expressions of recoded columns, which both engines understand."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from reconpriv.columns.periods import written_day
from reconpriv.columns.recoding import Recoding, plain
from reconpriv.columns.schema import Column, Kind


@dataclass(frozen=True)
class Dialect:
    """What an engine calls the text type, how it writes a literal, and the day (UTC) of a time."""

    text_type: str
    literal: Callable[[str], str]
    day: str = "CAST({0} AS DATE)"

    def ranged(self, value: str, kind: Kind) -> str:
        """What the range of a column is taken of: of times, their days."""
        return self.day.format(value) if kind is Kind.DATETIME else value


def replaced(
    expressions: Mapping[Column, str], column: Column, kind: Kind, expression: str
) -> tuple[dict[Column, str], Column]:
    """Replace a column's expression, keeping the order; also return the column as it is now."""
    new = Column(column.name, kind)
    return {
        new if one == column else one: expression if one == column else old
        for one, old in expressions.items()
    }, new


def label_of(value: str, kind: Kind, recoding: Recoding, dialect: Dialect) -> str:
    """The label of a value given as SQL; NULL if it is missing or has none."""
    if recoding.binned:
        found = _bin_of(dialect.ranged(value, kind), kind, recoding, dialect)
    else:
        found = _group_of(f"CAST({value} AS {dialect.text_type})", recoding, dialect)
    return f"CASE WHEN {value} IS NULL THEN NULL ELSE {found} END"


def listed(value: str, recoding: Recoding, dialect: Dialect) -> tuple[str, str]:
    """A value as text, and whether some group lists it."""
    every = [one for values in recoding.members for one in values]
    text = f"CAST({value} AS {dialect.text_type})"
    return text, f"{text} IN ({', '.join(map(dialect.literal, every))})" if every else "false"


# What both engines read as the same number; each also knows spellings of its own.
NUMBER = r"[+-]?([0-9]+([.][0-9]*)?|[.][0-9]+)([eE][+-]?[0-9]+)?"

RANKED = ("v", "sum(n) OVER (ORDER BY v) - n AS below", "sum(n) OVER () AS total")
"""For values v that occur n times: how many records lie below each, and how many in total."""


def shares(parts: int) -> list[str]:
    """The lowest ranked value, and for 1, …, parts - 1 the first with that share below it."""
    return [
        f"min(CASE WHEN below * {parts} >= total * {k} THEN v END) AS q{k}" for k in range(parts)
    ]


def _bin_of(value: str, kind: Kind, recoding: Recoding, dialect: Dialect) -> str:
    """A tree of comparisons: a thousand bins take ten of them."""

    def between(first: int, last: int) -> str:
        if last - first == 1:
            return dialect.literal(recoding.labels[first])
        middle = (first + last) // 2
        border = _border(recoding, middle, kind)
        return (
            f"CASE WHEN {value} < {border} THEN {between(first, middle)}"
            f" ELSE {between(middle, last)} END"
        )

    return between(0, len(recoding.labels))


def _group_of(value: str, recoding: Recoding, dialect: Dialect) -> str:
    cases = [
        f"WHEN {value} IN ({', '.join(map(dialect.literal, values))}) THEN {dialect.literal(label)}"
        for label, values in zip(recoding.labels, recoding.members, strict=True)
        if values
    ]
    rest = "NULL" if recoding.rest is None else dialect.literal(recoding.rest)
    return f"CASE {' '.join(cases)} ELSE {rest} END" if cases else rest


def _border(recoding: Recoding, place: int, kind: Kind) -> str:
    """A border in the type of the column."""
    number = recoding.borders[place]
    if recoding.dated:
        return f"CAST('{written_day(number)}' AS DATE)"
    text = plain(number)
    if kind is Kind.INTEGER:
        return f"CAST('{text}' AS BIGINT)"
    if kind is Kind.NUMBER:
        return f"CAST('{text}' AS DOUBLE)"
    whole, _, digits = text.lstrip("-").partition(".")
    return f"CAST('{text}' AS DECIMAL({len(whole) + len(digits)}, {len(digits)}))"

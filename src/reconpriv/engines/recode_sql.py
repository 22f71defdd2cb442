"""The SQL expressions of recoded columns, which both engines understand."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from reconpriv.columns.recoding import Recoding, plain, written_day
from reconpriv.columns.schema import Kind


@dataclass(frozen=True)
class Dialect:
    """How an engine writes literals and names, and reads its own types.

    ``kinds`` has the expression for the canonical type, ``day`` that for the day (UTC) of a time;
    ``matches`` is the function that compares a text with a pattern.
    """

    literal: Callable[[str], str]
    quote: Callable[[str], str]
    kinds: Mapping[str, tuple[Kind, str]]
    matches: str
    day: str = "CAST({0} AS DATE)"

    def ranged(self, value: str, kind: Kind) -> str:
        """What the range of a column is taken of: of times, their days."""
        return self.day.format(value) if kind is Kind.DATETIME else value


def label_of(value: str, kind: Kind, recoding: Recoding, dialect: Dialect) -> str:
    """The label of a value given as SQL; NULL if it is missing or has none."""
    if recoding.binned:
        found = _bin_of(dialect.ranged(value, kind), kind, recoding, dialect)
    else:
        found = _group_of(f"CAST({value} AS STRING)", recoding, dialect)
    return f"CASE WHEN {value} IS NULL THEN NULL ELSE {found} END"


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

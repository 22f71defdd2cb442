"""Selections taken together, and their public parts."""

from __future__ import annotations

from dataclasses import replace

from reconpriv.queries.answer import NOWHERE, Answerer, Selected, check_equalities
from reconpriv.schema import Value

EVERYTHING = "all records"

# A condition in SQL, or columns with the values that they must have.
Asked = str | dict[str, Value] | None


def select(answerer: Answerer, asked: Asked, *, whole_bins: bool = False) -> Selected:
    """Resolve a condition in SQL or a dictionary of column: value."""
    if asked is None or isinstance(asked, str):
        return answerer.select(asked, {}, whole_bins=whole_bins)
    return answerer.select(None, check_equalities(asked), whole_bins=whole_bins)


def both(one: Selected, other: Selected) -> Selected:
    """The records that satisfy two conditions."""
    codes = dict(one.equalities)
    for index, code in other.equalities.items():
        codes[index] = code if codes.get(index, code) == code else NOWHERE
    values = one.values if other.values is None else other.values
    if one.values is not None and other.values is not None:
        values = tuple(value for value in one.values if value in other.values)
    texts = [text for text in (one.text, other.text) if text != EVERYTHING]
    return Selected(
        " AND ".join(texts) or EVERYTHING,
        codes,
        (*one.conditions, *other.conditions),
        (*one.members, *other.members),
        values,
        tuple(dict.fromkeys((*one.remarks, *other.remarks))),
    )


def public_part(selected: Selected) -> Selected:
    """The same without its conditions on the sensitive column."""
    return replace(selected, values=None)

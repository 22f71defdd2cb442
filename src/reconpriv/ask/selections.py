"""Selections: conditions resolved to groups and sensitive values, and what can be made of them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from reconpriv.columns.schema import Value, json_value
from reconpriv.errors import InputError

EVERYTHING = "all records"
NOWHERE = -1  # the code of a value that does not occur

# A condition in SQL, or columns with the values that they must have.
Asked = str | dict[str, Value] | None


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
class Selected:
    """A query with its condition resolved: which groups, and which sensitive values.

    Groups satisfy equalities (attribute: code), SQL conditions and memberships (attribute,
    codes). ``remarks`` say where the answer is not to the exact question: a bin taken whole.
    """

    text: str
    equalities: dict[int, int]
    conditions: tuple[str, ...]
    members: tuple[tuple[int, tuple[int, ...]], ...]
    values: tuple[int, ...] | None
    remarks: tuple[str, ...] = ()

    @property
    def plain(self) -> bool:
        """True if the condition consists of equalities only."""
        return not self.conditions and not self.members


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


def describe(where: str | None, equal: dict[str, Value]) -> str:
    """A condition in words."""
    parts = [where] if where else []
    for name, value in equal.items():
        if isinstance(value, list):
            parts.append(f"{name} IN ({', '.join(repr(json_value(v)) for v in value)})")
        else:
            shown = json_value(value)
            parts.append(f"{name} IS NULL" if shown is None else f"{name} = {shown!r}")
    return " AND ".join(parts) if parts else EVERYTHING


def check_equalities(equal: dict[str, Any]) -> dict[str, Value]:
    """A query given as a dictionary."""
    if not isinstance(equal, dict) or not all(isinstance(name, str) for name in equal):
        raise InputError(
            f"A query is SQL text or a dictionary of column: value; got a {type(equal).__name__}."
        )
    return equal

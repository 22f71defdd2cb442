"""What a policy says about protection beyond the micro group: how public columns are coarsened.

A protection group is made of the records that agree on all public columns after coarsening. Trials
are limited per protection group, so that whoever pools over these columns learns no more than the
policy allows.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any, Self

from reconpriv.columns.declared_bins import Bins, declared_bins
from reconpriv.columns.declared_groups import EVERYTHING_ELSE, declared_groups
from reconpriv.columns.kinds import NUMBERS
from reconpriv.columns.recoding import Recoding, as_number, json_number, plain, read_recoding
from reconpriv.columns.schema import Column, Kind, Schema, Value, value_text
from reconpriv.errors import InputError, PolicyError

IGNORED = "*"
MERGED = "merge"
HOW = "Give a width (10), borders (0,18,65), * to ignore the column, merge, or a file of groups."
_IGNORED_WORD = "ignored"

DeclaredColumn = Bins | Recoding | str
"""What was said about a column: bins, groups, to ignore it, or to merge what is alike."""


@dataclass(frozen=True)
class Protection:
    """How each column is coarsened; the others stay as they are."""

    columns: tuple[tuple[str, DeclaredColumn], ...]

    @classmethod
    def of(cls, said: Mapping[str, Any]) -> Self:
        """What a user wrote for each column; nothing here needs the table."""
        if not said:
            raise PolicyError("There is no column to protect over.", hint=HOW)
        for name in said:
            if not isinstance(name, str) or not name:
                raise PolicyError(f"Protection names public columns; got {name!r}.")
        return cls(tuple((name, _declared(name, one)) for name, one in said.items()))

    @property
    def names(self) -> tuple[str, ...]:
        """The columns that are coarsened."""
        return tuple(name for name, _ in self.columns)

    @property
    def ignored(self) -> set[str]:
        """The columns that protection groups do not tell apart at all."""
        return {name for name, declared in self.columns if declared == IGNORED}

    @property
    def apart(self) -> str:
        """The columns that set a record apart: values are dealt within a protection group."""
        return "the coarsened columns" if self.columns else "the public columns"

    @property
    def merges(self) -> bool:
        """True if a coarsening is to be found from randomised counts."""
        return any(declared == MERGED for _, declared in self.columns)

    def as_dict(self) -> dict[str, Any]:
        """Plain values, as one would write them."""
        return {name: _written(declared) for name, declared in self.columns}

    def __bool__(self) -> bool:
        """True if any column is coarsened."""
        return bool(self.columns)

    def __repr__(self) -> str:
        """As you would write it."""
        return repr(self.as_dict())


NO_PROTECTION = Protection(())


def as_protection(protect: Protection | Mapping[str, Any] | None) -> Protection:
    """Protection from whatever a policy was given: an object, a dictionary, or nothing."""
    match protect:
        case None:
            return NO_PROTECTION
        case Protection():
            return protect
        case Mapping():
            return Protection.of(protect)
    raise PolicyError(
        f"Protection is a dictionary of column: coarsening; got {protect!r}.", hint=HOW
    )


def _declared(name: str, said: Any) -> DeclaredColumn:
    if isinstance(said, str):
        text = said.strip()
        if text in (IGNORED, MERGED):
            return text
        if all(as_number(part) is not None for part in text.split(",")):
            return _bins(name, text)
    if isinstance(said, str | os.PathLike | Mapping) or _is_file_and_level(said):
        return declared_groups(name, said)
    if said is None or isinstance(said, bool):
        raise PolicyError(f"The coarsening of {name!r} is missing or no number.", hint=HOW)
    return _bins(name, said)


def _is_file_and_level(said: Any) -> bool:
    return isinstance(said, tuple) and len(said) == 2 and isinstance(said[0], str | os.PathLike)


def _bins(name: str, said: Any) -> Bins:
    found = declared_bins(name, said)
    if found.quantiles is not None:
        raise PolicyError(f"Quantiles of {name!r} cannot coarsen it for protection.", hint=HOW)
    if found.top is not None or found.period is not None:
        raise PolicyError(f"The protection of {name!r} takes a width or borders only.", hint=HOW)
    return found


def _written(declared: DeclaredColumn) -> Any:
    if isinstance(declared, str):
        return declared
    if isinstance(declared, Bins):
        if declared.width is not None:
            return json_number(declared.width)
        return [json_number(border) for border in declared.borders]
    if declared.numeric:
        return [json_number(border) for border in declared.borders]
    pairs = zip(declared.labels, declared.members, strict=True)
    written = {value: label for label, values in pairs for value in values}
    return written | ({} if declared.rest is None else {EVERYTHING_ELSE: declared.rest})


@dataclass(frozen=True)
class Coarsening:
    """What each coarsened column becomes: labels, or nothing where it is ignored (None).

    Without a column it is the identity, false as a condition: every micro group is a protection
    group of its own.
    """

    columns: tuple[tuple[str, Recoding | None], ...] = ()
    notes: tuple[str, ...] = field(default=(), compare=False)  # for the publisher alone

    def __bool__(self) -> bool:
        """True if any column is coarsened."""
        return bool(self.columns)

    @property
    def names(self) -> tuple[str, ...]:
        """The columns that are coarsened."""
        return tuple(name for name, _ in self.columns)

    @property
    def group_word(self) -> str:
        """What the groups are called that a policy makes a promise about."""
        return "protection group" if self.columns else "group"

    @property
    def wanted(self) -> Protection:
        """What a policy says to get it."""
        return Protection(tuple((name, said or IGNORED) for name, said in self.columns))

    def without(self, column: str) -> Coarsening:
        """The same for a table without one of its columns."""
        return Coarsening(tuple(one for one in self.columns if one[0] != column))

    def coarse(self, schema: Schema) -> Schema:
        """The schema of the protection groups."""
        found = dict(self.columns)
        if not found:
            return schema
        public = tuple(
            column if column.name not in found else Column(column.name, Kind.STRING)
            for column in schema.public
            if found.get(column.name, column) is not None
        )
        kept = tuple(one for one in schema.recodings if one.column not in found)
        new = tuple(one for one in found.values() if one is not None)
        return replace(schema, public=public, recodings=(*kept, *new))

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for the manifest."""
        return {
            name: {"declared": _IGNORED_WORD} if recoding is None else recoding.as_dict()
            for name, recoding in self.columns
        }

    @classmethod
    def from_dict(cls, said: Mapping[str, Any], public: Iterable[str]) -> Self:
        """Read the block; a ValueError, KeyError or TypeError if it is damaged."""
        if not said or not set(said) <= set(public):
            raise ValueError
        return cls(
            tuple(
                (name, None if one == {"declared": _IGNORED_WORD} else read_recoding(name, one))
                for name, one in said.items()
            )
        )

    @property
    def words(self) -> str:
        """The coarsened columns, with the number of values that each keeps."""
        return ", ".join(
            f"{name} ({'ignored' if recoding is None else f'{len(recoding.labels)} values'})"
            for name, recoding in self.columns
        )


NO_COARSENING = Coarsening()


def coarse_labels(
    column: Column, fine: Recoding | None, recoding: Recoding, values: Sequence[Value]
) -> list[str | None]:
    """The label of every value; a missing one stays missing.

    ``fine`` is the recoding that the column already has: a bin goes where its lower border goes.
    """
    if recoding.numeric:
        return [None if v is None else _bin(column, fine, recoding, v) for v in values]
    label_of = {
        text: label
        for label, texts in zip(recoding.labels, recoding.members, strict=True)
        for text in texts
    }
    found: list[str | None] = []
    for value in values:
        text = None if value is None else value_text(column.kind, value)
        label = None if text is None else label_of.get(text, recoding.rest)
        if text is not None and label is None:
            raise InputError(
                f"Column {column.name!r} holds values that its protection does not list, for"
                f" example {text[:40]!r}.",
                hint="List every value, or add a line '*,GROUP' for all others.",
            )
        found.append(label)
    return found


def _bin(column: Column, fine: Recoding | None, recoding: Recoding, value: Value) -> str:
    lowest, above = as_interval(column, fine, value)
    place = bisect_right(recoding.borders, lowest) - 1
    if not 0 <= place < len(recoding.labels):
        raise InputError(
            f"Column {column.name!r} holds values below the first border of its protection,"
            f" {plain(recoding.borders[0])}.",
            hint="Add a lower border.",
        )
    end = recoding.interval(place)[1]
    if fine is not None and end is not None and (above is None or above > end):
        raise InputError(
            f"The protection of {column.name!r} cuts its bin {str(value)[:40]!r}.",
            hint="Choose borders that its bins have, too.",
        )
    return recoding.labels[place]


def as_interval(
    column: Column, fine: Recoding | None, value: Value
) -> tuple[Decimal, Decimal | None]:
    """A value as a number, or the borders of a bin: where it lies in order."""
    if fine is not None and fine.numeric:
        return fine.interval(fine.labels.index(value))
    number = as_number(value) if column.kind in NUMBERS else None
    if number is None:
        raise InputError(
            f"Column {column.name!r} holds {_what(column, fine)}, which cannot be protected in"
            " bins of numbers.",
            hint="Give a file of groups, merge, or * to ignore it.",
        )
    return number, None


def _what(column: Column, fine: Recoding | None) -> str:
    if fine is not None:
        return f"{fine.declared}s" if fine.dated else "groups of values"
    return "infinite numbers" if column.kind in NUMBERS else f"{column.kind.value} values"

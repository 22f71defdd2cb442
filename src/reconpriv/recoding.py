"""Recoded columns: numbers in bins and values in groups, as their publisher declared them.

A recoding says what is published in place of a column's values: an ordered list of labels, each of
which stands for an interval of numbers or for a set of texts. It is part of the manifest, so that
analysts know what each label covers.
"""

from __future__ import annotations

import csv
import datetime as dt
import decimal
import io
import itertools
import os
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

from reconpriv.errors import InputError
from reconpriv.messages.one_line import shortened
from reconpriv.messages.redaction import shown_path
from reconpriv.messages.side_files import read_side_file
from reconpriv.periods import PERIODS, day_number, period_borders, period_labels, written_day

MOST_LABELS = 1000
EVERYTHING_ELSE = "*"
_UNUSED_SHOWN = 5

# A border is stored as a JSON number, which keeps this many digits whatever reads it.
MOST_DIGITS = 15
_QUANTILE_DIGITS = 6

HOW_TO_GROUP = "Give a CSV file with a header, then one line per value: value,group."


@dataclass(frozen=True)
class Recoding:
    """What is published of a column: labels in order, and what each of them stands for.

    Bin i holds the numbers from ``borders[i]`` up to but not including ``borders[i + 1]``; if the
    last bin is open, there is one border fewer, and if it is ``closed``, it holds its upper border,
    too. ``whole`` says that the column holds only whole numbers. Dates are numbers of days, whole
    if they have no time of day. For groups, ``groups[i]`` are the original texts behind label i,
    and the label ``rest``, if there is one, stands for every other text as well. ``declared`` is
    width, borders, quantiles, a period (month, quarter or year) or groups.
    """

    column: str
    declared: str
    labels: tuple[str, ...]
    borders: tuple[Decimal, ...] = ()
    whole: bool = False
    members: tuple[tuple[str, ...], ...] = ()
    rest: str | None = None
    closed: bool = False

    @property
    def binned(self) -> bool:
        """Whether the labels are bins, of numbers or of dates."""
        return bool(self.borders)

    @property
    def numeric(self) -> bool:
        """Whether the labels are bins of numbers."""
        return self.binned and not self.dated

    @property
    def dated(self) -> bool:
        """Whether the labels are periods of the calendar."""
        return self.declared in PERIODS

    def place(self, value: Any) -> Decimal | None:
        """Where a number or a date lies among the borders; None if it is neither."""
        return day_number(value) if self.dated else as_number(value)

    def shown(self, border: Decimal) -> str:
        """A border as it is written in SQL."""
        return f"DATE '{written_day(border)}'" if self.dated else plain(border)

    def interval(self, position: int) -> tuple[Decimal, Decimal | None]:
        """The bin's borders: the lower belongs to it, the upper does not; None if there is none."""
        above = self.borders[position + 1 : position + 2]
        return self.borders[position], above[0] if above else None

    def holds_end(self, position: int) -> bool:
        """Whether the upper border belongs to the bin."""
        return self.closed and position == len(self.labels) - 1

    def ends(self, position: int) -> tuple[Decimal, Decimal | None]:
        """The lowest and the highest number that a bin may hold; None if it is open.

        Of numbers that are not whole, the upper border itself, which they come close to.
        """
        low, high = self.interval(position)
        return low, high - 1 if high is not None and self.whole else high

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for the manifest; the labels are also the field's categories."""
        shown: dict[str, Any] = {"declared": self.declared, "labels": list(self.labels)}
        if self.binned:
            written = written_day if self.dated else _json_number
            shown |= {"borders": [written(one) for one in self.borders], "whole": self.whole}
            return shown | ({"closed": True} if self.closed else {})
        shown["groups"] = [list(values) for values in self.members]
        return shown | ({"rest": self.rest} if self.rest is not None else {})


@dataclass(frozen=True)
class Groups:
    """A declaration: the original text of every value with its group, in order of appearance."""

    group_of: Mapping[str, str]
    rest: str | None = None
    labels: tuple[str, ...] = field(default=())


# --- declarations


def as_number(said: Any) -> Decimal | None:
    """A finite number as it was written, or None if it is not one."""
    if isinstance(said, bool) or said is None:
        return None
    try:
        # The text of a float is the number that was meant: 0.1, not its nearest binary fraction.
        number = Decimal(str(said).strip())
    except decimal.InvalidOperation:
        return None
    if not number.is_finite():
        return None
    if not number:
        return Decimal(0)
    sign, digits, exponent = number.as_tuple()
    kept = len(digits)
    while digits[kept - 1] == 0:
        kept -= 1
    return Decimal((sign, digits[:kept], int(exponent) + len(digits) - kept))


def declared_groups(column: str, said: Any) -> Groups:
    """Groups as a dictionary, a file, or a file with the level of its hierarchy."""
    if isinstance(said, Mapping):
        return _groups(column, [(_text(value), group) for value, group in said.items()])
    if isinstance(said, tuple):
        if len(said) != 2:
            raise InputError(f"The groups of {column!r} must be a file or (file, level).")
        return _group_file(column, Path(said[0]), str(said[1]))
    if isinstance(said, str | os.PathLike):
        file = Path(said)
        name, colon, level = os.fspath(said).rpartition(":")
        if colon and name and not file.exists():
            return _group_file(column, Path(name), level)
        return _group_file(column, file, None)
    raise InputError(
        f"The groups of {column!r} must be a dictionary or a file,"
        f" not of type {type(said).__name__}."
    )


def _text(value: Any) -> str:
    return ("true" if value else "false") if isinstance(value, bool) else str(value)


def _groups(column: str, pairs: Iterable[tuple[str, Any]]) -> Groups:
    group_of: dict[str, str] = {}
    for value, group in pairs:
        if not isinstance(group, str) or not group.strip():
            raise InputError(f"A group of {column!r} has no name.", hint="Name every group.")
        if group_of.setdefault(value, group) != group:
            raise InputError(f"The groups of {column!r} list {value!r} twice.")
    labels = tuple(dict.fromkeys(group_of.values()))
    rest = group_of.pop(EVERYTHING_ELSE, None)
    for label in labels:
        if group_of.get(label, label) != label:
            raise InputError(
                f"The group {label!r} of {column!r} has the name of a value in another group.",
                hint="Give it another name, so that a question about it has one meaning.",
            )
    if not labels:
        raise InputError(f"The groups of {column!r} are empty.")
    if len(labels) > MOST_LABELS:
        raise too_many(column)
    return Groups(group_of, rest, labels)


def _group_file(column: str, path: Path, level: str | None) -> Groups:
    """A CSV file with a header: original value, group, coarser groups."""
    shown = shown_path(path)
    lines = io.StringIO(read_side_file(path, "file of groups", HOW_TO_GROUP), newline="")
    try:
        rows = [row for row in csv.reader(lines, skipinitialspace=True, strict=True) if row]
    except csv.Error:
        raise InputError(f"The file of groups {shown} cannot be read.", hint=HOW_TO_GROUP) from None
    header = [name.strip() for name in rows[0]] if rows else []
    if len(header) < 2 or len(rows) < 2:
        raise InputError(
            f"The file of groups {shown} needs a header, two columns and at least one line.",
            hint="The first column is the value, the second its group.",
        )
    uneven = [i for i, row in enumerate(rows) if len(row) != len(header)]
    if uneven:
        raise InputError(
            f"Row {uneven[0] + 1} of the file of groups {shown} does not have"
            f" the {len(header)} columns of the header."
        )
    place = _level(shown, header[1:], level)
    return _groups(column, [(row[0], row[place + 1].strip()) for row in rows[1:]])


def _level(shown: str, levels: Sequence[str], level: str | None) -> int:
    if level is None:
        return 0
    if level.strip() in levels:
        return levels.index(level.strip())
    if level.strip().isdigit() and 1 <= int(level) <= len(levels):
        return int(level) - 1
    raise InputError(
        f"The file of groups {shown} has no level {level!r}.",
        hint=f"It has: {', '.join(levels)}; or give a number, 1 to {len(levels)}.",
    )


# --- from a declaration to labels


def bins_of_width(
    column: str, width: Decimal, lowest: Decimal, highest: Decimal, *, whole: bool
) -> Recoding:
    """Bins between multiples of the width, from the lowest value to the highest."""
    if whole and width != width.to_integral_value():
        raise InputError(
            f"Column {column!r} holds whole numbers; a bin width of {plain(width)} would make bins"
            " of different sizes.",
            hint="Choose a whole width, or give borders.",
        )
    with decimal.localcontext(prec=100):
        first = (lowest / width).to_integral_value(decimal.ROUND_FLOOR)
        last = (highest / width).to_integral_value(decimal.ROUND_FLOOR)
        if last - first >= MOST_LABELS:
            raise too_many(column)
        edges = tuple((first + i) * width for i in range(int(last - first) + 2))
    return _binned(column, "width", edges, whole=whole, is_open=False)


def bins_between(
    column: str,
    borders: Sequence[Decimal],
    *,
    whole: bool,
    declared: str = "borders",
    top: Decimal | None = None,
) -> Recoding:
    """Bins from border to border; the last one is open unless there is a top, which it holds."""
    if whole:
        # Whole numbers from 17.5 on are those from 18 on, and those up to 99 end before 100.
        borders = [border.to_integral_value(decimal.ROUND_CEILING) for border in borders]
        if top is not None:
            borders.append(top.to_integral_value(decimal.ROUND_FLOOR) + 1)
        if any(low >= high for low, high in itertools.pairwise(borders)):
            raise InputError(f"No whole number lies between two borders of {column!r}.")
        if not all(-(2**63) <= border < 2**63 for border in borders):
            raise InputError(f"A border of {column!r} is a whole number beyond 64 bits.")
    elif top is not None:
        borders = [*borders, top]
    return _binned(
        column, declared, tuple(borders), whole=whole, is_open=top is None,
        closed=top is not None and not whole,
    )  # fmt: skip


def bins_of_periods(
    column: str, period: str, first: dt.date, last: dt.date, *, whole: bool
) -> Recoding:
    """Months, quarters or years from one date to another."""
    borders = period_borders(period, first, last, most=MOST_LABELS)
    if not borders:
        raise too_many(column)
    return Recoding(column, period, period_labels(period, borders), tuple(borders), whole)


def quantile_border(value: Any) -> Decimal:
    """A value of the table as a border, rounded down to a few digits."""
    number = as_number(value)
    assert number is not None
    place = number.adjusted() - _QUANTILE_DIGITS + 1
    return number.quantize(Decimal((0, (1,), place)), decimal.ROUND_FLOOR)


def _binned(
    column: str, declared: str, edges: tuple[Decimal, ...], *,
    whole: bool, is_open: bool, closed: bool = False,
) -> Recoding:  # fmt: skip
    edges = tuple(edge if edge else Decimal(0) for edge in edges)
    if any(as_number(_json_number(edge)) != edge for edge in edges):
        raise too_fine(column)
    labels = bin_labels(edges, whole=whole, is_open=is_open, closed=closed)
    return Recoding(column, declared, labels, edges, whole, closed=closed)


def bin_labels(
    edges: Sequence[Decimal], *, whole: bool, is_open: bool, closed: bool = False
) -> tuple[str, ...]:
    """The labels of the bins between these borders."""
    labels = []
    for low, high in itertools.pairwise(edges):
        if not whole:
            labels.append(f"{plain(low)} to under {plain(high)}")
        elif high - low == 1:
            labels.append(plain(low))
        else:
            labels.append(f"{plain(low)} to {plain(high - 1)}")
    if closed:
        labels[-1] = f"{plain(edges[-2])} to {plain(edges[-1])}"
    return (*labels, *([f"{plain(edges[-1])} or more"] if is_open else []))


def grouped(column: str, groups: Groups) -> Recoding:
    """Groups in order of appearance, with the values behind each."""
    members: dict[str, list[str]] = {label: [] for label in groups.labels}
    for value, group in groups.group_of.items():
        members[group].append(value)
    values = tuple(tuple(members[label]) for label in groups.labels)
    return Recoding(column, "groups", groups.labels, members=values, rest=groups.rest)


def read_recoding(column: str, said: Mapping[str, Any]) -> Recoding:
    """A recoding from a manifest; a ValueError, TypeError or KeyError if it is malformed."""
    declared, labels = said["declared"], _texts(said["labels"])
    if not 1 <= len(labels) <= MOST_LABELS or len(set(labels)) != len(labels):
        raise ValueError
    if declared == "groups":
        groups, rest = tuple(_texts(values) for values in said["groups"]), said.get("rest")
        every = [value for values in groups for value in values]
        if len(groups) != len(labels) or len(set(every)) != len(every):
            raise ValueError
        if rest is not None and rest not in labels:
            raise ValueError
        return Recoding(column, declared, labels, members=groups, rest=rest)
    dated, whole, closed = declared in PERIODS, said["whole"], said.get("closed", False)
    read = day_number if dated else as_number
    numbers = [read(one) if isinstance(one, str) is dated else None for one in said["borders"]]
    borders = tuple(number for number in numbers if number is not None)
    if not dated and declared not in ("width", "borders", "quantiles"):
        raise ValueError
    if type(whole) is not bool or type(closed) is not bool or (closed and (whole or dated)):
        raise ValueError
    spare = len(borders) - len(labels)
    if len(borders) != len(numbers) or spare not in (0, 1) or ((dated or closed) and not spare):
        raise ValueError
    if any(low >= high for low, high in itertools.pairwise(borders)):
        raise ValueError
    known = period_labels(declared, borders) if dated else bin_labels(
        borders, whole=whole, is_open=not spare, closed=closed
    )  # fmt: skip
    if labels != known:
        raise ValueError
    return Recoding(column, declared, labels, borders, whole, closed=closed)


def _texts(values: Any) -> tuple[str, ...]:
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise ValueError
    return tuple(values)


def unused_note(recoding: Recoding, occurring: Container[str]) -> str:
    """Which values that the groups list do not occur, where * would hide a typo; empty if none.

    If none of them occurs, * stands for every record, and nothing can be meant by that.
    """
    listed = [value for values in recoding.members for value in values]
    unused = [repr(shortened(value, 40)) for value in listed if value not in occurring]
    if recoding.rest is None or not unused:
        return ""
    shown = ", ".join(unused[:_UNUSED_SHOWN]) + (", …" if len(unused) > _UNUSED_SHOWN else "")
    if len(unused) == len(listed):
        raise InputError(
            f"No value that the groups of {recoding.column!r} list occurs in the table ({shown}),"
            f" so {EVERYTHING_ELSE} would put every record into {recoding.rest!r}.",
            hint="Check their spelling, also upper and lower case.",
        )
    return (
        f"The groups of {recoding.column!r} list values that do not occur in the table: {shown}."
        f" If one of them is misspelt, the value that was meant is in {recoding.rest!r}."
    )


def plain(number: Decimal) -> str:
    """A number in digits, without an exponent."""
    text = format(number, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def _json_number(number: Decimal) -> int | float:
    return int(number) if number == number.to_integral_value() else float(number)


def too_fine(column: str) -> InputError:
    """The error for a border that a manifest cannot keep."""
    return InputError(
        f"A border of {column!r} has more than {MOST_DIGITS} digits.",
        hint="Round it, or choose wider bins.",
    )


def too_many(column: str) -> InputError:
    """The error for a recoding with too many labels."""
    return InputError(
        f"The recoding of {column!r} would make more than {MOST_LABELS:,} values.",
        hint="Choose wider bins or coarser groups.",
    )

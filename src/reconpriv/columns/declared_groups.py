"""Declarations of groups: a dictionary, or a file that lists every value with its group."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Container, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from reconpriv.columns.recoding import MOST_LABELS, Recoding, too_many
from reconpriv.errors import InputError
from reconpriv.messages.one_line import shortened
from reconpriv.messages.redaction import shown_path
from reconpriv.messages.text_files import read_side_file

EVERYTHING_ELSE = "*"
HOW_TO_GROUP = "Give a CSV file with a header, then one line per value: value,group."
_UNUSED_SHOWN = 5


def declared_groups(column: str, said: Any) -> Recoding:
    """Groups as a dictionary, a file, or a file with the level of its hierarchy."""
    if isinstance(said, Mapping):
        texts = {True: "true", False: "false"}
        return _groups(
            column,
            [(texts[v] if isinstance(v, bool) else str(v), group) for v, group in said.items()],
        )
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


def _groups(column: str, pairs: Iterable[tuple[str, Any]]) -> Recoding:
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
    members: dict[str, list[str]] = {label: [] for label in labels}
    for value, group in group_of.items():
        members[group].append(value)
    return Recoding(
        column, "groups", labels, members=tuple(map(tuple, members.values())), rest=rest
    )


def _group_file(column: str, path: Path, level: str | None) -> Recoding:
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
    place = 0 if level is None else _level(shown, header[1:], level.strip())
    return _groups(column, [(row[0], row[place + 1].strip()) for row in rows[1:]])


def _level(shown: str, levels: Sequence[str], level: str) -> int:
    if level in levels:
        return levels.index(level)
    if level.isdigit() and 1 <= int(level) <= len(levels):
        return int(level) - 1
    raise InputError(
        f"The file of groups {shown} has no level {level!r}.",
        hint=f"It has: {', '.join(levels)}; or give a number, 1 to {len(levels)}.",
    )


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

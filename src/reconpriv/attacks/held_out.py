"""Groups and people that are held out: what is known about them is known about everybody.

An attack that succeeds as often for those who were left out of a release as for those in it has
learnt what people like them are like. Only the difference comes from being in the table.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from reconpriv.attacks.attacked_table import AttackedTable, uniform_words, uniforms
from reconpriv.errors import InputError
from reconpriv.theory.arrays import Ints

# All groups are held out in turn, one of so many parts at a time.
PARTS = 5
# How many of the people are published.
PUBLISHED = 0.8
# With fewer people held out, a difference means nothing.
_FEWEST = 20


@dataclass(frozen=True)
class HeldOut:
    """A table without some of its groups: those ``kept`` are published, those ``out`` are not."""

    inside: AttackedTable
    kept: Ints
    out: Ints


def part_of_group(groups: int) -> Ints:
    """Which part every group is in: by chance, always alike, and parts of nearly one size."""
    order = np.argsort(uniform_words(groups, "groups held out"), kind="stable")
    part = np.empty(groups, dtype=np.int64)
    part[order] = np.arange(groups) % PARTS
    return part


def without_groups(target: AttackedTable) -> Iterator[HeldOut]:
    """The table without each part of its groups in turn."""
    batch = target.batch
    part = part_of_group(batch.groups)
    for out in (np.flatnonzero(part == i) for i in range(PARTS)):
        stays = ~np.isin(batch.group_of_cell, out)
        if out.size and stays.any():
            inside, kept = table_of(target, np.where(stays, batch.count, 0))
            yield HeldOut(inside, kept, out)


def table_of(target: AttackedTable, count: Ints) -> tuple[AttackedTable, Ints]:
    """Some of the people of a table, so many of each cell; and which groups these are in."""
    some = count > 0
    part, kept = target.of_cells(target.cells[some], count[some])
    schema = replace(target.schema, records=int(count.sum()))
    return AttackedTable(schema, target.policy.on(schema), part), kept


@dataclass(frozen=True)
class SplitTable:
    """A table whose people are published or held out; both have a count for each of its cells.

    ``inside`` is the table of those published, ``kept`` are its groups.
    """

    target: AttackedTable
    inside: AttackedTable
    kept: Ints
    published: Ints
    held_out: Ints


def split_people(target: AttackedTable, published: float = PUBLISHED) -> SplitTable:
    """Split the people of a table at random, always in the same way."""
    batch = target.batch
    cell = np.repeat(np.arange(batch.count.size), batch.count)
    chosen = uniforms(cell.size, "held out") < published
    inside = np.bincount(cell[chosen], minlength=batch.count.size)
    sizes = np.add.reduceat(inside, batch.starts)
    if cell.size - sizes.sum() < _FEWEST or not sizes.sum():
        raise InputError(
            f"The table has too few people for {_FEWEST} of them to be held out.",
            hint="Attack a table of some hundreds of people or more.",
        )
    table, kept = table_of(target, inside)
    return SplitTable(target, table, kept, inside, batch.count - inside)

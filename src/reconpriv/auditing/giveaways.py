"""Giveaways: public columns that tell the sensitive value of people by what others like them hold.

The adversary guesses each person's value from everybody else with the same public value (leave one
out), so a nearly unique column does not look predictive. Somebody who stands alone is guessed to
hold the most frequent value of the table.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reconpriv.cells.cell_batch import CellBatch, Encoded, unify
from reconpriv.cells.cube import CellKeeper
from reconpriv.columns.kinds import ORDERED
from reconpriv.columns.schema import Kind, Schema, Value
from reconpriv.messages.numbers import label
from reconpriv.messages.phrases import listed
from reconpriv.theory.arrays import Floats, Ints, run_lengths, run_starts

if TYPE_CHECKING:
    from collections.abc import Callable

    from reconpriv.cells.cube import Cube
    from reconpriv.protect.kernel import Draw


_DENSE = 1 << 20  # pairs that are counted in an array of all of them
_MOST_PAIRS = 1 << 22  # of a column, kept at a time; one with more different ones is given up


@dataclass(frozen=True)
class Pairs:
    """The pairs of one column: its values in order, and the count of each value with each s."""

    values: pa.Array
    code: Ints
    sensitive: Ints
    count: Ints


@dataclass
class JointCounts:
    """Collects the pairs of every public column; parts can be sent and joined."""

    schema: Schema
    parts: list[list[Pairs]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.parts = self.parts or [[] for _ in self.schema.public]

    def add(self, batch: CellBatch) -> None:
        """Count the next batch of whole groups."""
        group = batch.group_of_cell
        for parts, column in zip(self.parts, batch.public, strict=True):
            parts.append(_counted(column, group, batch, self.schema.domain_size))
            if sum(part.count.size for part in parts) > _MOST_PAIRS:
                parts[:] = [self._joined(parts)]
                if parts[0].count.size > _MOST_PAIRS // 2:
                    parts[:] = [Pairs(parts[0].values.slice(0, 0), *([_NOTHING] * 3))]

    def join(self, others: Iterable[JointCounts]) -> JointCounts:
        """These counts and those of other parts of the table."""
        for other in others:
            for mine, theirs in zip(self.parts, other.parts, strict=True):
                mine.extend(theirs)
        return self

    def columns(self) -> Iterator[Pairs]:
        """The pairs of each column, all parts together."""
        return map(self._joined, self.parts)

    def _joined(self, parts: list[Pairs]) -> Pairs:
        filled = [part for part in parts if part.count.size]
        if len(filled) <= 1 and (filled or parts):
            return (filled or parts)[0]
        codes, values = unify([Encoded(part.code.astype(np.int32), part.values) for part in filled])
        m = self.schema.domain_size
        sensitive = np.concatenate([part.sensitive for part in filled])
        key, inverse = np.unique(codes * np.int64(m) + sensitive, return_inverse=True)
        weights = np.concatenate([part.count for part in filled])
        count = np.bincount(inverse.reshape(-1), weights=weights).astype(np.int64)
        return Pairs(values, key // m, key % m, count)


_NOTHING = np.empty(0, dtype=np.int64)


def _counted(column: Encoded, group: Ints, batch: CellBatch, m: int) -> Pairs:
    key = column.codes[group] * np.int64(m) + batch.value
    if len(column.values) * m <= _DENSE:
        total = np.bincount(key, weights=batch.count, minlength=len(column.values) * m)
        key = np.flatnonzero(total)
        count = total[key]
    else:
        key, inverse = np.unique(key, return_inverse=True)
        count = np.bincount(inverse.reshape(-1), weights=batch.count)
    return Pairs(column.values, key // m, key % m, count.astype(np.int64))


T = TypeVar("T")
# Of larger tables, only single columns are looked at.
_FEW_CELLS = 1 << 18


class ColumnsSeen:
    """Pairs of values and, if there are few, all cells."""

    def __init__(self, schema: Schema) -> None:
        self.joint, self.cells = JointCounts(schema), CellKeeper(_FEW_CELLS)

    def add(self, batch: CellBatch) -> None:
        """See the next batch of whole groups."""
        self.joint.add(batch)
        self.cells.add(batch)

    def see(self, batch: CellBatch, draw: Draw) -> None:  # noqa: ARG002
        """See a batch that is published."""
        self.add(batch)

    def join(self, part: JointCounts) -> None:
        """Add the pairs that another machine has seen."""
        self.joint.join([part])

    def small(self) -> JointCounts:
        """What one machine sends to another: the pairs, but no cells."""
        return self.joint

    def giveaways(
        self, harmless: Collection[Value], cube: Cube | None = None
    ) -> tuple[Giveaway, ...]:
        """What the columns give away, alone or two together; ``cube`` are all cells, if kept."""
        alone = told_alone(self.joint, harmless)
        if cube is None and self.cells.cells:
            cube = self.cells.cube(self.joint.schema)
        return alone if cube is None else (*alone, *told_together(cube, harmless, alone))


def with_pairs(
    batches: Iterator[CellBatch], work: Callable[[Iterator[CellBatch]], T], schema: Schema
) -> tuple[T, JointCounts]:
    """The result of some work on a part of the table, and its pairs, counted on the way."""
    joint = JointCounts(schema)

    def seen() -> Iterator[CellBatch]:
        for batch in batches:
            joint.add(batch)
            yield batch

    return work(seen()), joint


def count_pairs(batches: Iterator[CellBatch], schema: Schema) -> JointCounts:
    """The pairs of a part of the table, on whatever machine has it."""
    found = JointCounts(schema)
    for batch in batches:
        found.add(batch)
    return found


TOLD = 0.5  # a column that tells more than this share of the people beyond a guess gives it away
TOLD_OF_VALUE = 0.9  # likewise for the people who hold one value, and for those guessed to hold it
LEAST_PEOPLE = 20  # too few people say nothing about a column
_NEIGHBOURS = (1, 8, 64, 512)  # how many successive numbers or dates are taken together
_PAIRED_CELLS = 1 << 21  # cells looked at for all pairs of columns together


@dataclass(frozen=True)
class Giveaway:
    """Public columns that tell the sensitive value, with the figure that says so.

    They tell ``share`` of the people who hold ``value`` or, if that is the most frequent one, of
    those who do ``not_`` hold it.
    """

    columns: tuple[str, ...]
    share: float
    value: Value
    not_: bool

    @property
    def who(self) -> str:
        """The people it is about."""
        return f"the people who {'do not hold' if self.not_ else 'hold'} {label(self.value)!r}"

    def sentence(self, sensitive: str) -> str:
        """What the columns tell, with the figure."""
        named = listed([f"{name!r}" for name in self.columns])
        noun, verb = ("column", "tells") if len(self.columns) == 1 else ("columns", "together tell")
        return f"public {noun} {named} {verb} {sensitive!r} of {self.share:.0%} of {self.who}"

    def as_dict(self) -> dict[str, Any]:
        """The columns, the share and who it is of; the value as its label."""
        return {
            "columns": list(self.columns),
            "share": self.share,
            "of": "others" if self.not_ else "holders",
            "value": label(self.value),
        }


@dataclass(frozen=True)
class Guesses:
    """How often each sensitive value is guessed from others, and how often rightly.

    ``people``, ``guessed`` and ``right`` have one entry per value of the domain.
    """

    people: Floats
    guessed: Floats
    right: Floats

    @property
    def gain(self) -> float:
        """Goodman and Kruskal's λ: the share of the errors of a plain guess that are avoided."""
        top = self.people.max()
        others = self.people.sum() - top
        return float((self.right.sum() - top) / others) if others else 0.0


def guess(group: Ints, value: Ints, count: Ints, domain_size: int, common: int) -> Guesses:
    """Guess everybody's value from the others in their group; groups are numbered from 0.

    ``common`` is the value that is guessed of somebody who is alone. Among values that are equally
    frequent, each is guessed equally often.
    """
    key, inverse = np.unique(group * np.int64(domain_size) + value, return_inverse=True)
    held = np.bincount(inverse.reshape(-1), weights=count).astype(np.float64)
    group, value = np.divmod(key, domain_size)
    starts = run_starts(group)
    cells = run_lengths(starts, group.size)
    sizes = np.asarray(np.add.reduceat(held, starts))
    order = np.lexsort((-held, group))
    first = order[starts]
    top, top_value = held[first], value[first]
    second = np.where(cells > 1, held[order[np.minimum(starts + 1, group.size - 1)]], 0.0)
    ties = np.add.reduceat((held == np.repeat(second, cells)).astype(float), starts)
    # Without a person, the most frequent value of a group has one holder less.
    lead = top - second
    chance = np.where(lead >= 2, 1.0, np.where((lead == 1) & (second > 0), 1 / (1 + ties), 0.0))
    alone = sizes == 1
    chance = np.where(alone, top_value == common, np.where(cells == 1, 1.0, chance))
    said = np.where(alone, common, top_value)

    def by_value(where: Ints, weights: Floats) -> Floats:
        return np.bincount(where, weights=weights, minlength=domain_size).astype(np.float64)

    return Guesses(by_value(value, held), by_value(said, sizes), by_value(top_value, top * chance))


def told_alone(joint: JointCounts, harmless: Collection[Value]) -> tuple[Giveaway, ...]:
    """What single public columns give away."""
    schema, found = joint.schema, []
    m = schema.domain_size
    for column, pairs in zip(schema.public, joint.columns(), strict=True):
        if not pairs.count.size:
            continue
        held = np.bincount(pairs.sensitive, weights=pairs.count, minlength=m)
        rank = _spelled_numbers(pairs.values) if column.kind is Kind.STRING else None
        code = pairs.code if rank is None else rank[pairs.code]
        # An adversary also looks at similar numbers.
        ordered = column.kind in ORDERED or rank is not None
        each = (
            guess(code // step, pairs.sensitive, pairs.count, m, int(held.argmax()))
            for step in (_NEIGHBOURS if ordered else (1,))
        )
        found.append(_worst(each, (column.name,), schema, harmless))
    return tuple(one for one in found if one is not None)


def _spelled_numbers(values: pa.Array) -> Ints | None:
    """Where each text comes in the order of numbers, if all texts spell one: CSV has such."""
    try:
        numbers = values.cast(pa.float64())
    except pa.ArrowInvalid:
        return None
    order = pc.array_sort_indices(numbers, null_placement="at_end").to_numpy()
    rank = np.empty(order.size, dtype=np.int64)
    rank[order] = np.arange(order.size)
    return rank


def told_together(
    cube: Cube, harmless: Collection[Value], alone: Collection[Giveaway]
) -> tuple[Giveaway, ...]:
    """What two public columns give away together though neither does alone; none if it is dear."""
    schema, m = cube.schema, cube.schema.domain_size
    known = {name for one in alone for name in one.columns}
    rest = [i for i, column in enumerate(schema.public) if column.name not in known]
    pairs = list(combinations(rest, 2))
    if len(pairs) * cube.value.size > _PAIRED_CELLS:
        return ()
    codes = {i: cube.codes[i][cube.group].astype(np.int64) for i in rest}
    common = int(np.bincount(cube.value, weights=cube.count, minlength=m).argmax())
    found = []
    for a, b in pairs:
        group = codes[a] * len(cube.values[b]) + codes[b]
        guesses = guess(group, cube.value, cube.count, m, common)
        names = (schema.public[a].name, schema.public[b].name)
        found.append(_worst([guesses], names, schema, harmless))
    return tuple(one for one in found if one is not None)


def _worst(
    each: Iterable[Guesses], names: tuple[str, ...], schema: Schema, harmless: Collection[Value]
) -> Giveaway | None:
    judged = (_giveaway(one, names, schema.domain, harmless) for one in each)
    return max((one for one in judged if one), key=lambda one: one.share, default=None)


def _giveaway(
    guesses: Guesses, columns: tuple[str, ...], domain: Sequence[Value], harmless: Collection[Value]
) -> Giveaway | None:
    """What the columns give away: of everybody, or of the holders of one value; None if nothing.

    Harmless values may be told, and so may the fact that a value is missing.
    """
    people, right = guesses.people, guesses.right
    common = int(people.argmax())
    others = people.sum() - people[common]
    if others < LEAST_PEOPLE:
        return None
    if guesses.gain > TOLD:
        told = float((right.sum() - right[common]) / others)
        return Giveaway(columns, told, domain[common], not_=True)
    found: list[Giveaway] = []
    for value, name in enumerate(domain):
        passed_over = value == common or name is None or name in harmless
        if passed_over or people[value] < LEAST_PEOPLE:
            continue
        told = float(right[value] / people[value])
        if told > TOLD_OF_VALUE and right[value] > TOLD_OF_VALUE * guesses.guessed[value]:
            found.append(Giveaway(columns, told, name, not_=False))
    return max(found, key=lambda one: one.share, default=None)

"""Protection groups: what each public column becomes, and the groups whose records then agree.

Values are merged by randomised counts: every record is perturbed once more (Eq. 1, words of its
own) and counted by public and sensitive value. The pair of values that differs least, by Pearson's
test of two samples, is merged, again and again, until all that are left differ. Numbers, dates and
bins are merged with their neighbours only. What comes out is a function of randomised records, and
tells nothing that they would not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from reconpriv.cells.cell_batch import CellBatch, Coarse, Encoded, Pools, python_values, unify
from reconpriv.cells.cube import Cube, collect, with_protection
from reconpriv.cells.randomness import Key, Randomness, perturb_words, purpose
from reconpriv.columns.declared_bins import Bins
from reconpriv.columns.declared_groups import unused_note
from reconpriv.columns.kinds import NUMBERS, ORDERED
from reconpriv.columns.recoding import MOST_LABELS, Recoding, bins_between, bins_of_width
from reconpriv.columns.schema import Column, Kind, Schema, Value, require_columns, value_text
from reconpriv.errors import InputError
from reconpriv.policy.policy import Policy
from reconpriv.policy.protection import (
    IGNORED,
    MERGED,
    NO_COARSENING,
    Coarsening,
    DeclaredColumn,
    as_interval,
    coarse_labels,
)
from reconpriv.protect.kernel import group_ids
from reconpriv.theory.arrays import Floats, Ints
from reconpriv.theory.estimation.independence import two_samples


def coarse_column(
    column: Column, schema: Schema, coarsening: Coarsening, values: pa.Array
) -> Encoded | None:
    """The label of each value of a column, in canonical order; None if the column is ignored."""
    recoding = dict(coarsening.columns)[column.name]
    if recoding is None:
        return None
    fine = schema.recoding(column.name)
    labels = coarse_labels(column, fine, recoding, python_values(values, column.name))
    ordered = [*sorted({label for label in labels if label is not None})]
    place: dict[str | None, int] = {label: i for i, label in enumerate(ordered)}
    if None in labels:
        place[None] = len(ordered)
    codes = np.array([place[label] for label in labels], dtype=np.int32)
    return Encoded(codes, pa.array([*place], pa.string()))


def coarse_columns(schema: Schema, coarsening: Coarsening) -> Coarse | None:
    """From public columns of micro groups to those of protection groups; None if they are equal."""

    def coarse(public: tuple[Encoded, ...]) -> tuple[Encoded, ...]:
        found = []
        for column, own in zip(schema.public, public, strict=True):
            if column.name not in coarsening.names:
                found.append(own)
            elif (labels := coarse_column(column, schema, coarsening, own.values)) is not None:
                found.append(Encoded(labels.codes[own.codes], labels.values))
        return tuple(found)

    return coarse if coarsening.columns else None


def pooled(batch: CellBatch, schema: Schema, coarsening: Coarsening) -> CellBatch:
    """The batch with the protection groups that its micro groups make up, in canonical order."""
    coarse = coarse_columns(schema, coarsening)
    if coarse is None:
        return batch
    columns = [unify([own]) for own in coarse(batch.public)]
    keys, within = _groups([codes for codes, _ in columns], batch.groups)
    m = schema.domain_size
    cells, position = np.unique(within[batch.group_of_cell] * m + batch.value, return_inverse=True)
    count = np.bincount(position.reshape(-1), weights=batch.count).astype(np.int64)
    starts = np.searchsorted(cells, np.arange(keys.shape[1]) * m)
    public = tuple(Encoded(own, values) for own, (_, values) in zip(keys, columns, strict=True))
    return replace(batch, pools=Pools(CellBatch(public, starts, cells % m, count), within))


def pooled_cube(cube: Cube, coarsening: Coarsening) -> Cube:
    """The cells with the protection groups that they make up; every record is a trial."""
    batch = pooled(cube.as_batch(), cube.schema, coarsening)
    if batch.pools is None:
        return cube
    whole = collect([batch.whole], coarsening.coarse(cube.schema), coin_flips=cube.coin_flips)
    return with_protection(cube, whole, batch.within)


def _groups(codes: list[NDArray[np.int32]], groups: int) -> tuple[NDArray[np.int32], Ints]:
    """The combinations of codes that occur, sorted, and which one each micro group has."""
    if not codes:
        return np.zeros((0, 1), dtype=np.int32), np.zeros(groups, dtype=np.int64)
    keys, within = np.unique(np.stack(codes), axis=1, return_inverse=True)
    return keys, within.reshape(-1).astype(np.int64)


Count = Callable[[Iterator[CellBatch]], "list[ValueCounts]"]
MapCounts = Callable[[Count], "list[list[ValueCounts]]"]
"""Applies a function to all groups, at once or part by part."""


@dataclass(frozen=True)
class ValueCounts:
    """The values of a public column, and randomised counts of the sensitive values with each.

    ``counts`` has no columns if nothing is to be merged.
    """

    values: pa.Array
    counts: Ints


def find_coarsening(policy: Policy, schema: Schema, map_groups: MapCounts, key: Key) -> Coarsening:
    """What a policy makes of each column, which depends on its values.

    Only a merge looks at sensitive values, and only at randomised ones; ``key`` randomises them.
    """
    protection = policy.wanted_protection
    require_columns(schema.public, protection.names, "a column to protect over")
    if not protection.columns:
        return NO_COARSENING
    declared = dict(protection.columns)
    places = tuple(i for i, one in enumerate(schema.public) if one.name in declared)
    merged = tuple(i for i in places if declared[schema.public[i].name] == MERGED)
    parts = map_groups(CountValues(schema, places, merged, policy.retention, key))
    found: list[tuple[str, Recoding | None]] = []
    notes: list[str] = []
    for number, place in enumerate(places):
        column = schema.public[place]
        counted = _joined([part[number] for part in parts])
        said = declared[column.name]
        if said == IGNORED:
            found.append((column.name, None))
        elif said == MERGED:
            fine = schema.recoding(column.name)
            found.append((column.name, merged_values(column, fine, counted.values, counted.counts)))
        else:
            recoding, note = _declared(column, schema.recoding(column.name), said, counted.values)
            found.append((column.name, recoding))
            notes.append(note)
    return Coarsening(tuple(found), tuple(filter(None, notes)))


@dataclass(frozen=True)
class CountValues:
    """Counts values for a coarsening in a part of the table; picklable, so tasks can carry it."""

    schema: Schema
    places: tuple[int, ...]
    merged: tuple[int, ...]
    retention: float
    key: Key

    def __call__(self, batches: Iterable[CellBatch]) -> list[ValueCounts]:
        """One pass over whole groups."""
        found: list[list[ValueCounts]] = [[] for _ in self.places]
        for batch in batches:
            randomised = (
                randomised_cells(batch, self.schema, self.retention, self.key)
                if self.merged
                else NOTHING_RANDOMISED
            )
            for parts, place in zip(found, self.places, strict=True):
                codes, values = unify([batch.public[place]])
                m = self.schema.domain_size if place in self.merged else 0
                counts = np.zeros((len(values), m), dtype=np.int64)
                if m:
                    np.add.at(counts, (codes[randomised.group], randomised.value), randomised.count)
                parts[:] = [_joined([*parts, ValueCounts(values, counts)])]
        return [parts[0] for parts in found]


def _joined(parts: Sequence[ValueCounts]) -> ValueCounts:
    """The counts of all parts by value; none of so many values that they cannot be merged."""
    codes, values = unify(
        [Encoded(np.arange(len(part.values), dtype=np.int32), part.values) for part in parts]
    )
    columns = min(part.counts.shape[1] for part in parts) if len(values) <= MOST_LABELS else 0
    counts = np.zeros((len(values), columns), dtype=np.int64)
    np.add.at(counts, codes, np.concatenate([part.counts[:, :columns] for part in parts]))
    return ValueCounts(values, counts)


def _declared(
    column: Column, fine: Recoding | None, said: DeclaredColumn, known: pa.Array
) -> tuple[Recoding, str]:
    values = python_values(known, column.name)
    recoding = _bins(column, fine, said, values) if isinstance(said, Bins) else said
    assert isinstance(recoding, Recoding)
    coarse_labels(column, fine, recoding, values)  # refuses what it does not cover
    texts = {value_text(column.kind, value) for value in values if value is not None}
    return recoding, unused_note(recoding, texts)


def _bins(column: Column, fine: Recoding | None, said: Bins, values: list[Value]) -> Recoding:
    places = [as_interval(column, fine, value) for value in values if value is not None]
    if not places:
        raise InputError(f"Column {column.name!r} has no value in any record.")
    whole = column.kind is Kind.INTEGER if fine is None else fine.whole
    if said.width is not None:
        lowest = min(low for low, _ in places)
        highest = max(low for low, _ in places)
        return bins_of_width(column.name, said.width, lowest, highest, whole=whole)
    return bins_between(column.name, said.borders, whole=whole)


LEVEL = 0.05  # values that differ at this level of significance stay apart
_LISTED = 3  # values that the label of a merged group lists


@dataclass(frozen=True)
class Randomised:
    """Randomised records: how many of a group have a value; a cell may come several times."""

    group: Ints
    value: Ints
    count: Ints


_NO_CELLS: Ints = np.zeros(0, dtype=np.int64)
NOTHING_RANDOMISED = Randomised(_NO_CELLS, _NO_CELLS, _NO_CELLS)


def randomised_cells(batch: CellBatch, schema: Schema, retention: float, key: Key) -> Randomised:
    """The records of a batch, randomised once more."""
    m = schema.domain_size
    randomness = Randomness(key, purpose(retention, schema.sensitive, schema.domain, b"merging"))
    hashes = randomness.hash_sensitive(schema.sensitive, schema.domain)
    group = batch.group_of_cell
    ids = group_ids(randomness, schema, batch)[group] + hashes[batch.value]
    slots, counts = [], []
    for cell, words in randomness.trials(ids, batch.count):
        value = perturb_words(words[:, 0], batch.value[cell], retention=retention, domain_size=m)
        slot, count = np.unique(group[cell] * m + value, return_counts=True)
        slots.append(slot)
        counts.append(count)
    slot = np.concatenate(slots)
    return Randomised(slot // m, slot % m, np.concatenate(counts))


def merged_values(column: Column, fine: Recoding | None, known: pa.Array, counts: Ints) -> Recoding:
    """The coarsening of a public column in which all values that are left differ.

    ``counts`` are those of randomised records, with a line for each value and a column for each
    sensitive one.
    """
    values = python_values(known, column.name)
    if len(values) > MOST_LABELS:
        raise InputError(
            f"Column {column.name!r} has more than {MOST_LABELS:,} values, too many to merge.",
            hint="Give a width, borders, or a file of groups.",
        )
    present = [i for i, value in enumerate(values) if value is not None]
    if not present:
        raise InputError(f"Column {column.name!r} has no value in any record.")
    numeric = fine.numeric if fine is not None else column.kind in NUMBERS
    if numeric:
        present.sort(key=lambda i: as_interval(column, fine, values[i])[0])
    ordered = numeric or (fine.binned if fine is not None else column.kind in ORDERED)
    found = merge(counts[present].astype(np.float64), ordered=ordered)
    runs = [[values[present[i]] for i in run] for run in found]
    if not numeric:
        return _grouped(column, runs, ordered=ordered)
    whole = column.kind is Kind.INTEGER if fine is None else fine.whole
    borders = [as_interval(column, fine, run[0])[0] for run in runs]
    return bins_between(column.name, borders, whole=whole)


def merge(counts: Floats, *, ordered: bool) -> list[list[int]]:
    """Which rows belong together; with ``ordered`` only neighbours are merged."""
    rows = counts.copy()
    members = [[i] for i in range(len(rows))]
    alike = _pairs(rows, ordered=ordered)
    while len(members) > 1:
        one, other = np.unravel_index(int(np.argmax(alike)), alike.shape)
        if alike[one, other] <= LEVEL:
            break
        first, second = sorted((int(one), int(other)))
        rows[first] += rows[second]
        members[first] += members.pop(second)
        rows = np.delete(rows, second, axis=0)
        alike = np.delete(np.delete(alike, second, axis=0), second, axis=1)
        _compare(alike, rows, first, ordered=ordered)
    return members


def _pairs(rows: Floats, *, ordered: bool) -> Floats:
    """The p-value of each pair that may be merged, -1 for the others."""
    alike = np.full((len(rows), len(rows)), -1.0)
    for one in range(len(rows)):
        _compare(alike, rows, one, ordered=ordered)
    return alike


def _compare(alike: Floats, rows: Floats, one: int, *, ordered: bool) -> None:
    others = np.array(list(_partners(one, len(rows), ordered=ordered)), dtype=np.int64)
    if others.size:
        # Whole numbers in the last place may differ between processors; a merge must not.
        alike[one, others] = alike[others, one] = np.round(two_samples(rows[one], rows[others]), 9)


def _partners(one: int, rows: int, *, ordered: bool) -> Iterator[int]:
    for other in (one - 1, one + 1) if ordered else range(rows):
        if 0 <= other < rows and other != one:
            yield other


def _grouped(column: Column, runs: Sequence[Sequence[Value]], *, ordered: bool) -> Recoding:
    """Merged values as a file of groups would give them."""
    members = tuple(tuple(value_text(column.kind, value) for value in run) for run in runs)
    labels: list[str] = []
    for texts in members:
        label = _label(texts, ordered=ordered)
        while label in labels:
            label += " too"
        labels.append(label)
    return Recoding(column.name, "groups", tuple(labels), members=members)


def _label(texts: Sequence[str], *, ordered: bool) -> str:
    if len(texts) == 1:
        return texts[0]
    if ordered:
        return f"{texts[0]} to {texts[-1]}"
    if len(texts) <= _LISTED:
        return " or ".join(texts)
    return f"{texts[0]} or {len(texts) - 1} others"

"""Finding a coarsening: values of a public column that randomised counts cannot tell apart.

Every record is perturbed once more (Eq. 1, words of its own) and counted by public and sensitive
value. The pair of values that differs least, by Pearson's test of two samples, is merged, again and
again, until all that are left differ. Numbers, dates and bins are merged with their neighbours
only. What comes out is a function of randomised records, and tells nothing that they would not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from reconpriv.cells.cell_batch import CellBatch, python_values
from reconpriv.cells.randomness import Key, Randomness, merging_purpose, perturb_words
from reconpriv.columns.recoding import MOST_LABELS, Recoding, bins_between
from reconpriv.columns.schema import Column, Kind, Schema, Value, value_text
from reconpriv.errors import InputError
from reconpriv.policy.protection import as_interval
from reconpriv.protect.kernel import group_ids
from reconpriv.theory.arrays import Floats, Ints
from reconpriv.theory.estimation.independence import two_samples

LEVEL = 0.05  # values that differ at this level of significance stay apart
_NUMBERS = (Kind.INTEGER, Kind.NUMBER, Kind.DECIMAL)
_TIMES = (Kind.DATE, Kind.DATETIME, Kind.TIME)
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
    randomness = Randomness(key, merging_purpose(retention, schema.sensitive, schema.domain))
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
    numeric = fine.numeric if fine is not None else column.kind in _NUMBERS
    if numeric:
        present.sort(key=lambda i: as_interval(column, fine, values[i])[0])
    ordered = numeric or (fine.binned if fine is not None else column.kind in _TIMES)
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

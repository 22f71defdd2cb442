"""Finding a coarsening: values of a public column that randomised counts cannot tell apart.

Every record is perturbed once more (Eq. 1, words of its own) and counted by public and sensitive
value. The pair of values that differs least, by Pearson's test of two samples, is merged, again and
again, until all that are left differ. Numbers, dates and bins are merged with their neighbours
only. What comes out is a function of randomised records, and tells nothing that they would not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from reconpriv.core.cells import python_values
from reconpriv.core.cube import Cube
from reconpriv.core.kernel import group_ids
from reconpriv.core.protection import as_interval
from reconpriv.core.randomness import Key, Randomness, merging_purpose, perturb_words
from reconpriv.errors import InputError
from reconpriv.recoding import MOST_LABELS, Recoding, bins_between
from reconpriv.schema import Column, Kind, Value, value_text
from reconpriv.theory.arrays import Floats, Ints
from reconpriv.theory.independence import two_samples

LEVEL = 0.05  # values that differ at this level of significance stay apart
_NUMBERS = (Kind.INTEGER, Kind.NUMBER, Kind.DECIMAL)
_TIMES = (Kind.DATE, Kind.DATETIME, Kind.TIME)
_LISTED = 3  # values that the label of a merged group lists


def randomised_cells(cube: Cube, retention: float, key: Key) -> Ints:
    """Randomised records of every micro group, one column per sensitive value."""
    schema, m = cube.schema, cube.schema.domain_size
    randomness = Randomness(key, merging_purpose(retention, schema.sensitive, schema.domain))
    hashes = randomness.hash_sensitive(schema.sensitive, schema.domain)
    ids = group_ids(randomness, schema, cube.as_batch())[cube.group] + hashes[cube.value]
    counts = np.zeros(cube.groups * m, dtype=np.int64)
    for cell, words in randomness.trials(ids, cube.count):
        value = perturb_words(words[:, 0], cube.value[cell], retention=retention, domain_size=m)
        slots, found = np.unique(cube.group[cell] * m + value, return_counts=True)
        counts[slots] += found
    return counts.reshape(cube.groups, m)


def merged_values(cube: Cube, place: int, randomised: Ints) -> Recoding:
    """The coarsening of a public column in which all values that are left differ."""
    column, known = cube.schema.public[place], cube.values[place]
    values = python_values(known, column.name)
    if len(values) > MOST_LABELS:
        raise InputError(
            f"Column {column.name!r} has more than {MOST_LABELS:,} values, too many to merge.",
            hint="Give a width, borders, or a file of groups.",
        )
    counts = np.zeros((len(values), cube.schema.domain_size))
    np.add.at(counts, cube.codes[place], randomised)
    present = [i for i, value in enumerate(values) if value is not None]
    if not present:
        raise InputError(f"Column {column.name!r} has no value in any record.")
    fine = cube.schema.recoding(column.name)
    numeric = fine.numeric if fine is not None else column.kind in _NUMBERS
    if numeric:
        present.sort(key=lambda i: as_interval(column, fine, values[i])[0])
    ordered = numeric or (fine.binned if fine is not None else column.kind in _TIMES)
    runs = [[values[present[i]] for i in run] for run in merge(counts[present], ordered=ordered)]
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

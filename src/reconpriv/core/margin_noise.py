"""Noisy margins: discrete Gaussian noise on every count, drawn from the secret key.

The noise of a count depends on [table, values, sensitive value, count] and on nothing else: not on
the engine, the order of the records, or other counts. The same table gives the same margins again;
a count that changes gets noise of its own, so that the difference of two releases hides the change.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from reconpriv.core.cells import python_values
from reconpriv.core.margin_tables import MarginTable
from reconpriv.core.randomness import Key, Randomness, margins_purpose
from reconpriv.schema import Schema
from reconpriv.theory.arrays import Floats, Ints
from reconpriv.theory.discrete_gaussian import discrete_gaussian


def noisy_tables(
    tables: Sequence[MarginTable], variance: float, schema: Schema, key: Key
) -> tuple[MarginTable, ...]:
    """The tables with noise of this variance on every count."""
    randomness = Randomness(key, margins_purpose(variance, schema.sensitive, schema.domain))
    return tuple(
        MarginTable(table.attributes, table.columns, _noisy(table, variance, schema, randomness))
        for table in tables
    )


def _noisy(table: MarginTable, variance: float, schema: Schema, randomness: Randomness) -> Ints:
    """The words of a count are those of [sum of its values' hashes, count]; hashes hold names."""
    ids = np.zeros(table.rows, dtype=np.uint64)
    for attribute, column in zip(table.attributes, table.columns, strict=True):
        described = schema.public[attribute]
        values = python_values(column.values, described.name)
        ids += randomness.hash_values(described, values)[column.codes]
    sensitive = randomness.hash_sensitive(schema.sensitive, schema.domain)
    cells = (ids[:, None] + sensitive[None, :]).reshape(-1)
    words = randomness.words(cells, table.counts.reshape(-1).astype(np.uint64))
    noise = discrete_gaussian(variance).draw(words[:, 0].copy(), words[:, 1].copy())
    return np.asarray(table.counts + noise.reshape(table.counts.shape))


def adjusted(counts: Ints, sizes: Ints | Floats) -> Floats:
    """Noisy counts moved so that each row adds up to its size, which is public.

    All m counts of a row move alike: the best use of independent noises of one variance.
    """
    excess = (counts.sum(axis=1) - sizes) / counts.shape[1]
    return np.asarray(counts - excess[:, None])

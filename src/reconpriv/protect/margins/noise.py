"""Noisy margins: discrete Gaussian noise on every count, drawn from the secret key.

The noise of a count is drawn from [table, values, sensitive value, count], with words bound to a
digest of all counts, and to nothing else: not to the engine or the order of the records. The same
margins get the same noise again. If any count changes, all of them get new noise: otherwise two
releases with one key would show exactly between which counts a changed record moved.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np

from reconpriv.cells.cell_batch import python_values
from reconpriv.cells.randomness import Key, Randomness, encoded, purpose
from reconpriv.columns.schema import Schema
from reconpriv.protect.kernel import hashed_ids
from reconpriv.protect.margins.tables import MarginTable
from reconpriv.theory.arrays import Floats, Ints
from reconpriv.theory.margins.discrete_gaussian import discrete_gaussian


def noisy_tables(
    tables: Sequence[MarginTable], variance: float, schema: Schema, key: Key
) -> tuple[MarginTable, ...]:
    """The tables with noise of this variance on every count."""
    use = b"margins" + digest(tables, schema)
    randomness = Randomness(key, purpose(variance, schema.sensitive, schema.domain, use))
    return tuple(
        MarginTable(table.attributes, table.columns, _noisy(table, variance, schema, randomness))
        for table in tables
    )


def digest(tables: Sequence[MarginTable], schema: Schema) -> bytes:
    """A fingerprint of all true counts and their rows: a secret, like the counts themselves."""
    state = hashlib.blake2b(digest_size=32)
    for table in tables:
        for attribute, column in zip(table.attributes, table.columns, strict=True):
            described = schema.public[attribute]
            values = python_values(column.values, described.name)
            texts = [repr(described.name), *(encoded(described, v).hex() for v in values)]
            state.update(",".join(texts).encode() + b";")
            state.update(column.codes.astype("<i8").tobytes())
        state.update(table.counts.astype("<i8").tobytes() + b"|")
    return state.digest()


def _noisy(table: MarginTable, variance: float, schema: Schema, randomness: Randomness) -> Ints:
    """The words of a count are those of [sum of its values' hashes, count]; hashes hold names."""
    described = [schema.public[attribute] for attribute in table.attributes]
    ids = hashed_ids(randomness, described, table.columns, table.rows)
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

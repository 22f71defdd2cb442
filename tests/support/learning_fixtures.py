"""Tables drawn from a population repeatedly, and published by the kernel in one go."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

import reconpriv as rp
from query_fixtures import published_cube
from reconpriv.cells.cell_batch import CellBatch, Encoded
from reconpriv.cells.cube import Cube
from reconpriv.columns.schema import Column, Kind, Schema
from reconpriv.protect.margins.tables import MarginTable

P = 0.5
SIGMA = 12.0  # of the noise of margins


@dataclass(frozen=True)
class Population:
    """Records have a (rows), b (what the sensitive value s depends on) and s.

    ``tilt`` makes the first sensitive value likelier in the first row; without it, a says nothing.
    """

    rows: int = 2
    others: int = 6
    values: int = 5
    records: int = 1_200
    tilt: float = 0.0

    def probabilities(self) -> np.ndarray:
        """The probability of every (a, b, s); s depends on b, and on a only if there is a tilt."""
        q = 1.0 / np.arange(1, self.values + 1) ** 1.5
        strength = np.linspace(-0.6, 0.6, self.others)[:, None]
        given_b = q * np.exp(strength * np.cos(2.0 * np.arange(self.values)))
        given_b /= given_b.sum(axis=1, keepdims=True)
        a, b = np.arange(1.0, self.rows + 1), np.arange(1.0, self.others + 1)
        joint = a[:, None, None] * b[None, :, None] * given_b[None]
        joint[0, :, 0] *= 1.0 + self.tilt
        return joint / joint.sum()


def replicated_cubes(
    population: Population, sampling: str, replicates: int, seed: int
) -> Iterator[Cube]:
    """One new table per replicate, published in one pass with the replicate as a public column."""
    counts = _drawn(population, replicates, seed)
    yield from _split(_published(counts, sampling, seed), replicates)


def replicated_margins(
    population: Population,
    sampling: str,
    replicates: int,
    seed: int,
    *,
    tables: tuple[str, ...] = ("a", "b"),
    sigma: float = SIGMA,
) -> Iterator[tuple[Cube, tuple[MarginTable, ...]]]:
    """The same, each with noisy margins of its true counts; values that do not occur have none."""
    counts = _drawn(population, replicates, seed)
    rng = np.random.default_rng([seed, 1])
    cubes = _split(_published(counts, sampling, seed), replicates)
    for cube, true in zip(cubes, counts, strict=True):
        margins = []
        for name in tables:
            position = "ab".index(name)
            rows = true.sum(axis=1 - position)
            noisy = rows + np.rint(rng.normal(0.0, sigma, rows.shape)).astype(np.int64)
            codes = np.flatnonzero(rows.sum(axis=1))
            column = Encoded(codes.astype(np.int32), pa.array(np.arange(rows.shape[0])))
            margins.append(MarginTable((position,), (column,), noisy[codes]))
        yield cube, tuple(margins)


def _drawn(population: Population, replicates: int, seed: int) -> np.ndarray:
    """The counts of every replicate by a, b and s."""
    rng = np.random.default_rng(seed)
    shape = (population.rows, population.others, population.values)
    probabilities = population.probabilities().ravel()
    return rng.multinomial(population.records, probabilities, size=replicates).reshape(-1, *shape)


def _published(drawn: np.ndarray, sampling: str, seed: int) -> Cube:
    replicates, a, b, m = drawn.shape
    counts = drawn.reshape(-1, m)
    ids = np.flatnonzero(counts.sum(axis=1) > 0)
    counts = counts[ids]
    group, value = np.nonzero(counts)

    def column(codes: np.ndarray, values: int) -> Encoded:
        return Encoded(codes.astype(np.int32), pa.array(np.arange(values)))

    public = (column(ids // (a * b), replicates), column(ids // b % a, a), column(ids % b, b))
    starts = np.searchsorted(group, np.arange(ids.size))
    batch = CellBatch(public, starts, value, counts[group, value])
    names = [Column(name, Kind.INTEGER) for name in ("replicate", "a", "b")]
    sensitive = Column("s", Kind.INTEGER)
    schema = Schema(tuple(names), sensitive, tuple(range(m)), int(counts.sum()))
    key = rp.Key(hashlib.sha256(f"learning {seed}".encode()).digest())
    return published_cube(
        [batch], schema, rp.Policy(retention=P, tolerance=0.5, doubt=0.3, sampling=sampling), key
    )


def _split(whole: Cube, replicates: int) -> Iterator[Cube]:
    """The groups of each replicate as a separate cube; they are adjacent."""
    schema = Schema(whole.schema.public[1:], whole.schema.sensitive, whole.schema.domain)
    first = np.searchsorted(whole.codes[0], np.arange(replicates + 1))
    cells = np.searchsorted(whole.group, first)
    for low, high, low_cell, high_cell in zip(
        first[:-1], first[1:], cells[:-1], cells[1:], strict=True
    ):
        yield Cube(
            schema=schema,
            codes=tuple(codes[low:high] for codes in whole.codes[1:]),
            values=whole.values[1:],
            records=whole.records[low:high],
            trials=whole.trials[low:high],
            group=whole.group[low_cell:high_cell] - low,
            value=whole.value[low_cell:high_cell],
            count=whole.count[low_cell:high_cell],
        )

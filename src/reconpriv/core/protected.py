"""Publishing protection groups, and dealing what is published to their micro groups.

The kernel publishes the protection groups like any others: |G| values per group. The deal hands
these out at random to the |G| records, so that each micro group gets as many as it has records and
public counts stay exact. It uses nothing but what is published and public, so the values of a micro
group tell no more about it than those of its protection group do.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from reconpriv.core.cells import CellBatch, Encoded
from reconpriv.core.coarsening import coarsen, settle
from reconpriv.core.cube import Cube
from reconpriv.core.kernel import Kernel, PublishedBatch, group_ids
from reconpriv.core.protected_cube import ProtectedCube, with_protection
from reconpriv.core.protection import Settled
from reconpriv.core.randomness import Key, Randomness, Words, deal_purpose
from reconpriv.policy import Policy
from reconpriv.schema import Schema
from reconpriv.theory.arrays import Ints

_RECORDS_AT_ONCE = 1 << 22


@dataclass(frozen=True)
class ProtectedPublication:
    """Protection groups as published, and the cells that their micro groups were dealt.

    ``schema`` and ``groups`` are those of the protection groups, ``public`` has the values of the
    micro groups, ``within`` the protection group of each. ``group``, ``value`` and ``count`` have
    one row per dealt cell, in canonical order.
    """

    settled: Settled
    schema: Schema
    groups: tuple[PublishedBatch, ...]
    public: tuple[Encoded, ...]
    within: Ints
    group: Ints
    value: Ints
    count: Ints


def publish_protected(raw: Cube, policy: Policy, key: Key) -> ProtectedPublication:
    """Publish the protection groups of a table and deal to its micro groups."""
    protection = policy.wanted_protection
    assert protection is not None
    settled = settle(protection, raw, policy.retention, key)
    coarse, within = coarsen(raw, settled)
    kernel = Kernel(coarse.schema, policy, key)
    batch = coarse.as_batch()
    published = tuple(kernel(batch))
    group, value, count = deal(published, batch, within, raw.records, kernel)
    public = raw.as_batch().public
    return ProtectedPublication(
        settled, coarse.schema, published, public, within, group, value, count
    )


def deal(
    published: tuple[PublishedBatch, ...],
    batch: CellBatch,
    within: Ints,
    sizes: Ints,
    kernel: Kernel,
) -> tuple[Ints, Ints, Ints]:
    """Deal the values of each protection group to its micro groups, each getting its size.

    Every published value of a protection group has a keyed word; in the order of these words they
    go to the micro groups in canonical order.
    """
    schema, m = kernel.schema, kernel.schema.domain_size
    purpose = deal_purpose(kernel.policy.retention, schema.sensitive, schema.domain)
    randomness = Randomness(kernel.key, purpose)
    ids = group_ids(randomness, schema, batch)
    cells = _joined(published)
    records = np.bincount(cells[0], weights=cells[2], minlength=batch.groups).astype(np.int64)
    by_protection_group = np.argsort(within, kind="stable")
    micro_starts = np.searchsorted(within[by_protection_group], np.arange(batch.groups + 1))
    cell_starts = np.searchsorted(cells[0], np.arange(batch.groups + 1))
    slots, counts = [], []
    for first, last in _stretches(records):
        own = slice(cell_starts[first], cell_starts[last])
        values = np.repeat(cells[1][own], cells[2][own])
        micro = by_protection_group[micro_starts[first] : micro_starts[last]]
        words = _words(randomness, ids[first:last], records[first:last])
        group = np.repeat(np.arange(last - first), records[first:last])
        values = values[np.lexsort((words, group))]
        slot, count = np.unique(np.repeat(micro, sizes[micro]) * m + values, return_counts=True)
        slots.append(slot)
        counts.append(count)
    slot, count = np.concatenate(slots), np.concatenate(counts)
    order = np.argsort(slot)
    return slot[order] // m, slot[order] % m, count[order]


def _words(randomness: Randomness, ids: Words, records: Ints) -> Words:
    return np.concatenate([words[:, 0] for _, words in randomness.trials(ids, records)])


def _stretches(records: Ints) -> Iterator[tuple[int, int]]:
    """Groups first..last-1 that hold a few million records together, and at least one group."""
    upto = np.cumsum(records)
    first = 0
    while first < records.size:
        base = upto[first - 1] if first else 0
        last = int(np.searchsorted(upto, base + _RECORDS_AT_ONCE, side="right"))
        last = max(first + 1, last)
        yield first, last
        first = last


def _joined(published: tuple[PublishedBatch, ...]) -> tuple[Ints, Ints, Ints]:
    """The published cells of all pieces: group, value and count."""
    first = np.cumsum([0, *(piece.records.size for piece in published[:-1])])
    group = [piece.group + start for piece, start in zip(published, first, strict=True)]
    return (
        np.concatenate(group),
        np.concatenate([piece.value for piece in published]),
        np.concatenate([piece.count for piece in published]),
    )


def protected_cube(raw: Cube, publication: ProtectedPublication) -> ProtectedCube:
    """A publication in memory, on the same micro groups and codes as the raw cube."""
    dealt = replace(raw, group=publication.group, value=publication.value, count=publication.count)
    whole = coarsen(dealt, publication.settled).cube
    trials = np.concatenate([piece.trials for piece in publication.groups]).astype(np.float64)
    return with_protection(dealt, replace(whole, trials=trials), publication.within)

"""Dealing what is published for protection groups to their micro groups.

The kernel publishes a protection group like any other group: |G| values. The deal hands these out
at random to the |G| records, so that each micro group gets as many as it has records and public
counts stay exact. It uses nothing but what is published and public, so the values of a micro group
tell no more about it than those of its protection group do.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from reconpriv.cells.randomness import Randomness, Words
from reconpriv.theory.arrays import Ints

_RECORDS_AT_ONCE = 1 << 22


@dataclass(frozen=True)
class Hand:
    """Published cells of protection groups, and the micro groups to deal to, in canonical order.

    ``within`` is the protection group of each micro group, and ``sizes`` how many it gets.
    """

    group: Ints
    value: Ints
    count: Ints
    within: Ints
    sizes: Ints


def deal(
    hand: Hand, ids: Words, randomness: Randomness, domain_size: int
) -> tuple[Ints, Ints, Ints]:
    """The micro group, value and count of every dealt cell, in canonical order.

    Every published value of a protection group has a keyed word; in the order of these words they
    go to the micro groups in their order.
    """
    m, groups = domain_size, ids.size
    records = np.bincount(hand.group, weights=hand.count, minlength=groups).astype(np.int64)
    by_protection_group = np.argsort(hand.within, kind="stable")
    micro_starts = np.searchsorted(hand.within[by_protection_group], np.arange(groups + 1))
    cell_starts = np.searchsorted(hand.group, np.arange(groups + 1))
    slots, counts = [], []
    for first, last in _stretches(records):
        own = slice(cell_starts[first], cell_starts[last])
        values = np.repeat(hand.value[own], hand.count[own])
        micro = by_protection_group[micro_starts[first] : micro_starts[last]]
        words = _words(randomness, ids[first:last], records[first:last])
        group = np.repeat(np.arange(last - first), records[first:last])
        values = values[np.lexsort((words, group))]
        dealt = np.repeat(micro, hand.sizes[micro]) * m + values
        slot, count = np.unique(dealt, return_counts=True)
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

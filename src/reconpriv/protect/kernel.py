"""Sampling, Perturbing, Scaling on cells: Algorithm 1 and its hardened forms.

A pure function of (cells, policy, key). Engines bring the cells and write what comes out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from reconpriv.cells.cell_batch import CellBatch, Encoded, python_values
from reconpriv.cells.randomness import (
    GROUP_OFFSET,
    SAMPLING_COIN,
    Key,
    Randomness,
    Words,
    perturb_words,
    purpose,
    unit_interval,
)
from reconpriv.columns.schema import Column, Schema
from reconpriv.policy.policy import Policy
from reconpriv.policy.sampling_rules import sample_limits
from reconpriv.protect.margins.planned import UNCOUNTED, TrialLimits
from reconpriv.theory.arrays import Flags, Floats, Ints

# Work at a time: trials held for scaling, entries of the groups x domain count matrix, and records
# of protection groups that are dealt.
_TRIALS_AT_ONCE = 1 << 21
_COUNTS_AT_ONCE = 1 << 22
_RECORDS_AT_ONCE = 1 << 22


@dataclass(frozen=True)
class PublishedCells:
    """Published cells of some groups: public values and place of each group, a row per cell."""

    public: tuple[Encoded, ...]
    places: Ints
    group: Ints
    value: Ints
    count: Ints


@dataclass(frozen=True)
class PublishedBatch(PublishedCells):
    """Published cells of whole protection groups, with what each group rests on.

    ``group``, ``value`` and ``count`` have one row per published cell, the rest one row per
    protection group. ``trials`` may be published only if the sampling rule does not depend on the
    exact f. ``places`` says where in the batch each group is. ``shares`` are the cells of micro
    groups that share protection groups.
    """

    sizes: Ints
    records: Ints
    trials: Ints
    sampled: Flags
    unattainable: Flags
    shares: PublishedCells | None = None

    @property
    def dealt(self) -> PublishedCells:
        """The cells of the micro groups, as the rows of a release have them."""
        return self.shares or self


@dataclass(frozen=True)
class Draw:
    """What is drawn of the protection groups of a batch, before anything is perturbed.

    ``groups`` and ``cells`` are their ids, ``trials`` how many of each cell are drawn, ``limits``
    how many each group may have, and ``sampled`` says which groups have more records than that.
    """

    groups: Words
    cells: Words
    trials: Ints
    limits: Floats
    sampled: Flags


@dataclass(frozen=True)
class Kernel:
    """Everything the publication of a batch depends on; picklable, so tasks can carry it.

    ``schema`` is that of the protection groups. ``counted`` lowers the limits of trials by what
    margins are worth.
    """

    schema: Schema
    policy: Policy
    key: Key
    counted: TrialLimits = UNCOUNTED

    def randomness(self, use: bytes = b"") -> Randomness:
        """The words of this publication; they change with p, sensitive column and domain."""
        schema, p = self.schema, self.policy.retention
        return Randomness(self.key, purpose(p, schema.sensitive, schema.domain, use))

    def limits(self, batch: CellBatch) -> Floats:
        """The most trials that each protection group may have."""
        batch = batch.whole
        return self.counted.lowered(
            batch, sample_limits(batch, self.policy, self.schema.domain_size)
        )

    def draw(self, batch: CellBatch) -> Draw:
        """How many trials of each cell are drawn, from limits of the protection groups.

        These are trials 0, 1, … of the cell's words. So all releases with one key together show as
        many different trials of a cell as the release that shows most of them.
        """
        randomness, batch = self.randomness(), batch.whole
        ids = group_ids(randomness, self.schema, batch)
        hashes = randomness.hash_sensitive(self.schema.sensitive, self.schema.domain)
        cell_ids = ids[batch.group_of_cell] + hashes[batch.value]
        limits = self.limits(batch)
        drawn = _sample(batch, limits, self.policy, randomness, cell_ids, ids)
        return Draw(ids, cell_ids, drawn, limits, batch.sizes > limits)

    def __call__(self, batch: CellBatch) -> Iterator[PublishedBatch]:
        """Publish whole protection groups in pieces of bounded size, and deal to micro groups."""
        return self.publish(batch, self.draw(batch))

    def publish(self, batch: CellBatch, draw: Draw) -> Iterator[PublishedBatch]:
        """Publish what was drawn; neither sampled trials nor counts may outgrow memory."""
        whole = batch.whole
        held = np.where(draw.sampled, np.minimum(draw.limits, whole.sizes) + 1, 0)
        counts = self.schema.domain_size / _COUNTS_AT_ONCE
        for first, last in _stretches(np.maximum(held / _TRIALS_AT_ONCE, counts)):
            own = whole.slice(first, last)
            begin = int(whole.starts[first])
            groups, cells = slice(first, last), slice(begin, begin + own.count.size)
            piece = Draw(
                draw.groups[groups],
                draw.cells[cells],
                draw.trials[cells],
                draw.limits[groups],
                draw.sampled[groups],
            )
            published = self._publish_piece(own, piece, np.arange(first, last))
            if batch.pools is not None:
                published = replace(published, shares=self._deal(batch, published, own))
            yield published

    def _publish_piece(self, batch: CellBatch, draw: Draw, places: Ints) -> PublishedBatch:
        m, policy, randomness = self.schema.domain_size, self.policy, self.randomness()
        counts = np.zeros(batch.groups * m, dtype=np.int64)
        group_of_cell = batch.group_of_cell
        in_sampled = draw.sampled[group_of_cell]

        def perturbed(cells: Ints) -> Iterator[tuple[Ints, Ints, Words]]:
            """Perturbing(g1, p, m): the group, new value and scaling word of every trial."""
            group, own = group_of_cell[cells], batch.value[cells]
            for cell, words in randomness.trials(draw.cells[cells], draw.trials[cells]):
                value = perturb_words(
                    words[:, 0], own[cell], retention=policy.retention, domain_size=m
                )
                yield group[cell], value, words[:, 1]

        for group, value, _ in perturbed(np.flatnonzero(~in_sampled)):
            # Trials come in the order of groups, so a chunk touches one stretch of the counts.
            low, high = int(group[0]) * m, (int(group[-1]) + 1) * m
            counts[low:high] += np.bincount(group * m + value - low, minlength=high - low)
        if in_sampled.any():
            parts = zip(*perturbed(np.flatnonzero(in_sampled)), strict=True)
            group, value, scale_words = (np.concatenate(column) for column in parts)
            copies = _scale(group, scale_words, batch.sizes, policy)
            # Weights are whole and far below 2^53, so the float sums of bincount are exact.
            counts += np.bincount(group * m + value, copies, counts.size).astype(np.int64)
        occupied = np.flatnonzero(counts)
        return PublishedBatch(
            public=batch.public,
            places=places,
            group=occupied // m,
            value=occupied % m,
            count=counts[occupied],
            sizes=batch.sizes,
            records=counts.reshape(batch.groups, m).sum(axis=1),
            trials=np.add.reduceat(draw.trials, batch.starts),
            sampled=draw.sampled,
            unattainable=draw.sampled & (draw.limits < 1.0),
        )

    def _deal(self, batch: CellBatch, published: PublishedBatch, own: CellBatch) -> PublishedCells:
        """Deal the values published for protection groups to their micro groups.

        The |G| values of a protection group go to its |G| records at random, so that each micro
        group gets as many as it has records and public counts stay exact: every value has a keyed
        word, and in the order of these words they go to the micro groups in their order. Nothing is
        used but what is published and public, so the values of a micro group tell no more about it
        than those of its protection group do.
        """
        m, randomness = self.schema.domain_size, self.randomness(b"deal")
        ids, sizes = group_ids(randomness, self.schema, own), batch.sizes
        within = batch.within - published.places[0]
        records = published.records
        order = np.argsort(within, kind="stable")
        edges = np.arange(own.groups + 1)
        micro_starts = np.searchsorted(within[order], edges)
        cell_starts = np.searchsorted(published.group, edges)
        slots, counts = [], []
        for first, last in _stretches(records / _RECORDS_AT_ONCE):
            cells = slice(cell_starts[first], cell_starts[last])
            values = np.repeat(published.value[cells], published.count[cells])
            micro = order[micro_starts[first] : micro_starts[last]]
            words = _deal_words(randomness, ids[first:last], records[first:last])
            group = np.repeat(np.arange(last - first), records[first:last])
            values = values[np.lexsort((words, group))]
            slot, count = np.unique(np.repeat(micro, sizes[micro]) * m + values, return_counts=True)
            slots.append(slot)
            counts.append(count)
        slot, count = np.concatenate(slots), np.concatenate(counts)
        in_order = np.argsort(slot)
        dealt, place = np.unique(slot[in_order] // m, return_inverse=True)
        public = tuple(column.take(dealt) for column in batch.public)
        return PublishedCells(public, dealt, place, slot[in_order] % m, count[in_order])


def _deal_words(randomness: Randomness, ids: Words, records: Ints) -> Words:
    return np.concatenate([words[:, 0] for _, words in randomness.trials(ids, records)])


def _stretches(load: Floats) -> Iterator[tuple[int, int]]:
    """Groups first..last-1 whose loads add up to at most 1, and at least one group."""
    upto, first = np.cumsum(load), 0
    while first < load.size:
        base = upto[first - 1] if first else 0.0
        last = max(first + 1, int(np.searchsorted(upto, base + 1.0, side="right")))
        yield first, last
        first = last


def excess_over(trials: Ints, limits: Floats) -> Floats:
    """Trials as a multiple of the limit; a group whose limit is below one may keep one."""
    return np.asarray(trials / np.maximum(np.ceil(limits), 1.0))


def group_ids(randomness: Randomness, schema: Schema, batch: CellBatch) -> Words:
    """The id of every group: the sum of the keyed hashes of its public values."""
    return hashed_ids(randomness, schema.public, batch.public, batch.groups)


def hashed_ids(
    randomness: Randomness, columns: Sequence[Column], parts: Sequence[Encoded], rows: int
) -> Words:
    """The sum of the keyed hashes of the values in each of so many rows."""
    ids = np.zeros(rows, dtype=np.uint64)
    for column, encoded in zip(columns, parts, strict=True):
        values = python_values(encoded.values, column.name)
        ids += randomness.hash_values(column, values)[encoded.codes]
    return ids


def _sample(
    batch: CellBatch,
    limits: Floats,
    policy: Policy,
    randomness: Randomness,
    cell_ids: Words,
    group_ids: Words,
) -> Ints:
    """How many records of each cell are drawn: all, or its share of the group's limit."""
    drawn, sampled = batch.count.copy(), batch.sizes > limits
    in_sampled = sampled[batch.group_of_cell]
    if not in_sampled.any():
        return drawn
    # Exact tails pass at their own size and not at the next, so no coin may move it.
    if not policy.sampling_rule.coin_flips or policy.tail_bound.exact:
        wanted = np.maximum(limits, 1.0)
        drawn[in_sampled] = _systematic_sample(batch, wanted, randomness, group_ids)[in_sampled]
        return drawn
    finite = np.where(sampled, limits, 0.0)
    quota = batch.count * (finite / batch.sizes)[batch.group_of_cell]
    coin_flips = unit_interval(randomness.words(cell_ids, SAMPLING_COIN)[:, 0])
    flipped = np.floor(quota) + (coin_flips < quota - np.floor(quota))
    drawn[in_sampled] = flipped.astype(np.int64)[in_sampled]
    # All coins may fall on tails; Algorithm 1 would then divide by zero, so one record is drawn. A
    # group in which not even one trial is private also gets one if the policy allows it.
    single = (np.add.reduceat(drawn, batch.starts) == 0) | (limits < 1.0)
    if single.any():
        one = _systematic_sample(batch, np.ones(batch.groups), randomness, group_ids)
        drawn = np.where(single[batch.group_of_cell], one, drawn)
    return drawn


def _systematic_sample(
    batch: CellBatch, limits: Floats, randomness: Randomness, group_ids: Words
) -> Ints:
    """One keyed offset per group over its cumulated quotas.

    Each value's quota is rounded down or up, and the total is exactly the limit.
    """
    offsets = unit_interval(randomness.words(group_ids, GROUP_OFFSET)[:, 0])
    group = batch.group_of_cell
    running = np.cumsum(batch.count)
    before_group = running[batch.starts] - batch.count[batch.starts]
    reached = running - before_group[group]
    # Groups that are not sampled may have an infinite limit, which is not used.
    wanted = np.where(np.isfinite(limits), np.floor(limits), 0.0)[group]
    upto = np.floor(reached * wanted / batch.sizes[group] + offsets[group])
    # The largest offsets would round the total up past the limit.
    upto = np.minimum(upto, wanted).astype(np.int64)
    drawn = np.diff(upto, prepend=0)
    drawn[batch.starts] = upto[batch.starts]
    return drawn


def _scale(group: Ints, words: Words, sizes: Ints, policy: Policy) -> Ints:
    """Scaling(g1*, |g|): how often each trial is published."""
    trials = np.bincount(group, minlength=sizes.size)
    base = sizes // np.maximum(trials, 1)
    if policy.sampling_rule.coin_flips:
        share = sizes / np.maximum(trials, 1) - base
        return np.asarray(base[group] + (unit_interval(words) < share[group]))
    # The remainder goes to the trials with the smallest scaling words, so the total is exact.
    remainder = sizes - base * trials
    some = np.flatnonzero(remainder[group])
    some = some[np.lexsort((words[some], group[some]))]
    ranked = np.where(remainder, trials, 0)
    rank = np.arange(some.size) - (np.cumsum(ranked) - ranked)[group[some]]
    result = base[group]
    result[some] += rank < remainder[group[some]]
    return result

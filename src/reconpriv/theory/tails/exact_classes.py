"""How many trials are private by the exact tails for *every* group of a class.

The exact tails of a group depend on its whole histogram, so a size made for one group would reveal
it. A size made for a class of groups reveals the class and no more: it is the largest n at which
each exposed value of each possible group of that class has both tails at or above δ.

Finitely many frequencies decide. In a sample of n from a larger group, the holders of a value are
n f rounded down or up, so both tails are piecewise linear in f. More holders mean a larger count:
within a piece the upper tail rises with f and the lower one falls. The upper tail jumps down where
n (p (1+ε) f + t) becomes whole, the lower one jumps up just after n (p (1-ε) f + t) was whole. So
the smallest upper tail is at such a point or at the lower end of the class, the smallest lower
tail at such a point or at the upper end.

Trials are published in unequal numbers of copies, which moves an estimate that is close to a limit.
So a number of trials must pass as published, too, for the size of the group (exact_published.py).

Margins that are worth E trials make a second reader, who weighs them in: a number of trials must
pass for both (exact_margins.py). With E > 0 the tails are smooth, so a fine grid of frequencies is
judged besides the deciding ones.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from reconpriv.theory.arrays import Flags, Floats, Ints, distinct_columns
from reconpriv.theory.counts import ObservedCount
from reconpriv.theory.perturbation import replacement_probability
from reconpriv.theory.tails.bounds import Exponential, chernoff_full
from reconpriv.theory.tails.exact import exact_tails
from reconpriv.theory.tails.exact_margins import SMALLEST_TOLD, combined_tails, rounded_up
from reconpriv.theory.tails.exact_published import published_limits, published_tails

# Groups up to this size are judged by the frequencies that they can have; for larger ones, which
# can have nearly any, a sample is judged by all frequencies of the class.
_COUNTED = 32
# No more trials are drawn from a larger group: judging them as published would take too long.
_MOST_SAMPLED = 500
# Up to this size every frequency is judged as published; above, those next to the deciding ones.
_ALL_COUNTS = 2048
# Frequencies of a class at which an estimate that weighs in margins is judged.
_GRID = 192
_AT_ONCE = 64
_KEPT = 1 << 16
# What is found out about larger sizes is not kept; what is, is of few classes and trials.
_REMEMBERED = 1 << 16
_KEPT_SIZES = 1 << 10
_ROUNDING = 1e-12
# A little above a step of E: rounded up, it is the next one.
_NEXT = 1.0 + 1e-6


@dataclass(frozen=True)
class ExposedClass:
    """Groups whose largest exposed frequency is above ``above`` and at most ``upto``.

    A value is exposed if more than ``exposed_above`` of the group hold it, unless it is one of the
    domain's harmless values: ``values`` are not. ``fillers``: values that are not
    exposed, being harmless, may be more frequent than the class allows.
    """

    above: float
    upto: float
    exposed_above: float
    values: int
    domain_size: int
    retention: float
    epsilon: float
    delta: float
    fillers: bool

    def exposed_frequencies(self, size: int) -> Floats:
        """The frequencies of exposed values that occur in groups of this size and class."""
        counts = np.arange(1, size + 1)
        return (counts / size)[self.occur(np.full(size, size), counts)]

    def occur(self, sizes: Ints, counts: Ints) -> Flags:
        """True where so many records can hold an exposed value, in groups of such sizes."""
        frequency, most = counts / sizes, self.most_frequent(sizes)
        # One value more, as frequent as the class allows, puts the group into the class.
        other = np.minimum(most, sizes - counts)
        largest = frequency > self.above
        with_other = (other / sizes > self.above) & (self.values > 1)
        if self.fillers:
            fits = largest | with_other  # they fill the rest
        else:
            fits = (largest & (sizes - counts <= (self.values - 1) * most)) | (
                with_other & (sizes - counts - other <= (self.values - 2) * most)
            )
        return np.asarray(fits & (frequency > self.exposed_above) & (frequency <= self.upto))

    def most_frequent(self, sizes: Ints) -> Ints:
        """The largest counts that the class allows in groups of such sizes."""
        most = np.floor(self.upto * sizes).astype(np.int64) + 1
        return np.asarray(most - (most / sizes > self.upto))

    def deciding_frequencies(self, trials: int) -> Floats:
        """Where the tails of a sample are smallest over all frequencies of the class.

        Without fillers, the rarest exposed one must leave room for no more than the others.
        """
        least = self.exposed_above
        if not self.fillers:
            least = max(least, 1.0 - (self.values - 1) * self.upto)
        found = [np.array([least, self.upto])]
        replacement = replacement_probability(self.retention, self.domain_size)
        for factor in (1.0 + self.epsilon, 1.0 - self.epsilon):
            slope = trials * self.retention * factor
            if slope > 0:
                ends = trials * replacement + slope * np.array([least, self.upto])
                whole = np.arange(np.ceil(ends[0]), np.floor(ends[1]) + 1)
                found.append((whole - trials * replacement) / slope)
        every = np.concatenate(found)
        return every[(every >= least) & (every <= self.upto)]

    def pass_at(self, trials: Floats | Ints, frequency: Floats) -> np.ndarray:
        """True where both exact tails are at least δ, pair by pair."""
        count = self._count(trials, frequency)
        return np.asarray(np.minimum(*exact_tails(count)) >= self.delta - _ROUNDING)

    def pass_as_published(self, sizes: Ints, trials: int) -> Flags:
        """True where a sample of so many trials passes in the counts that are published."""
        place, counts = self._judged_counts(sizes, trials)
        upper, lower = published_tails(
            sizes[place],
            trials,
            counts,
            retention=self.retention,
            domain_size=self.domain_size,
            epsilon=self.epsilon,
        )
        failed = np.minimum(upper, lower) < self.delta - _ROUNDING
        return np.asarray(np.bincount(place[failed], minlength=sizes.size) == 0)

    def _judged_counts(self, sizes: Ints, trials: int) -> tuple[Ints, Ints]:
        """The counts that are judged as published, each with the place of its size."""
        near = self.deciding_frequencies(trials)
        large = np.flatnonzero(sizes > _ALL_COUNTS)
        some = np.rint(near[:, None] * sizes[large]).astype(np.int64)[:, :, None] + np.arange(-2, 3)
        place = np.broadcast_to(large[:, None], some.shape).ravel()
        counts = some.ravel()
        inside = (counts > self.exposed_above * sizes[place]) & (counts <= self.upto * sizes[place])
        place, counts = place[inside], counts[inside]
        small = np.flatnonzero(sizes <= _ALL_COUNTS)
        # Numbers of 32 bits are divided twice as fast.
        low = np.floor(self.exposed_above * sizes[small]).astype(np.int32)
        length = self.most_frequent(sizes[small]).astype(np.int32) - low
        every = np.arange(length.sum(), dtype=np.int32)
        every += np.repeat(low + 1 - (np.cumsum(length, dtype=np.int32) - length), length)
        owner = np.repeat(small, length)
        kept = self._may_be_smallest(sizes[owner].astype(np.int32), trials, every)
        return np.concatenate([place, owner[kept]]), np.concatenate([counts, every[kept]])

    def _may_be_smallest(self, sizes: Ints, trials: int, counts: Ints) -> Flags:
        """The counts of a group, given in their order, that may have its smallest tails.

        A count that is one larger has the larger upper tail, unless its limit is passed by more of
        the published counts that O* trials can have: copies O* to copies O* + more of them.
        """
        occur = self.occur(sizes, counts)
        high, low = published_limits(sizes, counts, self.retention, self.domain_size, self.epsilon)
        copies, more = np.divmod(sizes, np.int32(trials))
        step = 1 + int(np.ceil(self.retention * (1.0 + self.epsilon)))
        over, under = (high - 1).astype(np.int32) % copies, low.astype(np.int32) % copies
        near = (over <= more + step) | (under <= more) | (under >= copies - 1 - step)
        # Or the first or the last of several that follow one another.
        follows = counts[1:] == counts[:-1] + 1
        after, before = (
            np.append(False, follows & occur[:-1]),
            np.append(follows & occur[1:], False),
        )
        return np.asarray(occur & (near | ~after | ~before))

    def pass_with_margins(self, trials: int, frequency: Floats, told: float) -> bool:
        """True if both tails are at least δ for whoever weighs in margins worth E trials."""
        if told == 0.0:
            return True
        every = np.full(frequency.size, trials)
        tails = combined_tails(self._count(every, frequency), told)
        return bool((np.minimum(*tails) >= self.delta - _ROUNDING).all())

    def most_trials(self, frequency: Floats) -> Floats:
        """No more trials can pass: the exact tails lie below Chernoff's bound."""
        count = self._count(np.ones_like(frequency), frequency)
        return np.asarray(Exponential(chernoff_full).size(count, self.delta) + 1e-9)

    def sampled(self, sizes: Ints) -> Flags:
        """The sizes at which the most frequent value would not pass without a sample."""
        most = self.most_frequent(sizes)
        large = (sizes > _COUNTED) & self.occur(sizes, most)
        large[large] = sizes[large] > self.most_trials(most[large] / sizes[large])
        return np.asarray(large)

    def _count(self, trials: Floats | Ints, frequency: Floats) -> ObservedCount:
        n = np.asarray(trials, dtype=np.float64)
        return ObservedCount(n, frequency, self.retention, self.domain_size, self.epsilon)


def exact_class_sizes(sizes: Ints, group_class: ExposedClass, told: Floats) -> Floats:
    """The largest n up to |g| at which every group of this class and size passes; 0 if none does.

    ``told`` are the trials that margins are worth about each group. With n = |g| nothing is
    sampled, and the holders of each value are whole.
    """
    found = np.zeros(sizes.size)
    large = group_class.sampled(sizes)
    found[large] = _largest_samples(group_class, sizes[large], told[large])
    small = np.flatnonzero(~large)
    if small.size:
        pairs, _, where = distinct_columns(np.stack([sizes, told])[:, small])
        each = [_largest_of_few(group_class, int(n), float(e)) for n, e in pairs.T]
        found[small] = np.asarray(each, dtype=np.float64)[where]
    return found


@lru_cache(_KEPT)
def _largest_of_few(group_class: ExposedClass, size: int, told: float) -> int:
    """The largest n of a group that may pass without a sample."""
    frequency = group_class.exposed_frequencies(size)
    if not frequency.size:
        return size
    if size <= _COUNTED:
        passing = (
            n
            for n in _pass_alone(group_class, size)
            if (n == size or _published(group_class, n).holds(np.array([size]))[0])
            and group_class.pass_with_margins(n, frequency, told)
        )
        return next(passing, 0)
    if (
        (told == 0.0 or size <= _MOST_SAMPLED)
        and _passes_whole(group_class, size)
        and group_class.pass_with_margins(size, frequency, told)
    ):
        return size
    return int(_largest_samples(group_class, np.array([size]), np.array([told]))[0])


@lru_cache(_KEPT)
def _passes_whole(group_class: ExposedClass, size: int) -> bool:
    """True if every group passes without a sample, as far as its own records tell."""
    frequency = group_class.exposed_frequencies(size)
    if size > float(group_class.most_trials(frequency[-1:])[0]):
        return False
    return bool(group_class.pass_at(np.full(frequency.size, size), frequency).all())


@lru_cache(_KEPT)
def _pass_alone(group_class: ExposedClass, size: int) -> tuple[int, ...]:
    """The numbers of trials at which a small group passes by its own records, largest first."""
    frequency, trials = group_class.exposed_frequencies(size), np.arange(1, size + 1)
    passes = group_class.pass_at(
        np.repeat(trials, frequency.size), np.tile(frequency, trials.size)
    ).reshape(size, -1)
    return tuple(trials[passes.all(axis=1)][::-1].tolist())


def _largest_samples(group_class: ExposedClass, sizes: Ints, told: Floats) -> Floats:
    """The largest n below |g| at which every frequency of the class passes, for each group."""
    each, where = np.unique(told, return_inverse=True)
    beside = _beside(group_class)
    trials = np.array([beside.largest(e) for e in each.tolist()], dtype=np.int64)[where.reshape(-1)]
    for i in np.flatnonzero(trials >= sizes).tolist():
        trials[i] = _next_sample(group_class, int(sizes[i]), float(told[i]))
    found = np.zeros(sizes.size)
    while (left := np.flatnonzero(trials)).size:
        for n in np.unique(trials[left]).tolist():
            some = left[trials[left] == n]
            passes = _published(group_class, n).holds(sizes[some])
            found[some[passes]] = n
            trials[some[passes]] = 0
            for i in some[~passes].tolist():
                trials[i] = _next_sample(group_class, n, float(told[i]))
    return found


@dataclass
class _Beside:
    """The largest samples at which every frequency passes next to E = 0, 1/8, 9/64, … trials.

    More from margins never allows more trials, so each is sought from the one before.
    """

    group_class: ExposedClass
    told: list[float]
    trials: list[int]

    def largest(self, told: float) -> int:
        """The largest sample next to so many trials from margins."""
        while self.told[-1] < told and self.trials[-1]:
            following = max(float(rounded_up(np.array([self.told[-1] * _NEXT]))[0]), SMALLEST_TOLD)
            self.trials.append(_next_sample(self.group_class, self.trials[-1] + 1, following))
            self.told.append(following)
        return self.trials[min(bisect_left(self.told, told), len(self.told) - 1)]


@lru_cache(_KEPT)
def _beside(group_class: ExposedClass) -> _Beside:
    most = int(group_class.most_trials(np.array([group_class.upto]))[0])
    alone = _next_sample(group_class, min(most, _MOST_SAMPLED) + 1, 0.0)
    return _Beside(group_class, [0.0], [alone])


@dataclass
class _BySize:
    """Whether something is true of groups of a size, asked once: 1 if it is, -1 if not."""

    judge: Callable[[Ints], Flags]
    known: NDArray[np.int8] = field(default_factory=lambda: np.zeros(_REMEMBERED, dtype=np.int8))

    def holds(self, sizes: Ints) -> Flags:
        """The answer for each of the sizes; those of very large ones are not remembered."""
        found = np.empty(sizes.size, dtype=bool)
        large = sizes >= _REMEMBERED
        if large.any():
            each, where = np.unique(sizes[large], return_inverse=True)
            found[large] = self.judge(each)[where.reshape(-1)]
        small = sizes[~large]
        new = np.unique(small[self.known[small] == 0])
        if new.size:
            self.known[new] = np.where(self.judge(new), 1, -1)
        found[~large] = self.known[small] > 0
        return found


@lru_cache(_KEPT_SIZES)
def _published(group_class: ExposedClass, trials: int) -> _BySize:
    """The sizes of groups at which a sample of so many trials passes as published."""
    return _BySize(lambda sizes: group_class.pass_as_published(sizes, trials))


@lru_cache(_KEPT)
def _next_sample(group_class: ExposedClass, below: int, told: float) -> int:
    """The largest n below this one at which the trials of every frequency pass."""
    for start in range(below - 1, 0, -_AT_ONCE):
        some = np.arange(start, max(start - _AT_ONCE, 0), -1)
        # The most frequent value fails most often; the others are judged only if it passes.
        some = some[group_class.pass_at(some, np.full(some.size, group_class.upto))]
        for trials in some.tolist():
            if _every_frequency_passes(group_class, trials, told):
                return int(trials)
    return 0


@lru_cache(_KEPT)
def _every_frequency_passes(group_class: ExposedClass, trials: int, told: float) -> bool:
    frequency = group_class.deciding_frequencies(trials)
    if told == 0.0:
        return bool(group_class.pass_at(np.full(frequency.size, trials), frequency).all())
    if not _every_frequency_passes(group_class, trials, 0.0):
        return False
    grid = np.linspace(float(frequency.min()), group_class.upto, _GRID)
    return group_class.pass_with_margins(trials, np.concatenate([frequency, grid]), told)

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

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from reconpriv.theory.arrays import Floats, Ints
from reconpriv.theory.bounds import chernoff_full_size
from reconpriv.theory.counts import ObservedCount
from reconpriv.theory.exact import exact_tails
from reconpriv.theory.exact_margins import combined_tails
from reconpriv.theory.exact_published import published_tails

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
_ROUNDING = 1e-12


@dataclass(frozen=True)
class ExposedClass:
    """Groups whose largest exposed frequency is above ``above`` and at most ``upto``.

    A value is exposed if more than ``exposed_above`` of the group hold it, unless it is one of the
    domain's harmless values: ``values`` are not. ``fillers``: values that are not
    exposed, being harmless or no news, may be more frequent than the class allows.
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
        frequency = counts / size
        most = int(np.searchsorted(frequency, self.upto, side="right"))
        # One value more, as frequent as the class allows, puts the group into the class.
        other = np.minimum(most, size - counts)
        largest = frequency > self.above
        with_other = (other / size > self.above) & (self.values > 1)
        if self.fillers:
            fits = largest | with_other  # they fill the rest
        else:
            fits = (largest & (size - counts <= (self.values - 1) * most)) | (
                with_other & (size - counts - other <= (self.values - 2) * most)
            )
        return frequency[fits & (frequency > self.exposed_above) & (frequency <= self.upto)]

    def deciding_frequencies(self, trials: int) -> Floats:
        """Where the tails of a sample are smallest over all frequencies of the class.

        Without fillers, the rarest exposed one must leave room for no more than the others.
        """
        least = self.exposed_above
        if not self.fillers:
            least = max(least, 1.0 - (self.values - 1) * self.upto)
        found = [np.array([least, self.upto])]
        replacement = (1.0 - self.retention) / self.domain_size
        for factor in (1.0 + self.epsilon, 1.0 - self.epsilon):
            slope = trials * self.retention * factor
            if slope > 0:
                ends = trials * replacement + slope * np.array([least, self.upto])
                whole = np.arange(np.ceil(ends[0]), np.floor(ends[1]) + 1)
                found.append((whole - trials * replacement) / slope)
        every = np.concatenate(found)
        return every[(every >= least) & (every <= self.upto)]

    def pass_at(self, trials: Floats | Ints, frequency: Floats) -> np.ndarray:
        """Whether both exact tails are at least δ, pair by pair."""
        count = self._count(trials, frequency)
        return np.asarray(np.minimum(*exact_tails(count)) >= self.delta - _ROUNDING)

    def pass_as_published(self, size: int, trials: int) -> bool:
        """Whether a sample of so many trials passes in the counts that are published."""
        if size <= _ALL_COUNTS:
            counts = np.rint(self.exposed_frequencies(size) * size).astype(np.int64)
        else:
            near = np.rint(self.deciding_frequencies(trials) * size).astype(np.int64)
            counts = np.unique(near[:, None] + np.arange(-2, 3))
            counts = counts[(counts > self.exposed_above * size) & (counts <= self.upto * size)]
        upper, lower = published_tails(
            size,
            trials,
            counts,
            retention=self.retention,
            domain_size=self.domain_size,
            epsilon=self.epsilon,
        )
        return bool((np.minimum(upper, lower) >= self.delta - _ROUNDING).all())

    def pass_with_margins(self, trials: int, frequency: Floats, told: float) -> bool:
        """Whether both tails are at least δ for whoever weighs in margins worth E trials."""
        if told == 0.0:
            return True
        tails = combined_tails(
            trials,
            frequency,
            told,
            retention=self.retention,
            domain_size=self.domain_size,
            epsilon=self.epsilon,
        )
        return bool((np.minimum(*tails) >= self.delta - _ROUNDING).all())

    def most_trials(self, frequency: float) -> float:
        """No more trials can pass: the exact tails lie below Chernoff's bound."""
        count = self._count(np.ones(1), np.array([frequency]))
        return float(chernoff_full_size(count, self.delta)[0]) + 1e-9

    def _count(self, trials: Floats | Ints, frequency: Floats) -> ObservedCount:
        n = np.asarray(trials, dtype=np.float64)
        return ObservedCount(n, frequency, self.retention, self.domain_size, self.epsilon)


@lru_cache(_KEPT)
def largest_exact_size(group_class: ExposedClass, size: int, told: float = 0.0) -> int:
    """The largest n up to |g| at which every group of this class and size passes; 0 if none does.

    ``told`` are the trials that margins are worth. With n = |g| nothing is sampled, and the holders
    of each value are whole.
    """
    if size > _ALL_COUNTS and size > group_class.most_trials(group_class.upto * (1.0 - 1.0 / size)):
        return _largest_sample(group_class, size, told)
    frequency = group_class.exposed_frequencies(size)
    if not frequency.size:
        return size
    if size <= _COUNTED:
        return _largest_of_small(group_class, size, frequency, told)
    all_pass = (
        size <= group_class.most_trials(float(frequency[-1]))
        and bool(group_class.pass_at(np.full(frequency.size, size), frequency).all())
        and (told == 0.0 or size <= _MOST_SAMPLED)
        and group_class.pass_with_margins(size, frequency, told)
    )
    return size if all_pass else _largest_sample(group_class, size, told)


def exact_class_sizes(sizes: Ints, group_class: ExposedClass, told: Floats) -> Floats:
    """The same for many groups of one class."""
    pairs, where = np.unique(np.stack([sizes, told]), axis=1, return_inverse=True)
    found = [float(largest_exact_size(group_class, int(n), float(e))) for n, e in pairs.T]
    return np.asarray(found)[where.reshape(-1)]


def _largest_of_small(group_class: ExposedClass, size: int, frequency: Floats, told: float) -> int:
    trials = np.arange(1, size + 1)
    passes = group_class.pass_at(
        np.repeat(trials, frequency.size), np.tile(frequency, trials.size)
    ).reshape(size, -1)
    for candidate in trials[passes.all(axis=1)][::-1].tolist():
        if candidate < size and not group_class.pass_as_published(size, candidate):
            continue
        if group_class.pass_with_margins(candidate, frequency, told):
            return int(candidate)
    return 0


def _largest_sample(group_class: ExposedClass, size: int, told: float) -> int:
    """The largest n below |g| at which every frequency of the class passes."""
    most = int(group_class.most_trials(group_class.upto))
    trials = min(size, most + 1, _MOST_SAMPLED + 1)
    while trials > 0:
        trials = _next_sample(group_class, trials, told)
        if trials and group_class.pass_as_published(size, trials):
            return trials
    return 0


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
    if told > 0.0:
        least = float(frequency.min())
        grid = np.concatenate([frequency, np.linspace(least, group_class.upto, _GRID)])
        if not group_class.pass_with_margins(trials, grid, told):
            return False
    return bool(group_class.pass_at(np.full(frequency.size, trials), frequency).all())

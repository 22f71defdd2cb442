"""The test of (ε, δ)-reconstruction-privacy and the largest private group size s_g.

Groups come as cells: the counts of the sensitive values that occur, one group after another, and
the offset at which each group starts.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple, NotRequired, TypedDict, Unpack

import numpy as np
from numpy.typing import ArrayLike

from reconpriv.errors import PolicyError
from reconpriv.messages.shares import check_share
from reconpriv.theory.arrays import Flags, Floats, Ints, run_lengths, run_of_each
from reconpriv.theory.counts import ObservedCount, observed_count
from reconpriv.theory.perturbation import keep_probability
from reconpriv.theory.search import last_contained
from reconpriv.theory.tails.bounds import (
    Bound,
    Exponential,
    TailBound,
    chernoff_full,
    resolve_bound,
)
from reconpriv.theory.tails.exact import MOST_TABLED, exact_tails, tabled_tails

# Past this many trials a bound that never falls below δ is taken to hold for any size.
_ENDLESS = 2.0**60
_STEPS = 100  # of bisection
# So many sizes are tried together, and so many groups are remembered.
_AT_ONCE = 64
_KEPT = 1 << 14
# What is δ on paper must not fail by its last digit.
_ROUNDING = 1e-12
_ROUNDED_HOLDERS = 0.125


class Parameters(TypedDict):
    """What the formulas take of a policy and a domain; the bound is by default the paper's."""

    retention: float
    domain_size: int
    epsilon: float
    delta: float
    bound: NotRequired[str | Bound | TailBound]


class _Test(NamedTuple):
    """A bound, δ, and O* of every element."""

    bound: Bound
    delta: float
    observed: ObservedCount

    @classmethod
    def of(cls, trials: ArrayLike, frequency: ArrayLike, parameters: Parameters) -> _Test:
        """Check the parameters."""
        known: Any = dict(parameters)
        bound, delta = resolve_bound(known.pop("bound", "chernoff")), known.pop("delta")
        return cls(bound, check_delta(delta), observed_count(trials, frequency, **known))

    @classmethod
    def of_cells(cls, counts: Ints, starts: Ints, parameters: Parameters) -> _Test:
        """O* of every cell, if every record of its group is a trial."""
        sizes = np.add.reduceat(counts, starts)
        each = np.repeat(sizes, run_lengths(starts, counts.size))
        return cls.of(each.astype(np.float64), counts / each, parameters)


def check_delta(delta: float) -> float:
    """Return δ if 0 < δ < 1; at 0 nothing is promised and at 1 nothing is attainable."""
    hint = "δ = 0.3 is the paper's default; larger is stricter."
    return check_share(delta, "The tail probability δ", hint=hint)


def is_private(counts: ArrayLike, **parameters: Unpack[Parameters]) -> bool:
    """Corollary 2 for one group: δ <= min(U, L) for every sensitive value that occurs (Eq. 8)."""
    values = np.asarray(counts)
    return bool(private_groups(values[values > 0], np.zeros(1, dtype=np.int64), **parameters)[0])


def largest_private_size(frequency: ArrayLike, **parameters: Unpack[Parameters]) -> Floats:
    """s_g for a largest frequency f (Theorems 4 and 5), elementwise; a real number."""
    bound, delta, count = _Test.of(1.0, frequency, parameters)
    if bound.exact:
        raise PolicyError(
            f"The bound {bound.name!r} has no largest size as a function of f alone.",
            hint="Its tails depend on every count; use private_group_sizes.",
        )
    return _sizes(bound, count, delta)


def private_group_sizes(
    counts: Ints, starts: Ints, *, exposed: Flags | None = None, **parameters: Unpack[Parameters]
) -> Floats:
    """s_g of every group, tested over every sensitive value that occurs in it.

    ``exposed`` says which cells are tested, by default all; a group without any has no limit. For a
    bound ``exact`` s_g is the largest n <= |g| at which all tested values pass.
    """
    bound, delta, count = _Test.of_cells(counts, starts, parameters)
    tested = np.ones(counts.size, dtype=bool) if exposed is None else exposed
    if not bound.exact:
        each = np.where(tested, _sizes(bound, count, delta), np.inf)
        return np.asarray(np.minimum.reduceat(each, starts))
    private = _all_pass(bound, count, starts, tested, delta)
    sizes = np.add.reduceat(counts, starts)
    result = sizes.astype(np.float64)
    result[~np.logical_or.reduceat(tested, starts)] = np.inf
    group = run_of_each(starts, counts.size)
    cells = np.flatnonzero(tested & ~private[group])
    left = np.flatnonzero(~private)
    most = np.full(starts.size, np.inf)
    np.minimum.at(most, group[cells], _most_that_pass(count.take(cells), delta))
    highest = np.minimum(sizes - 1, most)
    few = cells[highest[group[cells]] <= MOST_TABLED]
    found = _largest_of_few(count.take(few), group[few], highest, delta)
    result[np.unique(group[few])] = found[np.unique(group[few])]
    numbers = count.retention, count.domain_size, count.epsilon
    for one in left[highest[left] > MOST_TABLED]:
        some = cells[slice(*np.searchsorted(group[cells], [one, one + 1]))]
        tried = tuple(np.unique(counts[some]).tolist())
        result[one] = _largest_passing(tried, int(sizes[one]), *numbers, delta)
    return result


def _most_that_pass(count: ObservedCount, delta: float) -> Floats:
    """No more trials can pass, by the moments of one trial: Pr[O* - μ > a n] <= exp(-λ a n) E[…].

    Every λ gives a bound. Holders that are n f rounded down or up add at most λ²/8 (Hoeffding).
    """
    r, t = keep_probability(count.retention, count.domain_size), count.replacement
    tilt = np.minimum(count.shift / count.trial_variance, 1.0)
    moment = count.frequency * np.log1p(r * np.expm1(tilt))
    moment += (1.0 - count.frequency) * np.log1p(t * np.expm1(tilt))
    rate = tilt * (count.weight + count.shift) - moment
    by_moments = (np.log(1.0 / delta) + _ROUNDED_HOLDERS) / np.maximum(rate, 1e-300)
    return np.asarray(
        np.floor(np.minimum(Exponential(chernoff_full).size(count, delta), by_moments) + 1e-9)
    )


def _largest_of_few(count: ObservedCount, group: Ints, highest: Floats, delta: float) -> Floats:
    """The largest n up to ``highest`` at which all cells of a group pass; 0 if none does.

    There is an entry for every group, whether it has cells or not.
    """
    found = np.zeros(highest.size)

    def passes(some: Ints, trials: int) -> Flags:
        tried = replace(count.take(some), trials=np.full(some.size, float(trials)))
        return np.asarray(np.minimum(*tabled_tails(tried)) >= delta - _ROUNDING)

    # The most frequent value fails most often; the others are judged only if it passes.
    order = np.lexsort((-count.frequency, group))
    first = np.ones(order.size, dtype=bool)
    first[1:] = group[order[1:]] != group[order[:-1]]
    top, rest = order[first], order[~first]
    for n in range(int(highest[group].max(initial=0)), 0, -1):
        now = top[(highest[group[top]] >= n) & (found[group[top]] == 0)]
        found[group[now[passes(now, n)]]] = n
        others = rest[found[group[rest]] == n]
        found[group[others[~passes(others, n)]]] = 0
    return found


def private_groups(
    counts: Ints, starts: Ints, *, exposed: Flags | None = None, **parameters: Unpack[Parameters]
) -> Flags:
    """True where every group is private as it is: Corollary 2, without looking for s_g."""
    bound, delta, count = _Test.of_cells(counts, starts, parameters)
    tested = np.ones(counts.size, dtype=bool) if exposed is None else exposed
    return _all_pass(bound, count, starts, tested, delta)


def _all_pass(
    bound: Bound, count: ObservedCount, starts: Ints, tested: Flags, delta: float
) -> Flags:
    some = np.flatnonzero(tested)
    passes = ~tested
    if bound.exact:
        some = some[count.trials[some] <= _most_that_pass(count.take(some), delta)]
    tails = bound.tails(count.take(some))
    passes[some] = delta - _ROUNDING <= np.minimum(tails.upper, tails.lower)
    return np.asarray(np.logical_and.reduceat(passes, starts))


def _sizes(bound: Bound, count: ObservedCount, delta: float) -> Floats:
    """The largest n with δ <= min(U, L): in closed form, or by bisection if it falls with n."""
    if bound.size is not None:
        return np.asarray(bound.size(count, delta), dtype=np.float64)

    def holds(n: Floats) -> Flags:
        tails = bound.tails(replace(count, trials=n))
        return np.asarray(delta <= np.minimum(tails.upper, tails.lower))

    high = np.ones_like(count.frequency)
    while (growing := holds(high)).any() and high.max() < _ENDLESS:
        high = np.where(growing, high * 2, high)
    low = np.where(high > 1.0, high / 2, 0.0)
    return np.where(growing, np.inf, last_contained(low, high, holds, _STEPS))


@lru_cache(_KEPT)
def _largest_passing(
    tested: tuple[int, ...],
    size: int,
    retention: float,
    domain_size: int,
    epsilon: float,
    delta: float,
) -> float:
    """The largest n below |g| at which the exact tails of every tested count pass; 0 if none does.

    Audits, publications and attacks of one table ask for the same groups again and again.
    """
    frequency = np.array(tested) / size
    shape = ObservedCount(np.ones_like(frequency), frequency, retention, domain_size, epsilon)
    highest = int(min(size - 1, _most_that_pass(shape, delta).min()))
    for top in range(highest, 0, -_AT_ONCE):
        some = np.arange(top, max(top - _AT_ONCE, 0), -1, dtype=np.float64)
        # The most frequent value fails most often; the others are judged only if it passes.
        for tried in (frequency[-1:], frequency[:-1]):
            n, f = np.repeat(some, tried.size), np.tile(tried, some.size)
            grid = ObservedCount(n, f, retention, domain_size, epsilon)
            passes = delta - _ROUNDING <= np.minimum(*exact_tails(grid))
            some = some[passes.reshape(some.size, tried.size).all(axis=1)]
        if some.size:
            return float(some[0])
    return 0.0

"""Limits for a count in the original table: which counts the published one does not contradict.

A published count O of a set of k values over groups of N records has, if c records hold one of
them,

    mean       t_X N + p c
    variance   T Σ s N_g + (R - T) Σ s c_g + uneven copies + rounding of the sample

with t_X = kt, r_X = p + kt, T = t_X(1 - t_X), R = r_X(1 - r_X) and s = N_g/n_g records per trial.
Both are taken at the count that is tested (a score interval), not at the estimate: an estimate from
a few trials is often one whose variance is far too small. A count is inside the limits if neither
tail beyond the published count is smaller than half of what the interval may miss.

The tails are those of a single group whose trials have the same second and third moment as the
selection: n = (Σ s N_g)³/(Σ s² N_g)² trials of h = Σ s² N_g/Σ s N_g records each. For groups that
are not sampled h = 1 and n = N. Published counts of such a group lie on a lattice of step h, which
the noise of groups that are not sampled smooths out, to the whole numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from reconpriv.theory.arrays import Floats, Ints, quotient

# A quota rounded down or up at random varies by φ(1-φ), φ its fraction: 1/6 on average.
ROUNDING = 1.0 / 6.0

_ROUNDS = 80  # of narrowing down a limit; far fewer are needed
_CLOSE = 1e-10  # how far a limit may be off, in records and as a share of the count
_DECIMALS = 6  # of a limit: what processors compute alike
_TINY = 1e-9
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)  # odd; 2^64 over the golden ratio
_STEEP = 300.0  # e^-300 is no part of any tail
_NEVER = 1e-300  # a probability that stands for 0 where its quantile is taken


class Pooled(NamedTuple):
    """What is published about selections of groups, one entry per selection.

    ``scaled_records`` is Σ s N_g and ``scaled_squares`` Σ s² N_g. ``holder_scale`` is the mean of s
    over the records that hold one of the values, ``unsampled`` the number of records in groups with
    s = 1. ``uneven`` is the variance factor of trials published once more than others, ``rounded``
    Σ s² over the quotas that were rounded.
    """

    observed: Floats
    records: Floats
    scaled_records: Floats
    scaled_squares: Floats
    holder_scale: Floats
    unsampled: Floats
    uneven: Floats
    rounded: Floats


def count_limits(
    pooled: Pooled, *, retention: float, stray: float, miss: float
) -> tuple[Floats, Floats]:
    """The smallest and the largest count that the published one does not contradict.

    ``stray`` is t_X, the probability that a record which holds none of the values is published with
    one; ``miss`` is what a two-sided interval may miss, 0.05 for 95 %. Limits lie between 0 and the
    number of records. A published count below what no holder at all would give is taken as that
    one, so that bad luck never passes for certainty; the same holds above.
    """
    shape = pooled.observed.shape
    columns = [np.broadcast_to(column, shape).reshape(-1) + 0.0 for column in pooled]
    first, where = _distinct(columns)
    found = _limits(Pooled(*(column[first] for column in columns)), retention, stray, miss / 2.0)
    low, high = (np.round(limit, _DECIMALS)[where].reshape(shape) for limit in found)
    return low, high


def border_slack(
    pooled: Pooled, *, retention: float, stray: float, miss: float
) -> tuple[Floats, Floats]:
    """How far the counts 0 and N are from being contradicted, in standard deviations.

    0 where they are; at most the quantile of ``miss``, however unlucky the published count is.
    """
    p, half = retention, miss / 2.0
    none = np.zeros_like(pooled.records)
    found = []
    for count, side in ((none, 1.0), (pooled.records, -1.0)):
        possible = stray * pooled.records, (stray + p) * pooled.records
        chosen = pooled._replace(observed=np.clip(pooled.observed, *possible))
        tail = _tail(chosen, count, p, stray, np.full_like(none, side))
        found.append(np.clip(_margin(tail, half), 0.0, _margin(np.array(0.5), half)))
    return found[0], found[1]


def _distinct(columns: list[Floats]) -> tuple[Ints, Ints]:
    """The first case of each kind, and the kind of every case.

    Small groups are many and much alike, so few cases have to be solved. A hash tells them apart,
    which is quicker than sorting.
    """
    hashes = np.zeros(columns[0].size, dtype=np.uint64)
    for column in columns:
        hashes = (hashes ^ column.view(np.uint64)) * _MULTIPLIER
        hashes ^= hashes >> np.uint64(29)
    _, first, where = np.unique(hashes, return_index=True, return_inverse=True)
    where = where.reshape(-1)
    if any((column[first][where] != column).any() for column in columns):  # a collision
        every = np.arange(columns[0].size)
        return every, every
    return first, where


def _limits(one: Pooled, p: float, stray: float, half: float) -> tuple[Floats, Floats]:
    """Both limits, in one search: arrays are short, so calls take more time than numbers."""
    none, every = np.zeros_like(one.records), one.records
    both = Pooled(*(np.concatenate([column, column]) for column in one))._replace(
        observed=np.concatenate(
            [
                np.minimum(one.observed, (stray + p) * one.records),
                np.maximum(one.observed, stray * one.records),
            ]
        )
    )
    # The tail that a limit makes small: above the count for the lower one, below for the upper.
    side = np.repeat([1.0, -1.0], none.size)

    def margin(some: Ints | slice, count: Floats) -> Floats:
        chosen = Pooled(*(column[some] for column in both))
        return _margin(_tail(chosen, count, p, stray, side[some]), half)

    found = _border(np.concatenate([none, every]), np.concatenate([every, none]), margin)
    return found[: none.size], found[none.size :]


def _margin(tail: Floats, half: float) -> Floats:
    """How far a tail is above the smallest one allowed; on this scale nearly linear in c."""
    from scipy.special import ndtri  # noqa: PLC0415 - slow import

    return np.asarray(ndtri(np.maximum(tail, _NEVER)) - ndtri(half))


def _border(
    outside: Floats, inside: Floats, margin: Callable[[Ints | slice, Floats], Floats]
) -> Floats:
    """The count nearest to ``outside`` whose margin is not negative; ``margin`` is of some cases.

    Regula falsi, every third step a bisection, from a count with a positive margin inside.
    """
    result, outside = inside.copy(), outside.copy()
    at_outside, at_inside = margin(slice(None), outside), margin(slice(None), inside)
    result[at_outside >= 0] = outside[at_outside >= 0]
    some, inside = np.arange(result.size), result.copy()
    for step in range(_ROUNDS):
        wide = np.abs(inside - outside) > _CLOSE * (1.0 + np.abs(outside))
        if not wide.all():
            result[some] = inside
            some, inside, outside = some[wide], inside[wide], outside[wide]
            at_inside, at_outside = at_inside[wide], at_outside[wide]
        if not some.size:
            break
        share = np.full(inside.shape, 0.5)
        if step % 3:
            with np.errstate(invalid="ignore", divide="ignore"):
                guess = at_outside / (at_outside - at_inside)
            # Never quite at an end, so that both ends move.
            share = np.where(np.isfinite(guess), np.clip(guess, 0.001, 0.999), 0.5)
        middle = outside + share * (inside - outside)
        found = margin(some, middle)
        good = found >= 0
        inside, at_inside = np.where(good, middle, inside), np.where(good, found, at_inside)
        outside, at_outside = np.where(good, outside, middle), np.where(good, at_outside, found)
    result[some] = inside
    return result


_FEW_ROUNDS = 20  # of a search in which every number is a pass over the groups
_NEAR = 1e-6  # how far off such a limit may be, as a share of its distance from the estimate


def last_inside(
    excess: Callable[[Floats], Floats], inside: Floats, guess: Floats, end: Floats
) -> Floats:
    """The number on the way from ``inside`` to ``end`` beyond which the excess is negative.

    The Illinois method, from a guess.
    """
    at_end = excess(end)
    near, far = inside.copy(), end.copy()
    at_near, at_far = np.maximum(excess(inside), 0.0), np.minimum(at_end, 0.0)
    point = np.where((guess - near) * (guess - far) < 0, guess, (near + far) / 2.0)
    done = at_end >= 0
    for _ in range(_FEW_ROUNDS):
        if done.all():
            break
        found = excess(point)
        good = found >= 0
        # Halving the value of the end that stays makes both ends move.
        at_near, at_far = np.where(good, found, at_near / 2.0), np.where(good, at_far / 2.0, found)
        near, far = np.where(good, point, near), np.where(good, far, point)
        share = quotient(at_near, at_near - at_far, 0.5)
        following = near + share * (far - near)
        close = np.abs(following - point) <= _NEAR * np.abs(following - inside)
        # A number that is found stays, whatever others are searched beside it.
        point = np.where(done, point, following)
        done |= close
    return np.where(at_end >= 0, end, point)


def _tail(one: Pooled, count: Floats, p: float, stray: float, side: Floats) -> Floats:
    """P(O* >= O), or P(O* <= O) where ``side`` is -1, if ``count`` records hold one of the values.

    The larger of two approximations: a normal one, which serves near the mean, and a
    saddlepoint one, which serves far from it.
    """
    from scipy.special import ndtr  # noqa: PLC0415 - slow import

    keep = stray + p
    kept, strayed = keep * (1.0 - keep), stray * (1.0 - stray)
    step = one.scaled_squares / one.scaled_records
    trials = one.scaled_records / step**2
    holders = np.minimum(np.maximum(one.holder_scale * count / step**2, 0.0), trials)
    mean = stray * trials + p * holders
    variance = strayed * trials + (kept - strayed) * holders
    uneven, rounding = _extra_variances(one, count, p, stray)
    whole = variance * step**2 + uneven + rounding
    gap = (one.observed - stray * one.records - p * count) * np.sqrt(variance / whole)
    # The whole observed trial counts on the near side, as far as it stands out from the noise.
    per_record = strayed + (kept - strayed) * count / one.records
    smooth = one.unsampled * per_record
    lattice = np.maximum(np.exp(-2.0 * np.pi**2 * smooth / step**2), 1.0 / step)
    near = np.sign(gap) * np.maximum(np.abs(gap) - lattice / 2.0, 0.0)
    far = _saddlepoint_tail(
        np.minimum(np.maximum(mean + near, 0.0), trials), holders, trials, lattice, keep, stray
    )
    beyond = side * gap
    normal = ndtr((lattice / 2.0 - beyond) / np.sqrt(variance))
    return np.asarray(np.maximum(normal, np.where(beyond > 0, far, 0.0)))


def _saddlepoint_tail(
    x: Floats, holders: Floats, trials: Floats, lattice: Floats, keep: float, stray: float
) -> Floats:
    """The tail beyond x, away from the mean, of X = Bin(c, r) + Bin(n - c, t).

    Lugannani and Rice (1980) with the second continuity correction of Daniels (1987), in which
    ``lattice`` is the step; at most Chernoff's bound. Near the mean it is 0: there it breaks down.
    """
    from scipy.special import ndtr  # noqa: PLC0415 - slow import

    r, t = keep, stray
    x = np.minimum(np.maximum(x, _TINY * trials), (1.0 - _TINY) * trials)
    # K'(θ) = x is quadratic in e^θ.
    a = r * t * (trials - x)
    b = holders * r * (1 - t) + (trials - holders) * t * (1 - r) - x * (r * (1 - t) + t * (1 - r))
    c = x * (1 - r) * (1 - t)
    root = np.sqrt(b * b + 4.0 * a * c)
    # Each root is taken where it is stable; the other one may divide by 0, as a is with p near 1.
    with np.errstate(divide="ignore", invalid="ignore"):
        tilt = np.where(b > 0, 2.0 * c / (b + root), (root - b) / (2.0 * a))
    theta = np.log(tilt)
    lift_r, lift_t = 1.0 - r + r * tilt, 1.0 - t + t * tilt
    cumulant = holders * np.log(lift_r) + (trials - holders) * np.log(lift_t)
    share_r, share_t = r * tilt / lift_r, t * tilt / lift_t
    curvature = holders * share_r * (1 - share_r) + (trials - holders) * share_t * (1 - share_t)
    exponent = np.maximum(theta * x - cumulant, 0.0)
    w = np.sqrt(2.0 * exponent)
    half = np.maximum(lattice, _TINY) / 2.0
    # Far beyond what is possible, as margins can place a count, sinh would overflow.
    u = np.sinh(np.minimum(half * np.abs(theta), _STEEP)) / half * np.sqrt(curvature)
    far = (w > 1.0) & (u > 0.0)
    safe_w, safe_u = np.where(far, w, 1.0), np.where(far, u, 1.0)
    density = np.exp(-exponent) / np.sqrt(2.0 * np.pi)
    tail = ndtr(-safe_w) + density * (1.0 / safe_u - 1.0 / safe_w)
    return np.where(far, np.minimum(tail, np.exp(-exponent)), 0.0)


def _extra_variances(one: Pooled, count: Floats, p: float, stray: float) -> tuple[Floats, Floats]:
    """Uneven copies and rounding of the sample, at a count.

    A quota of several trials varies by 1/6 on average; where quotas are small, a systematic sample
    varies no more than a simple one, by n f(1-f). In between it varies less than either, as
    half of their harmonic mean does.
    """
    share = stray + p * count / one.records
    quotas = ROUNDING * one.rounded
    simple = one.holder_scale * count * (1.0 - count / one.records)
    rounding = quotas * simple / np.maximum(quotas + simple, _TINY)
    return one.uneven * share * (1.0 - share), p**2 * rounding

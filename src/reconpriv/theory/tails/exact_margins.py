"""The exact tails of an estimate that weighs in margins, for an adversary who wants one group.

Margins that are worth E trials (theory.margins) estimate the frequency f of a value without bias
and with the variance v/E, v that of one trial. They add up many other groups and noise, so their
error is nearly normal, and it is independent of the group's own n trials. The best linear unbiased
estimate weighs F' by n and the margins by E, so

    Pr[F > (1+ε) f] = Σ_o Pr[O* = o] Φ̄(((1+ε) f (n + E) - E f - n F'(o)) / √(v E)),

and the lower tail alike.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from reconpriv.theory.arrays import Floats, distinct_columns
from reconpriv.theory.counts import ObservedCount, rounded_holders
from reconpriv.theory.estimation.design import trial_variance
from reconpriv.theory.estimation.reconstruction import reconstruct_count
from reconpriv.theory.tails.exact import MOST_TABLED, exact_tails, tabled_masses, tabled_tails
from reconpriv.theory.tails.exact_published import observed_by_holders

# E is rounded up: steps of an eighth of a power of two, none below the smallest.
SMALLEST_TOLD = 0.125
_STEPS = 8


def rounded_up(told: Floats) -> Floats:
    """E rounded up, so that groups share sizes; the last digits of E decide nothing."""
    nudged = np.maximum(told, SMALLEST_TOLD) * (1.0 - 1e-7)
    mantissa, exponent = np.frexp(nudged)
    steps = np.ldexp(np.ceil(mantissa * 2 * _STEPS) / (2 * _STEPS), exponent)
    return np.where(told > 0.0, steps, 0.0)


def combined_tails(count: ObservedCount, told: float) -> tuple[Floats, Floats]:
    """Pr[(F-f)/f > ε] and Pr[(F-f)/f < -ε] from n trials and margins that are worth E > 0 of them.

    Every element has the same n. The holders among the trials are n f, rounded down or up as
    systematic sampling does.
    """
    trials = int(count.trials[0])
    whole, share = rounded_holders(trials * count.frequency)
    below = whole.astype(np.int64)
    by_holders = observed_by_holders(trials, count.retention, count.domain_size)
    above = np.minimum(below + 1, trials)
    part = share[:, None]
    observed = (1.0 - part) * by_holders[below] + part * by_holders[above]
    return _beside(count, observed, np.full(count.frequency.size, told))


def within_epsilon(count: ObservedCount, told: Floats) -> Floats:
    """Pr[|F-f| <= εf] for each element, next to margins that are worth E >= 0 trials.

    Where there are many trials, n + E of them are as good.
    """
    found = np.empty(count.trials.size)
    alone, few = told == 0.0, count.trials <= MOST_TABLED
    some = np.flatnonzero(few & alone)
    upper, lower = tabled_tails(count.take(some))
    found[some] = 1.0 - upper - lower
    some = np.flatnonzero(few & ~alone)
    if some.size:
        upper, lower = _beside(count.take(some), tabled_masses(count.take(some)), told[some])
        found[some] = 1.0 - upper - lower
    some = np.flatnonzero(~few)
    if some.size:
        pairs = np.stack([np.round(count.trials + told)[some], count.frequency[some]])
        (n, f), _, place = distinct_columns(pairs)
        upper, lower = exact_tails(replace(count, trials=n, frequency=f))
        found[some] = (1.0 - upper - lower)[place]
    return np.clip(found, 0.0, 1.0)


def _beside(count: ObservedCount, observed: Floats, told: Floats) -> tuple[Floats, Floats]:
    """Both tails of F, given Pr[O* = o] in a row per element and E > 0."""
    from scipy.special import ndtr  # noqa: PLC0415 - slow import

    own = reconstruct_count(
        np.arange(observed.shape[1]), count.trials[:, None],
        retention=count.retention, domain_size=count.domain_size,
    )  # fmt: skip
    one_trial = trial_variance(count.frequency, count.retention, count.domain_size)
    deviation = np.sqrt(one_trial * told)[:, None]
    centre = (count.trials * count.frequency)[:, None] - own
    reach = (count.epsilon * (count.trials + told) * count.frequency)[:, None]
    upper = (observed * ndtr(-(centre + reach) / deviation)).sum(axis=1)
    lower = (observed * ndtr((centre - reach) / deviation)).sum(axis=1)
    return upper, lower

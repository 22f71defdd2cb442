"""The exact tails of an estimate that weighs in margins, for an adversary who wants one group.

Margins that are worth E trials (theory.margins) estimate the frequency f of a value without bias
and with the variance v/E, v that of one trial. They add up many other groups and noise, so their
error is nearly normal, and it is independent of the group's own n trials. The best linear unbiased
estimate weighs F' by n and the margins by E, so

    Pr[F > (1+ε) f] = Σ_o Pr[O* = o] Φ̄(((1+ε) f (n + E) - E f - n F'(o)) / √(v E)),

and the lower tail alike.
"""

from __future__ import annotations

import numpy as np

from reconpriv.theory.arrays import Floats
from reconpriv.theory.design import mixing
from reconpriv.theory.exact_published import observed_by_holders
from reconpriv.theory.perturbation import replacement_probability

_WHOLE = 1e-9
# E is rounded up: steps of an eighth of a power of two, none below the smallest.
SMALLEST_TOLD = 0.125
_STEPS = 8


def rounded_up(told: Floats) -> Floats:
    """E rounded up, so that groups share sizes; the last digits of E decide nothing."""
    nudged = np.maximum(told, SMALLEST_TOLD) * (1.0 - 1e-7)
    mantissa, exponent = np.frexp(nudged)
    steps = np.ldexp(np.ceil(mantissa * 2 * _STEPS) / (2 * _STEPS), exponent)
    return np.where(told > 0.0, steps, 0.0)


def combined_tails(
    trials: int,
    frequency: Floats,
    told: float,
    *,
    retention: float,
    domain_size: int,
    epsilon: float,
) -> tuple[Floats, Floats]:
    """Pr[(F-f)/f > ε] and Pr[(F-f)/f < -ε] from n trials and margins that are worth E > 0 of them.

    The holders among the trials are n f, rounded down or up as systematic sampling does.
    """
    from scipy.special import ndtr  # noqa: PLC0415 - slow import

    holder, anybody = mixing(retention, domain_size)
    holders = trials * frequency
    below = np.floor(holders + _WHOLE).astype(np.int64)
    share = np.clip(holders - below, 0.0, 1.0)[:, None]
    by_holders = observed_by_holders(trials, retention, domain_size)
    above = np.minimum(below + 1, trials)
    observed = (1.0 - share) * by_holders[below] + share * by_holders[above]
    strays = trials * replacement_probability(retention, domain_size)
    own = (np.arange(trials + 1) - strays) / retention
    spread = np.sqrt((holder * frequency + anybody) * told)[:, None]
    centre = (trials * frequency)[:, None] - own
    reach = epsilon * (trials + told) * frequency[:, None]
    upper = (observed * ndtr(-(centre + reach) / spread)).sum(axis=1)
    lower = (observed * ndtr((centre - reach) / spread)).sum(axis=1)
    return upper, lower

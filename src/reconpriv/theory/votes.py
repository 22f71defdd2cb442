"""A vote over several randomised copies of one value: how often it finds the value."""

from __future__ import annotations

from math import comb, factorial

import numpy as np

from reconpriv.errors import PolicyError
from reconpriv.theory.arrays import Floats
from reconpriv.theory.perturbation import (
    check_domain_size,
    check_retention,
    keep_probability,
    replacement_probability,
)

MOST_VOTES = 100  # beyond, factorials leave the range of floats


def vote_success(votes: int, retention: float, domain_size: int) -> float:
    """The probability that the most frequent of ``votes`` perturbed copies is the true value.

    Ties are broken by lot. Every copy is a trial of Eq. 1, so the counts are multinomial: the true
    value has k of them with weight r^k/k!, i other values have as many, and the rest have fewer
    than k each. If all values are equally frequent, no guess from the copies does better.
    """
    check_retention(retention)
    m = check_domain_size(domain_size)
    if not 1 <= votes <= MOST_VOTES:
        raise PolicyError(f"A vote is computed for 1 to {MOST_VOTES} copies; got {votes}.")
    r, t = keep_probability(retention, m), replacement_probability(retention, m)
    total = 0.0
    for k in range(1, votes + 1):
        rest = votes - k
        fewer = np.array([t**j / factorial(j) for j in range(min(k - 1, rest) + 1)])
        for ties in range(min(m - 1, rest // k) + 1):
            left = rest - ties * k
            tied = comb(m - 1, ties) / (ties + 1) * (t**k / factorial(k)) ** ties
            others = _coefficient(fewer, m - 1 - ties, left)
            total += r**k / factorial(k) * tied * others
    return min(factorial(votes) * total, 1.0)


def _coefficient(polynomial: Floats, power: int, degree: int) -> float:
    """The coefficient of x^degree in a power of a polynomial."""
    result, square = np.ones(1), polynomial
    while power:
        if power & 1:
            result = np.convolve(result, square)[: degree + 1]
        square = np.convolve(square, square)[: degree + 1]
        power >>= 1
    return float(result[degree]) if degree < result.size else 0.0

"""Exact tails with margins weighed in: golden sizes, simulation, enumeration of tiny cases."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from reconpriv.theory.counts import ObservedCount
from reconpriv.theory.estimation.design import mixing
from reconpriv.theory.tails.exact_classes import ExposedClass, exact_class_sizes
from reconpriv.theory.tails.exact_margins import combined_tails, rounded_up


def exact_size(group_class, size, told=0.0):
    """The largest n for a single group."""
    return int(exact_class_sizes(np.array([size]), group_class, np.array([told]))[0])


def a_class(m, above, upto):
    return ExposedClass(above, upto, 0.25, m, m, 0.5, 0.5, 0.05, fillers=False)


@pytest.mark.parametrize(("m", "above", "upto", "sizes"), [
    (14, 0.5, 1.0, [6, 6, 6, 6, 4, 2, 0, 0]),
    (14, 0.25, 0.5, [17, 17, 17, 17, 17, 16, 12, 8]),
    (50, 0.25, 0.5, [14, 14, 14, 14, 14, 14, 10, 6]),
])  # fmt: skip
@pytest.mark.parametrize("records", [60, 100_000])
def test_golden_sizes_beside_margins(m, above, upto, sizes, records):
    found = [
        exact_size(a_class(m, above, upto), records, float(told))
        for told in (0, 1, 2, 4, 6, 8, 12, 16)
    ]
    assert found == sizes


@pytest.mark.parametrize("size", [5, 12, 31, 40, 300])
@pytest.mark.parametrize("above", [0.25, 0.5])
def test_more_from_margins_never_allows_more_trials(size, above):
    told = [0.0, *rounded_up(np.arange(0.1, 30.0, 0.37)).tolist()]
    found = [exact_size(a_class(14, above, 2 * above), size, e) for e in told]
    assert found == sorted(found, reverse=True)


def enumerated(trials, holders, told, f, p, m, epsilon):
    """Both tails, trial by trial: every outcome of every trial, and a normal error of margins."""
    t = (1 - p) / m
    holder, anybody = mixing(p, m)
    spread = math.sqrt((holder * f + anybody) / told)
    upper = lower = 0.0
    for outcome in itertools.product((0, 1), repeat=trials):
        chance = 1.0
        for i, seen in enumerate(outcome):
            q = p + t if i < holders else t
            chance *= q if seen else 1 - q
        own = (sum(outcome) / trials - t) / p
        for sign in (1, -1):
            # n own + E margins beyond (1 ± ε) f (n + E)
            need = ((1 + sign * epsilon) * f * (trials + told) - trials * own) / told
            tail = 0.5 * math.erfc(sign * (need - f) / spread / math.sqrt(2))
            if sign > 0:
                upper += chance * tail
            else:
                lower += chance * tail
    return upper, lower


@pytest.mark.parametrize(("trials", "holders"), [(4, 2), (6, 3), (8, 7)])
@pytest.mark.parametrize("told", [0.3, 2.0, 11.0])
def test_tails_are_those_of_an_enumeration(trials, holders, told):
    f = holders / trials
    count = ObservedCount(np.array([float(trials)]), np.array([f]), 0.4, 5, 0.5)
    found = combined_tails(count, told)
    expected = enumerated(trials, holders, told, f, 0.4, 5, 0.5)
    assert [float(one[0]) for one in found] == pytest.approx(expected, rel=1e-9)


def simulated(size, trials, held, told, rng, draws=200_000, p=0.5, m=14):
    """The smallest tail of both readers, from published counts with their copies."""
    t = (1 - p) / m
    f = held / size
    quota = trials * f
    holders = np.floor(quota) + (rng.random(draws) < quota - np.floor(quota))
    seen = rng.binomial(holders.astype(int), p + t)
    seen = seen + rng.binomial(trials - holders.astype(int), t)
    copies, more = divmod(size, trials)
    published = copies * seen
    if more:
        published = published + rng.hypergeometric(seen, trials - seen, more)
    own = (published / size - t) / p
    holder, anybody = mixing(p, m)
    by_margins = f + rng.normal(size=draws) * math.sqrt((holder * f + anybody) / told)
    best = (trials * own + told * by_margins) / (trials + told)
    return min(
        np.mean(estimate > 1.5 * f + 1e-9) if above else np.mean(estimate < 0.5 * f - 1e-9)
        for estimate in (own, best)
        for above in (True, False)
    )


@pytest.mark.parametrize("size", [40, 55, 90, 131, 700])
@pytest.mark.parametrize(("above", "told"), [(0.25, 1.0), (0.25, 4.0), (0.25, 12.0), (0.5, 4.0)])
def test_published_counts_keep_the_promise_and_larger_samples_do_not(size, above, told):
    """With unequal copies, at many held counts of the class; 30 % more trials are caught.

    In small groups few frequencies occur, and some of those may pass with more trials than all.
    """
    rng = np.random.default_rng(size)
    group_class = a_class(14, above, 2 * above)
    trials = exact_size(group_class, size, told)
    counts = np.unique(np.linspace(0.25 * size + 1, 2 * above * size, 12).astype(int))

    def smallest(n):
        return min(simulated(size, n, int(c), told, rng) for c in counts)

    assert trials >= 1
    assert smallest(trials) > 0.05 - 3 * math.sqrt(0.05 * 0.95 / 200_000) - 0.001
    assert size < 90 or smallest(math.ceil(1.3 * trials) + 1) < 0.05

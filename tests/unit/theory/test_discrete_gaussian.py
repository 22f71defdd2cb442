"""The discrete Gaussian: its exact distribution, and what is drawn from it.

Keys are fixed. Draws must agree with the true σ, and not with one that is off by 30 %.
"""

from __future__ import annotations

import hashlib
import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import opendp.prelude as dp
import pytest
from scipy import stats

from reconpriv.cells.randomness import Key, Randomness
from reconpriv.errors import PolicyError
from reconpriv.theory.margins.discrete_gaussian import discrete_gaussian

VARIANCE = 67.8  # one table at ε = 1, δ = 1e-9
TINY = 1e-6
WHOLE = 1 << 128


def exact(variance, reach):
    """The probabilities of -reach, …, reach in 90 digits, term by term, and the rest as one."""
    with localcontext() as context:
        context.prec = 90
        # Everything beyond is below 10^-80 of the whole.
        far = math.ceil(math.sqrt(variance) * 20) + 2
        weights = [(-Decimal(k * k) / (2 * Decimal(variance))).exp() for k in range(far + 1)]
        total = 2 * sum(weights) - 1
        inside = [Fraction(weights[abs(k)] / total) for k in range(-reach, reach + 1)]
    return [*inside, 1 - sum(inside)]


def drawn_with(table):
    """The probabilities that uniform 128-bit words give."""
    bounds = [(int(h) << 64) | int(w) for h, w in zip(table.high, table.low, strict=True)]
    steps = [b - a for a, b in zip([0, *bounds], [*bounds, WHOLE], strict=True)]
    return [Fraction(step, WHOLE) for step in steps]


@pytest.mark.parametrize("variance", [0.01, 0.25, 1.0, 2.5, VARIANCE, 407.0, 1e4])
def test_the_table_is_within_2_to_the_minus_100_of_the_true_distribution(variance):
    table = discrete_gaussian(variance)
    found = [*drawn_with(table), Fraction(0)]
    truth = exact(variance, table.reach)
    assert sum(found) == 1
    distance = sum(abs(a - b) for a, b in zip(found, truth, strict=True)) / 2
    assert distance < Fraction(1, 1 << 100)


def test_the_distance_notices_a_variance_that_is_hardly_off():
    table = discrete_gaussian(VARIANCE)
    found = [*drawn_with(table), Fraction(0)]
    truth = exact(VARIANCE * (1 + 1e-15), table.reach)
    distance = sum(abs(a - b) for a, b in zip(found, truth, strict=True)) / 2
    assert distance > Fraction(1, 1 << 100)


def test_probabilities_are_symmetric_and_have_the_variance():
    table = discrete_gaussian(VARIANCE)
    probabilities = table.probabilities()
    places = np.arange(-table.reach, table.reach + 1)
    assert np.allclose(probabilities, probabilities[::-1], rtol=0, atol=1e-30)
    assert probabilities @ places == pytest.approx(0, abs=1e-12)
    assert probabilities @ places**2 == pytest.approx(VARIANCE, rel=1e-12)
    assert np.all(np.diff(table.high.astype(object)) >= 0)


def words(number, draws):
    """Words as margins get them: of [cell, count]."""
    key = Key(hashlib.sha256(b"gaussian %d" % number).digest())
    found = Randomness(key, b"margins").words(np.arange(draws, dtype=np.uint64), np.uint64(31))
    return found[:, 0].copy(), found[:, 1].copy()


def pooled(draws, variance):
    """Counts of draws and what is expected, with at least 20 expected in every class."""
    table = discrete_gaussian(variance)
    expected = table.probabilities() * draws.size
    inside = np.flatnonzero(expected >= 20)
    low, high = inside[0] - table.reach, inside[-1] - table.reach
    classes = np.clip(draws, low - 1, high + 1) - (low - 1)
    seen = np.bincount(classes, minlength=inside.size + 2)
    tails = expected[: inside[0]].sum(), expected[inside[-1] + 1 :].sum()
    wanted = np.array([tails[0], *expected[inside], tails[1]])
    if tails[0] < 5:  # a tiny σ: join the tails to their neighbours
        seen = np.array([seen[0] + seen[1], *seen[2:-2], seen[-2] + seen[-1]])
        wanted = np.array([wanted[0] + wanted[1], *wanted[2:-2], wanted[-2] + wanted[-1]])
    return seen, wanted


def chi_square(draws, variance):
    seen, wanted = pooled(draws, variance)
    return float(stats.chisquare(seen, wanted * seen.sum() / wanted.sum()).pvalue)


@pytest.mark.parametrize("variance", [1.0, VARIANCE, 407.0])
def test_a_million_keyed_draws_have_the_exact_distribution_and_no_other(variance):
    draws = discrete_gaussian(variance).draw(*words(1, 1_000_000))
    assert chi_square(draws, variance) > TINY
    for wrong in (0.7, 1.3):
        assert chi_square(draws, variance * wrong**2) < TINY


def two_samples(ours, theirs):
    """The p-value of both coming from one distribution; rare values are joined."""
    low, high = np.quantile(np.concatenate([ours, theirs]), [0.001, 0.999])
    counts = [
        np.bincount(np.clip(one, low, high).astype(int) - int(low), minlength=int(high - low) + 1)
        for one in (ours, theirs)
    ]
    return float(stats.chi2_contingency(counts).pvalue)


def opendp_draws(scale, draws):
    dp.enable_features("contrib")
    domain = dp.vector_domain(dp.atom_domain(T=int)), dp.l2_distance(T=int)
    return np.array(dp.m.make_gaussian(*domain, scale=scale)([0] * draws))


def test_draws_are_those_of_opendp():
    """Another implementation, which rejects instead of inverting; it takes no seed."""
    scale, draws = 3.0, 20_000
    ours = discrete_gaussian(scale**2).draw(*words(2, draws))
    assert two_samples(ours, opendp_draws(scale, draws)) > 1e-7
    for wrong in (0.7, 1.3):
        assert two_samples(ours, opendp_draws(wrong * scale, draws)) < TINY


def test_the_lower_half_of_a_word_decides_between_equal_upper_halves():
    """Just below an entry of the table is one value, at it the next one; as whole numbers say."""
    table = discrete_gaussian(VARIANCE)
    bounds = [(int(h) << 64) | int(w) for h, w in zip(table.high, table.low, strict=True)]
    inside = [b for b in bounds if 0 < b < WHOLE - 1]
    chosen = [n for b in inside for n in (b - 1, b, b + 1)] + [0, WHOLE - 1]
    high = np.array([n >> 64 for n in chosen], dtype=np.uint64)
    low = np.array([n & ((1 << 64) - 1) for n in chosen], dtype=np.uint64)
    expected = [sum(b <= n for b in bounds) - table.reach for n in chosen]
    assert table.draw(high, low).tolist() == expected
    # In the tails many entries share their upper half, so the lower one decides among several.
    assert len(set(table.high.tolist())) < table.high.size


def test_a_tiny_sigma_leaves_counts_alone():
    table = discrete_gaussian(1e-6)
    assert not table.draw(*words(3, 10_000)).any()


def test_a_huge_sigma_still_has_its_variance():
    draws = discrete_gaussian(2e4**2).draw(*words(4, 100_000))
    assert draws.std() == pytest.approx(2e4, rel=0.02)
    assert abs(draws.mean()) < 5 * 2e4 / math.sqrt(draws.size)


def test_noise_beyond_any_use_is_refused():
    with pytest.raises(PolicyError, match=r"^Margins would get noise of ±1,000,000, too much"):
        discrete_gaussian(1e12)

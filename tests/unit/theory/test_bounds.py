"""Theorems 2 and 3, Corollary 1: θ and μ, the tail bounds, and their sizes."""

import decimal
import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from reconpriv.errors import PolicyError
from reconpriv.theory.counts import epsilon_limit, observed_count
from reconpriv.theory.tails.bounds import BOUNDS, Bound, log_factor, markov, resolve_bound
from reconpriv.theory.tails.exact import exact_tails

FIXED = settings(deadline=None, derandomize=True, max_examples=80)
CLOSED_FORM = [name for name, bound in BOUNDS.items() if bound.size is not None]
APPROXIMATE = [name for name in BOUNDS if name != "exact"]
BY_VARIANCE = ("bernstein", "chebyshev")  # of a whole number of holders


@st.composite
def parameters(draw):
    """(p, m, f, ε) inside the range of Corollary 2."""
    p = draw(st.floats(0.05, 0.95))
    m = draw(st.integers(2, 60))
    f = draw(st.floats(0.01, 1.0))
    share = draw(st.floats(0.02, 1.0))
    return p, m, f, share * epsilon_limit(p, m, f)


def count_of(n, p, m, f, epsilon):
    return observed_count(n, f, retention=p, domain_size=m, epsilon=epsilon)


@FIXED
@given(parameters(), st.integers(1, 500))
def test_theorem_2_theta_times_the_mean_is_epsilon_n_p_f(values, n):
    p, m, f, epsilon = values
    count = count_of(n, p, m, f, epsilon)
    assert float(count.mean) == pytest.approx(n * (f * p + (1 - p) / m))
    assert float(count.theta * count.mean) == pytest.approx(epsilon * n * p * f)


def test_epsilon_limit_is_where_theta_is_one():
    limit = epsilon_limit(0.5, 14, 0.8)
    assert limit == pytest.approx(1 + 0.5 / (14 * 0.5 * 0.8))
    assert float(count_of(1, 0.5, 14, 0.8, limit).theta) == pytest.approx(1.0)
    assert float(count_of(1, 0.5, 14, 0.8, limit / 2).theta) == pytest.approx(0.5)


# p = .5, m = 2, f = .5: w = .5; ε = .5 gives θ = .25; n = 40 gives μ = 20. So εpf = .125, r = .75
# and t = .25, and the variance of a trial is .1875.
BY_HAND = {
    "chernoff": (math.exp(-0.0625 / 2.25 * 20), math.exp(-0.0625 / 2 * 20)),
    "chernoff-full": ((math.exp(0.25) / 1.25**1.25) ** 20, (math.exp(-0.25) / 0.75**0.75) ** 20),
    "hoeffding": (math.exp(-2 * 40 * 0.125**2),) * 2,
    "bernstein": (math.exp(-40 * 0.125**2 / (2 * 0.1875 + 2 * 0.125 / 3)),) * 2,
    "chebyshev": (0.1875 * 40 / (0.1875 * 40 + (40 * 0.125) ** 2),) * 2,
    "markov": (0.8, 1.0),
}


@pytest.mark.parametrize("name", APPROXIMATE)
def test_tails_by_hand(name):
    tails = BOUNDS[name].tails(count_of(40, 0.5, 2, 0.5, 0.5))
    assert [float(tail) for tail in tails] == pytest.approx(BY_HAND[name])


def test_full_chernoff_at_theta_one_has_ln_y_minus_one():
    limit = epsilon_limit(0.5, 10, 0.5)
    full, count = BOUNDS["chernoff-full"], count_of(7, 0.5, 10, 0.5, limit)
    assert float(full.tails(count).lower) == pytest.approx(math.exp(-7 * 0.3))
    assert float(full.size(count, 0.2)) == pytest.approx(-math.log(0.2) / 0.3)


@FIXED
@given(st.floats(1e-6, 1.0))
@example(0.0499999)  # where the series ends
@example(0.0500001)
def test_logarithmic_factors_agree_with_sixty_digits(theta):
    with decimal.localcontext(prec=60):
        x = decimal.Decimal(theta)
        ln_y = -x - (1 - x) * (1 - x).ln() if theta < 1 else decimal.Decimal(-1)
        ln_x = x - (1 + x) * (1 + x).ln()
    assert float(log_factor(np.array(theta))) == pytest.approx(float(ln_y), rel=1e-11)
    assert float(log_factor(np.array(-theta))) == pytest.approx(float(ln_x), rel=1e-11)


@FIXED
@given(parameters(), st.integers(1, 120), st.floats(0, 1))
@pytest.mark.parametrize("name", APPROXIMATE)
def test_every_bound_dominates_the_exact_tails(name, values, n, share):
    p, m, f, epsilon = values
    whole = max(1, round(share * n)) / n
    cases = [(whole, epsilon / epsilon_limit(p, m, f) * epsilon_limit(p, m, whole))]
    if name not in BY_VARIANCE:  # then the number of holders need not be whole
        cases.append((f, epsilon))
    for frequency, far in cases:
        count = count_of(n, p, m, frequency, far)
        for tail, exact in zip(BOUNDS[name].tails(count), exact_tails(count), strict=True):
            assert float(tail) >= float(exact) * (1 - 1e-9) - 1e-13


@pytest.mark.parametrize("name", BY_VARIANCE)
def test_a_bound_by_variance_may_not_where_a_single_trial_is_a_holder_or_not(name):
    count = count_of(1, 0.98, 10, 0.25, 1.0)
    assert float(BOUNDS[name].tails(count).lower) < float(exact_tails(count)[1])


@FIXED
@given(parameters(), st.integers(1, 400))
def test_full_chernoff_is_never_above_the_simplified_form(values, n):
    count = count_of(n, *values)
    full, simple = (BOUNDS[name].tails(count) for name in ("chernoff-full", "chernoff"))
    for one, other in zip(full, simple, strict=True):
        assert float(one) <= float(other) * (1 + 1e-12)


@FIXED
@given(parameters(), st.floats(0.01, 0.99))
@pytest.mark.parametrize("name", [name for name in CLOSED_FORM if name != "markov"])
def test_at_its_closed_form_size_the_smaller_tail_equals_delta(name, values, delta):
    size = float(BOUNDS[name].size(count_of(1, *values), delta))
    tails = BOUNDS[name].tails(count_of(size, *values))
    assert min(float(tails.upper), float(tails.lower)) == pytest.approx(delta, rel=1e-9)


@FIXED
@given(parameters(), st.floats(0.01, 0.99))
def test_markov_size_is_endless_or_nothing(values, delta):
    count = count_of(1, *values)
    size = float(BOUNDS["markov"].size(count, delta))
    assert size == (math.inf if 1 / (1 + float(count.theta)) >= delta else 0.0)


@FIXED
@given(parameters(), st.floats(0.01, 0.99), st.floats(0.01, 0.999))
@pytest.mark.parametrize("name", [n for n in CLOSED_FORM if BOUNDS[n].worst_at_largest_frequency])
def test_sizes_fall_as_the_frequency_grows(name, values, delta, smaller):
    p, m, f, epsilon = values
    high = float(BOUNDS[name].size(count_of(1, p, m, f, epsilon), delta))
    low = float(BOUNDS[name].size(count_of(1, p, m, smaller * f, epsilon), delta))
    assert low >= high * (1 - 1e-12)


def test_a_bound_is_found_by_name_or_taken_as_it_is_or_wrapped():
    def mine(count):
        return markov(count)

    own, wrapped = Bound("mine", mine), resolve_bound(mine)
    assert resolve_bound("chernoff") is BOUNDS["chernoff"]
    assert resolve_bound(own) is own
    assert wrapped == own and not (wrapped.size or wrapped.worst_at_largest_frequency)
    assert (BOUNDS["exact"].exact, BOUNDS["exact"].worst_at_largest_frequency) == (True, False)
    with pytest.raises(PolicyError, match="'chernof'") as caught:
        resolve_bound("chernof")
    assert all(name in str(caught.value) for name in BOUNDS)

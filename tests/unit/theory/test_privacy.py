"""Corollary 2's test, s_g (Theorems 4 and 5), and a policy's ranges."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from reconpriv.errors import PolicyError
from reconpriv.policy.policy import Policy
from reconpriv.theory.counts import epsilon_limit, observed_count
from reconpriv.theory.tails.bounds import BOUNDS, Bound, Tails
from reconpriv.theory.tails.privacy import is_private, largest_private_size, private_group_sizes

FIXED = settings(deadline=None, derandomize=True, max_examples=80)
CLOSED_FORM = [name for name, bound in BOUNDS.items() if bound.size is not None]
PAPER = {"retention": 0.5, "epsilon": 0.5, "delta": 0.3}
HISTOGRAM = st.lists(st.integers(1, 60), min_size=1, max_size=6)


@st.composite
def settings_of_a_policy(draw):
    p = draw(st.floats(0.1, 0.95))
    m = draw(st.integers(6, 50))
    epsilon = draw(st.floats(0.05, 1.0)) * epsilon_limit(p, m)
    delta = draw(st.floats(0.02, 0.98))
    return {"retention": p, "domain_size": m, "epsilon": epsilon, "delta": delta}


@pytest.mark.parametrize(
    ("m", "f", "bound", "expected"),
    [
        (14, 0.8, "chernoff", 26.229407522815),
        (14, 0.8, "chernoff-full", 21.816996151748),
        (14, 1.0, "chernoff", 20.639533788445),
        (50, 0.02, "chernoff", 1926.3564869215),
        (50, 0.02, None, 1926.3564869215),
    ],
)
def test_golden_sizes(m, f, bound, expected):
    chosen = {} if bound is None else {"bound": bound}
    got = largest_private_size(f, domain_size=m, **chosen, **PAPER)
    assert float(got) == pytest.approx(expected, rel=1e-13)


def test_a_size_can_fall_below_one_trial():
    size = largest_private_size(1.0, retention=0.9, epsilon=0.9, delta=0.9, domain_size=14)
    assert 0 < float(size) < 1


@pytest.mark.parametrize("bound", ["chernoff", "chernoff-full"])
def test_a_group_just_at_its_size_is_private_and_one_above_is_not(bound):
    # One value of frequency 1: s_g is 20.6 (simplified) or less (full).
    size = math.floor(float(largest_private_size(1.0, domain_size=14, bound=bound, **PAPER)))
    assert is_private([size], domain_size=14, bound=bound, **PAPER)
    assert not is_private([size + 1], domain_size=14, bound=bound, **PAPER)


@FIXED
@given(HISTOGRAM, settings_of_a_policy())
@pytest.mark.parametrize("bound", CLOSED_FORM)
def test_corollary_2_agrees_with_the_size_test(bound, counts, policy):
    size = sum(counts)
    s_g = float(private_group_sizes(np.array(counts), np.array([0]), bound=bound, **policy)[0])
    assume(math.isinf(s_g) or abs(size - s_g) > 1e-9 * size)
    assert is_private(counts, bound=bound, **policy) == (size <= s_g)


@FIXED
@given(HISTOGRAM, settings_of_a_policy())
@pytest.mark.parametrize("bound", CLOSED_FORM)
def test_the_largest_frequency_decides(bound, counts, policy):
    s_g = private_group_sizes(np.array(counts), np.array([0]), bound=bound, **policy)[0]
    worst = largest_private_size(max(counts) / sum(counts), bound=bound, **policy)
    assert float(s_g) == pytest.approx(float(worst), rel=1e-12)


@FIXED
@given(st.lists(HISTOGRAM, min_size=1, max_size=5), settings_of_a_policy())
def test_groups_side_by_side_get_the_sizes_they_get_alone(groups, policy):
    counts = np.concatenate([np.array(group) for group in groups])
    starts = np.cumsum([0, *(len(group) for group in groups[:-1])])
    together = private_group_sizes(counts, starts, **policy)
    alone = [private_group_sizes(np.array(group), np.array([0]), **policy)[0] for group in groups]
    assert together.tolist() == pytest.approx(alone, rel=1e-13)


def test_values_that_do_not_occur_are_not_tested():
    assert is_private([3, 0, 2, 0], domain_size=14, **PAPER) == is_private(
        [3, 2], domain_size=14, **PAPER
    )


@FIXED
@given(st.lists(st.floats(0.01, 1.0), min_size=1, max_size=5), settings_of_a_policy())
@pytest.mark.parametrize("bound", CLOSED_FORM)
def test_a_users_function_gets_the_closed_forms_size_by_bisection(bound, frequencies, policy):
    def mine(count):
        return BOUNDS[bound].tails(count)

    closed = largest_private_size(frequencies, bound=bound, **policy)
    bisected = largest_private_size(frequencies, bound=mine, **policy)
    assert bisected.tolist() == pytest.approx(closed.tolist(), rel=1e-9)


def test_a_users_function_written_from_scratch_needs_no_closed_form():
    def mine(count):
        # Hoeffding, without the library's help.
        tail = np.exp(-2 * count.trials * (count.epsilon * count.retention * count.frequency) ** 2)
        return Tails(tail, np.ones_like(tail))

    size = largest_private_size([0.4, 0.8], domain_size=14, bound=mine, **PAPER)
    expected = [-math.log(0.3) / (2 * (0.25 * f) ** 2) for f in (0.4, 0.8)]
    assert size.tolist() == pytest.approx(expected, rel=1e-12)


def test_a_users_function_is_tested_for_every_value_not_only_the_largest():
    def rare_is_worst(count):
        tail = np.exp(-count.trials * (1.1 - count.frequency) / 10)
        return Tails(tail, tail)

    policy = {"domain_size": 14, **PAPER}
    sizes = private_group_sizes(np.array([90, 10]), np.array([0]), bound=rare_is_worst, **policy)
    assert sizes[0] == pytest.approx(-math.log(0.3) * 10 / (1.1 - 0.1))


def test_the_smaller_of_both_tails_decides_the_bisection():
    def lopsided(swap):
        def bound(count):
            tails = (np.exp(-count.trials / 5), np.exp(-count.trials / 50))
            return Tails(*(tails[::-1] if swap else tails))

        return bound

    for swap in (False, True):
        size = largest_private_size(0.5, domain_size=14, bound=lopsided(swap), **PAPER)
        assert float(size) == pytest.approx(-5 * math.log(0.3), rel=1e-12)


@pytest.mark.parametrize("epsilon", [1.05, 2.0, math.inf])
def test_epsilon_past_the_range_is_refused_and_the_limit_named(epsilon):
    # p = .5, m = 50: 1 + (1-p)/(m p) = 1.02.
    policy = {"retention": 0.5, "domain_size": 50, "epsilon": epsilon, "delta": 0.3}
    calls = (
        lambda: largest_private_size(1.0, **policy),
        lambda: is_private([5], **policy),
        lambda: private_group_sizes(np.array([5]), np.array([0]), **policy),
        lambda: observed_count(5, 1.0, retention=0.5, domain_size=50, epsilon=epsilon),
    )
    for call in calls:
        with pytest.raises(PolicyError, match=r"past the range") as caught:
            call()
        assert "1.02" in caught.value.hint


@pytest.mark.parametrize("f", [1.0, 0.3, 1 / 7])
def test_epsilon_exactly_at_its_limit_is_allowed_and_a_little_more_is_not(f):
    limit = epsilon_limit(0.3, 7, f)
    policy = {"retention": 0.3, "domain_size": 7, "delta": 0.3}
    assert float(largest_private_size(f, epsilon=limit, **policy)) > 0
    with pytest.raises(PolicyError, match="past the range"):
        largest_private_size(f, epsilon=limit * 1.000001, **policy)


def test_epsilon_may_pass_the_limit_of_f_one_where_no_value_is_that_frequent():
    epsilon = epsilon_limit(0.5, 50, 0.5)
    assert epsilon > epsilon_limit(0.5, 50) * 1.01
    assert largest_private_size(0.5, retention=0.5, domain_size=50, epsilon=epsilon, delta=0.3) > 0


OUT_OF_RANGE = {
    "delta": ("tail probability δ|doubt of a policy", [0.0, 1.0, -0.1, 1.5, math.nan]),
    "retention": ("retention probability p", [0.0, 1.0, -0.1, 1.5, math.nan]),
    "epsilon": ("(relative error ε|tolerance of a policy) must be above 0", [0.0, -0.5, math.nan]),
}


@pytest.mark.parametrize(
    ("name", "value"), [(name, one) for name, (_, some) in OUT_OF_RANGE.items() for one in some]
)
def test_a_parameter_out_of_range_is_refused(name, value):
    policy = PAPER | {name: value}
    of_policy = {"epsilon": "tolerance", "delta": "doubt"}
    for call in (
        lambda: Policy(**{of_policy.get(name, name): one for name, one in policy.items()}),
        lambda: is_private([5], domain_size=4, **policy),
        lambda: largest_private_size(0.5, domain_size=4, **policy),
        lambda: private_group_sizes(np.array([5]), np.array([0]), domain_size=4, **policy),
    ):
        with pytest.raises(PolicyError, match=OUT_OF_RANGE[name][0]):
            call()


@pytest.mark.parametrize("f", [0.0, -0.1, 1.1])
def test_a_frequency_out_of_range_is_refused(f):
    with pytest.raises(PolicyError, match="frequency"):
        largest_private_size(f, domain_size=4, **PAPER)


def test_a_domain_of_one_value_is_refused():
    with pytest.raises(PolicyError, match="at least two values"):
        largest_private_size(0.5, domain_size=1, **PAPER)


@pytest.mark.parametrize("field", ["sampling", "unattainable"])
def test_an_unknown_choice_is_refused(field):
    with pytest.raises(PolicyError, match="'octopus'"):
        Policy(retention=0.5, tolerance=0.5, doubt=0.3, **{field: "octopus"})


def own_bound(count):
    return BOUNDS["hoeffding"].tails(count)


@pytest.mark.parametrize("sample_size", ["octave", "public"])
@pytest.mark.parametrize("bound", [own_bound, Bound("unflagged", own_bound)])
def test_a_rounded_frequency_is_refused_for_a_bound_of_unknown_worst_frequency(sample_size, bound):
    policy = Policy(retention=0.5, tolerance=0.5, doubt=0.3, bound=bound, sampling=sample_size)
    with pytest.raises(PolicyError, match=f"'{sample_size}'"):
        policy.check_sampling()


FLAGGED = Bound("flagged", own_bound, worst_at_largest_frequency=True)


@pytest.mark.parametrize(
    ("bound", "sample_size"),
    [*itertools.product(["exact", own_bound], ["paper", "none"]),
     *itertools.product(["exact", FLAGGED], ["octave", "public"])],
)  # fmt: skip
def test_other_bounds_go_with_the_sample_size(bound, sample_size):
    assert (
        Policy(
            retention=0.5, tolerance=0.5, doubt=0.3, bound=bound, sampling=sample_size
        ).check_sampling()
        is None
    )


def test_the_exact_bound_has_no_size_as_a_function_of_f_alone():
    with pytest.raises(PolicyError, match="private_group_sizes"):
        largest_private_size(0.5, domain_size=14, bound="exact", **PAPER)

"""The ratio attack on Laplace answers: closed form, printed tables, a real mechanism."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad

from reconpriv.attacks.ratio import simulated_ratios
from reconpriv.errors import PolicyError
from reconpriv.research.dp_tables import paper_groups, printed_scores
from reconpriv.theory.ratio import ratio_tails, smallest_exposed_count


def root_mean_square(scores):
    return float(np.sqrt((scores**2).mean()))


def test_all_printed_counts_agree_with_their_exact_probabilities():
    scores = printed_scores()
    assert scores.size == 112
    assert root_mean_square(scores) < 1.2
    assert np.abs(scores).max() < 4


@pytest.mark.parametrize("factor", [1 / 1.3, 1 / 0.7])
def test_another_noise_scale_does_not_fit_the_printed_counts(factor):
    """b = 1.3/λ and b = 0.7/λ in the place of 1/λ."""
    assert root_mean_square(printed_scores(factor)) > 1.2


def test_the_paper_prints_fourteen_groups():
    groups = list(paper_groups())
    assert [g.base for g in groups] == ["EDU"] * 7 + ["OCC"] * 7
    assert all(len(g.printed) == 8 for g in groups)


def numeric_exceeds(size, count, threshold, scale):
    """Pr[Y/X > c] by numerical integration over X, independent of the closed form."""

    def survival(x):
        return 0.5 * math.exp(-x / scale) if x > 0 else 1 - 0.5 * math.exp(x / scale)

    def density(x):
        return math.exp(-abs(x - size) / scale) / (2 * scale)

    def integrand(x):
        above = survival(threshold * x - count)
        return density(x) * (above if x > 0 else 1 - above)

    cuts = sorted({0.0, float(size), count / threshold})
    edges = [min(cuts) - 60 * scale, *cuts, max(cuts) + 60 * scale]
    return sum(quad(integrand, a, b, limit=200)[0] for a, b in itertools.pairwise(edges))


@settings(max_examples=60, deadline=None)
@given(
    st.integers(1, 400),
    st.floats(0.02, 1.0),
    st.sampled_from([0.02, 0.05, 0.1, 0.5]),
    st.floats(0.05, 0.9),
)
def test_the_closed_form_equals_numerical_integration(size, frequency, privacy, epsilon):
    tails = ratio_tails(size, frequency, privacy=privacy, epsilon=epsilon)
    count, scale = size * frequency, 1 / privacy
    above = numeric_exceeds(size, count, frequency * (1 + epsilon), scale)
    below = 1 - numeric_exceeds(size, count, frequency * (1 - epsilon), scale)
    assert float(tails.above) == pytest.approx(above, abs=1e-6)
    assert float(tails.below) == pytest.approx(below, abs=1e-6)


@pytest.mark.parametrize(("size", "frequency"), [(89, 0.87), (213, 0.47)])
def test_a_real_laplace_mechanism_has_these_tails(size, frequency):
    trials = 20_000
    errors = simulated_ratios(size, frequency, 0.1, trials) / frequency - 1
    tails = ratio_tails(size, frequency, privacy=0.1, epsilon=0.3)
    wrong = ratio_tails(size, frequency, privacy=0.1 / 1.3, epsilon=0.3)
    for share, p, off in (
        ((errors > 0.3).mean(), tails.above, wrong.above),
        ((errors < -0.3).mean(), tails.below, wrong.below),
    ):
        spread = math.sqrt(float(p) * (1 - float(p)) / trials)
        assert abs(share - float(p)) < 6 * spread
        assert abs(share - float(off)) > 6 * spread


@pytest.mark.parametrize("privacy", [0.05, 0.1, 1.0])
def test_the_smallest_exposed_count_is_where_the_violation_begins(privacy):
    parameters = {"privacy": privacy, "epsilon": 0.3}
    count = smallest_exposed_count(0.8, delta=0.1, **parameters)
    for factor, violated in ((0.98, False), (1.02, True)):
        tails = ratio_tails(factor * count / 0.8, 0.8, **parameters)
        assert (min(float(tails.above), float(tails.below)) < 0.1) == violated
    # The noise is on the scale of 1/λ, so the count is, too.
    assert count * privacy == pytest.approx(smallest_exposed_count(
        0.8, privacy=1.0, epsilon=0.3, delta=0.1), rel=1e-6)  # fmt: skip


@pytest.mark.parametrize(("privacy", "epsilon"), [(0, 0.3), (-1, 0.3), (0.1, 0), (math.nan, 0.3)])
def test_parameters_out_of_range_are_refused(privacy, epsilon):
    with pytest.raises(PolicyError):
        ratio_tails(100, 0.5, privacy=privacy, epsilon=epsilon)

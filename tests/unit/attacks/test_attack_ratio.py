"""The ratio attack (Example 2, section 6.3) with OpenDP's own noise."""

from __future__ import annotations

import numpy as np
import pytest

from reconpriv.attacks.attacked_table import AttackedTable
from reconpriv.attacks.ratio import attack_ratio, group_tails, noisy_answers, smallest_told_count
from reconpriv.policy.policy import Policy
from reconpriv.theory.ratio import ratio_tails, smallest_exposed_count


@pytest.fixture(scope="module")
def target(census_tables) -> AttackedTable:
    return AttackedTable.of(
        census_tables("Education"), Policy(retention=0.5, tolerance=0.5, doubt=0.3)
    )


def test_the_noise_is_laplace_with_the_scale_that_lambda_says():
    noise = np.abs(noisy_answers(1_000, 0.1, 20_000) - 1_000)
    assert noise.mean() == pytest.approx(10, rel=0.04)
    assert (noise > 10 * np.log(2)).mean() == pytest.approx(0.5, abs=0.02)


def test_simulation_matches_the_closed_form_and_another_lambda_does_not():
    size, f, draws = 100, 0.6, 20_000
    error = noisy_answers(size * f, 0.1, draws) / noisy_answers(size, 0.1, draws) / f - 1
    for privacy, near in ((0.1, True), (0.07, False), (0.13, False)):
        tails = ratio_tails(size, f, privacy=privacy, epsilon=0.3)
        for expected, found in ((tails.above, error > 0.3), (tails.below, error < -0.3)):
            z = (found.mean() - expected) / np.sqrt(expected * (1 - expected) / draws)
            assert (abs(z) < 4.5) == near


def test_the_attack_succeeds_in_large_groups_and_fails_in_the_smallest(target):
    result = attack_ratio(target, draws=400)
    assert result.success is not None and result.control is not None
    assert result.baseline is not None
    assert result.success.low > 0.95
    assert result.control.high < 0.3
    assert result.success.low > result.baseline.high
    assert abs(result.figures["z of simulation against closed form"]) < 5
    told = result.figures["groups exposed (both tails under the doubt)"]
    assert 0 < told < result.figures["groups violated as the paper says (a tail under the doubt)"]


def test_less_privacy_exposes_more_groups(target):
    above, below = (np.array(t) for t in group_tails(target, 0.1))
    more_above, more_below = group_tails(target, 1.0)
    assert (np.maximum(more_above, more_below) < 0.3).sum() > (np.maximum(above, below) < 0.3).sum()


@pytest.mark.parametrize("f", [0.1, 0.25, 0.5, 0.75, 1.0])
def test_from_the_smallest_told_count_on_both_tails_are_under_delta(f):
    told = smallest_told_count(f, 0.1, 0.5, 0.3)
    after = ratio_tails(told * np.array([1.0, 1.5, 4.0]) / f, f, privacy=0.1, epsilon=0.5)
    before = ratio_tails(told * 0.95 / f, f, privacy=0.1, epsilon=0.5)
    assert (np.maximum(after.above, after.below) < 0.3).all()
    assert max(float(before.above), float(before.below)) >= 0.3
    assert told >= smallest_exposed_count(f, privacy=0.1, epsilon=0.5, delta=0.3) * 0.99


def test_the_count_grows_as_the_noise_does():
    """It is a matter of |g| f λ alone."""
    counts = [smallest_told_count(0.5, privacy, 0.5, 0.3) * privacy for privacy in (0.05, 0.1, 1.0)]
    assert counts == pytest.approx([counts[0]] * 3)

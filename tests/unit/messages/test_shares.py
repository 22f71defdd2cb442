"""A percentage where a share is meant is asked about and refused, wherever it is given."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import reconpriv as rp
from reconpriv.errors import InputError, PolicyError
from reconpriv.estimate.counts import check_confidence
from reconpriv.estimate.quantiles import check_share as check_quantile
from reconpriv.learning.naive_bayes import ReconstructedNaiveBayes
from reconpriv.messages.commands import margin_parts
from reconpriv.messages.shares import check_relative_error, check_share
from reconpriv.policy.margin_settings import LARGEST_EPSILON
from reconpriv.theory.perturbation import retention_for_privacy
from reconpriv.tuning.recommend import check_target
from reconpriv.tuning.report import Target


@pytest.mark.parametrize("value", [0.001, 0.5, 0.999])
def test_a_share_is_returned(value):
    assert check_share(value, "It") == check_relative_error(value, "It") == value


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (10, "It must lie strictly between 0 and 1; got 10: did you mean 0.1?"),
        (99.5, "It must lie strictly between 0 and 1; got 99.5: did you mean 0.995?"),
        (100, "It must lie strictly between 0 and 1; got 100."),
        (1, "It must lie strictly between 0 and 1; got 1."),
        (0, "It must lie strictly between 0 and 1; got 0."),
        (-5.0, "It must lie strictly between 0 and 1; got -5."),
        (float("nan"), "It must lie strictly between 0 and 1; got nan."),
        (float("inf"), "It must lie strictly between 0 and 1; got inf."),
        ("10", "It must lie strictly between 0 and 1; got '10'."),
        (True, "It must lie strictly between 0 and 1; got True."),
        (None, "It must lie strictly between 0 and 1; got None."),
    ],
)
def test_what_is_no_share_is_refused(value, said):
    with pytest.raises(PolicyError) as caught:
        check_share(value, "It")
    assert str(caught.value) == said


def test_ends_that_are_allowed():
    assert check_share(0, "It", zero=True) == 0 and check_share(1, "It", one=True) == 1
    with pytest.raises(PolicyError, match="above 0 and at most 1; got 100: did you mean 1"):
        check_share(100, "It", one=True)
    with pytest.raises(InputError, match="at least 0 and below 1; got 1"):
        check_share(1, "It", zero=True, error=InputError)


SLIPS: dict[str, Callable[[], object]] = {
    "p": lambda: rp.Policy(retention=50, tolerance=0.5, doubt=0.3),
    "tolerance of a policy": lambda: rp.Policy(retention=0.5, tolerance=50, doubt=0.3),
    "doubt of a policy": lambda: rp.Policy(retention=0.5, tolerance=0.5, doubt=50),
    "exposed above": lambda: rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3, exposed_above=50),
    "margins": lambda: rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3, margins=50),
    "δ of margins": lambda: rp.Margins(1.0, 50),
    "max_error": lambda: check_target(Target(max_error=50)),
    "min_group_error": lambda: check_target(Target(min_group_error=50)),
    "max_reconstructed": lambda: check_target(Target(max_reconstructed=50)),
    "max_pooled": lambda: check_target(Target(max_pooled=50)),
    "rho1": lambda: check_target(Target(rho1=50)),
    "rho2": lambda: check_target(Target(rho2=50)),
    "retention of ρ1": lambda: retention_for_privacy(50, 60, 10),
    "retention of ρ2": lambda: retention_for_privacy(0.1, 50, 10),
    "confidence": lambda: check_confidence(50),
    "quantile": lambda: check_quantile(50),
}


@pytest.mark.parametrize("slip", SLIPS)
def test_a_percentage_is_asked_about(slip):
    with pytest.raises(rp.ReconprivError, match=r"; got 50: did you mean 0\.5\?"):
        SLIPS[slip]()


def test_the_budget_of_margins_has_a_limit_and_rho_goes_past_it():
    assert rp.Margins(LARGEST_EPSILON).round_epsilon == LARGEST_EPSILON
    with pytest.raises(PolicyError, match="at most 10; got 100: did you mean 1"):
        rp.Margins(100)
    # Such margins are written by their ρ, since their ε would be refused.
    weak = rp.Margins(rho=3.59738)
    assert weak.epsilon > LARGEST_EPSILON
    assert margin_parts(weak) == [("--margins-rho", "3.59738")]
    assert eval(repr(weak), {"Margins": rp.Margins}) == weak


def test_a_learner_asks_too():
    with pytest.raises(PolicyError, match=r"got 50: did you mean 0\.5"):
        ReconstructedNaiveBayes(retention=50).fit([["a"], ["b"]], [0, 1])

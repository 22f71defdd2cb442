"""Targets and suggestions: what is looked for, what is said before the click, what comes after."""

from __future__ import annotations

from dataclasses import replace

import pytest

import reconpriv as rp
from reconpriv.studio.pieces.policy_controls import START, controls_of, policy_of
from reconpriv.studio.pieces.searches import try_settings, unfinished
from reconpriv.studio.pieces.targets import (
    TuningRequest,
    advice,
    changes,
    effects,
    fault_of,
    standing,
    suggestion,
)
from reconpriv.studio.work.live import Candidate
from reconpriv.tuning.report import Target
from studio_workspace import POLICY, setting


def request(loaded, policy=POLICY, *, weaker=False, **wishes):
    return TuningRequest(Candidate(loaded, policy), Target(**wishes), weaker)


def suggested(loaded, policy=POLICY, *, weaker=False, **wishes):
    """The current setting, the suggested one, and the words on it."""
    wanted = request(loaded, policy, weaker=weaker, **wishes)
    report = try_settings(wanted).report
    return report.current, suggestion(report), str(advice(report, wanted.target))


def test_every_target_says_where_the_policy_stands(adult_loaded):
    found = setting(adult_loaded)
    bars = {"max_error": found.error, "rho2": found.posterior, "max_reconstructed":
            found.reconstructed, "min_group_error": found.group_error}  # fmt: skip
    for name, figure in bars.items():
        worse = 0.95 if name == "min_group_error" else 1.05
        met, missed = Target(**{name: figure * worse}), Target(**{name: figure / worse})
        assert ">met<" in str(standing(name, met, found))
        assert ">not met<" in str(standing(name, missed, found))
    assert "met<" not in str(standing("rho2", Target(), found))


def test_a_target_that_makes_no_sense_is_explained():
    assert fault_of(Target(max_error=0.1)) == ""
    assert "ρ2 must lie between" in fault_of(Target(rho2=0.05))


def test_a_suggestion_says_what_it_changes(adult_loaded):
    mine, other = (
        setting(adult_loaded),
        setting(adult_loaded, rp.Policy(retention=0.62, tolerance=0.5, doubt=0.3)),
    )
    assert changes(mine, other) == "p: 0.5 → 0.62"
    belief = f"A belief of 10 % can grow to {other.posterior:.0%} instead of {mine.posterior:.0%}."
    assert belief in effects(mine, other)


def test_a_search_without_time_says_what_it_left_out(adult_loaded):
    wanted = replace(request(adult_loaded, max_error=0.0001), seconds=0.0)
    steps = []
    found = try_settings(wanted, lambda *step: steps.append(step))
    assert (found.tried, found.whole) == (1, False) and found.settings > 1
    assert {tried for tried, _ in steps} == {0, 1} and steps[-1] == (1, found.settings)
    assert f"Only 1 of {found.settings:,} settings were tried" in str(unfinished(found))
    words = str(advice(found.report, wanted.target, whole=found.whole))
    assert "None of these meets all targets." in words and "No setting" not in words


def test_no_suggestion_weakens_single_records_unless_that_is_allowed(adult_loaded):
    mine, best, words = suggested(adult_loaded, max_error=0.05)
    assert best.posterior <= mine.posterior + 1e-9
    assert "Allow any belief with “Also suggest policies that protect single records less" in words
    assert "Margins spend a budget of their own" in words
    # A limit above what the policy tells now is no leave to go there.
    mine, best, _ = suggested(adult_loaded, max_error=0.3, rho2=0.95)
    assert best.posterior <= mine.posterior + 1e-9
    mine, best, words = suggested(adult_loaded, max_error=0.05, weaker=True)
    assert best.posterior > mine.posterior
    assert "protects single records less" in words
    assert f"can grow to {best.posterior:.0%} instead of {mine.posterior:.0%}" in words


@pytest.mark.parametrize("epsilon", [0.3, 0.9])
@pytest.mark.parametrize(
    "wishes",
    [{"max_reconstructed": 0.6}, {"rho2": 0.35}, {"rho2": 0.5}, {"max_error": 0.3, "rho2": 0.55}],
)
def test_a_suggestion_keeps_its_promise_once_it_is_taken(adult_loaded, epsilon, wishes):
    """The figures before the click are those after it, whatever the ε of either policy."""
    wanted = request(adult_loaded, replace(POLICY, tolerance=epsilon), **wishes)
    report = try_settings(wanted).report
    best = suggestion(report)
    taken = policy_of(START | controls_of(best.policy))
    found = setting(adult_loaded, taken)
    assert changes(best, found) == ""
    shown_after = effects(best, found)
    assert all(line.endswith(", as now.") for line in shown_after)
    assert "estimated within ±50% from their own records" in shown_after[-1]
    for name in wishes:
        now = str(standing(name, wanted.target, found))
        assert now == str(standing(name, wanted.target, best))
        assert (">met<" in now) == (report.recommended is not None)
    again = try_settings(replace(wanted, candidate=Candidate(adult_loaded, taken))).report
    assert again.current.reconstructed == found.reconstructed
    assert str(advice(report, wanted.target)).count("<li>") == len(effects(report.current, best))


def test_without_a_target_margins_are_offered_where_they_help(adult_loaded):
    mine, best, words = suggested(adult_loaded)
    assert changes(mine, best) == "margins: none → ε = 1"
    assert "Margins would help: margins: none → ε = 1." in words
    assert f"off by {best.error:.1%} instead of {mine.error:.1%}" in words
    assert "Margins spend a budget of their own: (ε = 1, δ = 1e-9)" in words
    assert controls_of(best.policy)["margins"] == 1.0


def test_the_picture_shows_both_frontiers_and_marks_within_it(adult_loaded):
    sweep = try_settings(request(adult_loaded))
    drawn = str(sweep.chart.picture())
    assert drawn.count("<svg") == 2  # for a wide window, and for a phone
    for words in ("records alone", "with margins", "expected error of a count"):
        assert words in drawn
    mine = sweep.report.current
    far = replace(mine, error=mine.error * 100)
    marks = [str(sweep.chart.marks(one, None)) for one in (mine, far)]
    assert "Your setting: analysts" in marks[0]
    places = [float(one.split('cx="')[1].split('"')[0]) for one in marks]
    assert 68 < places[0] < places[1] == 68 + 560
    slim = [float(one.split('cx="')[2].split('"')[0]) for one in marks]
    assert 68 < slim[0] < slim[1] == 68 + 236
    assert "suggested" in str(sweep.chart.marks(mine, suggestion(sweep.report)))

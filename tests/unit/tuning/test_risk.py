"""Risk in tune: figures equal brute force and simulation, and targets and commands keep them."""

import csv
import json
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from functools import partial

import numpy as np
import pyarrow as pa
import pytest

import reconpriv as rp
from reconpriv.attacks.attacked_table import AttackedTable, frequency_in
from reconpriv.attacks.pool import pooled_share
from reconpriv.attacks.statistics import relative_error
from reconpriv.errors import PolicyError
from reconpriv.messages.commands import policy_parts
from reconpriv.policy.exposure import largest_exposed
from reconpriv.policy.sampling_rules import sample_limits
from reconpriv.protect.publish_cube import published_cube
from reconpriv.theory.counts import ObservedCount
from reconpriv.theory.tails.exact import exact_tails
from reconpriv.theory.tails.exact_margins import combined_tails, within_epsilon
from reconpriv.tuning import sweep as sweeping
from reconpriv.tuning.reach import missed
from reconpriv.tuning.recommend import recommend
from reconpriv.tuning.report import Target
from reconpriv.tuning.risk import GroupRisk, chances
from reconpriv.tuning.sentences import risk
from tail_referee import tails_of_trials

KEYS = 40
USUAL = {"retention": 0.5, "tolerance": 0.5, "doubt": 0.3}


def sweep(tuner, **given):
    """Settings by the paper's bound unless another policy is in use."""
    return sweeping.sweep(tuner, **{"current": rp.Policy(**USUAL), **given})


@pytest.fixture(scope="module")
def tuner(adult):
    return adult.tuner(queries=200)


def top_errors(target, published):
    found = frequency_in(published, target.values, target.policy.retention)
    return relative_error(found, target.frequency)


# The chance of a close estimate.


@pytest.mark.parametrize(("p", "m", "epsilon"), [(0.5, 14, 0.5), (0.9, 2, 0.9), (0.1, 50, 0.3)])
def test_the_chance_of_a_close_estimate_is_what_both_tails_leave(p, m, epsilon):
    """Few trials are looked up, many are summed: the border is at 100."""
    trials, held = np.meshgrid([1.0, 2, 7, 40, 99, 100, 101, 250], np.arange(1, 38))
    count = ObservedCount(trials.ravel(), (held / 37).ravel(), p, m, epsilon)
    upper, lower = exact_tails(count)
    alone = within_epsilon(count, np.zeros(trials.size))
    np.testing.assert_allclose(alone, 1 - upper - lower, atol=1e-12)


@pytest.mark.parametrize(("trials", "told"), [(1, 0.3), (20, 2.0), (100, 40.0)])
def test_margins_are_no_further_trials_but_an_estimate_of_their_own(trials, told):
    frequency = np.array([0.1, 0.3, 0.75, 1.0])
    how = {"retention": 0.5, "domain_size": 5, "epsilon": 0.5}
    count = ObservedCount(np.full(4, float(trials)), frequency, **how)
    upper, lower = combined_tails(count, told)
    found = within_epsilon(count, np.full(4, told))
    np.testing.assert_allclose(found, 1 - upper - lower, atol=1e-12)


def test_no_group_is_told_more_closely_than_the_promise_says(adult):
    """(1 - 2δ) is what `recommended` promises; n + E trials would show 92 % with two columns."""
    found = adult.tuner(queries=50).setting(rp.preset("recommended"))
    assert 0.8 < found.worst_group <= 0.9 and found.margin_trials > 0


# Brute force: a made table, every outcome of every trial.

MADE = {"a": "xxxxxxyyz", "b": "xxyyz" * 4, "c": "yyyz", "d": "z", "e": "xyzw" * 2 + "x" * 4}


@pytest.fixture(scope="module")
def made():
    groups, values = zip(*((g, v) for g, text in MADE.items() for v in text), strict=True)
    table = pa.table({"g": groups, "h": ["u"] * len(groups), "s": values})
    with rp.read(table, sensitive="s", public=["g", "h"]) as opened:
        yield opened


def exposed_count(text, policy):
    """The largest count of an exposed value, by its definition."""
    size, most = len(text), 0
    for value, count in Counter(text).items():
        if count / size > policy.exposed_above and value not in policy.harmless:
            most = max(most, count)
    return most


def close_enough(size, count, trials, p, m, epsilon):
    """The probability that F' is within ε of f, over every outcome of every trial."""
    p, epsilon = Fraction(str(p)), Fraction(str(epsilon))
    return float(1 - sum(tails_of_trials(trials, Fraction(count, size), p, m, epsilon)))


@pytest.mark.parametrize("policy", [
    rp.Policy(retention=0.8, tolerance=0.8, doubt=0.3),
    rp.Policy(retention=0.8, tolerance=0.8, doubt=0.3, sampling="public"),
    rp.Policy(retention=0.8, tolerance=0.5, doubt=0.3, bound="exact", unattainable="one-trial"),
    rp.Policy(retention=0.8, tolerance=0.8, doubt=0.3, exposed_above=0.4),
    rp.Policy(retention=0.8, tolerance=0.8, doubt=0.3, harmless=("x", "w")),
], ids=["octave", "public", "exact", "above", "harmless"])  # fmt: skip
def test_figures_equal_brute_force_on_a_made_table(made, policy):
    policy = policy.on(made.schema)
    found = made.tuner(queries=20).setting(policy)
    raw = AttackedTable.of(made, policy).raw
    cube = published_cube(raw, policy, rp.Key.test())
    expected, worst = 0.0, (0.0, 0.0)
    for (group, text), trials in zip(sorted(MADE.items()), cube.trials.tolist(), strict=True):
        count = exposed_count(text, policy)
        assert trials <= 12 or not count, group
        if not count:
            continue
        size = len(text)
        chance = close_enough(size, count, int(trials), policy.retention, 4, 0.5)
        expected += chance * size
        worst = max(worst, (chance, count / size))
    assert found.reconstructed == pytest.approx(expected / sum(map(len, MADE.values())))
    assert found.worst_group == pytest.approx(worst[0])
    assert found.worst_share == pytest.approx(worst[1])
    assert 0 < found.reconstructed < found.worst_group <= 1


# Simulation: publications of Adult in memory, attacked as `attack micro` does.


@pytest.mark.parametrize("size", ["none", "octave", "public"])
@pytest.mark.parametrize("above", [0.0, 0.25])
def test_figures_agree_with_simulation_and_wrong_trials_do_not(adult, tuner, size, above):
    """Within 3 standard errors of 40 keys; not so with 30 % fewer or 30 % more trials."""
    # At p = .5 the few values of a small count hide that there are 26 instead of 20.
    policy = rp.Policy(retention=0.4, tolerance=0.5, doubt=0.3, sampling=size, exposed_above=above)
    target = AttackedTable.of(adult, policy)
    batch, m = target.batch, adult.schema.domain_size
    frequency = largest_exposed(batch, policy)
    people = np.where(frequency > 0, batch.sizes, 0) / batch.sizes.sum()
    close = [people @ (top_errors(target, target.publish(i)) <= 0.5) for i in range(KEYS)]
    mean, error = np.mean(close), np.std(close, ddof=1) / np.sqrt(KEYS)
    found = tuner.setting(policy).reconstructed
    print(f"{size} above {above}: {found:.4f}, simulated {mean:.4f} ± {error:.4f}")
    assert abs(found - mean) < 3 * error
    trials = np.minimum(sample_limits(batch, policy, m), batch.sizes)
    # Too few people live in groups with a value above a quarter to tell 26 trials from 34.
    for factor in (0.7, 1.3) if above == 0.0 else ():
        how = {"retention": 0.4, "domain_size": m, "tolerance": 0.5}
        chance = chances(frequency, factor * trials, np.zeros(trials.size), **how)
        wrong = GroupRisk.of(chance, frequency, batch.sizes).reconstructed
        assert abs(wrong - mean) > 3 * error


def test_pooling_is_measured_by_the_same_yardstick(adult, tuner):
    strict = rp.Policy(retention=0.5, tolerance=0.5, doubt=0.05, bound="exact", sampling="public")
    alone, pooled = tuner.setting(strict).reconstructed, pooled_share(tuner.cube, strict)
    # Adult by age, sex, race: .44 from the groups' own records, .90 with their neighbours.
    assert alone < 0.5 and pooled > 0.8
    above = rp.Policy(**USUAL, exposed_above=0.25)
    assert pooled_share(tuner.cube, strict, above) < 0.25  # as many live in such groups
    nothing = rp.Policy(**USUAL, exposed_above=0.99)
    assert pooled_share(tuner.cube, nothing) < 0.01


# One yardstick for all settings of a sweep.


def test_every_setting_of_a_sweep_is_judged_by_the_current_policy(tuner):
    """A smaller ε or a larger φ must not look safer because fewer estimates count."""
    current = rp.Policy(**USUAL, exposed_above=0.25)
    report = sweep(tuner, retentions=[0.5], tolerances=[0.3, 0.5], doubts=[0.3], margins=[0],
                   exposed_above=[0.0, 0.25, 0.5], current=current)  # fmt: skip
    assert {(s.judged_tolerance, s.judged_above) for s in report.settings} == {(0.5, 0.25)}
    by = {(s.tolerance, s.exposed_above, s.sampling): s.reconstructed for s in report.settings}
    assert by[0.5, 0.25, "octave"] == tuner.setting(current).reconstructed
    # With ε = .3 and with φ = .5 more trials are published: more people are reconstructed.
    assert by[0.3, 0.25, "octave"] > by[0.5, 0.25, "octave"] < by[0.5, 0.5, "octave"]
    # Classes above a quarter are the same with φ = 0 and φ = 1/4.
    assert by[0.5, 0.0, "octave"] == pytest.approx(by[0.5, 0.25, "octave"])
    group = {s.exposed_above for s in report.settings if s.efficient}
    assert group == {0.0, 0.25, 0.5}


@pytest.mark.parametrize("epsilon", [0.3, 0.9])
@pytest.mark.parametrize("exposure", [{}, {"harmless": ("Sales",)}])
def test_the_figures_of_a_recommendation_are_those_of_the_policy_in_use(tuner, epsilon, exposure):
    """Judged by the old ε, a recommendation would break its promise once it is taken."""

    def tuned(current, target):
        measure = partial(pooled_share, tuner.cube, exposing=current)
        return sweep(tuner, retentions=[0.4, 0.5], tolerances=[0.4, 0.6, 0.8], target=target,
                     margins=[0], current=current, pooled=measure)  # fmt: skip

    first = rp.Policy(retention=0.5, tolerance=epsilon, doubt=0.3, **exposure).on(tuner.schema)
    now = tuner.setting(first)
    target = Target(max_reconstructed=0.9 * now.reconstructed)
    best = tuned(first, target).recommended
    assert best.tolerance != epsilon and best.reconstructed <= 0.9 * now.reconstructed
    taken = tuned(best.policy.on(tuner.schema), target)
    assert not taken.misses and taken.current == replace(best, efficient=False)


def test_what_counts_as_close_does_not_depend_on_the_policy(tuner):
    """Without sampling, ε and δ change nothing that is published."""
    same = {
        tuner.setting(
            rp.Policy(retention=0.5, tolerance=epsilon, doubt=delta, sampling="none")
        ).reconstructed
        for epsilon in (0.2, 0.5, 0.9)
        for delta in (0.1, 0.5)
    }
    pooled = {
        pooled_share(tuner.cube, rp.Policy(retention=0.5, tolerance=e, doubt=0.3, sampling="none"))
        for e in (0.2, 0.9)
    }
    assert len(same) == len(pooled) == 1


def test_what_counts_as_exposed_has_a_sentence_of_its_own(tuner):
    policy = rp.Policy(**USUAL, exposed_above=0.25, harmless=("Sales",))
    found = tuner.setting(policy.on(tuner.schema))
    said = risk(found)
    assert "estimates the share of its most exposed value within ±50% for" in said
    assert said.endswith(
        "group. Only values that more than 25% of a group hold and that are not called harmless"
        " count as exposed here."
    )
    other = replace(found, exposed_above=0.0, harmless=())
    assert risk(other).endswith(
        "Only values that more than 25% of a group hold count as exposed here, as under the current"
        " policy."
    )
    assert "Only values" not in risk(tuner.setting(rp.Policy(**USUAL)))


def test_margins_add_what_they_tell(tuner):
    for size in ("octave", "public", "none", "paper"):
        alone = tuner.setting(rp.Policy(**USUAL, sampling=size))
        both = tuner.setting(rp.Policy(**USUAL, sampling=size, margins=1.0))
        if alone.sampling_rule.counts_margins:
            # Margins take the place of trials.
            assert both.reconstructed == pytest.approx(alone.reconstructed, abs=0.03)
        else:
            assert both.reconstructed > alone.reconstructed


def test_without_an_exposed_value_nobody_is_at_risk(tuner):
    for margins in (None, 1.0):
        policy = rp.Policy(**USUAL, exposed_above=0.995, margins=margins)
        found = tuner.setting(replace(policy, harmless=("Sales",)).on(tuner.schema))
        assert found.reconstructed < 0.01
    table = pa.table({"g": ["a", "b"] * 100, "s": ["x", "x", "y", "y", "z", "z"] * 33 + ["x"] * 2})
    with rp.read(table, sensitive="s", public="all") as opened:
        report = opened.tune(queries=20, current=rp.Policy(**USUAL, exposed_above=0.6))
    now = report.current
    assert (now.reconstructed, now.worst_group, now.worst_share, now.pooled) == (0, 0, 0, 0)
    assert (
        "No group has an exposed value. Only values that more than 60% of a group hold count as"
        " exposed here." in report.standing
    )
    assert "adversary by" not in report.standing and "inf" not in str(report)
    assert (
        json.loads(json.dumps(report.as_dict(), allow_nan=False))["current"]["group_error"] is None
    )


# Targets.


@pytest.fixture(scope="module")
def report_for(tuner):
    def report(**target):
        return sweep(tuner, target=Target(**target), margins=[0])

    return report


@pytest.mark.parametrize("share", [0.4, 0.6, 0.8])
def test_a_limit_on_the_reconstructed_is_kept_by_the_most_accurate_setting(report_for, share):
    report = report_for(max_reconstructed=share)
    best = report.recommended
    assert best.reconstructed <= share < report.current.reconstructed
    allowed = [
        s for s in report.settings
        if s.eligible and s.reconstructed <= share and s.retention <= 0.5
    ]  # fmt: skip
    assert best.error == min(s.error for s in allowed)
    assert report.misses == ("max_reconstructed",)
    assert f"It misses the target: at most {share:.0%} of the people" in report.standing
    assert f"Recommended for at most {share:.0%} of the people reconstructed" in report.verdict
    close = f"most exposed value within ±50% for {100 * best.reconstructed:.3g}% of the people"
    assert close in report.verdict


def test_a_limit_on_the_reconstructed_that_nothing_keeps(tuner, report_for):
    report = sweep(tuner, retentions=[0.5], tolerances=[0.5], target=Target(max_reconstructed=0.01),
                   margins=[0])  # fmt: skip
    assert report.recommended is None and report.needed is None
    least = min(s.reconstructed for s in report.settings if s.eligible)
    assert report.nearest.reconstructed == least
    assert report.verdict.startswith("No setting reaches at most 1% of the people reconstructed.")
    both = report_for(max_error=0.5, max_reconstructed=0.7).recommended
    assert both.error <= 0.5 and both.reconstructed <= 0.7


def test_with_an_error_as_many_values_as_possible_are_protected(tuner):
    one = tuner.setting(rp.Policy(**USUAL))
    wide = replace(one, exposed_above=0.25, error=0.8 * one.error, group_error=2 * one.group_error)
    assert recommend([one, wide], Target(max_error=one.error)) == one
    assert recommend([one, wide], Target(max_error=0.9 * one.error)) == wide
    assert recommend([one, wide], Target(min_group_error=0.01)) == wide


def test_a_limit_on_pooling_is_kept_by_measuring(adult, tuner):
    asked = []

    def measure(policy):
        asked.append(policy)
        return pooled_share(tuner.cube, policy, rp.Policy(**USUAL))

    target = Target(max_pooled=0.8)
    report = sweep(tuner, tolerances=[0.5, 0.9], target=target, margins=[0], pooled=measure)
    best = report.recommended
    assert best.pooled <= 0.8 < report.current.pooled and report.misses == ("max_pooled",)
    assert len(asked) < 15 and best in report.settings
    assert "one who also uses neighbouring groups, for" in report.verdict
    assert f"at most {0.8:.0%} reconstructed by pooling" in report.verdict
    more = [s for s in report.settings if s.pooled is not None and s.error < best.error]
    assert more and all(missed(s, target) for s in more)
    none = sweep(tuner, retentions=[0.5], target=Target(max_pooled=0.01), margins=[0],
                 pooled=measure)  # fmt: skip
    assert none.recommended is None and none.nearest.pooled > 0.01
    with pytest.raises(PolicyError, match="only where it is measured"):
        sweep(tuner, target=target)


def test_exact_tails_are_swept_by_a_small_grid(tuner):
    current = rp.Policy(retention=0.5, tolerance=0.5, doubt=0.05, bound="exact", sampling="public")
    report = sweep(
        tuner, retentions=[0.5, 0.7], current=current, target=Target(max_reconstructed=0.7)
    )
    assert {s.bound for s in report.settings} == {"exact"}
    assert {s.doubt for s in report.settings} == {*sweeping.EXACT.doubts}
    assert {s.tolerance for s in report.settings} == {0.5}
    best = report.recommended
    assert best.reconstructed <= 0.7 and best.worst_group <= 1 - 2 * best.doubt + 1e-9
    assert "bound exact" in report.verdict and not report.no_margins


# The command.

ADULT = ("example:adult", "-s", "occupation", "--public", "age,sex,race", "--missing", "value")
PAPER = ("--preset", "paper")
FEW = ("--queries", 100, "-p", "0.4,0.5", "-d", "0.3,0.5", "--margins", 0)


def test_a_publish_command_says_what_is_exposed():
    def words(**exposure):
        return policy_parts(rp.Policy(**USUAL, **exposure))[5:-1]

    every = ("--exposed-above", "0")
    assert words() == [every]
    assert words(exposed_above=0.1 + 0.2) == [("--exposed-above", "0.30000000000000004")]
    assert words(harmless=["a, b", 'c "d"', None, 3]) == [
        every, ("--harmless", '"a, b","c ""d""",NULL,3')
    ]  # fmt: skip


def test_the_command_says_who_is_reconstructed(cli, tmp_path):
    out = tmp_path / "settings.csv"
    asked = ("tune", *ADULT, *PAPER, "--max-reconstructed", 0.8, "--exposed-above", "0,0.25", *FEW)
    done = cli(*asked, "-o", out)
    assert done.code == 0, done.err
    said = " ".join(done.out.split())
    assert "who uses a group's own records estimates the share of its most exposed value" in said
    assert "in the most exposed group; one who also uses neighbouring groups, for" in said
    rows = list(csv.DictReader(out.read_text().splitlines()))
    assert {row["exposed_above"] for row in rows} == {"0", "0.25"}
    assert all(0 < float(row["reconstructed"]) < 1 for row in rows)
    found = json.loads(cli(*asked, "--json", "--no-pooled").out)
    assert found["current"]["pooled"] is None and found["current"]["reconstructed"] > 0.8
    assert found["target"]["max_reconstructed"] == 0.8


def test_a_preset_is_the_policy_to_compare_with(cli):
    done = cli("tune", *ADULT, "--preset", "strict", "--current", "p=0.4", *FEW, "-d", "0.05",
               "--json")  # fmt: skip
    found = json.loads(done.out)
    now = found["current"]
    assert (now["retention"], now["doubt"]) == (0.4, 0.05)
    assert (now["bound"], now["sampling"]) == ("exact", "public")
    assert {setting["bound"] for setting in found["settings"]} == {"exact"}


@pytest.mark.parametrize(("options", "says"), [
    (("--max-reconstructed", "2"), "strictly between 0 and 1; got 2"),
    (("--max-pooled", "0"), "strictly between 0 and 1; got 0"),
    (("--exposed-above", "x"), "--exposed-above takes numbers"),
    (("--exposed-above", "1"), "must be at least 0 and below 1"),
    (("--harmless", ","), "--harmless is empty"),
    (("--harmless", "Juggler"), "has no value 'Juggler'"),
    (("--preset", "lax"), "no preset called 'lax'"),
    (("--bound", "lax"), "no tail bound called 'lax'"),
])  # fmt: skip
def test_options_that_make_no_sense_are_refused(cli, options, says):
    done = cli("tune", *ADULT, *options)
    assert done.code == 2 and done.err.startswith("error: ") and "Traceback" not in done.err
    assert says in " ".join(done.err.split())

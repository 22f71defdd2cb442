"""The granularity attack succeeds on `paper`, and gains nothing on `octave` and `public`."""

from __future__ import annotations

from functools import cache
from itertools import product

import numpy as np
import pytest

import reconpriv as rp
from made_tables import made
from reconpriv.attacks.attacked_table import AttackedTable, dense
from reconpriv.attacks.granularity import Attempt, attack_granularity, attempt, gain
from reconpriv.attacks.trial_likelihood import _VAGUE, Knowledge, count_log_likelihood, infer
from reconpriv.policy.policy import Policy
from reconpriv.policy.sampling_rules import round_up_to_octave
from reconpriv.research.data import census_population

POLICY = Policy(retention=0.5, tolerance=0.5, doubt=0.3, sampling="paper")


@pytest.fixture(scope="module")
def edu() -> AttackedTable:
    """EDU-300K of the study: its violating groups of at least 200 records."""
    with census_population(300_000).sample("EDU", 300_000) as table:
        target = AttackedTable.of(table, POLICY)
    return target.only(target.violating(200))


@pytest.fixture(scope="module")
def occ() -> AttackedTable:
    """OCC-300K: every fourth of its violating groups of at least 200 records."""
    with census_population(300_000).sample("OCC", 300_000) as table:
        target = AttackedTable.of(table, POLICY)
    return target.only(target.violating(200)[::4])


@pytest.fixture(scope="module")
def on(edu: AttackedTable, occ: AttackedTable):
    targets = {"EDU": edu, "OCC": occ}

    @cache
    def made(base: str, size: str) -> Attempt:
        return attempt(targets[base], size)

    return made


@pytest.mark.parametrize("base", ["EDU", "OCC"])
def test_on_paper_f_is_told_at_least_three_times_better_than_by_the_mle(on, base):
    found = on(base, "paper")
    assert np.median(found.error) <= 0.06
    assert gain(found).low > 3


def test_on_paper_the_number_of_trials_is_recovered(on):
    found = on("EDU", "paper")
    assert found.exact.mean() >= 0.70
    assert found.exact[found.records >= 500].mean() >= 0.90


def test_on_paper_recovery_depends_on_the_copies_of_a_trial(on):
    """Below three copies of each trial the counts fit many |g1|; from six on hardly another."""
    found = on("OCC", "paper")
    copies = found.records / found.trials
    assert found.exact[copies >= 6].mean() >= 0.9
    assert found.exact[copies < 2].mean() <= 0.3


def test_knowing_all_other_frequencies_would_help_the_recovery_little(on, occ):
    """So what is missing on OCC is missing in the counts, not in the attack."""
    best = attempt(occ, "paper", knowing_the_rest=True)
    assert best.exact.mean() < on("OCC", "paper").exact.mean() + 0.15


@pytest.mark.parametrize("base", ["EDU", "OCC"])
@pytest.mark.parametrize("size", ["public", "octave"])
def test_on_hardened_sizes_the_attack_is_no_better_than_the_mle(on, base, size):
    assert gain(on(base, size)).contains(1.0)


@pytest.mark.parametrize("base", ["EDU", "OCC"])
def test_on_octave_f_is_located_in_its_octave_and_stays_there(on, base):
    found = on(base, "octave")
    assert found.located.all()
    same = round_up_to_octave(found.frequency * 0.999) == round_up_to_octave(found.truth * 0.999)
    assert same.mean() > 0.97  # but for f at the border, where the grid is a little off


def test_on_public_f_is_anywhere(on):
    found = on("EDU", "public")
    assert len(set(found.trials.tolist())) == 1
    assert found.located.all()


def test_the_attack_must_fail_for_another_group(on):
    """The control: an estimate held against another group's truth tells little."""
    found = on("EDU", "paper")
    elsewhere = np.abs(np.roll(found.frequency, 1) - found.truth) / found.truth
    assert np.median(elsewhere) > 5 * np.median(found.error)


def test_the_attack_must_fail_where_the_policy_is_another():
    """Believing a wrong δ, the adversary inverts the wrong s(f)."""
    target = made(np.array([[300, 60, 60, 60, 60, 60]]), POLICY)
    counts = dense(target.publish(0, "paper"))
    right = infer(counts, Knowledge.of(POLICY, 6))
    wrong = infer(
        counts, Knowledge.of(Policy(retention=0.5, tolerance=0.5, doubt=0.6, sampling="paper"), 6)
    )
    assert abs(right.frequency[0] - 0.5) < 0.05
    assert abs(wrong.frequency[0] - 0.5) > abs(right.frequency[0] - 0.5)


def test_a_shuffled_sensitive_column_leaves_no_more_than_the_whole_table_tells(census_tables):
    """Shuffled, every group looks like the table: the attack finds that, and nothing of it."""
    target = AttackedTable.of(census_tables("Education"), POLICY)
    large = target.violating(120)
    shuffled = target.shuffled()
    here = np.intersect1d(shuffled.violating(), large)
    found = attempt(shuffled.only(here), "paper")
    true = target.frequency[here]
    assert np.median(np.abs(found.frequency - true) / true) > 0.15
    assert np.median(np.abs(found.frequency - target.overall.max())) < 0.1


@pytest.mark.parametrize("observed", [[7, 4, 3, 0], [4, 7, 3, 0], [3, 0, 7, 4], [0, 7, 4, 3]])
def test_the_likelihood_of_counts_equals_brute_force(observed):
    """Sum over all trial counts of Pólya's law times the ways to hand out the copies."""
    from math import comb, lgamma

    counts, m = np.array(observed), 4
    total = int(counts.sum())
    for n in range(1, total + 1):
        q, extra = divmod(total, n)
        fit, least = count_log_likelihood(counts, np.array([n]))
        brute: dict[int, float] = {}
        for k in product(*(range(c + 1) for c in counts)):
            e = [y - q * i for y, i in zip(counts, k, strict=True)]
            if sum(k) != n or any(not 0 <= j <= i for j, i in zip(e, k, strict=True)):
                continue
            ways = np.prod([comb(i, j) for i, j in zip(k, e, strict=True)]) / comb(n, extra)
            rest, a = n - k[0], _VAGUE * (m - 1)
            polya = lgamma(rest + 1) + lgamma(a) - lgamma(rest + a) + sum(
                lgamma(i + _VAGUE) - lgamma(i + 1) - lgamma(_VAGUE) for i in k[1:]
            )  # fmt: skip
            brute[k[0]] = brute.get(k[0], 0.0) + float(ways * np.exp(polya))
        got = {least + j: float(np.exp(v)) for j, v in enumerate(fit[0]) if v > -np.inf}
        assert got == pytest.approx(brute), n


def test_a_group_that_is_not_sampled_is_taken_for_one(census_tables):
    """Counts of single trials: mostly |g1| = |g|, and never an estimate outside [1/m, 1]."""
    target = AttackedTable.of(census_tables("Education"), POLICY)
    quiet = np.setdiff1d(np.flatnonzero(target.batch.sizes >= 60), target.violating())[:40]
    some = target.only(quiet)
    known = Knowledge.of(POLICY, target.schema.domain_size)
    counts = dense(some.publish(0, "paper"))
    found = infer(counts, known)
    assert (found.trials == counts.sum(axis=1)).mean() > 0.5
    assert (1 / target.schema.domain_size <= found.low).all()
    assert (found.low <= found.high).all() and (found.high <= 1).all()


def test_counts_that_no_number_of_trials_fits_are_judged_by_the_prior():
    known = Knowledge.of(POLICY, 3)
    counts = np.array([[5_001, 2, 1]])
    trials = np.array([100])  # about 50 copies of each, so no count can be 1
    assert np.isneginf(count_log_likelihood(counts[0], trials)[0]).all()
    found = infer(counts, known, trials)
    assert found.trials[0] == 100
    assert found.low[0] == found.frequency[0] < found.high[0]


def test_an_exact_bound_has_no_sizes_to_invert():
    with pytest.raises(rp.ReconprivError, match="not a function of"):
        Knowledge.of(
            Policy(retention=0.5, tolerance=0.5, doubt=0.1, bound="exact", sampling="paper"), 5
        )


def test_the_result_of_the_whole_attack(census_tables):
    target = AttackedTable.of(census_tables("Education"), POLICY)
    result = attack_granularity(target, least=120)
    assert result.success is not None and result.baseline is not None
    assert result.control is not None
    assert result.success.share > result.baseline.share
    assert result.success.share > result.control.share
    assert result.success.share > result.figures["MLE within 10 %"].share
    assert {row["sampling"] for row in result.table} == {"paper", "octave", "public"}
    assert "do not release" in result.verdict


def test_without_sampling_there_is_nothing_to_read(census_tables):
    target = AttackedTable.of(
        census_tables("Education"), Policy(retention=0.5, tolerance=0.5, doubt=0.3, sampling="none")
    )
    with pytest.raises(rp.ReconprivError, match="nothing is scaled"):
        attack_granularity(target)

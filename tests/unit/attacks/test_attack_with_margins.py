"""Attacks with margins: the best unbiased estimate, its prediction, and the limits."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.special import erf, erfinv
from scipy.stats import hypergeom

import reconpriv as rp
from reconpriv.attacks import Effort, attack, attack_release
from reconpriv.attacks.attacked_table import (
    AttackedTable,
    Publication,
    attack_key,
    dense,
    largest_values,
)
from reconpriv.attacks.best_estimate import (
    WHOLE,
    BestEstimates,
    best_estimates,
    combined_share,
    limits_of,
    normal_share,
    over_limit,
    published_counts,
    trial_counts,
    truly_over_limit,
)
from reconpriv.attacks.differencing import ROUNDING, attack_differencing
from reconpriv.attacks.granularity import attempt
from reconpriv.attacks.margins import noisy_ratios
from reconpriv.attacks.micro import attack_micro
from reconpriv.attacks.repeat import attack_repeat
from reconpriv.attacks.side_channels import release_channels
from reconpriv.attacks.statistics import relative_error, score
from reconpriv.estimate.counts import Design
from reconpriv.estimate.linear import selection_sums
from reconpriv.estimate.measurements import prepare_margins
from reconpriv.estimate.set_counts import SetCounts
from reconpriv.policy.policy import Policy
from reconpriv.policy.sampling_rules import private_size
from reconpriv.protect.margins.noise import noisy_tables
from reconpriv.protect.margins.tables import index_rows, rows_of
from reconpriv.theory.counts import ObservedCount

POLICY = Policy(retention=0.5, tolerance=0.5, doubt=0.3, unattainable="one-trial", margins=1.0)
KEYS = 12


@pytest.fixture(scope="module")
def towns():
    """60 towns by 4 jobs: margins of jobs tell little about a town, those of towns a quarter."""
    draw = np.random.default_rng(7)
    size = 60 * 4 * 150
    town, job = draw.integers(60, size=size), draw.integers(4, size=size)
    chance = draw.dirichlet([0.8] * 6, size=60 * 4)
    illness = (draw.random(size)[:, None] > chance[town * 4 + job].cumsum(axis=1)[:, :-1]).sum(1)
    data = {"town": town, "job": job, "illness": [f"i{i}" for i in illness]}
    with rp.read(pa.table(data), sensitive="illness", public="all") as table:
        yield table


@pytest.fixture(scope="module", params=["adult", "towns"])
def target(request):
    return AttackedTable.of(request.getfixturevalue(request.param), POLICY)


@pytest.fixture(scope="module")
def adult_target(adult):
    return AttackedTable.of(adult, POLICY)


def attacked(target: AttackedTable, number: int, size: str) -> BestEstimates:
    groups = target.violating()
    top = largest_values(target.raw)[groups]
    return best_estimates(target, target.publication(number, size), groups, top)


@pytest.fixture(scope="module")
def found(target: AttackedTable) -> dict[str, list[BestEstimates]]:
    return {
        size: [attacked(target, i, size) for i in range(KEYS)]
        for size in ("none", "octave", "public")
    }


@pytest.mark.parametrize("size", ["none", "octave", "public"])
def test_the_share_within_epsilon_is_predicted(target, found, size):
    """By exact trials and a normal rest; the normal form alone is near it."""
    under = [relative_error(one.combined, one.truth) <= 0.5 for one in found[size]]
    predicted = [combined_share(one, 0.5) for one in found[size]]
    assert abs(score(np.concatenate(under).astype(float), np.concatenate(predicted))) < 3
    normal = np.mean([normal_share(one, 0.5) for one in found[size]])
    # The fewer the trials, the less normal: with `public`, most groups of Adult have six.
    assert normal == pytest.approx(np.mean(predicted), abs=0.03 if size == "public" else 0.02)


@pytest.mark.parametrize("factor", [0.7, 1.3])
def test_a_variance_off_by_30_percent_is_rejected(target, found, factor):
    """Of `octave` and `public` together: two hundred groups, twelve keys."""
    under, predicted = [], []
    for one in found["octave"] + found["public"]:
        under.append(relative_error(one.combined, one.truth) <= 0.5)
        root = np.sqrt(factor)
        # Errors that are larger by a factor are as often within ε as these within ε/factor.
        predicted.append(combined_share(one, 0.5 / root))
    assert abs(score(np.concatenate(under).astype(float), np.concatenate(predicted))) > 4


@pytest.mark.parametrize("size", ["none", "octave", "public"])
def test_the_variance_of_the_best_estimate_is_the_one_of_the_theory(found, size):
    """The mean of squared errors in units of V/(1 + V k); 30 % more or less would be noticed."""
    squares = np.concatenate(
        [(o.combined - o.truth) ** 2 * o.sizes**2 / o.combined_variance for o in found[size]]
    )
    assert squares.mean() == pytest.approx(1.0, abs=0.12)
    means = [np.mean((o.combined - o.truth) * o.sizes / np.sqrt(o.combined_variance)) for o in
             found[size]]  # fmt: skip
    assert abs(np.mean(means)) < 4 / np.sqrt(KEYS * found[size][0].groups.size) + 0.1


def test_margins_make_the_estimate_of_every_group_better(found):
    for each in found.values():
        for one in each:
            assert (one.combined_variance <= one.variance).all()
            assert (one.effective_trials >= one.trials).all()
            assert (one.without_margins.effective_trials == one.trials).all()
    gain = np.mean([np.mean(o.combined_variance / o.variance) for o in found["none"]])
    assert gain < 0.9


@pytest.mark.parametrize("size", ["octave", "public"])
def test_no_violating_group_has_more_effective_trials_than_its_limit(target, found, size):
    """As the publisher counts margins, and by the true variances."""
    groups = target.violating()
    for number, one in enumerate(found[size]):
        published = target.publication(number, size)
        assert not over_limit(target, published, groups).any()
        assert not over_limit(target, published, np.arange(target.batch.groups)).any()
        assert not truly_over_limit(target, published, one).any()


@pytest.mark.parametrize("size", ["octave", "public"])
def test_without_counting_margins_groups_exceed_it(adult_target, size):
    """Every row published, limits as without margins: about many groups margins tell all."""
    target, key = adult_target, attack_key(0)
    policy = replace(POLICY, sampling=size)
    plan = target.margins(policy, key)
    cube = target.publication_as(replace(policy, margins=None), key).cube
    tables = noisy_tables(plan.totals.tables, plan.variance, target.schema, key)
    published = Publication(policy, cube, tables, plan.variance, plan.counted)
    groups = target.violating()
    one = best_estimates(target, published, groups, largest_values(target.raw)[groups])
    limits = limits_of(target, published, groups)
    assert (one.effective_trials > limits).mean() > 0.9
    assert (one.worth > limits - 1).mean() > 0.3
    kept = replace(published, tables=plan.published)
    assert over_limit(target, kept, groups).mean() > 0.9


def test_it_is_what_the_analysts_estimate_with_the_true_variances_instead(adult_target):
    """queries.margins takes the variance from the whole table: near, and never better."""
    target = adult_target
    published = target.publication(0, "octave")
    groups = target.violating()
    top = largest_values(target.raw)[groups]
    design = Design(0.5, target.schema.domain_size, "octave")
    margins = prepare_margins(published.cube, published.tables, published.variance, design)
    place = np.full(target.batch.groups, -1)
    place[groups] = np.arange(groups.size)
    sums = selection_sums(margins, published.cube, lambda _: place, groups.size, None)
    theirs = SetCounts(sums, design).number[np.arange(groups.size), top]
    ours = best_estimates(target, published, groups, top)
    scale = np.sqrt(ours.variance)
    assert np.max(np.abs(theirs - ours.combined * ours.sizes) / scale) < 0.5
    assert np.corrcoef(theirs - ours.alone * ours.sizes,
                       (ours.combined - ours.alone) * ours.sizes)[0, 1] > 0.9  # fmt: skip


@pytest.mark.parametrize("size", ["octave", "public"])
def test_the_margins_of_other_values_add_next_to_nothing(adult_target, size):
    """All values at once, with their covariances: hardly more precise, and within every limit."""
    target, m = adult_target, adult_target.schema.domain_size
    published = target.publication(0, size)
    counts, trials = dense(target.raw), published.cube.trials
    records = counts.sum(axis=1)
    rows = rows_of(index_rows(published.tables, target.schema), target.batch.public, target.schema)
    stray = 0.5 / m

    def covariance(group: int) -> np.ndarray:
        """Of the counts of one group: a trial of a holder of x is y with chance p [x = y] + t."""
        f = counts[group] / records[group]
        twice = stray**2 + stray * 0.5 * (f[:, None] + f[None, :]) + 0.25 * np.diag(f)
        one_trial = np.diag(0.5 * f + stray) - twice
        return one_trial * records[group] ** 2 / trials[group] / 0.25

    k = sum(table.rows for table in published.tables)
    unknown = np.zeros((k, m, k, m))
    for group, own in enumerate(rows):
        for one, other in itertools.product(own[own >= 0], repeat=2):
            unknown[one, :, other, :] += covariance(group)
    unknown = unknown.reshape(k * m, k * m) + published.variance * np.eye(k * m)
    precision = np.linalg.inv(unknown).reshape(k, m, k, m)
    found = attacked(target, 0, size)
    limits = private_size(found.truth, published.policy, m)
    for i, (group, value) in enumerate(
        zip(found.groups, largest_values(target.raw)[found.groups], strict=True)
    ):
        own = rows[group][rows[group] >= 0]
        told = precision[np.ix_(own, range(m), own, range(m))].sum(axis=(0, 2))
        before = covariance(group)
        after = (before - before @ told @ before)[value, value]
        alone = before[value, value]
        assert after > 0.98 * alone / (1 + alone * found.information[i])
        assert trials[group] * alone / after < limits[i] or limits[i] < 1


def share_with_copies(found: BestEstimates) -> list[float]:
    """Pr[error of at most ε], by the cumulated chance of the extra copies."""
    shares = []
    for n, size, f in zip(found.trials.tolist(), found.sizes.tolist(), found.truth, strict=True):
        (copies, extra), k = divmod(size, n), np.arange(n + 1)
        whole = ObservedCount(np.array(float(size)), np.array(f), 0.5, found.domain_size, 0.5)
        high = np.floor(whole.mean + size * whole.shift + WHOLE) - k * copies
        low = np.ceil(whole.mean - size * whole.shift - WHOLE) - k * copies
        inside = hypergeom.cdf(high, n, k, extra) - hypergeom.cdf(low - 1, n, k, extra)
        shares.append(np.dot(trial_counts(n, n * f, 0.5, found.domain_size), inside))
    return shares


def test_in_trials_alone_the_prediction_is_the_exact_one(adult_target):
    """Without margins `combined_share` equals a sum over the trials with extra copies."""
    plain = replace(adult_target, policy=replace(POLICY, margins=None))
    found = attacked(plain, 0, "octave")
    assert (found.combined == found.alone).all()
    assert combined_share(found, 0.5) == pytest.approx(share_with_copies(found))
    observed, chance = published_counts(7, 23, 5, 0.5, 14)
    assert chance.sum() == pytest.approx(1.0)
    assert chance @ observed == pytest.approx(23 * (5 / 23 * 0.5 + 0.5 / 14))


def test_a_group_alone_is_published_as_in_the_whole_table(adult_target):
    exposed = adult_target.only(adult_target.violating())
    whole, part = adult_target.publish(3), exposed.publish(3)
    assert whole.trials[adult_target.violating()].tolist() == part.trials.tolist()
    plain = replace(adult_target, policy=replace(POLICY, margins=None)).publish(3)
    assert (whole.trials <= plain.trials).all()
    assert (whole.trials < plain.trials)[adult_target.violating()].mean() > 0.5


def test_micro_shows_records_alone_beside_everything(adult_target):
    result = attack_micro(adult_target, keys=4)
    rows = {row["sampling"]: row for row in result.table}
    assert list(rows) == ["none", "public", "octave", "paper"]
    for size in ("public", "octave"):
        row = rows[size]
        assert abs(row["z"]) < 3 and abs(row["z alone"]) < 3
        assert row["trials"] < row["effective trials"] <= row["limit"]
        assert row["over limit"] == row["truly over"] == 0
    assert rows["paper"]["truly over"] > 0
    assert rows["none"]["limit"] is None
    assert result.success.low > result.control.high
    assert result.figures["groups over their limit of effective trials"].successes == 0
    assert "none has more effective trials than allowed" in result.verdict


def test_differencing_through_margins_gives_the_best_estimate_again(adult_target):
    result = attack_differencing(adult_target)
    assert result.success.successes == 0
    through = result.figures["X - Y with margins in both, largest difference from it"]
    assert through < ROUNDING
    margins = [row for row in result.table if "X is a margin" in row["X ignores"]]
    assert len(margins) == 3
    assert sum(row["groups"] >= 20 for row in margins) == 2
    for row in margins:
        # Medians of a handful of groups, published once, may be either way round.
        if row["groups"] >= 20:
            assert row["median error best"] < row["median error global"]
    ages = next(row for row in margins if "age" in row["X ignores"])
    assert ages["groups"] < 20  # most rows by age are little more than two groups: left out


def test_margins_of_fresh_keys_average_and_those_of_one_key_are_the_same(adult_target):
    first, again, other = (adult_target.publication(i) for i in (0, 0, 1))
    for a, b in zip(first.tables, again.tables, strict=True):
        assert (a.counts == b.counts).all()
    assert (first.tables[1].counts != other.tables[1].counts).mean() > 0.9
    result = attack_repeat(adult_target, releases=16)
    assert result.figures["releases with one key differ"] is False
    slope = result.figures["slope of ln error over ln k"]
    assert slope.contains(-0.5) and not slope.contains(-0.35) and not slope.contains(-0.65)
    one, last = result.table[0], result.table[-1]
    assert one["root mean square error"] < one["records alone"]
    assert one["ε of the margins"] == pytest.approx(1.0, abs=1e-5)
    assert last["ε of the margins"] > 3
    assert result.success.low > result.control.high


def test_lowered_trials_tell_no_more_than_before(adult_target):
    """The granularity attack stays no better than the MLE, and f is where the release says."""
    exposed = adult_target.only(adult_target.violating(300))
    found = attempt(exposed, "octave")
    assert found.located.all()
    assert np.median(found.error) > 0.8 * np.median(found.mle_error)


def test_a_release_with_margins_is_attacked_with_them(adult, key, tmp_path):
    with_margins = adult.publish(POLICY, tmp_path / "with", key=key).path
    plain = replace(POLICY, sampling="none", margins=None)
    without = adult.publish(plain, tmp_path / "without", key=key).path
    noisy = adult.publish(replace(plain, margins=1.0), tmp_path / "noisy", key=key).path
    assert attack_release("micro", with_margins).table
    assert attack_release("granularity", with_margins, show=3).table
    # The same records; the estimates move by what the margins tell.
    both = [{str(r["group"]): r["F'"] for r in attack_release("micro", path).table}
            for path in (without, noisy)]  # fmt: skip
    assert both[0].keys() == both[1].keys()
    moved = [abs(both[0][group] - both[1][group]) for group in both[0]]
    assert 0 < max(moved) < 0.2


def test_the_file_of_margins_reveals_no_more_than_its_rows(adult, key, tmp_path):
    """And odd row groups are noticed, as in the records."""
    made = adult.publish(POLICY, tmp_path / "release", key=key).path
    assert attack("side-channels", adult, POLICY).success.successes == 0
    channels = {one.name: one.leaks for one in release_channels(made)}
    assert channels["bytes of margins.parquet"] is False
    rows = pq.read_table(made / "margins.parquet")
    pq.write_table(rows, made / "margins.parquet", row_group_size=97)
    channels = {one.name: one.leaks for one in release_channels(made)}
    assert channels["bytes of margins.parquet"] and channels["row groups"]


def test_margins_alone(adult):
    """Rows that are little more than one group would tell its f; they are left out."""
    octave = attack("margins", adult, POLICY, Effort(keys=3))
    public = attack("margins", adult, replace(POLICY, sampling="public"))
    assumed = attack("margins", adult, replace(POLICY, margins=None))
    assert abs(octave.figures["z"]) < 3
    every = octave.figures["groups that every row would tell"]
    assert every.low > 0.9
    assert octave.figures["groups that published rows tell"].high < 0.2
    assert public.figures["groups that published rows tell"].high < 0.1
    name = "groups about which every row would tell all that is allowed"
    assert octave.figures[name].low > 0.3
    rows = {row["table"]: row for row in octave.table}
    assert rows["age"]["left out"] > rows["age"]["rows"]
    assert rows["sex"]["left out"] == rows["race"]["left out"] == 0
    assert rows["sex"]["cells within tolerance"] > 0.9
    assert assumed.verdict.startswith("The policy has no margins; these are the ones of ε = 1.")
    assert [row["row"] for row in public.worst] == ["left out"] * 5


def test_the_cells_of_margins_are_within_epsilon_as_often_as_predicted(adult_target):
    """And less or more noise by 30 % would be noticed."""
    seen = [one for i in range(40) for one in noisy_ratios(adult_target, i)]
    within = np.concatenate([one.error <= 0.5 for one in seen]).astype(float)
    predicted = np.concatenate([one.predicted for one in seen])
    assert abs(score(within, predicted)) < 3
    for factor in (0.7, 1.3):
        wrong = erf(erfinv(np.minimum(predicted, 1 - 1e-12)) / np.sqrt(factor))
        assert abs(score(within, wrong)) > 4


def test_margins_of_which_every_row_is_left_out_are_attacked_without_a_warning():
    """Of a table with one public column every row is a group: nothing is published."""
    rng = np.random.default_rng(0)
    values = rng.choice(list("xyz"), 1_500, p=[0.7, 0.2, 0.1])
    data = pa.table({"a": np.repeat(np.arange(5), 300), "s": values})
    with rp.read(data, sensitive="s", public=["a"]) as table:
        found = attack("margins", table, replace(POLICY, margins=None))
    assert found.success.trials == 0 and found.figures["predicted"] is None
    assert "5 of 5 rows are left out" in found.verdict

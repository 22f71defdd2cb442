"""A sampling rule is one object: registered in one place, it is known everywhere."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pyarrow.parquet as pq
import pytest

import reconpriv as rp
from query_fixtures import numbered_key, people
from reconpriv.attacks import Effort, attack, attack_release
from reconpriv.errors import PolicyError
from reconpriv.policy.sampling_rules import (
    SAMPLING_RULES,
    SamplingRule,
    offered,
    private_size,
    recommended,
)
from reconpriv.reports.analyst import analyst_html
from reconpriv.reports.internal import find, internal_html
from reconpriv.tuning.report import Target
from reconpriv.tuning.sweep import sweep
from shell import offers

HARD = {"retention": 0.8, "tolerance": 0.8, "doubt": 0.3}
TEN = SamplingRule(
    name="ten",
    label="At most ten",
    explanation="At most ten trials, whatever the group.",
    tells="Nothing.",
    for_analysts="Large groups rest on ten trials.",
    method="sampling, perturbing, scaling with at most ten trials",
    limit=lambda groups, policy: np.full(groups.sizes.shape, 10.0),
    rounds_up=False,
    warning="Ten is not many.",
)
QUARTERS = replace(
    TEN,
    name="quarters",
    classes=lambda frequency, policy: np.ceil(4.0 * frequency) / 4.0,
    limit=SAMPLING_RULES["octave"].limit,
    rounds_up=True,
)
BY_SIZE = replace(
    QUARTERS,
    name="by-size",
    limit=lambda groups, policy: np.floor(
        np.minimum(
            private_size(groups.classes, policy, groups.domain_size), 1.0 + np.sqrt(groups.sizes)
        )
    ),
)


@pytest.fixture
def ten():
    with SAMPLING_RULES.including(TEN):
        yield rp.Policy(**HARD, sampling="ten")


@pytest.fixture(scope="module")
def table():
    with rp.read(people(), sensitive="job", public="all", missing="value") as opened:
        yield opened


@pytest.fixture
def release(ten, table, tmp_path):
    made = table.publish(ten, tmp_path / "release", key=numbered_key(1))
    assert made.warnings == (TEN.warning,)
    return made


def test_a_name_that_is_taken_or_unknown_is_refused():
    with pytest.raises(ValueError, match="already a sampling rule called 'octave'"):
        SAMPLING_RULES.register(replace(TEN, name="octave"))
    with pytest.raises(PolicyError, match=r"no sampling rule called 'ten'.*paper, octave, public"):
        rp.Policy(**HARD, sampling="ten")
    assert list(SAMPLING_RULES) == ["paper", "octave", "public", "none"]


def test_menus_have_the_recommended_ones_first():
    assert [one.name for one in offered()] == ["octave", "public", "paper", "none"]
    assert recommended() == ("octave", "public")


def test_a_release_made_with_it_says_so_and_answers(release, cli):
    block = json.loads((release.path / "datapackage.json").read_text())["reconpriv"]
    assert (block["sample_size"], block["method"]) == ("ten", TEN.method)
    groups = pq.read_table(release.path / "groups.parquet").to_pylist()
    assert max(row["records"] for row in groups) > 10
    assert all(row["trials"] == min(row["records"], 10) for row in groups)
    opened = rp.open(release.path)
    assert opened.info()["public_counts_exact"]
    assert TEN.for_analysts in cli("info", release.path).out
    estimate = opened.count(job="nurse")
    assert estimate.low < estimate.count < estimate.high
    assert estimate.trials == sum(row["trials"] for row in groups)
    assert not [remark for remark in estimate.remarks if "approximate" in remark]


def test_tune_judges_it_as_a_release_comes_out_and_tries_it_unasked(ten, table, release):
    tuner = table.tuner(queries=300)
    setting = tuner.setting(ten)
    groups = pq.read_table(release.path / "groups.parquet").to_pandas()
    assert setting.trials == groups.trials.sum()
    assert setting.sampled_groups == (groups.trials < groups.records).sum() > 0
    assert setting.eligible and not setting.approximate
    report = sweep(
        tuner, retentions=[0.5], tolerances=[0.5], doubts=[0.3], margins=[None, 1.0],
        current=rp.preset("paper"), target=Target(max_error=1e-6),
    )  # fmt: skip
    assert {one.sampling for one in report.settings} == {"octave", "public", "ten"}


@pytest.mark.parametrize("size", [TEN, QUARTERS, BY_SIZE], ids=lambda size: size.name)
def test_the_sums_of_tune_are_those_of_every_group_by_itself(table, size):
    """Whatever classes there are, and also where the limit depends on the size of the group."""
    tuner = table.tuner(queries=300)
    queries = tuner.queries
    with SAMPLING_RULES.including(size):
        policy = rp.Policy(**HARD, sampling=size.name)
        limits = size.limits(tuner.batch, policy, table.schema.domain_size)
        design = tuner._design(policy, policy)
        lines = design.lines
        members = queries.members(lines.frequency[lines.line], lines.line, policy)
        found, again = (queries.sums(policy, members, design.limits, lines.line) for _ in range(2))
        groups = np.flatnonzero(queries.sizes > limits)
        assert groups.size > 5
        trials = np.maximum(limits[groups], 1.0)
        expected = queries.sums_of(policy, groups, trials)
        other = queries.sums_of(policy, groups, np.maximum(trials // 2, 1))
    assert np.allclose(found, expected, rtol=1e-4, atol=1e-3)
    assert np.array_equal(found, again)
    assert not np.allclose(found, other, rtol=1e-2)


def test_both_reports_are_written_with_it(ten, table, release):
    internal = internal_html(find(table, ten, release=release))
    assert (
        "With sampling rule &#x27;ten&#x27;" in internal or "With sampling rule 'ten'" in internal
    )
    assert TEN.for_analysts in analyst_html(rp.open(release.path))


def test_it_is_attacked(ten, table, release):
    for name in ("micro", "granularity"):
        found = attack(name, table, ten, Effort())
        assert "ten" in {row["sampling"] for row in found.table}
        assert attack_release(name, release.path).table
    assert "nothing beyond the MLE" in found.verdict
    assert attack("side-channels", table, ten).success.successes == 0


def test_the_command_line_and_the_studio_offer_it(ten, cli):
    from reconpriv.studio.steps import choose_policy as step_policy

    for command in ("publish", "attack", "tune"):
        assert "ten" in cli(command, "--help").out.replace("\n", "").split("--sampling")[1]
    assert "octave|public|ten|" in cli("publish", "--help").out
    assert offers("reconpriv publish x y --sampling t") == ["ten"]
    page = str(step_policy.panel({}))
    assert ">At most ten</option>" in page and TEN.explanation in page


def test_nothing_offers_it_any_longer(cli):
    assert "octave|public|paper|none" in cli("publish", "--help").out
    assert offers("reconpriv publish x y --sampling t") == []

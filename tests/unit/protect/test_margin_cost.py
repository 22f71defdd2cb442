"""What an audit says margins cost, against what a publication does."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import reconpriv as rp
from reconpriv.auditing.audit_groups import audit_part, join_parts
from reconpriv.cells.cube import collect
from reconpriv.policy.sampling_rules import sample_limits
from reconpriv.protect.margins.planned import CostPart

POLICY = rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3, margins=1.0)


def test_a_policy_without_margins_is_audited_as_before(adult: rp.Table) -> None:
    report = adult.audit(replace(POLICY, margins=None), columns=False)
    assert not report.margins and "margins" not in report.as_dict()
    assert report.margins.sentence == "" and report.margins.aside == ""
    assert "argins" not in str(report) and "argins" not in report._repr_html_()


def test_the_figures_are_those_of_the_groups(adult: rp.Table) -> None:
    cost = adult.audit(POLICY, columns=False).margins
    plan = adult.margin_plan(POLICY)
    assert cost is not None and plan is not None
    groups = pa.concat_tables(adult.audit_groups(POLICY))
    batch = collect(adult.batches(), adult.schema).as_batch()
    limits = sample_limits(batch, POLICY, adult.schema.domain_size)
    alone = np.where(batch.sizes > limits, np.maximum(limits, 1), batch.sizes)
    own = groups["trials"].to_numpy()
    assert cost.groups == int((own < alone).sum()) > 0
    assert cost.trials == int(alone.sum())
    assert cost.trials_lost == int((alone - own).sum()) > 0
    told = groups["trials_from_margins"].to_numpy()
    assert cost.most_trials == told.max() > 1
    # With margins, no group has more than its limit, unless it has one trial in any case.
    both = groups["effective_trials"].to_numpy()
    sampled = own < batch.sizes
    assert (both[sampled] <= np.maximum(limits, 1 + told)[sampled]).all()
    assert sum(one.left_out for one in cost.tables) > 0
    assert cost.as_dict()["sentence"] == cost.sentence
    assert "left out" in cost.sentence and f"{cost.trials_lost:,} of" in cost.sentence


def test_a_publication_has_about_as_many_trials(adult: rp.Table, tmp_path: Path) -> None:
    """The audit knows the true frequencies, the publication noisy ones."""
    cost = adult.audit(POLICY, columns=False).margins
    made = adult.publish(POLICY, tmp_path / "r", key=rp.Key.test())
    assert cost is not None and made.written is not None
    left = cost.trials - cost.trials_lost
    assert made.written.trials == pytest.approx(left, rel=0.03)
    assert abs(made.written.trials - left) < 0.3 * cost.trials_lost


def test_parts_make_the_same_cost(adult: rp.Table) -> None:
    plan = adult.margin_plan(POLICY)
    assert plan is not None
    batch = collect(adult.batches(), adult.schema).as_batch()
    pieces = [batch.slice(a, b) for a, b in ((0, 100), (100, 101), (101, batch.groups))]
    whole = plan.counted.cost(batch)
    assert sum((plan.counted.cost(piece) for piece in pieces), CostPart()) == whole
    parts = [audit_part([p], adult.schema, POLICY, 3, counted=plan.counted) for p in pieces]
    joined = join_parts(parts, adult.schema, POLICY, worst=3, plan=plan)
    assert joined.margins == adult.audit(POLICY, worst=3, columns=False).margins


@pytest.mark.parametrize("sampling", ["none", "paper"])
def test_a_sampling_that_does_not_count_margins_says_so(adult: rp.Table, sampling: str) -> None:
    policy = replace(POLICY, sampling=sampling)
    cost = adult.audit(policy, columns=False).margins
    assert cost is not None and not cost.counted and cost.trials_lost == 0
    assert "does not count" in cost.sentence
    assert "effective_trials" not in next(adult.audit_groups(policy)).column_names


def test_more_noise_costs_fewer_trials(adult: rp.Table) -> None:
    lost = []
    for epsilon in (0.1, 0.3):
        cost = adult.audit(replace(POLICY, margins=epsilon), columns=False).margins
        assert cost is not None
        lost.append(cost.trials_lost)
    assert lost[0] < lost[1]


def test_the_audit_names_the_error_with_margins_and_that_of_perturbation_alone(
    adult: rp.Table,
) -> None:
    report = adult.audit(POLICY, columns=True).errors
    plain = adult.audit(replace(POLICY, margins=None), columns=True).errors
    assert report is not None and plain is not None
    assert report.alone == plain.alone == plain.published and report.plain == plain.plain
    tuner = adult.tuner()
    assert report.published == pytest.approx(tuner.setting(POLICY).error)
    unsampled = replace(POLICY, margins=None, sampling="none")
    assert report.plain == pytest.approx(tuner.setting(unsampled).error)
    said = " ".join(str(adult.audit(POLICY, columns=True)).split())
    assert f"{report.published:.1%} of an analyst's count" in said
    assert f"({report.plain:.1%} with perturbation alone" in said

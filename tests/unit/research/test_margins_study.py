"""What the study of margins computes for itself, against what a release answers."""

from dataclasses import replace

import numpy as np
import pytest
from support.margin_fixtures import margins_of

from reconpriv.answers.answerer import Answerer
from reconpriv.estimate.counts import Design, Settings
from reconpriv.estimate.measurements import prepare_margins
from reconpriv.protect.publish_cube import published_cube
from reconpriv.research.data import study_key
from reconpriv.research.margins import combined_estimates
from reconpriv.research.setting import DEFAULT
from reconpriv.research.sweeps import prepare


@pytest.mark.parametrize("size", ["none", "octave", "public"])
def test_the_estimates_of_the_pool_are_those_of_a_release(adult, size):
    prepared = prepare(adult, 300)
    raw, policy = prepared.raw, replace(DEFAULT.policy(size), margins=1.0)
    plan = margins_of(raw, policy, study_key(0))
    cube = published_cube(raw, policy, study_key(0), plan.counted)
    design = Design(policy.retention, raw.schema.domain_size, size)
    ready = prepare_margins(cube, plan.published, plan.variance, design)
    answerer = Answerer(cube, design, ready)
    selected = [answerer.select(None, query) for query in prepared.workload.queries]
    answers = np.array([one.count for one in answerer.count_many(selected, Settings())])
    mine = combined_estimates(prepared.plan, cube, ready)
    assert mine == pytest.approx(answers, abs=1e-6)
    alone = prepared.plan.estimates(cube, policy.retention)
    assert np.abs(mine - alone).max() > 1

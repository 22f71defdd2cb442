"""Settings are kept between sweeps, as a new tuner would judge them, with their whole policy."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pyarrow as pa

import reconpriv as rp
from reconpriv.theory.tails.bounds import BOUNDS

MINE = rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3)
POLICIES = (
    MINE,
    rp.Policy(retention=0.6, tolerance=0.5, doubt=0.3),
    rp.Policy(retention=0.5, tolerance=0.3, doubt=0.3),
    rp.Policy(retention=0.5, tolerance=0.5, doubt=0.2),
    rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3, sampling="public"),
    rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3, bound="hoeffding"),
    rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3, exposed_above=0.2),
    rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3, margins=1.0),
    rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3, protect={"age": 10}),
    rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3, margins=rp.Margins(1.0, tables=[["sex"]])),
)


def test_a_kept_setting_is_that_of_a_new_tuner(adult):
    """Every pair of a policy and a yardstick, after all the others."""
    kept = adult.tuner(queries=200)
    choices = [
        (policy, rho1, exposing)
        for policy, exposing in product(POLICIES, (*POLICIES[2:4], POLICIES[6]))
        for rho1 in (0.1, 0.2)
    ]
    for _ in range(2):
        again = [kept.setting(p, rho1=rho1, exposing=y) for p, rho1, y in choices]
    cube, workload = kept.cube, kept.workload
    for found, (policy, rho1, exposing) in zip(again, choices, strict=True):
        new = type(kept).on(cube, workload).setting(policy, rho1=rho1, exposing=exposing)
        assert repr(found) == repr(new)
    assert len({repr(found) for found in again}) > len(choices) / 2


def bold(count):
    """A bound of the publisher's own."""
    return BOUNDS["chernoff"].tails(count)


def test_a_setting_of_a_sweep_holds_its_whole_policy():
    policy = replace(MINE, unattainable="one-trial", harmless=("c",), sampling="none", bound=bold)
    table = pa.table({"age": np.repeat([20, 30, 40, 50], 60), "s": ["a", "b", "c", "c"] * 60})
    with rp.read(table, sensitive="s", public="all") as source:
        report = source.tune(current=policy, samplings="none", margins=[None])
    assert report.current.policy.tail_bound.tails is bold
    for one in (report.current, *report.settings):
        assert one.policy.unattainable == "one-trial"
        assert one.policy.harmless_values == 1
        assert one.policy.tail_bound.tails is bold
        assert "policy" not in one.as_dict() and one.as_dict()["retention"] == one.policy.retention

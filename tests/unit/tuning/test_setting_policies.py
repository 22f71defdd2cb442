"""A setting of a sweep holds the whole policy that was judged, ready to publish with."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa

import reconpriv as rp
from reconpriv.theory.tails.bounds import BOUNDS

POLICY = rp.Policy(0.5, 0.5, 0.3, unattainable="one-trial")
TABLE = pa.table({"age": np.repeat([20, 30, 40, 50], 60), "s": ["a", "b", "c", "c"] * 60})


def bold(count):
    """A bound of the publisher's own."""
    return BOUNDS["chernoff"].tails(count)


def test_a_setting_of_a_sweep_holds_its_whole_policy():
    policy = replace(POLICY, harmless=("c",), sample_size="none", bound=bold)
    with rp.read(TABLE, sensitive="s", public="all") as source:
        report = source.tune(current=policy, sample_sizes="none", margins=[None])
    assert report.current.policy.tail_bound.tails is bold
    for one in (report.current, *report.settings):
        assert one.policy.unattainable == "one-trial"
        assert one.policy.harmless_values == 1
        assert one.policy.tail_bound.tails is bold
        assert "policy" not in one.as_dict() and one.as_dict()["retention"] == one.policy.retention

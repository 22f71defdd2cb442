"""A release is read back with the whole policy that it was made with."""

from __future__ import annotations

import datetime
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import reconpriv as rp
from reconpriv.release.manifest import Manifest
from reconpriv.theory.bounds import BOUNDS, Tails
from repository import DATA

POLICY = rp.Policy(0.5, 0.5, 0.3, unattainable="one-trial")
DAY = datetime.date(2020, 1, 1)


def bold(count: Any) -> Tails:
    """A bound of the publisher's own."""
    return BOUNDS["chernoff"].tails(count)


def table(values: list[Any]) -> pa.Table:
    return pa.table(
        {
            "age": np.repeat([20, 30, 40, 50], 60),
            "town": ["x", "y"] * 120,
            "s": (values * 240)[:240],
        }
    )


VALUES = {
    "text": ["a", "b", "c", "c"],
    "integers": [1, 2, 3, 3],
    "dates": [DAY, DAY.replace(year=2021), DAY.replace(year=2022)],
    "missing": ["a", None, "c", "c"],
}


@pytest.mark.parametrize(
    ("values", "policy"),
    [
        ("text", POLICY),
        ("text", replace(POLICY, harmless=["c"], bound="exact", sample_size="octave")),
        ("text", replace(POLICY, harmless=["c"], sample_size="paper", exposed_above=0.1)),
        ("text", replace(POLICY, news_only=True, sample_size="public")),
        ("text", replace(POLICY, margins=rp.Margins(1.0, tables=["town", ("age", "town")]))),
        ("text", replace(POLICY, harmless=["a"], protect={"age": 20, "town": "*"})),
        ("text", replace(POLICY, bound=bold, sample_size="none", harmless=["b"])),
        ("integers", replace(POLICY, harmless=["3"], bound="exact")),
        ("dates", replace(POLICY, harmless=["2021-01-01"], bound="exact")),
        ("dates", replace(POLICY, harmless=[DAY], bound="exact")),
        ("missing", replace(POLICY, harmless=["NULL"], bound="exact")),
    ],
)
def test_a_policy_is_read_back_as_the_policy_of_the_release(
    values: str, policy: rp.Policy, key: rp.Key, tmp_path: Path
) -> None:
    raw = table(VALUES[values])
    with rp.read(raw, sensitive="s", public="all", missing="value") as source:
        made = source.publish(policy, tmp_path / "r", key=key)
        settled, schema = source.settled(policy), source.schema
    read = Manifest.read(tmp_path / "r")
    found = read.policy
    if policy.tail_bound.name not in BOUNDS:
        assert found.tail_bound.name == "bold"
        with pytest.raises(rp.ReconprivError, match="a bound of its own, 'bold'"):
            found.tail_bound.tails(None)
    else:
        assert made.description == read
        assert found.tail_bound is policy.tail_bound
    for name in ("retention", "epsilon", "delta", "sample_size", "unattainable", "exposed_above"):
        assert getattr(found, name) == getattr(policy, name)
    assert found.news_only == policy.news_only
    assert found.harmless == policy.harmless_in(schema)
    assert found.harmless_values == settled.harmless_values == len(policy.harmless)
    if policy.needs_facts:
        assert found.facts.harmless == settled.facts.harmless
        assert found.facts.overall is None  # a release has no frequency of its table
    assert (found.wanted_margins is None) == (policy.wanted_margins is None)
    if policy.wanted_margins is not None:
        assert found.wanted_margins == policy.wanted_margins
    assert (found.wanted_protection is None) == (policy.wanted_protection is None)
    if policy.wanted_protection is not None:
        assert found.wanted_protection.names == ("age", "town")
        assert found.wanted_protection.as_dict() == {"age": [20, 40, 60], "town": "*"}


def test_a_release_made_before_today_s_limits_on_p_and_epsilon_still_opens() -> None:
    manifest = json.loads((DATA / "before" / "octave-parquet" / "datapackage.json").read_text())
    manifest["reconpriv"] |= {"epsilon": 3.0, "retention": 1e-12}
    found = Manifest.from_dict(manifest).policy
    assert (found.retention, found.epsilon) == (1e-12, 3.0)


@pytest.mark.parametrize(
    "damage",
    [
        {"retention": 1.0},
        {"epsilon": 0},
        {"delta": 1.5},
        {"sample_size": "huge"},
        {"unattainable": "ignore"},
        {"exposed_above": 1.0},
        {"harmless": ["nobody"]},
    ],
)
def test_an_impossible_policy_is_damage(damage: dict[str, Any]) -> None:
    manifest = json.loads((DATA / "before" / "octave-parquet" / "datapackage.json").read_text())
    manifest["reconpriv"] |= damage
    with pytest.raises(ValueError):
        Manifest.from_dict(manifest)

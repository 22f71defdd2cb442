"""A release is read back with the whole policy that it was made with."""

import datetime
import json
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import reconpriv as rp
from reconpriv.policy.promise import promise
from reconpriv.release.manifest import Manifest
from reconpriv.theory.tails.bounds import BOUNDS
from repository import DATA

POLICY = rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3, unattainable="one-trial")
DAY = datetime.date(2020, 1, 1)


def bold(count):
    """A bound of the publisher's own."""
    return BOUNDS["chernoff"].tails(count)


def table(values):
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
        ("text", replace(POLICY, harmless=["c"], bound="exact", sampling="octave")),
        ("text", replace(POLICY, harmless=["c"], sampling="paper", exposed_above=0.1)),
        ("text", replace(POLICY, sampling="public")),
        ("text", replace(POLICY, margins=rp.Margins(1.0, tables=["town", ("age", "town")]))),
        ("text", replace(POLICY, harmless=["a"], protect={"age": 20, "town": "*"})),
        ("text", replace(POLICY, bound=bold, sampling="none", harmless=["b"])),
        ("integers", replace(POLICY, harmless=["3"], bound="exact")),
        ("dates", replace(POLICY, harmless=["2021-01-01"], bound="exact")),
        ("dates", replace(POLICY, harmless=[DAY], bound="exact")),
        ("missing", replace(POLICY, harmless=["NULL"], bound="exact")),
    ],
)
def test_a_policy_is_read_back_as_the_policy_of_the_release(values, policy, key, tmp_path):
    raw = table(VALUES[values])
    with rp.read(raw, sensitive="s", public="all", missing="value") as source:
        made = source.publish(policy, tmp_path / "r", key=key)
        settled, schema = source.fitted(policy), source.schema
    read = Manifest.read(tmp_path / "r")
    found = read.policy
    if policy.tail_bound.name not in BOUNDS:
        assert found.tail_bound.name == "bold"
        with pytest.raises(rp.ReconprivError, match="a bound of its own, 'bold'"):
            found.tail_bound.tails(None)
    else:
        assert made.description == read
        assert found.tail_bound is policy.tail_bound
    for name in ("retention", "tolerance", "doubt", "sampling", "unattainable", "exposed_above"):
        assert getattr(found, name) == getattr(policy, name)
    assert found.harmless == policy.harmless_in(schema)
    assert found.harmless_values == settled.harmless_values == len(policy.harmless)
    assert found.harmless_flags == settled.harmless_flags
    assert bool(found.margins) == bool(policy.margins)
    if policy.margins:
        assert found.wanted_margins == policy.wanted_margins
    assert bool(found.protect) == bool(policy.protect)
    if policy.protect:
        assert found.wanted_protection.names == ("age", "town")
        assert found.wanted_protection.as_dict() == {"age": [20, 40, 60], "town": "*"}


def test_a_release_that_protects_news_only_still_says_so():
    manifest = json.loads((DATA / "before" / "octave-parquet" / "datapackage.json").read_text())
    manifest["reconpriv"] |= {"news_only": True, "format_version": 4}
    found = Manifest.from_dict(manifest)
    assert found.news_only and found.format_version == 4
    assert found.block()["news_only"] is True
    words = "whose share is more than 50 % above or below its share of the whole table"
    assert words in promise(found.policy_as_dict())


def test_a_release_made_before_today_s_limits_on_p_and_epsilon_still_opens():
    manifest = json.loads((DATA / "before" / "octave-parquet" / "datapackage.json").read_text())
    manifest["reconpriv"] |= {"epsilon": 3.0, "retention": 1e-12}
    found = Manifest.from_dict(manifest).policy
    assert (found.retention, found.tolerance) == (1e-12, 3.0)


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
def test_an_impossible_policy_is_damage(damage):
    manifest = json.loads((DATA / "before" / "octave-parquet" / "datapackage.json").read_text())
    manifest["reconpriv"] |= damage
    with pytest.raises(ValueError):
        Manifest.from_dict(manifest)

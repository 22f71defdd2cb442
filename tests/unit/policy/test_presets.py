"""Presets: policies with a name."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import reconpriv as rp
from query_fixtures import people
from reconpriv.policy.policy import Policy
from reconpriv.policy.presets import DEFAULT, fitted
from reconpriv.policy.promise import not_promised, promise


@pytest.mark.parametrize("name", [*rp.PRESETS])
def test_every_preset_can_be_published(name, tmp_path, key):
    assert rp.PRESETS[name].sentence.endswith(".")
    with rp.read(people(), sensitive="job", public="all", missing="value") as table:
        release = table.publish(rp.preset(name), tmp_path / "r", key=key)
    assert release.promise == promise(rp.preset(name).as_dict())
    assert release.not_promised == not_promised(rp.preset(name).as_dict())


def test_the_default_is_the_recommended_policy_and_help_says_so(cli):
    assert DEFAULT is rp.PRESETS["recommended"]
    policy = DEFAULT.policy
    assert (policy.tail_bound.name, policy.doubt, policy.exposed_above) == ("exact", 0.05, 0.25)
    assert (policy.sampling, policy.margins) == ("octave", rp.Margins(1.0))
    said = " ".join(cli("audit", "--help").out.replace("│", " ").split())
    for part in (DEFAULT.name, "0.5", "0.05", "exact", "octave", "0.25", "1"):
        assert f"[default: {part}]" in said, part
    assert rp.preset("paper") == Policy(retention=0.5, tolerance=0.5, doubt=0.3)


@pytest.mark.parametrize(("former", "now"), [("signed", "recommended"), ("accurate", "paper")])
def test_a_former_preset_is_refused_with_what_replaces_it(former, now):
    with pytest.raises(rp.ReconprivError, match=f"no preset called '{former}'. Use '{now}'"):
        rp.preset(former)


def two_values(n=400):
    rows = {"g": [i % 4 for i in range(n)], "h": [i % 3 for i in range(n)]}
    return pa.table({**rows, "s": ["yes" if i % 5 else "no" for i in range(n)]})


def test_for_two_values_p_is_the_largest_that_the_promise_allows():
    with rp.read(two_values(), sensitive="s", public="all") as table:
        found = fitted(DEFAULT.policy, table.schema, retention=True, margins=True)
    assert "with two sensitive values, p = 0.5 would leave no number of trials" in found.notes[0]
    assert _fewest(found.policy) >= 1
    assert _fewest(replace(found.policy, retention=found.policy.retention + 0.01)) == 0


@pytest.mark.parametrize("values", [3, 4, 5, 8, 14, 50])
def test_with_more_values_p_is_one_half(values):
    assert _fewest(DEFAULT.policy, values) >= 1


def _fewest(policy, values=2):
    """The fewest trials that any class and size allows."""
    sizes = np.array([1, 2, 3, 5, 8, 13, 40, 200, 5_000])
    limits = [policy.sampling_rule.limits_at(sizes, np.full(sizes.size, f), policy, values)
              for f in (0.4, 0.5, 0.9, 1.0)]  # fmt: skip
    return np.min(limits)


@pytest.mark.parametrize(
    ("public", "changed", "reason"),
    [
        (["g"], {}, "with one public column, each row of them would be a single group"),
        (["g", "h"], {"sampling": "none", "margins": None}, "sampling rule 'none' does not count"),
        (["g", "h"], {"protect": {"g": "*"}, "margins": None}, "with one public column"),
    ],
)
def test_where_margins_cannot_help_a_note_says_so(public, changed, reason):
    with rp.read(two_values(), sensitive="s", public=public) as table:
        policy = replace(DEFAULT.policy, **changed)
        found = fitted(policy, table.schema, retention=False, margins=True)
    assert found.policy.margins is None
    assert reason in found.notes[0]
    assert found.notes[0].startswith("No margins are published: ")


def test_options_change_a_preset(cli):
    table = ["example:adult", "-s", "occupation", "--public", "sex", "--missing", "value"]
    found = cli("audit", *table, "-d", "0.04", "--json", "--no-columns").out
    for part in ('"doubt": 0.04', '"bound": "exact"', '"exposed_above": 0.25'):
        assert part in found
    plain = cli("audit", *table, "--exposed-above", "0", "--json").out
    assert "exposed_above" not in plain
    wrong = cli("audit", *table, "--preset", "nice")
    assert (wrong.code, "no preset called 'nice'" in wrong.err) == (2, True)

"""Presets: policies with a name, and the promise that each prints."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import reconpriv as rp
from query_fixtures import people
from reconpriv.policy import Policy
from reconpriv.presets import DEFAULT, fitted
from reconpriv.promise import NOTHING, REFUSED, against, exceptions, guarantee, promise
from reconpriv.theory.bounds import BOUNDS


@pytest.mark.parametrize("name", [*rp.PRESETS])
def test_every_preset_can_be_published(name, tmp_path, key):
    assert rp.PRESETS[name].sentence.endswith(".")
    with rp.read(people(), sensitive="job", public="all", missing="value") as table:
        release = table.publish(rp.preset(name), tmp_path / "r", key=key)
    assert release.promise.startswith("In every group, ")
    assert release.promise == promise(rp.preset(name).as_dict())


def test_the_default_is_the_recommended_policy_and_help_says_so(cli):
    assert DEFAULT is rp.PRESETS["recommended"]
    policy = DEFAULT.policy
    assert (policy.tail_bound.name, policy.delta, policy.exposed_above) == ("exact", 0.05, 0.25)
    assert (policy.sample_size, policy.margins) == ("octave", rp.Margins(1.0))
    said = " ".join(cli("audit", "--help").out.replace("│", " ").split())
    for part in (DEFAULT.name, "0.5", "0.05", "exact", "octave", "0.25", "1"):
        assert f"[default: {part}]" in said, part
    assert rp.preset("paper") == Policy(0.5, 0.5, 0.3)


@pytest.mark.parametrize(("former", "now"), [("signed", "recommended"), ("accurate", "paper")])
def test_a_former_preset_is_refused_with_what_replaces_it(former, now):
    with pytest.raises(rp.ReconprivError, match=f"no preset called '{former}'. Use '{now}'"):
        rp.preset(former)


def two_values(n: int = 400) -> pa.Table:
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
    limits = [policy.sampling.limits_at(sizes, np.full(sizes.size, f), policy, values)
              for f in (0.4, 0.5, 0.9, 1.0)]  # fmt: skip
    return np.min(limits)


@pytest.mark.parametrize(
    ("public", "changed", "reason"),
    [
        (["g"], {}, "with one public column, each row of them would be a single group"),
        (["g", "h"], {"sample_size": "none", "margins": None}, "sample size 'none' does not count"),
        (["g", "h"], {"protect": {"g": "*"}, "margins": None}, "combined with protection groups"),
    ],
)
def test_where_margins_cannot_help_a_note_says_so(public, changed, reason):
    with rp.read(two_values(), sensitive="s", public=public) as table:
        policy = replace(DEFAULT.policy, **changed)
        found = fitted(policy, table.schema, retention=False, margins=True)
    assert found.policy.margins is None
    assert reason in found.notes[0]
    assert found.notes[0].startswith("No margins are published: ")


SIGNED = replace(DEFAULT.policy, margins=None)
ASSUMED = "Each row is assumed to be one person; that was not checked."


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({}, "Every value that occurs in a group is exposed."),
        ({"exposed_above": 0.25}, "if more than 25 % of the group hold it."),
        ({"harmless": ("a",)}, 'Every value that occurs in a group is exposed, except "a".'),
        ({"harmless": ("a", None)}, 'is exposed, except "a" and a missing value.'),
        (
            {"news_only": True},
            "if its share differs from that in the whole table by more than 50 % of the latter.",
        ),
        (
            {"exposed_above": 0.125, "news_only": True, "harmless": ("a",)},
            "if more than 12.5 % of the group hold it and its share differs from that in the whole"
            ' table by more than 50 % of the latter; "a" is never exposed.',
        ),
    ],
)
def test_a_promise_says_what_is_exposed(options, sentence):
    assert promise(Policy(0.5, 0.5, 0.3, **options).as_dict()).endswith(f"{sentence} {ASSUMED}")


def test_only_exact_tails_are_promised_as_probabilities():
    loose = promise(Policy(0.5, 0.5, 0.3).as_dict())
    exact = promise(Policy(0.5, 0.5, 0.05, bound="exact").as_dict())
    assert "cannot show" in loose
    assert "at least" not in loose
    assert "more than 50 % too high with a probability of at least 5 %" in exact
    assert "cannot show" not in exact
    assert promise(Policy(0.5, 0.5, 0.3, sample_size="none").as_dict()) == NOTHING
    assert "and the margins" in promise(Policy(0.5, 0.5, 0.3, margins=1.0).as_dict())


@pytest.mark.parametrize("name", [name for name, one in BOUNDS.items() if not one.lattice])
def test_where_no_probability_is_promised_the_criterion_is(name):
    """A text below "what is promised" must not say that it is no promise."""
    said = guarantee({**Policy(0.5, 0.5, 0.3).as_dict(), "bound": name})
    assert "What is promised is this criterion, not a probability" in said
    assert "makes them a promise" not in said


def test_whom_a_promise_is_made_against_fits_the_promise():
    plain = Policy(0.5, 0.5, 0.3)
    margins = replace(plain, margins=1.0)
    assert "They judge a group by its own records. " in against(plain.as_dict())
    assert "by its own records and the margins. " in against(margins.as_dict())
    # The paper's sample size does not count margins, and gives away what it samples by.
    paper = replace(margins, sample_size="paper").as_dict()
    assert "the margins" not in against(paper) + guarantee(paper)
    assert "gives its largest exposed frequency away: nothing is promised" in exceptions(paper)
    assert exceptions(plain.as_dict()) == ""
    none = replace(plain, sample_size="none").as_dict()
    assert against(none).startswith("Only the value of a single record is protected, against any")
    assert exceptions(none) == ""


def test_a_promise_leaves_out_what_it_cannot_keep(tmp_path):
    exact = Policy(0.5, 0.5, 0.05, bound="exact")
    loose = promise(replace(exact, unattainable="one-trial").as_dict())
    assert loose.startswith("In every group that some number of trials keeps private, ")
    assert "own trials" in promise(replace(exact, sample_size="paper").as_dict())
    rows = {"g": [1] * 200 + [2] * 200, "s": ["yes"] * 200 + ["yes", "no"] * 100}
    with rp.read(pa.table(rows), sensitive="s", public="all") as table:
        refused = table.audit(SIGNED, columns=False)
        assert refused.promise == REFUSED
        assert refused.unattainable_groups > 0
        assert "is refused: no number of trials is private in" in refused.sentence
        with pytest.raises(rp.ReconprivError, match="no number of trials"):
            table.publish(SIGNED, tmp_path / "r")
        with_margins = replace(exact, margins=1.0)
        assert table.audit(with_margins, columns=False).promise == REFUSED
        kept = replace(SIGNED, retention=0.4)
        assert table.audit(kept, columns=False).promise.startswith("In every group, ")
        nobody = table.audit(replace(kept, exposed_above=0.999, harmless=("yes",)), columns=False)
        assert nobody.exposed_groups == 0
        assert "protects nobody" in nobody.sentence


def test_options_change_a_preset(cli):
    table = ["example:adult", "-s", "occupation", "--public", "sex", "--missing", "value"]
    found = cli("audit", *table, "-d", "0.04", "--json", "--no-columns").out
    for part in ('"delta": 0.04', '"bound": "exact"', '"exposed_above": 0.25'):
        assert part in found
    plain = cli("audit", *table, "--exposed-above", "0", "--json").out
    assert "exposed_above" not in plain
    wrong = cli("audit", *table, "--preset", "nice")
    assert (wrong.code, "no preset called 'nice'" in wrong.err) == (2, True)

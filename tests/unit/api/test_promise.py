"""What a policy promises and what it does not: two sentences, of every kind, on every surface."""

import html
import re
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import reconpriv as rp
from query_fixtures import numbered_key, people
from reconpriv.policy.policy import Policy
from reconpriv.policy.promise import ONE_ROW, REFUSED, not_promised, promise, sentences
from reconpriv.reports.analyst import analyst_html
from reconpriv.reports.internal import find, internal_html
from reconpriv.studio.pieces.verdict import verdict_card
from reconpriv.studio.steps.publish import plan_view
from reconpriv.studio.work.live import Candidate
from reconpriv.studio.work.plan import DeclaredRoles
from reconpriv.studio.work.workspace import Workspace
from reconpriv.theory.tails.bounds import BOUNDS

EXACT = Policy(retention=0.5, tolerance=0.5, doubt=0.05, bound="exact")
LOOSE = Policy(retention=0.5, tolerance=0.5, doubt=0.3)
SIGNED = replace(EXACT, exposed_above=0.25)
RECOMMENDED = replace(SIGNED, margins=1.0)
KINDS = {
    "recommended": RECOMMENDED,
    "exact": EXACT,
    "exact, public": replace(EXACT, sampling="public"),
    "exact, paper": replace(EXACT, sampling="paper"),
    "exact, one trial": replace(EXACT, unattainable="one-trial"),
    "bound": LOOSE,
    "bound, margins": replace(LOOSE, margins=1.0),
    "paper, margins": replace(LOOSE, sampling="paper", margins=1.0),
    "harmless": replace(LOOSE, exposed_above=0.125, harmless=("nurse",)),
    "protected": replace(LOOSE, protect={"age": 10, "Sex": "*"}),
    "none": replace(LOOSE, sampling="none", margins=1.0),
}
PROBABLE = "with a probability of at least"
OWN = "made from the group's published records"
MARGINS = f"{OWN} alone or with the noisy tables beside them (margins),"


def test_the_recommended_policy_word_by_word():
    plain = RECOMMENDED.as_dict()
    assert promise(plain) == (
        "In every group of people who agree on all public columns, and for every value that more"
        " than 25 % of them hold, an adversary's best estimate of how many hold it that is right on"
        f" average, {MARGINS} is more than 50 % too high {PROBABLE} 5 %, more than 50 % too low"
        f" {PROBABLE} 5 %, and so within 50 % of the truth with a probability of at most 90 %."
    )
    assert not_promised(plain) == (
        "Who is in the table is not hidden; somebody who is alone in their group, or in one too"
        " small to be sampled, is protected only by the chance of 50 % that the value published for"
        " them was drawn at random; whoever combines similar groups, or knows what people like them"
        " are like, may come closer (on eleven real tables, within 50 % of the truth in 72 to 100 %"
        " of the groups instead of 62 to 72 %); where more than about 67 % of a group hold a value,"
        " too high means above 100 %, which anybody can see; and each row is assumed to be one"
        " person, which was not checked."
    )


@pytest.mark.parametrize("kind", KINDS)
def test_anybody_can_read_them(kind):
    """Two sentences, without symbols or words that only the documentation explains."""
    for _, said in sentences(KINDS[kind].as_dict()):
        assert re.findall(r"\.(?!\d)", said) == ["."] and said.endswith(".")
        assert not re.search(r"[α-ωΑ-Ω]|\b(trials?|exposed|unbiased|tails?)\b", said), said
    assert not_promised(KINDS[kind].as_dict()).startswith("Who is in the table is not hidden; ")


@pytest.mark.parametrize("name", BOUNDS)
def test_a_probability_is_promised_by_exact_tails_alone(name):
    plain = LOOSE.as_dict() | {"bound": name}
    said, left_open = promise(plain), not_promised(plain)
    exact = BOUNDS[name].exact
    assert (f"{PROBABLE} 30 %" in said) == exact
    assert ("with a probability of at most 40 %" in said) == exact
    assert ("above 100 %, which anybody can see" in left_open) == exact
    assert (f"({name}) cannot show" in said) == (not exact)
    assert said.endswith("the true probability, often far smaller, is not promised.") != exact


def test_an_own_bound_is_none_of_the_registered_ones():
    assert "(my_bound) cannot show" in promise(LOOSE.as_dict() | {"bound": "my_bound"})


def test_margins_are_named_where_they_are_counted():
    for kind, policy in KINDS.items():
        plain = policy.as_dict()
        counted = kind in ("recommended", "bound, margins")
        assert (MARGINS in promise(plain)) == counted, kind
        not_counted = kind == "paper, margins"
        assert ("the noisy tables (margins) may come closer" in not_promised(plain)) == not_counted


def test_the_papers_sampling_is_about_what_it_draws_and_gives_it_away():
    plain = KINDS["exact, paper"].as_dict()
    assert "made from the records drawn from the group, each counted once, is" in promise(plain)
    assert "gives away how many hold its most frequent protected value" in not_promised(plain)
    assert "gives away" not in not_promised(EXACT.as_dict())


def test_groups_that_cannot_be_protected_are_left_out():
    plain = KINDS["exact, one trial"].as_dict()
    assert promise(plain).startswith("Wherever this can be achieved, in every group of people who ")
    assert "keep one record and are promised nothing" in not_promised(plain)
    assert "promised nothing" not in not_promised(EXACT.as_dict())


def test_without_sampling_nothing_is_promised_about_groups():
    plain = replace(KINDS["none"], retention=0.3).as_dict()
    assert promise(plain).startswith("Nothing is promised about groups: ")
    assert promise(plain).endswith("each was drawn at random with a probability of 70 %.")
    assert "alone in their group" not in not_promised(plain)


def test_protection_groups_are_who_agrees_after_coarsening():
    plain = KINDS["protected"].as_dict()
    assert "who agree on all public columns after coarsening age and Sex, and" in promise(plain)
    assert "whoever combines such groups, or knows what people like" in not_promised(plain)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "for every value that occurs among them, so few"),
        ({"exposed_above": 0.25}, "for every value that more than 25 % of them hold, so few"),
        ({"harmless": ("a",)}, 'that occurs among them, except "a", so few'),
        ({"harmless": ("none", None, 0)}, ', except "none", a missing value and 0, so few'),
        (
            {"news_only": True},
            "that occurs among them and whose share is more than 50 % above or below its share of"
            " the whole table, so few",
        ),
        (
            {"exposed_above": 0.125, "news_only": True, "harmless": ("a",)},
            "that more than 12.5 % of them hold and whose share is more than 50 % above or below"
            ' its share of the whole table, except "a", so few',
        ),
    ],
)
def test_a_promise_says_which_values_it_is_about(options, words):
    assert words in promise(LOOSE.as_dict() | options)


def test_rows_are_people_where_that_was_checked():
    plain = LOOSE.as_dict()
    assert "one person, which was not checked" in not_promised(plain)
    assert "In every group of people who agree" in promise(plain)
    checked = plain | {ONE_ROW: True}
    assert "one person" not in not_promised(checked)
    assert "In every group of people (one row each, as was checked) who agree" in promise(checked)


def test_figures_are_those_of_the_threat_model():
    page = Path(__file__).parents[3] / "docs" / "threat-model.md"
    text = " ".join(page.read_text(encoding="utf-8").split())
    for policy in (EXACT, LOOSE):
        found = re.findall(r"[\d.]+ to [\d.]+ %", not_promised(policy.as_dict()))
        assert len(found) == 2
        assert all(figures in text for figures in found), found


def test_a_policy_that_is_refused_promises_nothing(tmp_path):
    rows = {"g": [1] * 200 + [2] * 200, "s": ["yes"] * 200 + ["yes", "no"] * 100}
    with rp.read(pa.table(rows), sensitive="s", public="all") as table:
        refused = table.audit(SIGNED, columns=False)
        assert (refused.promise, refused.not_promised) == (REFUSED, "")
        assert "not promised" not in str(refused)
        assert refused.unattainable_groups > 0
        assert "is refused: no number of trials is private in" in refused.sentence
        with pytest.raises(rp.ReconprivError, match="no number of trials"):
            table.publish(SIGNED, tmp_path / "r")
        assert table.audit(replace(EXACT, margins=1.0), columns=False).promise == REFUSED
        kept = replace(SIGNED, retention=0.4)
        assert table.audit(kept, columns=False).promise.startswith("In every group of people ")
        nobody = table.audit(replace(kept, exposed_above=0.999, harmless=("yes",)), columns=False)
        assert nobody.exposed_groups == 0
        assert "protects nobody" in nobody.sentence


# Where they are shown.


@pytest.fixture(scope="module", params=["recommended", "bound", "none"])
def shown(request, tmp_path_factory):
    """The two sentences of a policy, and everything that should hold them, by name."""
    policy, folder = KINDS[request.param], tmp_path_factory.mktemp("promise")
    pq.write_table(people(), folder / "people.parquet")
    with rp.read(people(), sensitive="job", public="all", missing="value") as table:
        audit = table.audit(policy, columns=False)
        release = table.publish(policy, folder / "r", key=numbered_key(1))
        internal = internal_html(find(table, policy))
    opened, workspace = rp.open(folder / "r"), Workspace(folder)
    loaded = workspace.load(
        workspace.look(str(folder / "people.parquet")),
        DeclaredRoles("job", ("age", "Sex", "region"), missing="value"),
    )
    found = loaded.tuner.setting(policy)
    yield (
        sentences(policy.as_dict()),
        {
            "audit": str(audit),
            "audit in a notebook": audit._repr_html_(),
            "publish": str(release),
            "publish in a notebook": release._repr_html_(),
            "internal report": internal,
            "analysts' report": analyst_html(opened),
            "verdict of the studio": str(verdict_card(audit, policy, found)),
            "plan of the studio": str(plan_view(Candidate(loaded, policy), audit)),
        },
        folder / "r",
    )
    workspace.close()


def plain(text):
    """Text without tags, and with single spaces."""
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", text)).split())


def test_every_surface_says_both(shown, cli):
    said, texts, folder = shown
    texts["info"] = cli("info", folder).out
    for where, text in texts.items():
        for name, sentence in said:
            assert sentence in plain(text), (where, name)
            assert name.lower() in plain(text).lower(), (where, name)

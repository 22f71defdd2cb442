"""A verdict agrees with its figures: groups, people who stand out, what is promised."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import reconpriv as rp
from reconpriv.auditing.obstacles import Accepted, People, unique_obstacle
from reconpriv.auditing.single_records import SingleRecords
from reconpriv.messages.numbers import percent
from reconpriv.policy.presets import preset
from reconpriv.studio.pieces.searches import try_settings
from reconpriv.studio.pieces.targets import TuningRequest
from reconpriv.studio.pieces.verdict import (
    columns_table,
    details_cards,
    group_verdict,
    margins_sentence,
    record_kind,
    verdict_card,
)
from reconpriv.studio.steps.choose_policy import pooled_of
from reconpriv.studio.steps.publish import plan_view
from reconpriv.studio.work.live import Candidate
from reconpriv.studio.work.plan import DeclaredRoles
from reconpriv.tuning.report import Target
from studio_workspace import POLICY, audited, load, setting

TONES = {"good": "good", "warning": "warn", "error": "bad"}
LEFT_OUT = "4,799 of 5,000; 201 without a sensitive value are left out"


def plain(html):
    """Text as it is read: without line breaks of the markup."""
    return re.sub(r"\s*\n\s*", "", str(html)).replace("\xa0", " ")


def first_notice(card):
    html = str(card)
    begin = html.index('class="notice')
    return html[begin : html.index("</p>", begin)]


@pytest.mark.parametrize("unattainable", ["refuse", "one-trial"])
@pytest.mark.parametrize("p", [0.1, 0.5, 0.95])
@pytest.mark.parametrize("size", ["octave", "public", "paper", "none"])
def test_the_colours_agree_with_the_sentence(adult_loaded, adult_report, size, p, unattainable):
    """A green tick never stands above a red number; the number after carries the verdict."""
    strict = 0.9 if p > 0.9 else 0.3
    policy = rp.Policy(
        retention=p, tolerance=0.9, doubt=strict, sampling=size, unattainable=unattainable
    )
    found = setting(adult_loaded, policy)
    html = str(verdict_card(adult_report, policy, found))
    used = {tone for tone in TONES.values() if f'<div class="{tone}"><dt>' in html}
    assert used == {TONES[group_verdict(found).kind]}
    before = html[html.index("the raw table, if only perturbed") : html.index("what the release")]
    assert f"<span>{found.violating_groups:,}</span>" in before
    assert not any(tone in before for tone in TONES.values())


def test_all_kinds_of_verdict_are_among_them(adult_loaded):
    """Or the test above would not say much."""
    loose, strict = (
        rp.Policy(retention=0.1, tolerance=0.3, doubt=0.1),
        rp.Policy(retention=0.95, tolerance=0.9, doubt=0.9),
    )
    kept = replace(strict, unattainable="one-trial")
    found = [group_verdict(setting(adult_loaded, one)) for one in (loose, strict, kept)]
    assert [one.kind for one in found] == ["good", "error", "warning"]
    assert "cannot be met" in found[1].sentence
    assert "nothing is promised for" in found[2].sentence


def test_the_first_sentence_is_the_worst_of_the_three(adult_loaded, adult_report):
    """Groups that are safe do not come before people who can be found, nor those before an id."""
    assert adult_report.single_records.unique > 0
    safe = first_notice(verdict_card(adult_report, POLICY, setting(adult_loaded)))
    assert safe.startswith('class="notice warning"')
    assert "are unique on the public columns" in safe
    lost = replace(POLICY, sampling="none")
    found = setting(adult_loaded, lost)
    assert "Without sampling" in first_notice(verdict_card(adult_report, lost, found))


def test_an_identifier_comes_first_and_the_audit_alone_has_a_verdict():
    rows = range(3000)
    data = pa.table({"id": list(rows), "x": [str(i % 7) for i in rows]})
    with rp.read(data, sensitive="x", public="all") as table, pytest.warns(rp.ReconprivWarning):
        found = table.audit(POLICY, columns=False)
    assert found.private
    first = first_notice(verdict_card(found, POLICY, None, note="no workload"))
    assert "Not ready to publish" in first and "--" not in first
    assert "no workload" in str(verdict_card(found, POLICY, None, note="no workload"))


def test_a_moved_slider_takes_what_a_record_tells_along(adult_loaded, adult_report):
    """The counts of an older audit are used with the current policy's probability."""
    policy = rp.Policy(retention=0.8, tolerance=0.5, doubt=0.3)
    found = setting(adult_loaded, policy)
    assert f", at most {found.posterior:.1%}" in str(verdict_card(adult_report, policy, found))


def test_the_verdict_speaks_of_the_promise_and_of_people(adult_loaded):
    policy = replace(preset("recommended"), harmless=("Sales",))
    found, report = setting(adult_loaded, policy), adult_loaded.table.audit(policy, columns=False)
    assert 0 < found.reconstructed < found.worst_group < 1
    html = plain(verdict_card(report, policy, found))
    for words in (
        report.promise, report.not_promised, "estimated within ±50%", 'except "Sales"',
        "that more than 25 % of them hold", "with a probability of at least 5 %",
        percent(found.reconstructed), percent(found.worst_group), percent(found.posterior),
    ):  # fmt: skip
        assert words in html, words
    paper = plain(verdict_card(report, POLICY, setting(adult_loaded)))
    assert "for every value that occurs among them" in paper


def test_the_verdict_shows_what_neighbouring_groups_add(adult_loaded, adult_report):
    """The figure that tune has, beside that of the groups' own records."""
    found = setting(adult_loaded)
    share = pooled_of(Candidate(adult_loaded, POLICY))
    assert share > found.reconstructed
    tuned = adult_loaded.table.tune(retentions=[0.5], tolerances=[0.5], doubts=[0.3], margins=[0],
                                    current=POLICY, queries=50).current  # fmt: skip
    assert share == tuned.pooled
    words = "<dt>people, groups pooled</dt><dd><span>"
    html = str(verdict_card(adult_report, POLICY, replace(found, pooled=share)))
    for part in (f"{words}{percent(share)}<", f"<span>{percent(found.reconstructed)}<"):
        assert part in html
    # Before it is known, and where it would take too long.
    waiting = str(verdict_card(adult_report, POLICY, found, measuring=True))
    assert f"{words}…" in waiting
    assert f"{words}–" in str(verdict_card(adult_report, POLICY, found))


def test_a_policy_that_exposes_nothing_has_a_verdict(workspace):
    loaded = load(workspace, "example:adult", DeclaredRoles("income", ("race", "sex")))
    policy = replace(preset("recommended"), exposed_above=0.9, harmless=("<=50K",))
    words = str(verdict_card(audited(workspace, loaded, policy), policy, setting(loaded, policy)))
    assert "no group has a value that counts as exposed" in words
    assert re.search(r"\binf\b", words) is None
    sweep = try_settings(TuningRequest(Candidate(loaded, policy), Target(), weaker=False))
    assert sweep.chart is None


def test_a_table_without_a_workload_still_has_a_verdict(workspace, tmp_path):
    """Where no query selects enough records there is no picture, but the audit speaks."""
    rows = range(3000)
    data = pa.table({"a": [i % 1300 for i in rows], "x": [str(i % 7) for i in rows]})
    pq.write_table(data, tmp_path / "even.parquet")
    loaded = load(workspace, tmp_path / "even.parquet", DeclaredRoles("x", ("a",)))
    with pytest.raises(rp.ReconprivError) as caught:
        workspace.tuner(loaded)
    card = str(verdict_card(audited(workspace, loaded), POLICY, None, note=str(caught.value)))
    assert str(caught.value).split(".")[0] in card and "Promised: " in card


def test_margins_of_a_policy_with_harmless_values_are_judged(adult_loaded):
    """An audit knows more about such a policy than the controls do; it is still the same policy."""
    policy = replace(POLICY, harmless=("Sales",), margins=1.0)
    report = adult_loaded.table.audit(policy, columns=False)
    assert report.margins
    assert margins_sentence(report, policy) == report.margins.sentence
    assert "counting" in margins_sentence(report, replace(policy, margins=2.0))
    shown = plain(verdict_card(report, policy, setting(adult_loaded, policy)))
    assert "Margins: </strong>Margins cost" in shown
    assert "Margins: " not in plain(verdict_card(report, POLICY, setting(adult_loaded)))


def test_margins_that_would_give_groups_away_are_explained(workspace, tmp_path):
    rng = np.random.default_rng(1)
    rows = {"town": rng.integers(0, 4, 8_000), "ill": np.array(["y", "n"])[rng.choice(2, 8_000)]}
    pq.write_table(pa.table(rows), tmp_path / "towns.parquet")
    loaded = load(workspace, tmp_path / "towns.parquet", DeclaredRoles("ill", ("town",)))
    policy = replace(preset("recommended"), margins=2.0, retention=0.49)
    report = audited(workspace, loaded, policy)
    words = plain(verdict_card(report, policy, setting(loaded, policy)))
    assert "No margins are published: every row of them would give a group away" in words


def test_the_tables_of_columns_and_groups_are_those_of_the_audit(workspace, adult_loaded):
    found = workspace.audit_columns(adult_loaded, POLICY)
    html = str(columns_table(found))
    assert len(found.columns) == 3
    for column in found.columns:
        assert f">{column.name}</td>" in html and f"{column.without.groups:,}" in html
    report = adult_loaded.table.audit(POLICY, worst=2, columns=False)
    html, worst = str(details_cards(report)), report.worst[0]
    group = worst.public
    assert f"age={group['age']}, race={group['race']}, sex={group['sex']}" in html
    assert f"{worst.largest_frequency:.2f} ({worst.value})" in html
    assert html.count("<svg") == len(report.size_distribution)


@pytest.mark.parametrize("protect", [{"race": "*"}, {"race": "*", "age": "0,40"}], ids=str)
def test_protection_groups_are_judged_as_any_others(workspace, adult_loaded, protect):
    policy = replace(POLICY, protect=protect)
    report = audited(workspace, load(workspace, "example:adult", adult_loaded.roles), policy)
    card = plain(verdict_card(report, policy, None))
    assert "who agree on all public columns after coarsening" in card
    assert "protection group" in plain(details_cards(report))


def single(unique, below_k=0):
    return SingleRecords(
        k=5, records=1_000, unique=unique, below_k=max(unique, below_k), policy=POLICY,
        domain_size=3,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("unique", "below", "kind"), [(0, 0, "good"), (0, 3, "info"), (2, 2, "warning")]
)
def test_the_colour_follows_the_number_of_unique_records(unique, below, kind):
    assert record_kind(single(unique, below)) == kind
    assert record_kind(single(unique, below), refused=True) == "error"


@pytest.fixture
def gaps(workspace, tmp_path):
    """5,000 records, 201 of them without a sensitive value."""
    rows = range(5_000)
    values = [None if i < 201 else "uvw"[i % 3] for i in rows]
    data = pa.table({"a": [i % 7 for i in rows], "b": [i % 50 // 25 for i in rows], "x": values})
    pq.write_table(data, tmp_path / "t.parquet")
    roles = DeclaredRoles("x", ("a", "b"), missing="drop")
    return load(workspace, tmp_path / "t.parquet", roles)


def test_the_verdict_counts_who_stands_out_and_who_is_left_out(workspace, gaps):
    report, found = audited(workspace, gaps), setting(gaps)
    for known in (found, None):
        html = plain(verdict_card(report, POLICY, known))
        assert f"<strong>Records: </strong>{LEFT_OUT}." in html
        assert "of 4,799 records are unique on the public columns" in html
        assert "of 4,799 records are in groups of fewer than 5" in html
        assert '<div class="bad">' not in html
    alone = replace(report.single_records, unique=4_799, below_k=4_799)
    refused = unique_obstacle(4_799, 4_799, Accepted(), {"a": 12})
    lost = replace(report, single_records=alone, dropped=0, obstacles=(refused,))
    html = str(verdict_card(lost, POLICY, found))
    assert "without a sensitive value are left out" not in html
    assert '<div class="bad">' in html
    first = first_notice(verdict_card(lost, POLICY, found))
    assert first.startswith('class="notice error"')
    assert "Not ready to publish: 4,799 of 4,799 records (100%)" in first
    assert "it would be 0.3% without 'a'" in first


def test_the_plan_counts_them_too(workspace, gaps):
    report, one = audited(workspace, gaps), Candidate(gaps, POLICY)
    html = str(plan_view(one, replace(report, single_records=single(2, 30))))
    for words in (LEFT_OUT, "2 of 1,000 records (0.2%)", "30 of 1,000 records (3.0%)",
                  "p = 0.5, tolerance 0.5, doubt 0.3",
                  "assumed to be one person, which was not checked"):  # fmt: skip
        assert words in html
    checked = replace(report, people=People(people=4_799, most=1))
    assert "one row each, as was checked" in str(plan_view(one, checked))
    assert "counting…" in str(plan_view(one, None))
    policy = replace(POLICY, margins=1.0, harmless=("u",), exposed_above=0.1)
    html = str(plan_view(Candidate(gaps, policy), None))
    assert "ε = 1, δ = 1e-9, by each public column" in html
    assert 'except "u"' in html.replace("&quot;", '"')

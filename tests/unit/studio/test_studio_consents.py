"""What stands in the way of a publication is in red, and is published only if its box is ticked."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import reconpriv as rp
from reconpriv.auditing.giveaways import told_alone
from reconpriv.errors import RoleChangeError, SecondSampleError
from reconpriv.messages.remedies import Control
from reconpriv.studio.pieces.consents import (
    BOXES,
    arguments_of,
    consent_cards,
    consents_after,
    consents_to,
    refused_by,
    ticked_boxes,
)
from reconpriv.studio.pieces.verdict import verdict_card
from reconpriv.studio.steps.choose_policy import hint_card
from reconpriv.studio.steps.publish import plan_view
from reconpriv.studio.work.live import Candidate
from reconpriv.studio.work.plan import DeclaredRoles, PublicationPlan
from reconpriv.studio.work.workspace import Workspace, explain
from studio_workspace import POLICY, Form, audited, recipes_make, setting

pytestmark = pytest.mark.filterwarnings("ignore::reconpriv.ReconprivWarning")
PANEL = DeclaredRoles("job", ("town", "room"), person="who", rows_per_person="one")


def panel():
    """300 people with two rows each; ``room`` tells the job, ``serial`` the record."""
    rows = range(600)
    job = ["baker" if i % 10 < 7 else "clerk" if i % 10 < 9 else "pilot" for i in rows]
    return pa.table(
        {
            "who": [f"w{i // 2:04}" for i in rows],
            "serial": [i * 37 % 6007 for i in rows],
            "town": [i % 3 for i in rows],
            "room": [f"{one[0]}{i % 2}" for i, one in enumerate(job)],
            "job": job,
        }
    )


@pytest.fixture(scope="module")
def workspace(tmp_path_factory):
    folder = tmp_path_factory.mktemp("panel")
    pq.write_table(panel(), folder / "panel.parquet")
    made = Workspace(tmp_path_factory.mktemp("workspace"))
    made.look(str(folder / "panel.parquet"))
    yield made
    made.close()


def load(workspace, roles):
    return workspace.load(workspace.opened, roles)


def publish(workspace, loaded, form):
    """As the page does it."""
    ticked = ticked_boxes(form, consents_to(audited(workspace, loaded)))
    plan = PublicationPlan(loaded.opened.source, loaded.roles, POLICY, test_key=True)
    plan = replace(plan, accepted=arguments_of(ticked)[0])
    workspace.publish(loaded, plan, rp.Key.test(), generated=False)
    return plan


def test_each_obstacle_is_red_and_has_its_box(workspace):
    loaded = load(workspace, DeclaredRoles("job", ("serial", "town", "room"), person="who"))
    report, found = audited(workspace, loaded), setting(loaded)
    for html in (str(verdict_card(report, POLICY, one)) for one in (found, None)):
        for lead in ("Columns", "People", "Giveaways", "Unique records", "Single records"):
            before = html[: html.index(f"<strong>{lead}: </strong>")]
            assert before[before.rindex('class="notice') :].startswith('class="notice error"')
        assert "300 of 300 people have several rows" in html
        assert "Keep one row of each in the roles step" in html
        assert "by ticking the box in the publish step" in html
    html = str(consent_cards(consents_to(report), {}))
    assert html.count('class="notice error"') == 4
    for name, value in (
        ("keep_identifier", "serial"), ("keep_giveaway", "room"), ("max_unique", "1.0"),
    ):  # fmt: skip
        assert f'<input type="checkbox" name="{name}" value="{value}"/>' in html
    assert html.count("<input") == 3
    assert "Publish although up to 100% of the records are unique" in html
    assert "Publish the identifier-like column serial as it is" in html


def test_nothing_is_published_until_every_box_is_ticked(workspace):
    loaded = load(workspace, DeclaredRoles("job", ("serial", "town", "room")))
    before = workspace.published
    boxes = {"keep_identifier": ("serial",), "keep_giveaway": ("room",)}
    for name in boxes:
        rest = {one: ticked for one, ticked in boxes.items() if one != name}
        with pytest.raises(rp.ReconprivError, match="Nothing was published") as caught:
            publish(workspace, loaded, Form(**rest, **{name: None}))
        assert "in the roles step" in explain(caught.value)
    assert workspace.published is before
    plan = publish(workspace, loaded, Form(**boxes))
    assert plan.accepted == {"keep_identifier": ["serial"], "keep_giveaway": ["room"]}
    # What was ticked for other roles accepts nothing.
    loaded = load(workspace, DeclaredRoles("job", ("town",)))
    assert publish(workspace, loaded, Form(**boxes)).accepted == {}


def test_people_with_several_rows_have_no_box(workspace):
    loaded = load(workspace, replace(PANEL, public=("town",), rows_per_person="refuse"))
    (asked,) = consents_to(audited(workspace, loaded))
    assert asked.control is None
    assert "<input" not in str(consent_cards([asked], {}))
    with pytest.raises(rp.ReconprivError, match="several rows"):
        publish(workspace, loaded, Form())
    loaded = load(workspace, replace(PANEL, public=("town",)))
    publish(workspace, loaded, Form())
    assert workspace.published.release.as_dict()["records"] == 300
    html = str(plan_view(Candidate(loaded, POLICY), audited(workspace, loaded)))
    assert "who (not published; people with several rows: keep one row of each)" in html
    assert "one row each, as was checked" in html


def test_a_giveaway_is_found_again_only_if_another_value_is_harmless(workspace, monkeypatch):
    loaded, counted = load(workspace, PANEL), []

    def counting(*said):
        counted.append(1)
        return told_alone(*said)

    monkeypatch.setattr("reconpriv.auditing.giveaways.told_alone", counting)
    for policy in (POLICY, rp.Policy(retention=0.6, tolerance=0.5, doubt=0.3)):
        assert audited(workspace, loaded, policy).giveaways[0].columns == ("room",)
    assert len(counted) == 1
    audited(workspace, loaded, replace(POLICY, harmless=("baker",)))
    assert len(counted) == 2


def test_script_and_command_say_who_a_row_is_about_and_what_is_accepted(
    workspace, tmp_path, monkeypatch, files_of, cli
):
    plan = publish(workspace, load(workspace, PANEL), Form(keep_giveaway=("room",)))
    made = files_of(workspace.published.release.path)
    plan = replace(plan, accepted={**plan.accepted, "max_unique": 0.9})
    assert recipes_make(plan, tmp_path, monkeypatch, cli, files_of) == made


def test_the_report_is_about_the_rows_that_were_published(workspace):
    loaded = load(workspace, replace(PANEL, public=("town",)))
    plan = PublicationPlan(loaded.opened.source, loaded.roles, POLICY)
    key = rp.Key.from_hex(bytes(range(32)).hex())
    published = workspace.publish(loaded, plan, key, generated=False)
    internal = workspace.write_reports(published)["internal-report.html"]
    assert isinstance(internal, Path), internal
    assert "a key that everybody knows" not in internal.read_text()


def test_what_a_ledger_refuses_has_a_box_that_stays_ticked():
    refusals = {SecondSampleError: Control.SECOND_SAMPLE, RoleChangeError: Control.ROLE_CHANGE}
    for error, control in refusals.items():
        assert refused_by(error("No.")) == [control]
        (asked,) = consents_after([control])
        drawn, again = (str(consent_cards([asked], ticked)) for ticked in ({}, {control: ("yes",)}))
        assert f'id="{control}"' in drawn and BOXES[control].label in drawn
        assert "checked" in again and "checked" not in drawn
        ticked = ticked_boxes(Form(**{control: ("yes",)}), [asked])
        assert arguments_of(ticked) == ({}, {control: True})
    assert refused_by(rp.ReconprivError("No.")) == refused_by(None) == []
    assert arguments_of({"max_unique": ("0.6",)}) == ({"max_unique": 0.6}, {})


def test_hints_are_notes(workspace):
    loaded = load(workspace, DeclaredRoles("job", ("town",)))
    report = workspace.audit_columns(loaded, POLICY)
    (hint,) = report.hints
    assert "'baker'" in hint
    html = str(hint_card(report))
    assert 'class="notice info"' in html
    assert "Tick it under “Harmless values” in the policy step." in html

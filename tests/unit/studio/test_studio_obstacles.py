"""What stands in the way of a publication is in red, and is published only if its box is ticked."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import reconpriv as rp
from reconpriv.core.giveaways import told_alone
from reconpriv.studio.desk import Desk, Settled, explain
from reconpriv.studio.obstacles import accepted, asked_about, hint_card, obstacle_cards
from reconpriv.studio.plan import Plan, Roles, python_script, shell_command
from reconpriv.studio.planned import plan_view
from reconpriv.studio.verdict import plain_verdict, verdict_card

POLICY = rp.Policy(0.5, 0.5, 0.3)
pytestmark = pytest.mark.filterwarnings("ignore::reconpriv.ReconprivWarning")
PANEL = Roles("job", ("town", "desk"), person="who", rows_per_person="one")


def panel() -> pa.Table:
    """300 people with two rows each; ``desk`` tells the job, ``serial`` the record."""
    rows = range(600)
    job = ["baker" if i % 10 < 7 else "clerk" if i % 10 < 9 else "pilot" for i in rows]
    return pa.table(
        {
            "who": [f"w{i // 2:04}" for i in rows],
            "serial": [i * 37 % 6007 for i in rows],
            "town": [i % 3 for i in rows],
            "desk": [f"{one[0]}{i % 2}" for i, one in enumerate(job)],
            "job": job,
        }
    )


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    folder = tmp_path_factory.mktemp("panel")
    pq.write_table(panel(), folder / "panel.parquet")
    made = Desk(tmp_path_factory.mktemp("desk"))
    made.look(str(folder / "panel.parquet"))
    yield made
    made.close()


def settle(desk: Desk, roles: Roles) -> Settled:
    assert desk.opened is not None
    return desk.settle(desk.opened, roles)


class Form(SimpleNamespace):
    """What is ticked on a page."""

    def __contains__(self, name: str) -> bool:
        return hasattr(self, name)

    def __getitem__(self, name: str) -> Callable[[], Any]:
        return lambda: getattr(self, name)


def publish(desk: Desk, settled: Settled, form: Any) -> Plan:
    """As the page does it."""
    said = accepted(form, asked_about(desk.audit(settled, POLICY, worst=1)))
    plan = replace(Plan(settled.opened.source, settled.roles, POLICY, test_key=True), **said)
    desk.publish(settled, plan, rp.Key.test(), generated=False)
    return plan


def test_each_obstacle_is_red_and_has_its_box(desk: Desk) -> None:
    roles = Roles("job", ("serial", "town", "desk"), person="who")
    settled = settle(desk, roles)
    report = desk.audit(settled, POLICY, worst=1)
    found = desk.tuner(settled).setting(POLICY)
    for html in (str(verdict_card(report, POLICY, found)), str(plain_verdict(report, ""))):
        for lead in ("Columns", "People", "Giveaways", "Unique records", "Single records"):
            before = html[: html.index(f"<strong>{lead}: </strong>")]
            assert before[before.rindex('class="notice') :].startswith('class="notice error"')
        assert "300 of 300 people have several rows" in html
        assert "Keep one row of each in the roles step" in html
        assert "by ticking the box in the publish step" in html
    html = str(obstacle_cards(asked_about(report)))
    assert html.count('class="notice error"') == 4
    for name, value in (
        ("keep_identifier", "serial"), ("keep_giveaway", "desk"), ("max_unique", "1.0"),
    ):  # fmt: skip
        assert f'<input type="checkbox" name="{name}" value="{value}"/>' in html
    assert html.count("<input") == 3
    assert "<strong>100%</strong> of the records are unique" in html.replace("\n", "")


def test_nothing_is_published_until_every_box_is_ticked(desk: Desk) -> None:
    settled = settle(desk, Roles("job", ("serial", "town", "desk")))
    before = desk.published
    boxes = {"keep_identifier": ("serial",), "keep_giveaway": ("desk",)}
    for name in boxes:
        rest = {one: ticked for one, ticked in boxes.items() if one != name}
        with pytest.raises(rp.ReconprivError, match="Nothing was published") as caught:
            publish(desk, settled, Form(**rest, **{name: None}))
        assert "in the roles step" in explain(caught.value)
    assert desk.published is before
    plan = publish(desk, settled, Form(**boxes))
    assert plan.accepted == {"keep_identifier": ["serial"], "keep_giveaway": ["desk"]}
    # What was ticked for other roles accepts nothing.
    settled = settle(desk, Roles("job", ("town",)))
    assert publish(desk, settled, Form(**boxes)).accepted == {}


def test_people_with_several_rows_have_no_box(desk: Desk) -> None:
    settled = settle(desk, replace(PANEL, public=("town",), rows_per_person="refuse"))
    (asked,) = asked_about(desk.audit(settled, POLICY, worst=1))
    assert asked.control is None
    assert "<input" not in str(obstacle_cards([asked]))
    with pytest.raises(rp.ReconprivError, match="several rows"):
        publish(desk, settled, Form())
    settled = settle(desk, replace(PANEL, public=("town",)))
    publish(desk, settled, Form())
    assert desk.published is not None
    assert desk.published.release.as_dict()["records"] == 300
    report = desk.audit(settled, POLICY, worst=1)
    html = str(plan_view(settled, POLICY, report))
    assert "who (not published; people with several rows: keep one row of each)" in html
    assert "one row each, as was checked" in html


def test_a_giveaway_is_found_again_only_if_another_value_is_harmless(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    settled = settle(desk, PANEL)
    counted = []

    def counting(*said: Any) -> Any:
        counted.append(1)
        return told_alone(*said)

    monkeypatch.setattr("reconpriv.core.columns_seen.told_alone", counting)
    for policy in (POLICY, rp.Policy(0.6, 0.5, 0.3)):
        assert desk.audit(settled, policy, worst=1).giveaways[0].columns == ("desk",)
    assert len(counted) == 1
    desk.audit(settled, replace(POLICY, harmless=("baker",)), worst=1)
    assert len(counted) == 2


def test_script_and_command_say_who_a_row_is_about_and_what_is_accepted(
    desk: Desk,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    files_of: Callable[..., Any],
    cli: Callable[..., Any],
) -> None:
    plan = publish(desk, settle(desk, PANEL), Form(keep_giveaway=("desk",)))
    plan = replace(plan, max_unique=0.9)
    assert desk.published is not None
    made = files_of(desk.published.release.path)
    monkeypatch.chdir(tmp_path)
    exec(python_script(plan), {})
    assert files_of(tmp_path / "release") == made
    (tmp_path / "release").rename(tmp_path / "first")
    words = shlex.split(shell_command(plan).replace("\\\n", " "))[1:]
    for part in ("--person who", "--rows-per-person one", "--keep-giveaway desk",
                 "--max-unique 0.9"):  # fmt: skip
        assert part in " ".join(words)
    assert cli(*words).code == 0
    assert files_of(tmp_path / "release") == made


def test_the_report_is_about_the_rows_that_were_published(desk: Desk) -> None:
    settled = settle(desk, replace(PANEL, public=("town",)))
    plan = Plan(settled.opened.source, settled.roles, POLICY)
    key = rp.Key.from_hex(bytes(range(32)).hex())
    published = desk.publish(settled, plan, key, generated=False)
    internal = desk.write_reports(published).internal
    assert isinstance(internal, Path), internal
    assert "a key that everybody knows" not in internal.read_text()


def test_hints_are_notes(desk: Desk) -> None:
    settled = settle(desk, Roles("job", ("town",)))
    report = desk.audit_columns(settled, POLICY)
    (hint,) = report.hints
    assert "'baker'" in hint
    html = str(hint_card(report))
    assert 'class="notice info"' in html
    assert "Tick it under “Harmless values” in the policy step." in html

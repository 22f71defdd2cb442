"""The roles step without a page: what is proposed, what the form holds, what is chosen."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import reconpriv as rp
from reconpriv.studio.changes import role_changes, same_key_means
from reconpriv.studio.desk import Desk, Opened
from reconpriv.studio.plan import Plan, Roles
from reconpriv.studio.proposed import Proposed, proposal_of, told_by, told_notice
from reconpriv.studio.step_roles import ROLES, chosen_roles, roles_form

CSV = "id,age,job\n" + "\n".join(f"{i},{20 + i % 9},{'ab'[i % 2]}" for i in range(300))


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Opened]:
    (tmp_path / "t.csv").write_text(CSV)
    desk = Desk(tmp_path)
    yield desk.look(str(tmp_path / "t.csv"))
    desk.close()


def row(html: str, column: str) -> str:
    """The row of a column in the form."""
    (found,) = [one for one in html.split("<tr>") if f'"Role of {column}"' in one]
    return found


def chosen(html: str, column: str) -> str:
    roles = row(html, column).split("</select>")[0]
    (option,) = [one for one in roles.split("<option") if "selected" in one]
    return option.split('value="')[1].split('"')[0]


def test_a_role_and_its_reason_come_from_a_proposal(opened: Opened) -> None:
    proposal = {
        "age": Proposed("public", "A number with many values.", bins="5"),
        "id": Proposed("person", "It is different in every row."),
        "job": Proposed("public"),
    }
    html = str(roles_form(opened, {}, proposal))
    assert (chosen(html, "age"), chosen(html, "id"), chosen(html, "job")) == (
        "public", "person", "public",
    )  # fmt: skip
    assert "Proposed: Public. A number with many values." in row(html, "age")
    assert 'value="5"' in row(html, "age")
    assert "Proposed" not in row(html, "job")
    # What the user has said since comes first; the reason still says what was proposed.
    draft = {"roles": {"age": "drop"}, "bins": {"age": ""}}
    html = str(roles_form(opened, draft, proposal))
    assert chosen(html, "age") == "drop"
    assert 'value="5"' not in row(html, "age")
    assert "Proposed: Public." in row(html, "age")


def test_the_form_starts_from_what_the_library_proposes(opened: Opened) -> None:
    found = proposal_of(opened, {})
    assert found["id"] == Proposed(
        "drop", "An identifier: nearly unique (300 values in 300 records)."
    )
    # How many values there are is in the row already.
    assert found["age"] == found["job"] == Proposed("public")
    named = proposal_of(opened, {"sensitive": "job"})
    assert named == {**found, "job": Proposed("sensitive")}
    assert proposal_of(opened, {"sensitive": "height"}) == found


def test_many_numbers_are_binned_and_a_column_that_tells_is_left_out(tmp_path: Path) -> None:
    """The latter once its user has said which column is sensitive."""
    rows = [
        f"p{i % 100:03},{i * 37 % 241 / 2},{'uvw'[i % 3]},{'xyz'[i % 3]}{i % 2}" for i in range(300)
    ]
    (tmp_path / "t.csv").write_text("patient,pay,job,desk\n" + "\n".join(rows))
    desk = Desk(tmp_path)
    opened = desk.look(str(tmp_path / "t.csv"))
    html = str(roles_form(opened, {}, proposal_of(opened, {})))
    assert [chosen(html, name) for name in ("patient", "pay", "job", "desk")] == [
        "person", "public", "public", "public",
    ]  # fmt: skip
    assert "several rows (100 values in 300 records)" in row(html, "patient")
    assert 'value="20"' in row(html, "pay")
    assert 'class="field person-only"' in html
    proposals = desk.propose(opened, "job")
    assert desk.propose(opened, "job") is proposals
    assert list(told_by(opened, proposals)) == ["desk"]
    words = str(told_notice(opened, proposals))
    assert "Columns that tell 'job'" in words and "100% of the people" in words
    assert desk.first_told(opened, proposals) and not desk.first_told(opened, proposals)
    assert told_notice(opened, desk.propose(opened, "pay")) is None
    desk.close()


def form(rows: str = "refuse", **roles: str) -> dict[str, Any]:
    said = {"bins": {"id": "10", "age": ""}, "groups": {"job": ""}, "missing": "refuse"}
    return {"roles": roles, "rows_per_person": rows, **said}


def test_the_persons_number_is_kept_apart_and_never_public() -> None:
    roles = chosen_roles(form(id="person", age="public", job="sensitive"))
    assert roles == Roles("job", ("age",), person="id")
    assert "person" in ROLES
    with pytest.raises(rp.ReconprivError, match="at most one column as the person"):
        chosen_roles(form(id="person", town="person", age="public", job="sensitive"))
    plain = Roles("job", ("age",))
    assert role_changes(plain, roles) == ["person’s number: none → id"]
    assert role_changes(roles, plain) == ["person’s number: id → none"]
    one, other = (Plan("t", said, rp.Policy(0.5, 0.5, 0.3)) for said in (plain, roles))
    assert same_key_means(one, other) == ""


def test_a_choice_among_the_rows_of_a_person_needs_to_know_who_they_are() -> None:
    one = chosen_roles(form("one", id="person", age="public", job="sensitive"))
    assert one == Roles("job", ("age",), person="id", rows_per_person="one") and one.keeps_one
    nobody = chosen_roles(form("one", id="drop", age="public", job="sensitive"))
    assert nobody == Roles("job", ("age",)) and not nobody.keeps_one
    refused = replace(one, rows_per_person="refuse")
    assert role_changes(refused, one) == ["rows per person: refuse → one"]
    before, after, same = (
        Plan("t", said, rp.Policy(0.5, 0.5, 0.3)) for said in (refused, one, one)
    )
    for pair in ((before, after), (after, before)):
        assert "other rows of the same people" in same_key_means(*pair)
    assert same_key_means(after, same) == ""
    other = replace(after, roles=replace(one, person="name"))
    assert "other rows of the same people" in same_key_means(after, other)

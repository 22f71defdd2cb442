"""The roles step without a page: what is proposed, what the form holds, what is chosen."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import reconpriv as rp
from reconpriv.studio.changes import role_changes, same_key_means
from reconpriv.studio.desk import Desk, Opened
from reconpriv.studio.plan import Plan, Roles
from reconpriv.studio.step_roles import (
    ROLES,
    Proposed,
    chosen_roles,
    first_role,
    proposal_of,
    roles_form,
)

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


def test_without_a_proposal_identifiers_are_left_out(opened: Opened) -> None:
    columns = {column.name: column for column in opened.summary.columns}
    assert first_role(columns["id"], {}).role == "drop"
    assert first_role(columns["age"], {}) == Proposed("public")
    named = proposal_of({"sensitive": "job"})
    assert first_role(columns["job"], named).role == "sensitive"
    assert proposal_of({}) == proposal_of({"sensitive": None}) == {}


def form(**roles: str) -> dict[str, Any]:
    said = {"bins": {"id": "10", "age": ""}, "groups": {"job": ""}, "missing": "refuse"}
    return {"roles": roles, **said}


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

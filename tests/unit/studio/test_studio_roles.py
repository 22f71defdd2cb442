"""The roles step without a page: what is proposed, what the form holds, what is chosen."""

from __future__ import annotations

from dataclasses import replace

import pytest

import reconpriv as rp
from reconpriv.reports import columns as column_counts
from reconpriv.studio.pieces.changes import role_changes
from reconpriv.studio.pieces.columns_check import columns_card, counted
from reconpriv.studio.steps.roles import (
    ROLES,
    chosen_roles,
    giveaway_notice,
    giveaways,
    proposal_of,
    read_form,
    read_groups,
    roles_form,
)
from reconpriv.studio.work.plan import DeclaredRoles, read_table
from reconpriv.studio.work.workspace import CancelledError
from studio_workspace import Form

CSV = "id,age,job\n" + "\n".join(f"{i},{20 + i % 9},{'ab'[i % 2]}" for i in range(300))


@pytest.fixture
def opened(workspace, tmp_path):
    (tmp_path / "t.csv").write_text(CSV)
    return workspace.look(str(tmp_path / "t.csv"))


def row(html, column):
    """The row of a column in the form."""
    (found,) = [one for one in html.split("<tr>") if f'"Role of {column}"' in one]
    return found


def chosen(html, *columns):
    found = []
    for column in columns:
        roles = row(html, column).split("</select>")[0]
        (option,) = [one for one in roles.split("<option") if "selected" in one]
        found.append(option.split('value="')[1].split('"')[0])
    return found


def test_a_role_and_its_reason_come_from_a_proposal(opened):
    plain = proposal_of(opened, {})
    proposal = {
        "age": replace(plain["age"], reason="a number with many values", bins="5"),
        "id": replace(plain["id"], role="person", reason="it is different in every row"),
        "job": plain["job"],  # how many values there are is in the row already
    }
    html = str(roles_form(opened, {}, proposal))
    assert chosen(html, "age", "id", "job") == ["public", "person", "public"]
    assert "Proposed: Public. A number with many values." in row(html, "age")
    assert 'value="5"' in row(html, "age")
    assert "Proposed" not in row(html, "job")
    # What the user has said since comes first; the reason still says what was proposed.
    draft = {"roles": {"age": "drop"}, "bins": {"age": ""}}
    html = str(roles_form(opened, draft, proposal))
    assert chosen(html, "age") == ["drop"]
    assert 'value="5"' not in row(html, "age")
    assert "Proposed: Public." in row(html, "age")


def test_the_form_starts_from_what_the_library_proposes(opened):
    found = proposal_of(opened, {})
    reason = "an identifier: nearly unique (300 values in 300 records)"
    assert (found["id"].role, found["id"].reason) == ("drop", reason)
    assert found["age"].role == found["job"].role == "public"
    named = proposal_of(opened, {"sensitive": "job"})
    assert named.pop("job").role == "sensitive"
    assert named.items() <= found.items()
    assert proposal_of(opened, {"sensitive": "height"}) == found


def test_decimals_of_a_csv_are_binned_though_they_are_text(workspace, tmp_path):
    """1.50 is no number's own spelling, so the column stays text, and is to be binned."""
    rows = "\n".join(f"{1 + i % 97 / 100:.2f},{'ab'[i % 2]}" for i in range(300))
    (tmp_path / "t.csv").write_text("height,job\n" + rows)
    opened = workspace.look(str(tmp_path / "t.csv"))
    assert [one.kind for one in opened.summary.columns] == ["string", "string"]
    html = str(roles_form(opened, {}, proposal_of(opened, {})))
    assert 'aria-label="Bins of height"' in row(html, "height") and "Groups" in row(html, "job")
    assert 'value="0.1"' in row(html, "height")
    n = opened.number
    given = {f"role_{n}_0": "public", f"role_{n}_1": "sensitive", f"bins_{n}_0": "0.5",
             f"groups_{n}_1": "", "missing": "refuse", "rows_per_person": "refuse"}  # fmt: skip
    roles = chosen_roles(read_form(Form(**given), opened))
    assert roles.bins == {"height": "0.5"} and not roles.groups
    with read_table(opened.source, roles) as table:
        assert len(table.schema.recoding("height").labels) == 2


def test_many_numbers_are_binned_and_a_column_that_tells_is_left_out(workspace, tmp_path):
    """The latter once its user has said which column is sensitive."""
    rows = [
        f"p{i % 100:03},{i * 37 % 241 / 2},{'uvw'[i % 3]},{'xyz'[i % 3]}{i % 2}" for i in range(300)
    ]
    (tmp_path / "t.csv").write_text("patient,pay,job,desk\n" + "\n".join(rows))
    opened = workspace.look(str(tmp_path / "t.csv"))
    html = str(roles_form(opened, {}, proposal_of(opened, {})))
    wanted = ["person", "public", "public", "public"]
    assert chosen(html, "patient", "pay", "job", "desk") == wanted
    assert "several rows (100 values in 300 records)" in row(html, "patient")
    assert 'value="20"' in row(html, "pay")
    assert 'class="field person-only"' in html
    proposals = rp.propose_roles(opened.source, sensitive="job")
    assert list(giveaways(opened, proposals)) == ["desk"]
    words = str(giveaway_notice(opened, proposals))
    assert "Columns that tell 'job'" in words and "100% of the people" in words
    assert workspace.acts_first(opened, proposals) and not workspace.acts_first(opened, proposals)
    assert giveaway_notice(opened, rp.propose_roles(opened.source, sensitive="pay")) is None


def form(rows="refuse", bins=None, groups=None, **roles):
    said = {"bins": bins or {}, "groups": groups or {}, "missing": "refuse"}
    return {"roles": roles, "rows_per_person": rows, **said}


def test_dates_have_a_box_and_its_text_makes_their_bins(workspace, tmp_path):
    lines = [f"2020-0{i % 6 + 1}-15,{i % 50},{'yes' if i % 3 else 'no'}" for i in range(300)]
    (tmp_path / "v.csv").write_text("visit,income,ill\n" + "\n".join(lines) + "\n")
    opened = workspace.look(str(tmp_path / "v.csv"))
    page = str(roles_form(opened, {}, proposal_of(opened, {})))
    boxes = [f'aria-label="Bins of {name}"' in page for name in ("visit", "income", "ill")]
    assert boxes == [True, True, False]
    said = form(
        visit="public", income="public", ill="sensitive",
        bins={"visit": " quarter ", "income": "0, 10, 20, top:60"}, groups={"ill": ""},
    )  # fmt: skip
    with read_table(opened.source, chosen_roles(said)) as table:
        labels = {one.column: one.labels for one in table.schema.recodings}
    assert labels == {"visit": ("2020-Q1", "2020-Q2"), "income": ("0 to 9", "10 to 19", "20 to 60")}


def test_bins_and_groups_of_columns_that_are_left_out_do_not_count():
    said = {"bins": {"age": " 0, 18 "}, "groups": {"sex": "f,x\nm,x"}}
    roles = {"age": "public", "sex": "public", "s": "sensitive"}
    chosen = chosen_roles(form(**said, **roles))
    assert (chosen.bins, chosen.groups) == ({"age": "0, 18"}, {"sex": {"f": "x", "m": "x"}})
    assert chosen_roles(form(**said, **roles | {"sex": "drop"})).groups == {}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (form(age="public", sex="public"), "exactly one"),
        (form(age="sensitive", sex="sensitive"), "exactly one"),
        (form(age="drop", sex="sensitive"), "at least one column public"),
        (form(age="public", sex="sensitive", groups={"sex": "f"}), "value,group"),
        (form(id="person", town="person", age="public", job="sensitive"), "at most one column"),
    ],
)
def test_wrong_roles_are_explained(given, words):
    with pytest.raises(rp.ReconprivError, match=words):
        chosen_roles(given)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a,x\nb, y\n", {"a": "x", "b": "y"}),
        ('value,group\n"a, b",x\n\n*,rest', {"a, b": "x", "*": "rest"}),
        ("a,x\na,x", {"a": "x"}),
        ("a", "Line 1"), ("a,x\nb,", "Line 2"), ("a,x,y", "Line 1"), ("a,x\na,y", "twice"),
    ],
)  # fmt: skip
def test_groups_are_read_line_by_line(text, found):
    if isinstance(found, dict):
        assert read_groups("c", text) == found
    else:
        with pytest.raises(rp.ReconprivError, match=found):
            read_groups("c", text)


def test_the_persons_number_is_kept_apart_and_never_public():
    roles = chosen_roles(form(id="person", age="public", job="sensitive"))
    assert roles == DeclaredRoles("job", ("age",), person="id")
    assert "person" in ROLES
    plain = DeclaredRoles("job", ("age",))
    assert role_changes(plain, roles) == ["person’s number: none → id"]
    assert role_changes(roles, plain) == ["person’s number: id → none"]


def test_a_choice_among_the_rows_of_a_person_needs_to_know_who_they_are():
    one = chosen_roles(form("one", id="person", age="public", job="sensitive"))
    assert one == DeclaredRoles("job", ("age",), person="id", rows_per_person="one")
    assert one.keeps_one
    nobody = chosen_roles(form("one", id="drop", age="public", job="sensitive"))
    assert nobody == DeclaredRoles("job", ("age",)) and not nobody.keeps_one
    refused = replace(one, rows_per_person="refuse")
    assert role_changes(refused, one) == ["rows per person: refuse → one"]


def test_what_columns_do_is_what_an_audit_says_of_them(opened):
    """Before any policy is chosen, and cancelled between two columns."""
    roles = DeclaredRoles("job", ("id", "age"), bins={"age": "5"})
    steps = []
    found = counted(opened, roles, lambda *step: steps.append(step))
    with read_table(opened.source, roles) as table, pytest.warns(rp.ReconprivWarning):
        audit = table.audit()
    assert found.now == audit.figures and found.left_out == 0
    without = {f"without {column.name}": column.without for column in audit.columns}
    for change in found.changes:
        if change.name in without:
            assert vars(change.figures).items() <= vars(without.pop(change.name)).items()
    assert without == {}
    assert found.recoded == {"age": [("20 to 24", 168), ("25 to 29", 132)]}
    assert steps[0][1] == len(found.changes) + 1 and len(steps) == len(found.changes)
    html = str(columns_card(found))
    assert "What coarser columns would do" in html and "20 to 24" in html

    def stop(*_):
        raise CancelledError

    with pytest.raises(CancelledError):
        counted(opened, roles, stop)


def test_of_many_columns_those_with_most_values_are_compared(opened, monkeypatch):
    monkeypatch.setattr(column_counts, "_COMPARED", 1)
    found = counted(opened, DeclaredRoles("job", ("id", "age")), lambda *_: None)
    assert found.left_out == 1 and "id" in found.changes[0].name
    assert "1 columns with the fewest values were not compared" in str(columns_card(found))


def test_the_values_of_a_column_are_listed_where_groups_are_made(opened):
    html = str(roles_form(opened, {}, proposal_of(opened, {})))
    assert 'data-list="[&quot;a&quot;, &quot;b&quot;]"' in row(html, "job")
    assert opened.summary.sample[0] == ("0", "20", "a")

"""The text box for bins: numbers and dates have one, and it takes what the command line takes."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import reconpriv as rp
from reconpriv.studio.plan import Plan, Roles, python_script, read_table, shell_command
from reconpriv.studio.proposed import Proposed
from reconpriv.studio.step_roles import chosen_roles, roles_form

POLICY = rp.Policy(0.5, 0.5, 0.3)


def visits(folder: Path) -> Path:
    file = folder / "visits.csv"
    lines = [f"2020-0{i % 6 + 1}-15,{i % 50},{'yes' if i % 3 else 'no'}" for i in range(300)]
    file.write_text("visit,income,ill\n" + "\n".join(lines) + "\n")
    return file


def test_dates_have_a_box_and_its_text_makes_their_bins(tmp_path: Path) -> None:
    file = visits(tmp_path)
    opened = SimpleNamespace(summary=rp.describe(file), number=1)
    page = str(
        roles_form(opened, {}, dict.fromkeys(("visit", "income", "ill"), Proposed("public")))
    )
    assert 'aria-label="Bins of visit"' in page
    assert 'aria-label="Bins of income"' in page
    assert 'aria-label="Bins of ill"' not in page
    form = {
        "roles": {"visit": "public", "income": "public", "ill": "sensitive"},
        "bins": {"visit": " quarter ", "income": "0, 10, 20, top:60"},
        "groups": {"ill": ""},
        "missing": "refuse",
        "rows_per_person": "refuse",
    }
    roles = chosen_roles(form)
    with read_table(str(file), roles) as table:
        labels = {one.column: one.labels for one in table.schema.recodings}
    assert labels == {
        "visit": ("2020-Q1", "2020-Q2"),
        "income": ("0 to 9", "10 to 19", "20 to 60"),
    }


def test_the_recipe_declares_the_same_bins() -> None:
    roles = Roles("ill", ("visit",), bins={"visit": "month", "income": "0,10,top:60"})
    plan = Plan("t.csv", roles, POLICY)
    assert "bin={'visit': 'month', 'income': '0,10,top:60'}" in python_script(plan)
    assert "--bin visit=month" in shell_command(plan)
    assert "--bin income=0,10,top:60" in shell_command(plan)

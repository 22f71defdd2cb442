"""The plan, as a script and as a command, does what the studio did; errors use its words."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import reconpriv as rp
from reconpriv.messages.remedies import worded
from reconpriv.policy.presets import preset
from reconpriv.studio.pieces.remedy_words import page_words
from reconpriv.studio.work.plan import (
    DeclaredRoles,
    PublicationPlan,
    python_script,
    read_table,
    shell_command,
)
from reconpriv.studio.work.workspace import explain
from studio_workspace import POLICY, recipes_make

pytestmark = pytest.mark.filterwarnings("ignore::reconpriv.ReconprivWarning")
AWKWARD = pa.table(
    {
        'a "b", c': ["x", "y"] * 40,
        "pay": [float(i % 40) + 0.5 for i in range(80)],
        "it's": ["u", "v", "w", "u", "v"] * 16,
        "a=b": ["1, 2", "END", 'q"', "rest"] * 20,
    }
)
GROUPS = {"a=b": {"1, 2": "one", "END": "it's", "*": 'two "2"'}}
AWKWARD_ROLES = DeclaredRoles(
    "it's", ('a "b", c', "pay", "a=b"), bins={"pay": "0, 20"}, groups=GROUPS
)
DAYS = [date(2026, 1, 1), date(2026, 1, 2), None]
TEXTS = ["a, b", 'c "d"', "NULL", None]
LONG = {f"value {i}": f"group {i % 7}" for i in range(40)} | {"0": "a", "*": "b"}


def people(values):
    rows = range(900)
    data = {"s": [values[i // 7 % len(values)] for i in rows], "town": [i % 3 for i in rows]}
    return pa.table({**data, "id, no": [i % 20 for i in rows]})


def exposing(harmless):
    return replace(preset("recommended"), exposed_above=0.1, harmless=harmless)


MADE = {
    "awkward": (AWKWARD, AWKWARD_ROLES, rp.Policy(retention=0.45, tolerance=0.5, doubt=0.3)),
    "texts": (people(TEXTS), None, exposing(("a, b", 'c "d"'))),
    "null": (people(TEXTS), None, exposing(("NULL",))),
    "dates": (people(DAYS), None, exposing((DAYS[1], None))),
    "numbers": (people([1, 2, 3]), None, exposing((2,))),
    "protected": (
        people([1, 2, 3]), None, replace(POLICY, protect={"id, no": "0,5,10", "town": "*"}),
    ),
    "protected by groups": (
        people([1, 2, 3]), None,
        replace(POLICY, protect={"town": {"0": "a", "1": "b, c", "*": "d=e"}}),
    ),
    "long groups": (
        AWKWARD, DeclaredRoles("it's", ("a=b",), groups={"a=b": LONG | {"END": "c"}}), POLICY,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MADE)
def test_script_and_command_make_the_same_release(name, tmp_path, monkeypatch, cli, files_of):
    data, roles, policy = MADE[name]
    pq.write_table(data, tmp_path / "my table.parquet")
    roles = roles or DeclaredRoles("s", ("town", "id, no"), missing="value")
    plan = PublicationPlan(str(tmp_path / "my table.parquet"), roles, policy, test_key=True)
    recipes_make(plan, tmp_path, monkeypatch, cli, files_of)


MARGINS = [1.0, rp.Margins(0.5, 1e-6, tables=["age", ("sex", "race")]), rp.Margins(rho=0.02)]


@pytest.mark.parametrize("margins", MARGINS, ids=str)
def test_script_and_command_make_the_same_margins(margins, tmp_path, monkeypatch, cli, files_of):
    roles = DeclaredRoles("occupation", ("age", "sex", "race"), missing="value")
    plan = PublicationPlan("example:adult", roles, replace(POLICY, margins=margins), test_key=True)
    made = recipes_make(plan, tmp_path, monkeypatch, cli, files_of)
    assert "margins.parquet" in {Path(name).name for name in made}


def test_a_kept_identifier_is_kept_by_the_script_and_by_the_command(
    tmp_path, monkeypatch, cli, files_of
):
    rows = range(200)
    data = pa.table({"a, b": list(rows), "x": [str(i % 3) for i in rows]})
    pq.write_table(data, tmp_path / "t.parquet")
    roles = DeclaredRoles("x", ("a, b",))
    plan = PublicationPlan(str(tmp_path / "t.parquet"), roles, POLICY, test_key=True)
    with (
        read_table(plan.source, roles) as table,
        pytest.raises(rp.ReconprivError, match="nearly unique") as caught,
    ):
        table.publish(plan.policy, tmp_path / "refused", key=rp.Key.test())
    assert "--" not in explain(caught.value)
    assert "ticking the box" in explain(caught.value)
    kept = replace(plan, accepted={"keep_identifier": ["a, b"], "max_unique": 1.0})
    recipes_make(kept, tmp_path, monkeypatch, cli, files_of)


def test_the_recipe_is_one_command_where_no_groups_are_written():
    roles = DeclaredRoles("s", ("a",), bins={"a": "10", "visit": "month", "i": "0,10,top:60"})
    plan = PublicationPlan("t.csv", roles, replace(POLICY, margins=1.0))
    command, script = shell_command(plan), python_script(plan)
    assert command.startswith("reconpriv publish t.csv release/")
    for part in ("--bin a=10", "--bin visit=month", "--bin i=0,10,top:60", "--margins 1.0"):
        assert part in command.replace("\\\n ", "")
    assert "bin={'a': '10', 'visit': 'month', 'i': '0,10,top:60'}" in script
    assert "    margins=1.0,\n" in script
    assert plan.roles.recoded == "a by 10, visit by month, i by 0,10,top:60"


def test_the_truth_of_the_studio_is_that_of_whole_bins():
    with read_table(AWKWARD, DeclaredRoles("it's", ("pay",), bins={"pay": "10"})) as table:
        assert table.count("pay < 20") == 40
        with pytest.raises(rp.ReconprivError, match="cuts the bin"):
            table.count("pay < 15")


def columns(**values):
    return pa.table({"a": values.get("a", [1, 2]), "x": values["x"]})


@pytest.mark.parametrize(
    "table",
    [
        columns(x=[0.5, 1.5]),
        columns(x=["u", None]),
        columns(x=["u", "u"]),
        columns(a=[1] * 2000, x=[str(i) for i in range(2000)]),
        columns(a=[[1], [2]], x=["u", "v"]),
    ],
    ids=["fractions", "gaps", "one value", "many values", "lists"],
)
def test_explanations_name_no_command_line_options(table):
    """Whatever a user of the page can run into is said in the words of the page."""
    with pytest.raises(rp.ReconprivError) as caught:
        rp.read(table, sensitive="x", public="all")
    assert "--" not in explain(caught.value)


@pytest.mark.parametrize(
    ("bins", "groups", "where"),
    [
        ({"pay": "10"}, {}, "pay < 15"),
        ({"pay": "10"}, {}, "pay = 15"),
        ({}, {"a=b": {"END": "x", "rest": "x", "*": "y"}}, "\"a=b\" = 'END' OR pay < 3"),
        ({"pay": "5, 10"}, {}, ""),
        ({"a=b": "5"}, {}, ""),
        ({}, {"pay": {"1": "x"}}, ""),
    ],
)
def test_refusals_of_bins_name_no_command_line_options(bins, groups, where):
    roles = DeclaredRoles("it's", ("pay", "a=b"), bins=bins, groups=groups)
    with pytest.raises(rp.ReconprivError) as caught, read_table(AWKWARD, roles) as table:
        assert where
        table.count(where)
        raise rp.ReconprivError("nothing was refused: --")
    assert "--" not in explain(caught.value)


def test_warnings_name_no_command_line_options():
    data = pa.table({"a": list(range(40)), "x": ["u", "v"] * 20})
    with rp.read(data, sensitive="x", public="all") as table:
        (warning,) = table.audit(POLICY).warnings
    assert 'drop=["a"]' in warning
    assert worded(warning, page_words).endswith(" Leave it out in the roles step.")

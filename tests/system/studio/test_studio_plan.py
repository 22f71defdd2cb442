"""The plan, as a script and as a command, does what the studio did; errors use its words."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import reconpriv as rp
from reconpriv.messages.remedies import worded
from reconpriv.studio.desk import CancelledError, Desk, explain, safe_name
from reconpriv.studio.plan import Plan, Roles, python_script, read_table, shell_command
from reconpriv.studio.remedy_words import page_words
from reconpriv.studio.step_policy import count_cells
from reconpriv.studio.step_roles import chosen_roles, read_groups
from reconpriv.studio.verdict import plain_verdict

AWKWARD = pa.table(
    {
        'a "b", c': ["x", "y"] * 40,
        "pay": [float(i % 40) + 0.5 for i in range(80)],
        "it's": ["u", "v", "w", "u", "v"] * 16,
        "a=b": ["1, 2", "END", 'q"', "rest"] * 20,
    }
)


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    file = tmp_path / "my table.csv"
    pyarrow.csv.write_csv(AWKWARD, file)
    groups = {"a=b": {"1, 2": "one", "END": "it's", "*": 'two "2"'}}
    roles = Roles("it's", ('a "b", c', "pay", "a=b"), bins={"pay": "0, 20"}, groups=groups)
    return Plan(str(file), roles, rp.Policy(0.45, 0.5, 0.3), test_key=True)


def test_the_script_makes_the_same_release(
    plan: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files_of: Callable[..., Any]
) -> None:
    with read_table(plan.source, plan.roles) as table:
        table.publish(plan.policy, tmp_path / "mine", key=rp.Key.test())
    monkeypatch.chdir(tmp_path)
    exec(python_script(plan), {})
    assert files_of(tmp_path / "release") == files_of(tmp_path / "mine")


def test_the_command_makes_the_same_release(
    plan: Plan,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    files_of: Callable[..., Any],
    cli: Callable[..., Any],
) -> None:
    with read_table(plan.source, plan.roles) as table:
        table.publish(plan.policy, tmp_path / "mine", key=rp.Key.test())
    monkeypatch.chdir(tmp_path)
    before, _, command = shell_command(plan).rpartition("\nreconpriv ")
    subprocess.run(["/bin/sh", "-c", before], check=True)
    assert Path("groups-1.csv").read_text().startswith("value,group\n")
    words = shlex.split(command.replace("\\\n", " "))
    assert cli(*words).code == 0
    assert files_of(tmp_path / "release") == files_of(tmp_path / "mine")


def test_a_kept_identifier_is_kept_by_the_script_and_by_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Callable[..., Any]
) -> None:
    rows = range(200)
    data = pa.table({"a, b": list(rows), "x": [str(i % 3) for i in rows]})
    pq.write_table(data, tmp_path / "t.parquet")
    monkeypatch.chdir(tmp_path)
    roles = Roles("x", ("a, b",))
    plan = Plan("t.parquet", roles, rp.Policy(0.5, 0.5, 0.3), test_key=True)
    with (
        read_table(plan.source, roles) as table,
        pytest.raises(rp.ReconprivError, match="nearly unique") as caught,
    ):
        table.publish(plan.policy, "mine", key=rp.Key.test())
    assert "--" not in explain(caught.value)
    assert "ticking the box" in explain(caught.value)
    kept = replace(plan, keep_identifier=("a, b",), max_unique=1.0)
    with pytest.warns(rp.ReconprivWarning):
        exec(python_script(kept), {})
    (tmp_path / "release").rename(tmp_path / "first")
    words = shlex.split(shell_command(kept).replace("\\\n", " "))
    assert cli(*words[1:]).code == 0


def test_a_plan_without_groups_is_one_command() -> None:
    plan = Plan("t.csv", Roles("s", ("a",), bins={"a": "10"}), rp.Policy(0.5, 0.5, 0.3))
    assert shell_command(plan).startswith("reconpriv publish t.csv release/")
    assert "--bin a=10" in shell_command(plan)
    assert "bin={'a': '10'}" in python_script(plan)
    assert plan.roles.recoded == "a by 10"


def test_the_truth_of_the_studio_is_that_of_whole_bins() -> None:
    with read_table(AWKWARD, Roles("it's", ("pay",), bins={"pay": "10"})) as table:  # type: ignore[arg-type]
        assert table.count("pay < 20") == 40
        with pytest.raises(rp.ReconprivError, match="cuts the bin"):
            table.count("pay < 15")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a,x\nb, y\n", {"a": "x", "b": "y"}),
        ('value,group\n"a, b",x\n\n*,rest', {"a, b": "x", "*": "rest"}),
        ("a,x\na,x", {"a": "x"}),
    ],
)
def test_groups_are_read_line_by_line(text: str, found: dict[str, str]) -> None:
    assert read_groups("c", text) == found


@pytest.mark.parametrize(
    ("text", "words"),
    [("a", "Line 1"), ("a,x\nb,", "Line 2"), ("a,x,y", "Line 1"), ("a,x\na,y", "twice")],
)
def test_bad_groups_are_explained(text: str, words: str) -> None:
    with pytest.raises(rp.ReconprivError, match=words):
        read_groups("c", text)


def form(**roles: str) -> dict[str, Any]:
    return {"roles": roles, "bins": {"age": ""}, "groups": {"sex": ""}, "missing": "refuse"}


def test_bins_and_groups_of_columns_that_are_left_out_do_not_count() -> None:
    said = {"bins": {"age": " 0, 18 "}, "groups": {"sex": "f,x\nm,x"}, "missing": "refuse"}
    roles = {"age": "public", "sex": "public", "s": "sensitive"}
    chosen = chosen_roles({"roles": roles, **said})
    assert (chosen.bins, chosen.groups) == ({"age": "0, 18"}, {"sex": {"f": "x", "m": "x"}})
    chosen = chosen_roles({"roles": {**roles, "sex": "drop"}, **said})
    assert chosen.groups == {}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (form(age="public", sex="public"), "exactly one"),
        (form(age="sensitive", sex="sensitive"), "exactly one"),
        (form(age="drop", sex="sensitive"), "at least one column public"),
        ({**form(age="public", sex="sensitive"), "groups": {"sex": "f"}}, "value,group"),
    ],
)
def test_wrong_roles_are_explained(given: dict[str, Any], words: str) -> None:
    with pytest.raises(rp.ReconprivError, match=words):
        chosen_roles(given)


def test_explanations_name_no_command_line_options() -> None:
    """Whatever a user of the page can run into is said in the words of the page."""
    doubles = pa.table({"a": [1, 2], "x": [0.5, 1.5]})
    nulls = pa.table({"a": [1, 2], "x": ["u", None]})
    one = pa.table({"a": [1, 2], "x": ["u", "u"]})
    many = pa.table({"a": [1] * 2000, "x": [str(i) for i in range(2000)]})
    nested = pa.table({"a": [[1], [2]], "x": ["u", "v"]})
    for table in (doubles, nulls, one, many, nested):
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
def test_refusals_of_bins_name_no_command_line_options(bins, groups, where: str) -> None:
    roles = Roles("it's", ("pay", "a=b"), bins=bins, groups=groups)
    with pytest.raises(rp.ReconprivError) as caught, read_table(AWKWARD, roles) as table:  # type: ignore[arg-type]
        assert where
        table.count(where)
        raise rp.ReconprivError("nothing was refused: --")
    assert "--" not in explain(caught.value)


def test_warnings_name_no_command_line_options() -> None:
    data = pa.table({"a": list(range(40)), "x": ["u", "v"] * 20})
    with rp.read(data, sensitive="x", public="all") as table, pytest.warns(rp.ReconprivWarning):
        (warning,) = table.audit(rp.Policy(0.5, 0.5, 0.3)).warnings
    assert 'drop=["a"]' in warning
    assert worded(warning, page_words).endswith(" Leave it out in the roles step.")


def test_a_bug_is_not_shown_as_a_trace() -> None:
    said = explain(ZeroDivisionError("secret"))
    assert "ZeroDivisionError" in said
    assert "secret" not in said


@pytest.mark.parametrize(
    ("given", "kept"),
    [("../../etc/passwd", "passwd"), ("C:\\x\\data.csv", "data.csv"), (".hidden.csv", "hidden.csv"),
     ("a*b?.csv.gz", "a_b_.csv.gz"), ("", "table"), ("Tabelle ä.csv", "Tabelle ä.csv")],
)  # fmt: skip
def test_an_uploads_name_cannot_leave_its_folder(given: str, kept: str) -> None:
    assert safe_name(given) == kept


def test_a_failed_look_keeps_what_was_on_the_desk(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    before = desk.look("example:adult")
    (tmp_path / "bad.csv").write_text("a,b\n1\n")
    with pytest.raises(rp.ReconprivError):
        desk.look(str(tmp_path / "bad.csv"))
    assert desk.opened is before
    desk.close()


def test_a_table_without_a_workload_still_has_a_verdict(tmp_path: Path) -> None:
    """Where no query selects enough records there is no picture, but the audit speaks."""
    rows = range(3000)
    data = pa.table({"a": [i % 1300 for i in rows], "x": [str(i % 7) for i in rows]})
    pq.write_table(data, tmp_path / "even.parquet")
    desk = Desk(tmp_path)
    opened = desk.look(str(tmp_path / "even.parquet"))
    settled = desk.settle(opened, Roles("x", ("a",)))
    counted = count_cells(desk, settled)
    assert counted.tuner is None
    assert "no picture" in counted.reason
    report = desk.audit(settled, rp.Policy(0.5, 0.5, 0.3), worst=3)
    assert counted.reason in str(plain_verdict(report, counted.reason))
    assert "Promised: " in str(plain_verdict(report, counted.reason))
    desk.close()


def test_an_audit_of_a_replaced_table_is_dropped(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    opened = desk.look("example:adult")
    before = desk.settle(opened, Roles("income", ("sex",)))
    desk.settle(opened, Roles("income", ("race",)))
    with pytest.raises(CancelledError):
        desk.audit(before, rp.Policy(0.5, 0.5, 0.3), worst=3)
    desk.close()

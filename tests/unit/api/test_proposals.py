"""Proposed roles: on made tables of twelve kinds, from Python, the command line and formats."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import reconpriv as rp
from steward_tables import TABLES, Made


def proposed(made: Made, table: object) -> dict[str, str]:
    found = rp.propose_roles(table, sensitive=made.sensitive)
    return {
        one.column: f"{one.role} {one.bins}".strip()
        for one in found.columns
        if one.role != "sensitive"
    }


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("source", ["arrow", "csv", "parquet"])
def test_every_column_gets_the_right_role(name: str, source: str, tmp_path: Path) -> None:
    made = TABLES[name]()
    table: object = made.table
    if source != "arrow":
        table = tmp_path / f"t.{source}"
        write = pa.csv.write_csv if source == "csv" else pq.write_table
        write(made.table, table)
    found = proposed(made, table)
    assert found.keys() == made.roles.keys()
    for column, role in made.roles.items():
        if (source, column) == ("csv", "admitted"):
            assert found[column] == "drop"  # CSV keeps timestamps as texts
        elif role.endswith("*"):
            assert found[column].startswith(role[:-1]) and found[column] != role[:-2]
        else:
            assert found[column] == role, column


@pytest.mark.parametrize("name", TABLES)
def test_a_table_without_roles_is_refused_with_the_proposal(
    name: str, tmp_path: Path, cli: Callable
) -> None:
    made = TABLES[name]()
    file, out = tmp_path / "t.parquet", tmp_path / "out"
    pq.write_table(made.table, file)
    for words in (("audit", file), ("publish", file, out, "--test-key")):
        done = cli(*words, "-s", made.sensitive)
        assert done.code == 2 and not out.exists()
        for column, role in made.roles.items():
            line = next(one for one in done.err.splitlines() if one.split()[:1] == [column])
            assert line.split()[1] == role.split()[0]
    with pytest.raises(rp.ReconprivError) as refused:
        rp.read(made.table, sensitive=made.sensitive)
    assert all(column in str(refused.value) for column in made.roles)


@pytest.mark.parametrize("name", TABLES)
def test_the_proposed_roles_can_be_published(name: str, tmp_path: Path) -> None:
    made = TABLES[name]()
    found = rp.propose_roles(made.table, sensitive=made.sensitive)
    people = found.named("person")
    release = rp.publish(
        made.table,
        rp.Policy(0.5, 0.5, 0.3),
        sensitive=made.sensitive,
        public=found.named("public"),
        drop=found.named("drop"),
        person=people[0] if people else None,
        rows_per_person="one" if people else "refuse",
        bin=found.bins,
        key=rp.Key.generate(),
        max_unique=1.0,  # months of visits by years of birth single most people out
    )
    assert set(release.column_names) == {*found.named("public"), made.sensitive}


def test_the_command_shows_a_proposal_and_the_command_that_accepts_it(
    tmp_path: Path, cli: Callable
) -> None:
    file = tmp_path / "t.parquet"
    pq.write_table(TABLES["visits"]().table, file)
    done = cli("columns", file, "-s", "diagnosis")
    assert done.code == 0
    assert "--drop patient" in done.out and "--bin visit=month" in done.out
    plain = cli("columns", file)
    assert plain.code == 0 and "give its value away" in plain.out
    told = cli("columns", file, "-s", "diagnosis", "--json")
    assert '"role": "drop"' in told.out and "--public" in told.out


def test_all_others_are_public_only_if_that_is_said(tmp_path: Path) -> None:
    table = pa.table({"a": ["x", "y"] * 20, "b": [1, 2] * 20, "s": ["u", "v"] * 20})
    with rp.read(table, sensitive="s", public="all") as every:
        assert [column.name for column in every.schema.public] == ["a", "b"]
    with rp.read(table, sensitive="s", public="all", drop="b") as some:
        assert [column.name for column in some.schema.public] == ["a"]
    with rp.read(table, sensitive="s", public=["a"]) as named:
        assert [column.name for column in named.schema.public] == ["a"]
    odd = pa.table({"all": ["x", "y"] * 20, "b": [1, 2] * 20, "s": ["u", "v"] * 20})
    with rp.read(odd, sensitive="s", public=["all"]) as called:
        assert [column.name for column in called.schema.public] == ["all"]


@pytest.mark.parametrize(
    "roles",
    [
        {"public": ["a"], "drop": ["a"]},
        {"public": ["s"]},
        {"public": "all", "drop": ["s"]},
        {"public": ["a"], "person": "a"},
        {"public": "all", "person": "s"},
        {"public": ["b"], "drop": ["a"], "person": "a"},
    ],
)
def test_no_column_has_two_roles(roles: dict[str, object]) -> None:
    table = pa.table({"a": ["x", "y"] * 20, "b": [1, 2] * 20, "s": ["u", "v"] * 20})
    with pytest.raises(rp.ReconprivError, match="two roles"):
        rp.read(table, sensitive="s", **roles)  # type: ignore[arg-type]

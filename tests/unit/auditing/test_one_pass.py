"""A table is counted once for an audit, whoever else needs to see its groups."""

from __future__ import annotations

import json

import pyarrow.parquet as pq
import pytest

import reconpriv as rp
from query_fixtures import people
from reconpriv.engines import grouped
from reconpriv.engines.duckdb import groups as duckdb_groups
from reconpriv.engines.duckdb.engine import DuckDBEngine
from reconpriv.protect.kernel import Kernel
from reconpriv.reports import internal, lab

POLICY = rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3)


@pytest.fixture
def passes(monkeypatch):
    """Every count of the cells; the engine keeps none of them for a second look."""
    counted: list[str] = []
    count = DuckDBEngine._count_groups

    def noted(self, *args):
        counted.append("pass")
        return count(self, *args)

    monkeypatch.setattr(DuckDBEngine, "_count_groups", noted)
    monkeypatch.setattr(duckdb_groups, "_KEEP", 0)
    return counted


@pytest.fixture(params=["small", "too large for memory"])
def size(request, monkeypatch):
    if request.param != "small":
        monkeypatch.setattr("reconpriv.tables.audited.CELLS_IN_MEMORY", 10)
        monkeypatch.setattr(internal, "CELLS_IN_MEMORY", 10)
        monkeypatch.setattr(lab, "LAB_RECORDS", 10)
    return str(request.param)


@pytest.fixture
def source(tmp_path):
    pq.write_table(people(), tmp_path / "people.parquet")
    return tmp_path / "people.parquet"


@pytest.mark.parametrize("columns", [None, True, False])
@pytest.mark.usefixtures("size")
def test_an_audit_is_one_pass(passes, columns):
    with rp.read(people(), sensitive="job", public="all", missing="value") as table:
        table.audit(POLICY, columns=columns)
    assert len(passes) == 1


def test_the_passes_are_counted(passes):
    with rp.read(people(), sensitive="job", public="all", missing="value") as table:
        table.audit(POLICY)
        list(table.batches())
    assert len(passes) == 2


@pytest.mark.usefixtures("size")
def test_a_report_is_one_pass(passes, tmp_path):
    with rp.read(people(), sensitive="job", public="all", missing="value") as table:
        table.report(POLICY, tmp_path / "report.html")
    assert len(passes) == 1


def test_protection_and_margins_take_one_pass_each(passes, tmp_path):
    policy = rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3, margins=1.0, protect={"age": 10})
    with rp.read(people(), sensitive="job", public="all", missing="value") as table:
        table.report(policy, tmp_path / "report.html")
        assert len(passes) == 3
        list(table.audit_groups(policy))
        assert len(passes) == 4
        table.publish(policy, tmp_path / "release", key=rp.Key.test())
    assert len(passes) == 7


def test_a_publication_finds_its_groups_once_and_draws_each_once(tmp_path, monkeypatch):
    """The ledger's count of trials watches the draw of the publication; nothing draws again."""
    found, drawn = [], []
    find, draw = grouped.find_coarsening, Kernel.draw

    def finding(*given):
        found.append(find(*given))
        return found[-1]

    def drawing(kernel, batch):
        drawn.append(batch.whole.groups)
        return draw(kernel, batch)

    monkeypatch.setattr(grouped, "find_coarsening", finding)
    monkeypatch.setattr(Kernel, "draw", drawing)
    rp.Key.generate().write(tmp_path / "my.key")
    policy = rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3, margins=1.0, protect={"age": 10})
    with rp.read(people(), sensitive="job", public="all", missing="value") as table:
        release = table.publish(policy, tmp_path / "release", key=str(tmp_path / "my.key"))
    assert len(found) == 1
    assert release.written is not None and sum(drawn) == release.written.groups


def test_audit_groups_and_report_share_one_pass(passes, size, source, tmp_path, cli):
    groups, report = tmp_path / "groups.parquet", tmp_path / "report.html"
    audit = (
        "audit",
        source,
        "-s",
        "job",
        "--public=all",
        "--missing",
        "value",
        "--worst",
        "3",
        "--preset",
        "paper",
        "--json",
    )
    done = cli(*audit, "--groups", groups, "--exact-tails", "--report", report)
    assert done.code == 1 and len(passes) == 1
    assert ("Not run" in report.read_text(encoding="utf-8")) == (size != "small")
    assert groups.stat().st_mode & 0o077 == report.stat().st_mode & 0o077 == 0
    assert json.loads(done.out) == json.loads(cli(*audit).out)
    with rp.read(people(), sensitive="job", public="all", missing="value") as table:
        parts = list(table.audit_groups(POLICY, exact=True))
    assert pq.read_table(groups).to_pylist() == [row for part in parts for row in part.to_pylist()]


def test_a_failure_leaves_neither_file(source, tmp_path, cli, monkeypatch):
    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pyarrow.parquet.ParquetWriter.write_table", fail)
    groups, report = tmp_path / "groups.parquet", tmp_path / "report.html"
    done = cli(
        "audit",
        source,
        "-s",
        "job",
        "--public=all",
        "--missing",
        "value",
        "--groups",
        groups,
        "--report",
        report,
    )
    assert done.code == 2 and "groups.parquet could not be written: No space left" in done.err
    assert [file.name for file in tmp_path.iterdir()] == [source.name]

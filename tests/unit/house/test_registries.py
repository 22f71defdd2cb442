"""What is registered in one place is known everywhere; the documents list the same."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest

import freeze
import reconpriv as rp
import registry_tables
from query_fixtures import numbered_key, people
from reconpriv.attacks import ATTACKS, Attack, AttackResult
from reconpriv.engines.base import FORMATS as FORMATS_OF_RELEASES
from reconpriv.engines.choice import ENGINES, EngineKind
from reconpriv.engines.spark.views import check_path
from reconpriv.errors import InputError, PolicyError
from reconpriv.estimate.counts import ESTIMATORS, Estimator
from reconpriv.policy.presets import PRESETS, Preset
from reconpriv.sources.formats import FORMATS, Format, upload_endings
from reconpriv.sources.lazy import LazyTable
from reconpriv.sources.statistical.read import PROGRAMS
from reconpriv.studio.steps import ask as step_ask
from reconpriv.studio.steps import choose_policy as step_policy
from reconpriv.studio.steps import open_table as step_open
from reconpriv.theory.tails.bounds import BOUNDS
from shell import offers
from toy_engine import Toy

POLICY = rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3)


@pytest.fixture
def table():
    with rp.read(people(), sensitive="job", public="all", missing="value") as opened:
        yield opened


def test_a_bound(cli, table):
    toy = replace(BOUNDS["chernoff"], name="toy", label="A toy",
                explanation="Chernoff by another name.")  # fmt: skip
    with BOUNDS.including(toy):
        found = table.audit(rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3, bound="toy"))
        assert "toy" in cli("audit", "--help").out
        assert offers("reconpriv audit x --bound t") == ["toy"]
        assert ">A toy</option>" in str(step_policy.panel({}))
        assert "| `toy` | Chernoff by another name. | all |" in registry_tables.table("bounds")
    assert found.violating_groups == table.audit(POLICY).violating_groups > 0
    with pytest.raises(PolicyError, match="no tail bound called 'toy'"):
        rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3, bound="toy")


def test_a_preset(cli, table):
    toy = Preset("toy", "For children.", rp.Policy(retention=0.2, tolerance=0.5, doubt=0.3))
    with PRESETS.including(toy):
        assert rp.preset("toy").retention == 0.2
        assert "toy" in cli("audit", "--help").out
        assert offers("reconpriv audit x --preset t") == ["toy"]
        assert "| `toy` | For children. | 0.2 |" in registry_tables.table("presets")
    with pytest.raises(PolicyError, match="no preset called 'toy'"):
        rp.preset("toy")


def test_an_estimator(cli, table, tmp_path):
    def even(observed, records, design):
        return np.repeat(records[:, None] / observed.shape[1], observed.shape[1], axis=1)

    toy = Estimator("toy", "Even", "All values are equally frequent.", even, possible=True)
    release = table.publish(POLICY, tmp_path / "release", key=numbered_key(1))
    with ESTIMATORS.including(toy):
        found = release.count(job="nurse", estimator="toy")
        assert found.count == found.records / len(release.domain)
        assert found.low <= found.count <= found.high
        rows = release.crosstab(["job"], estimator="toy")
        assert len({estimate.count for _, estimate in rows}) == 1
        done = cli("query", release.path, "SELECT count(*) FROM release WHERE job = 'nurse'",
                   "--estimator", "toy", "--json")  # fmt: skip
        assert json.loads(done.out)["count"] == found.count
        assert "or even" in cli("query", "--help").out
        assert offers("reconpriv query release --estimator t") == ["toy"]
        page = str(step_ask.panel({}))
        assert ">Even</option>" in page and toy.explanation in page
        assert "| `toy` |" in registry_tables.table("estimators")
    with pytest.raises(PolicyError, match="no estimator called 'toy'"):
        release.count(job="nurse", estimator="toy")


def test_an_attack(cli, tmp_path):
    def run(table, policy, how):
        return AttackResult("toy", knew="nothing", verdict=f"{how.keys} keys tell nothing.")

    toy = Attack("toy", "Does knowing nothing help?", run, uses=("keys",))
    file = tmp_path / "people.parquet"
    pa.parquet.write_table(people(), file)
    given = (file, "-s", "job", "--public=all", "--missing", "value")
    with ATTACKS.including(toy):
        done = cli("attack", "toy", *given, "--keys", 3)
        assert done.out.startswith("3 keys tell nothing.")
        refused = cli("attack", "toy", *given, "--releases", 5)
        assert refused.code == 2 and "--releases works only with the attack repeat" in refused.err
        text = " ".join(cli("attack", "--help").out.replace("│", " ").split())
        assert "side-channels or toy." in text
        assert "(micro, pool, infer, model, granularity, margins, persons or toy)" in text
        assert offers("reconpriv attack t") == ["toy"]
        assert "| `toy` | Does knowing nothing help? | no |" in registry_tables.table("attacks")
    with pytest.raises(InputError, match="no attack called 'toy'"):
        ATTACKS.find("toy")


class Pairs(LazyTable):
    """A table that a file names by its size alone."""

    schema = pa.schema({"sex": pa.string(), "job": pa.string()})

    def __init__(self, rows):
        self._table = pa.table({"sex": ["F", "M"] * rows, "job": ["a", "b"] * rows})

    def fetch(self, names, count=None):
        yield from self._table.select(list(names)).to_batches()


def test_an_input_format(cli, tmp_path):
    def opened(files, how):
        return Pairs(int(Path(files[0]).read_text()))

    toy = Format("toy", "Toy", (".toy",), opened)
    file = tmp_path / "ten.toy"
    file.write_text("10")
    with pytest.raises(InputError, match=r"'ten\.toy' is not known"):
        rp.describe(file)
    with FORMATS.including(toy):
        with rp.read(file, sensitive="job", public="all") as table:
            assert table.schema.records == 20
        assert "SAS, Excel or Toy file" in " ".join(
            cli("audit", "--help").out.replace("│", " ").split()
        )
        assert ".toy" in upload_endings()
        page = str(step_open.panel({}))
        assert ".toy" in page and "Excel or Toy" in page
        with pytest.raises(InputError, match=r"Known: .*Toy \(\.toy\)"):
            rp.describe(__file__)
        with pytest.raises(InputError, match=r"\.toy files are read by DuckDB"):
            check_path("ten.toy")
        assert "| Toy | `.toy` | no |" in registry_tables.table("formats")


def test_an_engine(cli, tmp_path, monkeypatch):
    """One that shares nothing with DuckDB but the base class, over a list of rows."""
    opened = []

    def open_table(source, **settings):
        opened.append((source, settings))
        return Toy(source)

    module = SimpleNamespace(open_table=open_table)
    monkeypatch.setitem(sys.modules, "reconpriv.engines.toy.engine", module)
    toy = EngineKind("toy", "Toy", "Toy in a sandpit")
    file = tmp_path / "people.parquet"
    pa.parquet.write_table(people(), file)
    given = (file, "-s", "job", "--public=all", "--missing", "value", "--json")
    said, files = [], []
    with ENGINES.including(toy):
        for engine in ("toy", "duckdb"):
            done = cli("audit", *given, "--engine", engine, "--preset", "paper")
            said.append(json.loads(done.out))
            for file_format in FORMATS_OF_RELEASES:
                out = tmp_path / f"{engine}-{file_format}"
                with rp.read(
                    file, sensitive="job", public="all", missing="value", engine=engine
                ) as table:
                    assert table.engine.name == engine
                    table.publish(
                        rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3, margins=1.0), out,
                        key=numbered_key(1),
                        file_format=file_format,
                    )  # fmt: skip
                files.append(freeze.hashes(out))
        text = " ".join(cli("audit", "--help").out.replace("│", " ").split())
        assert "DuckDB on one machine, Spark on many or Toy in a sandpit" in text
        assert offers("reconpriv audit x --engine t") == ["toy"]
    assert said[0] == said[1] and said[0]["violating_groups"] > 0
    formats = len(FORMATS_OF_RELEASES)
    assert files[:formats] == files[formats:] and len(opened) == 1 + formats
    with pytest.raises(InputError, match="no engine called 'toy'"):
        rp.read(file, sensitive="job", public="all", engine="toy")


def test_every_ending_that_a_reader_knows_is_registered():
    statistical = {e for name in ("spss", "stata", "sas") for e in FORMATS[name].endings}
    assert statistical == set(PROGRAMS)
    endings = [ending for one in FORMATS.values() for ending in one.endings]
    assert len(endings) == len(set(endings))


def test_the_tables_of_the_documents_are_up_to_date():
    pages = registry_tables.pages()
    for page in pages:
        text = page.read_text(encoding="utf-8")
        assert text == registry_tables.renewed(text), "run python tools/registry_tables.py"
    assert sorted(name for names in pages.values() for name in names) == sorted(
        registry_tables.TABLES
    )

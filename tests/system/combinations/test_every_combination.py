"""Every part goes with every other: one walk over all policies, both engines and all actions.

docs/combinations.md lists what is refused, and why; nothing else may be.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import freeze
import reconpriv as rp
from reconpriv.answers.beside_truth import ask
from reconpriv.ask.form import FormQuestion
from reconpriv.attacks.run import ATTACKS, Effort, attack, attack_release, on_releases
from reconpriv.studio.pieces.policy_controls import controls_of, policy_of
from reconpriv.studio.pieces.verdict import verdict_card
from reconpriv.studio.steps.ask import answer_card
from reconpriv.studio.work.plan import DeclaredRoles, PublicationPlan
from reconpriv.studio.work.workspace import Workspace

SIZES, BOUNDS = ("octave", "public", "none"), ("chernoff", "exact")
MARGINS: tuple[float | None, ...] = (None, 1.0)
PROTECTED: tuple[dict[str, Any] | None, ...] = (None, {"age": 10})
Combination = tuple[str, str, float | None, dict[str, Any] | None]
COMBINATIONS: list[Combination] = list(itertools.product(SIZES, BOUNDS, MARGINS, PROTECTED))
EVERYTHING = ("octave", "exact", 1.0, PROTECTED[1])
LITTLE = Effort(keys=1, releases=4, updates=2, draws=10, worst=2)
ROLES = DeclaredRoles("what", ("sex", "town", "age"), bins={"age": "5"})

# Not a refusal of a combination: this table has no column that says who a row is about.
NEEDS_A_PERSON = "persons"


def name_of(one: Combination) -> str:
    size, bound, margins, protect = one
    parts = (size, bound, "margins" if margins else "", "protected" if protect else "")
    return "-".join(part for part in parts if part)


@dataclass
class Walk:
    """One policy on one engine, and what every action leaves for the next."""

    combination: Combination
    engine: str
    table: rp.Table
    file: Path
    folder: Path
    key: rp.Key

    @cached_property
    def policy(self) -> rp.Policy:
        size, bound, margins, protect = self.combination
        delta, above = (0.05, 0.25) if bound == "exact" else (0.3, 0.0)
        return rp.Policy(
            retention=0.5, tolerance=0.5, doubt=delta, bound=bound, sampling=size, margins=margins,
            protect=protect, exposed_above=above,
        )  # fmt: skip

    @property
    def whole(self) -> bool:
        """True if every attack is made, not only two."""
        return self.combination == EVERYTHING and self.engine == "duckdb"

    def audit(self) -> None:
        columns = len(actions_on(self.engine, self.combination)) > 2
        report = self.table.audit(self.policy, columns=columns)
        assert report.groups == sum(part.num_rows for part in self.table.audit_groups(self.policy))
        assert bool(report.protection) == bool(self.policy.protect)
        assert {one.without is not None for one in report.columns} == {columns}

    def publish(self) -> None:
        release = self.table.publish(self.policy, self.folder / "release", key=self.key)
        assert bool(release.description.protect) == bool(self.policy.protect)
        assert bool(release.description.margins) == bool(self.policy.margins)

    @cached_property
    def release(self) -> rp.Release:
        return rp.open(self.folder / "release")

    def query(self) -> None:
        truth = self.table.count(sex="f", what="cold")
        found = self.release.count(sex="f", what="cold", confidence=1 - 1e-9)
        assert found.low <= truth <= found.high
        rows = self.release.sql(
            "SELECT sex, avg(age), share(town = 'A') FROM release WHERE what = 'flu' GROUP BY sex"
        )
        assert len(rows.rows) == 2

    def crosstab(self) -> None:
        assert len(self.release.crosstab(["town", "what"], shares="row").rows) == 6 * 7

    def tune(self) -> None:
        found = self.table.tune(
            current=self.policy, retentions=[0.5], tolerances=[0.5], doubts=[self.policy.doubt],
            samplings=[self.policy.sampling], queries=200, pooled=False,
        )  # fmt: skip
        assert found.current.policy.protect == self.policy.protect
        assert bool(found.current.margins) == bool(self.policy.margins)

    def attack(self) -> None:
        names = [*ATTACKS] if self.whole else ["micro", "pool"]
        for name in names:
            if name != NEEDS_A_PERSON:
                assert attack(name, self.table, self.policy, LITTLE).verdict
        for name in on_releases() if self.whole else ["micro"]:
            assert attack_release(name, self.folder / "release").verdict

    def report(self) -> None:
        self.release.report(self.folder / "analysts.html")
        self.table.report(self.policy, self.folder / "internal.html")
        for name in ("analysts.html", "internal.html"):
            assert (self.folder / name).stat().st_size > 10_000

    def studio(self) -> None:
        """The steps of the page, as its server takes them.

        The studio opens a file with DuckDB; its release is that of either engine.
        """
        lines = [f"{name},{how}" for name, how in (self.combination[3] or {}).items()]
        policy = policy_of(controls_of(self.policy) | {"protect": "\n".join(lines)})
        assert policy == self.policy
        home = self.folder / "studio"
        home.mkdir()
        workspace = Workspace(home)
        try:
            loaded = workspace.load(workspace.look(str(self.file)), ROLES)
            report = workspace.audit(loaded, policy, worst=2)
            setting = loaded.tuner.setting(policy.on(loaded.tuner.schema))
            assert str(verdict_card(report, policy, setting))
            plan = PublicationPlan(str(self.file), ROLES, policy)
            published = workspace.publish(loaded, plan, self.key, generated=False)
            assert freeze.hashes(published.release.path) == freeze.hashes(self.folder / "release")
            question = FormQuestion(value="2", where="sex = 'f'")
            assert str(answer_card(ask(published.release.answerer, loaded.table.truth, question)))
            reports = workspace.write_reports(published)
            assert all(isinstance(one, Path) for one in reports.values()), reports
        finally:
            workspace.close()


ACTIONS: dict[str, Callable[[Walk], None]] = {
    "audit": Walk.audit, "publish": Walk.publish, "query": Walk.query, "crosstab": Walk.crosstab,
    "tune": Walk.tune, "attack": Walk.attack, "report": Walk.report, "studio": Walk.studio,
}  # fmt: skip


def actions_on(engine: str, combination: Combination) -> list[str]:
    """All of them; on Spark only a few combinations are read, because releases are the same.

    `make study` walks everything on both engines.
    """
    _, bound, margins, protect = combination
    if engine == "duckdb" or os.environ.get("RECONPRIV_STUDY") == "full":
        return [*ACTIONS]
    read = bound == "exact" and bool(margins) and bool(protect)
    return [
        "audit",
        "publish",
        *(["query", "crosstab", "tune", "attack", "report"] if read else []),
    ]


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("table") / "table.parquet"
    pq.write_table(freeze.records_of("texts"), found)
    return found


@pytest.fixture(scope="module")
def tables(spark: Any, file: Path) -> Iterator[dict[str, rp.Table]]:
    """The same table behind both engines."""
    sources = {"duckdb": file, "spark": spark.read.parquet(str(file))}
    found = {name: rp.read(source, **ROLES.arguments) for name, source in sources.items()}
    yield found
    for table in found.values():
        table.close()


@pytest.mark.parametrize("combination", COMBINATIONS, ids=name_of)
def test_everything_can_be_done_with_every_policy_on_both_engines(
    combination: Combination, tables: dict[str, rp.Table], file: Path, key: rp.Key, tmp_path: Path
) -> None:
    refused, files = [], {}
    for engine, table in tables.items():
        (tmp_path / engine).mkdir()
        walk = Walk(combination, engine, table, file, tmp_path / engine, key)
        for name in actions_on(engine, combination):
            try:
                ACTIONS[name](walk)
            except rp.ReconprivError as error:
                refused.append(f"{name} on {engine}: {error}")
        files[engine] = freeze.hashes(tmp_path / engine / "release")
    assert not refused
    assert files["duckdb"] == files["spark"]

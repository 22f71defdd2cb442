"""Every part goes with every other: one walk over all policies, both engines and all actions.

docs/combinations.md lists what is refused, and why; nothing else may be.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import freeze
import reconpriv as rp
from reconpriv.attacks.run import ATTACKS, Effort, attack, attack_release, on_releases

SIZES, BOUNDS = ("octave", "public", "none"), ("chernoff", "exact")
MARGINS: tuple[float | None, ...] = (None, 1.0)
PROTECTED: tuple[dict[str, Any] | None, ...] = (None, {"age": 10})
Combination = tuple[str, str, float | None, dict[str, Any] | None]
COMBINATIONS: list[Combination] = list(itertools.product(SIZES, BOUNDS, MARGINS, PROTECTED))
EVERYTHING = ("octave", "exact", 1.0, PROTECTED[1])
LITTLE = Effort(keys=1, releases=4, updates=2, draws=10, worst=2)
ROLES = {"sensitive": "what", "public": ["sex", "town", "age"]}

# Not a refusal of a combination: this table has no column that says who a row is about.
NEEDS_A_PERSON = "persons"


def policy_of(one: Combination) -> rp.Policy:
    size, bound, margins, protect = one
    delta, above = (0.05, 0.25) if bound == "exact" else (0.3, 0.0)
    return rp.Policy(
        0.5, 0.5, delta, bound=bound, sample_size=size, margins=margins, protect=protect,
        exposed_above=above,
    )  # fmt: skip


def name_of(one: Combination) -> str:
    size, bound, margins, protect = one
    parts = (size, bound, "margins" if margins else "", "protected" if protect else "")
    return "-".join(part for part in parts if part)


@pytest.fixture(scope="module")
def tables(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, rp.Table]]:
    """The same table behind both engines."""
    file = tmp_path_factory.mktemp("table") / "table.parquet"
    pq.write_table(freeze.records_of("texts"), file)
    recoded = {"bin": {"age": 5}}
    found = {
        "duckdb": rp.read(file, **ROLES, **recoded),
        "spark": rp.read(spark.read.parquet(str(file)), **ROLES, **recoded),
    }
    yield found
    for table in found.values():
        table.close()


@pytest.mark.parametrize("combination", COMBINATIONS, ids=name_of)
def test_everything_can_be_done_with_every_policy_on_both_engines(
    combination: Combination, tables: dict[str, rp.Table], key: rp.Key, tmp_path: Path
) -> None:
    policy = policy_of(combination)
    _, _, margins, protect = combination
    files, groups = {}, {}
    for engine, table in tables.items():
        groups[engine] = table.audit(policy, columns=True).groups
        release = table.publish(policy, tmp_path / engine, key=key)
        files[engine] = freeze.hashes(tmp_path / engine)
    assert groups["duckdb"] == groups["spark"]
    assert files["duckdb"] == files["spark"]
    assert ("margins.parquet" in files["duckdb"]) == bool(margins)
    assert bool(release.description.protect) == bool(protect)

    release = rp.open(tmp_path / "duckdb")
    truth = tables["duckdb"].count(sex="f", what="cold")
    assert release.count(sex="f", what="cold").low <= truth + 100
    assert len(release.crosstab(["town", "what"]).rows) == 6 * 7
    assert release.sql("SELECT sex, avg(age) FROM release WHERE what = 'flu' GROUP BY sex").rows
    release.report(tmp_path / "analysts.html")

    table = tables["duckdb"]
    size = combination[0]
    tuned = table.tune(
        current=policy, retentions=[0.5], epsilons=[0.5], deltas=[policy.delta],
        sample_sizes=[size], queries=200, pooled=False,
    )  # fmt: skip
    assert tuned.current.policy.protect == policy.protect
    table.report(policy, tmp_path / "internal.html")
    for file in ("analysts.html", "internal.html"):
        assert (tmp_path / file).stat().st_size > 10_000
    some = list(ATTACKS) if combination == EVERYTHING else ["micro", "pool"]
    for name in some:
        if name != NEEDS_A_PERSON:
            assert attack(name, table, policy, LITTLE).verdict
    for name in on_releases() if combination == EVERYTHING else ["micro"]:
        assert attack_release(name, tmp_path / "duckdb").verdict

"""Records and margins combined: against dense matrices, wherever the cells are."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import reconpriv as rp
from margin_fixtures import InMemory, cube_of, margin_key, publish_in_memory, schema_of, skewed_rows
from query_fixtures import people
from reconpriv.answers.answerer import Answerer
from reconpriv.cells.cube import Cube, with_protection
from reconpriv.columns.schema import Column, Kind
from reconpriv.estimate import linear, measurements
from reconpriv.estimate.counts import Settings
from reconpriv.estimate.measurements import prepare_margins
from reconpriv.estimate.totals import WeightedTotal, indicator, totals
from reconpriv.protect.margins.noise import adjusted
from reconpriv.protect.margins.tables import index_rows, rows_of
from reconpriv.release import load
from reconpriv.release import stored_cells as stored

P, M = 0.5, 4
SIZES = ("none", "octave", "public")


@cache
def made(size: str) -> InMemory:
    raw = cube_of(skewed_rows((4, 3, 3), M, 5), schema_of(3, M))
    policy = rp.Policy(
        retention=P, tolerance=0.5, doubt=0.3, sampling=size, margins=rp.Margins(1.0)
    )
    return publish_in_memory(raw, policy, margin_key(1))


class Dense:
    """Generalised least squares with whole matrices of groups."""

    def __init__(self, release: InMemory) -> None:
        cube = release.cube
        self.counts = np.zeros((cube.groups, M))
        self.counts[cube.group, cube.value] = cube.count
        self.n, self.size = cube.trials, cube.records.astype(float)
        batch = release.raw.as_batch()
        schema = release.raw.schema
        rows = rows_of(index_rows(release.plan.published, schema), batch.public, schema)
        self.b = np.zeros((sum(t.rows for t in release.plan.published), cube.groups))
        for column in rows.T:
            inside = np.flatnonzero(column >= 0)
            self.b[column[inside], inside] = 1
        noisy = np.concatenate([table.counts for table in release.plan.published])
        self.margins = adjusted(noisy, self.b @ self.size)
        self.noise = release.plan.variance
        self.public = np.stack(
            [v.take(c).to_numpy() for c, v in zip(cube.codes, cube.values, strict=True)], axis=1
        )

    def answer(self, chosen: np.ndarray, values: list[int]) -> tuple[float, float]:
        """The count and its variance; exact variances only without sampling."""
        k = len(values)
        t = k * (1 - P) / M
        r = P + t
        observed = self.counts[:, values].sum(axis=1)
        held = (observed - t * self.size) / P
        whole = self.counts[:, values].sum(axis=0)
        each = np.clip((whole - (1 - P) / M * self.size.sum()) / P / self.size.sum(), 0, 1)
        share = min(each.sum(), 1)
        one = (share * r * (1 - r) + (1 - share) * t * (1 - t)) / P**2
        assumed = np.diag(self.size**2 / self.n * one)
        q = chosen.astype(float)  # a group may be asked about by share
        noise = self.noise * k * (1 - k / M)
        matrix = self.b @ assumed @ self.b.T + noise * np.eye(self.b.shape[0])
        weights = np.linalg.solve(matrix, self.b @ assumed @ q)
        margins = self.margins[:, values].sum(axis=1)
        count = q @ held + weights @ (margins - self.b @ held)
        scale = self.size / self.n
        shown = scale * (held * r * (1 - r) + (self.size - held) * t * (1 - t)) / P**2
        moved = q - self.b.T @ weights
        return count, moved**2 @ shown + noise * weights @ weights


CASES = [
    ({"a": 1, "s": 2}, lambda g: g[:, 0] == 1, [2]),
    ({"a": 2, "b": 0, "s": 0}, lambda g: (g[:, 0] == 2) & (g[:, 1] == 0), [0]),
    ({"s": 3}, lambda g: g[:, 0] >= 0, [3]),
    ({"c": 1, "s": [0, 2]}, lambda g: g[:, 2] == 1, [0, 2]),
    ({"a": 0, "b": 1, "c": 2, "s": [1, 2, 3]}, lambda g: (g == [0, 1, 2]).all(axis=1), [1, 2, 3]),
]


def compare(found: rp.Estimate, expected: tuple[float, float], size: str) -> None:
    count, variance = expected
    assert found.count == pytest.approx(count, rel=1e-6, abs=1e-6)
    # With sampling, rounded quotas and uneven copies add a little.
    most = 1.0 + 1e-5 if size == "none" else 1.25
    assert 1 - 1e-5 <= found.standard_error**2 / variance <= most
    assert found.low <= min(max(found.count, 0), found.records) <= found.high
    assert found.low < found.high
    assert 0 <= found.from_margins <= 1


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("case", range(len(CASES)))
def test_a_count_is_that_of_dense_generalised_least_squares(size: str, case: int) -> None:
    asked, chosen, values = CASES[case]
    release, dense = made(size), Dense(made(size))
    answerer = release.answerer
    found = answerer.count(answerer.select(None, asked), Settings())
    compare(found, dense.answer(chosen(dense.public), values), size)
    alone = answerer.count(answerer.select(None, asked), Settings("records"))
    assert alone.from_margins == 0
    assert found.standard_error < alone.standard_error
    taken = 1 - (found.standard_error / alone.standard_error) ** 2
    assert found.from_margins == pytest.approx(taken, rel=1e-6)


@pytest.mark.parametrize("size", SIZES)
def test_a_batch_is_that_of_dense_generalised_least_squares(
    size: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many pairs of a question and a group are looked at together."""
    release, dense = made(size), Dense(made(size))
    answerer = release.answerer
    single = [case for case in CASES if len(case[2]) == 1]
    selected = [answerer.select(None, asked) for asked, *_ in CASES]
    answers = answerer.count_many(selected, Settings())
    assert len(single) == 3
    for found, (_, chosen, values) in zip(answers, CASES, strict=True):
        compare(found, dense.answer(chosen(dense.public), values), size)
    monkeypatch.setattr(linear, "_PAIRS_AT_ONCE", 3)
    monkeypatch.setattr(measurements, "_DENSE", 3)
    again = release.answerer.count_many(selected, Settings())
    assert [one.count for one in again] == pytest.approx([one.count for one in answers])
    assert [one.low for one in again] == pytest.approx([one.low for one in answers])


@pytest.mark.parametrize("size", SIZES)
def test_tables_of_counts_are_those_of_dense_generalised_least_squares(size: str) -> None:
    release, dense = made(size), Dense(made(size))
    answerer = release.answerer
    by_both = answerer.table(answerer.select("b < 2", {}), ["a", "s"], Settings())
    assert len(by_both) == 4 * M
    for label, found in by_both:
        chosen = (dense.public[:, 0] == label["a"]) & (dense.public[:, 1] < 2)
        compare(found, dense.answer(chosen, [label["s"]]), size)
    of_set = answerer.table(answerer.select("s >= 2", {}), ["c", "b"], Settings())
    assert len(of_set) == 9
    for label, found in of_set:
        chosen = (dense.public[:, 2] == label["c"]) & (dense.public[:, 1] == label["b"])
        compare(found, dense.answer(chosen, [2, 3]), size)


def test_a_count_over_public_columns_alone_stays_exact() -> None:
    answerer = made("public").answerer
    found = answerer.count(answerer.select(None, {"a": 1}), Settings())
    assert found.exact
    assert found.from_margins == 0


def test_an_empty_selection_is_nobody() -> None:
    answerer = made("public").answerer
    found = answerer.count(answerer.select("a = 1 AND a = 2 AND s = 1", {}), Settings())
    assert (found.count, found.from_margins) == (0, 0)


def test_the_constrained_estimator_uses_margins_and_stays_possible() -> None:
    answerer, raw = made("public").answerer, made("public").raw
    rows = answerer.table(answerer.select(None, {"a": 1, "b": 1}), ["s"], Settings("constrained"))
    counts = np.array([found.count for _, found in rows])
    assert counts.min() >= 0
    inside = (raw.codes[0] == 1) & (raw.codes[1] == 1)
    assert counts.sum() == pytest.approx(raw.records[inside].sum())
    assert all(found.from_margins > 0 for _, found in rows)


# --- with protection groups -------------------------------------------------------------------


def dealt(size: str) -> tuple[Answerer, np.ndarray]:
    """The groups as protection groups, each cut in two by a further column; and the first shares.

    Which sensitive values were dealt to which half is nothing that an estimate rests on.
    """
    whole = made(size).cube
    rng = np.random.default_rng(4)
    first = rng.integers(0, whole.records + 1)
    halves = np.stack([first, whole.records - first], axis=1).reshape(-1)
    some = np.flatnonzero(halves)
    within, half = some // 2, (some % 2).astype(np.int32)
    schema = replace(whole.schema, public=(*whole.schema.public, Column("half", Kind.INTEGER)))
    micro = Cube(
        schema=schema,
        codes=(*(codes[within] for codes in whole.codes), half),
        values=(*whole.values, pa.array([0, 1])),
        records=halves[some],
        trials=halves[some].astype(float),
        group=np.arange(some.size),
        value=np.zeros(some.size, dtype=np.int64),
        count=halves[some],
    )
    cells = with_protection(micro, whole, within)
    design = made(size).answerer.design
    told = prepare_margins(cells, made(size).plan.published, made(size).plan.variance, design)
    return Answerer(cells, design, told), first / whole.records


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("case", range(len(CASES)))
def test_parts_of_protection_groups_get_their_share_of_least_squares(size: str, case: int) -> None:
    """B adds up whole protection groups, and a selection enters by its shares of them."""
    asked, chosen, values = CASES[case]
    (answerer, share), dense = dealt(size), Dense(made(size))
    part = chosen(dense.public) * share
    found = answerer.count(answerer.select(None, asked | {"half": 0}), Settings())
    compare(found, dense.answer(part, values), size)
    assert found.cut_groups == np.sum((part > 0) & (part < 1))
    # Whole protection groups are answered as if nothing had been dealt.
    whole = answerer.count(answerer.select(None, asked), Settings())
    plain = made(size).answerer.count(made(size).answerer.select(None, asked), Settings())
    assert (whole.count, whole.low, whole.high) == pytest.approx(
        (plain.count, plain.low, plain.high)
    )
    # The same as a weighted total, by its own covariances.
    wanted = WeightedTotal(answerer.select(None, asked | {"half": 0}), indicator(values, M))
    total = totals(answerer, [wanted])
    assert total.estimates[0, 0] == pytest.approx(found.count)
    if size == "none":
        assert total.covariances[0, 0, 0] == pytest.approx(found.standard_error**2)
    rows = answerer.table(answerer.select(None, asked), ["half"], Settings())
    assert sum(one.count for _, one in rows) == pytest.approx(whole.count)


# --- a release on disk ----------------------------------------------------------------------------


@pytest.fixture(scope="module", params=["octave", "paper"])
def folder(request, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("margins") / "release"
    policy = rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3, sampling=request.param, margins=0.4)
    with rp.read(people(), sensitive="job", public="all", missing="value") as table:
        table.publish(policy, path, key=margin_key(1))
    return path


def test_cells_on_disk_give_the_same_answers_as_cells_in_memory(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def asked() -> list[rp.Estimate]:
        release = rp.open(folder)
        tables = (
            release.sql("SELECT region, job, count(*) FROM release GROUP BY region, job"),
            release.sql(
                "SELECT floor(age / 5), count(*) FROM release WHERE job IN ('nurse', 'pilot')"
                " GROUP BY floor(age / 5)"
            ),
            release.frequencies("age < 25 AND region IS NULL"),
            release.crosstab(["Sex"], "job IS NULL"),
        )
        found = [estimate for table in tables for _, estimate in table.rows]
        found += release.count_many(
            [{"Sex": "F", "job": "nurse"}, {"region": None, "job": "clerk"}, {"age": 22}]
        )
        found.append(release.count("Sex = 'M' AND job <> 'nurse'"))
        return found

    in_memory = asked()
    monkeypatch.setattr(load, "_IN_MEMORY", 0)
    monkeypatch.setattr(stored, "CELLS_PER_PART", 60)
    monkeypatch.setattr("reconpriv.engines.duckdb.groups.BATCH", 50)
    monkeypatch.setattr("reconpriv.engines.duckdb.groups._LEAST_BATCH", 50)
    cells = rp.open(folder).answerer.cells
    assert isinstance(cells, stored.StoredCells)
    assert cells.number > 3
    on_disk = asked()
    for one, other in zip(in_memory, on_disk, strict=True):
        for name in ("count", "low", "high", "standard_error", "from_margins"):
            mine, theirs = getattr(one, name), getattr(other, name)
            assert theirs == pytest.approx(mine, rel=1e-5, abs=1e-5), (one.query, name)
    assert sum(one.from_margins > 0.05 for one in in_memory) > 10

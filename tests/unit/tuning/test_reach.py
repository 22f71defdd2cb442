"""Targets together: a setting is found if brute force finds one; if not, what is in the way."""

from __future__ import annotations

from dataclasses import replace
from functools import cache, partial
from itertools import product

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

import reconpriv as rp
from reconpriv.attacks.pool import pooled_share
from reconpriv.tuning.reach import GOALS, excesses, missed
from reconpriv.tuning.report import Target
from reconpriv.tuning.sweep import EXACT, sweep

RECOMMENDED = rp.preset("recommended")
GRID = {"retentions": [0.3, 0.5], "samplings": ["octave", "public"]}
FIGURES = {goal.field: goal.figure for goal in GOALS if goal.field != "rho2"}
DIRECTIONS = {"max_error": 1, "max_reconstructed": 1, "max_pooled": 1, "min_group_error": -1}


def made_table():
    """36 groups of 30 to 400 people, each with a value of its own that a third to most hold."""
    draw = np.random.default_rng(7)
    columns: dict[str, list[object]] = {name: [] for name in "abcs"}
    for a, b, c in product(range(4), range(3), range(3)):
        size, share = int(draw.integers(30, 400)), draw.uniform(0.3, 0.8)
        own = (2 * a + b) % 6
        values = np.where(draw.random(size) < share, own, draw.integers(0, 6, size))
        for name, value in zip("abc", (a, b, c), strict=True):
            columns[name] += [value] * size
        columns["s"] += values.tolist()
    return pa.table(columns)


@pytest.fixture(scope="module")
def tuner():
    with rp.read(made_table(), sensitive="s", public=["a", "b", "c"]) as table:
        return table.tuner(queries=200)


@pytest.fixture(scope="module")
def pooled(tuner):
    return cache(partial(pooled_share, tuner.cube, exposing=RECOMMENDED))


@pytest.fixture(scope="module")
def every(tuner, pooled):
    """All settings of the grid, each with its figure of pooling."""
    settings = sweep(tuner, current=RECOMMENDED, **GRID).settings
    assert len(settings) == 2 * 2 * len(EXACT.doubts)
    return [replace(one, pooled=pooled(one.policy)) for one in settings if one.eligible]


@pytest.fixture
def tuned(tuner, pooled):
    def report(target):
        return sweep(tuner, current=RECOMMENDED, target=target, pooled=pooled, **GRID)

    return report


def limits(every):
    """Triples of limits, each the figure of some setting or half of it: many are out of reach."""
    draw = np.random.default_rng(1)
    names = ("max_error", "max_reconstructed", "max_pooled")
    some = [one for one in every if one.error < 0.9]
    picks = draw.integers(len(some), size=(60, len(names)))
    factors = draw.choice([0.5, 1.001], p=[0.2, 0.8], size=picks.shape)
    return [
        {
            name: factor * getattr(some[pick], FIGURES[name])
            for name, pick, factor in zip(names, row, scaled, strict=True)
        }
        for row, scaled in zip(picks, factors, strict=True)
    ]


def test_three_targets_are_reached_together_if_brute_force_finds_a_setting(every, tuned):
    found = 0
    for limit in limits(every):
        target = Target(**limit)
        reaching = [one for one in every if not missed(one, target)]
        report = tuned(target)
        assert (report.recommended is not None) == bool(reaching), limit
        if reaching:
            assert not missed(report.recommended, target) and not report.obstacles
            found += 1
    assert 5 < found < 55


def test_where_none_is_found_the_obstacle_and_its_best_value_are_those_of_brute_force(every, tuned):
    seen = set()
    for limit in limits(every):
        target = Target(**limit)
        report = tuned(target)
        if report.recommended is not None:
            continue
        best = {}
        for name in limit:
            others = replace(target, **{name: None})
            rest = [one for one in every if not missed(one, others)]
            if rest:
                best[name] = min(getattr(one, FIGURES[name]) for one in rest)
        assert {one.name: one.best for one in report.obstacles} == pytest.approx(best), limit
        misses = [excesses(one.setting, target)[one.name] for one in report.obstacles]
        assert misses == sorted(misses) and min(misses, default=1.0) > 0
        seen.add(len(best))
    assert {1, 2} <= seen


@pytest.mark.parametrize("name", [*FIGURES])
def test_the_value_that_is_said_to_be_reachable_is(every, tuned, name):
    sign = DIRECTIONS[name]
    best = min(sign * getattr(one, FIGURES[name]) for one in every) * sign
    report = tuned(Target(**{name: best * (1 - sign * 0.1)}))
    assert report.recommended is None and [one.name for one in report.obstacles] == [name]
    said = report.verdict.partition(" at best ")[2].partition("%")[0]
    assert tuned(Target(**{name: float(said) / 100})).recommended is not None
    assert report.as_dict()["obstacles"] == [{"name": name, "best": pytest.approx(best)}]


def test_the_obstacle_is_one_sentence(every, tuned):
    least = min(one.reconstructed for one in every)
    report = tuned(Target(max_error=0.9, max_reconstructed=0.5 * least))
    assert "The obstacle is the share of people reconstructed: with the other" in report.verdict
    strict = min(one.reconstructed for one in every if one.error < 0.9)
    error = min(one.error for one in every if one.reconstructed <= strict)
    both = tuned(Target(max_error=0.9 * error, max_reconstructed=strict * 1.001))
    first, second = ("the error", "the share of people reconstructed")
    if both.obstacles[0].name != "max_error":
        first, second = second, first
    assert f"The obstacle is {first}, which is at best" in both.verdict
    assert f" with the other targets kept, or {second}, at best" in both.verdict
    none = tuned(Target(max_error=1e-6, max_reconstructed=1e-6))
    assert not none.obstacles
    assert "To give up one of these targets would not be enough." in none.verdict


def test_what_is_slow_to_judge_is_tried_only_if_nothing_else_reaches_the_target(tuner):
    """With margins: the current sampling rule and single records first."""
    first = sweep(tuner, current=RECOMMENDED, target=Target(max_error=0.9))
    assert first.recommended is not None
    assert {one.sampling for one in first.settings} == {"octave"}
    assert max(one.retention for one in first.settings) == 0.5
    every = sweep(tuner, current=RECOMMENDED, target=Target(max_error=1e-6), doubts=[0.05])
    assert {one.sampling for one in every.settings} == {"octave", "public"}
    assert {one.retention for one in every.settings} == {*EXACT.retentions}
    assert {(one.bound, one.margins_epsilon) for one in every.settings} == {("exact", 1.0)}
    overview = sweep(tuner, current=RECOMMENDED)
    assert {one.policy for one in overview.settings} == {one.policy for one in first.settings}


# Tables that the recommended policy is changed for.


def test_two_values_get_a_smaller_p_and_one_column_no_margins(cli, tmp_path):
    draw = np.random.default_rng(3)
    rows = 2_000
    table = pa.table(
        {"sex": draw.choice(["f", "m"], rows), "age": draw.integers(20, 30, rows),
         "ill": draw.choice(["no", "yes"], rows, p=[0.7, 0.3])}
    )  # fmt: skip
    with rp.read(table, sensitive="ill", public=["sex", "age"]) as opened:
        report = opened.tune(max_error=0.9, queries=50, pooled=False)
    assert report.current.retention == 0.49 and report.current.margins
    assert report.standing.endswith("would leave no number of trials that keeps the promise.")
    assert report.recommended.retention <= 0.49 and report.recommended.bound == "exact"
    pa.csv.write_csv(table, tmp_path / "t.csv")
    asked = ("tune", tmp_path / "t.csv", "-s", "ill", "--public", "age", "--max-error", 0.9,
             "--queries", 50)  # fmt: skip
    done = cli(*asked)
    assert done.code == 0, done.err
    said = " ".join(done.out.split())
    assert (
        "p = 0.49 instead of 0.5: with two sensitive values" in said
        and "No margins are published" in said
    )
    assert "--margins 0" in said and "--margins 1" not in said
    given = cli(*asked, "--preset", "recommended", "--current", "p=0.4,margins=0", "--json")
    assert given.code == 0, given.err
    assert "two sensitive values" not in given.out

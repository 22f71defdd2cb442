"""Questions to a release with protection groups: exact, whole, or by share."""

import hashlib
from dataclasses import replace

import numpy as np
import pandas
import pyarrow as pa
import pytest

import reconpriv as rp
from reconpriv.answers.answerer import Answerer
from reconpriv.cells.cube import collect
from reconpriv.errors import InputError
from reconpriv.estimate.counts import Design, Settings
from reconpriv.protect.publish_cube import published_cube

POLICY = rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3, sampling="public", protect={"age": 10})
CUT = "protection group"


def records(n=4_000):
    rng = np.random.default_rng(1)
    age = rng.integers(20, 40, n)
    sex = rng.choice(["f", "m"], n)
    ill = np.where(rng.random(n) < np.where(age < 30, 0.7, 0.3), "x", rng.choice(list("yz"), n))
    return pa.table({"age": age, "sex": sex, "ill": ill})


TABLE = records()
FRAME = TABLE.to_pandas()


def key(number):
    return rp.Key(hashlib.sha256(f"questions {number}".encode()).digest())


@pytest.fixture(scope="module")
def raw():
    with rp.read(TABLE, sensitive="ill", public="all") as opened:
        return collect(opened.batches(), opened.schema)


@pytest.fixture(scope="module")
def release(tmp_path_factory):
    with rp.read(TABLE, sensitive="ill", public="all") as opened:
        return opened.publish(POLICY, tmp_path_factory.mktemp("r") / "r", key=key(1))


def shares(mask):
    """w of each protection group: the share of its records that satisfy a condition."""
    groups = [FRAME.age // 10, FRAME.sex]
    return mask.groupby(groups).mean()


def whole_counts(release, value):
    """The estimates of the protection groups, from the coarse release alone."""
    answerer = release.group_answerer
    found = answerer.table(answerer.select(None, {"ill": value}), ["age", "sex"], Settings())
    return {(int(row["age"][0]), row["sex"]): estimate for row, estimate in found}


MASKS = {
    "age = 33": FRAME.age == 33,
    "age < 25 AND sex = 'f'": (FRAME.age < 25) & (FRAME.sex == "f"),
    "age % 2 = 0": FRAME.age % 2 == 0,
}


@pytest.mark.parametrize("where", MASKS)
def test_counts_over_public_columns_stay_exact(release, where):
    found = release.count(where)
    assert found.exact and found.count == MASKS[where].sum()
    assert not found.remarks


def test_a_whole_question_equals_that_to_the_coarse_release(release):
    coarse = release.group_answerer
    for where, theirs in (
        ("age BETWEEN 20 AND 29", {"age": "20 to 29"}),
        ("sex = 'm'", {"sex": "m"}),
        ("age < 30 AND sex = 'f'", {"age": "20 to 29", "sex": "f"}),
    ):
        ours = release.count(where, ill="x")
        other = coarse.count(coarse.select(None, theirs | {"ill": "x"}), Settings())
        for name in ("count", "low", "high", "standard_error", "records", "groups", "trials"):
            assert getattr(ours, name) == pytest.approx(getattr(other, name), abs=1e-6), name
        assert not any(CUT in remark for remark in ours.remarks)


@pytest.mark.parametrize("where", MASKS)
def test_a_question_that_cuts_groups_is_answered_by_share(release, where):
    share = shares(MASKS[where])
    each = whole_counts(release, "x")
    found = release.count(where, ill="x")
    assert found.count == pytest.approx(sum(w * each[g].count for g, w in share.items()))
    variance = sum(w**2 * each[g].standard_error ** 2 for g, w in share.items())
    assert found.standard_error == pytest.approx(variance**0.5)
    assert found.records == MASKS[where].sum()
    cut = int(((share > 0) & (share < 1)).sum())
    remark = next(remark for remark in found.remarks if CUT in remark)
    assert remark.startswith("cuts a " if cut == 1 else f"cuts {cut} ")
    assert found.low <= found.count <= found.high


def test_every_way_of_asking_gives_the_same_answer(release):
    one = release.count(age=33, sex="f", ill="x")
    table = release.crosstab(["age"], sex="f", ill="x")
    listed = {row["age"]: estimate for row, estimate in table.rows}[33]
    split = release.frequencies(age=33, sex="f")
    by_value = {row["ill"]: estimate for row, estimate in split.rows}["x"]
    grouped = release.sql(
        "SELECT age + 1 AS next, count(*) FROM release WHERE ill = 'x' AND sex = 'f' GROUP BY 1"
    )
    computed = {row["next"]: estimate for row, estimate in grouped.rows}[34]
    (batch, again) = release.count_many(
        [{"age": 33, "sex": "f", "ill": "x"}, {"age": 33, "sex": "f"}]
    )
    for other in (listed, by_value, computed, batch):
        assert other.count == pytest.approx(one.count)
        assert other.standard_error == pytest.approx(one.standard_error)
        assert other.low == pytest.approx(one.low, abs=1e-5)
        assert [r for r in other.remarks if CUT in r] == [r for r in one.remarks if CUT in r]
    assert again.exact


def test_the_parts_of_a_protection_group_add_up_to_it(release):
    parts = release.crosstab(["age"], sex="f", ill="x")
    total = sum(e.count for row, e in parts.rows if row["age"] < 30)
    assert total == pytest.approx(release.count("age < 30", sex="f", ill="x").count)


def test_possible_counts_are_possible(release):
    found = release.count(age=33, ill="x", estimator="constrained")
    assert 0 <= found.count <= found.records


def test_the_deal_itself_plays_no_part_in_an_answer(raw, release):
    """Deal again with other words: a question that cuts groups gets the same answer."""
    cube = release.answerer.cells
    group = np.repeat(cube.group, cube.count)
    value = np.repeat(cube.value, cube.count)
    rng = np.random.default_rng(5)
    order = np.lexsort((rng.random(group.size), cube.within[group]))
    by_protection = np.argsort(cube.within[group], kind="stable")
    dealt = np.empty_like(value)
    dealt[by_protection] = value[order]
    cells, count = np.unique(group * 3 + dealt, return_counts=True)
    again = replace(cube, group=cells // 3, value=cells % 3, count=count)
    assert not np.array_equal(again.count, cube.count)
    other = Answerer(again, release.answerer.design)
    selected = other.select("age = 33", {"ill": "x"})
    assert other.count(selected, Settings()) == release.count("age = 33", ill="x")


YOUNG = {"age": list(range(20, 30)), "ill": "x"}


def standardised(raw, keys):
    """(estimate - truth) / standard error of a question, and whether its interval covers."""
    truth = Answerer(raw, Design(1.0, 3, "none"))
    expected = truth.count(truth.select(None, YOUNG), Settings()).count
    scores, covered = [], []
    for number in range(keys):
        cube = published_cube(raw, POLICY, key(number))
        answerer = Answerer(cube, Design(0.5, 3, "public"))
        found = answerer.count(answerer.select(None, YOUNG), Settings())
        scores.append((found.count - expected) / found.standard_error)
        covered.append(found.low <= expected <= found.high)
    return np.array(scores), np.mean(covered)


def test_the_interval_of_a_whole_question_covers_and_its_width_is_right(raw):
    scores, covered = standardised(raw, 300)
    assert covered > 0.91
    # Σ z² is about χ²; a standard error 30 % off in either direction would be caught.
    mean = (scores**2).mean()
    assert 0.75 < mean < 1.3
    assert not 0.75 < mean / 1.3**2 < 1.3 and not 0.75 < mean / 0.7**2 < 1.3


def test_the_interval_of_a_cut_question_covers_a_departure(raw):
    """Ages differ from 30 on; half of a band that hides it is estimated by its share."""
    wide = replace(POLICY, protect={"age": 20})
    truth = (FRAME[FRAME.age < 30].ill == "x").sum()
    biased = 0
    for number in range(20):
        cube = published_cube(raw, wide, key(number))
        answerer = Answerer(cube, Design(0.5, 3, "public"))
        found = answerer.count(answerer.select(None, YOUNG), Settings())
        assert any(CUT in remark for remark in found.remarks)
        assert found.low <= truth <= found.high
        biased += found.count + 2 * found.standard_error < truth
    assert biased > 0


def test_independence_is_tested_by_protection_group(release):
    found = release.chi_square("age")
    assert found.degrees_of_freedom < 10
    assert "depends on the coarse values of age" in found.verdict and found.coarse == ("age",)
    assert "cannot tell whether ill depends on it within them" in found.remarks[0]
    plain = release.chi_square("sex")
    assert plain.p_value > 0.001
    assert not plain.coarse and not any(CUT in remark for remark in plain.remarks)


def test_parts_of_protection_groups_are_not_compared(release):
    one, other = ({"age": 33, "ill": "x"}, {"age": 34, "ill": "x"})
    with pytest.raises(InputError, match="cuts protection groups") as refused:
        release.compare(one, other)
    assert "whole protection groups" in refused.value.hint
    assert release.compare("age < 30 AND ill = 'x'", "age >= 30 AND ill = 'x'").p_value is not None
    assert release.compare({"age": 33}, {"age": 34}, of="count").exact


def test_an_ignored_column_cannot_be_tested(tmp_path):
    with rp.read(TABLE, sensitive="ill", public="all") as opened:
        found = opened.publish(replace(POLICY, protect={"sex": "*"}), tmp_path / "r", key=key(1))
    with pytest.raises(InputError, match="ignore column 'sex'"):
        found.chi_square("sex")
    share = found.count(sex="f", ill="x").count / found.count(ill="x").count
    assert share == pytest.approx(found.count(sex="f").count / TABLE.num_rows, abs=0.05)


def test_a_classifier_learns_from_shares(release):
    pytest.importorskip("sklearn")
    model = release.naive_bayes()
    young, old = model.predict_proba(pandas.DataFrame({"age": [22, 38], "sex": ["f", "f"]}))
    place = list(model.classes_).index("x")
    assert young[place] > old[place]

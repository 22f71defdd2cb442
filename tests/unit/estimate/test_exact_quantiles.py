"""Quantiles of many values and of huge ones: no grid, no rounding."""

import warnings
from decimal import Decimal

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import reconpriv as rp
from query_fixtures import numbered_key
from reconpriv.answers.answerer import Answerer
from reconpriv.ask.question import Question
from reconpriv.cells.cube import collect
from reconpriv.estimate.counts import Design, Settings
from reconpriv.estimate.measures import measure_of
from reconpriv.estimate.quantiles import NOBODY, RowSteps, quantile_rows
from reconpriv.protect.publish_cube import published_cube

# With p so near 1, limits divide by numbers that round to 0; what comes of it is not used.
pytestmark = pytest.mark.filterwarnings("ignore:divide by zero:RuntimeWarning")

HUGE = 2**60


def table(n=6_000):
    """5,000 incomes, many of them unevenly spaced, and integers that floats cannot tell apart."""
    rng = np.random.default_rng(4)
    income = rng.integers(0, 5_000, n)
    return pa.table(
        {
            "income": income**2,
            "huge": HUGE + income,
            "cents": [Decimal(HUGE + int(i)) / 100 for i in income],
            "sex": rng.choice(["f", "m"], n),
            "ill": np.where(rng.random(n) < income / 5_000, "x", rng.choice(list("yz"), n)),
        }
    )


TABLE = table()


def published(folder, columns, p=0.5, size="none", **options):
    policy = rp.Policy(retention=p, tolerance=0.5, doubt=0.3, sampling=size, **options)
    chosen = TABLE.select([*columns, "ill"])
    with rp.read(chosen, sensitive="ill", public="all") as opened:
        accepted = {"max_unique": 1, "keep_identifier": [one for one in columns if one != "sex"]}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return opened.publish(policy, folder, key=numbered_key(1), **accepted)


@pytest.fixture(scope="module")
def incomes(tmp_path_factory):
    return published(tmp_path_factory.mktemp("incomes") / "r", ["income", "sex"])


def true(sql):
    connection = duckdb.connect()
    connection.register("release", TABLE)
    return connection.sql(sql).fetchall()


@pytest.mark.parametrize("share", [0.01, 0.5, 0.937])
def test_a_column_of_many_values_has_exact_quantiles(incomes, share):
    found = incomes.quantile("income", share)
    ((expected,),) = true(f"SELECT quantile_disc(income, {share}) FROM release")
    assert found.exact and found.value == found.low == found.high == expected
    assert not found.remarks
    by = "FROM release GROUP BY sex ORDER BY sex"
    rows = incomes.sql(f"SELECT sex, quantile(income, {share}) {by}")
    expected = true(f"SELECT quantile_disc(income, {share}) {by}")
    assert [one.value for _, (one,) in rows] == [value for (value,) in expected]
    half = incomes.sql(f"SELECT quantile(income // 2 + 1, {share}) FROM release")
    assert half.exact and half.value == incomes.quantile("income", share).value // 2 + 1


def test_the_interval_among_holders_has_the_width_of_its_uncertainty(incomes):
    """A grid of 300 values gave 2,507 (2,507 to 2,507) where the truth was 2,492."""
    found = incomes.median("income", ill="x")
    ((expected,),) = true("SELECT quantile_disc(income, 0.5) FROM release WHERE ill = 'x'")
    assert not found.exact and found.low < found.value < found.high
    assert found.low <= expected <= found.high
    occurring = set(TABLE["income"].to_pylist())
    assert {found.low, found.value, found.high} <= occurring


def test_limits_of_many_values_hold():
    """Over disjoint rows and a few keys; a limit at another share would miss."""
    chosen = TABLE.select(["income", "sex", "ill"])
    frame = chosen.to_pandas()
    holders = frame[frame.ill == "x"]
    expected = holders.groupby("sex").income.quantile(0.5, interpolation="lower")
    off = [holders.groupby("sex").income.quantile(q, interpolation="lower") for q in (0.35, 0.65)]
    held, missed = [], []
    with rp.read(chosen, sensitive="ill", public="all") as opened:
        raw = collect(opened.batches(), opened.schema)
    policy = rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3, sampling="none")
    for number in range(24):
        cube = published_cube(raw, policy, numbered_key(number))
        answerer = Answerer(cube, Design.of(policy, raw.schema))
        income, ill = measure_of(answerer, "income", None), answerer.selected({"ill": "x"})
        for labels, one in quantile_rows(
            answerer, Question("quantile", ill, measure=income), ("sex",), Settings()
        ):
            held.append(one.low <= expected[labels["sex"]] <= one.high)
            missed += [one.low <= other[labels["sex"]] <= one.high for other in off]
    assert np.mean(held) > 0.89
    assert np.mean(missed) < 0.2


def test_a_search_finds_what_all_steps_give(incomes, monkeypatch):
    """With margins or protection groups steps are tried in turn; 5,000 take more than one round."""
    asked = ("SELECT sex, median(income), quantile(income, 0.9) FROM release WHERE ill = 'x'"
             " GROUP BY sex")  # fmt: skip
    at_once = incomes.sql(asked)
    monkeypatch.setattr(RowSteps, "at_once", lambda _: None)
    for (_, ours), (_, theirs) in zip(incomes.sql(asked), at_once, strict=True):
        for one, other in zip(ours, theirs, strict=True):
            # Estimates cross a border more than once; the search finds one of the crossings.
            for name in ("value", "low", "high"):
                assert getattr(one, name) == pytest.approx(getattr(other, name), rel=0.02), name


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_integers_beyond_what_floats_tell_apart(tmp_path, share):
    release = published(tmp_path / "r", ["huge", "cents"], p=0.9)
    for asked in ("huge", "huge + 1"):
        ((expected,),) = true(f"SELECT quantile_disc({asked}, {share}) FROM release")
        found = release.sql(f"SELECT quantile({asked}, {share}) FROM release")
        assert found.exact and found.value == expected and found.as_dict()["value"] == expected
    found = release.quantile("huge", share, ill="x")
    assert found.low <= found.value <= found.high and isinstance(found.value, int)
    ((expected,),) = true(f"SELECT quantile_disc(cents, {share}) FROM release")
    assert release.quantile("cents", share).value == pytest.approx(float(expected), rel=1e-15)


def test_a_sensitive_column_of_huge_integers(tmp_path):
    rng = np.random.default_rng(1)
    ill = HUGE + rng.integers(0, 9, 4_000)
    chosen = pa.table({"sex": rng.choice(["f", "m"], 4_000), "ill": ill})
    with rp.read(chosen, sensitive="ill", public="all") as opened:
        policy = rp.Policy(retention=1 - 1e-12, tolerance=0.5, doubt=0.3, sampling="none")
        release = opened.publish(policy, tmp_path / "r", key=numbered_key(1))
    found = release.median("ill")
    assert found.value == int(np.quantile(ill, 0.5, method="inverted_cdf"))
    assert found.low <= found.value <= found.high


def test_a_median_among_perhaps_nobody_may_be_anything(tmp_path):
    release = published(tmp_path / "r", ["sex", "income"])
    found = release.median("income", "income < 40", ill="x")
    below = sorted(x for x in set(TABLE["income"].to_pylist()) if x < 40)
    assert NOBODY in found.remarks
    assert (found.low, found.high) == (below[0], below[-1])


def test_margins_have_medians_of_many_values(tmp_path):
    release = published(tmp_path / "r", ["sex", "income"], margins=rp.Margins(1.0, tables=["sex"]))
    ((expected,),) = true("SELECT quantile_disc(income, 0.5) FROM release WHERE ill = 'x'")
    found = release.median("income", ill="x")
    assert found.low <= expected <= found.high
    assert found.low < found.value < found.high


def test_rows_of_few_steps_are_searched_beside_rows_of_many(tmp_path):
    """A row whose search has ended stays where it is while others go on, with margins, too."""
    rng = np.random.default_rng(3)
    group = rng.integers(0, 40, 300)
    number = rng.integers(0, 2, 300) + group % 2
    chosen = pa.table({"g": group, "x": number, "ill": rng.choice(list("abcd"), 300)})
    accepted = {"max_unique": 1, "keep_giveaway": ["g", "x"], "keep_identifier": ["g"]}
    policy = rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3, sampling="none", margins=1.0)
    with rp.read(chosen, sensitive="ill", public="all") as opened, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        release = opened.publish(policy, tmp_path / "r", key=numbered_key(1), **accepted)
        for value in "abcd":
            sql = f"SELECT g, quantile(x, 0.9) FROM release WHERE ill = '{value}' GROUP BY g"
            for labels, (one,) in release.sql(sql):
                occurring = number[group == labels["g"]]
                assert occurring.min() <= one.low <= one.value <= one.high <= occurring.max()

"""Averages and sums of bins: their intervals hold wherever inside its bin a number lies."""

from __future__ import annotations

from functools import cache
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest

import reconpriv as rp
from query_fixtures import numbered_key
from reconpriv.answers.answerer import Answerer
from reconpriv.ask.question import Question
from reconpriv.cells.cube import collect
from reconpriv.errors import InputError
from reconpriv.estimate.averages import average_rows
from reconpriv.estimate.counts import Design, Settings
from reconpriv.estimate.measures import measure_of
from reconpriv.estimate.quantiles import quantile_rows
from reconpriv.protect.publish_cube import published_cube

P = 0.5
KEYS = 26
BORDERS = (0, 10, 20, 40, 80)
TOP = 199
PLACES = {"low": 0.0, "high": 1.0}
SETTINGS = Settings()


def people(place):
    """Incomes and ages at one end of their bins; both lean towards the lower bins."""
    draw = np.random.default_rng(3)
    edges = [*pairwise([*BORDERS, TOP + 1])]
    ends = [low if place == "low" else high - 1 for low, high in edges]
    income = draw.choice(ends, 1_200, p=[0.55, 0.2, 0.1, 0.1, 0.05])
    age = draw.choice([20 + 10 * i + (9 if place == "high" else 0) for i in range(5)], 1_200)
    region = draw.choice(["N", "S", "W"], 1_200)
    return pa.table({"region": region, "age": age, "income": income})


BINS = {"age": 10, "income": [*BORDERS, f"top:{TOP}"]}


@cache
def opened(place):
    with rp.read(people(place), sensitive="income", public="all", bin=BINS) as table:
        return collect(table.batches(), table.schema)


def truths(place):
    frame = people(place).to_pandas()
    holders = frame[frame["income"] < 10]
    regions = sorted(frame["region"].unique())
    of = {"income": frame, "age": holders}
    found = {}
    for kind in ("mean", "sum", "median"):
        for name, rows in of.items():
            each = [getattr(rows[rows["region"] == one][name], kind)() for one in regions]
            found[f"{kind} of {name}"] = [float(value) for value in each]
    return found


def limits(answerer, wanted=None):
    """The limits of every figure by region, or of one only."""
    everyone, holders = answerer.selected(None), answerer.selected("income < 10")
    found = {}
    for kind, word in (("average", "mean"), ("sum", "sum"), ("median", "median")):
        for name, whom in (("income", everyone), ("age", holders)):
            if wanted not in (None, f"{word} of {name}"):
                continue
            ranked = kind == "median"
            measure = measure_of(answerer, name, None, ranked=ranked)
            if ranked:
                rows = quantile_rows(
                    answerer, Question("quantile", whom, measure=measure), ["region"], SETTINGS
                )
            else:
                asked = Question(kind, whom, measure=measure)
                rows = average_rows(answerer, asked, ["region"], SETTINGS)
            found[f"{word} of {name}"] = [(one.low, one.high) for _, one in rows]
    return found


@cache
def coverage(place, told=P, wanted=None):
    """How often each interval holds the figure of the original numbers, over keys and regions."""
    cube = opened(place)
    policy = rp.Policy(retention=P, tolerance=0.5, doubt=0.3, sampling="none")
    design = Design(told, cube.schema.domain_size, "none")
    true = truths(place)
    held: dict[str, list[bool]] = {}
    for number in range(KEYS):
        answerer = Answerer(published_cube(cube, policy, numbered_key(number)), design)
        for kind, rows in limits(answerer, wanted).items():
            pairs = zip(true[kind], rows, strict=True)
            held.setdefault(kind, []).extend(
                low - 1e-9 <= value <= high + 1e-9 for value, (low, high) in pairs
            )
    return {kind: float(np.mean(each)) for kind, each in held.items()}


@pytest.mark.parametrize("place", PLACES)
def test_intervals_hold_for_numbers_at_the_ends_of_their_bins(place):
    """Of 78 cases each; at an end, one side misses 2.5 % of the time and the other never."""
    for kind, share in coverage(place).items():
        assert share >= 0.93, kind


def test_a_wrong_p_is_noticed_at_one_of_the_ends():
    """Told a p that is too high, an analyst finds averages nearer to the plain mean of the bins."""
    for place, told in (("low", 1.3 * P), ("high", 0.7 * P)):
        assert coverage(place, told, "mean of income")["mean of income"] < 0.93


def test_what_is_certain_lies_between_the_ends_of_the_bins(tmp_path):
    """Without the sensitive column nothing is estimated; only the place inside bins is unknown."""
    table = pa.table({"age": [20, 29, 31, 31] * 50, "s": ["x", "y"] * 100})
    with rp.read(table, sensitive="s", public="all", bin={"age": 10}) as read:
        release = read.publish(
            rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3), tmp_path / "r", key=numbered_key(1)
        )
    found = release.average("age")
    assert (found.value, found.low, found.high) == (29.5, 25.0, 34.0)
    assert not found.exact and "any place inside it" in found.remarks[0]
    total = release.sum("age")
    assert (total.value, total.low, total.high) == (5_900, 5_000, 6_800)


@pytest.mark.parametrize("whole", [True, False])
def test_the_ends_of_bins_follow_the_numbers(tmp_path, whole):
    """The bin 30 to 39 of whole numbers ends with 39, that of others comes close to 40."""
    numbers = pa.array([31, 38] * 100, pa.int64() if whole else pa.float64())
    table = pa.table({"age": numbers, "s": ["x", "y"] * 100})
    with rp.read(table, sensitive="s", public="all", bin={"age": 10}) as read:
        release = read.publish(
            rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3), tmp_path / "r", key=numbered_key(1)
        )
    found = release.average("age")
    assert (found.low, found.high) == (30, 39 if whole else 40)


# --- open bins


@pytest.fixture(scope="module")
def open_release(tmp_path_factory):
    folder = tmp_path_factory.mktemp("open") / "release"
    roles = {
        "sensitive": "income",
        "public": "all",
        "bin": {"age": [20, 40, 60], "income": [0, 10, 20, 40]},
    }
    with rp.read(people("low"), **roles) as table:
        return table.publish(
            rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3), folder, key=numbered_key(1)
        )


CLOSED = [
    "income < 40",
    "income IN ('0 to 9', '10 to 19', '20 to 39')",
    "income <> '40 or more'",
    "NOT income >= 40",
    "income BETWEEN 0 AND 39",
    "income IS NOT NULL AND income < 40",
]


@pytest.mark.parametrize("where", CLOSED)
def test_every_condition_that_leaves_an_open_bin_out_is_answered(open_release, where):
    found = open_release.average("income", where)
    assert 0 <= found.low <= found.value <= found.high <= 39
    sql = [
        f"SELECT avg(income), sum(income) FROM release WHERE {where}",
        "SELECT avg(income) FILTER (WHERE @), sum(income) FILTER (WHERE @) FROM release".replace(
            "@", where
        ),
    ]
    for query in sql:
        ((_, (average, total)),) = open_release.sql(query)
        assert (average.low, average.value, average.high) == (found.low, found.value, found.high)
        assert total.low <= total.value <= total.high


def test_keywords_leave_an_open_bin_out(open_release):
    labels = ["0 to 9", "10 to 19", "20 to 39"]
    found = open_release.average("income", income=labels)
    assert found.value == open_release.average("income", "income < 40").value
    one = open_release.average("income", income="10 to 19")
    assert (one.low, one.value, one.high) == (10, 14.5, 19)


@pytest.mark.parametrize("where", [None, "income IS NOT NULL", "income >= 20", "region = 'N'"])
def test_a_condition_that_keeps_an_open_bin_is_told_how_to_leave_it_out(open_release, where):
    for ask in (open_release.average, open_release.sum):
        with pytest.raises(InputError, match="'40 or more' of 'income' has no end") as caught:
            ask("income", where)
        assert "(income < 40)" in str(caught.value)


def test_an_open_bin_of_a_public_column_counts_only_if_it_is_chosen(open_release):
    with pytest.raises(InputError, match="'60 or more' of 'age' has no end"):
        open_release.average("age", income="0 to 9")
    found = open_release.average("age", "age < 60", income="0 to 9")
    assert 20 <= found.low <= found.value <= found.high <= 59
    assert open_release.average("age", age=["20 to 39"]).interval == "20 to 39"


# --- a top


def test_a_top_closes_the_last_bin(tmp_path):
    table = pa.table({"income": [5, 15, 199, 200] * 60, "s": ["x", "y"] * 120})
    for said in ("0,10,20,top:200", [0, 10, 20, "top:200"], " 0, 10, 20, TOP: 200 "):
        with rp.read(table, sensitive="s", public="all", bin={"income": said}) as read:
            assert read.schema.recoding("income").labels[-1] == "20 to 200"
            release = read.publish(
                rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3),
                tmp_path / "r",
                key=numbered_key(1),
                overwrite=True,
            )
        assert release.average("income").interval == "12.50 to 107"
        again = rp.open(tmp_path / "r")
        assert again.count("income <= 200").count == again.count("income >= 0").count == 240
        assert again.manifest["reconpriv"]["format_version"] == 2  # older versions read it, too


def test_the_top_of_numbers_that_are_not_whole_belongs_to_the_last_bin(tmp_path):
    table = pa.table({"income": [0.5, 15.0, 199.5, 200.0] * 60, "s": ["x", "y"] * 120})
    with rp.read(table, sensitive="s", public="all", bin={"income": "0,10,20,top:200"}) as read:
        labels = read.schema.recoding("income").labels
        assert labels == ("0 to under 10", "10 to under 20", "20 to 200")
        read.publish(
            rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3), tmp_path / "r", key=numbered_key(1)
        )
    release = rp.open(tmp_path / "r")
    assert release.manifest["reconpriv"]["format_version"] == 5
    assert release.count("income <= 200 AND income >= 20").count == 120
    with pytest.raises(InputError, match=r"cuts the bin '20 to 200'.*Use a border \(20\)"):
        release.count("income < 200")
    assert release.count("income < 200", whole_bins=True).count == 240
    assert release.average("income").interval == "12.50 to 107.50"


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ("0,10,20,top:199", "holds values above its top, 199"),
        ("0,10,20,top:20", "must be above its last border, 20"),
        ("0,10,20,top:", "given by numbers; got ''"),
        ("0,10,20,top:x", "given by numbers; got 'x'"),
        ("0,top:300", "at least two borders"),
        ("10,top:300", "at least two borders"),
        ("0,10,top:300,20", "given by numbers; got 'top:300'"),
    ],
)
def test_a_top_that_makes_no_sense_is_refused(said, message):
    table = pa.table({"income": [5, 15, 199, 200] * 60, "s": ["x", "y"] * 120})
    with pytest.raises(InputError, match=message):
        rp.read(table, sensitive="s", public="all", bin={"income": said})


def test_quantiles_may_have_a_top():
    table = pa.table({"income": [5, 15, 199, 200] * 60, "s": ["x", "y"] * 120})
    with (
        pytest.warns(rp.ReconprivWarning, match="quantiles of the table"),
        rp.read(table, sensitive="s", public="all", bin={"income": "quantiles:2,top:250"}) as read,
    ):
        assert read.schema.recoding("income").labels == ("5 to 198", "199 to 250")


def test_the_median_of_many_bins_is_a_bin(tmp_path):
    table = pa.table({"n": list(range(1_600)), "s": ["x", "y"] * 800})
    with rp.read(table, sensitive="s", public="all", bin={"n": 4}) as read:
        release = read.publish(
            rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3), tmp_path / "r", key=numbered_key(1)
        )
    assert release.median("n").value == "796 to 799"

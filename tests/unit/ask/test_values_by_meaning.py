"""A value asked about means what it means in SQL, whatever Python type it has, or is refused."""

import datetime as dt
import itertools
from collections import deque
from decimal import Decimal

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import reconpriv as rp

RECORDS = 400
BIG = 2**53
NOON = dt.datetime(2021, 5, 5, 12, 30)
PLUS_TWO = dt.timezone(dt.timedelta(hours=2))


def every_second(one, other, kind=None):
    return pa.array([one if i % 2 else other for i in range(RECORDS)], kind)


def records():
    midnight = dt.datetime(2020, 1, 1)
    in_utc = [one.replace(tzinfo=dt.UTC) for one in (midnight, NOON)]
    return pa.table(
        {
            "d": every_second(dt.date(2020, 1, 1), dt.date(2021, 5, 5)),
            "ts": every_second(midnight, NOON, pa.timestamp("us")),
            "tz": every_second(*in_utc, pa.timestamp("us", tz="UTC")),
            "tm": every_second(dt.time(1, 2), dt.time(3, 4), pa.time64("us")),
            "dec": every_second(Decimal("0.10"), Decimal("2.50"), pa.decimal128(10, 2)),
            "f": every_second(0.1, float(BIG)),
            "gap": every_second(1.5, None),
            "i": every_second(7, BIG + 1),
            "b": every_second(True, False),
            "s": every_second("a", "2020-01-01"),
            "code": every_second("01", "2"),
            "sick": [dt.date(2020, 2 + i // 2 % 2, 1) for i in range(RECORDS)],
        }
    )


@pytest.fixture(scope="module")
def table():
    with rp.read(records(), sensitive="sick", public="all") as opened:
        yield opened


@pytest.fixture(scope="module")
def release(table, tmp_path_factory):
    policy = rp.Policy(retention=1 - 1e-6, tolerance=0.5, doubt=0.3, sampling="none")
    folder = tmp_path_factory.mktemp("meaning") / "release"
    return table.publish(policy, folder, key=bytes(range(32)), max_unique=1.0)


# What is asked, and the same in SQL.
ASKED = [
    ("d", pd.Timestamp("2020-01-01"), "d = TIMESTAMP '2020-01-01'"),
    ("d", dt.datetime(2020, 1, 1), "d = TIMESTAMP '2020-01-01'"),
    ("d", dt.datetime(2020, 1, 1, 2, tzinfo=PLUS_TWO), "d = TIMESTAMP '2020-01-01'"),
    ("d", np.datetime64("2020-01-01"), "d = DATE '2020-01-01'"),
    ("d", np.datetime64("2020-01-01T00:00:00.000000000"), "d = DATE '2020-01-01'"),
    ("d", "2020-01-01 00:00:00", "d = '2020-01-01 00:00:00'"),
    ("d", pa.scalar(dt.date(2020, 1, 1)), "d = DATE '2020-01-01'"),
    ("ts", dt.date(2020, 1, 1), "ts = DATE '2020-01-01'"),
    ("ts", pd.Timestamp(NOON), "ts = TIMESTAMP '2021-05-05 12:30'"),
    ("ts", np.datetime64("2021-05-05T12:30"), "ts = TIMESTAMP '2021-05-05 12:30'"),
    ("ts", pd.Timestamp("2020-01-01 02:00+02:00"), "ts = TIMESTAMPTZ '2020-01-01 02:00+02:00'"),
    ("ts", dt.datetime(1999, 1, 1), "ts = TIMESTAMP '1999-01-01'"),
    ("tz", "2020-01-01 00:00:00", "tz = '2020-01-01 00:00:00'"),
    ("tz", dt.datetime(2020, 1, 1), "tz = TIMESTAMP '2020-01-01'"),
    ("tz", pd.Timestamp("2020-01-01 02:00+02:00"), "tz = TIMESTAMPTZ '2020-01-01 02:00+02:00'"),
    ("tz", pd.Timestamp("2020-01-01 00:00+02:00"), "tz = TIMESTAMPTZ '2020-01-01 00:00+02:00'"),
    ("tm", dt.time(1, 2), "tm = TIME '01:02'"),
    ("dec", 0.1, "dec = 0.1"),
    ("dec", np.float64(0.1), "dec = 0.1"),
    ("dec", np.float32(0.1), "dec = 0.1::FLOAT"),
    ("dec", 0.3, "dec = 0.3"),
    ("dec", Decimal("0.100"), "dec = 0.100"),
    ("f", Decimal("0.1"), "f = 0.1"),
    ("f", np.array(0.1), "f = 0.1"),
    ("f", BIG + 1, f"f = {BIG + 1}"),
    ("f", np.int64(BIG), f"f = {BIG}"),
    ("gap", float("nan"), "gap IS NULL"),
    ("gap", pd.NA, "gap IS NULL"),
    ("gap", pd.NaT, "gap IS NULL"),
    ("gap", np.datetime64("NaT"), "gap IS NULL"),
    ("gap", Decimal("NaN"), "gap IS NULL"),
    ("gap", pa.scalar(None), "gap IS NULL"),
    ("i", 7.0, "i = 7.0"),
    ("i", Decimal("7.00"), "i = 7.00"),
    ("i", Decimal(BIG + 1), f"i = {BIG + 1}"),
    ("i", np.uint8(7), "i = 7"),
    ("i", 8, "i = 8"),
    ("b", np.True_, "b = TRUE"),
    ("s", np.str_("a"), "s = 'a'"),
    ("s", dt.date(2020, 1, 1), "s = '2020-01-01'"),
    ("code", np.int64(1), "code = '01'"),
    ("sick", pd.Timestamp("2020-02-01"), "sick = TIMESTAMP '2020-02-01'"),
]
SEVERAL = [
    ("dec", [0.1, 2.5], "dec IN (0.1, 2.5)"),
    ("dec", (0.1, 9.5), "dec IN (0.1, 9.5)"),
    ("dec", np.array([0.1]), "dec IN (0.1)"),
    ("d", pd.Series(pd.to_datetime(["2020-01-01", "2021-05-05"])), "d IS NOT NULL"),
    ("d", pd.DatetimeIndex(["2020-01-01"]), "d = '2020-01-01'"),
    ("d", pl.Series([dt.date(2020, 1, 1)]), "d = '2020-01-01'"),
    ("d", pa.array([dt.date(2020, 1, 1)]), "d = '2020-01-01'"),
    ("d", pa.chunked_array([[dt.date(2020, 1, 1)]]), "d = '2020-01-01'"),
    ("d", np.array(["2020-01-01"], "datetime64[D]"), "d = '2020-01-01'"),
    ("i", range(10), "i BETWEEN 0 AND 9"),
    ("i", iter([7, 8]), "i IN (7, 8)"),
    ("i", (one for one in [7]), "i IN (7)"),
    ("i", {7}, "i IN (7)"),
    ("i", deque([7]), "i IN (7)"),
    ("i", {7: "x"}.keys(), "i IN (7)"),
    ("gap", pd.Series([1.5, None]), "gap = 1.5 OR gap IS NULL"),
    ("s", np.array(["a"], dtype=object), "s IN ('a')"),
    ("s", pd.Series(["a"], dtype="category"), "s IN ('a')"),
    ("sick", np.array(["2020-02-01"], "datetime64[ns]"), "sick = '2020-02-01'"),
]


@pytest.mark.parametrize(("name", "value", "sql"), [*ASKED, *SEVERAL])
def test_a_value_of_any_type_counts_what_duckdb_counts(name, value, sql, table, release):
    raw = records()  # noqa: F841 - DuckDB finds it by its name
    with duckdb.connect() as base:
        base.execute("SET TimeZone = 'UTC'")
        ((truth,),) = base.execute(f"SELECT count(*) FROM raw WHERE {sql}").fetchall()
    once = hasattr(value, "__next__")
    kept = list(value) if once else value
    assert table.count(**{name: kept}) == truth
    (many,) = release.count_many([{name: kept}])
    assert round(many.count) == truth
    assert round(release.compare({name: kept}, {name: kept}, of="count").a.count) == truth
    if name != "sick":
        by_date = release.crosstab(["sick"], **{name: kept})
        assert round(sum(row.count for _, row in by_date.rows)) == truth
    assert round(release.count(**{name: iter(kept) if once else kept}).count) == truth


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("d", pd.Timestamp("2020-01-01 12:30")),
        ("d", dt.datetime(2020, 1, 1, tzinfo=PLUS_TWO)),
        ("d", 5),
        ("d", pd.Period("2020-01-01", "D")),
        ("ts", pd.Timestamp("2020-01-01 00:00:00.000000001")),
        ("ts", np.datetime64("2020-01-01T00:00:00.000000001")),
        ("ts", 5.5),
        ("tm", dt.datetime(2020, 1, 1, 1, 2)),
        ("tm", dt.timedelta(hours=1)),
        ("tm", dt.time(1, 2, tzinfo=dt.UTC)),
        ("dec", float("inf")),
        ("dec", "nan"),
        ("dec", dt.date(2020, 1, 1)),
        ("f", dt.date(2020, 1, 1)),
        ("f", 10**400),
        ("f", Decimal("1e400")),
        ("f", "nan"),
        ("f", 1j),
        ("i", 1.5),
        ("i", float(BIG + 2)),
        ("i", True),
        ("i", np.True_),
        ("i", [7, True]),
        ("b", 1),
        ("b", np.int64(1)),
        ("s", b"a"),
        ("s", True),
        ("s", {"a": 1}),
        ("s", [["a"]]),
        ("s", np.array([["a"]])),
        ("s", pd.DataFrame({"a": ["a"]})),
        ("s", 5),
        ("s", object()),
        ("i", itertools.count()),
        ("i", range(10**12)),
    ],
)
def test_what_no_value_of_the_column_can_equal_is_refused(name, value, release):
    with pytest.raises(rp.ReconprivError) as caught:
        release.count(**{name: value})
    assert "\n" not in str(caught.value)


def test_bins_and_groups_take_values_of_any_type():
    months = {"d": "month"}
    groups = {"s": {"a": "first", "2020-01-01": "second"}}
    with rp.read(records(), sensitive="sick", public="all", bin=months, group=groups) as binned:
        whole = {"whole_bins": True}
        assert binned.count(d=np.datetime64("2020-01-15"), **whole) == RECORDS // 2
        assert binned.count(d=pd.Series(pd.to_datetime(["2020-01-15"])), **whole) == RECORDS // 2
        with pytest.raises(rp.ReconprivError, match="no value None"):
            binned.count(d=pd.NaT)
        assert binned.count(s=np.array(["a"])) == RECORDS // 2


def test_scores_and_targets_are_matched_alike(release):
    scores = {pd.Timestamp("2020-02-01"): 1.0, np.datetime64("2020-03-01"): 3.0}
    assert release.average("sick", scores=scores).value == pytest.approx(2.0)
    with pytest.raises(rp.ReconprivError, match="twice"):
        release.average("sick", scores={**scores, "2020-02-01": 1.0})

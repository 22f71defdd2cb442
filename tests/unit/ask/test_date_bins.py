"""Dates and times in months, quarters and years."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pytest

import reconpriv as rp
from query_fixtures import numbered_key
from reconpriv.columns.recoding import read_recoding
from reconpriv.errors import InputError, ReleaseError

POLICY = rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3)
DAYS = [dt.date(2019, 11, 30), dt.date(2020, 1, 1), dt.date(2020, 3, 31), dt.date(2020, 4, 1), None]
LABELS = {
    "month": ["2019-11", "2020-01", "2020-03", "2020-04", None],
    "quarter": ["2019-Q4", "2020-Q1", "2020-Q1", "2020-Q2", None],
    "year": ["2019", "2020", "2020", "2020", None],
}
TYPES = {
    "date": pa.date32(),
    "time": pa.timestamp("us"),
    "time with a zone": pa.timestamp("us", "UTC"),
    "nanoseconds": pa.timestamp("ns"),
}


def visits(kind=TYPES["date"]):
    """Each day 40 times; times are the last moment of the day."""
    found: list[Any] = list(DAYS)
    if pa.types.is_timestamp(kind):
        last = dt.time(23, 59, 59, 999_999)
        found = [None if day is None else dt.datetime.combine(day, last) for day in DAYS]
    return pa.table({"visit": pa.array(found * 40, kind), "s": ["x", "y"] * 100})


def published(folder, said, kind=TYPES["date"]):
    with rp.read(visits(kind), sensitive="s", public="all", bin={"visit": said}) as table:
        table.publish(POLICY, folder, key=numbered_key(1))
    return rp.open(folder)


def recoding_of(release):
    found = release.answerer.cells.schema.recoding("visit")
    assert found is not None
    return found


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("period", LABELS)
def test_every_date_is_in_its_period(tmp_path, period, kind):
    release = published(tmp_path / "r", period, TYPES[kind])
    expected: dict[str | None, int] = {}
    for label in LABELS[period]:
        expected[label] = expected.get(label, 0) + 40
    assert {row["visit"]: one.count for row, one in release.crosstab(["visit"])} == expected
    assert [row["visit"] for row, _ in release.crosstab(["visit"])] == list(expected)


def test_what_is_said_about_a_release_names_its_periods(cli, tmp_path):
    release = published(tmp_path / "r", "quarter")
    words = "visit: quarters (2019-Q4, 2020-Q1, 2020-Q2)"
    shown = cli("info", release.path)
    assert shown.code == 0, shown.err
    assert words in " ".join(shown.out.split())
    release.report(tmp_path / "report.html")
    assert words in (tmp_path / "report.html").read_text()


def test_a_manifest_says_what_each_period_covers(tmp_path):
    block = published(tmp_path / "r", "Quarter ").manifest["reconpriv"]
    assert block["format_version"] == 5  # an older version does not know periods
    assert block["recoded"]["visit"] == {
        "declared": "quarter",
        "labels": ["2019-Q4", "2020-Q1", "2020-Q2"],
        "borders": ["2019-10-01", "2020-01-01", "2020-04-01", "2020-07-01"],
        "whole": True,
    }


@pytest.mark.parametrize(
    "change",
    [
        {"borders": ["2019-10-01", "2020-01-01", "2020-04-01"]},
        {"borders": ["2019-10-01", "2020-01-01", "2020-04-01", 5]},
        {"borders": ["2019-10-01", "2020-01-01", "2020-04-01", "soon"]},
        {"labels": ["2019-Q4", "2020-Q1", "2020-Q3"]},
        {"declared": "week"},
        {"closed": True},
        {"whole": 1},
    ],
)
def test_a_damaged_period_is_refused(tmp_path, change):
    good = recoding_of(published(tmp_path / "r", "quarter")).as_dict()
    assert read_recoding("visit", good).as_dict() == good
    with pytest.raises((ValueError, KeyError, TypeError)):
        read_recoding("visit", good | change)
    file = tmp_path / "r" / "datapackage.json"
    file.write_text(file.read_text().replace('"quarter"', '"fortnight"'))
    with pytest.raises(ReleaseError, match="damaged"):
        rp.open(tmp_path / "r")


WHOLE = [
    ("visit >= DATE '2020-01-01'", 120),
    ("visit < DATE '2020-04-01'", 120),
    ("visit <= DATE '2020-03-31'", 120),
    ("visit > '2020-03-31'", 40),
    ("NOT visit < '2020-04-01'", 40),
    ("visit BETWEEN '2020-01-01' AND '2020-03-31'", 80),
    ("DATE '2020-01-01' <= visit AND visit < CAST('2020-04-01' AS DATE)", 80),
    ("visit < TIMESTAMP '2020-04-01 00:00:00'", 120),
    ("visit = '2020-Q1'", 80),
    ("visit IN ('2020-Q1', '2020-Q2')", 120),
    ("visit <> '2020-Q1'", 80),
    ("visit IS NULL", 40),
]


@pytest.mark.parametrize(("where", "count"), WHOLE)
def test_conditions_on_whole_periods_are_answered(tmp_path, where, count):
    release = published(tmp_path / "r", "quarter")
    found = release.count(where)
    assert (found.count, found.exact) == (count, True)


@pytest.mark.parametrize(
    ("where", "message"),
    [
        (
            "visit < DATE '2020-02-01'",
            "visit < DATE '2020-02-01' cuts the bin '2020-Q1' of 'visit'",
        ),
        ("visit = DATE '2020-01-15'", r"whole bin \(visit = '2020-Q1'\)"),
        ("visit > TIMESTAMP '2020-01-01 12:00:00'", r"border \(DATE '2020-01-01' or DATE '2020-04"),
        ("visit > 5", "Compare it with dates or with its bins"),
        ("visit > 'soon'", "has no meaning"),
        ("extract(year FROM visit) = 2020", "has no meaning"),
        ("visit = '2020-Q5'", "has no value '2020-Q5'"),
    ],
)
def test_conditions_on_parts_of_periods_are_refused(tmp_path, where, message):
    release = published(tmp_path / "r", "quarter")
    with pytest.raises(InputError, match=message):
        release.count(where)


def test_the_last_day_of_times_is_not_over_at_midnight(tmp_path):
    release = published(tmp_path / "r", "quarter", TYPES["time"])
    with pytest.raises(InputError, match="cuts the bin '2020-Q1'"):
        release.count("visit <= DATE '2020-03-31'")
    assert release.count("visit < DATE '2020-04-01'").count == 120
    one = release.count("visit <= DATE '2020-03-31'", whole_bins=True)
    assert one.count == 120
    assert "visit < DATE '2020-04-01'" in one.remarks[0]


def test_keywords_take_dates_and_labels(tmp_path):
    release = published(tmp_path / "r", "month")
    assert release.count(visit="2020-03").count == 40
    with pytest.raises(InputError, match="cuts the bin '2020-03'"):
        release.count(visit=dt.date(2020, 3, 31))
    march = [dt.date(2020, 3, day) for day in range(1, 32)]
    assert release.count(visit=march).count == 40


def test_periods_have_a_median_and_no_average(tmp_path):
    release = published(tmp_path / "r", "month")
    assert release.median("visit").value == "2020-01"
    with pytest.raises(InputError, match="holds months, so it has no average or sum"):
        release.average("visit")


@pytest.mark.parametrize(
    ("column", "said", "message"),
    [
        ("number", "month", "holds integer values; months are for dates"),
        ("text", "year", "holds string values; years are for dates. Turn it into a date"),
        ("visit", 10, "Bin it by month, quarter or year"),
        ("visit", [0, 10], "Bin it by month, quarter or year"),
        ("visit", "week", "month, quarter or year"),
        ("far", "year", "beyond the years 1 to 9998"),
        ("wide", "month", "more than 1,000 values"),
    ],
)
def test_what_has_no_such_bins_is_refused(column, said, message):
    table = visits()
    table = table.append_column("number", pa.array(range(200)))
    table = table.append_column("text", pa.array([str(day) for day in DAYS] * 40))
    table = table.append_column("far", pa.array([dt.date(9999, 12, 31)] * 200))
    table = table.append_column("wide", pa.array([dt.date(1900, 1, 1), dt.date(2000, 1, 1)] * 100))
    with pytest.raises(InputError, match=message):
        rp.read(table, sensitive="s", public="all", bin={column: said})


def test_a_sensitive_date_has_its_periods_as_domain(tmp_path):
    roles = {"sensitive": "visit", "public": "all", "bin": {"visit": "month"}, "missing": "drop"}
    with rp.read(visits(), **roles) as table:
        assert table.schema.domain == (
            "2019-11", "2019-12", "2020-01", "2020-02", "2020-03", "2020-04"
        )  # fmt: skip
        table.publish(POLICY, tmp_path / "r", key=numbered_key(2))
    found = rp.open(tmp_path / "r").count("visit >= DATE '2020-03-01'")
    assert found.low <= 80 <= found.high

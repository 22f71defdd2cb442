"""Cross-tabulations: shares by row and column, totals, wide intervals, rows and columns."""

import json

import numpy as np
import pyarrow as pa
import pytest

import reconpriv as rp
from query_fixtures import SAMPLING_RULES, numbered_key, people, people_release
from reconpriv.answers.crosstab import asked_widest
from reconpriv.errors import InputError
from reconpriv.estimate.counts import quantile

# What the records that a share is among have in common, and with what condition.
ASKED = [
    (["Sex", "job"], None, "row", ["Sex"]),
    (["Sex", "job"], None, "column", ["job"]),
    (["job", "Sex"], "age < 25", "row", ["job"]),
    (["job", "Sex"], "age < 25", "column", ["Sex"]),
    (["Sex", "region"], None, "row", ["Sex"]),
    (["Sex", "region"], "job = 'nurse'", "row", ["Sex"]),
    (["Sex", "region"], "job = 'nurse'", "all", []),
    (["Sex", "job", "region"], "age < 22", "row", ["Sex", "job"]),
    (["Sex", "job", "region"], "age < 22", "column", ["region"]),
    (["Sex", "job"], "job IN ('nurse', 'clerk')", "row", ["Sex"]),
    (["region"], "job = 'nurse'", "column", []),
]


@pytest.fixture(params=SAMPLING_RULES)
def release(request):
    return people_release(request.param)


def condition(labels, where):
    parts = [f"({where})"] if where else []
    for name, value in labels.items():
        said = "IS NULL" if value is None else "= '" + str(value).replace("'", "''") + "'"
        parts.append(f"{name} {said}")
    return " AND ".join(parts) or "age > 0"


def limits(one):
    return one.value, one.low, one.high


EVERY = [("public", *one) for one in ASKED] + [
    (size, *ASKED[i]) for size in ("none", "paper", "octave") for i in (0, 1, 5)
]


@pytest.mark.parametrize(("size", "by", "where", "shares", "among"), EVERY)
def test_shares_are_those_that_share_gives(size, by, where, shares, among):
    release = people_release(size)
    table = release.crosstab(by, where, shares=shares, totals=True)
    checked = 0
    for cell in table.cells[:: max(len(table.cells) // 7, 1)]:
        base = {name: cell.labels[name] for name in among if name in cell.labels}
        if base.keys() == cell.labels.keys():
            assert limits(cell.share) == (1.0, 1.0, 1.0)
            continue
        asked = condition(cell.labels, where)
        expected = release.share(asked, among=condition(base, where))
        assert limits(cell.share) == pytest.approx(limits(expected)), cell.labels
        assert cell.share.exact == expected.exact
        checked += 1
    assert checked >= 2


def test_shares_with_margins_are_those_that_share_gives(tmp_path):
    policy = rp.Policy(
        retention=0.5, tolerance=0.5, doubt=0.3, sampling="public", margins=rp.Margins(2.0)
    )
    with rp.read(people(), sensitive="job", public="all", missing="value") as table:
        release = table.publish(policy, tmp_path / "r", key=numbered_key(4))
    for estimator in ("mle", "records"):
        found = release.crosstab(["job", "Sex"], shares="row", estimator=estimator)
        for cell in found.cells[::3]:
            among = condition({"job": cell.labels["job"]}, None)
            asked = condition(cell.labels, None)
            expected = release.share(asked, among=among, estimator=estimator)
            assert limits(cell.share) == pytest.approx(limits(expected))
    assert any(cell.share.from_margins > 0 for cell in release.crosstab(
        ["job", "Sex"], shares="row").cells)  # fmt: skip


def test_shares_of_protection_groups_are_those_that_share_gives(tmp_path):
    policy = rp.Policy(
        retention=0.5, tolerance=0.5, doubt=0.3, sampling="public", protect={"age": 5}
    )
    with rp.read(people(), sensitive="job", public="all", missing="value") as table:
        release = table.publish(policy, tmp_path / "r", key=numbered_key(5))
    found = release.crosstab(["age", "job"], "age < 23", shares="column", totals=True)
    cells = [cell for cell in found.cells if len(cell.labels) == 2]
    for cell in cells[::3]:
        among = condition({"job": cell.labels["job"]}, "age < 23")
        asked = f"age = {cell.labels['age']} AND {condition({'job': cell.labels['job']}, None)}"
        expected = release.share(asked, among=among)
        assert limits(cell.share) == pytest.approx(limits(expected))
    assert any("protection group" in remark for cell in cells for remark in cell.share.remarks)


def test_totals_are_counts_of_their_own(release):
    table = release.crosstab(["Sex", "job"], "age < 25", totals=True)
    assert table.total() == release.count("age < 25")
    assert table.total(Sex="F").count == release.count("age < 25", Sex="F").count
    nurses, expected = table.total(job="nurse"), release.count("age < 25", job="nurse")
    assert (nurses.low, nurses.high) == (expected.low, expected.high)
    assert sum(e.count for labels, e in table if labels["job"] == "nurse") == pytest.approx(
        nurses.count
    )
    # An interval of their own: narrower than the sum of the parts'.
    parts = [e for labels, e in table if labels["job"] == "nurse"]
    assert nurses.high - nurses.low < sum(one.high - one.low for one in parts)
    with pytest.raises(rp.ReconprivError, match="no total of"):
        table.total(job="astronaut")


def test_today_s_calls_give_the_same(release):
    table = release.crosstab(["Sex", "job"])
    assert table.plain
    assert table.as_dict() == release.sql("SELECT Sex, job, count(*) FROM release"
                                          " GROUP BY Sex, job").as_dict() | {
        "rows": table.as_dict()["rows"]}  # fmt: skip
    assert set(table.as_dict()) == {"by", "rows"}
    assert "part" not in table.to_arrow().column_names
    assert str(table).splitlines()[0].split() == [
        "Sex", "job", "count", "interval", "groups", "trials"]  # fmt: skip


def test_a_limit_flags_what_is_wider_and_nothing_else(release):
    plain = release.crosstab(["Sex", "job"], "age < 25")
    widths = sorted(one.high - one.low for _, one in plain)
    middle = (widths[4] + widths[5]) / 2
    flagged = release.crosstab(["Sex", "job"], "age < 25", widest=middle).cells
    assert [c.wide for c in flagged] == [c.count.high - c.count.low > middle for c in flagged]
    assert 0 < sum(c.wide for c in flagged) < len(flagged)
    relative = release.crosstab(["Sex", "job"], "age < 25", widest="60%").cells
    assert [c.wide for c in relative] == [
        c.count.high - c.count.low > 0.6 * abs(c.count.count) for c in relative
    ]
    shares = release.crosstab(["Sex", "job"], "age < 25", shares="row", widest="20%").cells
    assert [c.wide for c in shares] == [c.share.high - c.share.low > 0.2 for c in shares]
    assert "* the interval is wider than 20 percentage points" in str(
        release.crosstab(["Sex", "job"], shares="row", widest=0.2)
    )
    exact = release.crosstab(["Sex", "region"], widest=1, totals=True)
    assert not any(cell.wide for cell in exact.cells if cell.count.exact)


@pytest.mark.parametrize(
    ("said", "shares", "words"),
    [
        (0, False, "above 0"), (-3, False, "above 0"), ("wide", False, "above 0"),
        (float("nan"), False, "above 0"), (True, True, "above 0"), ("", True, "above 0"),
        (0.1, False, "at least one record"), (5, True, "at most 1"), ("120%", True, "at most 1"),
    ],
)  # fmt: skip
def test_a_limit_that_makes_no_sense_is_refused(said, shares, words):
    with pytest.raises(InputError, match=words):
        asked_widest(said, shares=shares)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"by": ["Sex"], "shares": "row"}, "second column"),
        ({"by": ["Sex", "job"], "shares": "rows"}, "'row', 'column' or 'all'"),
        ({"by": ["Sex", "jobb"], "shares": "row"}, "'jobb'"),
        ({"by": ["job", "Sex"], "shares": "row", "estimator": "constrained"}, "unbiased counts"),
    ],
)
def test_what_cannot_be_tabulated_is_refused(options, words):
    with pytest.raises(InputError, match=words):
        people_release("octave").crosstab(**options)


def test_intervals_that_hold_together_count_totals_and_ratios():
    release = people_release("none")
    alone = release.crosstab(["Sex", "job"], simultaneous=True)
    assert alone["F", "nurse"].high == pytest.approx(
        release.crosstab(["Sex", "job"], confidence=1 - 0.05 / 10)["F", "nurse"].high
    )
    with_totals = release.crosstab(["Sex", "job"], simultaneous=True, totals=True)
    assert len(with_totals.cells) == 18
    # Shares among holders of a value have limits of their own; those of known numbers do not.
    row = release.crosstab(["Sex", "job"], simultaneous=True, totals=True, shares="row")
    column = release.crosstab(["Sex", "job"], simultaneous=True, totals=True, shares="column")
    widths = [t["F", "nurse"].high - t["F", "nurse"].low for t in (with_totals, row, column)]
    assert widths[0] == widths[1] < widths[2]
    assert widths[2] / widths[0] == pytest.approx(quantile(0.95, 36) / quantile(0.95, 18), rel=0.02)


def test_frames_tell_cells_from_totals():
    table = people_release("octave").crosstab(
        ["region", "job"], shares="column", totals=True, widest="30%"
    )
    frame = table.to_pandas()
    assert frame["part"].value_counts().to_dict() == {
        "cell": 15, "row total": 3, "column total": 5, "total": 1}  # fmt: skip
    assert frame["share"].notna().sum() == 24
    assert frame["wide"].dtype == bool
    total = frame[frame["part"] == "total"].iloc[0]
    assert (total["count"], total["share"]) == (3_000, 1.0)
    assert table.to_polars().columns == list(frame.columns)
    said = json.loads(json.dumps(table.as_dict(), allow_nan=False))
    assert [len(said[name]) for name in ("rows", "totals")] == [15, 9]
    assert said["shares"] == "column"
    assert said["widest"] == {"limit": 0.3, "of": "share"}
    assert said["rows"][0]["share"]["kind"] == "share"


def test_rows_and_columns_are_laid_out_in_the_order_of_their_values():
    table = people_release("none").crosstab(["age", "job"], "age < 23", totals=True)
    laid = table.two_way()
    frame = laid.to_pandas()
    assert list(frame["age"]) == ["20", "21", "22", "total"]
    assert list(frame.columns)[1:] == ["baker", "clerk", "nurse", "pilot", "(missing)", "total"]
    assert frame.loc[1, "nurse"] == table[21, "nurse"].count
    assert frame.loc[3, "total"] == table.total().count
    lines = str(laid).splitlines()
    assert lines[0].split() == ["age", "baker", "clerk", "nurse", "pilot", "(missing)", "total"]
    assert lines[-1].split()[-1] == "exact"
    assert "<table>" in laid._repr_html_()
    assert laid.to_arrow().num_rows == laid.to_polars().height == 4


def test_a_combination_that_does_not_occur_is_a_dash(tmp_path):
    rows = pa.table({"g": ["a", "a", "b"] * 90, "h": ["x", "y", "x"] * 90, "s": list("uvwuw") * 54})
    with rp.read(rows, sensitive="s", public="all") as table:
        release = table.publish(
            rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3, sampling="none"),
            tmp_path / "r",
            key=numbered_key(1),
        )
    found = release.crosstab(["g", "h"], shares="row", totals=True)
    assert "- no record." in str(found)
    frame = found.two_way().to_pandas()
    assert np.isnan(frame.loc[1, "y"])
    assert frame.loc[1, "x"] == 1.0
    empty = release.crosstab(["g", "h"], "g = 'a' AND g = 'b'", shares="row", totals=True)
    assert empty.to_arrow().num_rows == len(empty.cells)

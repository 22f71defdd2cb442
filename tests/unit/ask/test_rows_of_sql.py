"""SQL gives the rows, the order and the NULLs that DuckDB gives on the original table.

The release keeps almost every value (p = 1 - 1e-12), so its answers are those of the table.
"""

import datetime as dt
import json
import math
import warnings
from decimal import Decimal

import duckdb
import pyarrow as pa
import pytest

import reconpriv as rp
from query_fixtures import numbered_key
from reconpriv.answers.beside_truth import ask as ask_both
from reconpriv.answers.figure import Figure
from reconpriv.answers.tables import EstimateTable, FigureTable
from reconpriv.ask.form import FormQuestion
from reconpriv.errors import InputError
from reconpriv.estimate.counts import Estimate
from studio_workspace import lines_of

# With so large a p, limits divide by numbers that round to 0; what comes of it is not used.
pytestmark = pytest.mark.filterwarnings("ignore:divide by zero:RuntimeWarning")

_AGES = {"A": 3, "B": 15, "C": 101, "D": 27}  # as text, "101" sorts before "15" and "27"


def people():
    """Regions of which one has no income at all, with text, dates and truth values missing."""
    rows = [
        {
            "region": region,
            "age": _AGES[region] + i % 3,
            "income": None if region == "D" or i % 5 == 0 else [0, 1, 2, 5][i % 4],
            "day": None if i % 5 == 0 else dt.date(2020, 1 + i % 6, 3),
            "ratio": [0.5, -1.0, 0.0, 2.0][i % 4],
            "group": [None, "", "Ä", "b"][i % 4],
            "job": ["x", "y", "z", None][i % 7 % 4],
        }
        for region in _AGES
        for i in range(40)
    ]
    return pa.Table.from_pylist(rows)


def published(folder, **recoded):
    policy = rp.Policy(retention=1 - 1e-12, tolerance=0.5, doubt=0.3, sampling="none")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        read = rp.read(people(), sensitive="job", public="all", missing="value", **recoded)
        with read as table:
            return table.publish(policy, folder, key=numbered_key(1), max_unique=1)


@pytest.fixture(scope="module")
def release(tmp_path_factory):
    return published(tmp_path_factory.mktemp("plain") / "r")


@pytest.fixture(scope="module")
def binned(tmp_path_factory):
    recoded = {"bin": {"age": 10, "day": "month"}}
    return published(tmp_path_factory.mktemp("binned") / "r", **recoded)


def rows_of(answer):
    if isinstance(answer, Estimate | Figure):
        return [(answer.value,)]
    rows = [(labels, one if isinstance(one, tuple) else (one,)) for labels, one in answer]
    return [(*labels.values(), *(one.value for one in answers)) for labels, answers in rows]


def truth(sql):
    connection = duckdb.connect()
    connection.register("release", people())
    return connection.sql(sql).fetchall()


def same(ours, theirs):
    if ours is None or theirs is None or isinstance(theirs, str | bool | dt.date):
        return ours == theirs
    if math.isnan(theirs):
        return math.isnan(ours)
    return float(ours) == pytest.approx(float(theirs), abs=1e-6)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT region, count(*) FILTER (WHERE income = 5) FROM release GROUP BY region",
        "SELECT region, count(*) FILTER (WHERE age > 1000) FROM release GROUP BY region",
        "SELECT region, share(income = 5) FILTER (WHERE income > 1) FROM release GROUP BY region",
        "SELECT region, avg(income) FROM release GROUP BY region",
        "SELECT region, avg(income) AS a FROM release GROUP BY region ORDER BY a NULLS FIRST",
        "SELECT region, avg(income) AS a FROM release GROUP BY region ORDER BY a DESC NULLS FIRST",
        "SELECT region, avg(income) AS a FROM release GROUP BY region ORDER BY a DESC",
        "SELECT region, sum(income) FROM release GROUP BY 1 ORDER BY 2 NULLS LAST, region",
        "SELECT region, median(income) FROM release GROUP BY region ORDER BY 2 NULLS FIRST",
        'SELECT "group", count(*) FROM release GROUP BY 1 ORDER BY 1 NULLS FIRST',
        'SELECT "group", count(*) FROM release GROUP BY 1 ORDER BY 1 DESC NULLS FIRST LIMIT 2',
        'SELECT "group", count(*) FROM release GROUP BY 1 ORDER BY 1 DESC LIMIT 2 OFFSET 2',
        "SELECT region, count(*) FROM release GROUP BY region HAVING avg(income) > 2",
        "SELECT avg((income > 1)::INT) FROM release",
        "SELECT avg((income > 1)::DOUBLE) FILTER (WHERE region <> 'B') FROM release",
        "SELECT avg((job = 'x')::INT) FROM release",
        "SELECT region, avg((income > 1)::INT) FROM release GROUP BY region ORDER BY region",
        "SELECT region, sum((income > 1)::INT) FROM release GROUP BY region ORDER BY region",
        "SELECT region, sum(CASE WHEN income > 9 THEN 1 END) FROM release GROUP BY 1 ORDER BY 1",
        "SELECT region, sum(CASE WHEN income > 9 THEN 1 ELSE 0 END) FROM release GROUP BY 1"
        " ORDER BY 1",
        "SELECT avg(CASE WHEN income > 1 THEN 1 ELSE 0 END) FROM release",
        "SELECT avg(1 / income) FROM release WHERE income <> 0",
        "SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY age) FROM release",
        "SELECT percentile_disc(0.25) WITHIN GROUP (ORDER BY age + income)"
        " FILTER (WHERE region = 'B') AS q FROM release",
        "SELECT quantile_disc(age, 0.9) FROM release",
        "SELECT ratio / income AS r, avg(age), count(*) FROM release GROUP BY r ORDER BY r, 2",
        "SELECT ratio / income AS r, count(*) AS n FROM release GROUP BY r HAVING n > 3 ORDER BY r",
        "SELECT count(*) /* all */ AS n, region FROM release GROUP BY region -- by region\n"
        " ORDER BY region -- sorted",
        "SELECT count() FROM release WHERE income NOT IN (1, NULL)",
        "SELECT region, count(*) FROM release WHERE job NOT IN ('x', NULL) GROUP BY region",
        "SELECT region, avg(age) FROM release WHERE job = NULL GROUP BY region",
    ],
)
def test_rows_are_those_of_duckdb(release, sql):
    found = rows_of(release.sql(sql))
    shown = sql.replace("share(income = 5)", "avg(CASE WHEN income = 5 THEN 1 ELSE 0 END)")
    shown = shown.replace("median(income)", "quantile_disc(income, 0.5)")
    # Columns come before figures in an answer.
    expected = truth(shown.replace("count(*) /* all */ AS n, region", "region, count(*) AS n"))
    if "ORDER BY" not in sql.replace("(ORDER BY", ""):
        found.sort(key=str)
        expected.sort(key=str)
    for ours, theirs in zip(found, expected, strict=True):
        assert all(map(same, ours, theirs)), (ours, theirs)


def test_a_figure_alone_has_the_rows_that_it_has_beside_a_count(release):
    for figure in ("count(*) FILTER (WHERE income = 5)", "avg(income)", "median(income)"):
        alone = release.sql(f"SELECT region, {figure} FROM release GROUP BY region")
        beside = release.sql(f"SELECT region, count(*), {figure} FROM release GROUP BY region")
        assert rows_of(alone) == [(row[0], row[2]) for row in rows_of(beside)]
        assert len(alone) == 4


@pytest.mark.parametrize("number", ["1 / income", "ln(ratio)", "sqrt(ratio)", "ratio / ratio"])
@pytest.mark.parametrize("figure", ["avg", "sum", "median"])
def test_a_number_that_is_infinite_or_none_is_refused(release, figure, number):
    with pytest.raises(InputError, match="infinite or not a number"):
        release.sql(f"SELECT {figure}({number}) FROM release")


def test_values_that_are_no_finite_numbers_are_refused(tmp_path):
    table = pa.table({"x": [1.0, math.nan, math.inf, None] * 20, "job": ["a", "b"] * 40})
    policy = rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3, sampling="none")
    with rp.read(table, sensitive="job", public="all", missing="value") as read:
        release = read.publish(policy, tmp_path / "r", key=numbered_key(1), keep_giveaway=["x"])
    for ask in (release.average, release.sum, release.median):
        with pytest.raises(InputError, match="infinite or not a number"):
            ask("x")
        assert ask("x", "x < 5").value in (1, 20)
    table = release.sql(
        "SELECT x - x AS d, count(*), count(*) FILTER (WHERE x > 5) FROM release GROUP BY d"
    )
    assert [row[1:] for row in rows_of(table)] == [(20, 0), (20, 20), (40, 0)]
    plain = json.loads(json.dumps(table.as_dict(), allow_nan=False))
    assert [row["labels"]["d"] for row in plain["rows"]] == [0.0, "nan", None]


def test_the_alias_of_a_lone_count_is_kept(release, cli):
    one = release.sql("SELECT count(*) AS people FROM release")
    assert isinstance(one, Estimate) and (one.name, one.count) == ("people", 160)
    assert one.as_dict()["name"] == "people"
    plain = release.sql("SELECT count(*) FROM release")
    assert plain.name == plain.as_dict()["name"] == "count"
    by = "SELECT region, count(*) AS people FROM release"
    for rest, rows in ((" GROUP BY region", 4), (" GROUP BY region HAVING people > 999", 0)):
        table = release.sql(by + rest)
        assert isinstance(table, EstimateTable) and len(table) == rows
        assert table.to_arrow().column_names[:2] == ["region", "people"]
        assert "people" in repr(table) and "people" in table._repr_html_()
        assert all(row["name"] == "people" for row in table.as_dict()["rows"])
    shown = cli("query", release.path, "SELECT count(*) AS people FROM release")
    assert "people" in shown.out.splitlines()[0]
    given = cli("query", release.path, "SELECT count(*) AS people FROM release", "--json")
    assert json.loads(given.out)["name"] == "people"


@pytest.mark.parametrize("direction", ["ASC", "DESC"])
@pytest.mark.parametrize("figure", ["median(age)", "quantile(age, 0.9)", "median(day)"])
def test_bins_are_ordered_by_their_numbers(binned, figure, direction):
    by = "region" if "age" in figure else "income"
    sql = f"SELECT {by}, {figure} AS m FROM release WHERE income > 0 GROUP BY {by} ORDER BY m"
    found = rows_of(binned.sql(f"{sql} {direction}"))
    column = figure[figure.index("(") + 1 :].split(",")[0].rstrip(")")
    labels = binned.description.schema.recoding(column).labels
    places = [labels.index(row[1]) for row in found]
    assert places == sorted(places, reverse=direction == "DESC")
    if "age" in figure:
        assert [row[0] for row in found] == (
            ["A", "B", "C"] if direction == "ASC" else ["C", "B", "A"]
        )


def test_groups_are_ordered_as_they_were_declared(tmp_path):
    """ "young" is declared first and sorts last as text."""
    groups = {"young": ["3", "4", "5"], "old": ["15", "16", "17", "27", "28", "29"], "aged": ["*"]}
    text = people().set_column(1, "age", people()["age"].cast(pa.string()))
    levels = {one: name for name, ones in groups.items() for one in ones}
    recoding = {str(a): levels.get(str(a), "aged") for a in people()["age"].to_pylist()}
    policy = rp.Policy(retention=1 - 1e-12, tolerance=0.5, doubt=0.3, sampling="none")
    read = rp.read(text, sensitive="job", public="all", missing="value", group={"age": recoding})
    with read as table:
        found = table.publish(policy, tmp_path / "r", key=numbered_key(1), max_unique=1)
        labels = found.description.schema.recoding("age").labels
        by = "SELECT region, median(age) AS m FROM release GROUP BY region ORDER BY m"
        for direction in ("ASC", "DESC"):
            places = [labels.index(row[1]) for row in rows_of(found.sql(f"{by} {direction}"))]
            assert len(set(places)) == 3
            assert places == sorted(places, reverse=direction == "DESC")
        kept = found.sql(f"{by.replace('ORDER BY m', '')} HAVING m = 'old'")
        assert [row[0] for row in rows_of(kept)] == ["B", "D"]


@pytest.mark.parametrize("by", ["age", "day"])
def test_every_surface_shows_bins_in_the_same_order(binned, by):
    labels = binned.description.schema.recoding(by).labels
    counted = binned.sql(f"SELECT {by}, count(*) FROM release GROUP BY 1")
    in_sql = [row[0] for row in rows_of(counted)]
    in_table = [row[by] for row, _ in binned.crosstab([by]).rows]
    assert in_sql == in_table
    known = [label for label in in_sql if label is not None]
    assert known == [label for label in labels if label in known]
    assert by == "day" or known != sorted(known)  # months sort as text, too
    for kind in ("median", "average"):
        answered = ask_both(
            binned.answerer, binned.answerer, FormQuestion(kind, column="ratio", by=by)
        )
        shown = [line.label for line in lines_of(answered)]
        assert [label for label in shown if label in known] == known, kind


@pytest.mark.parametrize(
    ("having", "regions"),
    [
        ("median(age) >= 20", ["C", "D"]),
        ("median(age) > 19", ["C", "D"]),
        ("20 > median(age)", ["A", "B"]),
        ("median(age) <= 19 AND median(age) >= 10", ["B"]),
        ("median(age) = '100 to 109'", ["C"]),
        ("median(age) <> '100 to 109'", ["A", "B", "D"]),
        ("median(day) >= DATE '2020-03-01'", ["A", "B", "C", "D"]),
        ("median(day) < DATE '2020-03-01'", []),
    ],
)
def test_having_compares_bins_by_their_numbers(binned, having, regions):
    found = binned.sql(f"SELECT region, count(*) FROM release GROUP BY region HAVING {having}")
    assert [row[0] for row in rows_of(found)] == regions


def test_having_that_cuts_a_bin_is_refused_or_takes_it_whole(binned):
    sql = "SELECT region, median(age) FROM release GROUP BY region HAVING median(age) > 15"
    with pytest.raises(InputError, match=r"median\(age\) > 15 cuts the bin '10 to 19'"):
        binned.sql(sql)
    whole = binned.sql(sql, whole_bins=True)
    assert [row[0] for row in rows_of(whole)] == ["B", "C", "D"]
    for _, (one,) in whole:
        assert "median(age) > 15 is taken as age >= 10" in one.remarks


def test_classes_are_ordered_by_their_scores(release):
    scores = {"x": 2, "y": 3, "z": 1}
    sql = "SELECT job, count(*), median(job) FROM release GROUP BY job"
    with pytest.raises(InputError, match="cannot be grouped by"):
        release.sql(sql, scores=scores)
    by = "SELECT age, day, quantile(job, 0.34) AS m FROM release"
    found = release.sql(f"{by} GROUP BY age, day ORDER BY m DESC", scores=scores)
    places = [scores[row[2]] for row in rows_of(found) if row[2] is not None]
    assert len(set(places)) > 1 and places == sorted(places, reverse=True)
    kept = release.sql(f"{by} GROUP BY age, day HAVING m = 'z'", scores=scores)
    assert {row[2] for row in rows_of(kept)} == {"z"}
    for having in ("m > 1", "m > 'z'", "m = 'nobody'"):
        with pytest.raises(InputError, match="has no meaning"):
            release.sql(f"{by} GROUP BY age, day HAVING {having}", scores=scores)


@pytest.mark.parametrize(
    ("figure", "sentence"),
    [
        ("percentile_cont(0.5) WITHIN GROUP (ORDER BY age)", "interpolates"),
        ("quantile_cont(age, 0.5)", "interpolates"),
        ("percentile_disc(0.9) WITHIN GROUP (ORDER BY age DESC)", "ascending"),
        ("mode() WITHIN GROUP (ORDER BY age)", "cannot be estimated"),
        ("avg(DISTINCT age)", "cannot be estimated"),
        ("avg((age > 1)::VARCHAR)", "gives no number"),
        ("avg((income > 1 AND job = 'x')::INT)", "mixes the sensitive column"),
    ],
)
def test_what_sql_would_answer_otherwise_is_refused(release, figure, sentence):
    with pytest.raises(InputError, match=sentence):
        release.sql(f"SELECT {figure} FROM release")


def test_an_order_by_text_is_refused(release):
    with pytest.raises(InputError, match="not the position of a column"):
        release.sql("SELECT region, count(*) FROM release GROUP BY region ORDER BY 'region'")


@pytest.mark.parametrize("by", [["region"], ["region", "job"]])
def test_a_table_of_nobody_has_no_rows_and_columns(release, by):
    for asked in ({}, {"shares": "column"}, {"widest": 3}):
        found = release.crosstab(by, "age > 1000", **asked)
        assert len(found) == 0 and "region" in repr(found)
        with pytest.raises(InputError, match="No record is in this selection"):
            found.two_way()


def test_a_batch_names_what_it_cannot_answer(release):
    with pytest.raises(rp.ReconprivError, match="single figures"):
        release.count_many(["SELECT count(*), avg(age) FROM release"])


def test_several_figures_stay_a_table(release):
    found = release.sql("SELECT count(*) AS a, count(*) AS b FROM release")
    assert isinstance(found, FigureTable) and found.names == ("a", "b")


@pytest.mark.parametrize("numbers", [[2**53 + 1, 5], [1e300, 2.0], [float(2**53), 7.0], [1, 2]])
def test_a_table_of_quantiles_of_any_size_becomes_a_frame(tmp_path, numbers):
    kind = pa.float64() if any(isinstance(one, float) for one in numbers) else pa.int64()
    table = pa.table(
        {"g": ["p", "q"] * 40, "x": pa.array(numbers * 40, kind), "s": ["a", "b", "b", "a"] * 20}
    )
    policy = rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3, sampling="none")
    with rp.read(table, sensitive="s", public="all") as read:
        release = read.publish(policy, tmp_path / "r", key=numbered_key(1))
    found = release.sql("SELECT g, median(x) AS m FROM release GROUP BY g ORDER BY g")
    assert found.to_arrow()["m"].to_pylist() == [row[1] for row in rows_of(found)]
    assert len(found.to_pandas()) == len(found.to_polars()) == 2


def test_averages_that_differ_by_rounding_are_equal(tmp_path):
    number = Decimal("0.1")
    sizes = {"p": 3, "q": 40}
    assert sizes["p"] * 0.1 / sizes["p"] != 0.1  # the rounding is there
    groups = [group for group, size in sizes.items() for _ in range(size)]
    sick = ["a", "b"] * 21 + ["a"]
    table = pa.table({"g": groups, "x": [number] * 43, "s": sick})
    policy = rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3, sampling="none")
    with rp.read(table, sensitive="s", public="all") as read:
        release = read.publish(policy, tmp_path / "r", key=numbered_key(1))
    sql = "SELECT g, avg(x) AS a FROM release GROUP BY g"
    assert [row[0] for row in rows_of(release.sql(f"{sql} ORDER BY a, g"))] == ["p", "q"]
    assert [row[0] for row in rows_of(release.sql(f"{sql} ORDER BY a DESC, g"))] == ["p", "q"]
    assert len(release.sql(f"{sql} HAVING a = 0.1")) == 2
    assert len(release.sql(f"{sql} HAVING a > 0.1")) == 0

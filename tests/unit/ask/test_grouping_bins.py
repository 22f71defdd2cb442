"""Expressions over recoded columns are meaningless; the bins themselves are grouped in order."""

import pyarrow as pa
import pytest

import reconpriv as rp
from reconpriv.errors import InputError


def test_an_expression_over_bins_is_refused(tmp_path):
    table = pa.table({"age": list(range(20, 120)) * 4, "ill": ["flu", "none"] * 200})
    with rp.read(table, sensitive="ill", public="all", bin={"age": 10}) as opened:
        policy = rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3, unattainable="one-trial")
        release = opened.publish(policy, tmp_path / "r", key=rp.Key.test())
    with pytest.raises(InputError, match="Column 'age' holds bins"):
        release.sql("SELECT age // 2 AS k, count(*) FROM release GROUP BY k")
    rows = release.sql("SELECT age, count(*) FROM release GROUP BY age ORDER BY count(*) LIMIT 3")
    assert len(rows) == 3
    ordered = [labels["age"] for labels, _ in release.crosstab(["age"])]
    assert ordered[0].startswith("20") and ordered[-1].startswith("110")


@pytest.fixture(scope="module")
def heights(tmp_path_factory):
    """Bins of 'my height' from -10 up; values that are whole and values that are not."""
    heights = [x / 2 for x in range(-20, 280)] * 4
    table = pa.table(
        {
            "my height": heights,
            "age": [int(x) % 90 for x in heights],
            "ill": ["flu", "none", "cold"] * 400,
        }
    )
    policy = rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3, unattainable="one-trial")
    bins = {"my height": 10, "age": [0, 18, 65]}
    with rp.read(table, sensitive="ill", public="all", bin=bins) as opened:
        return opened.publish(policy, tmp_path_factory.mktemp("h") / "r", key=rp.Key.test())


def test_a_case_over_bins_is_refused_as_bins(heights):
    with pytest.raises(InputError, match="Column 'age' holds bins"):
        heights.sql("SELECT CASE WHEN age < 40 THEN 1 ELSE 2 END, count(*) FROM release GROUP BY 1")


@pytest.mark.parametrize(
    ("asked", "same", "remark"),
    [
        ("NOT age < 40", "age >= 18", "age >= 18: the bin '18 to 64' is counted whole"),
        ("NOT (age >= 40)", "age < 65", "age < 65: the bin '18 to 64' is counted whole"),
        ("NOT NOT age < 40", "age < 65", "age < 65: the bin '18 to 64' is counted whole"),
        ("NOT (age < 40 AND age = 3)", "age >= 18 OR age <> '0 to 17'", "age >= 18"),
        ("NOT age = 40", "age <> '18 to 64'", "age <> '18 to 64': the bin '18 to 64' is left out"),
        ("NOT age <> 40", "age = '18 to 64'", "age = '18 to 64': the bin '18 to 64' is counted"),
        ("age NOT BETWEEN 20 AND 30", "age <> '18 to 64'", "age <> '18 to 64': the bin"),
        ("age NOT IN (3, 40)", "age >= 65", "age not in '0 to 17', '18 to 64': the bins"),
        ("NOT 40 > age", "age >= 18", "age >= 18: the bin '18 to 64' is counted whole"),
    ],
)
def test_whole_bins_under_not(heights, asked, same, remark):
    whole = heights.count(asked, whole_bins=True)
    assert whole.count == heights.count(same).count
    assert not whole.exact
    assert f"answered for {remark}" in whole.remarks[0]


@pytest.mark.parametrize("asked", ["(age < 40) IS NOT TRUE", "(age < 40) = FALSE"])
def test_whole_bins_inside_of_anything_else(heights, asked):
    whole = heights.count(asked, whole_bins=True)
    assert whole.count == heights.count("age >= 65").count
    assert whole.remarks == ("age < 40 is taken as age < 65",)


@pytest.mark.parametrize(
    ("asked", "hint"),
    [
        ("age <> 40", r"whole bin \(age <> '18 to 64'\)"),
        ('"my height" = 5', r"whole bin \(\"my height\" = '0 to under 10'\)"),
        ('"my height" + 1 > 5', r"for example \"my height\" = '-10 to under 0'"),
        ("age < 18 OR ill = 'flu'", "The condition age < 18 OR ill = 'flu' mixes"),
    ],
)
def test_a_refusal_shows_what_can_be_typed(heights, asked, hint):
    with pytest.raises(InputError, match=hint):
        heights.count(asked)


@pytest.mark.parametrize("sql", ["", "  \n"])
def test_an_empty_query_is_called_empty(heights, sql):
    with pytest.raises(InputError, match="The query is empty"):
        heights.sql(sql)


def test_a_batch_on_a_column_called_count_has_no_two_columns_of_a_name(cli, tmp_path):
    table = pa.table({"count": [1, 2] * 50, "ill": ["flu", "none", "flu", "cold"] * 25})
    with rp.read(table, sensitive="ill", public="all") as opened:
        opened.publish(
            rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3), tmp_path / "r", key=rp.Key.test()
        )
    (tmp_path / "b.csv").write_text("count\n1\n")
    header, row = cli("query", tmp_path / "r", "--batch", tmp_path / "b.csv").out.splitlines()
    assert header.startswith("count,count_,low,")
    assert row.startswith("1,50.0,50.0,")

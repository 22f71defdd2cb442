"""Tables of estimates as Arrow, pandas and Polars."""

import datetime as dt

import pyarrow as pa
import pytest

import reconpriv as rp
from query_fixtures import people_release
from reconpriv.answers.tables import EstimateTable

FIGURES = [
    "count", "low", "high", "confidence", "standard_error", "exact", "records", "groups", "trials",
    "from_margins", "remarks",
]  # fmt: skip


def table(sql="SELECT age, region, count(*) FROM release WHERE job = 'nurse' GROUP BY ALL"):
    answer = people_release("octave").sql(sql)
    assert isinstance(answer, EstimateTable)
    return answer


def test_arrow_holds_labels_and_all_figures_with_their_types():
    rows = table()
    arrow = rows.to_arrow()
    assert arrow.column_names == ["age", "region", *FIGURES]
    assert arrow.schema.field("age").type == pa.int64()
    assert arrow.schema.field("region").type == pa.string()
    assert arrow.schema.field("trials").type == pa.float64()
    assert arrow.schema.field("exact").type == pa.bool_()
    assert arrow["region"].null_count > 0
    assert arrow["confidence"].to_pylist() == [0.95] * len(rows)
    assert arrow["trials"].to_pylist() == [estimate.trials for _, estimate in rows]
    assert arrow["remarks"].to_pylist() == ["; ".join(e.remarks) for _, e in rows]


def test_pandas_and_polars_hold_the_same():
    arrow = table().to_arrow()
    polars = table().to_polars()
    assert polars.to_dicts() == arrow.to_pylist()
    pandas = table().to_pandas()
    assert list(pandas.columns) == arrow.column_names
    assert str(pandas["age"].dtype) == "int64" and str(pandas["records"].dtype) == "int64"
    assert pandas["count"].tolist() == arrow["count"].to_pylist()
    assert pandas["region"].isna().sum() == arrow["region"].null_count


def test_whole_numbers_with_a_missing_one_stay_whole():
    estimate = people_release("octave").count()
    rows = EstimateTable(("n",), (({"n": 2**53 + 1}, estimate), ({"n": None}, estimate)))
    assert str(rows.to_pandas()["n"].dtype) == "Int64"
    assert rows.to_pandas()["n"][0] == 2**53 + 1
    days = EstimateTable(("d",), (({"d": dt.date(2024, 1, 2)}, estimate),))
    assert days.to_arrow().schema.field("d").type == pa.date32()


def test_a_label_called_like_a_figure_keeps_its_name():
    estimate = people_release("octave").count()
    for name, other in (("count", "count_"), ("Low", "low_")):
        arrow = EstimateTable((name,), (({name: "x"}, estimate),)).to_arrow()
        assert arrow.column_names[0] == name and arrow[name].to_pylist() == ["x"]
        assert arrow[other].to_pylist() == [getattr(estimate, other[:-1])]
        assert len(arrow.column_names) == 1 + len(FIGURES)
    both = EstimateTable(("count", "count_"), (({"count": 1, "count_": 2}, estimate),)).to_arrow()
    assert both["count__"].to_pylist() == [estimate.count]


def test_a_table_without_rows_has_its_columns():
    empty = table("SELECT age, count(*) FROM release GROUP BY age LIMIT 0")
    assert empty.to_arrow().column_names == ["age", *FIGURES]
    assert len(empty.to_pandas()) == 0 and empty.to_polars().height == 0
    assert isinstance(people_release("octave"), rp.Release)


@pytest.mark.parametrize("how", ["to_arrow", "to_pandas", "to_polars"])
def test_every_kind_is_documented(how):
    assert getattr(EstimateTable, how).__doc__

"""Charts of answers: what is drawn, in which order, and the files that they are written to."""

import json
import math
import re
import sys
from dataclasses import replace

import pytest

from query_fixtures import people_release
from reconpriv.answers.tables import EstimateTable
from reconpriv.errors import InputError, OutputError
from reconpriv.show.charts import drawing as charts
from reconpriv.show.charts import palette
from reconpriv.show.charts.answer_chart import SLIM, answer_chart

FIGURES = "SELECT Sex, share(job = 'nurse') AS nurses, avg(age) AS age FROM release GROUP BY Sex"
SCORES = {"baker": 1, "clerk": 2, "nurse": 3, "pilot": 4}


@pytest.fixture(scope="module")
def release():
    return people_release("octave")


def answers(release):
    """Every kind of result that has a chart."""
    return {
        "count": release.count("age < 30", job="nurse"),
        "exact": release.count("age < 30"),
        "share": release.share("age < 30", job="nurse"),
        "counts": release.sql("SELECT age, count(*) FROM release WHERE job = 'nurse' GROUP BY age"),
        "figures": release.sql(FIGURES),
        "comparison": release.compare("Sex = 'F'", "Sex = 'M'", job="nurse"),
        "crosstab": release.crosstab(["job", "Sex"], shares="row", totals=True, widest="10%"),
        "logistic": release.logistic("nurse", ["age", "Sex"]),
        "multinomial": release.logistic(
            "job", ["Sex"], merge={"few": ["baker", "pilot"]}, where="age < 25"
        ),
        "linear": release.linear("age", ["Sex"]),
    }


def data(spec, panel=0):
    return spec["vconcat"][panel]["data"]["values"]


def words(spec):
    return " ".join([*spec["title"]["text"], *spec["title"]["subtitle"]])


def test_every_answer_is_drawn(release):
    for name, answer in answers(release).items():
        svg = charts.drawn(answer.plot().printed)
        assert svg.startswith("<svg"), name
        assert "NaN" not in svg, name


def test_what_is_drawn_is_the_answer(release):
    table = release.crosstab(["job"])
    rows = {row["label"]: row for row in data(answer_chart(table))}
    assert len(rows) == len(table)
    for labels, one in table:
        row = rows[labels["job"] or "(missing)"]
        assert (row["value"], row["from"], row["to"]) == (one.count, one.low, one.high)
        assert row["words"].startswith(f"{one.count:,.1f}")
    assert "95 % intervals" in words(answer_chart(table))


def test_names_are_sorted_by_value_and_numbers_are_not(release):
    names = [row["label"] for row in data(answer_chart(release.crosstab(["job"])))]
    assert names[0] == "nurse"
    assert names[-1] == "(missing)"
    assert [row["label"] for row in data(answer_chart(release.crosstab(["age"])))] == [
        str(age) for age in range(20, 35)
    ]
    asked = release.sql("SELECT job, count(*) FROM release GROUP BY job ORDER BY job DESC")
    drawn = [row["label"] for row in data(answer_chart(asked))]
    assert drawn == [labels["job"] or "(missing)" for labels, _ in asked]
    ages = [row["value"] for row in data(answer_chart(release.crosstab(["age"]), order="value"))]
    assert ages == sorted(ages, reverse=True)
    listed = data(answer_chart(release.crosstab(["job"]), order="table"))
    assert [row["label"] for row in listed] == ["baker", "clerk", "nurse", "pilot", "(missing)"]


def test_a_chart_for_a_phone_leaves_the_figures_to_a_table(release):
    table = release.crosstab(["age"], job="nurse")

    def texts(spec):
        layers = (one["encoding"] for one in spec["vconcat"][0]["layer"])
        return [one["text"]["field"] for one in layers if "text" in one]

    wide, slim = answer_chart(table), answer_chart(table, room=SLIM)
    assert (texts(wide), texts(slim)) == (["label", "words"], ["label"])
    assert max(map(len, slim["title"]["subtitle"])) <= 44 < max(map(len, wide["title"]["subtitle"]))
    compared = release.compare("Sex = 'F'", "Sex = 'M'", job="nurse")
    axis = '"title": ["difference of the shares,", "in percentage points"]'
    assert axis in json.dumps(answer_chart(compared, room=SLIM))
    widths = [float(charts.drawn(one).split('width="')[1].split('"')[0]) for one in (wide, slim)]
    assert widths[1] < 320 < widths[0]


def test_more_rows_than_fit_are_left_out_and_the_chart_says_so(release):
    table = release.crosstab(["age"], job="nurse")
    spec = answer_chart(table, most=6)
    assert [row["label"] for row in data(spec)] == [str(age) for age in range(20, 26)]
    assert "6 of 15 rows are drawn" in words(spec)
    assert "rows are drawn" not in words(answer_chart(table, most=15))
    for most in (0, -1):
        with pytest.raises(InputError, match="at least one row"):
            table.plot(most=most)
    for most in (2.5, True):
        with pytest.raises(InputError, match="most must be a whole number"):
            table.plot(most=most)
    with pytest.raises(InputError, match="auto, table or value"):
        table.plot(order="size")


def test_two_columns_have_colours_and_many_values_have_none(release):
    spec = answer_chart(release.crosstab(["age", "Sex"], "age < 25"))
    assert {row["series"] for row in data(spec)} == {"F", "M"}
    assert [row["label"] for row in data(spec)] == [str(a) for a in range(20, 25) for _ in "FM"]
    turned = answer_chart(release.crosstab(["Sex", "age"], "age < 25"))
    assert {row["series"] for row in data(turned)} == {"F", "M"}
    table = release.crosstab(["age", "Sex"], job="nurse")
    many = EstimateTable(("age", "code"), tuple(
        ({"age": labels["age"], "code": i}, one) for i, (labels, one) in enumerate(table)
    ))  # fmt: skip
    assert {row["series"] for row in data(answer_chart(many))} == {""}


def test_exact_and_wide_answers_are_marked(release):
    mixed = answer_chart(release.sql(FIGURES))
    assert [row["exact"] for row in data(mixed, 0)] == [False, False]
    assert [row["exact"] for row in data(mixed, 1)] == [True, True]
    assert "upright bars are exact" in words(mixed)
    table = release.crosstab(["job", "Sex"], shares="row", widest="10%")
    drawn = data(answer_chart(table))
    assert sum(row["wide"] for row in drawn) == sum(cell.wide for cell in table.cells) > 0
    assert "wider than 10 percentage points" in words(answer_chart(table))
    assert all(row["words"].endswith("wide") == row["wide"] for row in drawn)


def test_a_comparison_shows_what_no_difference_would_be(release):
    found = release.compare("Sex = 'F'", "Sex = 'M'", job="nurse")
    spec = answer_chart(found)
    assert [row["label"][0] for row in data(spec)] == ["a", "b"]
    assert [part["layer"][0].get("data") for part in spec["vconcat"]] == [
        None, {"values": [{"at": 0.0}]}, {"values": [{"at": 1.0}]}]  # fmt: skip
    assert data(spec, 1)[0]["value"] == found.difference
    assert " ".join(spec["title"]["text"]) == found.verdict
    open_ended = answer_chart(replace(found, ratio_high=None))
    assert data(open_ended, 2)[0]["above"]
    assert not data(spec, 2)[0]["above"]
    assert math.isfinite(data(open_ended, 2)[0]["to"])


def test_a_regression_is_drawn_without_its_intercept(release):
    found = release.logistic("nurse", ["age", "Sex"])
    spec = answer_chart(found)
    assert [row["label"] for row in data(spec)] == ["age", "Sex[M]"]
    assert "the intercept is not drawn" in words(spec)
    assert "compared with Sex = F" in words(spec)
    infinite = replace(found.coefficients[1], high=math.inf)
    spec = answer_chart(replace(found, coefficients=(infinite,)))
    assert data(spec)[0]["above"]
    json.dumps(spec, allow_nan=False)


def test_what_is_no_number_is_not_drawn(release):
    median = release.median("job", scores=SCORES)
    assert isinstance(median.value, str)
    with pytest.raises(InputError, match="no number to draw"):
        median.plot()
    both = release.sql("SELECT Sex, median(job), avg(job) FROM release GROUP BY Sex", scores=SCORES)
    spec = answer_chart(both)
    assert len(spec["vconcat"]) == 1
    assert "2 rows have no number to draw as median(job)" in words(spec)
    with pytest.raises(InputError, match="no number to draw"):
        EstimateTable(("Sex",), ()).plot()
    with pytest.raises(InputError, match="There is no chart of 'dict'"):
        answer_chart({})


def test_labels_that_look_alike_stay_apart_and_long_ones_wrap(release):
    (_, one), *_ = release.crosstab(["job"], "age < 30")
    rows = ({"x": None}, one), ({"x": "(missing)"}, one), ({"x": "a long name " * 20}, one)
    found = data(answer_chart(EstimateTable(("x",), rows)))
    assert len({row["label"] for row in found}) == 3
    assert max(row["lines"] for row in found) == 3
    assert max(len(line) for row in found for line in row["label"].split("\n")) <= 36


def test_no_other_colours_are_used(release):
    for answer in (
        release.crosstab(["job", "region"]),
        release.compare("age < 25", "age > 25", job="nurse"),
    ):
        svg = charts.drawn(answer.plot().spec).lower()
        named = set(re.findall(r'(?:fill|stroke)="(#[0-9a-f]{6}|[a-z]+)"', svg))
        allowed = {colour.lower() for colour in palette.COLOURS} | {"none", "transparent"}
        assert named <= allowed | {"currentcolor"}


def test_a_notebook_shows_the_drawing_in_its_own_colours(release):
    shown = release.crosstab(["job"]).plot()._repr_mimebundle_(include=None, exclude=None)
    assert shown["text/html"].startswith("<div><svg")
    assert "currentColor" in shown["text/html"]
    assert shown["text/plain"] == "<chart: Count by job>"


def test_files(release, tmp_path):
    chart = release.crosstab(["job"], "age < 30").plot()
    for ending in ("html", "svg", "png", "json"):
        chart.save(tmp_path / f"c.{ending}")
    assert (tmp_path / "c.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "c.svg").read_text().startswith("<svg")
    assert json.loads((tmp_path / "c.json").read_text())["vconcat"]
    page = (tmp_path / "c.html").read_text()
    assert "default-src &#x27;none&#x27;" in page
    assert re.findall(r'(?:src|href)="', page.split("<script>")[0]) == []
    assert page.count("nurse") >= 2  # in the chart, and in the table below it


def test_a_value_cannot_end_the_script(release, tmp_path):
    (_, one), *_ = release.crosstab(["job"])
    table = EstimateTable(("x",), (({"x": "</script><b>oops"}, one),))
    table.plot().save(tmp_path / "c.html")
    page = (tmp_path / "c.html").read_text()
    assert "<b>oops" not in page
    assert "\\u003c/script>" in page


def test_bad_files_are_refused_and_nothing_is_left(release, tmp_path, monkeypatch):
    chart = release.crosstab(["job"]).plot()
    for name in ("c.pdf", "c"):
        with pytest.raises(OutputError, match=r"\.html, \.svg, \.png or \.json"):
            chart.save(tmp_path / name)
    with pytest.raises(OutputError, match="no folder"):
        chart.save(tmp_path / "nowhere" / "c.svg")
    chart.save(tmp_path / "c.svg")
    with pytest.raises(OutputError, match="exists already"):
        chart.save(tmp_path / "c.svg")
    chart.save(tmp_path / "c.svg", overwrite=True)
    monkeypatch.setattr(charts, "drawn", lambda _: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        chart.save(tmp_path / "d.svg")
    assert [file.name for file in tmp_path.iterdir()] == ["c.svg"]


def test_what_is_missing_is_named(release, monkeypatch):
    monkeypatch.setitem(sys.modules, "altair", None)
    with pytest.raises(InputError, match="altair and vl-convert-python"):
        release.count(job="nurse").plot()

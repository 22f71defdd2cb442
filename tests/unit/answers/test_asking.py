"""Querying a release: count, frequencies, crosstab, sql, and the published records themselves."""

import datetime as dt
import decimal
import json
import math

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reconpriv as rp
from query_fixtures import (
    JOBS,
    PUBLIC,
    SAMPLING_RULES,
    people,
    people_release,
    publish_quietly,
    slow_people,
)
from reconpriv.errors import InputError

EXACT_SIZES = ("none", "octave", "public")
FIXED = settings(deadline=None, derandomize=True, max_examples=60)
SUPPORTED = "Supported: SELECT [columns,] count(*), share(…)"


def assert_same(got, slow):
    assert got.count == pytest.approx(slow.count, rel=1e-12, abs=1e-9)
    assert got.standard_error == pytest.approx(slow.standard_error, rel=1e-9, abs=1e-6)
    assert (got.records, got.groups, got.trials) == (slow.records, slow.groups, slow.trials)


# --- counts --------------------------------------------------------------------------------------


@pytest.mark.parametrize("sampling", EXACT_SIZES)
@pytest.mark.parametrize(
    ("values", "asked"),
    [
        (("nurse",), "nurse"),
        (("baker", "pilot"), ["baker", "pilot"]),
        (("baker", "clerk"), {"clerk", "baker"}),
        (("baker", None), ("baker", None)),
        ((None,), None),
    ],
)
def test_a_condition_with_a_keyword_equals_the_slow_computation(sampling, values, asked):
    got = people_release(sampling).count("age BETWEEN 22 AND 27 AND Sex = 'F'", job=asked)
    slow = slow_people(sampling).count(lambda age, Sex, region: 22 <= age <= 27 and Sex == "F",
                                          values)  # fmt: skip
    assert_same(got, slow)
    assert not got.exact and got.estimator == "mle" and got.confidence == 0.95


@pytest.mark.parametrize("sampling", ["octave", "public"])
def test_the_slow_computation_meets_sampled_groups_with_uneven_copies(sampling):
    slow = slow_people(sampling)
    sampled = [g for g, counts in slow.groups.items() if slow.trials[g] < counts.total()]
    assert len(sampled) > 10
    assert any(slow.groups[g].total() % slow.trials[g] for g in sampled)


def test_the_estimate_by_hand():
    # (O - t |S|) / p with p = .5 and m = 5
    published = people_release("octave").to_pandas()
    observed, size = int((published["job"] == "nurse").sum()), len(published)
    got = people_release("octave").count(job="nurse")
    assert got.count == (observed - 0.1 * size) / 0.5


def test_with_many_trials_the_interval_is_near_the_normal_one():
    got = people_release("none").count("age < 60", job="nurse", confidence=0.9)
    half = 1.6448536269514722 * got.standard_error
    assert got.high - got.count == pytest.approx(half, rel=0.05)
    assert got.count - got.low == pytest.approx(half, rel=0.05)


@pytest.mark.parametrize("sampling", EXACT_SIZES)
def test_a_count_over_public_attributes_alone_is_exact_and_says_so(sampling):
    raw = people().to_pandas()
    got = people_release(sampling).count(age=30)
    assert got.exact and got.count == got.low == got.high == int((raw["age"] == 30).sum())
    assert got.standard_error == 0 and str(got) == f"{got.count:,.0f} (exact)"


def test_keywords_and_conditions_on_the_same_column_both_hold():
    release = people_release("octave")
    assert release.count("age = 30", age=31).count == 0
    assert release.count("age >= 30", age=31).count == release.count(age=31).count > 0
    assert release.count("job IN ('nurse', 'pilot')", job=["pilot", "clerk"]).count == (
        release.count(job="pilot").count
    )


# --- frequencies and cross tables ----------------------------------------------------------------


@pytest.mark.parametrize("sampling", EXACT_SIZES)
def test_frequencies_list_the_whole_domain_each_as_if_asked_alone(sampling):
    release = people_release(sampling)
    table = release.frequencies("age < 24", Sex="M")
    assert [labels["job"] for labels, _ in table] == list(JOBS)
    for labels, estimate in table:
        slow = slow_people(sampling).count(
            lambda age, Sex, region: age < 24 and Sex == "M", (labels["job"],)
        )
        assert_same(estimate, slow)


@pytest.mark.parametrize("sampling", EXACT_SIZES)
def test_a_public_cross_table_with_a_sensitive_condition_estimates_every_cell(sampling):
    table = people_release(sampling).crosstab(["region"], job=["nurse", "clerk"])
    assert len(table) == 3
    for labels, estimate in table:
        slow = slow_people(sampling).count(
            lambda age, Sex, region, want=labels["region"]: region == want, ("nurse", "clerk")
        )
        assert_same(estimate, slow)


@pytest.mark.parametrize("sampling", EXACT_SIZES)
def test_a_cross_table_may_hold_the_sensitive_attribute_anywhere(sampling):
    table = people_release(sampling).crosstab(["Sex", "job"], "age = 20")
    turned = people_release(sampling).crosstab(["job", "Sex"], "age = 20")
    assert len(table) == len(turned) == 10
    for labels, estimate in table:
        slow = slow_people(sampling).count(
            lambda age, Sex, region, want=labels["Sex"]: age == 20 and Sex == want, (labels["job"],)
        )
        assert_same(estimate, slow)
        assert turned[labels["job"], labels["Sex"]] == estimate


def test_a_sensitive_condition_leaves_only_its_values_in_the_table():
    table = people_release("octave").frequencies("job IN ('nurse', 'clerk')")
    assert [labels["job"] for labels, _ in table] == ["clerk", "nurse"]


def test_a_cell_that_is_not_there_is_a_key_error():
    with pytest.raises(KeyError):
        people_release("octave").crosstab(["Sex"])["X"]


@pytest.mark.parametrize("ask", [
    lambda release: release.crosstab(["Sex", "Sex"]),
    lambda release: release.sql("SELECT count(*) FROM release GROUP BY Sex, Sex"),
])  # fmt: skip
def test_an_attribute_named_twice_is_refused_or_taken_once(ask):
    try:
        table = ask(people_release("octave"))
    except rp.ReconprivError:
        return
    assert table.by == ("Sex",)


def test_a_table_of_estimates_prints_its_cells_and_notes():
    text = str(people_release("octave").crosstab(["region"], job="nurse"))
    assert "(missing)" in text and "O'Hara" in text and "interval" in text
    html = people_release("octave").crosstab(["region"])._repr_html_()
    assert "<table>" in html and "O'Hara" in html


# --- the records ---------------------------------------------------------------------------------


def test_the_published_records_come_as_arrow_pandas_and_polars():
    release = people_release("octave")
    file = pq.read_table(release.path / "data.parquet")
    assert release.to_arrow().equals(file)
    assert release.to_pandas().equals(file.to_pandas())
    assert release.to_polars().to_arrow().to_pylist() == file.to_pylist()
    assert release.records == file.num_rows == 3_000


def test_text_that_looks_like_numbers_stays_text_in_a_csv_release(tmp_path):
    zips = ["01", "02"] * 30
    table = pa.table({"zip": zips, "job": ["a", "b", "c"] * 20})
    release = publish_quietly(table, tmp_path / "r", file_format="csv")
    assert release.count(zip="01").count == 30
    assert sorted(set(release.to_arrow()["zip"].to_pylist())) == ["01", "02"]


_KINDS = {
    "decimal": [decimal.Decimal("1.50"), decimal.Decimal("2.25")],
    "float": [1.5, 2.0],
    "boolean": [True, False],
    "date": [dt.date(2020, 1, 1), dt.date(2021, 5, 5)],
    "datetime": [dt.datetime(2020, 1, 1, 3, 4), dt.datetime(2021, 5, 5)],
    "time": [dt.time(1, 2), dt.time(3, 4, 5)],
    "text that looks like a date": ["2020-01-01", "2021-05-05"],
    "text that looks like a boolean": ["true", "false"],
    "empty text": ["", "a"],
}


@pytest.mark.parametrize("kind", list(_KINDS))
def test_a_csv_release_holds_public_values_of_every_kind(tmp_path, kind):
    first, second = _KINDS[kind]
    table = pa.table({"x": pa.array([first] * 40 + [second] * 20), "job": ["a", "b", "c"] * 20})
    release = publish_quietly(table, tmp_path / "r", file_format="csv")
    counts = {labels["x"]: e.count for labels, e in release.crosstab(["x"])}
    assert counts == {first: release.count(x=first).count, second: 20} == {first: 40, second: 20}


@pytest.mark.parametrize("values", [
    [1, 2, 3], [True, False, None], [dt.date(2020, 1, 1), dt.date(2021, 5, 5), None],
])  # fmt: skip
def test_sensitive_values_of_other_kinds_are_found(tmp_path, values):
    table = pa.table({"g": ["x", "y"] * 60, "job": pa.array(values * 40)})
    release = publish_quietly(table, tmp_path / "r")
    published = release.to_arrow()["job"].to_pylist()
    t = 0.5 / 3
    for value in values:
        assert release.count(job=value).count == (published.count(value) - t * 120) / 0.5
    text = ", ".join(f"'{v}'" for v in values if v is not None)
    got = release.sql(f"SELECT count(*) FROM release WHERE job IN ({text})")
    present = [v for v in values if v is not None]
    assert got.count == pytest.approx(release.count(job=present).count)


# --- SQL -----------------------------------------------------------------------------------------

_FORMS = {
    "age = 30": lambda age, Sex, region: age == 30,
    "30 = age": lambda age, Sex, region: age == 30,
    "AGE = 30 AND \"sex\" = 'F'": lambda age, Sex, region: age == 30 and Sex == "F",
    "release.age = 30": lambda age, Sex, region: age == 30,
    "age IN (20, 25, 99)": lambda age, Sex, region: age in (20, 25),
    "age NOT IN (20, 25)": lambda age, Sex, region: age not in (20, 25),
    "age > 21 AND age <= 25": lambda age, Sex, region: 21 < age <= 25,
    "age BETWEEN 22 AND 24": lambda age, Sex, region: 22 <= age <= 24,
    "age = 20 OR Sex = 'M'": lambda age, Sex, region: age == 20 or Sex == "M",
    "(age = 20 OR Sex = 'M') AND age < 26": lambda age, Sex, region: (
        (age == 20 or Sex == "M") and age < 26
    ),
    "NOT (age = 20 AND Sex = 'M')": lambda age, Sex, region: not (age == 20 and Sex == "M"),
    "NOT Sex = 'M'": lambda age, Sex, region: Sex != "M",
    "Sex <> 'M'": lambda age, Sex, region: Sex != "M",
    "region LIKE 'N%'": lambda age, Sex, region: region == "North",
    "region = 'O''Hara'": lambda age, Sex, region: region == "O'Hara",
    "region IS NULL": lambda age, Sex, region: region is None,
    "region IS NOT NULL": lambda age, Sex, region: region is not None,
    "region <> 'North'": lambda age, Sex, region: region == "O'Hara",
    "((age = 20))": lambda age, Sex, region: age == 20,
    "age % 2 = 0": lambda age, Sex, region: age % 2 == 0,
    "lower(Sex) = 'f' AND age + 1 = 31": lambda age, Sex, region: Sex == "F" and age == 30,
    "CASE WHEN Sex = 'F' THEN age < 22 ELSE age > 30 END": lambda age, Sex, region: (
        age < 22 if Sex == "F" else age > 30
    ),
    "age = 20 AND age = 21": lambda age, Sex, region: False,
    "true": lambda age, Sex, region: True,
}


@pytest.mark.parametrize("condition", list(_FORMS))
def test_a_public_condition_means_what_it_says(condition):
    raw = people().to_pylist()
    expected = sum(_FORMS[condition](**{name: row[name] for name in PUBLIC}) for row in raw)
    release = people_release("octave")
    got = release.sql(f"SELECT count(*) FROM release WHERE {condition}")
    assert got.exact and got.count == expected
    assert release.count(condition).count == expected
    slow = slow_people("octave").count(_FORMS[condition], ("nurse",))
    assert_same(
        release.sql(f"SELECT count(*) FROM release WHERE ({condition}) AND job='nurse'"), slow
    )


@pytest.mark.parametrize(
    ("condition", "values"),
    [
        ("job = 'nurse'", ("nurse",)),
        ("'nurse' = job", ("nurse",)),
        ("JOB = 'nurse'", ("nurse",)),
        ("job <> 'nurse'", ("baker", "clerk", "pilot")),
        ("job IN ('nurse', 'baker')", ("nurse", "baker")),
        ("job NOT IN ('nurse', 'baker')", ("clerk", "pilot")),
        ("job IS NULL", (None,)),
        ("job IS NOT NULL", ("baker", "clerk", "nurse", "pilot")),
        ("(job = 'nurse' OR job IS NULL)", ("nurse", None)),
        ("job LIKE '%er%'", ("baker", "clerk")),
        ("job IN ('nurse', 'baker') AND job <> 'nurse'", ("baker",)),
        ("(Sex = 'F' AND (job = 'pilot'))", ("pilot",)),
    ],
)
@pytest.mark.parametrize("sampling", EXACT_SIZES)
def test_a_sensitive_conjunct_means_a_set_of_values(condition, values, sampling):
    slow = slow_people(sampling).count(lambda age, Sex, region: Sex == "F", values)
    sql = f"SELECT count(*) FROM release WHERE Sex = 'F' AND {condition}"
    assert_same(people_release(sampling).sql(sql), slow)


_REFUSED = {
    "a sensitive condition under OR": "SELECT count(*) FROM release WHERE age=20 OR job='nurse'",
    "a negated conjunction": "SELECT count(*) FROM release WHERE NOT (age=20 AND job='nurse')",
    "a comparison of sensitive with public": "SELECT count(*) FROM release WHERE job = Sex",
    "a row comparison": "SELECT count(*) FROM release WHERE (age, job) = (20, 'nurse')",
    "a join": "SELECT count(*) FROM release JOIN other ON true",
    "a comma join": "SELECT count(*) FROM release, other",
    "count(column)": "SELECT count(age) FROM release",
    "count(DISTINCT column)": "SELECT count(DISTINCT job) FROM release",
    "a windowed count": "SELECT count(*) OVER () FROM release",
    "a share in WHERE": "SELECT count(*) FROM release WHERE share(age = 20) > 0.5",
    "chance in an average": "SELECT avg(age * random()) FROM release",
    "a file in an average": "SELECT avg(read_text('/etc/passwd')) FROM release",
    "a subquery in a share": "SELECT share(age IN (SELECT 20)) FROM release",
    "chance in a filter": "SELECT count(*) FILTER (WHERE random() < 0.5) FROM release",
    "a share of a mixed condition": "SELECT share(age = 20 OR job = 'nurse') FROM release",
    "a standard deviation": "SELECT stddev(age) FROM release",
    "HAVING of a column": "SELECT age, count(*) FROM release GROUP BY age HAVING age > 3",
    "HAVING without GROUP BY": "SELECT count(*) FROM release HAVING count(*) > 3",
    "two counts": "SELECT count(*), count(*) FROM release",
    "no count": "SELECT age FROM release GROUP BY age",
    "a star": "SELECT * FROM release",
    "a column not grouped by": "SELECT age, count(*) FROM release",
    "a subquery in IN": "SELECT count(*) FROM release WHERE age IN (SELECT 20)",
    "EXISTS": "SELECT count(*) FROM release WHERE EXISTS (SELECT 1)",
    "a scalar subquery": "SELECT count(*) FROM release WHERE age = (SELECT max(20))",
    "a derived table": "SELECT count(*) FROM (SELECT * FROM release)",
    "WITH": "WITH release AS (SELECT 1) SELECT count(*) FROM release",
    "UNION": "SELECT count(*) FROM release UNION ALL SELECT count(*) FROM release",
    "ORDER BY a column not grouped by":
        "SELECT age, count(*) FROM release GROUP BY age ORDER BY Sex",
    "ORDER BY ALL": "SELECT age, count(*) FROM release GROUP BY age ORDER BY ALL",
    "ORDER BY a position that is not there":
        "SELECT age, count(*) FROM release GROUP BY age ORDER BY 3",
    "ORDER BY without GROUP BY": "SELECT count(*) FROM release ORDER BY count(*)",
    "LIMIT without GROUP BY": "SELECT count(*) FROM release LIMIT 3",
    "OFFSET without GROUP BY": "SELECT count(*) FROM release OFFSET 3",
    "a share as LIMIT": "SELECT age, count(*) FROM release GROUP BY age LIMIT 10%",
    "a computed LIMIT": "SELECT age, count(*) FROM release GROUP BY age LIMIT 1 + 2",
    "a negative LIMIT": "SELECT age, count(*) FROM release GROUP BY age LIMIT -1",
    "FETCH": "SELECT age, count(*) FROM release GROUP BY age FETCH FIRST 3 ROWS ONLY",
    "USING SAMPLE": "SELECT count(*) FROM release USING SAMPLE 10%",
    "TABLESAMPLE": "SELECT count(*) FROM release TABLESAMPLE 10%",
    "INTO": "SELECT count(*) INTO other FROM release",
    "QUALIFY": "SELECT count(*) FROM release QUALIFY true",
    "DISTINCT": "SELECT DISTINCT count(*) FROM release",
    "ROLLUP": "SELECT count(*) FROM release GROUP BY ROLLUP (age)",
    "GROUP BY of the sensitive column in an expression":
        "SELECT count(*) FROM release GROUP BY upper(job)",
    "GROUP BY of chance": "SELECT count(*) FROM release GROUP BY random()",
    "GROUP BY of a constant": "SELECT count(*) FROM release GROUP BY 1 + 1",
    "GROUP BY of a position that is not there": "SELECT count(*) FROM release GROUP BY 2",
    "GROUP BY of the count": "SELECT age, count(*) FROM release GROUP BY 2",
    "an expression that is not grouped by": "SELECT age + 1, count(*) FROM release GROUP BY age",
    "an aggregate in WHERE": "SELECT count(*) FROM release WHERE age > max(age)",
    "another table": "SELECT count(*) FROM other",
    "a table of another schema": "SELECT count(*) FROM secret.release",
    "no table": "SELECT count(*)",
    "a column of another table": "SELECT count(*) FROM release WHERE other.age = 20",
    "a file as a table": "SELECT count(*) FROM 'data.csv'",
    "read_csv": "SELECT count(*) FROM read_csv('/etc/passwd')",
    "read_parquet": "SELECT count(*) FROM read_parquet('data.parquet')",
    "a file function in WHERE": "SELECT count(*) FROM release WHERE read_text('/etc/passwd') = 'x'",
    "the environment": "SELECT count(*) FROM release WHERE getenv('HOME') = 'x'",
    "chance": "SELECT count(*) FROM release WHERE random() < 0.5",
    "a parameter": "SELECT count(*) FROM release WHERE age = ?",
    "two statements": "SELECT count(*) FROM release; SELECT count(*) FROM release",
    "DDL": "DROP TABLE release",
    "CREATE": "CREATE TABLE x AS SELECT count(*) FROM release",
    "INSERT": "INSERT INTO release VALUES (1)",
    "COPY": "COPY release TO 'out.csv'",
    "ATTACH": "ATTACH 'x.db'",
    "garbage": "how many nurses are there",
    "half a condition": "SELECT count(*) FROM release WHERE (age = 20",
    "nothing": "",
}  # fmt: skip


@pytest.mark.parametrize("form", list(_REFUSED))
def test_what_is_not_supported_is_refused_with_what_is(form):
    with pytest.raises(InputError) as caught:
        people_release("octave").sql(_REFUSED[form])
    assert SUPPORTED in str(caught.value)
    assert str(caught.value).endswith(".")


_ADVISED = {
    "SELECT sum(job) FROM release": "Give scores",
    "SELECT count(*) * 2 FROM release": "Use share(…)",
    "SELECT count(*) / count(*) FROM release": "Use share(…)",
    "SELECT avg(length(job)) FROM release": "Give scores",
    "SELECT avg(avg(age)) FROM release": "Use share(…)",
    "SELECT max(age) FROM release": "Ask for a quantile",
    "SELECT avg(Sex) FROM release": "column of numbers",
    "SELECT avg(agee) FROM release": "Did you mean 'age'?",
    "SELECT share(*) FROM release": "Write share(condition)",
    "SELECT avg(age) FROM release WHERE age > 90 AND job = 'nurse'": "Look at the condition",
}


@pytest.mark.parametrize("sql", _ADVISED)
def test_what_cannot_be_answered_says_what_to_use_instead(sql):
    with pytest.raises(InputError) as caught:
        people_release("octave").sql(sql)
    assert _ADVISED[sql] in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "condition",
    ["age = 20 GROUP BY age", "age = 20 ORDER BY 1", "age = 20 LIMIT 1", "age = 20 OFFSET 1",
     "age = 20; DROP TABLE release", "age = 20) OR (1 = 1", "age = 20 UNION SELECT 1",
     "age = 20 USING SAMPLE 5", "age = 20 OR job = 'nurse'", "age IN (SELECT 20)"],
)  # fmt: skip
def test_a_condition_holds_nothing_but_a_condition(condition):
    with pytest.raises(InputError, match="Supported: "):
        people_release("octave").count(condition)


def test_an_empty_condition_is_refused():
    with pytest.raises(InputError, match="condition is empty"):
        people_release("octave").count("  ")


def test_a_comparison_that_makes_no_sense_is_refused_in_a_sentence():
    with pytest.raises(InputError, match="'Sex' holds text; 3 is a number"):
        people_release("octave").count("Sex > 3")
    with pytest.raises(InputError, match=r"cannot be evaluated: the operator '\+' does not take"):
        people_release("octave").count("Sex + 1 = 2")
    with pytest.raises(InputError, match="holds numbers; 'old' is not a number"):
        people_release("octave").count("age = 'old'")


# --- properties through the API ------------------------------------------------------------------

_ATOMS = [
    *(f"age {op} {age}" for op in ("=", "<", ">=", "<>") for age in (20, 23, 27, 31)),
    "Sex = 'F'", "Sex = 'M'", "region = 'North'", "region IS NULL", "region <> 'North'",
    "age IN (20, 22, 33)", "age BETWEEN 22 AND 26", "true",
]  # fmt: skip
PREDICATE = st.recursive(
    st.sampled_from(_ATOMS),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["AND", "OR"]), inner).map(
            lambda parts: f"({parts[0]} {parts[1]} {parts[2]})"
        ),
        inner.map(lambda part: f"(NOT {part})"),
    ),
    max_leaves=5,
)
VALUES = st.sets(st.sampled_from(JOBS), min_size=1, max_size=4)


@FIXED
@given(st.sampled_from(SAMPLING_RULES), PREDICATE, PREDICATE, VALUES)
def test_lemma_2_a_difference_of_supersets_equals_the_local_estimate(size, inside, apart, values):
    release, asked = people_release(size), list(values)
    local = release.count(f"{inside} AND {apart} IS NOT TRUE", job=asked)
    larger = release.count(inside, job=asked)
    smaller = release.count(f"{inside} AND {apart} IS TRUE", job=asked)
    assert larger.count - smaller.count == pytest.approx(local.count, abs=1e-8)
    assert larger.records - smaller.records == local.records


@FIXED
@given(st.sampled_from(SAMPLING_RULES), PREDICATE)
def test_frequencies_sum_to_the_records_of_the_selection(size, where):
    release = people_release(size)
    total = sum(estimate.count for _, estimate in release.frequencies(where))
    assert total == pytest.approx(release.count(where).count, abs=1e-8)


@FIXED
@given(st.sampled_from(SAMPLING_RULES), PREDICATE, VALUES)
def test_the_estimate_of_a_set_is_the_sum_of_its_values(size, where, values):
    release = people_release(size)
    parts = sum(release.count(where, job=value).count for value in values)
    assert release.count(where, job=list(values)).count == pytest.approx(parts, abs=1e-8)


@FIXED
@given(st.sampled_from(EXACT_SIZES), PREDICATE, VALUES)
def test_the_complement_of_a_set_is_the_rest_with_the_same_standard_error(size, where, values):
    release = people_release(size)
    one = release.count(where, job=list(values))
    rest = release.count(where, job=[job for job in JOBS if job not in values])
    assert one.count + rest.count == pytest.approx(one.records, abs=1e-8)
    assert rest.standard_error == pytest.approx(one.standard_error, rel=1e-9, abs=1e-6)


@pytest.mark.parametrize("sampling", EXACT_SIZES)
def test_the_whole_domain_is_the_selection_without_doubt(sampling):
    got = people_release(sampling).count("age < 25", job=list(JOBS))
    assert got.count == pytest.approx(got.records) and got.standard_error < 1e-3


def test_sensitive_conditions_that_contradict_each_other_count_zero_exactly():
    got = people_release("octave").count("job = 'nurse' AND job = 'pilot'")
    assert (got.count, got.low, got.high, got.exact) == (0, 0, 0, True)


# --- the census table ----------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::reconpriv.ReconprivWarning")
def test_no_interval_is_negative_a_point_or_beyond_the_records(tmp_path):
    """An estimate far below 0 is bad luck of the draw, not certainty that nobody has the value."""
    roles = {"sensitive": "occupation", "public": ["age", "sex", "race"], "missing": "value"}
    with rp.read("example:adult", **roles) as table:
        release = table.publish(
            rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3), tmp_path / "r", key=rp.Key.test()
        )
    for estimator in ("mle", "constrained"):
        table = release.crosstab(["age", "sex", "occupation"], estimator=estimator)
        answers = [answer for _, answer in table]
        assert any(a.count < -2 * a.standard_error for a in answers) == (estimator == "mle")
        assert all(0 <= a.low < a.high <= a.records for a in answers)
        if estimator == "constrained":
            assert all(a.low <= a.count <= a.high for a in answers)


def test_a_single_group_is_not_called_uninformative_where_nothing_was_sampled(tiny, tmp_path):
    with rp.read(tiny, sensitive="s", public="all") as opened:
        release = opened.publish(
            rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3, sampling="none"),
            tmp_path / "r",
            key=rp.Key.generate(),
        )
    remarks = release.count(g="a", s="x").remarks
    assert remarks == ("rests on a single group",)


def test_a_confidence_next_to_one_gives_finite_json(cli, tiny, policy, tmp_path):
    with rp.read(tiny, sensitive="s", public="all") as opened:
        opened.publish(policy, tmp_path / "r", key=rp.Key.generate())
    done = cli("query", tmp_path / "r", "SELECT count(*) FROM release WHERE s = 'x'",
               "--confidence", "0.9999999999999999", "--json")  # fmt: skip
    assert done.code == 0
    assert math.isfinite(json.loads(done.out)["low"])

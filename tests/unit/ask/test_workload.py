"""The paper's pool of random count queries (section 6.1) and its mean relative error (6.2)."""

import csv
import json
import re

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from scipy import stats

import reconpriv as rp
from query_fixtures import numbered_key, people, people_release
from reconpriv.answers.answerer import Answerer
from reconpriv.ask import workload as module
from reconpriv.ask.plan import plan_queries
from reconpriv.ask.workload import make_workload, mean_relative_error, relative_errors
from reconpriv.cells.cube import collect
from reconpriv.errors import InputError, PolicyError
from reconpriv.estimate.counts import Design
from reconpriv.protect.publish_cube import published_cube


@pytest.fixture(scope="module")
def uniform():
    """A table in which every query qualifies: 4 attributes of 3 values, 2 sensitive ones."""
    cells = np.array(np.meshgrid(*[range(3)] * 4, range(2))).reshape(5, -1).repeat(2, axis=1)
    table = pa.table(dict(zip("abcds", cells, strict=True)))
    with rp.read(table, sensitive="s", public="all") as opened:
        yield opened.workload(queries=9_000, min_selectivity=1e-6, seed=4)


def uniformly(counts):
    return stats.chisquare(list(counts)).pvalue > 1e-4


def test_the_number_of_attributes_is_uniform_over_1_to_3(uniform):
    sizes = np.array([len(query) - 1 for query in uniform.queries])
    assert set(sizes) == {1, 2, 3}
    assert uniformly(np.bincount(sizes)[1:])


def test_every_set_of_attributes_is_as_likely_as_any_other_of_its_size(uniform):
    for size, sets in ((1, 4), (2, 6), (3, 4)):
        found = [tuple(q)[:-1] for q in uniform.queries if len(q) - 1 == size]
        counts = np.unique(found, axis=0, return_counts=True)[1]
        assert counts.size == sets and uniformly(counts)


def test_attributes_are_drawn_without_replacement(uniform):
    assert all(len(set(query)) == len(query) and "s" in query for query in uniform.queries)


@pytest.mark.parametrize("name", list("abcds"))
def test_values_are_uniform_over_the_domain(uniform, name):
    found = [query[name] for query in uniform.queries if name in query]
    values, counts = np.unique(found, return_counts=True)
    assert values.tolist() == list(range(2 if name == "s" else 3))
    assert uniformly(counts)


def test_the_draws_of_one_query_do_not_hang_together(uniform):
    pairs = [(q["a"], q["b"]) for q in uniform.queries if "a" in q and "b" in q]
    assert uniformly(np.unique(pairs, axis=0, return_counts=True)[1])
    pairs = [(q["a"], q["s"]) for q in uniform.queries if "a" in q]
    assert uniformly(np.unique(pairs, axis=0, return_counts=True)[1])


@pytest.fixture(scope="module")
def pool(census_tables):
    return census_tables("Education").workload(queries=600, seed=1)


def test_a_pool_has_as_many_queries_as_asked_each_with_one_sensitive_value(pool):
    assert len(pool) == len(pool.queries) == pool.answers.size == 600
    assert all(1 <= len(query) - 1 <= 3 and "Education" in query for query in pool.queries)
    assert pool.records == 148_318 and pool.candidates >= 600


def test_every_answer_reaches_the_least_selectivity(pool):
    assert pool.answers.min() >= 0.001 * pool.records
    assert pool.answers.min() < 0.0015 * pool.records


def test_answers_equal_a_recount_where_values_are_missing():
    with rp.read(people(), sensitive="job", public="all", missing="value") as table:
        pool = table.workload(queries=300, min_selectivity=0.005, seed=2)
    rows = people().to_pylist()
    assert any(None in query.values() for query in pool.queries)
    for query, answer in zip(pool.queries, pool.answers, strict=True):
        assert answer == sum(all(row[k] == v for k, v in query.items()) for row in rows)


def test_a_smaller_pool_is_the_beginning_of_a_larger_one(census_tables, pool):
    assert census_tables("Education").workload(queries=50, seed=1).queries == pool.queries[:50]


def test_no_more_attributes_are_asked_for_than_there_are():
    with rp.read(
        people().select(["Sex", "job"]), sensitive="job", public="all", missing="value"
    ) as table:
        pool = table.workload(queries=40, max_attributes=3)
    assert {tuple(query) for query in pool.queries} == {("Sex", "job")}


def test_the_mean_relative_error_is_that_of_the_paper():
    errors = relative_errors(np.array([90.0, 250.0, -10.0]), np.array([100, 200, 10]))
    assert errors.tolist() == pytest.approx([0.1, 0.25, 2.0])
    assert mean_relative_error(np.array([90.0, 250.0]), np.array([100, 200])) == pytest.approx(
        0.175
    )


def test_the_error_of_a_release_is_the_mean_over_its_answers():
    with rp.read(people(), sensitive="job", public="all", missing="value") as table:
        pool = table.workload(queries=100, min_selectivity=0.01)
    release = people_release("octave")
    counts = [release.count(**query).count for query in pool.queries]
    expected = np.mean([abs(c - a) / a for c, a in zip(counts, pool.answers, strict=True)])
    assert release.workload_error(pool) == pytest.approx(expected)


def test_the_error_is_not_measured_on_another_table():
    with rp.read(people(), sensitive="job", public="all", missing="drop") as table:
        pool = table.workload(queries=100, min_selectivity=0.01)
    with pytest.raises(rp.ReconprivError, match=r"records, and the release has 3,000\. Take the"):
        people_release("octave").workload_error(pool)
    assert people_release("paper").workload_error(pool) > 0  # whose size is chance


# --- bad input -----------------------------------------------------------------------------------


@pytest.fixture
def people_table():
    with rp.read(people(), sensitive="job", public="all", missing="value") as table:
        yield table


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"queries": 0}, "at least one query"),
        ({"queries": -5}, "at least one query"),
        ({"min_selectivity": 0}, "above 0 and at most 1"),
        ({"min_selectivity": 1.5}, "above 0 and at most 1"),
        ({"min_selectivity": float("nan")}, "above 0 and at most 1"),
        ({"max_attributes": 0}, "at least one public attribute"),
    ],
)
def test_bad_arguments_are_refused(people_table, options, sentence):
    with pytest.raises(PolicyError, match=sentence):
        people_table.workload(**options)


def test_a_table_without_such_queries_says_so_and_what_to_change(people_table, monkeypatch):
    monkeypatch.setattr(module, "_ROUNDS", 1)
    with pytest.raises(InputError, match=r"Only [\d,]+ of 16,384 .* selectivity of 0\.05.*lower"):
        people_table.workload(queries=16_000, min_selectivity=0.05)


def test_a_table_without_public_attributes_has_no_pool():
    with (
        rp.read(people().select(["job"]), sensitive="job", public="all", missing="value") as table,
        pytest.raises(InputError, match="at least one public attribute"),
    ):
        table.workload()


# --- the command ---------------------------------------------------------------------------------


@pytest.fixture
def people_file(tmp_path):
    file = tmp_path / "people.parquet"
    pa.parquet.write_table(people(), file)
    return file


def csv_rows(file):
    return list(csv.DictReader(file.read_text(encoding="utf-8").splitlines()))


@pytest.fixture
def draw(cli, people_file):
    """Draw a pool on the command line; missing values are values."""

    def run(*options, missing="value", file=people_file):
        read = ("-s", "job", "--public=all", "--missing", missing, "--min-selectivity", 0.01)
        return cli("workload", file, *read, *options)

    return run


def pool_of_people(**options):
    with rp.read(people(), sensitive="job", public="all", missing="value") as table:
        return table.workload(min_selectivity=0.01, **options)


def test_the_command_measures_a_release_and_writes_the_pool(draw, cli, tmp_path):
    out, release = tmp_path / "pool.csv", people_release("octave")
    asked = ("--queries", 80, "--seed", 5, "--release", release.path)
    summary = json.loads(draw(*asked, "-o", out, "--json").out)
    pool = pool_of_people(queries=80, seed=5)
    error = release.workload_error(pool)
    assert summary["queries"] == 80 and summary["records"] == 3_000
    assert summary["mean_relative_error"] == pytest.approx(error)
    shown = draw(*asked).out
    assert re.search(r"queries +80\n", shown)
    assert re.search(rf"mean relative error +{error:.4f}\n", shown)
    rows = csv_rows(out)
    assert len(rows) == 80 and set(rows[0]) == {"sql"}  # a value is missing in some queries
    for row, query in zip(rows, pool.queries, strict=True):
        assert all(f'"{name}"' in row["sql"] for name in query)
        assert row["sql"].count("IS NULL") == sum(value is None for value in query.values())
    assert cli("query", release.path, "--batch", out, "-o", tmp_path / "a.csv").code == 0
    counts = [float(row["count"]) for row in csv_rows(tmp_path / "a.csv")]
    assert mean_relative_error(np.array(counts), pool.answers) == error


def test_the_pool_that_is_written_holds_no_true_answers(draw, tmp_path):
    out = tmp_path / "pool.csv"
    complete = "SELECT * FROM input WHERE region IS NOT NULL AND Sex IS NOT NULL"
    draw("--queries", 20, "--sql", complete, "-o", out, missing="drop")
    names = out.read_text().splitlines()[0].split(",")
    assert names.count("job") == 1 and set(names) <= {"age", "Sex", "region", "job"}


def test_the_pool_can_be_asked_as_a_batch_and_gives_the_error_again(draw, cli, tmp_path):
    file = tmp_path / "complete.parquet"
    pa.parquet.write_table(people().drop_null(), file)
    with rp.read(file, sensitive="job", public="all") as opened:
        policy = rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3)
        release = opened.publish(policy, tmp_path / "r", key=numbered_key(4))
        pool = opened.workload(queries=60, min_selectivity=0.01, seed=9)
    assert draw("--queries", 60, "--seed", 9, "-o", tmp_path / "pool.csv", file=file).code == 0
    done = cli("query", release.path, "--batch", tmp_path / "pool.csv", "-o", tmp_path / "a.csv")
    assert done.code == 0
    counts = [float(row["count"]) for row in csv_rows(tmp_path / "a.csv")]
    assert mean_relative_error(np.array(counts), pool.answers) == release.workload_error(pool)


def test_the_command_replaces_a_file_only_when_told_to(draw, tmp_path):
    out = tmp_path / "pool.csv"
    out.write_text("mine")
    done = draw("--queries", 10, "-o", out)
    assert done.code == 2 and "exists already" in done.err and out.read_text() == "mine"
    assert draw("--queries", 10, "-o", out, "--overwrite").code == 0
    assert len(out.read_text().splitlines()) == 11


@pytest.mark.parametrize(
    "wrong",
    [("--queries", "0"), ("--min-selectivity", "2"), ("--max-attributes", "0"),
     ("--release", "nowhere"), ("--queries", "many")],
)  # fmt: skip
def test_the_command_refuses_bad_arguments_with_exit_2(draw, wrong):
    done = draw(*wrong)
    assert done.code == 2 and done.err and "Traceback" not in done.err


# --- the error of the four sampling rules
# ----------------------------------------------------------


@pytest.mark.parametrize("sensitive", ["Education", "Occupation"])
def test_the_error_grows_from_none_over_paper_and_octave_to_public(census_tables, sensitive):
    table = census_tables(sensitive)
    raw = collect(table.batches(), table.schema)
    pool = make_workload(raw, queries=1_500, seed=6)
    asker = Answerer(raw, Design(0.5, table.schema.domain_size, "none"))
    plan = plan_queries(raw, [asker.select(None, query) for query in pool.queries])
    errors = {}
    for size in ("none", "paper", "octave", "public"):
        policy = rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3, sampling=size)
        found = []
        for number in range(3):
            estimates = plan.estimates(published_cube(raw, policy, numbered_key(number)), 0.5)
            found.append(mean_relative_error(estimates, pool.answers))
        errors[size] = np.mean(found)
    print(sensitive, {size: round(float(error), 4) for size, error in errors.items()})
    assert errors["none"] < errors["paper"] < errors["octave"] < errors["public"]
    assert errors["paper"] < 1.6 * errors["none"]


def test_a_selectivity_that_nothing_reaches_is_refused_at_once(tiny):
    with (
        rp.read(tiny, sensitive="s", public="all") as opened,
        pytest.raises(InputError, match="No query"),
    ):
        opened.workload(queries=10, min_selectivity=0.9)

"""Margins on the command line: the options, what is printed, and everything that is refused."""

import csv
import io
import json
from shlex import split

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import reconpriv as rp
from reconpriv.cli.options.policy import PolicyOptions, split_tables
from reconpriv.errors import PolicyError
from reconpriv.show.results.answers import answer_document, table_document
from reconpriv.show.text import as_text

WHERE = "SELECT count(*) FROM release WHERE job = 'b'"


@pytest.fixture(scope="module")
def people(tmp_path_factory):
    """20,000 people in small groups by three columns, one of them with an odd name."""
    rng = np.random.default_rng(13)
    n = 20_000
    file = tmp_path_factory.mktemp("margins") / "people.parquet"
    columns = {
        "age": rng.integers(20, 60, n),
        "sex": np.array(["F", "M"])[rng.integers(0, 2, n)],
        'a+b, "c"': rng.integers(0, 12, n),
        "job": np.array(["a", "b", "c", "d"])[rng.choice(4, n, p=[0.4, 0.3, 0.2, 0.1])],
    }
    pq.write_table(pa.table(columns), file)
    return file


@pytest.fixture(scope="module")
def release(people, tmp_path_factory):
    out = tmp_path_factory.mktemp("made") / "release"
    with rp.read(people, sensitive="job", public="all") as table:
        table.publish(
            rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3, margins=1.0),
            out,
            key=rp.Key(bytes(range(32))),
        )
    return out


# --- options ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "tables"),
    [
        ("age", [("age",)]),
        ("age,sex", [("age",), ("sex",)]),
        (" age , sex + job ", [("age",), ("sex", "job")]),
        ('"a+b, ""c""",age+"a+b, ""c"""', [('a+b, "c"',), ("age", 'a+b, "c"')]),
        ('" x "', [(" x ",)]),
        ("two words", [("two words",)]),
        ("a+b+c", [("a", "b", "c")]),
    ],
)
def test_tables_are_separated_by_commas_and_their_columns_by_plus(text, tables):
    assert split_tables(text) == tables


@pytest.mark.parametrize("text", ["", "  ", ",", "age,", "age+", "+age", 'a"b', '"age"x', '"age'])
def test_other_texts_are_refused(text):
    with pytest.raises(PolicyError, match="--margin-tables"):
        split_tables(text)


def test_without_options_margins_are_those_of_the_policy():
    assert PolicyOptions().chosen().margins == PolicyOptions(margins=1.0).chosen().margins
    assert not PolicyOptions(margins=0).chosen().margins
    named = PolicyOptions(margin_tables=["age"]).chosen().margins
    assert named == rp.Margins(1.0, tables=["age"])
    assert named.epsilon == rp.preset("recommended").margins.epsilon


# --- publisher --------------------------------------------------------------------------------


def test_publish_says_what_the_margins_are(people, tmp_path, cli):
    words = (
        "publish",
        people,
        tmp_path / "r",
        *split("-s job --public=all --test-key --margins 1.0 --margin-tables"),
        'age,sex+"a+b, ""c"""',
    )
    outcome = cli(*words)
    assert outcome.code == 0
    assert "margins" in outcome.out and "ε = 1, δ = 1e-9, σ = 11.6; 2 tables" in outcome.out
    found = json.loads(cli(*words, "--overwrite", "--json").out)["margins"]
    assert found["epsilon"] == pytest.approx(1.0, abs=1e-4) and found["delta"] == 1e-9
    assert [table["columns"] for table in found["tables"]] == [["age"], ["sex", 'a+b, "c"']]


def test_rho_and_epsilon_are_two_words_for_the_same_noise(people, tmp_path, cli):
    rho = rp.Margins(1.0).rho
    for name, options in (("a", ["--margins", 1]), ("b", ["--margins-rho", rho])):
        out = cli(
            "publish", people, tmp_path / name, "-s", "job", "--public=all", "--test-key", *options
        )
        assert out.code == 0
    first, second = (tmp_path / name / "margins.parquet" for name in "ab")
    assert first.read_bytes() == second.read_bytes()


# --- analyst ----------------------------------------------------------------------------------


def test_an_answer_says_how_much_rests_on_margins(release, cli):
    with_margins = json.loads(cli("query", release, WHERE, "--json").out)
    alone = json.loads(cli("query", release, WHERE, "--estimator", "records", "--json").out)
    assert 0.5 < with_margins["from_margins"] < 1 and alone["from_margins"] == 0
    assert with_margins["standard_error"] < alone["standard_error"]
    shown = cli("query", release, WHERE).out
    assert "from margins" in shown and f"{100 * with_margins['from_margins']:.0f} %" in shown
    assert "from margins" not in cli("query", release, WHERE, "--estimator", "records").out
    assert "margins" not in cli("query", release, "SELECT count(*) FROM release").out
    assert f"{100 * with_margins['from_margins']:.0f} % from margins" in str(
        rp.open(release).count(job="b")
    )


def test_a_table_of_answers_has_the_share_and_fits_a_terminal(release):
    opened = rp.open(release)
    table = opened.sql("SELECT sex, job, count(*) FROM release GROUP BY ALL")
    shown = as_text(table_document(table), 80).splitlines()
    assert "from margins" in shown[0] and max(map(len, shown)) <= 80
    assert table.to_arrow()["from_margins"].to_pylist() == [e.from_margins for _, e in table]
    one = as_text(answer_document(opened.count("age < 40 AND sex = 'F'", job="b")), 80)
    assert max(map(len, one.splitlines())) <= 80
    assert "from margins" in opened.count(job="b")._repr_html_()
    assert "from margins" in table._repr_html_()


def test_a_batch_has_a_column_for_it(release, tmp_path, cli):
    file = tmp_path / "batch.csv"
    file.write_text("job,sex\na,F\nb,\n")
    rows = list(csv.DictReader(io.StringIO(cli("query", release, "--batch", file).out)))
    assert all(0 < float(row["from_margins"]) < 1 for row in rows)


def test_info_explains_margins(release, cli):
    text = cli("info", release).out
    assert "Margins" in text and "95 of 100" in text and "ε = 1, δ = 1e-9" in text
    block = json.loads(cli("info", release, "--json").out)["margins"]
    assert len(block["tables"]) == 3 and block == rp.open(release).info()["margins"]
    html = rp.open(release)._repr_html_()
    assert "margins" in html and "±" in html


def test_margins_are_exported_as_published(release, tmp_path, cli):
    out = tmp_path / "margins.csv"
    assert cli("export", release, out, "--margins").out.startswith("Margins written")
    table = rp.open(release).margins()
    assert pyarrow.csv.read_csv(out).num_rows == table.num_rows
    stored = pq.read_table(release / "margins.parquet")
    assert table["count"].to_pylist() == stored["count"].to_pylist()
    assert table.column_names == ["table", "age", "sex", 'a+b, "c"', "job", "count"]
    both = cli("export", release, tmp_path / "x.csv", "--margins", "--groups")
    assert both.code == 2 and "not both" in both.err


def test_a_workload_measures_a_release_with_and_without_margins(people, release, cli):
    words = (
        "workload",
        people,
        *split("-s job --public=all --queries 200 --release"),
        release,
        "--json",
    )
    both = json.loads(cli(*words).out)["mean_relative_error"]
    alone = json.loads(cli(*words, "--estimator", "records").out)["mean_relative_error"]
    assert both < 0.8 * alone
    refused = cli("workload", people, "-s", "job", "--public=all", "--estimator", "records")
    assert refused.code == 2 and "--estimator needs --release" in refused.err
    unknown = cli(*words, "--estimator", "best")
    assert unknown.code == 2 and "best" in unknown.err


def test_every_figure_says_whether_it_used_margins(release, cli):
    """The same words on the terminal, in JSON and in Python; --no-margins takes them away."""
    opened = rp.open(release)
    for command, words in (
        (["logistic", "--target", "b", "--features", "age,sex"], "records and margins"),
        (["linear", "--outcome", "age", "--features", "job"], "records and margins"),
        (["learn"], "records and margins"),
        (["chi-square", "age"], "from records and margins"),
    ):
        for used in (True, False):
            given = [command[0], release, *command[1:], *([] if used else ["--no-margins"])]
            shown, plain = cli(*given), cli(*given, "--json")
            assert shown.code == plain.code == 0, shown.err
            assert (words in shown.out) == used
            assert json.loads(plain.out)["margins"] is used
    median = opened.median("age", job="b")
    assert "; with margins)" in str(median) and median.as_dict()["margins"]
    alone = opened.median("age", job="b", estimator="records")
    assert "margins" not in str(alone) and not alone.as_dict()["margins"]
    assert "from margins" in str(opened.compare({"sex": "F"}, {"sex": "M"}, job="b"))

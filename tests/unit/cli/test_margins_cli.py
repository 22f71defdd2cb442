"""Margins on the command line: the options, what is printed, and everything that is refused."""

import csv
import io
import json
from shlex import split

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import reconpriv as rp
from reconpriv.cli.options.policy import PolicyOptions, split_tables
from reconpriv.errors import PolicyError, ReleaseError
from reconpriv.messages.commands import margin_parts
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
        table.publish(rp.Policy(0.5, 0.5, 0.3, margins=1.0), out, key=rp.Key(bytes(range(32))))
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


@pytest.mark.parametrize(
    "margins",
    [
        rp.Margins(1.0),
        rp.Margins(0.25, 1e-6),
        rp.Margins(rho=0.02),
        rp.Margins(2.0, tables=["age", ("age", 'a+b, "c"'), " x "]),
    ],
)
def test_the_options_of_a_command_stand_for_the_same_margins(margins):
    names = {
        "--margins": "margins",
        "--margins-rho": "margins_rho",
        "--margins-delta": "margins_delta",
        "--margin-tables": "margin_tables",
    }
    given = {names[option]: value for option, value in margin_parts(margins)}
    numbers = {n: [v] if n == "margin_tables" else float(v or "") for n, v in given.items()}
    assert PolicyOptions(**numbers).chosen().margins == margins
    assert eval(repr(margins), {"Margins": rp.Margins}) == margins


def test_without_options_margins_are_those_of_the_policy():
    assert PolicyOptions().chosen().margins == PolicyOptions(margins=1.0).chosen().margins
    assert not PolicyOptions(margins=0).chosen().margins
    named = PolicyOptions(margin_tables=["age"]).chosen().margins
    assert named == rp.Margins(1.0, tables=["age"])
    assert named.epsilon == rp.preset("recommended").margins.epsilon


REFUSED = {
    "--margins 11": "ε of margins must be above 0 and at most 10; got 11",
    "--margins -1": "ε of margins must be above 0",
    "--margins nan": "ε of margins must be above 0",
    "--margins-rho 0": "ρ of margins must be above 0",
    "--margins 1 --margins-rho 0.01": "either --margins or --margins-rho",
    "--margins 0 --margins-delta 1e-6": "With --margins 0 there are no margins",
    "--margins 0 --margin-tables age": "With --margins 0 there are no margins",
    "--margins 1 --margins-delta 0": "δ of margins",
    "--margins 1 --margin-tables age,age": "named twice",
    "--margins 1 --margin-tables age+age": "each column once",
    "--margins 1 --margin-tables age+": "--margin-tables takes",
}
OF_THE_TABLE = {
    "--margins 1 --margin-tables job": "is the sensitive one",
    "--margins 1 --margin-tables nope": "'nope', which is not a public column",
}


@pytest.mark.parametrize("options", REFUSED)
@pytest.mark.parametrize("command", ["audit", "publish", "attack"])
def test_bad_margins_are_refused_in_one_sentence(command, options, people, tmp_path, cli):
    words = {
        "audit": ["audit", people],
        "publish": ["publish", people, tmp_path / "out", "--test-key"],
        "attack": ["attack", "micro", people],
    }[command]
    outcome = cli(*words, "-s", "job", "--public=all", *options.split())
    assert outcome.code == 2 and REFUSED[options] in outcome.err
    assert outcome.err.count("\n") == 1 and outcome.out == ""
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("options", OF_THE_TABLE)
def test_margins_by_columns_that_are_not_public_are_refused(options, people, tmp_path, cli):
    for words in (["audit", people], ["publish", people, tmp_path / "out", "--test-key"]):
        outcome = cli(*words, "-s", "job", "--public=all", *options.split())
        assert outcome.code == 2 and OF_THE_TABLE[options] in outcome.err and outcome.out == ""
    assert list(tmp_path.iterdir()) == []


def test_a_named_table_whose_rows_are_single_groups_is_refused_with_a_way_out(tmp_path, cli):
    rng = np.random.default_rng(1)
    file = tmp_path / "one.csv"
    rows = {"town": rng.integers(0, 4, 8_000), "ill": np.array(["y", "n"])[rng.choice(2, 8_000)]}
    pyarrow.csv.write_csv(pa.table(rows), file)
    for words in (["audit", file], ["publish", file, tmp_path / "out", "--test-key"]):
        named = ("--margins", 1, "--margin-tables", "town")
        outcome = cli(*words, "-s", "ill", "--public=all", *named)
        assert outcome.code == 2 and "give groups away" in outcome.err
        assert "--margin-tables" in outcome.err and "--margins" in outcome.err
    assert not (tmp_path / "out").exists()
    plain = cli(
        "publish",
        file,
        tmp_path / "out",
        *split("-s ill --public=all --test-key --margins 1 --sample-size none"),
    )
    assert plain.code == 0


def test_a_named_table_of_too_many_rows_is_refused_and_an_unnamed_one_left_out(tmp_path, cli):
    n = 30_000
    rows = {
        "id": np.arange(n) // 3,
        "age": np.arange(n) % 20,
        "ill": np.array(["y", "n", "n"])[np.arange(n) % 3],
    }
    pq.write_table(pa.table(rows), tmp_path / "t.parquet")
    words = [
        "publish",
        tmp_path / "t.parquet",
        tmp_path / "out",
        *split("-s ill --public=all --test-key --max-unique 1 --margins 1"),
    ]
    named = cli(*words, "--margin-tables", "id")
    assert named.code == 2 and "by id has too many rows" in named.err and "GB" in named.err
    unnamed = cli(*words)
    assert unnamed.code == 0 and "no margin table by id" in unnamed.err
    assert "1 table (age)" in unnamed.out


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


def test_an_audit_says_what_margins_cost(people, tmp_path, cli):
    words = (
        "audit",
        people,
        *split("-s job --public=all --no-columns --worst 1 --preset paper -e 0.9 -d 0.6"),
    )
    groups = tmp_path / "groups.csv"
    outcome = cli(*words, "--margins", 4, "--groups", groups)
    assert "trials given up" in outcome.out and "from margins" in outcome.out
    found = json.loads(cli(*words, "--margins", 4, "--json").out)
    cost = found["margins"]
    assert cost["counted"] and cost["trials_lost"] > 0
    assert cost["sentence"] in found["verdict"]["sentence"]
    assert cost["most_trials_from_margins"] > 0
    with groups.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    told = np.array([float(row["trials_from_margins"]) for row in rows])
    own = np.array([float(row["trials"]) for row in rows])
    both = np.array([float(row["effective_trials"]) for row in rows])
    assert np.allclose(both, own + told) and told.max() == cost["most_trials_from_margins"]
    assert own.sum() == cost["trials_without_margins"] - cost["trials_lost"]
    assert "margins" not in json.loads(cli(*words, "--json").out)


def test_an_audit_for_a_sample_size_that_does_not_count_margins_says_so(people, cli):
    words = (
        "audit",
        people,
        *split("-s job --public=all --no-columns --margins 1 --sample-size none"),
    )
    assert "does not count what margins tell" in cli(*words).out
    assert "trials given up" not in cli(*words).out


def test_a_release_has_its_margins_already(release, cli):
    outcome = cli("attack", "side-channels", release, "--margins", 1)
    assert outcome.code == 2 and "its policy already" in outcome.err


# --- analyst ----------------------------------------------------------------------------------


def test_an_answer_says_how_much_rests_on_margins(release, cli):
    with_margins = json.loads(cli("query", release, WHERE, "--json").out)
    alone = json.loads(cli("query", release, WHERE, "--estimator", "records", "--json").out)
    assert 0.5 < with_margins["from_margins"] < 1 and alone["from_margins"] == 0
    assert with_margins["standard_error"] < alone["standard_error"]
    shown = cli("query", release, WHERE).out
    assert "from margins" in shown and f"{100 * with_margins['from_margins']:.0f} %" in shown
    assert "from margins" not in cli("query", release, WHERE, "--estimator", "records").out
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


def test_a_count_over_public_columns_has_nothing_from_margins(release, cli):
    assert "margins" not in cli("query", release, "SELECT count(*) FROM release").out


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


def test_a_release_without_margins_says_so(people, tmp_path, cli):
    with rp.read(people, sensitive="job", public="all") as table:
        made = table.publish(rp.Policy(0.5, 0.5, 0.3), tmp_path / "r", key=rp.Key.test())
    with pytest.raises(ReleaseError, match="no margins"):
        made.margins()
    outcome = cli("export", tmp_path / "r", tmp_path / "x.csv", "--margins")
    assert outcome.code == 2 and "The release has no margins." in outcome.err
    assert "margins" not in json.loads(cli("info", tmp_path / "r", "--json").out)


def test_margins_go_into_a_database_and_are_replaced_with_the_release(people, tmp_path, cli):
    file = tmp_path / "x.duckdb"
    words = (
        "publish",
        people,
        *split("-s job --public=all --test-key --to-table people --to"),
        file,
    )
    assert "people_margins" in cli(*words, "--margins", 1).out

    def tables():
        with duckdb.connect(str(file)) as connection:
            return {name for (name,) in connection.sql("SHOW TABLES").fetchall()}

    assert tables() == {"people", "people_groups", "people_margins", "people_manifest"}
    with duckdb.connect(str(file)) as connection:
        found = connection.sql("SELECT count(*) FROM people_margins").fetchall()
    assert found == [(4 * (40 + 2 + 12),)]
    assert cli(*words, "--margins", 0, "--overwrite").code == 0
    assert tables() == {"people", "people_groups", "people_manifest"}


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

"""Thousands of queries at once, from Python and from a file."""

import csv
import json

import pytest

import reconpriv as rp
from query_fixtures import JOBS, people_release
from reconpriv.errors import InputError, PolicyError, ReleaseError

MIXED = [
    {"job": "nurse"},
    {"age": 20, "job": "nurse"},
    {"age": 21, "job": "clerk"},
    {"age": 99, "job": "clerk"},
    {"Sex": "F", "age": 20, "job": None},
    {"region": None, "job": "baker"},
    {"region": None, "Sex": "M"},
    {"job": ["nurse", "pilot"]},
    {"age": [20, 21], "job": "nurse"},
    {"age": 20, "Sex": "F", "region": "North", "job": "nurse"},
    {"age": 20, "Sex": "F", "region": "North"},
    {},
    "SELECT count(*) FROM release",
    "SELECT count(*) FROM release WHERE age = 20 AND job = 'nurse'",
    "SELECT count(*) FROM release WHERE age < 25 AND job <> 'nurse'",
    "SELECT count(*) FROM release WHERE (age = 20 OR Sex = 'M') AND region IS NULL",
    "SELECT count(*) FROM release WHERE age = 20 AND age = 21 AND job = 'nurse'",
]


def one_by_one(release, query, **options):
    if isinstance(query, str):
        return release.sql(query, **options)
    return release.count(**query, **options)


@pytest.mark.parametrize("sampling", ["none", "paper", "octave", "public"])
@pytest.mark.parametrize("estimator", ["mle", "constrained"])
def test_a_mixed_batch_equals_its_queries_one_at_a_time_to_the_last_digit(sampling, estimator):
    release = people_release(sampling)
    got = release.count_many(MIXED, estimator=estimator, confidence=0.9)
    assert len(got) == len(MIXED)
    for query, answer in zip(MIXED, got, strict=True):
        assert answer == one_by_one(release, query, estimator=estimator, confidence=0.9)


def test_a_batch_of_nothing_has_no_answers():
    assert people_release("octave").count_many([]) == []


@pytest.mark.parametrize(
    ("query", "error"),
    [
        (5, InputError),
        (["age", 20], InputError),
        ({"agee": 20}, InputError),
        ({"job": "nurze"}, InputError),
        ("SELECT sum(job) FROM release", InputError),
        ("SELECT sum(age), count(*) FROM release", ReleaseError),
        ("SELECT age, count(*) FROM release GROUP BY age", ReleaseError),
    ],
)
def test_one_bad_query_refuses_the_whole_batch(query, error):
    with pytest.raises(error):
        people_release("octave").count_many([{"job": "nurse"}, query])


def test_the_estimator_and_confidence_of_a_batch_are_checked():
    with pytest.raises(PolicyError):
        people_release("octave").count_many([{"age": 20}], estimator="em")
    with pytest.raises(PolicyError):
        people_release("octave").count_many([{"age": 20}], confidence=2)


# --- files ---------------------------------------------------------------------------------------


@pytest.fixture
def ask(cli, tmp_path):
    """Answer the text of a batch file; the outcome and the folder it was done in."""
    folder = tmp_path / "batch"
    folder.mkdir()

    def run(text, *options, sampling="octave"):
        (folder / "queries.csv").write_bytes(
            text if isinstance(text, bytes) else text.encode("utf-8")
        )
        path = people_release(sampling).path
        return cli("query", path, "--batch", folder / "queries.csv", *options)

    run.folder = folder
    return run


def read(file):
    return list(csv.DictReader(file.read_text(encoding="utf-8").splitlines()))


ATTRIBUTES = "age,Sex,job\n20,,nurse\n,F,\n21,M,pilot\n,,\n99,,clerk\n"


def test_a_file_with_a_column_an_attribute_is_answered(ask):
    done = ask(ATTRIBUTES, "-o", ask.folder / "answers.csv")
    assert done.code == 0 and done.out == ""
    rows = read(ask.folder / "answers.csv")
    expected = people_release("octave").count_many(
        [{"age": 20, "job": "nurse"}, {"Sex": "F"}, {"age": 21, "Sex": "M", "job": "pilot"}, {},
         {"age": 99, "job": "clerk"}]
    )  # fmt: skip
    assert [row["age"] for row in rows] == ["20", "", "21", "", "99"]
    for row, answer in zip(rows, expected, strict=True):
        for name in ("count", "low", "high", "standard_error", "confidence"):
            assert float(row[name]) == getattr(answer, name)
        assert int(row["groups"]) == answer.groups and int(row["records"]) == answer.records
        assert float(row["trials"]) == answer.trials
        assert row["exact"] == str(answer.exact)
        assert row["remarks"] == "; ".join(answer.remarks)


def test_a_file_with_a_column_sql_is_answered(ask):
    queries = [query for query in MIXED if isinstance(query, str)]
    text = "sql\n" + "\n".join(f'"{query}"' for query in queries) + "\n"
    done = ask(text, "-o", ask.folder / "answers.csv")
    assert done.code == 0
    rows = read(ask.folder / "answers.csv")
    assert [row["sql"] for row in rows] == queries
    counts = [answer.count for answer in people_release("octave").count_many(queries)]
    assert [float(row["count"]) for row in rows] == counts


FIGURES = (
    "figure,among,a,b,Sex,job\n,,,,F,nurse\nshare(*),,,,F,nurse\nshare(*),age < 25,,,F,nurse\n"
    'avg(age),,,,,nurse\nsum(age),,,,M,\nmedian(age),,,,,pilot\n"quantile(age, 0.9)",,,,,\n'
    ",,Sex = 'F',Sex = 'M',,nurse\ncount,,age = 20,age = 21,F,\n"
)


def test_a_file_asks_for_every_figure(ask):
    release = people_release("octave")
    nurse = {"job": "nurse"}
    expected = [
        release.count(Sex="F", **nurse),
        release.share(Sex="F", **nurse),
        release.share(Sex="F", among="age < 25", **nurse),
        release.average("age", **nurse),
        release.sum("age", Sex="M"),
        release.median("age", job="pilot"),
        release.quantile("age", 0.9),
        release.compare("Sex = 'F'", "Sex = 'M'", **nurse),
        release.compare("age = 20", "age = 21", of="count", Sex="F"),
    ]
    assert ask(FIGURES, "-o", ask.folder / "answers.csv").code == 0
    rows = read(ask.folder / "answers.csv")
    kinds = [row["figure_"] for row in rows]
    assert kinds == ["count", "share", "share", "average", "sum", "median", "quantile",
                     "points", "difference"]  # fmt: skip
    for row, answer in zip(rows, expected, strict=True):
        one = getattr(answer, "difference_answer", answer)
        assert [float(row[name]) for name in ("value", "low", "high")] == [
            float(end) for end in (one.value, one.low, one.high)
        ]
        assert row["remarks"] == "; ".join(answer.remarks)
        assert row["ratio"] == ("" if one is answer else str(answer.ratio))
    shown = json.loads(ask(FIGURES, "--json").out)["answers"]
    assert [one.get("kind", one.get("of", "count")) for one in shown[:2]] == ["count", "share"]
    assert shown[-2]["verdict"] == expected[-2].verdict


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("figure,job\navg(job),nurse\n", "holds text"),
        ("a,b\nage = 20,\n", "needs two conditions"),
        ("figure,among\navg(age),age < 25\n", "among other records"),
        ("figure,a,b\navg(age),age = 20,age = 21\n", "A comparison is of"),
        ('figure\n"count(*), avg(age)"\n', "single figures"),
    ],
)
def test_a_figure_that_a_line_cannot_ask_for_is_named(ask, text, sentence):
    done = ask(text)
    assert done.code == 2 and "Line 2 of 'queries.csv'" in done.err and sentence in done.err


def test_scores_reach_the_averages_of_a_batch(ask):
    scores = {job: float(i) for i, job in enumerate(JOBS) if job is not None}
    given = [part for job, i in scores.items() for part in ("--score", f"{job}={i}")]
    done = ask("figure\navg(job)\n", *given, "--json")
    (answer,) = json.loads(done.out)["answers"]
    expected = people_release("octave").average("job", scores=scores)
    assert answer["value"] == pytest.approx(expected.value)


def test_the_estimator_and_confidence_reach_the_batch(ask):
    done = ask("job\npilot\n", "--estimator", "constrained", "--confidence", "0.8", "--json")
    (answer,) = json.loads(done.out)["answers"]
    expected = people_release("octave").count(job="pilot", estimator="constrained", confidence=0.8)
    assert answer == {**expected.as_dict(), "query": answer["query"]}


def test_json_holds_the_answers_or_says_where_they_are(ask):
    answers = json.loads(ask(ATTRIBUTES, "--json").out)["answers"]
    assert len(answers) == 5 and answers[1]["exact"] is True
    done = ask(ATTRIBUTES, "--json", "-o", ask.folder / "answers.csv")
    assert json.loads(done.out) == {"answers": 5, "file": str(ask.folder / "answers.csv")}
    assert len(read(ask.folder / "answers.csv")) == 5


def test_a_file_saved_by_a_spreadsheet_is_read(ask):
    text = b"\xef\xbb\xbfage,job\r\n20,nurse\r\n\r\n21,clerk\r\n"
    assert ask(text, "-o", ask.folder / "answers.csv").code == 0
    assert [row["age"] for row in read(ask.folder / "answers.csv")] == ["20", "21"]


@pytest.mark.parametrize(
    ("text", "line", "sentence"),
    [
        ("age,job\n20,nurse\n21,nurze\n22,clerk\n", 3, "Did you mean 'nurse'?"),
        ("age,job\n20,nurse\nold,nurse\n", 3, "does not fit column 'age'"),
        ("age,job\n20,nurse\n20,nurse,F\n", 3, "3 fields where the header has 2"),
        ("age,job\n20,nurse\n\n20\n", 4, "1 fields where the header has 2"),
        ("agee,job\n20,nurse\n", 1, "Did you mean 'age'?"),
        ("sql\nSELECT count(*) FROM release\nSELECT sum(job) FROM release\n", 3, "holds text"),
        ('sql\n"SELECT count(*), sum(age) FROM release"\n', 2, "single figures"),
        ("sql\nSELECT count(*) FROM release GROUP BY age\n", 2, "single figures"),
        ('sql\n"SELECT count(*)\nFROM release"\nSELECT nonsense\n', 4, "Supported:"),
    ],
)
def test_one_bad_line_is_named_and_nothing_is_answered(ask, text, line, sentence):
    done = ask(text, "-o", ask.folder / "answers.csv")
    assert done.code == 2
    assert f"Line {line} of 'queries.csv'" in done.err and sentence in done.err
    assert done.out == "" and [file.name for file in ask.folder.iterdir()] == ["queries.csv"]


@pytest.mark.parametrize("text", ["agee,job\n,nurse\n", "agee,job\n"])
def test_an_unknown_column_is_refused_even_where_it_asks_nothing(ask, text):
    done = ask(text)
    assert done.code == 2 and "'agee'" in done.err


def test_a_column_that_stands_twice_is_refused(ask):
    done = ask("age,age,job\n20,21,nurse\n")
    assert done.code == 2 and "age" in done.err


def test_a_batch_file_that_is_not_there_is_missing(cli, tmp_path):
    out = tmp_path / "answers.csv"
    done = cli("query", people_release("octave").path, "--batch", tmp_path / "no.csv", "-o", out)
    assert done.code == 2 and "no batch file at" in done.err and not out.exists()


def test_a_batch_file_that_is_a_folder_or_no_text_is_refused(cli, ask, tmp_path):
    done = cli("query", people_release("octave").path, "--batch", tmp_path)
    assert done.code == 2 and "cannot be read" in done.err
    done = ask(b"job\n\xff\xfe\n")
    assert done.code == 2 and "is not UTF-8 text" in done.err


def test_an_empty_batch_file_is_refused(ask):
    done = ask("", "-o", ask.folder / "answers.csv")
    assert done.code == 2 and "is empty" in done.err
    assert not (ask.folder / "answers.csv").exists()


def test_a_header_without_queries_gives_a_header_without_answers(ask):
    assert ask("age,job\n", "-o", ask.folder / "answers.csv").code == 0
    (line,) = (ask.folder / "answers.csv").read_text().splitlines()
    assert line.startswith("age,job,count,low,high,")


def test_a_file_is_replaced_only_when_told_to(ask):
    out = ask.folder / "answers.csv"
    out.write_text("mine")
    done = ask(ATTRIBUTES, "-o", out)
    assert done.code == 2 and "exists already" in done.err and "--overwrite" in done.err
    assert out.read_text() == "mine"
    assert ask(ATTRIBUTES, "-o", out, "--overwrite").code == 0
    assert len(read(out)) == 5
    assert sorted(file.name for file in ask.folder.iterdir()) == ["answers.csv", "queries.csv"]


def test_a_bad_line_leaves_a_file_that_was_to_be_replaced(ask):
    out = ask.folder / "answers.csv"
    out.write_text("mine")
    assert ask("job\nnurze\n", "-o", out, "--overwrite").code == 2
    assert out.read_text() == "mine"


def test_a_folder_that_is_not_there_is_named(ask):
    done = ask(ATTRIBUTES, "-o", ask.folder / "no" / "answers.csv")
    assert done.code == 2 and "There is no folder" in done.err


@pytest.mark.parametrize(
    "arguments",
    [(), ("SELECT count(*) FROM release", "--batch", "x.csv"),
     ("SELECT count(*) FROM release", "-o", "x.csv")],
)  # fmt: skip
def test_a_query_is_either_sql_or_a_batch(cli, arguments):
    done = cli("query", people_release("octave").path, *arguments)
    assert done.code == 2 and ("--batch" in done.err)


def test_a_query_on_the_command_line_prints_the_answer(cli):
    path = people_release("octave").path
    sql = "SELECT sex, count(*) FROM release WHERE job = 'nurse' GROUP BY sex"
    done = cli("query", path, sql, "--json", "--simultaneous")
    expected = people_release("octave").sql(sql, simultaneous=True)
    assert json.loads(done.out) == json.loads(json.dumps(expected.as_dict()))
    done = cli("query", path, "SELECT count(*) FROM release WHERE age = 20")
    assert done.code == 0 and "exact" in done.out
    done = cli("query", path, "SELECT count(*) FROM release WHERE age = 20 AND job = 'nurse'")
    assert "interval" in done.out and " to " in done.out


def test_simultaneous_is_refused_for_a_single_count(cli):
    path, query = people_release("octave").path, "SELECT count(*) FROM release WHERE job = 'nurse'"
    outcome = cli("query", path, query, "--simultaneous")
    assert outcome.code == 2 and "this is a single count" in outcome.err
    assert cli("query", path, query).code == 0


@pytest.mark.parametrize(
    "arguments",
    [["--batch", "q.csv", "--simultaneous"], ["SELECT count(*) FROM release", "--overwrite"]],
)
def test_an_option_that_would_be_ignored_is_refused(cli, tmp_path, arguments):
    done = cli("query", tmp_path, *arguments)
    assert done.code == 2 and "needs" in done.err


def test_one_query_is_no_batch(tiny, policy, tmp_path):
    with rp.read(tiny, sensitive="s", public="all") as opened:
        release = opened.publish(policy, tmp_path / "r", key=rp.Key.generate())
    with pytest.raises(InputError, match="list"):
        release.count_many("SELECT count(*) FROM release")

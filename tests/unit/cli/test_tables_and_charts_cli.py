"""What a user types to tabulate a release, and to draw its answers."""

import json

import pytest

from query_fixtures import people_release

QUERY = "SELECT Sex, count(*) FROM release WHERE job = 'nurse' GROUP BY Sex"


@pytest.fixture(scope="module")
def release():
    return people_release("octave")


def test_a_crosstab_is_laid_out(cli, release):
    done = cli("crosstab", release.path, "job", "Sex", "--shares", "column", "--totals",
               "--widest", "5%", "--where", "age < 30")  # fmt: skip
    assert done.code == 0, done.err
    assert done.out.splitlines()[0].split() == ["job", "F", "M", "total"]
    assert "wider than 5 percentage points" in done.out
    done = cli("crosstab", release.path, "Sex,region", "job")
    assert done.out.splitlines()[0].split()[:3] == ["Sex", "region", "baker"]
    done = cli("crosstab", release.path, "job")
    assert done.out.splitlines()[0].split() == ["job", "count"]


def test_a_crosstab_as_json_is_that_of_python(cli, release):
    done = cli("crosstab", release.path, "job", "Sex", "--shares", "row", "--totals", "--widest",
               "20%", "--confidence", "0.9", "--simultaneous", "--json")  # fmt: skip
    expected = release.crosstab(
        ["job", "Sex"], shares="row", totals=True, widest="20%", confidence=0.9, simultaneous=True
    )
    assert json.loads(done.out) == expected.as_dict()


def test_answers_are_drawn(cli, release, tmp_path):
    done = cli("query", release.path, QUERY, "--chart", tmp_path / "a.svg")
    assert done.code == 0, done.err
    assert done.out.startswith("Sex")
    assert done.out.splitlines()[-1].startswith("Chart written to ")
    assert (tmp_path / "a.svg").read_text().startswith("<svg")
    done = cli("query", release.path, QUERY, "--chart", tmp_path / "a.json", "--json")
    expected = release.sql(QUERY).as_dict() | {"chart": str(tmp_path / "a.json")}
    assert json.loads(done.out) == expected
    done = cli("crosstab", release.path, "job", "Sex", "--chart", tmp_path / "b.json")
    assert "Chart written" in done.out
    done = cli("logistic", release.path, "--target", "nurse", "--features", "age",
               "--chart", tmp_path / "c.json", "--json")  # fmt: skip
    assert json.loads(done.out)["chart"] == str(tmp_path / "c.json")
    done = cli("linear", release.path, "--outcome", "age", "--features", "Sex",
               "--chart", tmp_path / "a.svg", "--overwrite")  # fmt: skip
    assert done.code == 0, done.err
    assert "Linear regression" in (tmp_path / "a.svg").read_text()
    assert len(list(tmp_path.iterdir())) == 4


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("query", QUERY, "--chart", "a.pdf"), "ending in .html, .svg, .png or .json"),
        (("query", QUERY, "--chart", "there.svg"), "exists already"),
        (("query", QUERY, "--overwrite"), "--overwrite needs -o or --chart"),
        (("query", "--batch", "q.csv", "--chart", "a.svg"), "--chart needs a query"),
        (("query", "SELECT cout(*) FROM release", "--chart", "a.svg"), "error"),
        (("crosstab", ",", "Sex"), "ROWS is empty"),
        (("crosstab", "Sex", "jobb"), "'jobb'"),
        (("crosstab", "Sex", "Sex"), "twice"),
        (("crosstab", "Sex", "job", "--shares", "rows"), "got 'rows'"),
        (("crosstab", "Sex", "job", "--widest", "wide"), "got 'wide'"),
        (("crosstab", "Sex", "job", "--overwrite"), "--overwrite needs --chart"),
        (("logistic", "--target", "nurse", "--features", "age", "--chart", "a"), "has no ending"),
    ],
)
def test_what_cannot_be_done_is_said_in_a_sentence(
    cli, release, tmp_path, monkeypatch, arguments, words
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "there.svg").write_text("mine")
    command, *rest = arguments
    done = cli(command, release.path, *rest)
    assert done.code == 2
    assert words in done.err
    assert done.err.count("error:") == 1
    assert done.out == ""
    assert [file.name for file in tmp_path.iterdir()] == ["there.svg"]
    assert (tmp_path / "there.svg").read_text() == "mine"

"""What an analyst types: tables, charts, regressions and classifiers of a release."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from query_fixtures import people, people_release

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


def test_a_logistic_regression_is_shown(cli):
    done = cli(
        "logistic", people_release("octave").path, "--target", "nurse", "--features", "age,Sex"
    )
    assert done.code == 0, done.err
    assert done.out.startswith("Logistic regression of job = nurse on age, Sex")
    assert "Sex[M]" in done.out


def test_regressions_as_json_are_those_of_python(cli):
    release = people_release("none")
    done = cli("logistic", release.path, "--target", "nurse", "--target", "pilot",
               "--features", "C(age)", "--where", "age < 23", "--reference", "age=21",
               "--confidence", "0.9", "--json")  # fmt: skip
    assert done.code == 0, done.err
    expected = release.logistic(
        ["nurse", "pilot"], ["C(age)"], "age < 23", reference={"age": 21}, confidence=0.9
    )
    assert json.loads(done.out) == expected.as_dict()
    done = cli("linear", release.path, "--outcome", "age", "--features", "Sex,job",
               "--merge", "few=baker,pilot", "--json")  # fmt: skip
    assert done.code == 0, done.err
    merged = release.linear("age", ["Sex", "job"], merge={"few": ["baker", "pilot"]})
    assert json.loads(done.out) == merged.as_dict()


def test_a_chi_square_test_is_shown(cli):
    done = cli("chi-square", people_release("octave").path, "Sex")
    assert done.code == 0
    assert done.out.startswith("job depends on Sex (p < 0.0001).")
    assert "corrected for the release" in done.out


def test_a_chi_square_test_as_json(cli):
    release = people_release("public")
    done = cli("chi-square", release.path, "Sex, region", "--where", "age < 30", "--json")
    assert done.code == 0
    found = json.loads(done.out)
    assert found["columns"] == ["Sex", "region"]
    assert found["p_value"] == release.chi_square(["Sex", "region"], "age < 30").p_value
    assert found["naive_p_value"] <= found["p_value"]


def test_a_classifier_is_tested_on_a_table(cli, tmp_path):
    pq.write_table(people(), tmp_path / "test.parquet")
    release = people_release("octave")
    done = cli(
        "learn", release.path, "--target", "Sex", "--test", tmp_path / "test.parquet", "--json"
    )
    assert done.code == 0, done.err
    found = json.loads(done.out)
    assert found["features"] == ["age", "region", "job"]
    assert found["reconstructed"] == "job"
    model = release.naive_bayes("Sex")
    score = model.score(people().select(found["features"]), people()["Sex"].to_pylist())
    assert found["test"]["accuracy"] == pytest.approx(score)
    assert found["test"]["accuracy"] > found["test"]["most_frequent_class"]
    assert found["prior"] == pytest.approx(np.exp(model.class_log_prior_).tolist())
    job = found["conditional"]["job"]
    assert job["values"] == ["baker", "clerk", "nurse", "pilot", None]
    assert np.sum(job["probability"], axis=1) == pytest.approx([1.0, 1.0])


def test_a_classifier_is_shown(cli, tmp_path):
    pq.write_table(people(), tmp_path / "test.parquet")
    release = people_release("octave").path
    done = cli("learn", release, "--features", "Sex,age", "--test", tmp_path / "test.parquet")
    assert done.code == 0
    assert "accuracy" in done.out
    assert "(missing)" in done.out  # a class of its own
    assert "accuracy" not in cli("learn", release).out
    alone = cli("learn", release, "--target", "Sex", "--features", "age")
    assert "no randomised column takes part" in alone.out


def test_test_tables_are_checked(cli, tmp_path):
    release = people_release("octave").path
    nobody = {"Sex": pa.array([], pa.string()), "age": pa.array([], pa.int64())}
    for name, table, words in (
        ("strange", pa.table({"Sex": ["?"], "age": [20]}), "does not have"),
        ("narrow", pa.table({"Sex": ["F"]}), "test table has no column 'age'"),
        ("empty", pa.table(nobody), "no record"),
    ):
        pq.write_table(table, tmp_path / f"{name}.parquet")
        done = cli("learn", release, "--target", "Sex", "--features", "age",
                   "--test", tmp_path / f"{name}.parquet")  # fmt: skip
        assert done.code == 2
        assert words in done.err

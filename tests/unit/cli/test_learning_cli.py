"""What a user types to learn from a release."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from query_fixtures import people, people_release


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


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("learn", "--features", ","), "--features is empty"),
        (("learn", "--target", "Sexes"), "no column 'Sexes'"),
        (("learn", "--alpha", "0"), "smoothing"),
        (("learn", "--test", "nowhere.csv"), "nowhere.csv"),
        (("chi-square", "job"), "the sensitive one"),
    ],
)
def test_what_cannot_be_done_is_said_in_a_sentence(cli, arguments, words):
    command, *rest = arguments
    done = cli(command, people_release("octave").path, *rest)
    assert done.code == 2
    assert words in done.err
    assert done.err.count("error:") == 1
    assert done.out == ""


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

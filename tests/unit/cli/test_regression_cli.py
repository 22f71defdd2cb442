"""What a user types to fit a regression to a release."""

import json

import pytest

from query_fixtures import people_release


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


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("logistic", "--target", "nurse", "--features", ","), "--features is empty"),
        (("logistic", "--target", "nurse", "--features", "agee"), "no column 'agee'"),
        (("logistic", "--target", "Sex", "--features", "age"), "public column"),
        (("linear", "--outcome", "Sex", "--features", "age"), "string values"),
        (("linear", "--outcome", "age", "--features", "job", "--merge", "x"), "--merge takes"),
    ],
)
def test_what_cannot_be_done_is_said_in_a_sentence(cli, arguments, words):
    command, *rest = arguments
    done = cli(command, people_release("octave").path, *rest)
    assert done.code == 2
    assert words in done.err
    assert done.err.count("error:") == 1
    assert done.out == ""

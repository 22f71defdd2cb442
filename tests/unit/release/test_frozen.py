"""Answers and bytes that no change of the inside may change; tools/freeze.py compares them all."""

import pytest

import freeze

SOME = ("octave margins", "octave protected")


@pytest.fixture(scope="module")
def frozen():
    return freeze.frozen()


def test_ten_thousand_answers_of_every_policy_are_frozen(frozen):
    answers, files = frozen
    assert freeze.count(answers) >= 10_000
    for which in ("texts", "numbers"):
        assert {f"{which}: {name}" for name in freeze.policies(which)} <= set(files)


def test_answers_and_bytes_are_the_frozen_ones():
    assert freeze.compared(SOME) == []


def test_a_comparison_finds_what_differs():
    before = {"count": 10.0, "low": 9.0}
    assert freeze.differences(before, {"count": 10.0 + 1e-6, "low": 9.0}) == [
        "count: 10.0 -> 10.000001"
    ]
    assert freeze.differences(before, {"count": 10.0, "low": 9.000001}) == []
    assert freeze.differences(before, {"low": 9.0}) == ["count is gone"]
    assert freeze.differences(before, "QueryError") == ["an answer -> QueryError"]

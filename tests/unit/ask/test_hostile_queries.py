"""Queries that are nested or long beyond reason: answered, or refused in one sentence."""

import pytest

import reconpriv as rp
from refusals import check_sentence


@pytest.fixture(scope="module")
def release(tiny, tmp_path_factory):
    folder = tmp_path_factory.mktemp("hostile") / "out"
    with rp.read(tiny, sensitive="s", public="all") as table:
        table.publish(
            rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3), folder, key=rp.Key(bytes(range(32)))
        )
    return folder


@pytest.mark.parametrize(
    "condition",
    [
        "(" * 100 + "g = 'a'" + ")" * 100,
        "NOT " * 400 + "g = 'a'",
        "length(g) = " + "abs(" * 300 + "1" + ")" * 300,
        "CASE WHEN g = 'a' THEN " * 150 + "true" + " END" * 150,
        "length(g) = " + "+".join(["1"] * 3_000),
        f"foo('{'y' * 10_000}') = 1",
        "y" * 10_000 + " = 1",
        f"g = '{'y' * 10_000}'",
        f"g = 'a' OR s = '{'y' * 10_000}'",
    ],
)
def test_refused_or_answered(cli, release, condition):
    outcome = cli("query", release, f"SELECT count(*) FROM release WHERE {condition}")
    assert outcome.code in (0, 2), outcome
    if outcome.code == 2:
        check_sentence(outcome.err)
        assert len(outcome.err) < 900


@pytest.mark.parametrize(("depth", "code"), [(10, 0), (100, 2), (100_000, 2)])
def test_deep_nesting_is_refused_as_such(cli, release, depth, code):
    condition = "(" * depth + "g = 'a'" + ")" * depth
    outcome = cli("query", release, f"SELECT count(*) FROM release WHERE {condition}")
    assert outcome.code == code, outcome
    assert ("nested too deeply" in outcome.err) == (code == 2)


def test_many_conditions_are_answered(cli, release):
    many = " AND ".join(["g = 'a'"] * 150)
    outcome = cli("query", release, f"SELECT count(*) FROM release WHERE {many}", "--json")
    assert outcome.code == 0, outcome.err

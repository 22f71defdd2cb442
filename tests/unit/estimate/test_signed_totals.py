"""Averages and sums hold where one record dominates, with margins, and where sizes are secret."""

from functools import cache

import numpy as np
import pyarrow as pa
import pytest

import reconpriv as rp
from interval_classes import Answer, figure_of, judged, numbered_keys
from reconpriv.ask.question import Question
from reconpriv.estimate.averages import average_rows
from reconpriv.estimate.counts import Settings
from reconpriv.estimate.measures import measure_of
from reconpriv.theory.estimation.intervals import last_inside

SETTINGS = Settings()
COPIES = 12
VALUES = [f"v{i:02d}" for i in range(14)]


def policy(size="octave", **others):
    return rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3, sampling=size, **others)


def figures(kind, column, by=("copy",)):
    """An average or a sum among the holders of the first value, in every copy."""

    def ask(answerer):
        asked = Question(
            kind, answerer.selected({"s": "v00"}), measure=measure_of(answerer, column, None)
        )
        rows = average_rows(answerer, asked, by, SETTINGS)
        return [None if one.low is None else figure_of(one) for _, one in rows]

    return ask


@cache
def rich():
    """Copies of 40 groups with incomes around a thousand, and one of a million."""
    rng = np.random.default_rng(3)
    rows = []
    for i in range(40):
        held = rng.choice(VALUES, 75, p=[0.3, *[0.7 / 13] * 13]).tolist()
        rows += [(copy, 800 + 10 * i, one) for copy in range(COPIES) for one in held]
    rows += [(copy, 1_000_000, "v00") for copy in range(COPIES)]
    columns = zip(*rows, strict=True)
    return pa.table(dict(zip(("copy", "income", "s"), map(list, columns), strict=True)))


@pytest.mark.parametrize("size", ["none", "octave", "public"])
@pytest.mark.parametrize("kind", ["average", "sum"])
def test_a_figure_that_one_record_dominates_is_covered(kind, size):
    """Limits that take the variance at the estimate covered 53 % of such averages."""
    found = judged(rich(), policy(size), figures(kind, "income"), numbered_keys(8))
    assert found.total >= 80
    assert found.at_least(0.93)
    assert found.outside == 0


@pytest.mark.parametrize("margins", [None, 1.0])
@pytest.mark.parametrize(("size", "wider"), [("none", 1.03), ("octave", 1.3)])
def test_the_sum_of_a_constant_has_the_limits_of_the_count(tmp_path, size, wider, margins):
    """Where everybody is 40, the sum is 40 times the count, and so are its limits.

    Up to what is known of counts alone: that they are whole, and that no record outweighs others.
    """
    rng = np.random.default_rng(4)
    n = 4_000
    table = pa.table(
        {
            "place": rng.choice(list("abcdefgh"), n, p=[0.65, *[0.05] * 7]),
            "sex": rng.choice(["F", "M"], n),
            "age": np.full(n, 40),
            "s": rng.choice(VALUES, n, p=[0.5, *[0.5 / 13] * 13]),
        }
    )
    with rp.read(table, sensitive="s", public="all") as opened:
        release = opened.publish(
            policy(size, margins=margins), tmp_path / "r", key=numbered_keys(1)[0]
        )
    for where in ({"s": "v00"}, {"s": "v01", "place": "a"}, {"s": "v02", "sex": "F"}):
        count, total = release.count(**where), release.sum("age", **where)
        assert total.value == pytest.approx(40 * count.count)
        slack = 0.03 * 40 * (count.high - count.low)
        assert total.low <= 40 * count.low + slack
        assert total.high >= 40 * count.high - slack
        assert total.high - total.low <= wider * 40 * (count.high - count.low)


@cache
def rich_among_many():
    """The same beside many others, who make up for the million in the sum."""
    rng = np.random.default_rng(6)
    held = rng.choice(VALUES, 6_000, p=[0.4, *[0.6 / 13] * 13]).tolist()
    rows = [(copy, 1_000, one) for copy in range(COPIES) for one in held]
    return pa.concat_tables(
        [
            rich(),
            pa.table(
                dict(zip(("copy", "income", "s"), map(list, zip(*rows, strict=True)), strict=True))
            ),
        ]
    )


@pytest.mark.parametrize("kind", ["average", "sum"])
def test_a_heavy_record_among_many_is_covered(kind):
    """Nothing tells whether it is a holder: sums covered 58 %."""
    keys = numbered_keys(8)
    found = judged(rich_among_many(), policy("none"), figures(kind, "income"), keys)
    assert found.total >= 85
    assert found.at_least(0.93)


def test_a_sum_of_numbers_of_both_signs_is_covered():
    rng = np.random.default_rng(5)
    rows = [
        (copy, int(number), one)
        for number in (-900, -30, -2, 0, 1, 40, 700)
        for one in rng.choice(VALUES, 40, p=[0.4, *[0.6 / 13] * 13]).tolist()
        for copy in range(COPIES)
    ]
    columns = zip(*rows, strict=True)
    table = pa.table(dict(zip(("copy", "x", "s"), map(list, columns), strict=True)))
    keys = numbered_keys(8)
    right = {kind: judged(table, policy(), figures(kind, "x"), keys) for kind in ("sum", "average")}
    for kind, found in right.items():
        assert found.at_least(0.93) and found.outside == 0, kind
    wrong = [judged(table, policy(), figures("sum", "x"), keys, told=told) for told in (0.35, 0.65)]
    assert min(one.share for one in wrong) < right["sum"].share


def test_a_count_of_a_whole_group_is_not_capped_at_its_published_size():
    """With `paper`, coins decide how often trials are copied, so groups come out smaller."""
    table = pa.table({"copy": np.repeat(np.arange(COPIES), 300), "s": ["v00"] * 300 * COPIES})

    def ask(answerer):
        found = answerer.table(answerer.selected({"s": "v00"}), ["copy"], SETTINGS)
        return [Answer(one.count, one.low, one.high, one.remarks) for _, one in found]

    found = judged(table, policy("paper"), ask, numbered_keys(20), domain=VALUES)
    assert found.total == 20 * COPIES
    assert found.share > 0.9


def test_a_search_finds_the_border_from_either_side():
    start, ends = np.array([1.0, 1.0, 1.0]), np.array([9.0, -9.0, 5.0])
    border = np.array([4.0, -2.5, 30.0])

    def excess(level):
        return np.sign(border - start) * (border - level) ** 3

    for guess in (start, (start + ends) / 2, ends):
        found = last_inside(excess, start, guess, ends)
        assert found == pytest.approx([4.0, -2.5, 5.0], abs=0.1)

"""GROUP BY expressions, ORDER BY and LIMIT, against slow answers."""

import numpy as np
import pytest

from query_fixtures import people_release
from reconpriv.answers.select_rows import PICKED
from reconpriv.ask.sql.computed import with_expressions
from reconpriv.errors import InputError

PICKED_SIGN = PICKED.split("{")[0]


def ask(sql, **how):
    return people_release("octave").sql(sql, **how)


def test_labels_are_the_alias_or_the_expression():
    by = {
        "SELECT age // 10 AS decade, count(*) FROM release GROUP BY 1": ("decade",),
        "SELECT age // 10, count(*) FROM release GROUP BY 1": ("age // 10",),
        "SELECT Sex AS gender, count(*) FROM release GROUP BY Sex": ("gender",),
        "SELECT sex, age % 2 = 0 AS even, count(*) FROM release GROUP BY ALL": ("Sex", "even"),
    }
    for sql, labels in by.items():
        assert ask(sql).by == labels


@pytest.mark.parametrize("estimator", ["mle", "constrained"])
@pytest.mark.parametrize("sampling", ["none", "octave", "public", "paper"])
def test_an_estimate_by_expression_is_that_of_its_condition(sampling, estimator):
    release = people_release(sampling)
    where = "job = 'nurse'"
    rows = release.sql(
        f"SELECT age // 5 AS k, count(*) FROM release WHERE {where} GROUP BY k", estimator=estimator
    )
    assert len(rows) == 3
    for labels, row in rows:
        alone = release.count(f"{where} AND age // 5 = {labels['k']}", estimator=estimator)
        assert (row.count, row.low, row.high) == pytest.approx((alone.count, alone.low, alone.high))
        assert (row.records, row.groups, row.trials) == (alone.records, alone.groups, alone.trials)
        assert row.standard_error == pytest.approx(alone.standard_error)


def test_an_expression_beside_the_sensitive_column():
    release = people_release("octave")
    rows = release.sql("SELECT job, age // 10 AS k, count(*) FROM release GROUP BY ALL")
    for labels, row in rows:
        job = "IS NULL" if labels["job"] is None else f"= '{labels['job']}'"
        alone = release.count(f"job {job} AND age // 10 = {labels['k']}")
        assert row.count == pytest.approx(alone.count)


def test_cells_in_parts_give_the_same():
    cube = people_release("octave").answerer.cube
    computed = with_expressions(cube, {"k": '"age" // 4'})
    (whole,) = computed.parts()

    class Halves:
        schema, values = cube.schema, cube.values

        def parts(self):
            yield cube
            yield cube

    halves = list(with_expressions(Halves(), {"k": '"age" // 4'}).parts())
    assert len(halves) == 2
    for part in halves:
        assert np.array_equal(part.codes[-1], whole.codes[-1])
    assert whole.values[-1].to_pylist() == sorted({v // 4 for v in range(20, 35)})


def labels_of(sql):
    return [next(iter(labels.values())) for labels, _ in ask(sql)]


GROUPED = "SELECT region, count(*) AS n FROM release GROUP BY region"


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        ("", ["North", "O'Hara", None]),
        ("ORDER BY region DESC", ["O'Hara", "North", None]),
        ("ORDER BY region DESC NULLS FIRST", [None, "O'Hara", "North"]),
        ("ORDER BY 1 NULLS FIRST", [None, "North", "O'Hara"]),
        ("ORDER BY count(*)", [None, "O'Hara", "North"]),
        ("ORDER BY count(*) DESC", ["North", "O'Hara", None]),
        ("ORDER BY n ASC", [None, "O'Hara", "North"]),
        ("ORDER BY 2 DESC LIMIT 1", ["North"]),
        ("ORDER BY 2 DESC LIMIT 1 OFFSET 1", ["O'Hara"]),
        ("ORDER BY 2 DESC OFFSET 1", ["O'Hara", None]),
        ("LIMIT 2", ["North", "O'Hara"]),
        ("LIMIT 0", []),
        ("LIMIT 10 OFFSET 5", []),
    ],
)
def test_rows_come_in_the_order_asked_for(order, expected):
    assert labels_of(f"{GROUPED} {order}") == expected


TOP = "SELECT age, count(*) FROM release WHERE job = 'nurse' GROUP BY age ORDER BY count(*) DESC"


def test_a_choice_by_estimates_is_remarked_on():
    top = ask(f"{TOP} LIMIT 3")
    assert len(top) == 3
    for _, estimate in top:
        assert any(remark.startswith(PICKED_SIGN + "15 rows") for remark in estimate.remarks)
    everything = [estimate for _, estimate in ask(TOP)]
    assert [e.count for e in everything][:3] == [e.count for _, e in top]
    for harmless in (TOP, f"{TOP} LIMIT 15", TOP.replace("count(*) DESC", "age LIMIT 3")):
        remarks = [remark for _, e in ask(harmless) for remark in e.remarks]
        assert not any(remark.startswith(PICKED_SIGN) for remark in remarks)
    # An exact count is exact however it was picked.
    exact_rows = ask(f"{GROUPED} ORDER BY 2 DESC LIMIT 1")
    assert [estimate.remarks for _, estimate in exact_rows] == [()]


def test_simultaneous_intervals_count_all_rows_before_the_limit():
    every = {labels["age"]: e for labels, e in ask(TOP, simultaneous=True)}
    top = ask(f"{TOP} LIMIT 3", simultaneous=True)
    for labels, estimate in top:
        whole = every[labels["age"]]
        assert (estimate.low, estimate.high) == (whole.low, whole.high)
        assert not any(remark.startswith(PICKED_SIGN) for remark in estimate.remarks)


def test_an_expression_without_a_plain_value_is_refused():
    with pytest.raises(InputError, match="no plain value to group by"):
        ask("SELECT [age, 1] AS l, count(*) FROM release GROUP BY l")
    with pytest.raises(InputError, match=r"cannot be evaluated: the operator '\+' does not"):
        ask("SELECT Sex + 1, count(*) FROM release GROUP BY 1")


def test_grouping_by_one_thing_twice_is_refused():
    with pytest.raises(InputError, match="grouped by twice"):
        ask("SELECT age // 10 AS k, Sex AS k, count(*) FROM release GROUP BY ALL")

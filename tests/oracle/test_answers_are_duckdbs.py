"""Every answer to a release that loses nothing is the one that DuckDB gives on the records."""

from __future__ import annotations

from random import Random

import pytest

from oracle.command_line import command_line_questions
from oracle.conditions import Two
from oracle.counts import made_wanted, true_count
from oracle.referee import Referee, WrongAnswerError, check_rows, same
from oracle.run import KINDS, Desk, OracleQuestion, Tally, ask_many
from oracle.selects import Asked, By, Key, Select
from oracle.tables import made_table
from reconpriv.errors import InputError

SEEDS = range(100, 106)  # of three columns in turn: six tables have every kind
FLOOR = 0.7
ENOUGH = 8  # questions of a form, from which on the share that is answered says something


@pytest.fixture(scope="module")
def desks(tmp_path_factory):
    found = [Desk.of(seed, tmp_path_factory.mktemp("oracle")) for seed in SEEDS]
    yield found
    for one in found:
        one.close()


@pytest.mark.parametrize(
    ("kind", "questions"),
    {"select": 40, "share": 8, "count": 8, "cut": 20, "scores": 6, "python": 40,
     "command line": 8}.items(),
)  # fmt: skip
def test_answers_on_every_surface_are_those_of_duckdb(desks, kind, questions):
    """A condition that may cut a bin may be refused, others are nearly always answered."""
    make = (KINDS | {"command line": command_line_questions})[kind]
    tally = Tally()
    for desk in desks:
        tally.join(ask_many(desk, kind, make, questions))
    assert not tally.faults, "\n".join(tally.faults[:10])
    answered = {form: tally.answered_share(form) for form, n in tally.asked.items() if n >= ENOUGH}
    assert answered
    floor = 0.1 if kind == "cut" else FLOOR
    assert min(answered.values()) >= floor, (answered, tally.reasons)


def test_the_tables_have_every_kind_of_column():
    tables = [made_table(seed) for seed in SEEDS]
    kinds = {one.kind for table in tables for one in table.public}
    assert len(kinds) == 14, kinds
    assert {None} <= {value for table in tables for one in table.columns for value in one.values}


def test_a_seed_makes_the_same_table_and_the_same_questions():
    assert made_table(3).records.equals(made_table(3).records)
    assert made_wanted(Random("x"), made_table(3), 2) == made_wanted(Random("x"), made_table(3), 2)


class TestTheRefereeCanSayNo:
    """A wrong row, value, label or order is noticed."""

    by = By(Two.same('"code"'), 'CAST("code" AS INT)')

    def checked(self, select, change):
        table = made_table(102)
        referee = Referee(table)
        labels = len(select.by)
        rows = referee.rows(select.theirs())
        found = [(row[:labels], row[labels : labels + len(select.figures)]) for row in rows]
        try:
            check_rows(select, found, [[True]] * len(found), referee)
            wrong = change(list(found))
            with pytest.raises(WrongAnswerError):
                check_rows(select, wrong, [[True]] * len(wrong), referee)
        finally:
            referee.close()

    @pytest.mark.parametrize(
        "change",
        [
            lambda rows: rows[1:],
            lambda rows: [*rows[1:], rows[0]],
            lambda rows: [(rows[0][0], (rows[0][1][0] + 1,)), *rows[1:]],
            lambda rows: [(rows[0][0], (None,)), *rows[1:]],
            lambda rows: [(("other",), rows[0][1]), *rows[1:]],
            lambda rows: [rows[0], *rows[:-1]],
        ],
    )
    def test_in_a_table(self, change):
        column = next(one for one in made_table(102).public if one.recoded is None)
        by = By(Two.same(column.sql), column.sql)
        select = Select(
            (Asked("count", Two.same("count(*)")),), (by,), order=(Key(False, 0, "text", ""),)
        )
        self.checked(select, change)

    def test_in_a_count(self, tmp_path):
        desk = Desk.of(102, tmp_path)
        wanted = made_wanted(Random("y"), desk.table, 1)
        truth = true_count(desk.referee, wanted)
        assert same(truth, truth) and not same(truth + 1, truth) and not same(None, truth)
        desk.close()

    @pytest.mark.parametrize("error", [KeyError("x"), InputError("no sentence")])
    def test_a_bare_exception_and_a_text_that_is_no_sentence_are_faults(self, error):
        def fail():
            raise error

        tally = Tally()
        tally.take(OracleQuestion("bare", "", fail, lambda _: None))
        assert len(tally.faults) == 1 and not tally.refused

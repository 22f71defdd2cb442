"""Asking a made table many questions, and saying which answers are wrong."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import reconpriv as rp
from oracle.asking import BareError, asked, quietly, raw_release, rows_of
from oracle.conditions import cutting_condition, public_condition
from oracle.counts import count_surfaces, made_wanted, true_count
from oracle.figures import made_python_question
from oracle.referee import Referee, WrongAnswerError, check_rows, check_value, lookup, same
from oracle.selects import Select, made_select, share_of_values
from oracle.tables import MadeTable, made_table
from oracle.values import literal, same_keys
from reconpriv.estimate.counts import Estimate

NOTHING = "No record is in this selection"


@dataclass(frozen=True)
class Desk:
    """A made table with its release that loses nothing, the original, and the referee."""

    seed: int
    table: MadeTable
    release: rp.Release
    original: rp.Table
    referee: Referee
    folder: Path

    @classmethod
    def of(cls, seed: int, folder: Path) -> Desk:
        """The desk of a seed; what it writes is in a folder."""
        table = made_table(seed, fine=seed % 6 == 5)
        with quietly():
            original = rp.read(table.records, **table.reading())
        release = raw_release(table, folder / f"oracle-{seed}")
        return cls(seed, table, release, original, Referee(table), folder)

    def close(self) -> None:
        """Let go of everything that is open."""
        self.original.close()
        self.referee.close()


@dataclass(frozen=True)
class OracleQuestion:
    """A question of some form, and a check of its answer that raises WrongAnswerError."""

    form: str
    text: str
    ask: Callable[[], Any]
    check: Callable[[Any], None]


@dataclass
class Tally:
    """How many questions of each form were asked and refused, and what was wrong."""

    asked: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)
    reasons: Counter[str] = field(default_factory=Counter)

    def take(self, one: OracleQuestion, place: str = "") -> None:
        """Ask, and check the answer unless it is refused."""
        self.asked[one.form] += 1
        try:
            answer = asked(one.ask)
            if isinstance(answer, rp.ReconprivError):
                self.refused[one.form] += NOTHING not in str(answer)
                self.reasons[str(answer)[:80]] += 1
                return
            with quietly():
                one.check(answer)
        except (BareError, WrongAnswerError, ValueError, TypeError) as fault:
            self.faults.append(f"{one.form}: {place} {one.text}: {type(fault).__name__}: {fault}")

    def join(self, other: Tally) -> None:
        """Add the questions of another table."""
        self.asked.update(other.asked)
        self.refused.update(other.refused)
        self.reasons.update(other.reasons)
        self.faults += other.faults

    def answered_share(self, form: str) -> float:
        """The share of the questions of a form that were answered, or were about nobody."""
        return 1.0 - self.refused[form] / self.asked[form]


def select_questions(rng: Random, desk: Desk) -> Iterator[OracleQuestion]:
    """SELECTs, compared row by row."""
    select = made_select(rng, desk.table)
    sql = select.ours()
    yield OracleQuestion(
        select.form, sql, partial(desk.release.sql, sql), partial(check_select, desk, select)
    )


def check_select(desk: Desk, select: Select, answer: Any) -> None:
    """Compare an answer to a SELECT with the referee's, and its other forms with itself."""
    rows = rows_of(answer)
    found = [(labels, tuple(one.value for one in row)) for labels, row in rows]
    check_rows(select, found, [[one.exact for one in row] for _, row in rows], desk.referee)
    json.dumps(answer.as_dict(), allow_nan=False)
    check_names(select, answer)
    if not hasattr(answer, "to_arrow"):
        return
    table = answer.to_arrow()
    for name, place in zip(answer.by, range(len(select.by)), strict=True):
        if table[name].to_pylist() != [labels[place] for labels, _ in found]:
            raise WrongAnswerError(f"other labels in Arrow: {table[name].to_pylist()!r}")


def check_names(select: Select, answer: Any) -> None:
    """Aliases head what they are the aliases of."""
    names = (getattr(answer, "name", ""),)
    headings: tuple[str, ...] = ()
    if not isinstance(answer, Estimate) and hasattr(answer, "by"):
        names, headings = getattr(answer, "names", names), answer.by
    aliases = [one.alias for one in select.by] if headings else []
    aliases += [one.alias for one in select.figures]
    for alias, name in zip(aliases, (*headings, *names), strict=True):
        if alias and alias != name:
            raise WrongAnswerError(f"the heading {name!r} for {alias!r}")


def share_questions(rng: Random, desk: Desk) -> Iterator[OracleQuestion]:
    """share(*) by a public column."""
    ours, theirs = share_of_values(rng, desk.table)

    def check(answer: Any) -> None:
        truth = {lookup((label,)): share for label, share in desk.referee.rows(theirs)}
        found = {lookup(labels): row[0].value for labels, row in rows_of(answer)}
        wrong = [one for one in truth if one not in found or not same(found[one], truth[one])]
        if wrong or len(found) != len(truth):
            raise WrongAnswerError(f"{found!r} for {truth!r}")

    yield OracleQuestion("share(*)", ours, partial(desk.release.sql, ours), check)


def count_questions(rng: Random, desk: Desk) -> Iterator[OracleQuestion]:
    """A count on every surface."""
    wanted = made_wanted(rng, desk.table, rng.choice((1, 1, 2)))
    check = partial(check_value, theirs=true_count(desk.referee, wanted))
    text = " AND ".join(one.condition.ours for one in wanted)
    for name, ask in count_surfaces(rng, desk.release, desk.original, wanted, desk.folder):
        yield OracleQuestion(name, text, ask, check)


def cut_questions(rng: Random, desk: Desk) -> Iterator[OracleQuestion]:
    """A count whose condition may cut bins; a number inside a bin may also be a border."""
    told = cutting_condition(rng, desk.table)
    if told is not None:
        truth = desk.referee.one(f"SELECT count(*) FROM raw WHERE {told.theirs}")
        yield OracleQuestion(
            "conditions that may cut bins", told.ours, partial(desk.release.count, told.ours),
            lambda found: check_value(found.count, truth),
        )  # fmt: skip


def score_questions(rng: Random, desk: Desk) -> Iterator[OracleQuestion]:
    """Averages and quantiles of the sensitive column by the scores of its values."""
    sensitive = desk.table.sensitive
    recoded = sensitive.recoded
    name = sensitive.sql if recoded is None else sensitive.beside("label")
    values = sensitive.present if recoded is None else list(recoded.labels)
    scores = dict(zip(values, rng.sample(range(-5, 50), len(values)), strict=True))
    given = {rng.choice(same_keys(value)): score for value, score in scores.items()}
    whens = " ".join(f"WHEN {literal(value)} THEN {score}" for value, score in scores.items())
    where = public_condition(rng, desk.table)
    figure = rng.choice(("avg", "sum", "quantile_disc"))
    more = ", 0.5" if figure == "quantile_disc" else ""
    truth = desk.referee.one(
        f"SELECT {figure}(CASE {name} {whens} END{more}) FROM raw WHERE {where.theirs}"
    )
    method = {"avg": "average", "sum": "sum", "quantile_disc": "median"}[figure]

    def check(found: Any) -> None:
        by_text = {str(value): score for value, score in scores.items()}
        check_value(by_text[found.value] if found.kind == "median" else found.value, truth)

    ask = partial(getattr(desk.release, method), sensitive.name, where.ours, scores=given)
    yield OracleQuestion(f"{method} of scores", f"{where.ours!r}, {given!r}", ask, check)


def python_questions(rng: Random, desk: Desk) -> Iterator[OracleQuestion]:
    """Figures and tables in Python."""
    one = made_python_question(rng, desk.table)
    yield OracleQuestion(
        one.form, one.text, partial(one.ask, desk.release), partial(one.check, desk.referee)
    )


Maker = Callable[[Random, Desk], Iterator[OracleQuestion]]
KINDS: dict[str, Maker] = {
    "select": select_questions,
    "share": share_questions,
    "count": count_questions,
    "cut": cut_questions,
    "scores": score_questions,
    "python": python_questions,
}


def ask_many(desk: Desk, kind: str, make: Maker, questions: int) -> Tally:
    """Ask so many made questions of a kind; its name, the table and a number make each."""
    tally = Tally()
    for number in range(questions):
        for one in make(Random(f"{kind} {desk.seed} {number}"), desk):
            tally.take(one, f"{desk.seed}/{number}")
    return tally


def ask_all(seed: int, folder: Path, *, selects: int, counts: int, python: int) -> Tally:
    """All kinds of questions about the table of a seed."""
    desk, tally = Desk.of(seed, folder), Tally()
    numbers = (selects, selects // 5, counts, counts * 3, counts, python)
    try:
        for (kind, make), questions in zip(KINDS.items(), numbers, strict=True):
            tally.join(ask_many(desk, kind, make, questions))
    finally:
        desk.close()
    return tally

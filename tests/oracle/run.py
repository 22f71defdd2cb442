"""Asking a made table many questions, and saying which answers are wrong."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
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
from oracle.referee import Referee, WrongAnswerError, check_rows, lookup, same
from oracle.selects import Select, made_select, share_of_values
from oracle.tables import MadeTable, made_table
from oracle.values import literal, same_keys
from reconpriv.estimate.counts import Estimate

NOTHING = "No record is in this selection"


@dataclass
class Tally:
    """How many questions of each form were asked and refused, and what was wrong."""

    asked: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)
    reasons: Counter[str] = field(default_factory=Counter)

    def take(
        self, form: str, text: str, ask: Callable[[], Any], check: Callable[[Any], None]
    ) -> None:
        """Ask, and check the answer unless it is refused."""
        self.asked[form] += 1
        try:
            answer = asked(ask)
            if isinstance(answer, rp.ReconprivError):
                self.refused[form] += NOTHING not in str(answer)
                self.reasons[str(answer)[:80]] += 1
                return
            with quietly():
                check(answer)
        except (BareError, WrongAnswerError, ValueError, TypeError) as fault:
            self.faults.append(f"{form}: {text}: {type(fault).__name__}: {fault}")

    def join(self, other: Tally) -> None:
        """Add the questions of another table."""
        self.asked.update(other.asked)
        self.refused.update(other.refused)
        self.reasons.update(other.reasons)
        self.faults += other.faults

    def answered_share(self, form: str) -> float:
        """The share of the questions of a form that were answered, or were about nobody."""
        return 1.0 - self.refused[form] / self.asked[form]


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


def ask_selects(desk: Desk, questions: int) -> Tally:
    """SELECTs, compared row by row."""
    tally = Tally()
    for number in range(questions):
        select = made_select(Random(f"select {desk.seed} {number}"), desk.table)
        tally.take(
            select.form, f"{desk.seed}/{number} {select.ours()}",
            partial(desk.release.sql, select.ours()), partial(check_select, desk, select),
        )  # fmt: skip
    return tally


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
    if isinstance(answer, Estimate) or not hasattr(answer, "by"):
        names = (answer.name,)
    else:
        names = getattr(answer, "names", (getattr(answer, "name", ""),))
        for one, label in zip(select.by, answer.by, strict=True):
            if one.alias and one.alias != label:
                raise WrongAnswerError(f"the heading {label!r} for {one.alias!r}")
    for figure, name in zip(select.figures, names, strict=True):
        if figure.alias and figure.alias != name:
            raise WrongAnswerError(f"the heading {name!r} for {figure.alias!r}")


def ask_shares(desk: Desk, questions: int) -> Tally:
    """share(*) by a public column."""
    tally = Tally()
    for number in range(questions):
        ours, theirs = share_of_values(Random(f"share {desk.seed} {number}"), desk.table)

        def check(answer: Any, theirs: str = theirs) -> None:
            truth = {lookup((label,)): share for label, share in desk.referee.rows(theirs)}
            found = {lookup(labels): row[0].value for labels, row in rows_of(answer)}
            wrong = [one for one in truth if one not in found or not same(found[one], truth[one])]
            if wrong or len(found) != len(truth):
                raise WrongAnswerError(f"{found!r} for {truth!r}")

        tally.take(
            "share(*)", f"{desk.seed}/{number} {ours}", partial(desk.release.sql, ours), check
        )
    return tally


def ask_counts(desk: Desk, questions: int) -> Tally:
    """Counts on every surface."""
    tally = Tally()
    for number in range(questions):
        rng = Random(f"count {desk.seed} {number}")
        wanted = made_wanted(rng, desk.table, rng.choice((1, 1, 2)))
        truth = true_count(desk.referee, wanted)
        text = f"{desk.seed}/{number} " + " AND ".join(one.condition.ours for one in wanted)

        def check(found: float, truth: int = truth) -> None:
            if not same(found, truth):
                raise WrongAnswerError(f"{found!r} for {truth!r}")

        surfaces = count_surfaces(rng, desk.release, desk.original, wanted, desk.folder)
        for name, ask in surfaces:
            tally.take(name, text, ask, check)
    return tally


def ask_cut_bins(desk: Desk, questions: int) -> Tally:
    """Counts whose conditions may cut bins; a number inside a bin may also be a border."""
    tally = Tally()
    for number in range(questions):
        told = cutting_condition(Random(f"cut {desk.seed} {number}"), desk.table)
        if told is None:
            break
        truth = desk.referee.one(f"SELECT count(*) FROM raw WHERE {told.theirs}")

        def check(found: Any, truth: int = truth) -> None:
            if not same(found.count, truth):
                raise WrongAnswerError(f"{found.count!r} for {truth!r}")

        ask = partial(desk.release.count, told.ours)
        tally.take("conditions that may cut bins", f"{desk.seed}/{number} {told.ours}", ask, check)
    return tally


def ask_scores(desk: Desk, questions: int) -> Tally:
    """Averages and quantiles of the sensitive column by the scores of its values."""
    tally = Tally()
    sensitive = desk.table.sensitive
    recoded = sensitive.recoded
    name = sensitive.sql if recoded is None else sensitive.beside("label")
    values = sensitive.present if recoded is None else list(recoded.labels)
    for number in range(questions):
        rng = Random(f"scores {desk.seed} {number}")
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

        def check(found: Any, truth: Any = truth, scores: dict[Any, int] = scores) -> None:
            by_text = {str(value): score for value, score in scores.items()}
            value = by_text[found.value] if found.kind == "median" else found.value
            if not same(value, truth):
                raise WrongAnswerError(f"{value!r} for {truth!r}")

        ask = partial(getattr(desk.release, method), sensitive.name, where.ours, scores=given)
        text = f"{desk.seed}/{number} {method}({where.ours!r}, scores={given!r})"
        tally.take(f"{method} of scores", text, ask, check)
    return tally


def ask_python(desk: Desk, questions: int) -> Tally:
    """Figures and tables in Python."""
    tally = Tally()
    for number in range(questions):
        one = made_python_question(Random(f"python {desk.seed} {number}"), desk.table)
        tally.take(
            one.form, f"{desk.seed}/{number} {one.text}", partial(one.ask, desk.release),
            partial(one.check, desk.referee),
        )  # fmt: skip
    return tally


def ask_all(seed: int, folder: Path, *, selects: int, counts: int, python: int) -> Tally:
    """All kinds of questions about the table of a seed."""
    desk = Desk.of(seed, folder)
    try:
        tally = ask_selects(desk, selects)
        tally.join(ask_shares(desk, selects // 5))
        tally.join(ask_counts(desk, counts))
        tally.join(ask_cut_bins(desk, counts * 3))
        tally.join(ask_scores(desk, counts))
        tally.join(ask_python(desk, python))
    finally:
        desk.close()
    return tally

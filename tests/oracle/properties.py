"""What holds for every answer of every release, whatever its policy.

No value lies outside its own interval without a remark that says so, and no answer has an interval
of no width unless it is exact, or nothing else is possible: a share of all, the average of a column
with one value, a quantile next to which every other value is ruled out. So an interval of no width
that is not the truth is a fault; of quantiles, if that happens more often than their level says.
The truth is what the release that loses nothing answers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

from scipy.stats import binom

import reconpriv as rp
from oracle.asking import Answer, BareError, asked, published, raw_release, rows_of
from oracle.figures import made_python_question
from oracle.referee import same
from oracle.selects import made_select
from oracle.tables import MadeTable, made_table
from reconpriv.answers.figure import Figure
from reconpriv.estimate.compare import Comparison
from reconpriv.estimate.quantiles import NOBODY
from reconpriv.estimate.shares import UNSURE

SLACK = 1e-9
RARE = 1e-3
QUANTILE_MISSED = re.compile(r"[^:]*, (median|quantile), no width:")
ABOUT_ITSELF = "the estimate "
"""How a remark begins that is about an estimate outside its interval."""


@dataclass(frozen=True)
class Design:
    """A policy to publish a made table with."""

    name: str
    sampling: str
    margins: float | None = None
    protected: bool = False

    def policy(self, table: MadeTable) -> rp.Policy:
        """The policy for a table: with protection, its first column is pooled."""
        return rp.Policy(
            retention=0.5, tolerance=0.5, doubt=0.3, sampling=self.sampling,
            unattainable="one-trial",
            margins=self.margins,
            protect={table.public[0].name: "*"} if self.protected else None,
        )  # fmt: skip


DESIGNS = (
    *(Design(name, name) for name in ("none", "octave", "public", "paper")),
    Design("none with margins", "none", margins=1.0),
    Design("octave with margins", "octave", margins=1.0),
    Design("octave protected", "octave", protected=True),
    Design("none protected", "none", protected=True),
)


def faults_in(
    answer: Any, truth: Callable[[], Any], table: MadeTable, design: Design
) -> Iterator[str]:
    """What is wrong with the intervals of an answer; ``truth`` gives that of the raw table."""
    for key, one in keyed(answer).items():
        kind = one.kind if isinstance(one, Figure) else "count"
        what = f"{design.name}, {kind}"
        said = f"{one.value!r} ({one.low!r} to {one.high!r}), {one.remarks!r}"
        if _no_width(one):
            true = keyed(truth()).get(key)
            nobody = true is None or true.value is None or bool({UNSURE, NOBODY} & {*true.remarks})
            if true is None or nobody or same(one.low, true.value):
                continue
            yield f"{what}, no width: {said}"
        if _outside(one, table):
            yield f"{what}, outside: {said}"
    if isinstance(answer, Comparison) and not answer.exact:
        yield from _comparison_faults(answer, truth, design)


def keyed(answer: Any) -> dict[Any, Answer]:
    """Every figure in an answer by its labels and its place among those with the same ones."""
    if isinstance(answer, rp.ReconprivError):
        return {}
    if isinstance(answer, Comparison):
        return {"a": answer.a, "b": answer.b}
    found: dict[Any, Answer] = {
        (repr(labels), i): one for labels, row in rows_of(answer) for i, one in enumerate(row)
    }
    for cell in getattr(answer, "cells", ()):
        found[cell.part, repr(cell.labels)] = cell.count
        if cell.share is not None:
            found[cell.part, repr(cell.labels), "share"] = cell.share
    return found


def _comparison_faults(
    answer: Comparison, truth: Callable[[], Any], design: Design
) -> Iterator[str]:
    low, high = answer.difference_low, answer.difference_high
    said = f"{answer.difference!r} ({low!r} to {high!r}), {answer.remarks!r}"
    told = any(remark.startswith(ABOUT_ITSELF) for remark in answer.remarks)
    if low == high and not same(answer.difference, getattr(truth(), "difference", None)):
        yield f"{design.name}, difference, no width: {said}"
    if not low - SLACK <= answer.difference <= high + SLACK and not told:
        yield f"{design.name}, difference, outside: {said}"


def _ranked(one: Answer) -> bool:
    return isinstance(one, Figure) and one.kind in ("median", "quantile")


def _no_width(one: Answer) -> bool:
    return not one.exact and one.low is not None and one.low == one.high


def _outside(one: Answer, table: MadeTable) -> bool:
    value, low, high = one.value, one.low, one.high
    if value is None or any(remark.startswith(ABOUT_ITSELF) for remark in one.remarks):
        return False
    if isinstance(value, str):  # a bin, whose limits are borders, or a class
        places = [_place(end, table) for end in (low, value, high)]
        known = [place for place in places if place is not None]
        return len(known) == len(places) and known != sorted(known)
    slack = SLACK * max(abs(value), 1.0)
    return (low is not None and value < low - slack) or (high is not None and value > high + slack)


def _place(label: Any, table: MadeTable) -> int | None:
    """The place of a label in its column; None for a border, or if several columns have it."""
    found = [
        one.recoded.labels.index(label)
        for one in table.columns
        if one.recoded is not None and label in one.recoded.labels
    ]
    return found[0] if len(found) == 1 else None


def _sql(text: str, release: rp.Release) -> Any:
    return release.sql(text)


def property_faults(
    seed: int, design: Design, folder: Path, questions: int
) -> tuple[int, list[str]]:
    """How many answers a release of a made table gave, and what is wrong with their intervals."""
    table = made_table(seed, records=900, most=3, fine=seed % 2 == 1)
    release = published(table, folder / f"{design.name}-{seed}", design.policy(table), key=seed)
    raw = raw_release(table, folder / f"{design.name}-{seed}-raw")
    answered, narrow, faults = 0, 0, []
    for number in range(questions):
        rng = Random(f"property {seed} {number}")
        if number % 2:
            one = made_python_question(rng, table)
            text, ask = one.text, one.ask
        else:
            text = made_select(rng, table).ours()
            ask = partial(_sql, text)
        try:
            answer = asked(partial(ask, release))
        except BareError as fault:
            faults.append(f"{design.name}, bare: {text}: {fault}")
            continue
        if not isinstance(answer, rp.ReconprivError):
            answered += 1
            narrow += sum(_no_width(one) and _ranked(one) for one in keyed(answer).values())
            found = faults_in(answer, partial(asked, partial(ask, raw)), table, design)
            faults += [f"{one} at {seed}/{number} {text}" for one in found]
    missed = [one for one in faults if QUANTILE_MISSED.match(one)]
    if binom.sf(len(missed) - 1, narrow, 0.05) > RARE:
        faults = [one for one in faults if one not in missed]
    return answered, faults

"""How often intervals hold, class by class: a made table is published in memory with many keys.

:func:`judged` takes the table, a policy, a question and keys, and says how often the truth lay
inside the interval, below it and above it. A question is a function of an answerer that gives one
answer or several, so any figure can be judged; :func:`compared` and :func:`share_among` make some.
With a column of repetitions, each a table of its own, a key gives many answers at once:
:func:`combined` and :func:`share_among` ask by that column.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from scipy.special import ndtr

import reconpriv as rp
from margin_fixtures import publish_in_memory
from query_fixtures import numbered_key
from reconpriv.answers.answerer import Answerer
from reconpriv.answers.figure import IMPOSSIBLE, Figure
from reconpriv.ask.question import asked_share, side_of
from reconpriv.ask.selections import Asked, both, public_part
from reconpriv.cells.cube import Cube, collect
from reconpriv.estimate.compare import Comparison, compare_sides
from reconpriv.estimate.counts import Design, Settings, quantile
from reconpriv.estimate.pieces import cut_into_pieces
from reconpriv.estimate.shares import share_rows
from reconpriv.protect.publish_cube import published_cube
from reconpriv.release.load import plug_in_trials
from reconpriv.theory.estimation.combined_limits import (
    combination_limits,
    errors_from_zero,
    ratio_limits,
)

SETTINGS = Settings()
OUTSIDE = IMPOSSIBLE  # remarks on a value outside its interval
SLACK = 1e-6
HELD, OTHER = 0, 1  # the sensitive value that questions are about, and that of all other records


class Answer(NamedTuple):
    """What an interval says; ``high`` is infinite if there is no upper limit."""

    value: float | None
    low: float
    high: float
    remarks: tuple[str, ...] = ()
    p_value: float | None = None


# One answer per row, always the same rows; None if there is none.
Question = Callable[[Answerer], Sequence[Answer | None]]


@dataclass(frozen=True)
class Judged:
    """How many answers there were, and in how many the truth was beyond either limit.

    ``width`` is the mean width of finite intervals, ``rejected`` the tests with p < 5 %, and
    ``outside`` the values outside their own interval that no remark mentions.
    """

    total: int
    below: int
    above: int
    width: float
    rejected: int
    outside: int

    @property
    def hits(self) -> int:
        """How many intervals hold."""
        return self.total - self.below - self.above

    @property
    def share(self) -> float:
        """The share of intervals that hold; all do if there is none."""
        return self.hits / self.total if self.total else 1.0

    def at_least(self, share: float) -> bool:
        """Whether they hold this often, as far as three standard errors tell."""
        return not self.total or self.share >= share - 3.0 * math.sqrt(
            share * (1.0 - share) / self.total
        )


class Group(NamedTuple):
    """Records with the same public values: a side, how many, and how many of them hold."""

    side: str
    size: int
    holders: int


def made_table(groups: Sequence[Group], repeated: int = 1) -> pa.Table:
    """A table with the columns side, part (a number for each group), again (repetition) and s."""
    columns: dict[str, list[Any]] = {"side": [], "part": [], "again": [], "s": []}
    every = itertools.product(range(repeated), enumerate(groups))
    for again, (number, (side, size, holders)) in every:
        columns["again"] += [again] * size
        columns["side"] += [side] * size
        columns["part"] += [number] * size
        columns["s"] += [HELD] * holders + [OTHER] * (size - holders)
    return pa.table(columns)


def side(name: str, size: int, share: float, groups: int = 1) -> list[Group]:
    """A side of so many records, a share of which hold, in groups as alike as possible."""
    holders = round(size * share)
    return [
        Group(
            name, size // groups + (i < size % groups), holders // groups + (i < holders % groups)
        )
        for i in range(groups)
    ]


def compared(a: Asked, b: Asked, figure: str, of: str = "share", among: Asked = None) -> Question:
    """The "difference" or "ratio" of the holders under two conditions on public columns."""

    def ask(answerer: Answerer) -> list[Answer | None]:
        base = None if among is None else answerer.selected(among)
        holders = answerer.selected({"s": HELD} if among is None else None)
        sides = [both(answerer.selected(one), holders) for one in (a, b)]
        sides = sides if base is None else [both(one, base) for one in sides]
        try:
            found = compare_sides(answerer, *(side_of(one, base, of) for one in sides), SETTINGS)
        except rp.ReconprivError:
            return [None]
        return [difference_of(found) if figure == "difference" else ratio_of(found)]

    return ask


def difference_of(one: Comparison) -> Answer:
    """The difference of a comparison."""
    return Answer(one.difference, one.difference_low, one.difference_high, one.remarks, one.p_value)


def ratio_of(one: Comparison) -> Answer | None:
    """The ratio of a comparison, if it has one."""
    if one.ratio is None or one.ratio_low is None:
        return None
    high = math.inf if one.ratio_high is None else one.ratio_high
    return Answer(one.ratio, one.ratio_low, high, one.remarks, one.p_value)


def combined(a: Asked, b: Asked, figure: str, of: str = "share", by: str = "again") -> Question:
    """The same in every repetition, without values: limits from the pieces of the sides."""

    def ask(answerer: Answerer) -> list[Answer | None]:
        holders = answerer.selected({"s": HELD})
        chosen = [both(answerer.selected(one), holders) for one in (a, b)]
        found = cut_into_pieces(answerer, chosen, [by], SETTINGS)
        sizes = np.ones((2, found.keys.shape[1], 1))
        if of == "share":
            for i, one in enumerate(chosen):
                rows = answerer.table(public_part(one), [by], SETTINGS)
                sizes[i, :, 0] = [estimate.count for _, estimate in rows]
        weights = found.members[:, None, :] / sizes
        gap, z = weights[0] - weights[1], quantile(0.95)
        if figure == "difference":
            low, high = combination_limits(gap, found.parts, z)
        else:
            low, high = ratio_limits(*weights, found.parts, z, (0.0, math.inf))
        p_values = 2.0 * ndtr(-errors_from_zero(gap, found.parts, z))
        columns = [one.tolist() for one in (low, high, p_values)]
        return [Answer(None, *limits, p_value=p) for *limits, p in zip(*columns, strict=True)]

    return ask


def share_among(where: Asked, values: Sequence[int] = (HELD,), by: Sequence[str] = ()) -> Question:
    """The share of a condition among the holders of some values."""

    def ask(answerer: Answerer) -> list[Answer | None]:
        holders = answerer.selected({"s": list(values)})
        asked = asked_share(answerer.selected(where), holders)
        rows = share_rows(answerer, asked, by, SETTINGS)
        return [None if one.low is None else figure_of(one) for _, one in rows]

    return ask


def figure_of(one: Figure) -> Answer:
    """A figure whose value and limits are numbers."""
    value = None if one.value is None else float(one.value)
    return Answer(value, float(one.low), float(one.high), one.remarks)


def numbered_keys(count: int) -> list[rp.Key]:
    """So many fixed keys."""
    return [numbered_key(number) for number in range(count)]


def judged(
    table: pa.Table,
    policy: rp.Policy,
    question: Question,
    keys: Iterable[rp.Key],
    *,
    sensitive: str = "s",
    domain: Sequence[Any] | None = None,
    told: float | None = None,
) -> Judged:
    """How often the intervals of a question hold; ``told`` is the p that the analyst is told."""
    (found,) = judged_all(
        table, policy, [question], keys, sensitive=sensitive, domain=domain, told=told
    )
    return found


def judged_all(
    table: pa.Table,
    policy: rp.Policy,
    questions: Sequence[Question],
    keys: Iterable[rp.Key],
    *,
    sensitive: str = "s",
    domain: Sequence[Any] | None = None,
    told: float | None = None,
) -> list[Judged]:
    """The same for several questions about the same publications."""
    raw = raw_cube(table, sensitive, None if domain is None else tuple(domain))
    exact = Answerer(raw, Design(1.0, raw.schema.domain_size, "none"))
    truths = [ask(exact) for ask in questions]
    pairs: list[list[tuple[Answer, Answer]]] = [[] for _ in questions]
    for answerer in publications(raw, policy, keys, told):
        for own, ask, true in zip(pairs, questions, truths, strict=True):
            rows = zip(ask(answerer), true, strict=True)
            own += [(given, known) for given, known in rows if given is not None and known]
    return [_tally(own) for own in pairs]


def _tally(pairs: Sequence[tuple[Answer, Answer]]) -> Judged:
    """Count answers beside the truth, which is an answer of the original table.

    That has no width, unless nobody holds the value; then nothing can be missed.
    """
    given = [one for one, _ in pairs]
    widths = [one.high - one.low for one in given if math.isfinite(one.high)]
    below = sum(true.high < one.low - SLACK * max(1.0, abs(true.high)) for one, true in pairs)
    above = sum(true.low > one.high + SLACK * max(1.0, abs(true.low)) for one, true in pairs)
    outside = sum(
        one.value is not None
        and not one.low - SLACK <= one.value <= one.high + SLACK
        and not set(one.remarks) & set(OUTSIDE)
        for one in given
    )
    rejected = sum(one.p_value is not None and one.p_value < 0.05 for one in given)
    width = sum(widths) / len(widths) if widths else math.nan
    return Judged(len(given), below, above, width, rejected, outside)


def raw_cube(table: pa.Table, sensitive: str, domain: tuple[Any, ...] | None) -> Cube:
    """The cells of a table."""
    with rp.read(
        table, sensitive=sensitive, public="all", domain=None if domain is None else list(domain)
    ) as opened:
        return collect(list(opened.batches()), opened.schema)


def publications(
    raw: Cube, policy: rp.Policy, keys: Iterable[rp.Key], told: float | None = None
) -> Iterator[Answerer]:
    """What an analyst of each publication asks."""
    p = policy.retention if told is None else told
    for key in keys:
        if policy.margins is not None:
            yield publish_in_memory(raw, policy, key).answerer
            continue
        cube = published_cube(raw, policy, key)
        if not policy.sampling_rule.trials_known:
            cube = replace(cube, trials=plug_in_trials(cube, policy))
        yield Answerer(cube, Design(p, raw.schema.domain_size, policy.sampling))

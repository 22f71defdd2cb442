"""Shares: how many of some records satisfy a condition, with an interval.

A denominator that is chosen by public columns is known exactly, and the limits are those of the
numerator. Otherwise a share is x / (x + y), with y the other records of the denominator, and its
limits are combined from those of the two counts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from reconpriv.answers.answerer import Answerer
from reconpriv.answers.figure import IMPOSSIBLE, Figure, impossible
from reconpriv.ask.question import Question
from reconpriv.columns.schema import Value
from reconpriv.errors import InputError
from reconpriv.estimate.counts import Estimate, Settings, exact_zero
from reconpriv.estimate.pieces import Pieces, cut_into_pieces
from reconpriv.theory.arrays import Floats
from reconpriv.theory.estimation.combined_limits import ratio_limits

NO_RECORDS = "no record is in this selection, so there is nothing to describe"
UNSURE = "the denominator may be zero, so the share is undefined"
_ZERO = exact_zero("", 0.95)

Labels = dict[str, Value]


def check_unbiased(settings: Settings, what: str) -> None:
    """Refuse an estimator that has no covariances."""
    if not settings.how.unbiased:
        raise InputError(
            f"{what} is made of unbiased counts; the estimator {settings.estimator!r} gives none.",
            hint="Use the estimator 'mle' or 'records'.",
        )


def share_rows(
    answerer: Answerer, asked: Question, by: Sequence[str], settings: Settings
) -> list[tuple[Labels, Figure]]:
    """A share for every combination of the given attributes that occurs among the records.

    With the sensitive attribute among them, each value has its share among the records that agree
    on the others, or ``within`` those of its holders.
    """
    if settings.how.model:
        check_unbiased(settings, "A share")
    sensitive = answerer.cells.schema.sensitive.name
    if asked.within and sensitive in by:
        return _shares_within(answerer, asked, by, settings)
    public = [one for one in by if one != sensitive]
    table = answerer.table(asked.base, public, settings)
    below = {_key(labels, public): one for labels, one in table}
    if sensitive in by and not asked.known:
        raise InputError(
            f"Shares by {sensitive!r} need records that are chosen by public columns.",
            hint="Leave the sensitive column out of GROUP BY or out of the condition.",
        )
    above = answerer.table(asked.selected, list(by), settings)
    if asked.known:
        if list(by) == public and len(above) < len(below):  # where nobody can be counted, it is 0
            found = {_key(labels, public): one for labels, one in above}
            above = [(dict(zip(public, key, strict=True)), found.get(key, _ZERO)) for key in below]
        return [
            (labels, of_known(one, below[_key(labels, public)], asked, settings))
            for labels, one in above
        ]
    check_unbiased(settings, "A share among the holders of a sensitive value")
    return _of_estimated(answerer, asked, public, above, below, settings.together(len(below)))


def _shares_within(
    answerer: Answerer, asked: Question, by: Sequence[str], settings: Settings
) -> list[tuple[Labels, Figure]]:
    """The share by sensitive value, each with the holders of that value as its denominator."""

    def of_value(value: int, public: list[str], settings: Settings) -> list[tuple[Labels, Figure]]:
        held = asked.selected.values is None or value in asked.selected.values
        counted = replace(asked.selected, values=(value,) if held else ())
        base = replace(asked.base, values=(value,))
        return share_rows(answerer, replace(asked, selected=counted, among=base), public, settings)

    return by_sensitive_value(answerer, asked.base.values, by, settings, of_value)


def by_sensitive_value(
    answerer: Answerer,
    chosen: Sequence[int] | None,
    by: Sequence[str],
    settings: Settings,
    of_value: Callable[[int, list[str], Settings], list[tuple[Labels, Figure]]],
) -> list[tuple[Labels, Figure]]:
    """The rows of each sensitive value (of those that are chosen), with it among the labels."""
    schema = answerer.cells.schema
    sensitive, values = schema.sensitive.name, range(schema.domain_size)
    several = list(values) if chosen is None else list(chosen)
    settings = settings.times(len(several))
    rows = []
    for value in several:
        for labels, figure in of_value(value, [one for one in by if one != sensitive], settings):
            full = {**labels, sensitive: schema.domain[value]}
            rows.append(({one: full[one] for one in by}, figure))
    return rows


def _key(labels: Labels, names: Sequence[str]) -> tuple[Value, ...]:
    return tuple(labels[name] for name in names)


def of_known(count: Estimate, among: Estimate, asked: Question, settings: Settings) -> Figure:
    """The numerator and its limits over a known denominator."""
    records = among.count
    if records == 0:
        return empty_figure(asked, settings)
    about = among.remarks if count.exact else ()
    remarks = tuple(dict.fromkeys((*count.remarks, *about)))
    return replace(
        empty_figure(asked, settings),
        value=count.count / records,
        low=count.low / max(among.high, count.low),
        high=min(count.high / among.low, 1.0) if among.low > 0 else 1.0,
        standard_error=count.standard_error / records,
        exact=count.exact and among.exact,
        estimator=count.estimator,
        records=records,
        groups=among.groups,
        trials=among.trials,
        remarks=remarks,
        from_margins=count.from_margins,
    )


def empty_figure(asked: Question, settings: Settings) -> Figure:
    """The answer about no record at all."""
    return Figure(
        asked.text, asked.kind, asked.name, None, None, None, settings.confidence, None, False,
        "none", 0, 0, 0.0, (NO_RECORDS,),
    )  # fmt: skip


def _of_estimated(
    answerer: Answerer,
    asked: Question,
    public: list[str],
    above: list[tuple[Labels, Estimate]],
    below: dict[tuple[Value, ...], Estimate],
    settings: Settings,
) -> list[tuple[Labels, Figure]]:
    """Shares of which both the numerator and the denominator are estimated."""
    found = cut_into_pieces(answerer, [asked.selected, asked.base], public, settings)
    labels = answerer.labels(public, found.keys)
    shares = pieces_shares(found, settings)
    counted = {_key(one, public): estimate for one, estimate in above}
    rows = []
    for i, one in enumerate(labels):
        key = _key(one, public)
        top, bottom = counted.get(key, _ZERO), below.get(key, _ZERO)
        rows.append((one, ratio_figure(top, bottom, shares[i], asked, settings)))
    order = {key: i for i, key in enumerate(below)}
    return sorted(rows, key=lambda row: order.get(_key(row[0], public), len(order)))


class ShareLimits(NamedTuple):
    """The limits of a share, and the covariance of the two counts that it is the ratio of."""

    low: float
    high: float
    covariance: Floats


def pieces_shares(found: Pieces, settings: Settings) -> list[ShareLimits]:
    """The share of the first selection in the second one, row by row."""
    z = settings.z
    members = found.members
    low, high = ratio_limits(members[0], members[1], found.parts, z, (0.0, 1.0))
    covariances = members @ found.parts.covariance @ members.T
    return [ShareLimits(*one) for one in zip(low.tolist(), high.tolist(), covariances, strict=True)]


def ratio_figure(
    top: Estimate, bottom: Estimate, limits: ShareLimits, asked: Question, settings: Settings
) -> Figure:
    """A share with an estimated denominator, from both counts and its limits."""
    if bottom.high == 0:
        return empty_figure(asked, settings)
    z = settings.z
    low, high, covariance = limits
    if top.cut_groups or bottom.cut_groups:
        # Nothing is known about how the two go together, so the limits of both are used up.
        low = min(low, top.low / bottom.high)
        high = max(high, min(top.high / bottom.low, 1.0) if bottom.low > 0 else 1.0)
    counted = dict.fromkeys((*top.remarks, *bottom.remarks))
    remarks = tuple(remark for remark in counted if remark not in IMPOSSIBLE)
    value = error = None
    if bottom.count > z * np.sqrt(covariance[1, 1]):
        value = top.count / bottom.count
        remarks = (*(impossible(value, 0.0, 1.0) or impossible(value, low, high)), *remarks)
        slope = np.array([1.0, -value])
        error = float(np.sqrt(max(slope @ covariance @ slope, 0.0)) / bottom.count)
    else:
        remarks = (*remarks, UNSURE)
    return replace(
        empty_figure(asked, settings),
        value=value,
        low=low,
        high=high,
        standard_error=error,
        estimator=settings.estimator,
        records=bottom.count,
        groups=bottom.groups,
        trials=bottom.trials,
        remarks=remarks,
        from_margins=min(top.from_margins, bottom.from_margins),
    )

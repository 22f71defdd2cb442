"""Shares: how many of some records satisfy a condition, with an interval.

If the records it is among are chosen by public columns, their number is known, and the limits are
those of the count. Otherwise a share is x / (x + y), with y the other records that it is among, and
its limits are combined from those of the two counts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from reconpriv.answers.answerer import Answerer
from reconpriv.answers.figure import IMPOSSIBLE, SHARE, Figure, impossible
from reconpriv.ask.selections import Selected, both, public_part
from reconpriv.columns.schema import Value
from reconpriv.errors import InputError
from reconpriv.estimate.counts import Estimate, Settings
from reconpriv.estimate.pieces import Pieces, cut_into_pieces
from reconpriv.theory.arrays import Floats
from reconpriv.theory.estimation.combined_limits import ratio_limits

NO_RECORDS = "no record is in this selection, so there is nothing to describe"
UNSURE = "the denominator may be zero, so the share is undefined"
_ZERO = Estimate("", 0.0, 0.0, 0.0, 0.95, 0.0, True, "exact", 0, 0, 0.0)

Labels = dict[str, Value]


@dataclass(frozen=True)
class ShareOf:
    """A share: the records ``counted``, all of which are ``among`` others."""

    counted: Selected
    among: Selected

    @property
    def text(self) -> str:
        """In words."""
        if self.among.text == self.counted.text:  # among those with the same public values
            return f"share of {self.counted.text}"
        return f"share of {self.counted.text} among {self.among.text}"

    @property
    def known(self) -> bool:
        """Whether the number of records that it is among is known exactly."""
        return self.among.values is None


def asked_share(counted: Selected, among: Selected | None) -> ShareOf:
    """A share among the records of a condition, or among those with the same public values."""
    if among is not None:
        return ShareOf(both(counted, among), among)
    if counted.values is None:
        raise InputError(
            "A share needs a condition on the sensitive column, or the records that it is among.",
            hint='For example release.share("sex = \'Female\'", among="age < 30").',
        )
    return ShareOf(counted, public_part(counted))


def check_unbiased(settings: Settings, what: str) -> None:
    """Refuse an estimator that has no covariances."""
    if settings.counts is not None or settings.model:
        raise InputError(
            f"{what} is made of unbiased counts; the estimator {settings.estimator!r} gives none.",
            hint="Use the estimator 'mle' or 'records'.",
        )


def share_rows(
    answerer: Answerer,
    asked: ShareOf,
    by: Sequence[str],
    settings: Settings,
    *,
    name: str = SHARE,
    simultaneous: bool = False,
) -> list[tuple[Labels, Figure]]:
    """A share for every combination of the given attributes that occurs among the records.

    With the sensitive attribute among them, each value has its share among the records that agree
    on the others.
    """
    if settings.model:
        check_unbiased(settings, "A share")
    sensitive = answerer.cells.schema.sensitive.name
    public = [one for one in by if one != sensitive]
    below = {_key(labels, public): one for labels, one in
             answerer.table(asked.among, public, settings, simultaneous=simultaneous)}  # fmt: skip
    if sensitive in by and not asked.known:
        raise InputError(
            f"Shares by {sensitive!r} need records that are chosen by public columns.",
            hint="Leave the sensitive column out of GROUP BY or out of the condition.",
        )
    above = answerer.table(asked.counted, list(by), settings, simultaneous=simultaneous)
    if asked.known:
        if list(by) == public and len(above) < len(below):  # where nobody can be counted, it is 0
            found = {_key(labels, public): one for labels, one in above}
            above = [(dict(zip(public, key, strict=True)), found.get(key, _ZERO)) for key in below]
        return [
            (labels, of_known(one, below[_key(labels, public)], asked, settings, name))
            for labels, one in above
        ]
    check_unbiased(settings, "A share among the holders of a sensitive value")
    if simultaneous:
        settings = replace(settings, intervals=settings.intervals * max(len(below), 1))
    return _of_estimated(answerer, asked, public, above, below, settings, name)


def shares_within(
    answerer: Answerer,
    asked: ShareOf,
    by: Sequence[str],
    settings: Settings,
    *,
    name: str = SHARE,
    simultaneous: bool = False,
) -> list[tuple[Labels, Figure]]:
    """The same, but by the sensitive attribute each share is among the holders of that value."""
    if answerer.cells.schema.sensitive.name not in by:
        return share_rows(answerer, asked, by, settings, name=name, simultaneous=simultaneous)

    def of_value(value: int, public: list[str], settings: Settings) -> list[tuple[Labels, Figure]]:
        held = asked.counted.values is None or value in asked.counted.values
        inner = ShareOf(
            replace(asked.counted, values=(value,) if held else ()),
            replace(asked.among, values=(value,)),
        )
        return share_rows(answerer, inner, public, settings, name=name, simultaneous=simultaneous)

    return by_sensitive_value(
        answerer, asked.among.values, by, settings, of_value, simultaneous=simultaneous
    )


def by_sensitive_value(
    answerer: Answerer,
    chosen: Sequence[int] | None,
    by: Sequence[str],
    settings: Settings,
    of_value: Callable[[int, list[str], Settings], list[tuple[Labels, Figure]]],
    *,
    simultaneous: bool,
) -> list[tuple[Labels, Figure]]:
    """The rows of each sensitive value (of those that are chosen), with it among the labels."""
    schema = answerer.cells.schema
    sensitive, values = schema.sensitive.name, range(schema.domain_size)
    several = list(values) if chosen is None else list(chosen)
    if simultaneous:
        settings = replace(settings, intervals=max(len(several), 1))
    rows = []
    for value in several:
        for labels, figure in of_value(value, [one for one in by if one != sensitive], settings):
            full = {**labels, sensitive: schema.domain[value]}
            rows.append(({one: full[one] for one in by}, figure))
    return rows


def _key(labels: Labels, names: Sequence[str]) -> tuple[Value, ...]:
    return tuple(labels[name] for name in names)


def of_known(
    count: Estimate, among: Estimate, asked: ShareOf, settings: Settings, name: str
) -> Figure:
    """The count and its limits over the number of records."""
    records = among.count
    if records == 0:
        return empty_figure(asked.text, SHARE, name, settings.confidence)
    about = among.remarks if count.exact else ()
    remarks = tuple(dict.fromkeys((*count.remarks, *about)))
    return replace(
        empty_figure(asked.text, SHARE, name, settings.confidence),
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


def empty_figure(query: str, kind: str, name: str, confidence: float) -> Figure:
    """What is said about no record at all."""
    return Figure(
        query, kind, name, None, None, None, confidence, None, False, "none", 0, 0, 0.0,
        (NO_RECORDS,),
    )  # fmt: skip


def _of_estimated(
    answerer: Answerer,
    asked: ShareOf,
    public: list[str],
    above: list[tuple[Labels, Estimate]],
    below: dict[tuple[Value, ...], Estimate],
    settings: Settings,
    name: str,
) -> list[tuple[Labels, Figure]]:
    """Ratios of two estimated counts."""
    found = cut_into_pieces(answerer, [asked.counted, asked.among], public, settings)
    labels = answerer.labels(public, found.keys)
    shares = pieces_shares(found, settings)
    counted = {_key(one, public): estimate for one, estimate in above}
    rows = []
    for i, one in enumerate(labels):
        key = _key(one, public)
        top, bottom = counted.get(key, _ZERO), below.get(key, _ZERO)
        rows.append((one, ratio_figure(top, bottom, shares[i], asked, settings, name)))
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
    top: Estimate, bottom: Estimate, limits: ShareLimits, asked: ShareOf,
    settings: Settings, name: str,
) -> Figure:  # fmt: skip
    """A share of an estimated number of records, from both counts and its limits."""
    if bottom.high == 0:
        return empty_figure(asked.text, SHARE, name, settings.confidence)
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
        empty_figure(asked.text, SHARE, name, settings.confidence),
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

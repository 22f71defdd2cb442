"""The shares of a cross table: each count among the records that agree with it on some columns.

If no sensitive value chooses those records, the denominator is known, and the limits are those of
the numerator. Otherwise both are estimated: see :mod:`reconpriv.estimate.shares`.
"""

from __future__ import annotations

from collections.abc import Sequence

from reconpriv.answers.answerer import Answerer
from reconpriv.answers.figure import SHARE, Figure
from reconpriv.ask.question import Question
from reconpriv.ask.selections import Selected, both, describe
from reconpriv.estimate.counts import Estimate, Settings
from reconpriv.estimate.pieces import cut_each
from reconpriv.estimate.shares import (
    UNSURE,
    Labels,
    ShareLimits,
    check_unbiased,
    empty_figure,
    of_known,
    pieces_shares,
    ratio_figure,
)

Counted = tuple[Labels, Estimate]


def table_shares(
    answerer: Answerer,
    selected: Selected,
    counts: Sequence[Counted],
    among: Sequence[str],
    settings: Settings,
) -> list[Figure]:
    """The share of each count among the records that have the same values of ``among``.

    A total, which has no value of some columns, is among those that agree on the others.
    """
    found: list[Figure | None] = [None] * len(counts)
    parts: dict[tuple[str, ...], list[int]] = {}
    for place, (labels, _) in enumerate(counts):
        parts.setdefault(tuple(name for name in among if name in labels), []).append(place)
    for names, places in parts.items():
        below = {_key(labels, names): one for labels, one in
                 answerer.table(selected, list(names), settings)}  # fmt: skip
        columns: dict[tuple[object, ...], list[int]] = {}
        for place in places:
            columns.setdefault(_key(counts[place][0], names), []).append(place)
        for key, group in columns.items():
            shared = dict(zip(names, key, strict=True))
            some = [counts[place] for place in group]
            shares = _of_total(answerer, selected, some, shared, below[key], settings)
            for place, share in zip(group, shares, strict=True):
                found[place] = share
    return [one for one in found if one is not None]


def estimated_totals(answerer: Answerer, selected: Selected, among: Sequence[str]) -> bool:
    """True if the denominators of the shares are estimates."""
    return selected.values is not None or answerer.cells.schema.sensitive.name in among


def _key(labels: Labels, names: Sequence[str]) -> tuple[object, ...]:
    return tuple(labels[name] for name in names)


def _of_total(
    answerer: Answerer,
    selected: Selected,
    counts: Sequence[Counted],
    shared: Labels,
    total: Estimate,
    settings: Settings,
) -> list[Figure]:
    """The shares of counts among the records that all have the labels ``shared``."""
    base = both(selected, _at(answerer, shared))
    asked = [
        Question(SHARE, both(selected, _at(answerer, labels)), base, name=SHARE)
        for labels, _ in counts
    ]
    if base.values is not None:
        check_unbiased(settings, "A share among the holders of a sensitive value")
    limits = _limits(answerer, asked, settings)
    shares = []
    for place, (one, (labels, count)) in enumerate(zip(asked, counts, strict=True)):
        if labels.keys() == shared.keys():
            shares.append(_whole(one, count, settings))
        elif one.known:
            shares.append(of_known(count, total, one, settings))
        else:
            shares.append(ratio_figure(count, total, limits[place], one, settings))
    return shares


def _limits(
    answerer: Answerer, asked: Sequence[Question], settings: Settings
) -> dict[int, ShareLimits]:
    """The limits of every share with an estimated denominator, by its place."""
    places = [place for place, one in enumerate(asked) if not one.known]
    pairs = [(asked[place].selected, asked[place].base) for place in places]
    return {
        places[number]: one
        for numbers, found in cut_each(answerer, pairs, settings)
        for number, one in zip(numbers, pieces_shares(found, settings), strict=True)
    }


def _at(answerer: Answerer, labels: Labels) -> Selected:
    """The records with these values."""
    schema = answerer.cells.schema
    codes = {name: answerer.known[name].position(value) for name, value in labels.items()}
    values = codes.pop(schema.sensitive.name, None)
    places = {column.name: i for i, column in enumerate(schema.public)}
    return Selected(
        describe(None, labels), {places[name]: code for name, code in codes.items()}, (), (),
        None if values is None else (values,),
    )  # fmt: skip


def _whole(asked: Question, count: Estimate, settings: Settings) -> Figure:
    """The share of all records of the denominator: 1, unless there may be none."""
    if count.high <= 0:
        return empty_figure(asked, settings)
    remarks = (UNSURE,) if count.low <= 0 else ()
    return Figure(
        asked.text, SHARE, SHARE, 1.0, 1.0, 1.0, settings.confidence, 0.0, True, "exact",
        count.count, count.groups, count.trials, remarks,
    )  # fmt: skip

"""Apply declared bins and groups to the table behind an engine."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from reconpriv.columns.declared_bins import Bins, declared_bins
from reconpriv.columns.declared_groups import declared_groups, unused_note
from reconpriv.columns.kinds import DATES, NUMBERS
from reconpriv.columns.recoding import (
    LAST_YEAR,
    Recoding,
    as_number,
    bins_between,
    bins_of_periods,
    bins_of_width,
    plain,
    quantile_border,
)
from reconpriv.columns.schema import Column, Kind
from reconpriv.engines.base import Engine
from reconpriv.errors import InputError
from reconpriv.messages.remedies import AS_TEXT, Control, Remedy, either

_GROUPED = (Kind.STRING, Kind.INTEGER, Kind.BOOLEAN, Kind.DATE)


@dataclass(frozen=True)
class Declared:
    """What is declared for each column to be recoded: by the user, or by an earlier release."""

    by_column: Mapping[str, Bins | Recoding]

    @classmethod
    def of(cls, bins: Mapping[str, Any], groups: Mapping[str, Any]) -> Declared:
        """Check the declarations, which does not need the table."""
        for name, said in (("bin", bins), ("group", groups)):
            if not isinstance(said, Mapping):
                raise InputError(f"{name} is a dictionary with an entry for each column.")
        both = [name for name in bins if name in groups]
        if both:
            raise InputError(
                f"Column {both[0]!r} is both binned and grouped.", hint="Choose one of the two."
            )
        found: dict[str, Bins | Recoding] = {n: declared_bins(n, said) for n, said in bins.items()}
        return cls(found | {name: declared_groups(name, said) for name, said in groups.items()})

    def only(self, column: str) -> Declared:
        """What was declared for one column."""
        return Declared({column: self.by_column[column]})


def recode(
    engine: Engine, columns: Sequence[Column], declared: Declared, present: Column | None
) -> tuple[tuple[Recoding, ...], tuple[str, ...]]:
    """Recode the columns that were declared; also say what their publisher should look at.

    Records without ``present`` are left out later.
    """
    kept = {column.name: column for column in columns}
    for name in declared.by_column:
        if name not in kept:
            raise InputError(
                f"Column {name!r} is binned or grouped, but it is not published.",
                hint="Make it public or sensitive, or leave its bins or groups out.",
            )
    columns = [_as_number(engine, one, declared.by_column.get(one.name)) for one in columns]
    if present is not None:
        present = next(column for column in columns if column.name == present.name)
    # All are settled before any is applied: ``present`` may itself be recoded.
    settled, notes = [], []
    for column in columns:
        said = declared.by_column.get(column.name)
        if isinstance(said, Bins):
            settled.append((column, _bins(engine, column, said, present)))
        elif said is not None and said.binned:
            settled.append((column, _bins_of_before(engine, column, said, present)))
        elif said is not None:
            note = _check_groups(engine, column, said)
            settled.append((column, said))
            notes += [note] if note else []
    for column, recoding in settled:
        engine.recode(column, recoding)
    recodings = tuple(recoding for _, recoding in settled)
    return recodings, (*_quantile_notes(recodings), *notes)


def _as_number(engine: Engine, column: Column, said: Bins | Recoding | None) -> Column:
    """The column to be binned; texts such as 12.50 are not read as numbers unless they are binned.

    As values, 12.50 and 12.5 differ; their bin does not.
    """
    numeric = said.period is None if isinstance(said, Bins) else said is not None and said.numeric
    if not numeric or column.kind is not Kind.STRING:
        return column
    return engine.as_number(column) or column


def _quantile_notes(recodings: Sequence[Recoding]) -> tuple[str, ...]:
    """What borders taken from the data reveal."""
    return tuple(
        f"The borders of {one.column!r} are quantiles of the table. They are published with the"
        " release and say where its records lie; the promise about groups does not cover them."
        for one in recodings
        if one.declared == "quantiles"
    )


def _bins(engine: Engine, column: Column, said: Bins, present: Column | None) -> Recoding:
    name, whole = column.name, column.kind is Kind.INTEGER
    _check_kind(column, said)
    found = engine.value_range(column, present)
    if found is None:
        raise InputError(f"Column {name!r} has no value in any record, so it cannot be binned.")
    if said.period is not None:
        return _periods(column, said.period, *found)
    if not all(math.isfinite(value) for value in found):
        raise InputError(
            f"Column {name!r} holds infinite numbers, which fit no bin.",
            hint=Remedy("make them missing or leave those records out", Control.SQL),
        )
    lowest, highest = (as_number(value) for value in found)
    assert lowest is not None and highest is not None
    if said.top is not None and highest > said.top:
        raise InputError(
            f"Column {name!r} holds values above its top, {plain(said.top)}.",
            hint=either(
                Remedy("declare a higher top", Control.BIN),
                Remedy("leave those records out", Control.SQL),
            ),
        )
    if said.width is not None:
        return bins_of_width(name, said.width, lowest, highest, whole=whole)
    if said.quantiles is not None:
        values = engine.quantiles(column, said.quantiles, present)
        borders = list(dict.fromkeys(quantile_border(value) for value in values))
        borders = [one for one in borders if said.top is None or one < said.top]
        if len(borders) < 2:
            raise InputError(
                f"The quantiles of {name!r} coincide: most records have the same value.",
                hint="Give borders instead.",
            )
        return bins_between(name, borders, whole=whole, declared="quantiles", top=said.top)
    recoding = bins_between(name, said.borders, whole=whole, top=said.top)
    if lowest < recoding.borders[0]:
        raise InputError(
            f"Column {name!r} holds values below its first border, {plain(said.borders[0])}.",
            hint=Remedy("add a lower border", Control.BIN, (name, "LOWER", *_written(said))),
        )
    return recoding


def _bins_of_before(
    engine: Engine, column: Column, said: Recoding, present: Column | None
) -> Recoding:
    """The bins of an earlier release, if all values of the column lie in them."""
    found = engine.value_range(column, present)
    places = [said.place(value) for value in found or ()]
    (low, _), (_, high) = said.ends(0), said.ends(len(said.labels) - 1)
    inside = (
        place is not None and low <= place and (high is None or place <= high) for place in places
    )
    if column.kind not in (DATES if said.dated else NUMBERS) or not all(inside):
        raise InputError(f"Column {column.name!r} holds values outside the bins of the release.")
    return said


def _check_kind(column: Column, said: Bins) -> None:
    """Refuse bins of numbers for other values, and periods for what is no date."""
    what = f"Column {column.name!r} holds {column.kind.value} values"
    if column.kind not in NUMBERS and said.period is None:
        if column.kind in DATES:
            way = Remedy("bin it by month, quarter or year", Control.BIN)
            raise InputError(f"{what}, which have no bins of numbers.", hint=way)
        raise InputError(
            f"{what}; bins are for numbers and dates.",
            hint=either(
                Remedy("group its values", Control.GROUP),
                Remedy("turn it into a number", Control.SQL),
            ),
        )
    if column.kind not in DATES and said.period is not None:
        raise InputError(
            f"{what}; {said.period}s are for dates.",
            hint=Remedy("turn it into a date", Control.SQL)
            if column.kind is Kind.STRING
            else Remedy("give a width or borders", Control.BIN),
        )


def _periods(column: Column, period: str, first: Any, last: Any) -> Recoding:
    """Months, quarters or years from the first day to the last."""
    for day in (first, last):
        if not isinstance(day, dt.date) or day.year > LAST_YEAR:
            raise InputError(
                f"Column {column.name!r} holds dates beyond the years 1 to {LAST_YEAR}.",
                hint=Remedy("make them missing or leave those records out", Control.SQL),
            )
    return bins_of_periods(column.name, period, first, last, whole=column.kind is Kind.DATE)


def _written(said: Bins) -> list[str]:
    """Borders as they were declared."""
    top = [] if said.top is None else [f"top:{plain(said.top)}"]
    return [*map(plain, said.borders), *top]


def _check_groups(engine: Engine, column: Column, said: Recoding) -> str:
    """Refuse values that no group lists; a note if groups list values that do not occur."""
    name = column.name
    if column.kind not in _GROUPED:
        raise InputError(
            f"Column {name!r} holds {column.kind.value} values, which cannot be grouped one by"
            " one.",
            hint=Remedy("bin it", Control.BIN) if column.kind in NUMBERS else AS_TEXT,
        )
    if said.rest is not None:
        return unused_note(said, engine.texts(column, said, known=True))
    for text in engine.texts(column, said, known=False):
        shown = text if len(text) <= 40 else text[:39] + "…"
        raise InputError(
            f"Column {name!r} holds values that its groups do not list, for example {shown!r}.",
            hint="List every value, or add a line '*,GROUP' for all others.",
        )
    return ""

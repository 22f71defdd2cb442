"""Answering count queries on a cube: one at a time, grouped, or thousands in one pass."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TypeVar

import numpy as np

from reconpriv.ask.conditions import Selectable
from reconpriv.ask.ordering import sorted_for_display
from reconpriv.ask.selections import Selected
from reconpriv.cells.cube import Cube
from reconpriv.cells.sums import Sums
from reconpriv.columns.schema import Value
from reconpriv.errors import InputError
from reconpriv.estimate.counts import (
    WHOLE_BINS,
    Design,
    Estimate,
    Settings,
    estimated,
    known_count,
    no_count,
)
from reconpriv.estimate.linear import (
    CountQuestions,
    SelectionsIn,
    combined,
    selection_sums,
    share_of_margins,
    weighed_in,
)
from reconpriv.estimate.measurements import Measurements, records_alone
from reconpriv.estimate.model import Model, fit_model, lean_many, lean_table
from reconpriv.estimate.public_rows import PublicRows, key_positions, public_rows
from reconpriv.estimate.set_counts import SetCounts
from reconpriv.theory.arrays import Flags, Floats, Ints

T = TypeVar("T")

_SUMS_AT_ONCE = 1 << 21  # entries of the (selection x value) tables of one pass


@dataclass(frozen=True)
class Answerer(Selectable):
    """Cells with their design, and margins if there are any, ready to be queried."""

    design: Design
    measurements: Measurements = field(default=None)  # type: ignore[assignment]

    def __post_init__(self) -> None:
        """Without measurements by margins there are those of the groups alone."""
        object.__setattr__(self, "measurements", self.measurements or records_alone(self.design))

    def told(self, *, margins: bool = True) -> Measurements:
        """All measurements, or those of the groups alone."""
        return self.measurements if margins else records_alone(self.design)

    @property
    def cube(self) -> Cube:
        """All cells at once, for what cannot be answered part by part.

        They are those of the protection groups, if the release has any.
        """
        return self.micro_groups.whole

    @property
    def micro_groups(self) -> Cube:
        """All micro groups at once, by the values that they are published with."""
        if isinstance(self.cells, Cube):
            return self.cells
        raise InputError(
            "This release has too many groups to be held in memory at once.",
            hint="Use count queries instead.",
        )

    def count(self, selected: Selected, settings: Settings) -> Estimate:
        """One count."""
        return self.table(selected, (), settings)[0][1]

    def table(
        self, selected: Selected, by: Sequence[str], settings: Settings
    ) -> list[tuple[dict[str, Value], Estimate]]:
        """A count for every combination of the given attributes that occurs, sorted.

        None occurs if no sensitive value satisfies the condition, so that nobody does.
        """
        if by and selected.values == ():
            return []
        direct = replace(settings, estimator="mle") if settings.how.model else settings
        found = self._table(selected, by, direct)
        if settings.how.model:
            found = lean_table(self, selected, by, found)
        rows = self.for_display(found, by)
        return [(labels, _remarked(selected, estimate)) for labels, estimate in rows]

    def for_display(
        self, rows: list[tuple[dict[str, Value], T]], by: Sequence[str]
    ) -> list[tuple[dict[str, Value], T]]:
        """Sort rows by their labels: public values first; the sensitive ones vary fastest."""
        sensitive = self.cells.schema.sensitive.name
        ordered = sorted(by, key=lambda name: name == sensitive)
        places = {name: self._places(name, rows) for name in ordered}
        return sorted(rows, key=lambda row: [place[row[0][name]] for name, place in places.items()])

    def _places(self, name: str, rows: Sequence[tuple[dict[str, Value], T]]) -> dict[Value, int]:
        """The position of each value of an attribute among those in a table."""
        occurring = {labels[name] for labels, _ in rows}
        ordered = sorted_for_display(occurring, self.cells.schema.recoding(name))
        return {value: i for i, value in enumerate(ordered)}

    def _table(
        self, selected: Selected, by: Sequence[str], settings: Settings
    ) -> list[tuple[dict[str, Value], Estimate]]:
        domain, sensitive = self.cells.schema.domain, self.cells.schema.sensitive.name
        public = [name for name in by if name != sensitive]
        split = sensitive in by
        values = None if split else selected.values
        rows = self.rows_of(selected, public)
        labels = self.labels(public, rows.keys)
        chosen = range(len(domain)) if selected.values is None else selected.values
        settings = settings.together(len(labels) * (len(chosen) if split else 1))
        alone = self.sums(rows, values, margins=False)
        if not split and not values:  # a count over public attributes alone, or of nobody
            of = no_count if values is not None else partial(known_count, design=self.design)
            found = [of(selected.text, alone, i, settings) for i in range(rows.number)]
            return list(zip(labels, found, strict=True))
        texts = [selected.text] * rows.number
        told = self.told(margins=settings.how.margins)
        sums = weighed_in(told, alone, values, SelectionsIn(self.cells, rows.of))
        figures = self._figures(alone, sums, values, settings)
        if settings.how.counts is not None:
            whole = sums if split else self.sums(rows, None)
            figures["count"] = settings.how.counts(whole.observed, whole.records, self.design)
            if not split:
                figures["count"] = figures["count"][:, list(selected.values or ())].sum(axis=1)
        if not split:
            answers = self._estimates(texts, sums, range(rows.number), settings, figures)
            return list(zip(labels, answers, strict=True))
        by_value = []
        for value in chosen:
            of_value = {name: column[:, value] for name, column in figures.items()}
            answers = self._estimates(texts, sums, range(rows.number), settings, of_value)
            by_value.append(answers)
        return [
            ({name: ({**key, sensitive: domain[value]})[name] for name in by}, by_value[place][i])
            for i, key in enumerate(labels)
            if sums.groups[i]  # if no record has such public values, there is no row either
            for place, value in enumerate(chosen)
        ]

    def attributes(self, names: Sequence[str]) -> tuple[int, ...]:
        """The positions of public columns."""
        known = [column.name for column in self.cells.schema.public]
        return tuple(known.index(name) for name in names)

    def rows(self, inside: Callable[[Cube], Flags], by: Sequence[str]) -> PublicRows:
        """The combinations of public attributes that occur in some groups."""
        return public_rows(self.cells, self.attributes(by), inside)

    def rows_of(self, selected: Selected, by: Sequence[str]) -> PublicRows:
        """The combinations of public attributes that occur in a selection."""
        return self.rows(lambda part: self.mask(selected, part), by)

    def sums(
        self, rows: PublicRows, values: tuple[int, ...] | None, *, margins: bool = True
    ) -> Sums:
        """The sums of a set of values, or (None) of each value, in every row."""
        told = self.told(margins=margins)
        return selection_sums(told, self.cells, rows.of, rows.number, values)

    def every_sums(self, attributes: Sequence[int], *, margins: bool = True) -> Sums:
        """The sums by sensitive value of every combination of some public attributes."""
        public = [self.cells.schema.public[one].name for one in attributes]
        return self.sums_by_value(Selected("", {}, (), (), None), public, margins=margins)[1]

    def sums_by_value(
        self, selected: Selected, public: Sequence[str], *, margins: bool = True
    ) -> tuple[Ints, Sums]:
        """The combinations of public values in a selection, and their sums by sensitive value."""
        rows = self.rows_of(selected, public)
        return rows.keys, self.sums(rows, None, margins=margins)

    @cached_property
    def model(self) -> Model:
        """The main-effects model of the release."""
        return fit_model(self)

    def labels(self, public: list[str], keys: Ints) -> list[dict[str, Value]]:
        """The values of combinations of public attributes."""
        columns = [
            [self.known[name][code] for code in codes.tolist()]
            for name, codes in zip(public, keys, strict=True)
        ]
        return [
            {name: column[i] for name, column in zip(public, columns, strict=True)}
            for i in range(keys.shape[1])
        ]

    def _figures(
        self, alone: Sums, sums: Sums, values: tuple[int, ...] | None, settings: Settings
    ) -> dict[str, Floats]:
        """Unbiased counts of a set or of each value, their variances and limits.

        ``alone`` are the sums of the records alone.
        """
        found, records = (
            SetCounts(one, self.design)
            if values is None
            else SetCounts.of(one, values, self.design)
            for one in (sums, alone)
        )
        share = np.zeros(sums.observed.shape)
        if sums is not alone:
            share = share_of_margins(records.variances, found.variances)
        low, high = found.limits(settings.confidence, settings.intervals)
        return {
            "count": found.number,
            "variance": found.variances,
            "from_margins": share,
            "low": low,
            "high": high,
        }

    def _estimates(
        self,
        texts: Sequence[str],
        sums: Sums,
        rows: Sequence[int],
        settings: Settings,
        figures: dict[str, Floats],
    ) -> list[Estimate]:
        columns = zip(*(column.tolist() for column in figures.values()), strict=True)
        return [
            estimated(text, sums, i, settings, self.design, **dict(zip(figures, own, strict=True)))
            for text, i, own in zip(texts, rows, columns, strict=True)
        ]

    def count_many(self, queries: Sequence[Selected], settings: Settings) -> list[Estimate]:
        """Many counts; equalities on the same attributes share one pass over the cells."""
        if settings.how.model:
            direct = self.count_many(queries, replace(settings, estimator="mle"))
            return lean_many(self, queries, direct)
        answers: list[Estimate | None] = [None] * len(queries)
        shared: dict[tuple[int, ...], list[int]] = {}
        for i, query in enumerate(queries):
            single = query.values is None or len(query.values) == 1
            plain = query.plain and single and settings.how.counts is None
            if plain and self._packable(query.equalities):
                shared.setdefault(tuple(sorted(query.equalities)), []).append(i)
            else:
                answers[i] = self.count(query, settings)
        at_once = max(1, _SUMS_AT_ONCE // self.design.domain_size)
        for attributes, members in shared.items():
            for first in range(0, len(members), at_once):
                part = members[first : first + at_once]
                found = self._shared(attributes, [queries[i] for i in part], settings)
                for i, answer in zip(part, found, strict=True):
                    answers[i] = answer
        return [
            _remarked(query, answer)
            for query, answer in zip(queries, answers, strict=True)
            if answer is not None
        ]

    def _packable(self, equalities: dict[int, int]) -> bool:
        """True if the codes of these attributes fit into one 64-bit number."""
        return math.prod(len(self.cells.values[a]) + 1 for a in equalities) < 2**62

    def _shared(
        self, attributes: tuple[int, ...], queries: list[Selected], settings: Settings
    ) -> list[Estimate]:
        """One pass for all queries on the same attributes; keeps only what they ask for."""
        wanted = [tuple(q.equalities[a] for a in attributes) for q in queries]
        keys = sorted(set(wanted))
        selected = partial(key_positions, attributes=attributes, keys=keys)
        every = selection_sums(records_alone(self.design), self.cells, selected, len(keys), None)
        position = {key: i for i, key in enumerate(keys)}
        rows = np.array([position[key] for key in wanted])
        values = np.array([(query.values or (0,))[0] for query in queries])
        # Equal questions are one.
        pairs, where = np.unique(np.stack([rows, values]), axis=1, return_inverse=True)
        alone, place = every.at(*pairs), where.reshape(-1)
        held, asked = SelectionsIn(self.cells, selected), CountQuestions(*pairs)
        sums = combined(self.told(margins=settings.how.margins), alone, asked, held)
        figures = self._figures(alone, sums, None, settings)
        some = [i for i, query in enumerate(queries) if query.values is not None]
        of_some = {name: column[place[some]] for name, column in figures.items()}
        texts = [queries[i].text for i in some]
        found = iter(self._estimates(texts, sums, place[some].tolist(), settings, of_some))
        return [
            known_count(query.text, every, rows[i], settings, self.design)
            if query.values is None
            else next(found)
            for i, query in enumerate(queries)
        ]


def _remarked(selected: Selected, estimate: Estimate) -> Estimate:
    """The estimate with its remarks; it is not exact if it answers a different question."""
    new = tuple(remark for remark in selected.remarks if remark not in estimate.remarks)
    if not new:
        return estimate
    estimator = WHOLE_BINS if estimate.exact else estimate.estimator
    remarks = new + estimate.remarks
    return replace(estimate, exact=False, estimator=estimator, remarks=remarks)

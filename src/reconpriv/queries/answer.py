"""Answering count queries on a cube: one at a time, grouped, or thousands in one pass."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import cached_property, reduce
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from reconpriv.core.cube import Cells, Cube, Sums, combinations, join_sums
from reconpriv.core.protected_cube import ProtectedCube
from reconpriv.engines.local import Evaluator
from reconpriv.errors import InputError
from reconpriv.given_values import given_values
from reconpriv.queries import estimate as est
from reconpriv.queries.bins import answer_membership
from reconpriv.queries.comparisons import holds_codes, unknown_value
from reconpriv.queries.estimate import Design, Estimate
from reconpriv.queries.margins import Asked, PreparedMargins, Selection, share_of_margins
from reconpriv.queries.model import Model, fit_model, lean_many, lean_table
from reconpriv.queries.ordering import sorted_for_display
from reconpriv.queries.sql import (
    Condition,
    FigureQuery,
    parse_condition,
    parse_figures,
    unknown_column,
)
from reconpriv.queries.sql_text import written_condition
from reconpriv.queries.text_codes import matching_code
from reconpriv.queries.values import Values
from reconpriv.schema import Kind, Value, json_value, parse_value
from reconpriv.theory.arrays import Flags, Floats, Ints

T = TypeVar("T")

_NUMBERS = (int, float, Decimal)
NOWHERE = -1  # the code of a value that does not occur
_SUMS_AT_ONCE = 1 << 21  # entries of the (selection x value) tables of one pass


@dataclass(frozen=True)
class Selected:
    """A query with its condition resolved: which groups, and which sensitive values.

    Groups satisfy equalities (attribute: code), SQL conditions and memberships (attribute,
    codes). ``remarks`` say where the answer is not to the exact question: a bin taken whole.
    """

    text: str
    equalities: dict[int, int]
    conditions: tuple[str, ...]
    members: tuple[tuple[int, tuple[int, ...]], ...]
    values: tuple[int, ...] | None
    remarks: tuple[str, ...] = ()

    @property
    def plain(self) -> bool:
        """Whether the condition consists of equalities only."""
        return not self.conditions and not self.members


@dataclass(frozen=True)
class Settings:
    """How to estimate."""

    estimator: str = "mle"
    confidence: float = 0.95
    intervals: int = 1

    def __post_init__(self) -> None:
        """Check both."""
        est.ESTIMATORS.find(self.estimator)
        est.check_confidence(self.confidence)

    @property
    def counts(self) -> est.Counts | None:
        """The estimator's own counts; None for the unbiased one."""
        return est.ESTIMATORS[self.estimator].counts

    @property
    def model(self) -> bool:
        """Whether counts lean on a model."""
        return est.ESTIMATORS[self.estimator].model

    @property
    def margins(self) -> bool:
        """Whether margins are used if there are any."""
        return est.ESTIMATORS[self.estimator].margins


@dataclass(frozen=True)
class Answerer:
    """Cells with their design, and margins if there are any, ready to be queried."""

    cells: Cells
    design: Design
    margins: PreparedMargins | None = None
    _evaluators: dict[str, Evaluator] = field(default_factory=dict, repr=False)

    @property
    def cube(self) -> Cube:
        """All cells at once, for what cannot be answered part by part.

        They are those of the protection groups, if the release has any.
        """
        found = self.micro_groups
        return found.whole if isinstance(found, ProtectedCube) else found

    @property
    def micro_groups(self) -> Cube:
        """All micro groups at once, by the values that they are published with."""
        if isinstance(self.cells, Cube):
            return self.cells
        raise InputError(
            "This release has too many groups to be held in memory at once.",
            hint="Use count queries instead.",
        )

    @cached_property
    def known(self) -> dict[str, Values]:
        """The values of every column."""
        schema = self.cells.schema
        public = zip(schema.public, self.cells.values, strict=True)
        known = {column.name: Values(values) for column, values in public}
        return known | {schema.sensitive.name: Values(pa.array(schema.domain))}

    def select(
        self, where: str | None, equal: dict[str, Value], *, whole_bins: bool = False
    ) -> Selected:
        """Resolve a condition in SQL together with column = value pairs.

        A bin that the condition cuts is refused, or taken whole if ``whole_bins``.
        """
        equal = {name: given_values(value) for name, value in equal.items()}
        condition = Condition()
        if where is not None:
            condition = parse_condition(where, self.cells.schema, self.known, whole_bins=whole_bins)
        labels, remarks = self._recoded(equal, whole_bins)
        condition = replace(condition, remarks=condition.remarks + remarks)
        return self._settle(describe(where, equal), condition, labels)

    def parse(self, sql: str, *, whole_bins: bool = False) -> FigureQuery:
        """Parse a whole SELECT."""
        return parse_figures(sql, self.cells.schema, self.known, whole_bins=whole_bins)

    def settle(self, text: str, condition: Condition) -> Selected:
        """Resolve a parsed condition."""
        return self._settle(text, condition, {})

    def _recoded(
        self, equal: dict[str, Value], whole_bins: bool
    ) -> tuple[dict[str, Value], tuple[str, ...]]:
        """Turn values asked of recoded columns into labels, with remarks for the answer."""
        labels, remarks = dict(equal), []
        for name, wanted in equal.items():
            recoding = self.cells.schema.recoding(name)
            if recoding is None or wanted is None:
                continue
            values = wanted if isinstance(wanted, list) else [wanted]
            present = [value for value in values if value is not None]
            text = describe(None, {name: wanted})
            answered = answer_membership(recoding, present, text, whole_bins=whole_bins)
            kept = [label for label in answered.labels if label in self.known[name]]
            missing = [None] if len(present) < len(values) else []
            labels[name] = kept[0] if len(kept) == 1 and not missing else [*kept, *missing]
            remarks += [answered.remark] if answered.remark is not None else []
        return labels, tuple(remarks)

    def _settle(self, text: str, condition: Condition, equal: dict[str, Value]) -> Selected:
        schema = self.cells.schema
        sensitive = schema.sensitive.name
        members = np.ones(schema.domain_size, dtype=bool)
        for part in condition.sensitive:
            members &= self._evaluator("sensitive").mask(part)
        restricted = bool(condition.sensitive)
        codes: dict[int, int] = {}
        conditions = () if condition.equalities is not None else tuple(condition.public)
        for part in conditions:
            # Report a bad condition even if no part of the cells is read.
            self._check(part)
        several: list[tuple[int, tuple[int, ...]]] = []
        names = [column.name for column in schema.public]
        pairs = [*(condition.equalities or {}).items(), *equal.items()]
        for name, wanted in pairs:
            if name == sensitive:
                members &= self._members(name, wanted)
                restricted = True
            elif name not in names:
                raise unknown_column(name, [c.name for c in schema.columns])
            elif isinstance(wanted, list):
                chosen = [self._code(name, value) for value in wanted]
                several.append((names.index(name), tuple(c for c in chosen if c >= 0)))
            else:
                index, code = names.index(name), self._code(name, wanted)
                # Two different values asked of one column: no record has both.
                codes[index] = code if codes.get(index, code) == code else NOWHERE
        # Allowing any value is not a condition: the count is one over public attributes.
        whole = not restricted or bool(members.all())
        values = None if whole else tuple(np.flatnonzero(members).tolist())
        return Selected(text, codes, conditions, tuple(several), values, condition.remarks)

    def _members(self, name: str, wanted: Value) -> Flags:
        members = np.zeros(self.cells.schema.domain_size, dtype=bool)
        for value in wanted if isinstance(wanted, list) else [wanted]:
            code = self._code(name, value)
            if code < 0:
                raise unknown_value(name, value, self.known[name])
            members[code] = True
        return members

    def _code(self, name: str, value: Value) -> int:
        """The code of a value; -1 for a number or date that does not occur."""
        column = next(c for c in self.cells.schema.columns if c.name == name)
        parsed = parse_value(column, value)
        known = self.known[name]
        if column.kind is Kind.STRING and isinstance(value, _NUMBERS) and holds_codes(known):
            parsed = matching_code(name, Decimal(str(value)), known) or parsed
        code = known.position(parsed)
        if code < 0 and column.kind is Kind.STRING:
            raise unknown_value(name, value, self.known[name])
        return code

    def _evaluator(self, which: str) -> Evaluator:
        """Conditions on the sensitive values, or a check of conditions on the public ones."""
        if which not in self._evaluators:
            schema = self.cells.schema
            public = {
                column.name: values.slice(0, 0)
                for column, values in zip(schema.public, self.cells.values, strict=True)
            }
            sensitive = {schema.sensitive.name: pa.array(schema.domain)}
            rows = pa.table(public if which == "check" else sensitive)
            self._evaluators[which] = Evaluator(rows, written_condition)
        return self._evaluators[which]

    def _check(self, condition: str) -> None:
        self._evaluator("check").mask(condition)

    def mask(self, selected: Selected, part: Cube) -> Flags:
        """The groups of a selection, in one part of the cells."""
        inside = np.ones(part.groups, dtype=bool)
        for index, code in selected.equalities.items():
            inside &= part.codes[index] == code
        for index, codes in selected.members:
            inside &= np.isin(part.codes[index], codes)
        if selected.conditions:
            evaluator = self._public_evaluator(part)
            for condition in selected.conditions:
                inside &= evaluator.mask(condition)
        return inside

    def _public_evaluator(self, part: Cube) -> Evaluator:
        if part is not self.cells:
            return Evaluator(part.group_table(), written_condition)
        if "public" not in self._evaluators:
            self._evaluators["public"] = Evaluator(part.group_table(), written_condition)
        return self._evaluators["public"]

    def count(self, selected: Selected, settings: Settings) -> Estimate:
        """One count."""
        return self.table(selected, (), settings)[0][1]

    def table(
        self,
        selected: Selected,
        by: Sequence[str],
        settings: Settings,
        *,
        simultaneous: bool = False,
    ) -> list[tuple[dict[str, Value], Estimate]]:
        """A count for every combination of the given attributes that occurs, sorted.

        None occurs if no sensitive value satisfies the condition, so that nobody does.
        """
        if by and selected.values == ():
            return []
        direct = replace(settings, estimator="mle") if settings.model else settings
        found = self._table(selected, by, direct, simultaneous)
        if settings.model:
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
        self,
        selected: Selected,
        by: Sequence[str],
        settings: Settings,
        simultaneous: bool,
    ) -> list[tuple[dict[str, Value], Estimate]]:
        sensitive = self.cells.schema.sensitive.name
        public = [name for name in by if name != sensitive]
        split = sensitive in by
        keys, alone = self._sums(selected, public, None if split else selected.values)
        values = None if split else selected.values
        sums = self._combined(selected, public, keys, alone, values, settings)
        labels = self.labels(public, keys)
        domain = self.cells.schema.domain
        chosen = selected.values if selected.values is not None else tuple(range(len(domain)))
        cells = len(labels) * (len(chosen) if split else 1)
        if simultaneous:
            settings = Settings(settings.estimator, settings.confidence, max(cells, 1))
        if not split:
            answers = self._estimates_of_set(alone, sums, public, selected, settings)
            return list(zip(labels, answers, strict=True))
        counts, *spread = self._figures(alone, sums, 1, 1, settings)
        if settings.counts is not None:
            counts = settings.counts(sums.observed, sums.records, self.design)
        rows: list[tuple[dict[str, Value], Estimate]] = []
        for i, key in enumerate(labels):
            if not sums.groups[i]:  # no record has such public values, so there is no row either
                continue
            for value in chosen:
                label = {**key, sensitive: domain[value]}
                figures = counts[i, value], *(part[i, value] for part in spread)
                answer = self._estimate(selected.text, sums, i, settings, *figures)
                rows.append(({name: label[name] for name in by}, answer))
        return rows

    def sums_of_set(self, selected: Selected, settings: Settings) -> Sums:
        """The sums of the sensitive values of a selection, with margins if they are used."""
        keys, alone = self._sums(selected, [], selected.values)
        return self._combined(selected, [], keys, alone, selected.values, settings)

    def every_sums(self, attributes: Sequence[int], *, margins: bool = True) -> Sums:
        """The sums by sensitive value of every combination of some public attributes."""
        public = [self.cells.schema.public[one].name for one in attributes]
        return self.sums_by_value(Selected("", {}, (), (), None), public, margins=margins)[1]

    @cached_property
    def model(self) -> Model:
        """The main-effects model of the release."""
        return fit_model(self)

    def sums_by_value(
        self, selected: Selected, public: list[str], *, margins: bool = True
    ) -> tuple[Ints, Sums]:
        """The combinations of public values in a selection, and their sums by sensitive value.

        Margins are weighed in, if there are any, unless they are to be left aside.
        """
        keys, sums = self._sums(selected, public, None)
        if not margins:
            return keys, sums
        return keys, self._combined(selected, public, keys, sums, None, Settings())

    def _combined(
        self,
        selected: Selected,
        public: list[str],
        keys: Ints,
        sums: Sums,
        values: tuple[int, ...] | None,
        settings: Settings,
    ) -> Sums:
        """The sums with margins weighed in; for a set of values, or (None) for each value."""
        if self.margins is None or not settings.margins or not keys.shape[1] or values == ():
            return sums
        if values is None and sums.observed.ndim == 1:  # a count over public attributes alone
            return sums
        wanted = self._selection(selected, public, keys)
        if values is None:
            return self.margins.combine_by_value(self.cells, sums, wanted)
        rows = keys.shape[1]
        asked = Asked(np.arange(rows), np.zeros(rows, dtype=np.int64), values)
        return self.margins.combine(self.cells, sums, asked, wanted)

    def _selection(self, selected: Selected, public: list[str], keys: Ints) -> Selection:
        """Which combination each group of a part belongs to, or -1."""
        names = [column.name for column in self.cells.schema.public]
        attributes = [names.index(name) for name in public]
        if isinstance(self.cells, Cube):
            found = combinations(self.cells, attributes, self.mask(selected, self.cells))[1]
            return lambda _: found
        listed = [tuple(key) for key in keys.T.tolist()]

        def find(part: Cube) -> Ints:
            place = key_positions(part, tuple(attributes), listed)
            return np.where(self.mask(selected, part), place, -1)

        return find

    def rows_of_groups(self, selected: Selected, public: list[str]) -> Ints:
        """The combination of public values of every group in memory, as in ``sums_by_value``."""
        names = [column.name for column in self.cells.schema.public]
        attributes = [names.index(name) for name in public]
        cube = self.cube
        return combinations(cube, attributes, self.mask(selected, cube))[1]

    def _sums(
        self,
        selected: Selected,
        public: list[str],
        chosen: Sequence[int] | None,
    ) -> tuple[Ints, Sums]:
        """The combinations of public values in a selection (one column each), and their sums."""
        names = [column.name for column in self.cells.schema.public]
        attributes = [names.index(name) for name in public]
        found = []
        for part in self.cells.parts():
            keys, selection = combinations(part, attributes, self.mask(selected, part))
            found.append((keys, part.sums(selection, keys.shape[1], chosen)))
        return join_sums(found)

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

    def _estimates_of_set(
        self, alone: Sums, sums: Sums, public: list[str], selected: Selected, settings: Settings
    ) -> list[Estimate]:
        """Estimates for a set of sensitive values, or exact counts if there is no such set."""
        if selected.values is None:
            return [
                est.exact_estimate(
                    selected.text, sums, row, settings.confidence, settings.intervals, self.design
                )
                for row in range(sums.records.size)
            ]
        if not selected.values:
            return [
                est.no_count(selected.text, sums, row, settings.confidence)
                for row in range(sums.records.size)
            ]
        size = len(selected.values)
        rounded = est.runs(selected.values, self.design.domain_size)
        counts, *spread = self._figures(alone, sums, size, rounded, settings)
        if settings.counts is not None:
            _, split = self.sums_by_value(selected, public)
            whole = settings.counts(split.observed, split.records, self.design)
            counts = whole[:, list(selected.values)].sum(axis=1)
        return [
            self._estimate(selected.text, sums, row, settings, *figures)
            for row, figures in enumerate(zip(counts, *spread, strict=True))
        ]

    def _figures(
        self, alone: Sums, sums: Sums, size: int, rounded: int, settings: Settings
    ) -> tuple[Floats, Floats, Floats, Floats, Floats]:
        """Unbiased counts, their variances, what margins gave, and the ends of their intervals.

        ``alone`` are the sums of the records alone.
        """
        variances = est.count_variances(sums, size, rounded, self.design)
        share = np.zeros(variances.shape)
        if sums is not alone:
            share = share_of_margins(
                est.count_variances(alone, size, rounded, self.design), variances
            )
        return (
            est.mle_counts(sums, size, self.design),
            variances,
            share,
            *est.limits(
                sums,
                size,
                rounded,
                self.design,
                confidence=settings.confidence,
                intervals=settings.intervals,
            ),
        )

    def _estimate(
        self,
        text: str,
        sums: Sums,
        row: int,
        settings: Settings,
        count: float,
        variance: float,
        from_margins: float,
        low: float,
        high: float,
    ) -> Estimate:
        return est.estimated(
            text,
            sums,
            row,
            count=float(count),
            variance=float(variance),
            low=float(low),
            high=float(high),
            estimator=settings.estimator,
            confidence=settings.confidence,
            design=self.design,
            from_margins=float(from_margins),
        )

    def count_many(self, queries: Sequence[Selected], settings: Settings) -> list[Estimate]:
        """Many counts; equalities on the same attributes share one pass over the cells."""
        if settings.model:
            direct = self.count_many(queries, replace(settings, estimator="mle"))
            return lean_many(self, queries, direct)
        answers: list[Estimate | None] = [None] * len(queries)
        shared: dict[tuple[int, ...], list[int]] = {}
        for i, query in enumerate(queries):
            single = query.values is None or len(query.values) == 1
            plain = query.plain and single and settings.counts is None
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
        """Whether the codes of these attributes fit into one 64-bit number."""
        return math.prod(len(self.cells.values[a]) + 1 for a in equalities) < 2**62

    def _shared(
        self, attributes: tuple[int, ...], queries: list[Selected], settings: Settings
    ) -> list[Estimate]:
        """One pass for all queries on the same attributes; keeps only what they ask for."""
        wanted = [tuple(q.equalities[a] for a in attributes) for q in queries]
        keys = sorted(set(wanted))
        parts = [
            part.sums(key_positions(part, attributes, keys), len(keys), None)
            for part in self.cells.parts()
        ]
        sums = reduce(Sums.__add__, parts)
        position = {key: i for i, key in enumerate(keys)}
        rows = np.array([position[key] for key in wanted])
        values = np.array([(query.values or (0,))[0] for query in queries])
        alone = sums.at(rows, values)
        own = alone
        if self.margins is not None and settings.margins:
            own = self._combined_at(attributes, keys, rows, values, alone)
        figures = self._figures(alone, own, 1, 1, settings)
        answers = []
        for i, query in enumerate(queries):
            if query.values is None:
                answers.append(
                    est.exact_estimate(
                        query.text, sums, rows[i], settings.confidence, 1, self.design
                    )
                )
            else:
                spread = (part[i] for part in figures)
                answers.append(self._estimate(query.text, own, i, settings, *spread))
        return answers

    def _combined_at(
        self,
        attributes: tuple[int, ...],
        keys: list[tuple[int, ...]],
        rows: Ints,
        values: Ints,
        alone: Sums,
    ) -> Sums:
        """The sums of single values of combinations, with margins; equal questions are one."""
        assert self.margins is not None
        pairs, first, where = np.unique(
            np.stack([rows, values]), axis=1, return_index=True, return_inverse=True
        )
        found = self.margins.combine(
            self.cells,
            Sums(*(column[first] for column in alone.columns())),
            Asked(pairs[0], pairs[1]),
            lambda part: key_positions(part, attributes, keys),
        )
        return Sums(*(column[where.reshape(-1)] for column in found.columns()))


def _remarked(selected: Selected, estimate: Estimate) -> Estimate:
    """The estimate with its remarks; it is not exact if it answers a different question."""
    new = tuple(remark for remark in selected.remarks if remark not in estimate.remarks)
    if not new:
        return estimate
    estimator = est.WHOLE_BINS if estimate.exact else estimate.estimator
    remarks = new + estimate.remarks
    return replace(estimate, exact=False, estimator=estimator, remarks=remarks)


def key_positions(cube: Cube, attributes: tuple[int, ...], keys: list[tuple[int, ...]]) -> Ints:
    """The position of each group's combination of codes among the sorted keys, or -1."""
    if not attributes:
        return np.zeros(cube.groups, dtype=np.int64)
    packed = np.zeros(cube.groups, dtype=np.int64)
    asked = np.zeros(len(keys), dtype=np.int64)
    for i, attribute in enumerate(attributes):
        base = len(cube.values[attribute]) + 1
        packed = packed * base + cube.codes[attribute] + 1
        asked = asked * base + np.array([key[i] for key in keys]) + 1
    place = np.clip(np.searchsorted(asked, packed), 0, len(keys) - 1)
    return np.where(asked[place] == packed, place, -1)


def describe(where: str | None, equal: dict[str, Value]) -> str:
    """A condition in words."""
    parts = [where] if where else []
    for name, value in equal.items():
        if isinstance(value, list):
            parts.append(f"{name} IN ({', '.join(repr(json_value(v)) for v in value)})")
        else:
            shown = json_value(value)
            parts.append(f"{name} IS NULL" if shown is None else f"{name} = {shown!r}")
    return " AND ".join(parts) if parts else "all records"


def check_equalities(equal: dict[str, Any]) -> dict[str, Value]:
    """A query given as a dictionary."""
    if not isinstance(equal, dict) or not all(isinstance(name, str) for name in equal):
        raise InputError(
            f"A query is SQL text or a dictionary of column: value; got a {type(equal).__name__}."
        )
    return equal

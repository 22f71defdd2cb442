"""Answering count queries on a cube: one at a time, grouped, or thousands in one pass."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property, reduce
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from reconpriv.engines.predicates import Evaluator
from reconpriv.errors import InputError
from reconpriv.queries import estimate as est
from reconpriv.queries.comparisons import holds_codes, unknown_value
from reconpriv.queries.cube import Cells, Cube, Sums, combinations, join_sums, sum_selections
from reconpriv.queries.estimate import Design, Estimate
from reconpriv.queries.grouping import Shape
from reconpriv.queries.ordering import sorted_for_display
from reconpriv.queries.sql import (
    Condition,
    CountQuery,
    parse_condition,
    parse_query,
    unknown_column,
)
from reconpriv.queries.text_codes import matching_code
from reconpriv.queries.values import Values
from reconpriv.schema import Kind, Value, json_value, parse_value

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

_SEVERAL = (list, tuple, set, frozenset)  # any of them stands for IN
_NUMBERS = (int, float, Decimal)
_NOWHERE = -1  # the code of a value that does not occur
_SUMS_AT_ONCE = 1 << 21  # entries of the (selection x value) tables of one pass


@dataclass(frozen=True)
class Selected:
    """A query with its condition settled: which groups, and which sensitive values.

    Groups satisfy equalities (attribute: code), conditions in SQL, and memberships (attribute,
    codes).
    """

    text: str
    equalities: dict[int, int]
    conditions: tuple[str, ...]
    members: tuple[tuple[int, tuple[int, ...]], ...]
    values: tuple[int, ...] | None

    @property
    def plain(self) -> bool:
        """Whether equalities are all there is."""
        return not self.conditions and not self.members


@dataclass(frozen=True)
class Settings:
    """How to estimate."""

    estimator: str = "mle"
    confidence: float = 0.95
    intervals: int = 1

    def __post_init__(self) -> None:
        """Check both."""
        est.check_estimator(self.estimator)
        est.check_confidence(self.confidence)


@dataclass(frozen=True)
class Answerer:
    """Cells with their design, ready for questions."""

    cells: Cells
    design: Design
    _evaluators: dict[str, Evaluator] = field(default_factory=dict, repr=False)

    @property
    def cube(self) -> Cube:
        """All cells at once, for what cannot be said part by part."""
        if isinstance(self.cells, Cube):
            return self.cells
        raise InputError(
            "This release has too many groups to be held in memory at once.",
            hint="Ask it count queries instead.",
        )

    @cached_property
    def known(self) -> dict[str, Values]:
        """The values of every column."""
        schema = self.cells.schema
        public = zip(schema.public, self.cells.values, strict=True)
        known = {column.name: Values(values) for column, values in public}
        return known | {schema.sensitive.name: Values(pa.array(schema.domain))}

    def select(self, where: str | None, equal: dict[str, Value]) -> Selected:
        """Settle a condition in SQL together with column = value pairs."""
        condition = (
            Condition() if where is None else parse_condition(where, self.cells.schema, self.known)
        )
        return self._settle(describe(where, equal), condition, equal)

    def parse(self, sql: str) -> tuple[Selected, Shape]:
        """Settle a whole SELECT; the second part is what it groups by, and which rows it shows."""
        query: CountQuery = parse_query(sql, self.cells.schema, self.known)
        return self._settle(query.text, query.condition, {}), query.shape

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
            # Also where no part of the cells is looked at, a bad condition must be noticed.
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
            elif isinstance(wanted, _SEVERAL):
                chosen = [self._code(name, value) for value in wanted]
                several.append((names.index(name), tuple(c for c in chosen if c >= 0)))
            else:
                index, code = names.index(name), self._code(name, wanted)
                # Two different values asked of one column: no record has both.
                codes[index] = code if codes.get(index, code) == code else _NOWHERE
        # Any value at all is no condition: such a count is one over public attributes.
        whole = not restricted or bool(members.all())
        values = None if whole else tuple(np.flatnonzero(members).tolist())
        return Selected(text, codes, conditions, tuple(several), values)

    def _members(self, name: str, wanted: Value) -> Flags:
        several = isinstance(wanted, _SEVERAL)
        members = np.zeros(self.cells.schema.domain_size, dtype=bool)
        for value in wanted if several else [wanted]:
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
            self._evaluators[which] = Evaluator(pa.table(public if which == "check" else sensitive))
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
            return Evaluator(part.group_table())
        if "public" not in self._evaluators:
            self._evaluators["public"] = Evaluator(part.group_table())
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
        """A count for every combination of the given attributes that occurs, in sorted order."""
        sensitive = self.cells.schema.sensitive.name
        public = [name for name in by if name != sensitive]
        split = sensitive in by
        keys, sums = self._sums(selected, public, None if split else selected.values)
        labels = self._labels(public, keys)
        domain = self.cells.schema.domain
        chosen = selected.values if selected.values is not None else tuple(range(len(domain)))
        cells = len(labels) * (len(chosen) if split else 1)
        if simultaneous:
            settings = Settings(settings.estimator, settings.confidence, max(cells, 1))
        if not split:
            answers = self._estimates_of_set(sums, public, selected, settings)
            return self._for_display(list(zip(labels, answers, strict=True)))
        counts = est.mle_counts(sums, 1, self.design)
        variances = est.count_variances(sums, 1, 1, self.design)
        shown = counts
        if settings.estimator == "constrained":
            shown = est.constrained_counts(sums.observed, sums.records, self.design)
        rows: list[tuple[dict[str, Value], Estimate]] = []
        for i, key in enumerate(labels):
            for value in chosen:
                label = {**key, sensitive: domain[value]}
                figures = shown[i, value], counts[i, value], variances[i, value]
                answer = self._estimate(selected.text, sums, i, settings, *figures)
                rows.append(({name: label[name] for name in by}, answer))
        return self._for_display(rows)

    def _for_display(
        self, rows: list[tuple[dict[str, Value], Estimate]]
    ) -> list[tuple[dict[str, Value], Estimate]]:
        """Rows by their labels, text codes by their numbers; other columns are sorted already."""
        sensitive = self.cells.schema.sensitive.name
        # Public values come first, as always; the sensitive ones vary fastest.
        names = sorted(rows[0][0] if rows else [], key=lambda name: name == sensitive)
        if not any(self.known[name].numeric_text for name in names):
            return rows
        ranks = {
            name: {v: i for i, v in enumerate(sorted_for_display(key[name] for key, _ in rows))}
            for name in names
        }
        return sorted(rows, key=lambda row: [ranks[name][row[0][name]] for name in names])

    def sums_by_value(self, selected: Selected, public: list[str]) -> tuple[Ints, Sums]:
        """The combinations of public values in a selection, and their sums by sensitive value."""
        return self._sums(selected, public, None)

    def _sums(
        self,
        selected: Selected,
        public: list[str],
        chosen: Sequence[int] | None,
    ) -> tuple[Ints, Sums]:
        """The combinations of public values in a selection (a column each), and their sums."""
        names = [column.name for column in self.cells.schema.public]
        attributes = [names.index(name) for name in public]
        found = []
        for part in self.cells.parts():
            keys, selection = combinations(part, attributes, self.mask(selected, part))
            found.append((keys, sum_selections(part, selection, keys.shape[1], chosen)))
        return join_sums(found)

    def _labels(self, public: list[str], keys: Ints) -> list[dict[str, Value]]:
        columns = [
            [self.known[name][code] for code in codes.tolist()]
            for name, codes in zip(public, keys, strict=True)
        ]
        return [
            {name: column[i] for name, column in zip(public, columns, strict=True)}
            for i in range(keys.shape[1])
        ]

    def _estimates_of_set(
        self, sums: Sums, public: list[str], selected: Selected, settings: Settings
    ) -> list[Estimate]:
        """Estimates of a set of sensitive values, or exact counts where there is no such set."""
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
        counts = est.mle_counts(sums, size, self.design)
        variances = est.count_variances(sums, size, rounded, self.design)
        shown = counts
        if settings.estimator == "constrained":
            _, split = self._sums(selected, public, None)
            whole = est.constrained_counts(split.observed, split.records, self.design)
            shown = whole[:, list(selected.values)].sum(axis=1)
        return [
            self._estimate(selected.text, sums, row, settings, *figures)
            for row, figures in enumerate(zip(shown, counts, variances, strict=True))
        ]

    def _estimate(
        self,
        text: str,
        sums: Sums,
        row: int,
        settings: Settings,
        shown: float,
        unbiased: float,
        variance: float,
    ) -> Estimate:
        return est.estimated(
            text,
            sums,
            row,
            count=float(shown),
            unbiased=float(unbiased),
            variance=float(variance),
            estimator=settings.estimator,
            confidence=settings.confidence,
            intervals=settings.intervals,
            design=self.design,
        )

    def count_many(self, queries: Sequence[Selected], settings: Settings) -> list[Estimate]:
        """Many counts: those of equalities on the same attributes share one pass over the cells."""
        answers: list[Estimate | None] = [None] * len(queries)
        shared: dict[tuple[int, ...], list[int]] = {}
        for i, query in enumerate(queries):
            single = query.values is None or len(query.values) == 1
            plain = query.plain and single and settings.estimator == "mle"
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
        return [answer for answer in answers if answer is not None]

    def _packable(self, equalities: dict[int, int]) -> bool:
        """Whether the codes of these attributes fit into one 64-bit number."""
        return math.prod(len(self.cells.values[a]) + 1 for a in equalities) < 2**62

    def _shared(
        self, attributes: tuple[int, ...], queries: list[Selected], settings: Settings
    ) -> list[Estimate]:
        """One pass for all queries on the same attributes: only combinations asked for are kept."""
        wanted = [tuple(q.equalities[a] for a in attributes) for q in queries]
        keys = sorted(set(wanted))
        parts = [
            sum_selections(part, key_positions(part, attributes, keys), len(keys), None)
            for part in self.cells.parts()
        ]
        sums = reduce(Sums.__add__, parts)
        position = {key: i for i, key in enumerate(keys)}
        counts = est.mle_counts(sums, 1, self.design)
        variances = est.count_variances(sums, 1, 1, self.design)
        answers = []
        for query, key in zip(queries, wanted, strict=True):
            row = position[key]
            if query.values is None:
                answers.append(
                    est.exact_estimate(query.text, sums, row, settings.confidence, 1, self.design)
                )
                continue
            count, variance = counts[row, query.values[0]], variances[row, query.values[0]]
            answers.append(self._estimate(query.text, sums, row, settings, count, count, variance))
        return answers


def key_positions(cube: Cube, attributes: tuple[int, ...], keys: list[tuple[int, ...]]) -> Ints:
    """For each group the position of its combination of codes among the sorted keys, or -1."""
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
        if isinstance(value, _SEVERAL):
            parts.append(f"{name} IN ({', '.join(repr(json_value(v)) for v in value)})")
        else:
            parts.append(f"{name} = {json_value(value)!r}")
    return " AND ".join(parts) if parts else "all records"


def check_equalities(equal: dict[str, Any]) -> dict[str, Value]:
    """A query given as a dictionary."""
    if not isinstance(equal, dict):
        raise InputError(
            f"A query is SQL text or a dictionary of column: value; got a {type(equal).__name__}."
        )
    return equal

"""Resolving conditions: which groups and which sensitive values satisfy them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property

import numpy as np
import pyarrow as pa

from reconpriv.ask.bins import answer_test
from reconpriv.ask.comparisons import holds_codes, unknown_column, unknown_value
from reconpriv.ask.selections import NOWHERE, Asked, Condition, Selected, check_equalities, describe
from reconpriv.ask.sql.text import written_condition
from reconpriv.ask.text_codes import matching_code
from reconpriv.ask.values import Values
from reconpriv.cells.cube import Cells, Cube
from reconpriv.columns.given_values import given_values
from reconpriv.columns.schema import Kind, Value, parse_value
from reconpriv.engines.local import Evaluator
from reconpriv.theory.arrays import Flags

_NUMBERS = (int, float, Decimal)


@dataclass(frozen=True)
class Selectable:
    """Cells from which records can be selected by conditions."""

    cells: Cells

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
            from reconpriv.ask.sql.parse import parse_condition  # noqa: PLC0415 - an extra

            condition = parse_condition(where, self.cells.schema, self.known, whole_bins=whole_bins)
        labels, remarks = self._recoded(equal, whole_bins)
        condition = replace(condition, remarks=condition.remarks + remarks)
        return self.resolve(describe(where, equal), condition, labels)

    def selected(self, asked: Asked, *, whole_bins: bool = False) -> Selected:
        """Resolve a condition in SQL, or a dictionary of column: value."""
        if asked is None or isinstance(asked, str):
            return self.select(asked, {}, whole_bins=whole_bins)
        return self.select(None, check_equalities(asked), whole_bins=whole_bins)

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
            answered = answer_test(recoding, "=", present, text, whole_bins=whole_bins)
            kept = [label for label in answered.labels if label in self.known[name]]
            missing = [None] if len(present) < len(values) else []
            labels[name] = kept[0] if len(kept) == 1 and not missing else [*kept, *missing]
            remarks += [answered.remark] if answered.remark is not None else []
        return labels, tuple(remarks)

    def resolve(
        self, text: str, condition: Condition, equal: Mapping[str, Value] | None = None
    ) -> Selected:
        """The groups and the sensitive values of a parsed condition and column = value pairs."""
        schema = self.cells.schema
        names = [column.name for column in schema.public]
        members = np.ones(schema.domain_size, dtype=bool)
        for part in condition.sensitive:
            members &= self._sensitive_values.mask(part)
        conditions = () if condition.equalities is not None else tuple(condition.public)
        for part in conditions:
            # Report a bad condition even if no part of the cells is read.
            self._no_groups.mask(part)
        codes: dict[int, int] = {}
        several: list[tuple[int, tuple[int, ...]]] = []
        for name, wanted in [*(condition.equalities or {}).items(), *(equal or {}).items()]:
            if name == schema.sensitive.name:
                members &= self._members(name, wanted)
            elif name not in names:
                raise unknown_column(name, [*names, schema.sensitive.name])
            elif isinstance(wanted, list):
                chosen = [self._code(name, value) for value in wanted]
                several.append((names.index(name), tuple(c for c in chosen if c >= 0)))
            else:
                index, code = names.index(name), self._code(name, wanted)
                # Two different values asked of one column: no record has both.
                codes[index] = code if codes.get(index, code) == code else NOWHERE
        # Allowing any value is not a condition: the count is one over public attributes.
        values = None if members.all() else tuple(np.flatnonzero(members).tolist())
        return Selected(text, codes, conditions, tuple(several), values, condition.remarks)

    def _members(self, name: str, wanted: Value) -> Flags:
        """Which sensitive values are wanted; each has to occur."""
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
            raise unknown_value(name, value, known)
        return code

    @cached_property
    def _sensitive_values(self) -> Evaluator:
        schema = self.cells.schema
        rows = pa.table({schema.sensitive.name: pa.array(schema.domain)})
        return Evaluator(rows, written_condition)

    @cached_property
    def _no_groups(self) -> Evaluator:
        """The public columns without a row: an evaluator that only checks a condition."""
        columns = zip(self.cells.schema.public, self.cells.values, strict=True)
        rows = pa.table({column.name: values.slice(0, 0) for column, values in columns})
        return Evaluator(rows, written_condition)

    @cached_property
    def _groups_in_memory(self) -> Evaluator:
        assert isinstance(self.cells, Cube)
        return Evaluator(self.cells.group_table(), written_condition)

    def mask(self, selected: Selected, part: Cube) -> Flags:
        """The groups of a selection, in one part of the cells."""
        inside = np.ones(part.groups, dtype=bool)
        for index, code in selected.equalities.items():
            inside &= part.codes[index] == code
        for index, codes in selected.members:
            inside &= np.isin(part.codes[index], codes)
        if selected.conditions:
            evaluator = (
                self._groups_in_memory
                if part is self.cells
                else Evaluator(part.group_table(), written_condition)
            )
            for condition in selected.conditions:
                inside &= evaluator.mask(condition)
        return inside

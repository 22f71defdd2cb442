"""A table behind an engine, and what is found out about it before anything is published."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from reconpriv.auditing.checks import Checks
from reconpriv.auditing.column_risk import ColumnRisk, identifier_note
from reconpriv.auditing.obstacles import refuse
from reconpriv.cells.cell_batch import CellBatch
from reconpriv.cells.randomness import Key
from reconpriv.columns.schema import Schema, Value
from reconpriv.engines.base import Engine, Progress, no_progress
from reconpriv.engines.grouped import GroupedTable
from reconpriv.errors import InputError, warn_caller
from reconpriv.messages.arguments import checked_methods
from reconpriv.messages.phrases import dropped_note
from reconpriv.messages.remedies import Advice, Control, Remedy
from reconpriv.policy.policy import Policy
from reconpriv.policy.presets import policy_for
from reconpriv.policy.protection import NO_COARSENING, Coarsening
from reconpriv.protect.group_by import GroupBy
from reconpriv.protect.row_choice import RowChoice
from reconpriv.release.labels import labels_of
from reconpriv.theory.arrays import Ints

if TYPE_CHECKING:
    from reconpriv.protect.margins.planned import MarginPlan

CHOSEN_NOTE = (
    "Which row of a person is kept depends on the key: these figures are those of a key that"
    " everybody knows."
)


@checked_methods
class OpenTable:
    """A table with roles for its columns, one row per person if need be, and what it rests on."""

    def __init__(
        self, engine: Engine, schema: Schema, *, dropped: int | None, notes: tuple[str, ...] = ()
    ) -> None:
        """Use :func:`read`; ``dropped`` records lack the sensitive value, None if none may."""
        self.engine = engine
        self.schema = schema
        self.labels = labels_of(schema, engine.labels)
        self.warnings = notes
        self.dropped = dropped or 0
        self.left_out: tuple[str, ...] = ()
        self.count_values: Callable[[str], tuple[int, int]] | None = None
        self.source: Any = None
        self._warned: set[str] = set()
        self._all_rows: tuple[Engine, Schema, bool] | None = None
        self._margin_plan: tuple[Policy, MarginPlan] | None = None
        self._coarsenings: dict[Policy, Coarsening] = {}
        self.published: set[Policy] = set()
        self.drop_missing = dropped is not None

    def batches(self, *, progress: Progress = no_progress) -> Iterator[CellBatch]:
        """The micro groups, whole, in canonical order."""
        return self.grouped(progress).batches()

    def groups(self, policy: Policy) -> GroupedTable:
        """The table by the groups that a policy makes a promise about: its protection groups.

        They are made as in the last release, if there was one, or with a key that everybody knows.
        """
        if policy not in self._coarsenings:
            found = self.grouped().protected(policy, Key.test())
            self._coarsenings[policy] = found.grouping.coarsening
        return self.grouped().coarsened(self._coarsenings[policy])

    def _published_as(self, policy: Policy, coarsening: Coarsening) -> None:
        """From now on, a policy makes its protection groups as they were published."""
        self.published.add(policy)
        if self._coarsenings.get(policy, NO_COARSENING) != coarsening:
            self._coarsenings[policy] = coarsening
            self._margin_plan = None

    @property
    def one_row_each(self) -> bool:
        """True if the table holds one row of each person."""
        return self._all_rows is not None

    def grouped(self, progress: Progress = no_progress) -> GroupedTable:
        """The table by its micro groups."""
        return GroupedTable(self.engine, GroupBy(self.schema, self.drop_missing), progress)

    def margin_plan(self, policy: Policy) -> MarginPlan:
        """The margins that a policy asks for, without noise; an empty plan if there are none."""
        policy = self.fitted(policy)
        if self._margin_plan is None or self._margin_plan[0] != policy:
            # Of protection groups, with the margins that any bound may have.
            wanted = policy.unprotected().publishable()
            self._margin_plan = policy, self.groups(policy).margins(wanted, None)
        return self._margin_plan[1]

    def fitted(self, policy: Policy | str | None = None) -> Policy:
        """A policy, that of a preset's name, or (None) the recommended one, fitted to this table.

        What is different in it because of the table is among the warnings.
        """
        found = policy_for(policy, self.schema)
        for note in found.notes:
            if note not in self.warnings:
                self.warnings += (note,)
                warn_caller(note)
        return found.policy

    def keep_one_row_each(self, key: Key | None = None) -> None:
        """From now on, the table holds one row of each person, chosen by the key.

        Without a key, the rows are those that a key known to everybody chooses; publishing chooses
        anew with its own.
        """
        if self.schema.person is None:
            raise InputError(
                "To keep one row per person, reconpriv must know who a row is about.",
                hint=Remedy("name that column", Control.PERSON),
            )
        if self._all_rows is None:
            obstacle, people = self.checks.people_obstacle(), self.checks.people
            if people is not None and people.unknown:
                refuse(obstacle)
            self._all_rows = self.engine, self.schema, self.drop_missing
        engine, schema, drop_missing = self._all_rows
        chosen = RowChoice(schema, Key.test() if key is None else key)
        before, self.engine = self.engine, engine.one_row_each(chosen, drop_missing=drop_missing)
        if before is not engine:
            before.close()
        self.warnings = tuple(note for note in self.warnings if note != CHOSEN_NOTE)
        self.warnings += (CHOSEN_NOTE,) if key is None else ()
        self.schema = replace(schema, records=self.engine.records())
        self.drop_missing = False
        self._coarsenings = {p: c for p, c in self._coarsenings.items() if p in self.published}
        self._margin_plan = None
        for found in ("checks", "truth", "sensitive_counts"):
            self.__dict__.pop(found, None)

    @property
    def _rows(self) -> int:
        """How many records there are before one row of each person is chosen."""
        return (self.schema if self._all_rows is None else self._all_rows[1]).records

    @property
    def notes(self) -> tuple[str, ...]:
        """What a publication says about the records that it leaves out, and may have to."""
        notes = dropped_note(self._rows, self.dropped)
        if self._all_rows is not None:
            kept = self.schema.records
            notes += (f"{kept:,} of {self._rows:,} rows are kept: one of each person.",)
        return notes + self.person_hint()

    def person_hint(self) -> tuple[str, ...]:
        """A column that was left out although it may say who a row is about."""
        return self._person_hint if self.schema.person is None else ()

    @cached_property
    def _person_hint(self) -> tuple[str, ...]:
        from reconpriv.proposals import person_by_name  # noqa: PLC0415

        name = person_by_name(self.left_out)
        if name is None:
            return ()
        values, records = (0, 0) if self.count_values is None else self.count_values(name)
        said = f"{name!r} is left out, so nothing checks that each row is one person."
        if 0 < values < records:
            said = (
                f"{name!r} is left out, with {values:,} values in {records:,} records. If these are"
                " people, not every row is a person of its own, and a vote over the rows of one"
                " undoes the randomisation."
            )
        name_it = Remedy("if it says who a row is about, name it", Control.PERSON, name)
        return (Advice(said, name_it),)

    @cached_property
    def checks(self) -> Checks:
        """What is found out about the table before it is published."""
        chosen = self._all_rows is not None
        return Checks(self.engine, self.schema, self.drop_missing, one_row_each=chosen)

    @cached_property
    def sensitive_counts(self) -> Ints:
        """How many records hold each value of the domain; whoever opened the table may know."""
        return self.in_domain(self.engine.value_counts(self.schema.sensitive))

    def in_domain(self, counts: Mapping[Value, int]) -> Ints:
        """Counts of sensitive values in the order of the domain."""
        return np.array([counts.get(value, 0) for value in self.schema.domain], dtype=np.int64)

    def warn_of(self, identifiers: Iterable[ColumnRisk]) -> None:
        """Warn of each nearly unique column once."""
        for column in identifiers:
            note = identifier_note(column, self.schema.records)
            if column.name not in self._warned:
                self._warned.add(column.name)
                self.warnings += (note,)
                warn_caller(note)

    def interrupt(self) -> None:
        """Stop what another thread is doing with this table; it gets a KeyboardInterrupt."""
        self.engine.interrupt()

    def close(self) -> None:
        """Close the engine's connection and remove its temporary files."""
        self.engine.close()
        if self._all_rows is not None:
            self._all_rows[0].close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        """The roles of the columns; nothing from the data."""
        public = ", ".join(column.name for column in self.schema.public)
        return (
            f"<reconpriv table: sensitive {self.schema.sensitive.name}"
            f" ({self.schema.domain_size} values), public {public or 'none'}>"
        )

"""A table with roles for its columns: what ``reconpriv.read`` returns.

What an audit does not need is imported by the methods that do: every command starts here.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

import pyarrow as pa

from reconpriv.core.audit import audit_part, join_parts
from reconpriv.core.audit_report import AuditReport
from reconpriv.core.cells import CellBatch
from reconpriv.core.checks import Checks
from reconpriv.core.column_risk import ColumnRisk, ExpectedErrors, column_risks
from reconpriv.core.columns_seen import ColumnsSeen, WithPairs
from reconpriv.core.cube import CellKeeper, Cube, collect
from reconpriv.core.identifiers import (
    distinct_values,
    identifier_note,
)
from reconpriv.core.joint_counts import CountPairs
from reconpriv.core.obstacles import Accepted, giveaway_obstacle
from reconpriv.core.protection import Settled
from reconpriv.core.randomness import Key, as_key
from reconpriv.core.row_choice import RowChoice
from reconpriv.core.single_records import K, check_k
from reconpriv.core.verdicts import verdict_table
from reconpriv.engines.base import Engine, Progress, Written, no_progress
from reconpriv.engines.choice import open_engine
from reconpriv.engines.local import LocalEngine
from reconpriv.errors import InputError, warn_caller
from reconpriv.messages.arguments import checked_methods
from reconpriv.messages.phrases import dropped_note
from reconpriv.messages.remedies import Advice, Control, Remedy
from reconpriv.policy import Policy
from reconpriv.presets import policy_for
from reconpriv.release.labels import labels_of
from reconpriv.schema import MAX_UNIQUE, Schema, Value, looks_like_identifier
from reconpriv.theory.bounds import Bound, TailBound
from reconpriv.tuning.columns import (
    CELLS_IN_MEMORY,
    column_effects,
    distinct_in,
    standard_workload,
)
from reconpriv.tuning.hints import hints_of
from reconpriv.tuning.tuner import Tuner
from reconpriv.writing.folder import is_uri

if TYPE_CHECKING:
    from reconpriv.core.margin_plan import MarginPlan
    from reconpriv.core.margins import Margins
    from reconpriv.queries.answer import Answerer
    from reconpriv.queries.workload import Workload
    from reconpriv.release.release import Release
    from reconpriv.tuning.report import TuneReport

T = TypeVar("T")
Watcher = Callable[[CellBatch], None]
"""Called with every batch of whole groups as it passes."""

CHOSEN_NOTE = (
    "Which row of a person is kept depends on the key: these figures are those of a key that"
    " everybody knows."
)
MERGED_NOTE = (
    "Which values are merged depends on the key: a release may merge others than this audit does."
)

# Leaving out each of more columns takes long; an audit does so only if it is asked to.
_COLUMNS_COMPARED = 24


def _merges(policy: Policy) -> bool:
    protection = policy.wanted_protection
    return protection is not None and protection.merges


@checked_methods
class Table:
    """A table behind an engine, with its schema settled and its input checked."""

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
        self._warned: set[str] = set()
        self._all_rows: tuple[Engine, Schema, bool] | None = None
        self._margin_plan: tuple[Policy, MarginPlan] | None = None
        self._pooled: dict[Policy, Settled] = {}
        self._drop_missing = dropped is not None

    def audit(
        self,
        policy: Policy | str | None = None,
        *,
        worst: int = 10,
        k: int = K,
        columns: bool | None = None,
        keep_identifier: Iterable[str] = (),
        keep_giveaway: Iterable[str] = (),
        max_unique: float = MAX_UNIQUE,
        progress: Progress = no_progress,
        watch: Sequence[Watcher] = (),
    ) -> AuditReport:
        """Test micro groups (Corollary 2), single records and columns against the policy.

        ``policy`` may be the name of a preset; without one it is the recommended policy.
        ``k``: records in groups of fewer than ``k`` are counted. ``columns`` says whether to
        compute what the audit would be without each public column; None leaves that out if the
        cells do not fit into memory. ``keep_identifier`` names nearly unique columns, and
        ``keep_giveaway`` columns that give the sensitive value away, that are kept on purpose; at
        most the share ``max_unique`` of the records may be unique on the public columns. Each
        function in ``watch`` sees every batch of groups, in the same single pass. If the policy
        asks for protection groups, these are the groups.
        """
        accepted = Accepted.of(self.schema, keep_identifier, keep_giveaway, max_unique)
        kept = accepted.identifiers
        policy = self.settled(policy)
        seen = ColumnsSeen.of(self.schema)
        if policy.protect is not None:
            report = self._audit_protected(policy, worst, k, columns, kept, progress, watch)
            seen.add(self._raw().as_batch())
            report = self._with_obstacles(report, accepted, seen)
            return replace(report, warnings=self.warnings + report.warnings, dropped=self.dropped)
        plan, no_margins = self._margins_or_note(policy)
        policy = policy if plan is not None else replace(policy, margins=None)
        work = partial(
            audit_part,
            schema=self.schema,
            policy=policy,
            worst=worst,
            k=check_k(k),
            counted=None if plan is None else plan.counted,
        )
        asked = columns is not None
        if not asked and len(self.schema.public) > _COLUMNS_COMPARED:
            columns = False
        cells = CellKeeper(self.schema.records if columns else CELLS_IN_MEMORY)
        few = columns is None and self.schema.records <= CELLS_IN_MEMORY
        here = bool(watch or columns or few)
        # An engine on several machines audits the groups where they are.
        groups = partial(
            self.engine.map_groups,
            self.schema,
            drop_missing=self._drop_missing,
            progress=progress,
        )
        if here:
            parts = [work(self._seen_by([*watch, cells.add, seen.add], progress))]
        else:
            found = groups(WithPairs(work, self.schema))
            parts = [part for part, _ in found]
            seen.joint.join(joint for _, joint in found)
        report = join_parts(parts, self.schema, policy, worst=worst, k=k, plan=plan)
        cube = None
        if columns or (columns is None and report.cells <= CELLS_IN_MEMORY):
            cube = cells.cube(self.schema) if here else collect(self.batches(), self.schema)
        progress("comparing columns", 0.0)
        report = self._with_columns(report, asked=asked, kept=kept, cube=cube)
        self.checks.identifiers = {c.name: c.distinct for c in report.columns if c.identifier}
        self._warn_of(c for c in report.columns if c.identifier)
        report = self._with_obstacles(report, accepted, seen, cube)
        return replace(report, warnings=self.warnings + no_margins, dropped=self.dropped)

    def _with_obstacles(
        self,
        report: AuditReport,
        accepted: Accepted,
        seen: ColumnsSeen,
        cube: Cube | None = None,
    ) -> AuditReport:
        """The report with what stands in the way of a publication, and what would help."""
        single = report.single_records
        without = {c.name: c.without.unique for c in report.columns if c.without is not None}
        harmless = report.policy.harmless
        if harmless not in self.checks.told:
            self.checks.told[harmless] = seen.giveaways(harmless, cube)
        told = self.checks.told[harmless]
        obstacles = (
            self.checks.people_obstacle(),
            giveaway_obstacle(told, report.sensitive, accepted),
            self.checks.unique_obstacle(single.unique, single.records, accepted, without),
        )
        return replace(
            report,
            giveaways=told,
            people=self.checks.people,
            obstacles=tuple(one for one in obstacles if one is not None),
            hints=(*self._person_hint(), *(() if cube is None else hints_of(report, cube))),
            left_out=self.left_out,
        )

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
            if obstacle is not None and people is not None and people.unknown:
                obstacle.refuse()
            self._all_rows = self.engine, self.schema, self._drop_missing
        engine, schema, drop_missing = self._all_rows
        chosen = RowChoice(schema, Key.test() if key is None else key)
        before, self.engine = self.engine, engine.one_row_each(chosen, drop_missing=drop_missing)
        if before is not engine:
            before.close()
        self.warnings = tuple(note for note in self.warnings if note != CHOSEN_NOTE)
        self.warnings += (CHOSEN_NOTE,) if key is None else ()
        self.schema = replace(schema, records=self.engine.records())
        self._drop_missing = False
        self._margin_plan = None
        for found in ("checks", "truth"):
            self.__dict__.pop(found, None)

    def _person_hint(self) -> tuple[str, ...]:
        """A column that was left out although it may say who a row is about."""
        from reconpriv.proposals import person_by_name  # noqa: PLC0415

        name = person_by_name(self.left_out)
        if name is None or self.schema.person is not None:
            return ()
        check = "if it says who a row is about, have it checked that each row is one person"
        return (Advice(f"{name!r} is left out.", Remedy(check, Control.PERSON, name)),)

    @property
    def _rows(self) -> int:
        """How many records there are before one row of each person is chosen."""
        return (self.schema if self._all_rows is None else self._all_rows[1]).records

    def _one_row_note(self) -> tuple[str, ...]:
        if self._all_rows is None:
            return ()
        kept = self.schema.records
        return (f"{kept:,} of {self._rows:,} rows are kept: one of each person.",)

    @cached_property
    def checks(self) -> Checks:
        """What is found out about the table before it is published."""
        chosen = self._all_rows is not None
        return Checks(self.engine, self.schema, self._drop_missing, one_row_each=chosen)

    def chosen(self, policy: Policy | str | None = None) -> Policy:
        """A policy, that of a preset's name, or (None) the recommended one for this table.

        What is different in it because of the table is among the warnings.
        """
        found = policy_for(policy, self.schema)
        for note in found.notes:
            if note not in self.warnings:
                self.warnings += (note,)
                warn_caller(note)
        return found.policy

    def settled(self, policy: Policy | str | None = None) -> Policy:
        """The policy with what it has to know about this table: harmless values, frequencies."""
        policy = self.chosen(policy)
        if not policy.needs_facts:
            return policy
        overall = None
        if policy.news_only:
            found = self.engine.value_counts(self.schema.sensitive)
            counts = [found.get(value, 0) for value in self.schema.domain]
            overall = tuple(count / sum(counts) for count in counts)
        return policy.on(self.schema, overall)

    def _audit_protected(
        self,
        policy: Policy,
        worst: int,
        k: int,
        columns: bool | None,
        kept: frozenset[str],
        progress: Progress,
        watch: Sequence[Watcher],
    ) -> AuditReport:
        """Test protection groups: their records share what is dealt, so no row stands alone."""
        from reconpriv.core.coarsening import coarsen  # noqa: PLC0415
        from reconpriv.tuning.protected import expected_error  # noqa: PLC0415

        raw = self._raw(progress)
        settled = self._protection(policy, raw)
        coarsened = coarsen(raw, settled)
        batch, schema = coarsened.cube.as_batch(), coarsened.cube.schema
        for see in watch:
            see(batch)
        part = audit_part([batch], schema, policy, worst, k)
        report = join_parts([part], schema, policy, worst=worst, k=k)
        errors = None
        wanted = columns or (columns is None and raw.count.size <= CELLS_IN_MEMORY)
        if wanted and policy.can_sample and (pool := standard_workload(raw)) is not None:
            error = expected_error(raw, coarsened, policy, pool)
            plain = replace(policy, sample_size="none", protect=None)
            errors = ExpectedErrors(error, error, Tuner.on(raw, pool).setting(plain).error)
        found = column_risks(distinct_in(raw), report.records, kept=kept)
        self.checks.identifiers = {c.name: c.distinct for c in found if c.identifier}
        self._warn_of(c for c in found if c.identifier)
        note = "What the audit would be without each column is not computed for protection groups."
        guessed = _merges(policy) and policy not in self._pooled
        return replace(
            report,
            columns=found,
            columns_note=note if columns is not False else "",
            errors=errors,
            protection=settled,
            warnings=settled.notes + ((MERGED_NOTE,) if guessed else ()),
        )

    def _raw(self, progress: Progress = no_progress) -> Cube:
        """All cells in memory, which protection groups are made from."""
        from reconpriv.release.publication import protection_cells  # noqa: PLC0415

        return protection_cells(
            self.engine, self.schema, drop_missing=self._drop_missing, progress=progress
        )

    def group_schema(self, policy: Policy) -> Schema:
        """The schema of the groups that a policy makes a promise about: its protection groups."""
        if policy.protect is None:
            return self.schema
        return self._protection(policy, self._raw()).coarse(self.schema)

    def _protection(self, policy: Policy, raw: Cube) -> Settled:
        """How protection groups are made: as in the last release, if there was one."""
        from reconpriv.core.coarsening import settle  # noqa: PLC0415

        protection = policy.wanted_protection
        assert protection is not None
        if policy in self._pooled:
            return self._pooled[policy]
        return settle(protection, raw, policy.retention, Key.test())

    def margin_plan(self, policy: Policy) -> MarginPlan | None:
        """The margins that a policy asks for, without noise; None if none can be published.

        They are counted in a pass of their own: what they tell about a group depends on all.
        """
        return self._margins_or_note(policy)[0]

    def _margins_or_note(self, policy: Policy) -> tuple[MarginPlan | None, tuple[str, ...]]:
        """The same, or why none can be published although the policy asks for them."""
        if policy.margins is None:
            return None, ()
        from reconpriv.core.margin_plan import count_margins, plan_margins  # noqa: PLC0415
        from reconpriv.core.margins import NO_ROW, NoMarginsError  # noqa: PLC0415

        policy = self.settled(policy).publishable()
        if self._margin_plan is None or self._margin_plan[0] != policy:
            try:
                totals = count_margins(self._map_groups, policy, self.schema)
            except NoMarginsError as none:
                return None, (none.what,)
            self._margin_plan = policy, plan_margins(totals, policy, self.schema, None)
        plan = self._margin_plan[1]
        return (plan, ()) if plan.published else (None, (NO_ROW,))

    def _map_groups(self, work: Callable[[Iterator[CellBatch]], T]) -> list[T]:
        return self.engine.map_groups(self.schema, work, drop_missing=self._drop_missing)

    def _seen_by(self, watch: Sequence[Watcher], progress: Progress) -> Iterator[CellBatch]:
        for batch in self.batches(progress=progress):
            for see in watch:
                see(batch)
            yield batch

    def _with_columns(
        self, report: AuditReport, *, asked: bool, kept: frozenset[str], cube: Cube | None
    ) -> AuditReport:
        if cube is not None:
            effects = column_effects(cube, report.policy, k=report.single_records.k)
            columns = column_risks(
                distinct_in(cube), report.records, kept=kept, without=effects.without
            )
            return replace(report, columns=columns, errors=effects.errors)
        distinct = distinct_values(self.engine, self.schema, drop_missing=self._drop_missing)
        note = "What the audit would be without each column was not computed"
        if not asked:
            ask = Remedy("ask for it", Control.COLUMNS, True)
            size = f"{report.cells:,} cells and {len(self.schema.public):,} public columns"
            note = Advice(f"{note} for a table of {size}.", ask)
        else:
            note += "."
        columns = column_risks(distinct, report.records, kept=kept)
        return replace(report, columns=columns, columns_note=note)

    def _warn_of(self, identifiers: Iterable[ColumnRisk]) -> None:
        """Warn of each nearly unique column once."""
        for column in identifiers:
            note = identifier_note(column, self.schema.records)
            if column.name not in self._warned:
                self._warned.add(column.name)
                self.warnings += (note,)
                warn_caller(note)

    def audit_groups(
        self, policy: Policy | str | None = None, *, exact: bool = False
    ) -> Iterator[pa.Table]:
        """Every group with its verdict, batch by batch; ``exact`` adds the exact tails."""
        return self._verdicts(self.settled(policy), exact)

    def _verdicts(self, policy: Policy, exact: bool) -> Iterator[pa.Table]:
        if policy.protect is not None:
            from reconpriv.core.coarsening import coarsen  # noqa: PLC0415

            raw = self._raw()
            groups = coarsen(raw, self._protection(policy, raw)).cube
            yield verdict_table(groups.as_batch(), groups.schema, policy, exact=exact)
            return
        plan = self.margin_plan(policy)
        counted = None if plan is None else plan.counted
        for batch in self.batches():
            yield verdict_table(batch, self.schema, policy, exact=exact, counted=counted)

    def batches(self, *, progress: Progress = no_progress) -> Iterator[CellBatch]:
        """The micro groups, whole, in canonical order."""
        return self.engine.batches(self.schema, drop_missing=self._drop_missing, progress=progress)

    def publish(
        self,
        policy: Policy | str | None = None,
        out: str | os.PathLike[str] | None = None,
        *,
        key: Key | bytes | str | os.PathLike[str] | None = None,
        file_format: str = "parquet",
        overwrite: bool = False,
        keep_identifier: Iterable[str] = (),
        keep_giveaway: Iterable[str] = (),
        max_unique: float = MAX_UNIQUE,
        second_sample: bool = False,
        role_change: bool = False,
        progress: Progress = no_progress,
        also: Callable[[Path], None] | None = None,
    ) -> Release:
        """Write a release folder; see docs/threat-model.md for what it promises.

        ``policy`` may be the name of a preset; without one it is the recommended policy, fitted to
        the table. ``out`` is the folder, which has to be named.

        A nearly unique public column is refused unless ``keep_identifier`` names it, one that gives
        the sensitive value away unless ``keep_giveaway`` does, people with several rows always, and
        a table in which more than the share ``max_unique`` of the records is unique.

        The ledger of a key file records what is published with it. Another p, domain or set of
        columns for the same table is refused unless ``second_sample`` is true, and a column that
        the key published in another role unless ``role_change`` is true.

        Without a key a fresh one is drawn and forgotten: a second publication would then be an
        independent sample, which an adversary could average with the first. ``also`` is called with
        the whole folder before it takes its place; if that fails, nothing is left.
        """
        from reconpriv.ledger.account import Account  # noqa: PLC0415
        from reconpriv.release.publication import (  # noqa: PLC0415
            check_format,
            no_folder,
            publication_notes,
            write_release,
        )
        from reconpriv.release.release import Release  # noqa: PLC0415

        if out is None:
            raise no_folder("publish(out='release')")
        check_format(file_format)
        secret = as_key(key)
        policy = self.chosen(policy)
        policy.check_sampling()
        policy = self.settled(policy)
        accepted = Accepted.of(self.schema, keep_identifier, keep_giveaway, max_unique)
        if self._all_rows is not None:
            self.keep_one_row_each(secret)
        self.checks.refuse(accepted)
        columns = ColumnsSeen.of(self.schema)
        if self.engine.name != LocalEngine.name:
            columns.joint.join(self._map_groups(CountPairs(self.schema)))

        def check(found: Written) -> None:
            self.checks.refuse_written(found, columns.giveaways(policy.harmless), accepted)

        account = Account.open(
            secret, self.schema, policy, second_sample=second_sample, role_change=role_change
        )
        secret = replace(secret, file=None)  # workers need not know where it lies
        manifest, written, plan = write_release(
            self.engine,
            self.schema,
            policy,
            secret,
            out,
            labels=self.labels,
            file_format=file_format,
            drop_missing=self._drop_missing,
            overwrite=overwrite,
            progress=progress,
            also=also,
            watch=columns.add,
            check=check,
            account=account,
        )
        self._warn_of(
            ColumnRisk(name, values, identifier=True, kept=True)
            for name, values in self.checks.identifiers.items()
        )
        if manifest.protect is not None:
            self._pooled[policy] = manifest.protect
        warned = self.warnings + publication_notes(policy, secret, written, plan, self.schema)
        warned += () if manifest.protect is None else manifest.protect.notes
        notes = dropped_note(self._rows, self.dropped) + self._one_row_note() + self._person_hint()
        if account is not None:
            warned, notes = warned + tuple(account.warnings), notes + tuple(account.notes)
        uri = str(out) if is_uri(out) else None
        return Release(Path(out), manifest, written, warned, uri=uri, notes=notes)

    def workload(
        self,
        *,
        queries: int = 5_000,
        min_selectivity: float = 0.001,
        max_attributes: int = 3,
        seed: int = 0,
    ) -> Workload:
        """The paper's pool of random count queries on this table, with their true answers."""
        from reconpriv.queries.workload import make_workload  # noqa: PLC0415

        return make_workload(
            collect(self.batches(), self.schema),
            queries=queries,
            min_selectivity=min_selectivity,
            max_attributes=max_attributes,
            seed=seed,
        )

    def count(self, where: str | None = None, *, whole_bins: bool = False, **equal: Value) -> int:
        """The true number of records that satisfy a condition: for the publisher alone.

        The condition is written as for :meth:`reconpriv.release.release.Release.count`.
        """
        from reconpriv.queries.answer import Settings  # noqa: PLC0415

        selected = self.truth.select(where, equal, whole_bins=whole_bins)
        return round(self.truth.count(selected, Settings()).count)

    @cached_property
    def truth(self) -> Answerer:
        """The original table, ready for the questions that a release is asked.

        Its answers are the truth: for the publisher alone.
        """
        from reconpriv.queries.answer import Answerer  # noqa: PLC0415
        from reconpriv.queries.estimate import Design  # noqa: PLC0415

        # With p = 1 every trial keeps its value, so an estimate is the count itself.
        design = Design(1.0, self.schema.domain_size, "none")
        return Answerer(collect(self.batches(), self.schema), design)

    def with_records(self, records: pa.Table) -> Table:
        """The same schema and labels over other records, which are recoded and name nobody."""
        other = Table(open_engine(records), replace(self.schema, person=None), dropped=None)
        other.labels = self.labels
        return other

    def interrupt(self) -> None:
        """Stop what another thread is doing with this table; it gets a KeyboardInterrupt."""
        self.engine.interrupt()

    def tuner(
        self, *, queries: int = 5_000, seed: int = 0, progress: Progress = no_progress
    ) -> Tuner:
        """One pass over the cells; then ``tuner.setting(policy)`` takes about a millisecond."""
        batches = self.batches(progress=progress)
        found = Tuner.of(batches, self.schema, queries=queries, seed=seed)
        if looks_like_identifier(found.batch.groups, self.schema.records):
            self._warn_of(
                ColumnRisk(name, values, identifier=True)
                for name, values in self.checks.identifiers.items()
            )
        return found

    def tune(
        self,
        *,
        retentions: Iterable[float] | None = None,
        epsilons: Iterable[float] | None = None,
        deltas: Iterable[float] | None = None,
        sample_sizes: Iterable[str] | str | None = None,
        exposed_above: Iterable[float] | None = None,
        harmless: Iterable[Value] | None = None,
        news_only: bool | None = None,
        margins: Iterable[Margins | float | None] | None = None,
        bound: str | Bound | TailBound | None = None,
        max_error: float | None = None,
        rho1: float | None = None,
        rho2: float | None = None,
        min_group_error: float | None = None,
        max_reconstructed: float | None = None,
        max_pooled: float | None = None,
        current: Policy | str | None = None,
        weaker_records: bool = False,
        pooled: bool | None = None,
        queries: int = 5_000,
        seed: int = 0,
        progress: Progress = no_progress,
    ) -> TuneReport:
        """Try policies without publishing: their violations, trials, error and risk.

        ``max_error`` is the largest acceptable mean relative error of the workload, ``rho2`` the
        largest belief in a value after seeing it, if it was at most ``rho1`` (0.1) before, and
        ``min_group_error`` the smallest error that an adversary must make in every group.
        ``max_reconstructed`` is the largest share of people whose group's most exposed value may be
        estimated within ±50 % from the group's own records, ``max_pooled`` the same with the help
        of neighbouring groups. ``current`` is the policy in use, by default that of ``publish``
        for this table: without ``rho2``, no recommended setting protects single records less,
        unless ``weaker_records`` is true.

        ``exposed_above`` lists shares above which a value counts as exposed. ``harmless`` and
        ``news_only`` hold for all settings, the current policy included. ``bound`` is by default
        that of the current policy. ``margins`` lists the ε of margins to try, 0 or None for none;
        without it, those of the current policy. They spend a budget of their own.

        ``pooled`` says whether to measure what pooling tells under the settings that the report
        describes; None does so if that takes seconds.
        """
        from reconpriv.attacks.pooled_risk import pooled_share, quickly_pooled  # noqa: PLC0415
        from reconpriv.tuning.recommend import check_target  # noqa: PLC0415
        from reconpriv.tuning.report import Target  # noqa: PLC0415
        from reconpriv.tuning.sweep import sweep  # noqa: PLC0415

        target = Target(
            max_error,
            rho1,
            rho2,
            min_group_error,
            weaker_records,
            max_reconstructed=max_reconstructed,
            max_pooled=max_pooled,
        )
        check_target(target)
        fit = policy_for(current, self.schema)
        current = fit.policy
        if harmless is not None:
            current = replace(current, harmless=harmless)  # type: ignore[arg-type]
        if news_only is not None:
            current = replace(current, news_only=news_only)
        current = self.settled(current)
        tuner = self.tuner(queries=queries, seed=seed, progress=progress)
        if pooled is None:
            pooled = max_pooled is not None or quickly_pooled(tuner.cube)
        report = sweep(
            tuner,
            retentions=retentions,
            epsilons=epsilons,
            deltas=deltas,
            sample_sizes=sample_sizes,
            exposed_above=exposed_above,
            margins=margins,
            bound=bound,
            target=target,
            current=current,
            pooled=partial(pooled_share, tuner.cube, exposing=current) if pooled else None,
        )
        found = tuple(
            ColumnRisk(name, values, identifier=True)
            for name, values in self.checks.known_identifiers.items()
        )
        seen = ColumnsSeen.of(self.schema)
        seen.add(tuner.batch)
        told = seen.giveaways(current.harmless, tuner.cube)
        obstacles = (
            self.checks.people_obstacle(),
            giveaway_obstacle(told, self.schema.sensitive.name, Accepted()),
        )
        warned = tuple(one.sentence for one in obstacles if one is not None)
        report = replace(report, warnings=self.warnings + warned, identifiers=found)
        return report.noted(fit.notes)

    def report(
        self,
        policy: Policy | str | None = None,
        path: str | os.PathLike[str] | None = None,
        *,
        release: Release | None = None,
        source: str = "",
        overwrite: bool = False,
        k: int = K,
        progress: Progress = no_progress,
        **accepted: Any,
    ) -> None:
        """Write the publisher's report, one HTML file about the raw table: not for release.

        ``policy`` is as in :meth:`publish`; ``path`` has to be named.
        ``release`` is what was published with this policy, ``source`` a name to show for the table.
        ``accepted`` is what the steward accepts, as :meth:`audit` takes it: ``keep_identifier``, ….
        """
        from reconpriv.reports import internal  # noqa: PLC0415 - needs an extra

        if path is None:
            raise InputError(
                "There is no file to write the report to.",
                hint="Give one: report(path='report.html').",
            )
        out = None if release is None else release.path
        internal.check_internal(Path(path), overwrite=overwrite, out=out)
        found = internal.find(
            self,
            self.chosen(policy),
            release=release,
            source=source,
            k=k,
            progress=progress,
            **accepted,
        )
        internal.write_findings(found, Path(path), overwrite=overwrite)

    def close(self) -> None:
        """Close the engine's connection and remove its temporary files."""
        self.engine.close()
        if self._all_rows is not None:
            self._all_rows[0].close()

    def __enter__(self) -> Self:
        """Use the table in a with statement."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close on the way out."""
        self.close()

    def __repr__(self) -> str:
        """The roles of the columns; nothing from the data."""
        public = ", ".join(column.name for column in self.schema.public)
        return (
            f"<reconpriv table: sensitive {self.schema.sensitive.name}"
            f" ({self.schema.domain_size} values), public {public or 'none'}>"
        )

"""Auditing a table: its groups, single records and columns against a policy, in one pass."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial

from reconpriv.auditing.audit_groups import audit_part, join_parts
from reconpriv.auditing.audit_report import AuditReport
from reconpriv.auditing.classes import shares_of
from reconpriv.auditing.column_risk import column_risks
from reconpriv.auditing.giveaways import ColumnsSeen, with_pairs
from reconpriv.auditing.obstacles import Accepted, giveaway_obstacle
from reconpriv.cells.cell_batch import CellBatch
from reconpriv.cells.cube import CellKeeper, Cube, collect
from reconpriv.engines.base import Progress
from reconpriv.engines.grouped import GroupedTable
from reconpriv.messages.remedies import Advice, Control, Remedy
from reconpriv.policy.policy import Policy
from reconpriv.tables.opened import OpenTable
from reconpriv.tuning.columns import CELLS_IN_MEMORY, column_effects, distinct_in
from reconpriv.tuning.hints import hints_of

BatchWatcher = Callable[[CellBatch], None]
"""Called with every batch of whole groups as it passes."""


MERGED_NOTE = (
    "Which values are merged depends on the key: a release may merge others than this audit does."
)

# Leaving out each of more columns takes long; an audit does so only if it is asked to.
_COLUMNS_COMPARED = 24


def audit_table(
    table: OpenTable,
    policy: Policy,
    accepted: Accepted,
    *,
    worst: int,
    k: int,
    columns: bool | None,
    progress: Progress,
    watch: Sequence[BatchWatcher],
) -> AuditReport:
    """Test the groups that a policy makes a promise about, single records and columns."""
    kept = accepted.identifiers
    seen = ColumnsSeen(table.schema)
    groups = replace(table.groups(policy), progress=progress)
    schema = groups.group_schema
    plan = table.margin_plan(policy)
    policy = policy if plan.published else replace(policy, margins=None)
    work = partial(
        audit_part,
        schema=schema,
        policy=policy,
        worst=worst,
        k=k,
        counted=plan.counted,
        overall=shares_of(table.sensitive_counts),
    )
    asked = columns is not None
    if not asked and len(table.schema.public) > _COLUMNS_COMPARED:
        columns = False
    cells = CellKeeper(table.schema.records if columns else CELLS_IN_MEMORY)
    few = columns is None and table.schema.records <= CELLS_IN_MEMORY
    here = bool(watch or columns or few)
    # An engine on several machines audits the groups where they are.
    if here:
        parts = [work(_seen(groups.batches(), watch, [cells.add, seen.add]))]
    else:
        found = groups.map_groups(partial(with_pairs, work=work, schema=table.schema))
        parts = [part for part, _ in found]
        seen.joint.join(joint for _, joint in found)
    report = join_parts(parts, schema, policy, worst=worst, k=k, plan=plan)
    report = replace(report, protection=groups.grouping.coarsening)
    cube = None
    if columns or (columns is None and report.cells <= CELLS_IN_MEMORY):
        cube = cells.cube(table.schema) if here else collect(table.batches(), table.schema)
    report = _with_columns(
        table, report, asked=asked, kept=kept, cube=cube, groups=groups, progress=progress
    )
    table.checks.identifiers = {c.name: c.distinct for c in report.columns if c.identifier}
    table.warn_of(c for c in report.columns if c.identifier)
    report = _with_obstacles(table, report, accepted, seen, cube)
    guessed = policy.wanted_protection.merges and policy not in table.published
    notes = groups.grouping.coarsening.notes + ((MERGED_NOTE,) if guessed else ()) + plan.notes
    return replace(report, warnings=table.warnings + notes, dropped=table.dropped)


def _with_obstacles(
    table: OpenTable,
    report: AuditReport,
    accepted: Accepted,
    seen: ColumnsSeen,
    cube: Cube | None = None,
) -> AuditReport:
    """The report with what stands in the way of a publication, and what would help."""
    single = report.single_records
    without = {c.name: c.without.unique for c in report.columns if c.without is not None}
    harmless = report.policy.harmless
    if harmless not in table.checks.told:
        table.checks.told[harmless] = seen.giveaways(harmless, cube)
    told = table.checks.told[harmless]
    obstacles = (
        table.checks.people_obstacle(),
        giveaway_obstacle(told, report.sensitive, accepted),
        table.checks.unique_obstacle(single.unique, single.records, accepted, without),
    )
    return replace(
        report,
        giveaways=told,
        people=table.checks.people,
        obstacles=tuple(one for one in obstacles if one is not None),
        hints=(*table.person_hint(), *(() if cube is None else hints_of(report, cube))),
        left_out=table.left_out,
    )


def _with_columns(
    table: OpenTable,
    report: AuditReport,
    *,
    asked: bool,
    kept: frozenset[str],
    cube: Cube | None,
    groups: GroupedTable,
    progress: Progress,
) -> AuditReport:
    if cube is not None:
        effects = column_effects(
            cube,
            report.policy,
            k=report.single_records.k,
            coarsening=groups.grouping.coarsening,
            progress=progress,
        )
        columns = column_risks(
            distinct_in(cube), report.records, kept=kept, without=effects.without
        )
        return replace(report, columns=columns, errors=effects.errors)
    distinct = table.checks.distinct(table.schema.public)
    note = "What the audit would be without each column was not computed"
    if not asked:
        ask = Remedy("ask for it", Control.COLUMNS, True)
        size = f"{report.cells:,} cells and {len(table.schema.public):,} public columns"
        note = Advice(f"{note} for a table of {size}.", ask)
    else:
        note += "."
    columns = column_risks(distinct, report.records, kept=kept)
    return replace(report, columns=columns, columns_note=note)


def _seen(
    batches: Iterable[CellBatch], watch: Sequence[BatchWatcher], keep: Sequence[BatchWatcher]
) -> Iterator[CellBatch]:
    """Batches as they pass; ``watch`` sees protection groups, ``keep`` micro groups."""
    for batch in batches:
        for see in watch:
            see(batch.whole)
        for see in keep:
            see(batch)
        yield batch

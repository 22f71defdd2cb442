"""The publisher's report: everything an audit, a publication and the attack lab know. Internal."""

from __future__ import annotations

import platform
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reconpriv._version import __version__
from reconpriv.attacks.result import AttackResult
from reconpriv.auditing.audit_report import AuditReport
from reconpriv.auditing.classes import EquivalenceClasses
from reconpriv.auditing.column_risk import identifier_note
from reconpriv.auditing.single_records import K
from reconpriv.cells.cell_batch import CellBatch
from reconpriv.cells.cube import CellKeeper
from reconpriv.columns.schema import Schema
from reconpriv.engines.base import Progress, no_progress
from reconpriv.extras import library_versions
from reconpriv.messages.numbers import percent
from reconpriv.messages.phrases import kept_words
from reconpriv.messages.remedies import plain_words, worded
from reconpriv.policy.policy import Policy
from reconpriv.protect.margins.planned import NO_MARGIN_PLAN, MarginPlan
from reconpriv.reports import changes, lab
from reconpriv.reports.groups import GroupTally, group_sections, worst_section
from reconpriv.reports.page import Section, page
from reconpriv.reports.risk_sections import frontier_section, margins_sections, promise_section
from reconpriv.show.charts.drawing import browser_scripts
from reconpriv.show.document import Card, Cards, Facts, Headline, Paragraph
from reconpriv.show.results.record import classes_grid
from reconpriv.theory.perturbation import PRIOR, local_privacy_level, posterior_limit
from reconpriv.tuning.columns import CELLS_IN_MEMORY
from reconpriv.writing.file import check_beside, whole_file

if TYPE_CHECKING:
    from reconpriv.release.release import Release
    from reconpriv.table import Table

TAILS = 200  # groups whose tails the report draws
_WHAT, _HINT = "the internal report", "Choose another name for the report."


@dataclass(frozen=True)
class Findings:
    """What the report is made from."""

    audit: AuditReport
    groups: GroupTally
    attacks: tuple[AttackResult, ...]
    attack_note: str
    tradeoff: lab.Tradeoff | None
    bins: tuple[changes.Change, ...]
    release: Release | None
    source: str


class Survey:
    """What the report needs from every group, gathered during an audit's pass over them."""

    def __init__(
        self, schema: Schema, policy: Policy, margins: MarginPlan = NO_MARGIN_PLAN
    ) -> None:
        """``policy`` is that of the audit, ``margins`` what the table plans for it.

        If it asks for protection groups, ``schema`` is theirs, and they are taken as they are.
        """
        policy = replace(policy.publishable(), protect=None)
        self._schema, self._policy = schema, policy
        self._tally = GroupTally(schema, policy, margins.counted)
        self._kept = CellKeeper(max(CELLS_IN_MEMORY, lab.LAB_RECORDS))

    def add(self, batch: CellBatch) -> None:
        """Take the next batch of whole groups."""
        self._tally.add(batch)
        self._kept.add(batch)

    def findings(
        self,
        audit: AuditReport,
        *,
        release: Release | None = None,
        source: str = "",
        progress: Progress = no_progress,
    ) -> Findings:
        """Once all groups have passed: attack the cells, make them coarser and run the workload."""
        policy, cube = self._policy, self._kept.cube(self._schema)
        attacks, note = lab.run(cube, policy, audit, progress)
        bins: tuple[changes.Change, ...] = ()
        if cube is not None and audit.cells <= CELLS_IN_MEMORY:
            bins = changes.bin_changes(cube, policy, k=audit.single_records.k)
        progress("comparing policies", 0.0)
        tradeoff = lab.tradeoff(cube, policy)
        progress("drawing the report", 0.0)
        return Findings(
            audit=replace(audit, policy=replace(policy, protect=audit.policy.protect)),
            groups=self._tally,
            attacks=attacks,
            attack_note=note,
            tradeoff=tradeoff,
            bins=bins,
            release=release,
            source=source,
        )


def check_internal(path: Path, *, overwrite: bool = False, out: Path | None = None) -> None:
    """Refuse a place that would be published with a release, and a name that cannot be written."""
    check_beside(path, out, _WHAT, overwrite=overwrite, hint=_HINT)
    browser_scripts()


def find(
    table: Table,
    policy: Policy,
    *,
    release: Release | None = None,
    source: str = "",
    k: int = K,
    progress: Progress = no_progress,
    **accepted: Any,
) -> Findings:
    """Audit a table and gather what the report shows, in one pass over its groups.

    ``accepted`` is what the steward accepts on purpose, as arguments of ``Table.audit``.
    """
    policy = table.fitted(policy)
    survey = Survey(table.groups(policy).group_schema, policy, table.margin_plan(policy))
    audit = table.audit(policy, worst=TAILS, k=k, **accepted, progress=progress, watch=[survey.add])
    return survey.findings(audit, release=release, source=source, progress=progress)


def write_findings(found: Findings, path: Path, *, overwrite: bool = False) -> None:
    """Write the report, readable by its owner alone."""
    html = internal_html(found)
    with whole_file(path, overwrite=overwrite, private=_WHAT, hint=_HINT) as work:
        work.write_text(html, encoding="utf-8")


def internal_html(found: Findings) -> str:
    """The report as one HTML file."""
    audit = found.audit
    lead = Paragraph(
        f"{kept_words(audit.records, audit.dropped, ' records')}. Sensitive column:"
        f" {audit.sensitive}"
        + (f", from {found.source}" if found.source else "")
        + ". This report describes the raw table: guard it as you guard the table.",
        "lead",
    )
    setting = None if found.tradeoff is None else found.tradeoff.setting
    sections = [
        promise_section(audit, setting),
        _summary(found),
        *([_classes(audit.classes)] if audit.classes else []),
        changes.section(audit, found.bins),
        *group_sections(audit, found.groups),
        *margins_sections(audit.margins),
        # Where no group has an exposed value, there is no risk to compare.
        *(
            [frontier_section(found.tradeoff)]
            if found.tradeoff and found.tradeoff.setting.exposes
            else []
        ),
        worst_section(audit),
        lab.section(found.attacks, found.attack_note),
        _parameters(found),
    ]
    return page("Publisher's report", [lead], sections, internal=True)


def _summary(found: Findings) -> Section:
    audit, groups = found.audit, found.groups
    setting = None if found.tradeoff is None else found.tradeoff.setting
    single = audit.single_records
    cards = [
        Card(f"{audit.group_word}s", f"{audit.groups:,}", f"{audit.records:,} records"),
        Card("violating groups", f"{audit.violating_groups:,}",
             f"{percent(audit.violating_records / audit.records)} of the records"),
        Card("unique records", f"{single.unique:,}",
             f"{percent(single.unique / audit.records)} of the records;"
             f" {single.below_k:,} in groups below {single.k}"),
        Card("a published value is true", percent(single.retention_probability),
             f"if {single.every_value} seemed equally likely before; at most"
             f" {percent(single.posterior)} if that value seemed {single.prior:.0%} likely"),
        Card("independent trials", f"{groups.trials:,}",
             f"{percent(groups.trials / audit.records)} of the records;"
             f" {groups.sampled_groups:,} groups sampled"),
    ]  # fmt: skip
    error = None if setting is None else setting.error
    if audit.protection:
        # Of questions that cut protection groups, too.
        error = None if audit.errors is None else audit.errors.published
    if error is not None:
        words = "of an analyst's count, mean relative"
        cards.append(Card("expected error", percent(error), words))
    if setting is not None and setting.exposes:
        words = "expected, in the most exposed group"
        cards.append(Card("adversary's error", percent(setting.group_error), words))
    parts = Facts(
        [
            ("Groups", audit.groups_sentence),
            ("Single records", single.sentence),
            ("Columns", worded(audit.columns_sentence, plain_words)),
            ("Margins", audit.margins.sentence),
        ]
    )
    said = {identifier_note(c, audit.records) for c in audit.columns if c.identifier}
    warnings = [
        Paragraph(f"Warning: {worded(n, plain_words)}") for n in audit.warnings if n not in said
    ]
    obstacles = [one.sentence for one in audit.obstacles[1:]]
    first, *more = (
        worded(text, plain_words) for text in (audit.sentences[0], *obstacles, *audit.hints)
    )
    verdict = Headline(first, audit.standing, tuple(more))
    return Section("summary", "Summary", [verdict, parts, Cards(cards), *warnings])


def _classes(classes: EquivalenceClasses) -> Section:
    """The figures of the record for the review board."""
    title = "For the review board"
    return Section("classes", title, [replace(classes_grid([("raw table", classes)]), title="")])


def _parameters(found: Findings) -> Section:
    audit, release = found.audit, found.release
    policy, m = audit.policy, audit.domain_size
    p = policy.retention
    rows = [
        ("retention p", f"{p:g}"),
        ("tolerance", f"{policy.tolerance:g}"),
        ("doubt", f"{policy.doubt:g}"),
        ("tail bound", policy.tail_bound.name),
        ("sampling rule", policy.sampling),
        ("unattainable groups", policy.unattainable),
        ("sensitive column", f"{audit.sensitive} ({m} values)"),
        ("public columns", ", ".join(audit.public) or "none"),
        ("pooled over", audit.protection.words),
        ("local differential privacy of one trial", f"ε = {local_privacy_level(p, m):.3g}"),
        (
            "ρ1-ρ2 privacy of one trial",
            f"a belief of at most {PRIOR:g} becomes at most {posterior_limit(p, m, PRIOR):.3g}",
        ),
    ]
    if release is not None:
        rows += _release_rows(release)
    rows += [
        ("made", datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")),
        ("reconpriv", __version__),
        ("Python", platform.python_version()),
        *library_versions("numpy", "scipy", "pyarrow", "duckdb", "altair").items(),
    ]
    return Section("parameters", "Parameters and versions", [Facts(rows)])


def _release_rows(release: Release) -> list[tuple[str, str]]:
    rows = [("release", release.path.name), ("published records", f"{release.records:,}")]
    if release.written is not None:
        written = release.written
        rows += [
            ("published groups", f"{written.groups:,} ({written.sampled_groups:,} sampled)"),
            ("published from", f"{written.trials:,} independent trials"),
        ]
        if written.unattainable_groups:
            rows.append(("kept one trial", f"{written.unattainable_groups:,} groups"))
    return rows + [("note", worded(note, plain_words)) for note in release.warnings]

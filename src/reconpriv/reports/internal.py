"""The publisher's report: everything an audit, a publication and the attack lab know. Internal."""

from __future__ import annotations

import platform
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from math import sqrt
from pathlib import Path
from typing import TYPE_CHECKING

from reconpriv._version import __version__
from reconpriv.attacks.result import AttackResult
from reconpriv.core.audit import AuditReport, K
from reconpriv.core.cells import CellBatch
from reconpriv.core.cube import CellKeeper
from reconpriv.core.identifiers import identifier_note
from reconpriv.core.margin_cost import MarginCost
from reconpriv.core.margin_plan import MarginPlan
from reconpriv.core.margins import Margins
from reconpriv.errors import PolicyError
from reconpriv.messages.numbers import brief, label, percent
from reconpriv.messages.phrases import frequency_words, group_words
from reconpriv.messages.remedies import plain_words, worded
from reconpriv.policy import Policy
from reconpriv.reports import changes, charts, lab
from reconpriv.reports.groups import GroupFacts, GroupTally
from reconpriv.reports.page import (
    Chart,
    Section,
    facts,
    figures,
    page,
    paragraph,
    table,
)
from reconpriv.schema import Schema
from reconpriv.show.charts import browser_scripts
from reconpriv.show.markup import Html, tag
from reconpriv.show.palette import EXPOSED
from reconpriv.theory.perturbation import PRIOR, local_privacy_level, posterior_limit
from reconpriv.tuning.columns import CELLS_IN_MEMORY, WiderBins, bin_effects
from reconpriv.writing.file import check_file, whole_file

if TYPE_CHECKING:
    from reconpriv.release.release import Release
    from reconpriv.table import Table

TAILS, _WORST = 200, 20  # groups that the report covers, and groups that it lists
_WHAT, _HINT = "the internal report", "Choose another name for the report."
_LEAST_TAIL = 1e-6


@dataclass(frozen=True)
class Findings:
    """What the report is made from."""

    audit: AuditReport
    group_facts: GroupFacts
    attacks: tuple[AttackResult, ...]
    attack_note: str
    tradeoff: lab.Tradeoff | None
    bins: tuple[WiderBins, ...]
    release: Release | None
    source: str


class Survey:
    """What the report needs from every group, gathered during an audit's pass over them."""

    def __init__(self, schema: Schema, policy: Policy, margins: MarginPlan | None = None) -> None:
        """``policy`` is that of the audit, ``margins`` what the table plans for it.

        If it asks for protection groups, ``schema`` is theirs, and they are taken as they are.
        """
        policy = replace(policy.publishable(), protect=None)
        self._schema, self._policy = schema, policy
        self._tally = GroupTally(schema, policy, None if margins is None else margins.counted)
        self._kept = CellKeeper(max(CELLS_IN_MEMORY, lab.LAB_RECORDS))

    def add(self, batch: CellBatch) -> None:
        """Take the next batch of whole groups."""
        self._tally.add(batch)
        self._kept.add(batch)

    def findings(
        self, audit: AuditReport, *, release: Release | None = None, source: str = ""
    ) -> Findings:
        """Once all groups have passed: attack the cells, make them coarser and run the workload."""
        policy, cube = self._policy, self._kept.cube(self._schema)
        attacks, note = lab.run(cube, policy, audit)
        bins: tuple[WiderBins, ...] = ()
        if cube is not None and audit.cells <= CELLS_IN_MEMORY:
            bins = bin_effects(cube, policy, k=audit.single_records.k)
        return Findings(
            audit=replace(audit, policy=replace(policy, protect=audit.policy.protect)),
            group_facts=self._tally.facts(),
            attacks=attacks,
            attack_note=note,
            tradeoff=lab.tradeoff(cube, policy),
            bins=bins,
            release=release,
            source=source,
        )


def check_internal(path: Path, *, overwrite: bool = False, out: Path | None = None) -> None:
    """Refuse a place that would be published with a release, and a name that cannot be written."""
    inside = path.resolve().parent
    if out is not None and (inside == out.resolve() or out.resolve() in inside.parents):
        raise PolicyError(
            "The internal report must not be inside the release.", hint="Choose another folder."
        )
    check_file(path, overwrite=overwrite, private=_WHAT, hint=_HINT)
    browser_scripts()


def find(
    table: Table,
    policy: Policy,
    *,
    release: Release | None = None,
    source: str = "",
    k: int = K,
    keep_identifier: Iterable[str] = (),
) -> Findings:
    """Audit a table and gather what the report shows, in one pass over its groups."""
    policy = table.settled(policy)
    survey = Survey(table.group_schema(policy), policy, table.margin_plan(policy))
    audit = table.audit(
        policy, worst=TAILS, k=k, keep_identifier=keep_identifier, watch=[survey.add]
    )
    return survey.findings(audit, release=release, source=source)


def write_findings(found: Findings, path: Path, *, overwrite: bool = False) -> None:
    """Write the report, readable by its owner alone."""
    html = internal_html(found)
    with whole_file(path, overwrite=overwrite, private=_WHAT, hint=_HINT) as work:
        work.write_text(html, encoding="utf-8")


def internal_html(found: Findings) -> str:
    """The report as one HTML file."""
    audit = found.audit
    lead = paragraph(
        f"{audit.records:,} records, sensitive column {audit.sensitive}"
        + (f", from {found.source}" if found.source else "")
        + ". This report describes the raw table: guard it as you guard the table.",
        "lead",
    )
    sections = [
        _summary(found),
        changes.section(audit, found.bins),
        _sizes(found.group_facts),
        _attributes(found),
        _tails(found),
        _trials(found),
        *([] if audit.margins is None else [_margins(audit.margins)]),
        *([] if found.tradeoff is None else [_risk_and_utility(found.tradeoff)]),
        _worst(audit),
        lab.section(found.attacks, found.attack_note),
        _parameters(found),
    ]
    return page("Publisher's report", lead, sections, internal=True)


def _summary(found: Findings) -> Section:
    audit, groups = found.audit, found.group_facts
    setting = None if found.tradeoff is None else found.tradeoff.setting
    single = audit.single_records
    cards = [
        (f"{audit.group_word}s", f"{audit.groups:,}", f"{audit.records:,} records"),
        (
            "violating groups",
            f"{audit.violating_groups:,}",
            f"{percent(audit.violating_records / audit.records)} of the records",
        ),
        (
            "unique records",
            f"{single.unique:,}",
            f"{percent(single.unique / audit.records)} of the records;"
            f" {single.below_k:,} in groups below {single.k}",
        ),
        (
            "a published value is true",
            percent(single.retention_probability),
            f"raises a belief of {single.prior:.0%} to at most {percent(single.posterior)}",
        ),
        (
            "independent trials",
            f"{groups.trials:,}",
            f"{percent(groups.trials / audit.records)} of the records;"
            f" {groups.sampled_groups:,} groups sampled",
        ),
    ]
    error = None if setting is None else setting.error
    if audit.protection is not None:
        error = audit.error  # of questions that cut protection groups, too
    if error is not None:
        cards.append(("expected error", percent(error), "of an analyst's count, mean relative"))
    if setting is not None:
        cards.append(
            ("most exposed group", percent(setting.group_error), "expected error of an adversary")
        )
    parts = facts(
        [
            ("groups", audit.groups_sentence),
            ("single records", single.sentence),
            ("columns", worded(audit.columns_sentence, plain_words)),
            *([] if audit.margins is None else [("margins", audit.margins.sentence)]),
        ]
    )
    said = {identifier_note(c, audit.records) for c in audit.columns if c.identifier}
    notes = [
        paragraph(f"Warning: {worded(n, plain_words)}") for n in audit.warnings if n not in said
    ]
    verdict = paragraph(worded(audit.sentences[0], plain_words), f"verdict {audit.standing}")
    return Section("summary", "Summary", (verdict, parts, figures(cards), *notes))


def _sizes(groups: GroupFacts) -> Section:
    text = paragraph(
        "Each point is one or more groups of a size |g| and a largest private size s_g. Below"
        " the dashed line a group has more records than may be perturbed independently: an"
        " adversary's estimate would be too accurate."
    )
    if not groups.shapes:
        none = paragraph("No group has a limit.")
        return Section("sizes", "Group sizes against s_g", (text, none))
    rows = [
        {
            "size": size,
            "limit": limit,
            "groups": count,
            "series": charts.PRIVATE if private else charts.NOT_PRIVATE,
        }
        for size, limit, count, private in groups.shapes
    ]
    private = sum(count for *_, count, ok in groups.shapes if ok)
    exposed = sum(count for *_, count, ok in groups.shapes if not ok)
    caption = (
        f"{private:,} private and {exposed:,} violating groups; a larger mark stands for more."
        " Click the legend to single one out."
    )
    if groups.shapes_left_out:
        caption += f" {groups.shapes_left_out:,} points are not drawn."
    spec = charts.sizes_chart(rows, "Group sizes against the largest private size")
    chart = Chart("chart-sizes", spec, caption)
    return Section("sizes", "Group sizes against s_g", (text, chart))


def _attributes(found: Findings) -> Section:
    total = found.audit.violating_records
    text = paragraph(
        "The public values with the most records in violating groups, and their share of all such"
        " records."
    )
    title = "Violating groups by attribute"
    if not total:
        return Section("attributes", title, (paragraph("There are none."),))
    parts = [
        tag(
            "section",
            tag("h3", name),
            [
                _bar(label(share.value), share.violating_records / total, share.violating_groups)
                for share in shares
                if share.violating_records
            ],
        )
        for name, shares in found.group_facts.shares.items()
    ]
    return Section("attributes", title, (text, tag("div", parts, class_="attributes")))


def _bar(name: str, share: float, groups: int) -> Html:
    filled = tag("i", style=f"width:{100 * share:.1f}%;background:{EXPOSED.colour}")
    return tag(
        "div",
        tag("span", name),
        tag("span", filled, class_="track"),
        tag("span", percent(share)),
        class_="row",
        title=f"{name}: {groups:,} violating groups",
    )


def _tails(found: Findings) -> Section:
    audit = found.audit
    title = "Exact tails beside the bound"
    text = paragraph(
        "The policy requires the bound on both tails to stay above δ. A bound is loose: the exact"
        " probability that the estimate is off by more than ε is smaller still. Both are shown for"
        f" the {len(audit.worst):,} groups with the largest |g|/s_g, as if only perturbed; of"
        " the two tails, the smaller one decides."
    )
    if not audit.worst:
        return Section("tails", title, (text,))
    series = ("bound", "exact tail")
    rows = []
    for verdict in audit.worst:
        both = (
            min(verdict.bound_above, verdict.bound_below),
            min(verdict.upper_tail, verdict.lower_tail),
        )
        rows += [
            {
                "group": group_words(verdict.public),
                "size": verdict.size,
                "series": what,
                "probability": max(float(value), _LEAST_TAIL),
            }
            for what, value in zip(series, both, strict=True)
        ]
    spec = charts.tails_chart(rows, audit.policy.delta, series, "Bound and exact tails by size")
    caption = "Values below one in a million are drawn at the bottom."
    return Section("tails", title, (text, Chart("chart-tails", spec, caption)))


def _trials(found: Findings) -> Section:
    policy, groups = found.audit.policy, found.group_facts
    text = paragraph(
        f"With sample size {policy.sample_size!r}, {groups.sampled_groups:,} groups with"
        f" {groups.sampled_records:,} records are published from fewer independent trials than"
        f" they have records: {groups.trials:,} trials for {found.audit.records:,} records."
    )
    names = [f"{a:,}" if a == b else f"{a:,} to {b:,}" for a, b, *_ in groups.classes]
    rows = [
        {"class": name, "kind": kind, "count": count}
        for name, (_, _, records, trials) in zip(names, groups.classes, strict=True)
        for kind, count in (("records", records), ("trials", trials))
    ]
    chart = Chart(
        "chart-trials",
        charts.trials_chart(rows, names, "Records and trials by group size"),
        "Records and the trials kept, by the size of the group.",
        ("records in the group", "records", "trials"),
        tuple((name, r, t) for name, (_, _, r, t) in zip(names, groups.classes, strict=True)),
    )
    return Section("trials", "Trials kept", (text, chart))


def _margins(cost: MarginCost) -> Section:
    sigma = sqrt(cost.variance)
    text = paragraph(
        "The release also has noisy tables of the sensitive column. They make analysts' counts more"
        " accurate, and tell an adversary about groups as well: what they are worth about a group,"
        " in trials, is taken off its limit."
        if cost.counted
        else "The release also has noisy tables of the sensitive column, which make analysts'"
        f" counts more accurate. {cost.sentence}"
    )
    cards = [
        ("privacy of all tables", f"ε = {cost.margins.epsilon:.3g}", _level(cost.margins)),
        ("noise of a count", f"σ = {sigma:.3g}", f"95% within ±{1.96 * sigma:,.0f}"),
    ]
    if cost.counted:
        share = percent(cost.trials_lost / max(cost.trials, 1))
        cards += [
            ("trials given up", f"{cost.trials_lost:,}", f"{share} of {cost.trials:,}"),
            ("groups with fewer trials", f"{cost.groups:,}", ""),
            (
                "trials from margins",
                f"{cost.most_trials:,.3g}",
                "the most that they are worth about one group",
            ),
        ]
    head = ("margin table", "rows published", "rows left out")
    rows = [(one.name, one.rows, one.left_out) for one in cost.tables]
    note = paragraph("A row that would give a group away is left out.", "note")
    return Section("margins", "Margins", (text, figures(cards), table(head, rows), note))


def _risk_and_utility(found: lab.Tradeoff) -> Section:
    policy, mine = found.setting.policy, found.setting
    spent = next((s.margins for s in found.with_margins), None)
    text = paragraph(
        "What analysts and an adversary could expect of other policies, none of which lets a"
        f" published value reveal more than p = {policy.retention:g} does. Further right, counts"
        " are less accurate; further up, an adversary learns less about the most exposed group. The"
        " lines join the policies that no other beats."
    )
    series = {charts.ALONE: found.alone, charts.WITH_MARGINS: found.with_margins}
    rows = [
        {
            "series": name,
            "error": one.error,
            "group_error": one.group_error,
            "policy": f"p = {one.retention:.3g}, ε = {one.epsilon:g}, δ = {one.delta:g},"
            f" {one.sample_size}",
        }
        for name, some in (*series.items(), (charts.YOURS, (mine,)))
        for one in some
        if one.error > 0
    ]
    caption = (
        f"This policy: analysts' counts are off by {percent(mine.error)} on average, an adversary"
        f" by {percent(mine.group_error)} in the most exposed group."
    )
    if spent is not None:
        caption += (
            f" Margins are those of ε = {spent.epsilon:.3g}, δ = {brief(spent.delta)}: a budget of"
            " their own, beside what one record reveals."
        )
    elif found.no_margins:
        caption += f" No margins: {found.no_margins}"
    spec = charts.frontier_chart(rows, "The analysts' error and the adversary's, by policy")
    chart = Chart("chart-frontier", spec, caption)
    return Section("frontier", "Risk and utility", (text, chart))


def _level(margins: Margins) -> str:
    return f"δ = {brief(margins.delta)}, ρ = {margins.rho:g}"


def _worst(audit: AuditReport) -> Section:
    head = ("group", "|g|", "largest f", "s_g", "bound", "exact above", "exact below")
    rows = [
        (
            group_words(v.public),
            v.size,
            frequency_words(v.largest_frequency, v.value),
            v.largest_private_size,
            percent(min(v.bound_above, v.bound_below)),
            percent(v.upper_tail),
            percent(v.lower_tail),
        )
        for v in audit.worst[:_WORST]
    ]
    text = paragraph(
        "The groups with the largest |g|/s_g, each with its largest frequency and the value behind"
        " it. The exact tails are those of the most exposed value."
    )
    return Section("worst", "Worst groups", (text, table(head, rows)) if rows else (text,))


def _parameters(found: Findings) -> Section:
    audit, release = found.audit, found.release
    policy, m = audit.policy, audit.domain_size
    p = policy.retention
    rows = [
        ("retention p", f"{p:g}"),
        ("ε", f"{policy.epsilon:g}"),
        ("δ", f"{policy.delta:g}"),
        ("tail bound", policy.tail_bound.name),
        ("sample size", policy.sample_size),
        ("promise", audit.promise),
        ("unattainable groups", policy.unattainable),
        ("sensitive column", f"{audit.sensitive} ({m} values)"),
        ("public columns", ", ".join(audit.public) or "none"),
        *([] if audit.protection is None else [("pooled over", audit.protection.words)]),
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
        *((name, _version(name)) for name in ("numpy", "scipy", "pyarrow", "duckdb", "altair")),
    ]
    return Section("parameters", "Parameters and versions", (facts(rows),))


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


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"

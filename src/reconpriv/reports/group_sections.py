"""The sections of the publisher's report that show its groups."""

from __future__ import annotations

from dataclasses import replace

from reconpriv.auditing.audit_report import AuditReport
from reconpriv.messages.numbers import label
from reconpriv.messages.phrases import group_words
from reconpriv.reports import charts
from reconpriv.reports.groups import GroupFacts
from reconpriv.reports.page import Section
from reconpriv.show.charts.palette import EXPOSED
from reconpriv.show.document import Grid, Paragraph, Plot, Profiles, figure, number
from reconpriv.show.results.audit import worst_grid

_WORST = 20  # groups that the report lists
_LEAST_TAIL = 1e-6


def group_sections(audit: AuditReport, groups: GroupFacts) -> list[Section]:
    """Sizes against their limit, where the violating groups are, their tails, and their trials."""
    return [_sizes(groups), _attributes(audit, groups), _tails(audit), _trials(audit, groups)]


def _sizes(groups: GroupFacts) -> Section:
    text = Paragraph(
        "Each point is one or more groups of a size |g| and a largest private size s_g. Below"
        " the dashed line a group has more records than may be perturbed independently: an"
        " adversary's estimate would be too accurate."
    )
    if not groups.shapes:
        none = Paragraph("No group has a limit.")
        return Section("sizes", "Group sizes against s_g", [text, none])
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
    return Section("sizes", "Group sizes against s_g", [text, Plot("chart-sizes", spec, caption)])


def _attributes(audit: AuditReport, groups: GroupFacts) -> Section:
    total = audit.violating_records
    text = Paragraph(
        "The public values with the most records in violating groups, and their share of all such"
        " records."
    )
    title = "Violating groups by attribute"
    if not total:
        return Section("attributes", title, [Paragraph("There are none.")])
    columns = [
        (
            name,
            [
                (label(one.value), one.violating_records / total,
                 f"{one.violating_groups:,} violating groups")
                for one in shares if one.violating_records
            ],
        )
        for name, shares in groups.shares.items()
    ]  # fmt: skip
    return Section("attributes", title, [text, Profiles(columns, EXPOSED.colour)])


def _tails(audit: AuditReport) -> Section:
    title = "Exact tails beside the bound"
    text = Paragraph(
        "The policy requires the bound on both tails to stay above δ. A bound is loose: the exact"
        " probability that the estimate is off by more than ε is smaller still. Both are shown for"
        f" the {len(audit.worst):,} groups with the largest |g|/s_g, as if only perturbed; of"
        " the two tails, the smaller one decides."
    )
    if not audit.worst:
        return Section("tails", title, [text])
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
    return Section("tails", title, [text, Plot("chart-tails", spec, caption)])


def _trials(audit: AuditReport, groups: GroupFacts) -> Section:
    text = Paragraph(
        f"With sample size {audit.policy.sample_size!r}, {groups.sampled_groups:,} groups with"
        f" {groups.sampled_records:,} records are published from fewer independent trials than"
        f" they have records: {groups.trials:,} trials for {audit.records:,} records."
    )
    names = [f"{a:,}" if a == b else f"{a:,} to {b:,}" for a, b, *_ in groups.classes]
    rows = [
        {"class": name, "kind": kind, "count": count}
        for name, (_, _, records, trials) in zip(names, groups.classes, strict=True)
        for kind, count in (("records", records), ("trials", trials))
    ]
    table = Grid(
        [figure("records in the group"), number("records"), number("trials")],
        [(name, kept, t) for name, (_, _, kept, t) in zip(names, groups.classes, strict=True)],
    )
    chart = Plot(
        "chart-trials",
        charts.trials_chart(rows, names, "Records and trials by group size"),
        "Records and the trials kept, by the size of the group.",
        table,
    )
    return Section("trials", "Trials kept", [text, chart])


def worst_section(audit: AuditReport) -> Section:
    """The groups farthest from private, with their true figures."""
    grid = replace(worst_grid(replace(audit, worst=audit.worst[:_WORST])), title="", closed=False)
    text = Paragraph(
        "The groups with the largest |g|/s_g, each with its largest exposed frequency and the value"
        " behind it. The exact tails are those of the most exposed value."
    )
    return Section("worst", "Worst groups", [text, *([grid] if audit.worst else [])])

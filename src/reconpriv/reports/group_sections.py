"""The sections of the publisher's report that show its groups."""

from __future__ import annotations

from math import isinf

from reconpriv.core.audit_report import AuditReport
from reconpriv.messages.numbers import label, percent
from reconpriv.messages.phrases import frequency_words, group_words
from reconpriv.reports import charts
from reconpriv.reports.groups import GroupFacts
from reconpriv.reports.page import Chart, Section, paragraph, table
from reconpriv.show.markup import Html, tag
from reconpriv.show.palette import EXPOSED

_WORST = 20  # groups that the report lists
_LEAST_TAIL = 1e-6


def group_sections(audit: AuditReport, groups: GroupFacts) -> list[Section]:
    """Sizes against their limit, where the violating groups are, their tails, and their trials."""
    return [_sizes(groups), _attributes(audit, groups), _tails(audit), _trials(audit, groups)]


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


def _attributes(audit: AuditReport, groups: GroupFacts) -> Section:
    total = audit.violating_records
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
        for name, shares in groups.shares.items()
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


def _tails(audit: AuditReport) -> Section:
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


def _trials(audit: AuditReport, groups: GroupFacts) -> Section:
    text = paragraph(
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
    chart = Chart(
        "chart-trials",
        charts.trials_chart(rows, names, "Records and trials by group size"),
        "Records and the trials kept, by the size of the group.",
        ("records in the group", "records", "trials"),
        tuple((name, r, t) for name, (_, _, r, t) in zip(names, groups.classes, strict=True)),
    )
    return Section("trials", "Trials kept", (text, chart))


def worst_section(audit: AuditReport) -> Section:
    """The groups farthest from private, with their true figures."""
    head = ("group", "|g|", "largest f", "s_g", "bound", "exact above", "exact below")
    rows = [
        (
            group_words(v.public),
            v.size,
            frequency_words(v.largest_frequency, v.value),
            "any" if isinf(v.largest_private_size) else v.largest_private_size,
            percent(min(v.bound_above, v.bound_below)),
            percent(v.upper_tail),
            percent(v.lower_tail),
        )
        for v in audit.worst[:_WORST]
    ]
    text = paragraph(
        "The groups with the largest |g|/s_g, each with its largest exposed frequency and the value"
        " behind it. The exact tails are those of the most exposed value."
    )
    return Section("worst", "Worst groups", (text, table(head, rows)) if rows else (text,))

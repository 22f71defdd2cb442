"""The sections of the publisher's report on what is promised, risked and gained."""

from __future__ import annotations

from math import sqrt

from reconpriv.core.audit_report import AuditReport
from reconpriv.core.margin_cost import MarginCost
from reconpriv.core.margins import Margins
from reconpriv.messages.numbers import brief, brief_percent, percent
from reconpriv.reports import charts, lab
from reconpriv.reports.page import Chart, Section, figures, paragraph, table
from reconpriv.reports.promised import TITLE, promised
from reconpriv.show.markup import Html
from reconpriv.tuning.report import Setting
from reconpriv.tuning.risk import CLOSE


def promise_section(audit: AuditReport, setting: Setting | None) -> Section:
    """The promise, whom it is made against, and what they would learn all the same."""
    learnt = figures(_learnt(audit, setting))
    return Section("promise", TITLE, (*promised(audit.promised_by), learnt, *_notes(setting)))


def _learnt(audit: AuditReport, setting: Setting | None) -> list[tuple[str, str, str]]:
    """What an adversary learns; without a workload there are no figures on groups."""
    single, within = audit.single_records, f"within ±{brief_percent(CLOSE)}"
    cards = []
    if setting is not None:
        cards += [
            (
                "people reconstructed",
                percent(setting.reconstructed),
                f"in groups whose exposed value is estimated {within}",
            ),
            (
                "most exposed group",
                percent(setting.worst_group),
                f"chance of an estimate {within}",
            ),
        ]
        if setting.pooled is not None:
            cards.append(
                ("people, groups pooled", percent(setting.pooled), "with the groups most alike")
            )
    cards.append(
        (
            "belief about one record",
            percent(single.posterior),
            f"at most, if it was {single.prior:.0%} before",
        )
    )
    return cards


def _notes(setting: Setting | None) -> list[Html]:
    if setting is None:
        return []
    return [
        paragraph(
            "Expected figures for a release with this policy, by the exact tails of estimates from"
            " each group's own published records.",
            "note",
        )
    ]


def frontier_section(found: lab.Tradeoff) -> Section:
    """The policy among others that protect single records as well."""
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
        if one.error > 0 and one.exposes
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


def margins_section(cost: MarginCost) -> Section:
    """What margins are, and what they cost the groups."""
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


def _level(margins: Margins) -> str:
    return f"δ = {brief(margins.delta)}, ρ = {margins.rho:g}"

"""The sections of the publisher's report on what is promised, risked and gained."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from reconpriv.auditing.audit_report import AuditReport
from reconpriv.auditing.single_records import SingleRecords
from reconpriv.messages.numbers import brief, brief_percent, percent
from reconpriv.protect.margins.planned import MarginCost
from reconpriv.reports import charts, lab
from reconpriv.reports.page import PROMISED, Section, note, promised
from reconpriv.show.charts.drawing import Row
from reconpriv.show.document import Card, Cards, Facts, Field, Grid, Paragraph, Plot, number
from reconpriv.show.results.audit import margins_rows
from reconpriv.show.results.release import noise_reach
from reconpriv.tuning.report import Setting
from reconpriv.tuning.risk import CLOSE


def promise_section(audit: AuditReport, setting: Setting | None) -> Section:
    """The promise, whom it is made against, and what they would learn all the same."""
    words = (
        "Expected figures for a release with this policy, by the exact tails of estimates from each"
        " group's own published records."
    )
    cards = Cards(learnt_cards(audit.single_records, setting))
    notes = [] if setting is None else [note(words)]
    return Section("promise", PROMISED, [*promised(audit.promised_by), cards, *notes])


def learnt_cards(single: SingleRecords, setting: Setting | None, *, pooled: str = "") -> list[Card]:
    """What an adversary learns about groups, if there is a workload, and about one record.

    ``pooled`` takes the place of the share of people by pooling where that was not measured.
    """
    believed = f"at most, if it was {single.prior:.0%} before"
    record = Card("belief about one record", percent(single.posterior), believed)
    if setting is None:
        return [record]
    within = f"within ±{brief_percent(CLOSE)}"
    pooled = pooled if setting.pooled is None else percent(setting.pooled)
    cards = [
        Card("people reconstructed", percent(setting.reconstructed),
             f"in groups whose exposed value is estimated {within}"),
        Card("most exposed group", percent(setting.worst_group), f"chance of an estimate {within}"),
        Card("people, groups pooled", pooled, "with the groups most alike"),
        record,
    ]  # fmt: skip
    return [card for card in cards if card.figure]


def frontier_section(found: lab.Tradeoff) -> Section:
    """The policy among others that protect single records as well."""
    policy, mine = found.setting.policy, found.setting
    spent = next((s.margins for s in found.with_margins), None)
    text = Paragraph(
        "What analysts and an adversary could expect of other policies, none of which lets a"
        f" published value reveal more than p = {policy.retention:g} does. Further right, counts"
        " are less accurate; further up, an adversary learns less about the most exposed group. The"
        " lines join the policies that no other beats."
    )
    series = {charts.ALONE: found.alone, charts.WITH_MARGINS: found.with_margins}
    rows = frontier_rows({**series, charts.YOURS: (mine,)})
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
    return Section("frontier", "Risk and utility", [text, Plot("chart-frontier", spec, caption)])


def frontier_rows(series: Mapping[str, Iterable[Setting]]) -> list[Row]:
    """Settings as the rows of :func:`reconpriv.reports.charts.frontier_chart`, by series."""
    return [
        {
            "series": name,
            "error": one.error,
            "group_error": one.group_error,
            "policy": f"p = {one.retention:.3g}, tolerance {one.tolerance:g}, doubt {one.doubt:g},"
            f" {one.sampling}",
        }
        for name, some in series.items()
        for one in some
        if one.error > 0 and one.exposes
    ]


def margins_sections(cost: MarginCost) -> list[Section]:
    """What margins are, and what they cost the groups; nothing if there are none."""
    if not cost.tables:
        return []
    text = Paragraph(
        "The release also has noisy tables of the sensitive column. They make analysts' counts more"
        " accurate, and tell an adversary about groups as well: what they are worth about a group,"
        " in trials, is taken off its limit."
        if cost.counted
        else "The release also has noisy tables of the sensitive column, which make analysts'"
        f" counts more accurate. {cost.sentence}"
    )
    noise = ("noise of a count", f"95% within ±{noise_reach(cost.as_dict()):,.0f}")
    fields = [Field("margin table"), number("rows published"), number("rows left out")]
    tables = Grid(fields, [(one.name, one.rows, one.left_out) for one in cost.tables])
    left_out = note("A row that would give a group away is left out.")
    facts = Facts([*margins_rows(cost), noise])
    return [Section("margins", "Margins", [text, facts, tables, left_out])]

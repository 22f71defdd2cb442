"""A sweep over policies."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from reconpriv.messages.remedies import Advice, Control, Remedy, Words, either, python_words, worded
from reconpriv.show.document import (
    BAD,
    GOOD,
    Document,
    Facts,
    Field,
    Grid,
    Headline,
    Paragraph,
    number,
)
from reconpriv.tuning.recommend import by_margins
from reconpriv.tuning.risk import CLOSE

if TYPE_CHECKING:
    from reconpriv.tuning.report import Setting, TuneReport

_ROWS = 12


def tune_document(report: TuneReport, words: Words = python_words) -> Document:
    """Where the current policy stands, the verdict, the figures, a choice of efficient settings."""
    todo = worded(next_step(report), words)
    tone = GOOD if report.recommended is not None else BAD if report.target.stated else ""
    facts = [
        ("records", f"{report.records:,} in {report.groups:,} groups"),
        ("sensitive", f"{report.sensitive} ({report.domain_size} values)"),
        (
            "workload",
            f"{report.queries:,} random count queries, each on 0.1 % of the records or more",
        ),
    ]
    if report.no_margins:
        facts.append(("margins", f"none can be published: {report.no_margins}"))
    if report.left_out:
        facts.append(("left out", f"{report.left_out:,} settings that a publication would refuse"))
    return [
        Paragraph(report.standing),
        Headline(report.verdict, tone),
        *([Paragraph(todo, joined=True)] if todo else []),
        Facts(facts),
        _settings(report, spread_out(report)),
    ]


def next_step(report: TuneReport) -> str:
    """What to do next; empty if there is nothing to do."""
    if report.remedy == "state-a-target":
        return Advice(Remedy("state a target, such as {}", Control.MAX_ERROR, 0.1))
    if report.needed is None:
        return ""
    belief = rounded_up(report.needed.posterior)
    ways = [Remedy("to allow that belief, ask with {}", Control.RHO2, belief)]
    if report.remedy == "weaker-records":
        ways.append(Remedy("allow any belief", Control.WEAKER_RECORDS, True))
    return either(*ways)


def rounded_up(share: float) -> float:
    """A share rounded up to three digits."""
    return math.ceil(share * 1000) / 1000


def spread_out(report: TuneReport, most: int = _ROWS) -> list[Setting]:
    """Some efficient settings from the most accurate to the least, including the chosen one."""
    efficient = list(report.efficient)
    if len(efficient) > most:
        alone, beside = by_margins(efficient)
        half = most // 2 if alone and beside else most
        efficient = _evenly(alone, half) + _evenly(beside, half)
    chosen = report.recommended or report.nearest
    if chosen is not None and chosen not in efficient:
        efficient.append(chosen)
    return sorted(efficient, key=lambda setting: setting.error)


def _evenly(settings: list[Setting], most: int) -> list[Setting]:
    if len(settings) <= most:
        return settings
    step = (len(settings) - 1) / (most - 1)
    return [settings[round(i * step)] for i in range(most)]


def _settings(report: TuneReport, shown: list[Setting]) -> Grid:
    chosen = report.recommended or report.nearest
    shares = {setting.exposed_above for setting in [report.current, *shown]} != {0.0}
    rows = [
        (
            mark or ("→" if one == chosen else ""), one.retention, one.tolerance, one.doubt,
            one.sampling, *([one.exposed_above] if shares else []),
            one.margins_epsilon, one.error,
            one.group_error if one.exposes else None, one.reconstructed, one.worst_group,
            one.posterior, one.local_dp_epsilon, one.violating_groups, one.trials,
        )
        for mark, one in [("now", report.current), *(("", setting) for setting in shown)]
    ]  # fmt: skip
    fields = [
        Field(""), number("p", ".3g"), number("tolerance", "g"), number("doubt", "g"),
        Field("sampling"),
        *([number("φ", "g")] if shares else []), number("margins", ".3g"), number("error", ".1%"),
        number("most exposed group", ".1%"), number("reconstructed", ".1%"),
        number("worst", ".1%"), number("ρ2", ".2f"), number("local-DP ε", ".2f"),
        number("violating"), number("trials"),
    ]  # fmt: skip
    return Grid(
        fields,
        rows,
        f"Efficient settings ({len(shown)} of {len(report.efficient):,} shown), below the current"
        " one",
        "error: expected mean relative error of the workload. most exposed group: the"
        " adversary's expected error there. reconstructed: people whose group's most exposed value"
        f" is estimated within ±{CLOSE:.0%} from the group's own records; worst: the largest"
        " probability of that in one group. ρ2: the largest posterior of a prior of"
        f" {report.rho1:g}. violating: groups exposed if only perturbed. margins: the ε that they"
        " spend. →: the setting above.",
    )

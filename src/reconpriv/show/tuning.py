"""A sweep over policies as text and as HTML for a notebook."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.table import Table as RichTable
from rich.text import Text

from reconpriv.messages.remedies import Advice, Control, Remedy, Words, either, python_words, worded
from reconpriv.show.notebook import headed_tables
from reconpriv.show.rows import FittingTable
from reconpriv.show.text import pairs_table
from reconpriv.tuning.risk import CLOSE

if TYPE_CHECKING:
    from reconpriv.tuning.report import Setting, TuneReport

_ROWS = 12


def tune_view(report: TuneReport, words: Words = python_words) -> RenderableType:
    """Where the current policy stands, the verdict, the figures, a choice of efficient settings."""
    verdict = Text(f"{report.verdict}", style=f"bold {_colour(report)}")
    todo = worded(next_step(report), words)
    return Group(
        Text(f"{report.standing}\n"),
        verdict,
        *([Text(todo)] if todo else []),
        Text(),
        *_tables(report),
    )


def tune_html(report: TuneReport) -> str:
    """The sweep for a notebook."""
    return headed_tables(
        report.verdict,
        _colour(report) or "inherit",
        _tables(report),
        before=report.standing,
        after=next_step(report),
    )


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


def _colour(report: TuneReport) -> str:
    if report.recommended is not None:
        return "green"
    return "red" if report.target.stated else ""


def _tables(report: TuneReport) -> list[RichTable]:
    rows = [
        ("records", f"{report.records:,} in {report.groups:,} groups"),
        ("sensitive", f"{report.sensitive} ({report.domain_size} values)"),
        (
            "workload",
            f"{report.queries:,} random count queries, each on 0.1 % of the records or more",
        ),
    ]
    if report.no_margins:
        rows.append(("margins", f"none can be published: {report.no_margins}"))
    if report.left_out:
        rows.append(("left out", f"{report.left_out:,} settings that a publication would refuse"))
    return [pairs_table(rows), _settings(report, spread_out(report))]


def spread_out(report: TuneReport, most: int = _ROWS) -> list[Setting]:
    """Some efficient settings from the most accurate to the least, including the chosen one."""
    efficient = list(report.efficient)
    if len(efficient) > most:
        alone = [s for s in efficient if s.margins is None]
        beside = [s for s in efficient if s.margins is not None]
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


def _settings(report: TuneReport, shown: list[Setting]) -> RichTable:
    chosen = report.recommended or report.nearest
    table = FittingTable(
        title=f"\nEfficient settings ({len(shown)} of {len(report.efficient):,} shown),"
        " below the current one",
        caption="error: expected mean relative error of the workload. most exposed group: the"
        " adversary's expected error there. reconstructed: people whose group's most exposed value"
        f" is estimated within ±{CLOSE:.0%} from the group's own records; worst: the largest"
        " probability of that in one group. ρ2: the largest posterior of a prior of"
        f" {report.rho1:g}. violating: groups exposed if only perturbed. margins: the ε that they"
        " spend. →: the setting above.",
    )
    table.add_column("")
    for name in ("p", "ε", "δ"):
        table.add_column(name, justify="right")
    table.add_column("sample size")
    shares = {setting.exposed_above for setting in [report.current, *shown]} != {0.0}
    figures = ("margins", "error", "most exposed group", "reconstructed", "worst", "ρ2",
               "local-DP ε", "violating", "trials")  # fmt: skip
    for name in (*(["φ"] if shares else []), *figures):
        table.add_column(name, justify="right")
    for mark, setting in [("now", report.current), *(("", setting) for setting in shown)]:
        table.add_row(
            Text(mark or ("→" if setting == chosen else "")),
            f"{setting.retention:.3g}",
            f"{setting.epsilon:g}",
            f"{setting.delta:g}",
            setting.sample_size,
            *([f"{setting.exposed_above:g}"] if shares else []),
            "-" if setting.margins is None else f"{setting.margins_epsilon:.3g}",
            f"{setting.error:.1%}",
            f"{setting.group_error:.1%}" if setting.exposes else "-",
            f"{setting.reconstructed:.1%}",
            f"{setting.worst_group:.1%}",
            f"{setting.posterior:.2f}",
            f"{setting.local_dp_epsilon:.2f}",
            f"{setting.violating_groups:,}",
            f"{setting.trials:,}",
        )
    return table

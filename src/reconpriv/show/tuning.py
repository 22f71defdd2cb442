"""A sweep over policies as text and as HTML for a notebook."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.table import Table as RichTable
from rich.text import Text

from reconpriv.show.html import headed_tables
from reconpriv.show.rows import FittingTable
from reconpriv.show.text import pairs_table

if TYPE_CHECKING:
    from reconpriv.tuning.report import Setting, TuneReport

_ROWS = 12


def tune_view(report: TuneReport, *, remedy: str | None = None) -> RenderableType:
    """Where the current policy stands, the verdict, the figures, a choice of efficient settings.

    ``remedy`` says what to do next; without it, it is said for Python.
    """
    verdict = Text(f"{report.verdict}", style=f"bold {_colour(report)}")
    next_step = remedy_words(report, _as_argument) if remedy is None else remedy
    return Group(
        Text(f"{report.standing}\n"),
        verdict,
        *([Text(next_step)] if next_step else []),
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
        after=remedy_words(report, _as_argument),
    )


def remedy_words(report: TuneReport, spelled: Callable[[str, str | None], str]) -> str:
    """What to do next; ``spelled`` writes an argument of ``Table.tune``, None being yes."""
    if report.remedy == "state-a-target":
        return f"State a target, such as {spelled('max_error', '0.1')}."
    if report.needed is None:
        return ""
    accepted = spelled("rho2", f"{rounded_up(report.needed.posterior):g}")
    if report.remedy == "weaker-records":
        any_belief = spelled("weaker_records", None)
        return f"To allow that belief, ask with {accepted}, or {any_belief} for any belief."
    return f"To allow that belief, ask with {accepted}."


def _as_argument(name: str, value: str | None) -> str:
    return f"{name}={'True' if value is None else value}"


def rounded_up(share: float) -> float:
    """A share with three digits that is not below it."""
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
    if report.left_out:
        rows.append(("left out", f"{report.left_out:,} settings with ε past the bounds' range"))
    return [pairs_table(rows), _settings(report, spread_out(report))]


def spread_out(report: TuneReport, most: int = _ROWS) -> list[Setting]:
    """Some efficient settings from the most accurate to the least; the chosen one is among them."""
    efficient = list(report.efficient)
    if len(efficient) > most:
        step = (len(efficient) - 1) / (most - 1)
        efficient = [efficient[round(i * step)] for i in range(most)]
    chosen = report.recommended or report.nearest
    if chosen is not None and chosen not in efficient:
        efficient.append(chosen)
    return sorted(efficient, key=lambda setting: setting.error)


def _settings(report: TuneReport, shown: list[Setting]) -> RichTable:
    chosen = report.recommended or report.nearest
    table = FittingTable(
        title=f"\nEfficient settings ({len(shown)} of {len(report.efficient):,} shown),"
        " below the current one",
        caption="error: expected mean relative error of the workload. most exposed group: the"
        " adversary's expected error there. ρ2: the largest posterior of a prior of"
        f" {report.rho1:g}. violating: groups exposed if only perturbed. →: the setting above.",
    )
    table.add_column("")
    for name in ("p", "ε", "δ"):
        table.add_column(name, justify="right")
    table.add_column("sample size")
    for name in ("error", "most exposed group", "ρ2", "local-DP ε", "violating", "trials"):
        table.add_column(name, justify="right")
    for mark, setting in [("now", report.current), *(("", setting) for setting in shown)]:
        table.add_row(
            Text(mark or ("→" if setting == chosen else "")),
            f"{setting.retention:.3g}",
            f"{setting.epsilon:g}",
            f"{setting.delta:g}",
            setting.sample_size,
            f"{setting.error:.1%}",
            f"{setting.group_error:.1%}",
            f"{setting.posterior:.2f}",
            f"{setting.local_dp_epsilon:.2f}",
            f"{setting.violating_groups:,}",
            f"{setting.trials:,}",
        )
    return table

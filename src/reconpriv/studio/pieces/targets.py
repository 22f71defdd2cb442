"""What the publisher asks of a policy, where the current one stands, and what is suggested."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from htmltools import Tag, TagList, tags
from shiny import ui

import reconpriv as rp
from reconpriv.messages.remedies import worded
from reconpriv.show.results.tuning import next_step
from reconpriv.studio.pieces.changes import policy_changes
from reconpriv.studio.pieces.parts import button, check, notice
from reconpriv.studio.pieces.remedy_words import WEAKER, page_words
from reconpriv.studio.work.live import Candidate
from reconpriv.studio.work.workspace import explain
from reconpriv.tuning.reach import GOALS, missed
from reconpriv.tuning.recommend import check_target
from reconpriv.tuning.report import Setting, Target, TuneReport
from reconpriv.tuning.risk import CLOSE
from reconpriv.tuning.sentences import budget, out_of_reach

# By input: a label, what it means, and the largest value that makes sense.
WISHES = {
    "max_error": (
        "Largest error analysts can live with",
        "Of a count, on average; 0.1 is 10 %.",
        1.0,
    ),
    "rho2": (
        "Largest belief after seeing a record",
        "ρ2, for a belief of 10 % before; 0.7 is 70 %.",
        0.99,
    ),
    "max_reconstructed": (
        "Largest share of people reconstructed",
        f"In groups whose most exposed value is estimated within ±{CLOSE:.0%} from their own"
        " records; 0.2 is 20 %.",
        0.99,
    ),
    "min_group_error": (
        "Smallest error in every group",
        "For an adversary who reconstructs it; 0.2 is 20 %.",
        1.99,
    ),
}

# What a dial shows.
DECIMALS = 3


@dataclass(frozen=True)
class TuningRequest:
    """What a suggestion is asked for, and how long it may take; it is valid for nothing else."""

    candidate: Candidate
    target: Target
    weaker: bool
    seconds: float = math.inf

    def searched(self, posterior: float) -> Target:
        """What a sweep looks for: nothing that weakens single records without consent.

        ``posterior`` is the largest belief that the current policy allows.
        """
        target = self.target
        if target.rho2 is None:
            return replace(target, weaker_records=self.weaker and target.stated)
        return target if self.weaker else replace(target, rho2=min(target.rho2, posterior))


def panel(at: dict[str, Any]) -> Tag:
    """The targets, each with its status, and the suggestion below."""
    return tags.section(
        tags.h4("Targets"),
        *(_wish(name, at.get(name)) for name in WISHES),
        check(
            "weaker",
            WEAKER,
            "With a larger p, a published value is more often the true one.",
            checked=bool(at.get("weaker")),
        ),
        tags.div(ui.output_ui("advice"), {"aria-live": "polite"}),
        tags.div(
            button("recommend", "Use the suggested setting", disabled=True), class_="suggest-row"
        ),
        class_="targets",
    )  # fmt: skip


def _wish(name: str, value: float | None) -> Tag:
    label, help, high = WISHES[name]
    return tags.div(
        tags.label(label, {"for": name}),
        tags.input(
            {"aria-describedby": f"{name}_fault {name}_help"}, id=name, type="number", min=0.01,
            max=high, step=0.01, value=value, placeholder="any",
        ),
        ui.output_ui(f"stands_{name}"),
        tags.p(help, id=f"{name}_help", class_="help"),
        tags.p(id=f"{name}_fault", class_="fault"),
        class_="wish",
    )  # fmt: skip


def fault_of(target: Target) -> str:
    """What is wrong with a target; empty if nothing is."""
    try:
        check_target(target)
    except rp.ReconprivError as error:
        return explain(error)
    return ""


def standing(name: str, target: Target, found: Setting) -> Tag:
    """Where the current policy stands on one target."""
    yours = getattr(found, next(goal.figure for goal in GOALS if goal.field == name))
    figure = tags.span(f"yours: {yours:.1%}" if math.isfinite(yours) else "nothing is exposed")
    if getattr(target, name) is None:
        return tags.div(figure, class_="standing")
    met = name not in missed(found, target)
    tag = tags.span("met" if met else "not met", class_=f"tag {'good' if met else 'warning'}")
    return tags.div(figure, " ", tag, class_="standing")


def suggestion(report: TuneReport) -> Setting | None:
    """What the button would set; None if that is the current policy."""
    best = report.recommended or report.nearest
    if not report.target.stated:
        best = report.with_margins
    return None if best is None or not changes(report.current, best) else best


def changes(mine: Setting, best: Setting) -> str:
    """What the button would change, each with both values."""
    return ", ".join(policy_changes(mine.policy, best.policy))


def advice(report: TuneReport, target: Target, *, whole: bool = True) -> TagList:
    """The suggestion in words, with everything it would change.

    Without the ``whole`` search, it is not known what no setting reaches.
    """
    mine, best = report.current, suggestion(report)
    change = "" if best is None else f"{changes(mine, best)}."
    parts: list[Tag | None] = []
    if not target.stated:
        parts.append(tags.p("State a target to get a suggestion.", class_="help"))
        lead = "Margins would help: "
    elif report.recommended is not None:
        met = not missed(mine, target) and mine.eligible
        lead = "Your policy meets these targets already. To reveal less to an adversary: "
        lead = lead if met else "Suggested: "
        if best is None:
            parts.append(notice("Your policy meets these targets; none is better suited.", "good"))
    else:
        said = out_of_reach(report.target, report.rho1, mine, report.needed, None, report.obstacles)
        words = f"{said} {worded(next_step(report), page_words)}".strip()
        parts.append(notice(words if whole else "None of these meets all targets.", "warning"))
        lead = "Closest: " if whole else "Closest so far: "
        if best is None:
            parts.append(notice("Your policy comes closest.", "info"))
    if best is not None:
        parts.append(notice(f"{lead}{change}", "info"))
        parts.append(tags.ul(*map(tags.li, effects(mine, best)), class_="effects"))
        if best.posterior > mine.posterior + 1e-9:
            words = "This protects single records less than your policy does."
            parts.append(notice(words, "warning"))
        if best.spent > mine.spent:
            words = f"{budget(best).capitalize()}, beside what one record reveals."
            parts.append(notice(words, "warning"))
    return TagList(*parts)


def effects(mine: Setting, best: Setting) -> list[str]:
    """What that would do, compared with the current policy."""
    figures = (
        ("A belief of 10 % can grow to", best.posterior, mine.posterior, ".0%"),
        ("Analysts’ counts are off by", best.error, mine.error, ".1%"),
        ("An adversary’s error in the most exposed group is", best.group_error, mine.group_error,
         ".1%"),
        (f"People in groups whose most exposed value is estimated within ±{CLOSE:.0%} from"
         " their own records:", best.reconstructed, mine.reconstructed, ".1%"),
    )  # fmt: skip
    found = []
    for words, new, old, style in figures:
        if math.isinf(new) or math.isinf(old):
            continue
        after, before = format(new, style), format(old, style)
        change = ", as now" if after == before else f" instead of {before}"
        found.append(f"{words} {after}{change}.")
    return found

"""What the publisher asks of a policy, where the current one stands, and what is suggested."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from htmltools import Tag, TagList, tags
from shiny import ui

import reconpriv as rp
from reconpriv.studio.desk import explain
from reconpriv.studio.parts import button, notice
from reconpriv.theory.perturbation import PRIOR
from reconpriv.tuning.report import Setting, Target, TuneReport
from reconpriv.tuning.sweep import check_target

# By input: a label, what it means, and the largest value that makes sense.
WISHES = {
    "max_error": (
        "Largest error analysts can live with",
        "Of a count, on average; 0.1 is 10 %.",
        2.0,
    ),
    "rho2": (
        "Largest belief after seeing a record",
        "ρ2, for a belief of 10 % before; 0.7 is 70 %.",
        0.99,
    ),
    "min_group_error": (
        "Least error in every group",
        "Of an adversary who reconstructs it; 0.2 is 20 %.",
        10.0,
    ),
}


@dataclass(frozen=True)
class Asked:
    """What a suggestion was asked for: it answers nothing else."""

    policy: rp.Policy
    target: Target
    weaker: bool


def panel(at: dict[str, Any]) -> Tag:
    """Three targets, each with its standing, and the suggestion below."""
    return tags.section(
        tags.h4("Targets"),
        *(_wish(name, at.get(name)) for name in WISHES),
        tags.label(
            tags.input(id="weaker", type="checkbox", checked="" if at.get("weaker") else None),
            tags.span(
                "Also suggest policies that protect single records less than mine",
                tags.span("A larger p: a published value is more often the true one.",
                          class_="muted"),
            ),
            class_="check",
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
            {"aria-describedby": f"{name}_help"}, id=name, type="number", min=0.01, max=high,
            step=0.01, value=value, placeholder="any",
        ),
        ui.output_ui(f"stands_{name}"),
        tags.p(help, id=f"{name}_help", class_="help"),
        class_="wish",
    )  # fmt: skip


def target_of(values: dict[str, float | None]) -> Target:
    """The targets as they stand in the form; an empty one asks nothing."""
    rho2 = values["rho2"]
    return Target(
        max_error=values["max_error"] or None,
        rho1=PRIOR if rho2 else None,
        rho2=rho2 or None,
        min_group_error=values["min_group_error"] or None,
    )


def fault_of(target: Target) -> str:
    """What is wrong with a target; empty where nothing is."""
    try:
        check_target(target)
    except rp.ReconprivError as error:
        return explain(error)
    return ""


def standing(name: str, target: Target, found: Setting) -> Tag:
    """Where the current policy stands on one target."""
    yours = {"max_error": found.error, "rho2": found.posterior}.get(name, found.group_error)
    wanted = getattr(target, name)
    figure = tags.span(f"yours: {yours:.1%}")
    if wanted is None:
        return tags.div(figure, class_="standing")
    # p from ρ2 and back again is the same up to rounding.
    met = yours >= wanted - 1e-9 if name == "min_group_error" else yours <= wanted + 1e-9
    tag = tags.span("met" if met else "not met", class_=f"tag {'good' if met else 'warning'}")
    return tags.div(figure, " ", tag, class_="standing")


def suggestion(report: TuneReport) -> Setting | None:
    """What the button would set."""
    return report.recommended or report.nearest


def advice(report: TuneReport, mine: Setting, *, weaker: bool) -> TagList:
    """The suggestion in words, with all that it would change."""
    best = suggestion(report)
    if not report.target.stated:
        return TagList(tags.p("State a target for a suggestion.", class_="help"))
    if best is None:
        return TagList(notice("No policy that can be published was found.", "warning"))
    if same_policy(best, mine):
        words = "Your policy is the suggested one." if report.recommended else (
            "No policy reaches these targets; yours comes nearest."
        )  # fmt: skip
        return TagList(notice(words, "info"))
    lead = "Suggested" if report.recommended else "No policy reaches these targets. Nearest"
    if not report.recommended and not weaker:
        lead = "No policy that protects single records as well reaches these targets. Nearest"
    return TagList(
        notice(f"{lead}: {', '.join(parameter_changes(mine, best))}.", "info"),
        tags.ul(*(tags.li(words) for words in effects(mine, best)), class_="effects"),
        notice("It protects single records less than your policy does.", "warning")
        if weakens(mine, best)
        else None,
    )


def weakens(mine: Setting, best: Setting) -> bool:
    """Whether a published value would tell more about its person."""
    return best.posterior > mine.posterior + 1e-9


def same_policy(one: Setting, other: Setting) -> bool:
    """Whether two settings are the same but for their figures."""
    return not parameter_changes(one, other)


def parameter_changes(mine: Setting, best: Setting) -> list[str]:
    """What the button would turn, each with both values."""
    numbers = [
        f"{symbol} {old:.2f} → {new:.2f}"
        for symbol, old, new in (
            ("p", mine.retention, best.retention),
            ("ε", mine.epsilon, best.epsilon),
            ("δ", mine.delta, best.delta),
        )
        if abs(old - new) > 1e-9
    ]
    words = [
        f"{name} {old} → {new}"
        for name, old, new in (
            ("sample size", mine.sample_size, best.sample_size),
            ("tail bound", mine.bound, best.bound),
        )
        if old != new
    ]
    return numbers + words


def effects(mine: Setting, best: Setting) -> list[str]:
    """What that would do, against what the current policy does."""
    figures = (
        ("A belief of 10 % can grow to", best.posterior, mine.posterior, ".0%"),
        ("Analysts’ counts are off by", best.error, mine.error, ".1%"),
        ("An adversary’s error in the most exposed group is", best.group_error, mine.group_error,
         ".1%"),
    )  # fmt: skip
    found = []
    for words, new, old, style in figures:
        after, before = format(new, style), format(old, style)
        change = ", as now" if after == before else f" instead of {before}"
        found.append(f"{words} {after}{change}.")
    return found

"""What the publisher asks of a policy, where the current one stands, and what is suggested."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from htmltools import Tag, TagList, tags
from shiny import ui

import reconpriv as rp
from reconpriv.studio.desk import explain
from reconpriv.studio.parts import button, check, notice
from reconpriv.tuning.reach import missed
from reconpriv.tuning.recommend import check_target
from reconpriv.tuning.report import Setting, Target, TuneReport
from reconpriv.tuning.risk import CLOSE
from reconpriv.tuning.sentences import budget, in_the_way
from reconpriv.tuning.sweep import rounded_down

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


# What a dial shows; two values closer than this are the same.
DECIMALS = 3
_DIAL = 1.5e-3


@dataclass(frozen=True)
class Asked:
    """What a suggestion was asked for; it is valid for nothing else."""

    policy: rp.Policy
    target: Target
    weaker: bool


def panel(at: dict[str, Any]) -> Tag:
    """The targets, each with its status, and the suggestion below."""
    return tags.section(
        tags.h4("Targets"),
        *(_wish(name, at.get(name)) for name in WISHES),
        check(
            "weaker",
            "Also suggest policies that protect single records less than mine",
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


def target_of(values: dict[str, float | None]) -> Target:
    """The targets in the form; an empty one sets no requirement."""
    return Target(
        max_error=values["max_error"],
        rho2=values["rho2"],
        min_group_error=values["min_group_error"],
        max_reconstructed=values["max_reconstructed"],
    )


def searched(asked: Asked, posterior: float) -> Target:
    """What a sweep looks for: nothing that weakens single records without the user's consent.

    ``posterior`` is the largest belief that the current policy allows.
    """
    target = asked.target
    if target.rho2 is None:
        return replace(target, weaker_records=asked.weaker and target.stated)
    return target if asked.weaker else replace(target, rho2=min(target.rho2, posterior))


def fault_of(target: Target) -> str:
    """What is wrong with a target; empty if nothing is."""
    try:
        check_target(target)
    except rp.ReconprivError as error:
        return explain(error)
    return ""


def standing(name: str, target: Target, found: Setting) -> Tag:
    """Where the current policy stands on one target."""
    yours = {"max_error": found.error, "rho2": found.posterior, "min_group_error":
             found.group_error, "max_reconstructed": found.reconstructed}[name]  # fmt: skip
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
    return None if best is None or same_policy(best, report.current) else best


def advice(report: TuneReport, asked: Asked) -> TagList:
    """The suggestion in words, with everything it would change."""
    mine, best = report.current, suggestion(report)
    parts: list[Tag | None] = []
    if not asked.target.stated:
        parts.append(tags.p("State a target to get a suggestion.", class_="help"))
        if best is not None:
            parts.append(notice(f"Margins would help: {changes(mine, best)}.", "info"))
    elif report.recommended is not None:
        met = not missed(mine, asked.target) and mine.eligible
        already = "Your policy meets these targets" if met else ""
        if best is None:
            parts.append(notice(f"{already}, and none is better suited.", "good"))
        else:
            lead = f"{already} already. To reveal less to an adversary: " if met else "Suggested: "
            parts.append(notice(f"{lead}{changes(mine, best)}.", "info"))
    else:
        parts.append(notice(_out_of_reach(report, asked), "warning"))
        near = "Your policy comes closest." if best is None else (
            f"Closest: {changes(mine, best)}."
        )  # fmt: skip
        parts.append(notice(near, "info"))
    if best is not None:
        parts.append(tags.ul(*(tags.li(words) for words in effects(mine, best)), class_="effects"))
        if weakens(mine, best):
            words = "This protects single records less than your policy does."
            parts.append(notice(words, "warning"))
        if best.margins is not None and spends_more(mine, best):
            words = f"{budget(best).capitalize()}, beside what one record reveals."
            parts.append(notice(words, "warning"))
    return TagList(*parts)


def _out_of_reach(report: TuneReport, asked: Asked) -> str:
    mine, needed = report.current, report.needed
    if needed is None:
        said = ["No policy reaches these targets.", *in_the_way(report.target, report.obstacles)]
        return " ".join(said)
    take = (
        f"Reaching them would take p = {needed.retention:.2f}: a belief of 10 % could grow to"
        f" {needed.posterior:.0%} instead of {mine.posterior:.0%}"
    )
    limit = asked.target.rho2
    if limit is not None and needed.posterior > limit:
        return f"No policy reaches all of these targets. {take}, above your limit of {limit:.0%}."
    return (
        "No policy that protects single records as well as yours reaches these targets."
        f" {take}. Tick the box above to allow that."
    )


def weakens(mine: Setting, best: Setting) -> bool:
    """Whether a published value would reveal more about its person."""
    return best.posterior > mine.posterior + 1e-9


def spends_more(mine: Setting, best: Setting) -> bool:
    """Whether margins would spend more on single records than they do now."""
    return (best.margins_epsilon or 0.0) > (mine.margins_epsilon or 0.0)


def same_policy(one: Setting, other: Setting) -> bool:
    """Whether two settings are the same, apart from their figures."""
    return not parameter_changes(one, other)


def changes(mine: Setting, best: Setting) -> str:
    """The same on one line."""
    return ", ".join(parameter_changes(mine, best))


def parameter_changes(mine: Setting, best: Setting) -> list[str]:
    """What the button would change, each with both values."""
    numbers = [
        f"{symbol} {old:.2f} → {new:.2f}"
        for symbol, old, new in (
            ("p", mine.retention, best.retention),
            ("ε", mine.epsilon, best.epsilon),
            ("δ", mine.delta, best.delta),
            ("φ", mine.exposed_above, best.exposed_above),
        )
        if abs(old - new) > _DIAL
    ]
    words = [
        f"{name} {old} → {new}"
        for name, old, new in (
            ("sample size", mine.sample_size, best.sample_size),
            ("tail bound", mine.bound, best.bound),
            ("margins", _margins(mine), _margins(best)),
        )
        if old != new
    ]
    return numbers + words


def _margins(setting: Setting) -> str:
    epsilon = setting.margins_epsilon
    return "none" if epsilon is None else f"ε = {epsilon:.3g}"


def dials_of(best: Setting) -> dict[str, float]:
    """The numbers of a setting for the dials; p is rounded down, which protects more."""
    return {
        "p": rounded_down(best.retention, DECIMALS),
        "e": best.epsilon,
        "d": best.delta,
        "m": best.margins_epsilon or 0.0,
        "phi": best.exposed_above,
    }


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

"""What a sweep found, in sentences that fit wherever they are shown.

They mention no command-line option and no argument: the next step is a field of the report.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from reconpriv.messages.numbers import brief
from reconpriv.messages.numbers import brief_percent as percent
from reconpriv.messages.phrases import listed
from reconpriv.tuning.reach import GOALS, MIN_GROUP_ERROR, RHO2
from reconpriv.tuning.report import BlockingGoal, Setting, Target


def in_words(setting: Setting, rho1: float) -> str:
    """A setting in one line."""
    words = f"{numbers(setting)}: count queries off by {setting.error:.1%} on average"
    if setting.exposes:
        words += f", an adversary by {setting.group_error:.1%} in the most exposed group"
    words += f"; {belief(setting, rho1)}"
    return f"{words}{beside(setting, f', and {budget(setting)}')}"


def risk(setting: Setting) -> str:
    """Who is exposed to an adversary who estimates groups, and what counts as exposed."""
    if not setting.worst_share:
        return f"No group has an exposed value.{_exposed(setting)}"
    sources = f"own records{beside(setting, ' and the margins')}"
    said = (
        f"An adversary who uses a group's {sources} estimates the share of its most exposed value"
        f" within ±{percent(setting.judged_tolerance)} for {percent(setting.reconstructed)} of the"
        f" people, and with a probability of {percent(setting.worst_group)} in the most exposed"
        " group"
    )
    if setting.pooled is not None:
        said += f"; one who also uses neighbouring groups, for {percent(setting.pooled)}"
    return f"{said}.{_exposed(setting)}"


def _exposed(setting: Setting) -> str:
    """Which values count as exposed where risk is counted; empty if all do."""
    which = []
    if setting.judged_above:
        which.append(f"that more than {percent(setting.judged_above)} of a group hold")
    if setting.harmless:
        which.append("that are not called harmless")
    if not which:
        return ""
    same = setting.exposed_above == setting.judged_above
    said = f" Only values {listed(which)} count as exposed here"
    return f"{said}." if same else f"{said}, as under the current policy."


def budget(setting: Setting) -> str:
    """What margins cost single records."""
    return (
        f"margins spend a budget of their own: (ε = {setting.spent:.4g},"
        f" δ = {brief(setting.policy.wanted_margins.delta)}) differential privacy"
    )


def numbers(setting: Setting) -> str:
    """The numbers of a policy."""
    return (
        f"p = {setting.retention:.4g}, tolerance {setting.tolerance:g}, doubt {setting.doubt:g},"
        f" sampling rule {setting.sampling}, bound {setting.bound}{_exposed_above(setting)}"
        f"{beside(setting, f', margins of ε = {setting.spent:.4g}')}"
    )


def _exposed_above(setting: Setting) -> str:
    share = setting.exposed_above
    return f", values above {percent(share)} protected" if share else ""


def beside(setting: Setting, words: str) -> str:
    """Words about the margins of a setting; empty if it has none."""
    return words if setting.margins else ""


def belief(setting: Setting, rho1: float) -> str:
    """What a single record reveals."""
    return f"one record raises a belief of {percent(rho1)} to at most {percent(setting.posterior)}"


def standing(current: Setting, target: Target, misses: Sequence[str], rho1: float) -> str:
    """Where the current policy stands, and which parts of the target it misses."""
    words = f"Current policy: {in_words(current, rho1)}. {risk(current)}"
    if not current.eligible:
        words += f" {_broken(current)}"
    if not target.stated:
        return words
    if not misses:
        return f"{words} It meets the target." if current.eligible else words
    missed = [
        goal.missed.format(percent=percent(getattr(target, goal.field)))
        for goal in GOALS
        if goal.field in misses
    ]
    return f"{words} It misses the target: {' and '.join(missed)}."


def helped(current: Setting, found: Setting | None, chosen: Setting | None) -> str:
    """What margins would do for the current policy, unless they are in a recommendation."""
    if found is None or (chosen is not None and chosen.spent):
        return ""
    adversary = f", an adversary by {found.group_error:.1%}" if found.exposes else ""
    return (
        f" With margins of ε = {found.spent:.4g}, its counts would be off by"
        f" {found.error:.1%} instead of {current.error:.1%}{adversary}; {budget(found)}."
    )


def _broken(setting: Setting) -> str:
    if setting.sampling_rule.leaks:
        return "Its sampling rules leak the largest exposed frequency of large groups."
    if setting.unattainable_groups:
        return f"In {setting.unattainable_groups:,} groups not even one trial is private."
    return f"Without sampling {setting.violating_groups:,} groups stay open to reconstruction."


def wish(target: Target, rho1: float) -> str:
    """What was asked for."""
    stated = [(goal, getattr(target, goal.field)) for goal in GOALS]
    return listed(
        [
            (goal.wished or goal.missed).format(limit=limit, rho1=rho1, percent=percent(limit))
            for goal, limit in stated
            if limit is not None
        ]
    )


def tried(settings: Sequence[Setting]) -> str:
    """How many settings there were."""
    efficient = sum(setting.efficient for setting in settings)
    return f"{len(settings):,} settings tried, {efficient:,} efficient"


def out_of_reach(
    target: Target,
    rho1: float,
    current: Setting,
    needed: Setting | None,
    nearest: Setting | None,
    obstacles: Sequence[BlockingGoal],
) -> str:
    """No setting that may be recommended reaches the target: why, and what it would take."""
    said = [f"No setting reaches {wish(target, rho1)}."]
    near = "Closest"
    if needed is not None and target.rho2 is None:
        said[0] = said[0][:-1] + " and protects single records as well as the current policy does."
        near = "The closest setting with that protection"
    elif target.rho2 is None and not target.weaker_records:
        near = "The closest setting that protects single records as well as the current policy does"
    if needed is not None:
        limit = current.posterior if target.rho2 is None else target.rho2
        said.append(
            f"It would take p = {needed.retention:.4g}"
            f"{beside(needed, f', margins of ε = {needed.spent:.4g}')}: one record could then"
            f" raise a belief of {percent(rho1)} to {percent(needed.posterior)} instead of"
            f" {percent(limit)}."
        )
    said += in_the_way(target, obstacles)
    if nearest is not None:
        said.append(f"{near}: {in_words(nearest, rho1)}. {risk(nearest)}")
    return " ".join(said)


def in_the_way(target: Target, obstacles: Sequence[BlockingGoal]) -> list[str]:
    """Which part of a target is the obstacle, and what can be reached of it; no sentence for ρ2."""
    names = {goal.field: goal.name for goal in GOALS if goal.field != RHO2}
    stated = [name for name in names if getattr(target, name) is not None]
    best = [(names[one.name], f"at best {_reachable(one)}") for one in obstacles]
    if not best:
        return ["To give up one of these targets would not be enough."] if len(stated) > 1 else []
    (name, value), others = best[0], best[1:]
    if len(stated) == 1:
        return [f"{name[0].upper()}{name[1:]} is {value}."]
    if not others:
        return [f"The obstacle is {name}: with the other targets kept, it is {value}."]
    first = f"{name}, which is {value} with the other targets kept"
    return [f"The obstacle is {', or '.join([first, *map(', '.join, others)])}."]


def _reachable(one: BlockingGoal) -> str:
    """The best value, rounded to what can be asked for."""
    scale = 1_000
    towards = math.floor if one.name == MIN_GROUP_ERROR else math.ceil
    return percent(towards(one.best * scale) / scale)

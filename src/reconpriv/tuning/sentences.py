"""What a sweep found, in sentences that fit wherever they are shown.

They mention no command-line option and no argument: the next step is a field of the report.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from reconpriv.messages.numbers import brief
from reconpriv.messages.numbers import brief_percent as percent
from reconpriv.messages.phrases import listed
from reconpriv.tuning.reach import (
    FIGURES,
    MAX_ERROR,
    MAX_POOLED,
    MAX_RECONSTRUCTED,
    MIN_GROUP_ERROR,
    RHO2,
)
from reconpriv.tuning.report import Obstacle, Setting, Target

_NAMES = {
    MAX_ERROR: "the error",
    MIN_GROUP_ERROR: "the adversary's error in the most exposed group",
    MAX_RECONSTRUCTED: "the share of people reconstructed",
    MAX_POOLED: "the share of people reconstructed by pooling",
}


def in_words(setting: Setting, rho1: float) -> str:
    """A setting in one line."""
    words = f"{numbers(setting)}: count queries off by {setting.error:.1%} on average"
    if setting.exposes:
        words += f", an adversary by {setting.group_error:.1%} in the most exposed group"
    words += f"; {belief(setting, rho1)}"
    return words if setting.margins is None else f"{words}, and {budget(setting)}"


def risk(setting: Setting) -> str:
    """Who is exposed to an adversary who estimates groups, and what counts as exposed."""
    if not setting.worst_share:
        return f"No group has an exposed value.{_exposed(setting)}"
    sources = "own records" if setting.margins is None else "own records and the margins"
    said = (
        f"An adversary who uses a group's {sources} estimates the share of its most exposed value"
        f" within ±{percent(setting.judged_epsilon)} for {percent(setting.reconstructed)} of the"
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
    if setting.news_only:
        off = percent(setting.judged_epsilon)
        which.append(f"whose share differs by more than {off} from that in the whole table")
    if not which:
        return ""
    same = setting.exposed_above == setting.judged_above
    said = f" Only values {listed(which)} count as exposed here"
    return f"{said}." if same else f"{said}, as under the current policy."


def budget(setting: Setting) -> str:
    """What margins cost single records."""
    assert setting.margins is not None
    return (
        f"margins spend a budget of their own: (ε = {setting.margins_epsilon:.4g},"
        f" δ = {brief(setting.margins.delta)}) differential privacy"
    )


def numbers(setting: Setting) -> str:
    """The numbers of a policy."""
    return (
        f"p = {setting.retention:.4g}, ε = {setting.epsilon:g}, δ = {setting.delta:g}, sample size"
        f" {setting.sample_size}, bound {setting.bound}{_exposed_above(setting)}{margins(setting)}"
    )


def _exposed_above(setting: Setting) -> str:
    share = setting.exposed_above
    return f", values above {percent(share)} protected" if share else ""


def margins(setting: Setting) -> str:
    """The margins of a setting, to follow its numbers."""
    return "" if setting.margins is None else f", margins of ε = {setting.margins_epsilon:.4g}"


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
    missed = {
        MAX_ERROR: f"an error of at most {percent(target.max_error or 0)}",
        RHO2: f"a belief of at most {percent(target.rho2 or 0)}",
        MIN_GROUP_ERROR: "an adversary's error of at least"
        f" {percent(target.min_group_error or 0)} in every group",
        MAX_RECONSTRUCTED: f"at most {percent(target.max_reconstructed or 0)} of the people"
        " reconstructed",
        MAX_POOLED: f"at most {percent(target.max_pooled or 0)} of the people reconstructed by"
        " pooling",
    }
    return f"{words} It misses the target: {' and '.join(missed[name] for name in misses)}."


def helped(current: Setting, found: Setting | None, chosen: Setting | None) -> str:
    """What margins would do for the current policy, unless they are in a recommendation."""
    if found is None or (chosen is not None and chosen.margins is not None):
        return ""
    adversary = f", an adversary by {found.group_error:.1%}" if found.exposes else ""
    return (
        f" With margins of ε = {found.margins_epsilon:.4g}, its counts would be off by"
        f" {found.error:.1%} instead of {current.error:.1%}{adversary}; {budget(found)}."
    )


def _broken(setting: Setting) -> str:
    if setting.sampling.leaks:
        return "Its sample sizes leak the largest exposed frequency of large groups."
    if setting.unattainable_groups:
        return f"In {setting.unattainable_groups:,} groups not even one trial is private."
    return f"Without sampling {setting.violating_groups:,} groups stay open to reconstruction."


def wish(target: Target, rho1: float) -> str:
    """What was asked for."""
    parts = []
    if target.max_error is not None:
        parts.append(f"an expected error of at most {target.max_error:g}")
    if target.rho2 is not None:
        parts.append(f"ρ1 = {rho1:g}, ρ2 = {target.rho2:g}")
    if target.min_group_error is not None:
        parts.append(f"an error of at least {target.min_group_error:g} in every group")
    if target.max_reconstructed is not None:
        parts.append(f"at most {percent(target.max_reconstructed)} of the people reconstructed")
    if target.max_pooled is not None:
        parts.append(f"at most {percent(target.max_pooled)} reconstructed by pooling")
    return listed(parts)


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
    obstacles: Sequence[Obstacle],
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
            f"It would take p = {needed.retention:.4g}{margins(needed)}: one record could then"
            f" raise a belief of {percent(rho1)} to {percent(needed.posterior)} instead of"
            f" {percent(limit)}."
        )
    said += in_the_way(target, obstacles)
    if nearest is not None:
        said.append(f"{near}: {in_words(nearest, rho1)}. {risk(nearest)}")
    return " ".join(said)


def in_the_way(target: Target, obstacles: Sequence[Obstacle]) -> list[str]:
    """Which part of a target is the obstacle, and what can be reached of it; no sentence for ρ2."""
    stated = [name for name in FIGURES if getattr(target, name) is not None]
    best = [(_NAMES[one.name], f"at best {_reachable(one)}") for one in obstacles]
    if not best:
        return ["To give up one of these targets would not be enough."] if len(stated) > 1 else []
    (name, value), others = best[0], best[1:]
    if len(stated) == 1:
        return [f"{name[0].upper()}{name[1:]} is {value}."]
    if not others:
        return [f"The obstacle is {name}: with the other targets kept, it is {value}."]
    first = f"{name}, which is {value} with the other targets kept"
    return [f"The obstacle is {', or '.join([first, *map(', '.join, others)])}."]


def _reachable(one: Obstacle) -> str:
    """The best value, rounded to what can be asked for."""
    scale = 1_000
    towards = math.floor if one.name == MIN_GROUP_ERROR else math.ceil
    return percent(towards(one.best * scale) / scale)

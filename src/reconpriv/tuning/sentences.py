"""What a sweep found, in sentences that fit wherever they are shown.

They mention no command-line option and no argument: the next step is a field of the report.
"""

from __future__ import annotations

from collections.abc import Sequence

from reconpriv.messages.numbers import brief
from reconpriv.messages.numbers import brief_percent as percent
from reconpriv.tuning.report import Setting, Target

MAX_ERROR, RHO2, MIN_GROUP_ERROR = "max_error", "rho2", "min_group_error"


def in_words(setting: Setting, rho1: float) -> str:
    """A setting in one line."""
    words = (
        f"{numbers(setting)}: count queries off by {setting.error:.1%} on average, an adversary by"
        f" {setting.group_error:.1%} in the most exposed group; {belief(setting, rho1)}"
    )
    return words if setting.margins is None else f"{words}, and {budget(setting)}"


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
        f" {setting.sample_size}{margins(setting)}"
    )


def margins(setting: Setting) -> str:
    """The margins of a setting, to follow its numbers."""
    return "" if setting.margins is None else f", margins of ε = {setting.margins_epsilon:.4g}"


def belief(setting: Setting, rho1: float) -> str:
    """What a single record reveals."""
    return f"one record raises a belief of {percent(rho1)} to at most {percent(setting.posterior)}"


def standing(current: Setting, target: Target, misses: Sequence[str], rho1: float) -> str:
    """Where the current policy stands, and which parts of the target it misses."""
    words = f"Current policy: {in_words(current, rho1)}."
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
    }
    return f"{words} It misses the target: {' and '.join(missed[name] for name in misses)}."


def helped(current: Setting, found: Setting | None, chosen: Setting | None) -> str:
    """What margins would do for the current policy, unless they are in a recommendation."""
    if found is None or (chosen is not None and chosen.margins is not None):
        return ""
    return (
        f" With margins of ε = {found.margins_epsilon:.4g}, its counts would be off by"
        f" {found.error:.1%} instead of {current.error:.1%}, an adversary by"
        f" {found.group_error:.1%}; {budget(found)}."
    )


def _broken(setting: Setting) -> str:
    if setting.sampling.leaks:
        return "Its sample sizes leak the largest frequency of large groups."
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
    return " with ".join(parts)


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
    if nearest is not None:
        said.append(f"{near}: {in_words(nearest, rho1)}.")
    return " ".join(said)

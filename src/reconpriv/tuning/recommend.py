"""The efficient ones among the settings of a sweep, and the one that fits a target."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from reconpriv.errors import PolicyError
from reconpriv.messages.shares import check_relative_error, check_share, got
from reconpriv.theory.perturbation import PRIOR
from reconpriv.tuning import sentences as words
from reconpriv.tuning.reach import (
    ROUNDING,
    MeasurePooling,
    Search,
    excess,
    missed,
    obstacles,
    within,
)
from reconpriv.tuning.report import BlockingGoal, NextStep, Setting, Target, TuneReport
from reconpriv.tuning.tuner import Tuner

# A policy is said to gain from margins if its error falls by this much.
CLEARLY = 0.1
# Errors that differ by less than this are treated as equal: a smaller budget or p is worth more.
EQUAL = 0.01
_NONE_KEEPS = "None of them keeps its promise in every group: lower p, the tolerance or the doubt."


def check_target(target: Target) -> None:
    """Refuse a target that makes no sense."""
    if target.weaker_records and (target.rho2 is not None or not target.stated):
        raise PolicyError(
            "Weaker protection of single records can be allowed only together with a target, and"
            " not together with ρ2, which sets that limit itself.",
            hint="State a target such as a largest error, and leave ρ2 out.",
        )
    if target.max_error is not None:
        check_share(target.max_error, "The expected error target", one=True)
    if target.min_group_error is not None:
        check_relative_error(target.min_group_error, "The group target")
    for how, share in (
        ("by its own records", target.max_reconstructed),
        ("together with its neighbours", target.max_pooled),
    ):
        if share is not None:
            what = f"The largest share of people whose group may be reconstructed {how}"
            check_share(share, what, hint="0.3 stands for 30 % of the people.")
    before = PRIOR if target.rho1 is None else check_share(target.rho1, "The prior ρ1")
    if target.rho2 is not None and not before < target.rho2 < 1:
        raise PolicyError(
            f"ρ2 must lie between ρ1 = {before:g} and 1; {got(target.rho2)}",
            hint="ρ1 is the belief before seeing a record, ρ2 the largest one allowed after.",
        )


def mark_efficient(settings: Sequence[Setting]) -> tuple[Setting, ...]:
    """Mark the eligible settings that no other eligible one beats.

    One beats another if its expected error is no larger, its p no larger, what its margins spend
    no more, the share above which it protects values no larger and the adversary's error in the
    most exposed group no smaller, and at least one of them is better. So neither margins nor a
    larger φ make a setting without them inefficient.
    """
    order = sorted(
        (i for i, setting in enumerate(settings) if setting.eligible),
        key=lambda i: (
            settings[i].error,
            settings[i].retention,
            settings[i].margins.rho,
            settings[i].exposed_above,
            -settings[i].group_error,
        ),
    )
    # Later settings have no smaller error, so only the rest is compared: for each budget of
    # margins, φ and p, the best group error so far among all settings with no more of any.
    budgets, shares, grid = (
        {value: k for k, value in enumerate(sorted(values))}
        for values in (
            {settings[i].margins.rho for i in order},
            {settings[i].exposed_above for i in order},
            {settings[i].retention for i in order},
        )
    )
    best = np.full((len(budgets), len(shares), len(grid)), -np.inf)
    ties: dict[tuple[float, ...], bool] = {}
    efficient = set()
    for i in order:
        one = settings[i]
        budget = one.margins.rho
        figures = (one.error, one.retention, one.group_error, one.exposed_above, budget)
        at = budgets[budget], shares[one.exposed_above], grid[one.retention]
        if ties.setdefault(figures, one.group_error > best[at]):
            efficient.add(i)
            more = best[at[0] :, at[1] :, at[2] :]
            np.maximum(more, one.group_error, out=more)
    return tuple(
        replace(setting, efficient=True) if i in efficient else setting
        for i, setting in enumerate(settings)
    )


def by_margins(settings: Iterable[Setting]) -> tuple[list[Setting], list[Setting]]:
    """The settings without margins, and those with some."""
    found: tuple[list[Setting], list[Setting]] = [], []
    for one in settings:
        found[one.spent > 0.0].append(one)
    return found


def frontier(settings: Sequence[Setting]) -> list[Setting]:
    """By error, the eligible settings in which the adversary's is larger than in all before."""
    best, found = -math.inf, []
    eligible = (s for s in settings if s.eligible and s.sampling_rule.samples)
    for one in sorted(eligible, key=lambda s: (s.error, -s.group_error, s.retention)):
        if one.group_error > best:
            best = one.group_error
            found.append(one)
    return found


def recommend(
    settings: Sequence[Setting], target: Target, limit: float = math.inf
) -> Setting | None:
    """The setting that fits a target best, among the eligible ones that reach it.

    ``limit`` is the largest posterior it may have. If the target states an error, choose the
    setting with the largest adversary's error in the most exposed group, since no more accuracy is
    asked for; the smallest share above which values are protected comes first. If the target states
    only privacy, choose the most accurate setting. Among those that hardly differ, choose the one
    whose margins spend least, and of these the one with the smallest p.
    """
    reached = [s for s in within(settings, limit) if not missed(s, target)]
    if not target.stated or not reached:
        return None
    if target.max_error is None:
        least = min(s.error for s in reached)
        best = [s for s in reached if s.error <= least * (1.0 + EQUAL)]
    else:
        # Accurate enough: protect as many values as possible.
        share = min(s.exposed_above for s in reached)
        reached = [s for s in reached if s.exposed_above == share]
        safest = max(s.group_error for s in reached)
        best = [s for s in reached if s.group_error >= safest * (1.0 - EQUAL)]

    def preference(one: Setting) -> tuple[float, ...]:
        figures = (one.error, -one.group_error)
        first, second = figures if target.max_error is None else figures[::-1]
        return one.margins.rho, one.retention, first, second, -one.doubt, -one.tolerance

    return min(best, key=preference)


def posterior_allowed(target: Target, current: Setting) -> float | None:
    """The largest posterior that a recommendation may have; None for any, if asked for."""
    if target.rho2 is not None:
        return target.rho2
    return None if target.weaker_records else current.posterior


@dataclass(frozen=True)
class Tried:
    """Settings, why other policies were refused, and why none can have margins, if so."""

    settings: tuple[Setting, ...]
    refused: tuple[PolicyError, ...]
    no_margins: str

    def __add__(self, other: Tried) -> Tried:
        return Tried(self.settings + other.settings, self.refused + other.refused, self.no_margins)


def report_on(
    tuner: Tuner,
    tried: Tried,
    current: Setting,
    with_margins: Setting | None,
    target: Target,
    rho1: float,
    measure: MeasurePooling,
) -> TuneReport:
    """Recommend a setting, or say what it would take; ``measure`` those that are described.

    ``with_margins`` is the current policy with margins, where they help.
    """
    current, every = measure(current), mark_efficient(tried.settings)
    allowed = posterior_allowed(target, current)
    limit = math.inf if allowed is None else allowed
    search = Search(every, measure)
    # The current policy may not be among those tried, and may be sufficient.
    chosen = recommend(search.reaching(target, limit), target, limit)
    chosen = chosen or recommend([current], target, limit)
    needed = nearest = None
    in_the_way: tuple[BlockingGoal, ...] = ()
    if chosen is None and target.stated:
        # What it would take, with the least harm to single records.
        reached = search.reaching(replace(target, rho2=None), math.inf)
        needed = min(reached, key=lambda s: (s.retention, -s.group_error, s.error), default=None)
        in_the_way = obstacles(search, target, limit)
        # Looking for what is in the way may have found one.
        chosen = recommend(search.measured, target, limit)
        nearest = _nearest(within(search.measured, limit) or every, target, limit, current)
    chosen = None if chosen is None else measure(chosen)
    nearest = None if nearest is None else measure(nearest)
    settings = _with_figures(every, [current, *search.measured, chosen, nearest])
    misses = missed(current, target)
    return TuneReport(
        sensitive=tuner.schema.sensitive.name,
        public=tuple(column.name for column in tuner.schema.public),
        records=tuner.records,
        groups=tuner.batch.groups,
        domain_size=tuner.schema.domain_size,
        queries=len(tuner.workload),
        rho1=rho1,
        target=target,
        current=current,
        misses=misses,
        standing=words.standing(current, target, misses, rho1)
        + words.helped(current, with_margins, chosen),
        posterior_allowed=allowed,
        settings=settings,
        recommended=chosen,
        nearest=nearest,
        needed=needed,
        obstacles=in_the_way,
        verdict=_verdict(settings, target, rho1, current, chosen, needed, nearest, in_the_way),
        remedy=_remedy(target, needed),
        with_margins=with_margins,
        left_out=len(tried.refused),
        no_margins=tried.no_margins,
    )


def _with_figures(
    settings: Sequence[Setting], measured: Iterable[Setting | None]
) -> tuple[Setting, ...]:
    """The settings, with the figure of pooling for those that have been measured."""
    known = {
        replace(one, pooled=None, efficient=False): one.pooled
        for one in measured
        if one is not None and one.pooled is not None
    }
    if not known:
        return tuple(settings)
    return tuple(
        replace(one, pooled=known.get(replace(one, pooled=None, efficient=False)))
        for one in settings
    )


def _nearest(
    settings: Sequence[Setting], target: Target, limit: float, current: Setting
) -> Setting | None:
    """The setting that comes closest to a target; the current one if no other comes closer.

    Of settings that come equally close, the strictest: a lower tolerance or doubt promises less for
    nothing.
    """
    best = min(
        within(settings, limit),
        key=lambda s: (
            excess(s, target), s.error, s.margins.rho, s.retention, -s.doubt, -s.tolerance
        ),
        default=None,
    )  # fmt: skip
    if best is None or not within([current], limit):
        return best
    as_close = excess(current, target) <= excess(best, target) + ROUNDING
    return current if as_close and current.error <= best.error * (1.0 + ROUNDING) else best


def _remedy(target: Target, needed: Setting | None) -> NextStep | None:
    if not target.stated:
        return NextStep.STATE_A_TARGET
    if needed is None:
        return None
    return NextStep.WEAKER_RECORDS if target.rho2 is None else NextStep.LARGER_RHO2


def _verdict(
    settings: Sequence[Setting],
    target: Target,
    rho1: float,
    current: Setting,
    chosen: Setting | None,
    needed: Setting | None,
    nearest: Setting | None,
    in_the_way: Sequence[BlockingGoal],
) -> str:
    tried = words.tried(settings)
    if chosen is not None:
        found = words.in_words(chosen, rho1)
        return (
            f"Recommended for {words.wish(target, rho1)}: {found}. {words.risk(chosen)} ({tried}.)"
        )
    if not any(setting.eligible for setting in settings):
        return f"{tried}. {_NONE_KEEPS}"
    if not target.stated:
        return f"{tried}. Without a target there is no recommendation."
    said = words.out_of_reach(target, rho1, current, needed, nearest, in_the_way)
    return f"{said} ({tried}.)"

"""Many policies on one table: the efficient ones, and the one that fits a target."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import product

import numpy as np

from reconpriv.core.margins import Margins, as_margins
from reconpriv.core.sample_sizes import recommended
from reconpriv.errors import PolicyError
from reconpriv.policy import Policy
from reconpriv.theory.bounds import Bound, TailBound
from reconpriv.theory.perturbation import PRIOR, retention_for_privacy
from reconpriv.tuning import sentences as words
from reconpriv.tuning.report import Remedy, Setting, Target, TuneReport
from reconpriv.tuning.tuner import Tuner

RETENTIONS = tuple(round(0.05 * i, 2) for i in range(2, 19))
EPSILONS = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
DELTAS = (0.1, 0.2, 0.3, 0.4, 0.5)
# The defaults of `publish`.
CURRENT = Policy(retention=0.5, epsilon=0.5, delta=0.3)

# None stands for no margins.
MARGINS: tuple[float | None, ...] = (None, 1.0)

_SETTINGS_AT_MOST = 200_000
# How many settings are tried with margins, at each of their ε.
_WITH_MARGINS = 48
_BESIDE = 4  # and on either side of the best of them
# Margins spend a budget of their own; they are recommended only for a gain of this much.
_CLEARLY = 0.1
# Converting ρ1 and ρ2 to p and back changes them by rounding only.
_ROUNDING = 1e-9
# Group errors that differ by less than this are treated as equal: a smaller p is worth more.
_EQUAL = 0.01


def sweep(
    tuner: Tuner,
    *,
    retentions: Iterable[float] | None = None,
    epsilons: Iterable[float] | None = None,
    deltas: Iterable[float] | None = None,
    sample_sizes: Iterable[str] | str | None = None,
    margins: Iterable[Margins | float | None] | None = None,
    bound: str | Bound | TailBound = "chernoff",
    target: Target | None = None,
    current: Policy | None = None,
) -> TuneReport:
    """Try every combination; lists that are not given default to those of this module.

    Without ``sample_sizes`` all recommended ones are tried. ``margins`` lists the ε of margins,
    None or 0 for none; by default none, and those of the current policy or ε = 1. Margins take
    longer to judge, so of many settings only those are tried with them that are the best without.
    A recommendation lets a single record reveal no more than the current policy does (that of
    ``publish`` unless another is given), or than ρ2 if the target sets it. The largest
    retention within that limit is tried as well.
    """
    wanted = Target() if target is None else target
    check_target(wanted)
    rho1 = PRIOR if wanted.rho1 is None else wanted.rho1
    in_use = CURRENT if current is None else current
    now = _standing(tuner, in_use, rho1)
    p_list = _numbers("retention", RETENTIONS if retentions is None else retentions)
    if retentions is None:
        largest = now.retention
        if wanted.rho2 is not None:
            largest = retention_for_privacy(rho1, wanted.rho2, tuner.schema.domain_size)
        p_list = sorted({*p_list, largest})
    e_list = _numbers("ε", EPSILONS if epsilons is None else epsilons)
    d_list = _numbers("δ", DELTAS if deltas is None else deltas)
    sizes = recommended() if sample_sizes is None else sample_sizes
    sizes = (sizes,) if isinstance(sizes, str) else tuple(dict.fromkeys(sizes))
    if not sizes:
        raise PolicyError("There is no sample size to try.")
    if margins is None:
        margins = MARGINS if in_use.margins is None else (None, in_use.wanted_margins)
    budgets = _budgets(margins)
    count = len(p_list) * len(e_list) * len(d_list) * len(sizes)
    if count > _SETTINGS_AT_MOST:
        raise PolicyError(
            f"{count:,} settings are more than a sweep tries at once ({_SETTINGS_AT_MOST:,}).",
            hint="Give fewer values of p, ε or δ.",
        )
    settings, left_out = [], 0
    refused: PolicyError | None = None
    for p, epsilon, delta, size in product(p_list, e_list, d_list, sizes):
        policy = Policy(p, epsilon, delta, bound=bound, sample_size=size)
        policy.check_sampling()
        try:
            settings.append(tuner.setting(policy, rho1=rho1))
        except PolicyError as error:
            left_out, refused = left_out + 1, error
    if not settings and refused is not None:
        raise refused
    found, no_margins = _beside_margins(tuner, settings, budgets, wanted, bound, now)
    helped = _with_margins(tuner, now, in_use, budgets, rho1)
    return _report(tuner, mark_efficient(found), wanted, rho1, now, helped, left_out, no_margins)


def _beside_margins(
    tuner: Tuner,
    settings: Sequence[Setting],
    budgets: Sequence[Margins | None],
    target: Target,
    bound: str | Bound | TailBound,
    now: Setting,
) -> tuple[list[Setting], str]:
    """The settings with each of the margins, and why there are none with the last, if so."""
    allowed = posterior_allowed(target, now)
    rho1 = PRIOR if target.rho1 is None else target.rho1
    found: list[Setting] = []
    no_margins = ""
    for budget in budgets:
        if budget is None:
            found += settings
            continue
        tried = _worth_margins(settings, allowed)
        more, reason = _try_margins(tuner, _policies(tried, bound), budget, rho1)
        if reason is not None and None not in budgets:
            raise reason
        no_margins = "" if reason is None else reason.what
        best = recommend(more, target, math.inf if allowed is None else allowed)
        if best is not None:
            near = [s for s in _around(settings, best, allowed) if s not in tried]
            more += _try_margins(tuner, _policies(near, bound), budget, rho1)[0]
        found += more
    return found, no_margins


def _policies(settings: Sequence[Setting], bound: str | Bound | TailBound) -> list[Policy]:
    return [
        Policy(s.retention, s.epsilon, s.delta, bound=bound, sample_size=s.sample_size)
        for s in settings
    ]


def _try_margins(
    tuner: Tuner, policies: Sequence[Policy], margins: Margins, rho1: float
) -> tuple[list[Setting], PolicyError | None]:
    """The policies with margins, or why none of them can have any."""
    found, refused = [], None
    for policy in policies:
        try:
            found.append(tuner.setting(replace(policy, margins=margins), rho1=rho1))
        except PolicyError as error:
            refused = error
    return found, None if found else refused


def _budgets(margins: Iterable[Margins | float | None]) -> list[Margins | None]:
    """The margins to try, the least revealing first; 0 is none."""
    found = {as_margins(one or None) for one in margins}
    if not found:
        raise PolicyError("There are no margins to try.", hint="0 stands for none.")
    return sorted(found, key=_spent)


def _spent(margins: Margins | None) -> float:
    """What margins spend: ρ, by which they compose."""
    return 0.0 if margins is None else margins.rho


def _worth_margins(settings: Sequence[Setting], limit: float | None) -> list[Setting]:
    """The settings to try with margins: all, or an even choice of the best without them.

    Half of the choice is within the limit of what a single record may reveal.
    """
    if len(settings) <= _WITH_MARGINS:
        return list(settings)
    some = _WITH_MARGINS if limit is None else _WITH_MARGINS // 2
    chosen = _spread(frontier(settings), some)
    if limit is not None:
        chosen += _spread(frontier(within(settings, limit)), some)
    return list(dict.fromkeys(chosen))


def _around(settings: Sequence[Setting], best: Setting, limit: float | None) -> list[Setting]:
    """The settings beside the best one, which may have been passed over."""
    front = frontier(settings if limit is None else within(settings, limit))
    for i, one in enumerate(front):
        if _numbers_of(one) == _numbers_of(best):
            return front[max(i - _BESIDE, 0) : i + _BESIDE + 1]
    return []


def _numbers_of(setting: Setting) -> tuple[float | str, ...]:
    return setting.retention, setting.epsilon, setting.delta, setting.sample_size


def frontier(settings: Sequence[Setting]) -> list[Setting]:
    """By error, the eligible settings in which the adversary's is larger than in all before."""
    best, found = -math.inf, []
    eligible = (s for s in settings if s.eligible and s.sampling.samples)
    for one in sorted(eligible, key=lambda s: (s.error, -s.group_error, s.retention)):
        if one.group_error > best:
            best = one.group_error
            found.append(one)
    return found


def _spread(settings: Sequence[Setting], most: int) -> list[Setting]:
    if len(settings) <= most:
        return list(settings)
    step = (len(settings) - 1) / (most - 1)
    return [settings[round(i * step)] for i in range(most)]


def _with_margins(
    tuner: Tuner, now: Setting, policy: Policy, budgets: Sequence[Margins | None], rho1: float
) -> Setting | None:
    """The current policy with the first margins that help, if it has none."""
    if now.margins is not None or not now.eligible:
        return None
    for budget in budgets:
        if budget is None:
            continue
        more, _ = _try_margins(tuner, [policy], budget, rho1)
        if not more:
            continue
        found = more[0]
        as_safe = found.group_error >= now.group_error * (1.0 - _EQUAL)
        if found.eligible and as_safe and found.error <= now.error * (1.0 - _CLEARLY):
            return found
    return None


def _standing(tuner: Tuner, policy: Policy, rho1: float) -> Setting:
    """The figures of the current policy."""
    try:
        return tuner.setting(policy, rho1=rho1)
    except PolicyError as error:
        raise PolicyError(
            f"The current policy cannot be judged: {error.what}", hint=error.advice
        ) from error


def check_target(target: Target) -> None:
    """Refuse a target that makes no sense."""
    if target.weaker_records and (target.rho2 is not None or not target.stated):
        raise PolicyError(
            "Weaker protection of single records can be allowed only together with a target, and"
            " not together with ρ2, which sets that limit itself.",
            hint="State a target such as a largest error, and leave ρ2 out.",
        )
    for name, value in (("expected error", target.max_error), ("group", target.min_group_error)):
        if value is not None and not (math.isfinite(value) and value > 0):
            raise PolicyError(f"The {name} target must be above 0; got {value:g}.")
    if target.rho1 is not None and not 0 < target.rho1 < 1:
        raise PolicyError(f"The prior ρ1 must lie strictly between 0 and 1; got {target.rho1:g}.")
    before = PRIOR if target.rho1 is None else target.rho1
    if target.rho2 is not None and not before < target.rho2 < 1:
        raise PolicyError(
            f"ρ2 must lie between ρ1 = {before:g} and 1; got {target.rho2:g}.",
            hint="ρ1 is the belief before seeing a record, ρ2 the largest one allowed after.",
        )


def mark_efficient(settings: Sequence[Setting]) -> tuple[Setting, ...]:
    """Mark the eligible settings that no other eligible one beats.

    One beats another if its expected error is no larger, its p no larger, what its margins spend
    no more and the adversary's error in the most exposed group no smaller, and at least one of the
    four is better. So margins do not make a setting without them inefficient.
    """
    order = sorted(
        (i for i, setting in enumerate(settings) if setting.eligible),
        key=lambda i: (
            settings[i].error,
            settings[i].retention,
            _spent(settings[i].margins),
            -settings[i].group_error,
        ),
    )
    # Later settings have no smaller error, so only the rest is compared: for each p and each budget
    # of margins, the best group error so far among all settings with no more of either.
    grid = sorted({settings[i].retention for i in order})
    position = {p: k for k, p in enumerate(grid)}
    budgets = sorted({_spent(settings[i].margins) for i in order})
    best = np.full((len(budgets), len(grid)), -np.inf)
    ties: dict[tuple[float, ...], bool] = {}
    efficient = set()
    for i in order:
        one = settings[i]
        spent = _spent(one.margins)
        figures = (one.error, one.retention, one.group_error, spent)
        b, k = budgets.index(spent), position[one.retention]
        if ties.setdefault(figures, one.group_error > best[b, k]):
            efficient.add(i)
            best[b:, k:] = np.maximum(best[b:, k:], one.group_error)
    return tuple(
        replace(setting, efficient=True) if i in efficient else setting
        for i, setting in enumerate(settings)
    )


def recommend(
    settings: Sequence[Setting], target: Target, limit: float = math.inf
) -> Setting | None:
    """The setting that fits a target best, among the eligible ones that reach it.

    ``limit`` is the largest posterior it may have. If the target states an error, choose the
    setting with the largest adversary's error in the most exposed group, since no more accuracy is
    asked for; among those that hardly differ, the one with the smallest p. If it states only
    privacy, choose the most accurate setting. Margins, which spend a budget of their own, must
    make a clear difference.
    """
    if not target.stated:
        return None
    reached = [s for s in within(settings, limit) if not missed(s, target)]
    best: Setting | None = None
    for spent in sorted({_spent(s.margins) for s in reached}):
        one = _best([s for s in reached if _spent(s.margins) == spent], target)
        if best is None or _clearly_better(one, best, target):
            best = one
    return best


def _clearly_better(one: Setting, other: Setting, target: Target) -> bool:
    """Whether a setting is clearly better in what a target leaves open."""
    if target.max_error is None:
        return one.error <= other.error * (1.0 - _CLEARLY)
    return one.group_error >= other.group_error * (1.0 + _CLEARLY)


def _best(reached: Sequence[Setting], target: Target) -> Setting:
    if target.max_error is None:
        return min(reached, key=lambda s: (s.error, s.retention, -s.delta, -s.epsilon))
    safest = max(s.group_error for s in reached)
    return min(
        (s for s in reached if s.group_error >= safest * (1.0 - _EQUAL)),
        key=lambda s: (s.retention, -s.group_error, s.error, -s.delta, -s.epsilon),
    )


def within(settings: Sequence[Setting], limit: float) -> list[Setting]:
    """The eligible settings with a posterior of at most this limit."""
    return [s for s in settings if s.eligible and s.posterior <= limit * (1.0 + _ROUNDING)]


def excess(setting: Setting, target: Target) -> float:
    """By how much a setting misses a target: the largest relative excess; 0 if it does not."""
    return max([0.0, *_excesses(setting, target).values()])


def missed(setting: Setting, target: Target) -> tuple[str, ...]:
    """The parts of a target that a setting misses, by field name."""
    found = _excesses(setting, target)
    return tuple(name for name, miss in found.items() if miss > _ROUNDING)


def _excesses(setting: Setting, target: Target) -> dict[str, float]:
    found = {}
    if target.max_error is not None:
        found[words.MAX_ERROR] = setting.error / target.max_error - 1.0
    if target.rho2 is not None:
        found[words.RHO2] = setting.posterior / target.rho2 - 1.0
    if target.min_group_error is not None:
        found[words.MIN_GROUP_ERROR] = target.min_group_error / setting.group_error - 1.0
    return found


def posterior_allowed(target: Target, current: Setting) -> float | None:
    """The largest posterior that a recommendation may have; None for any, if asked for."""
    if target.rho2 is not None:
        return target.rho2
    return None if target.weaker_records else current.posterior


def _report(
    tuner: Tuner,
    settings: tuple[Setting, ...],
    target: Target,
    rho1: float,
    current: Setting,
    with_margins: Setting | None,
    left_out: int,
    no_margins: str,
) -> TuneReport:
    allowed = posterior_allowed(target, current)
    limit = math.inf if allowed is None else allowed
    # The current policy may not be among those tried, and may be sufficient.
    chosen = recommend(settings, target, limit) or recommend([current], target, limit)
    needed = nearest = None
    if chosen is None and target.stated:
        # What it would take, with the least harm to single records.
        lifted = replace(target, rho2=None)
        reached = [s for s in within(settings, math.inf) if not missed(s, lifted)]
        needed = min(reached, key=lambda s: (s.retention, -s.group_error, s.error), default=None)
        nearest = _nearest(settings, target, limit, current)
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
        verdict=_verdict(settings, target, rho1, current, chosen, needed, nearest),
        remedy=_remedy(target, needed),
        with_margins=with_margins,
        left_out=left_out,
        no_margins=no_margins,
    )


def _nearest(
    settings: Sequence[Setting], target: Target, limit: float, current: Setting
) -> Setting | None:
    """The setting that comes closest to a target; the current one if no other comes closer.

    Of settings that come equally close, the strictest: a lower ε or δ promises less for nothing.
    Margins must come clearly closer.
    """
    best: Setting | None = None
    eligible = within(settings, limit)
    for spent in sorted({_spent(s.margins) for s in eligible}):
        one = min(
            (s for s in eligible if _spent(s.margins) == spent),
            key=lambda s: (excess(s, target), s.error, s.retention, -s.delta, -s.epsilon),
        )
        clearly = best is None or 1.0 + excess(one, target) <= (1.0 - _CLEARLY) * (
            1.0 + excess(best, target)
        )
        best = one if clearly else best
    if best is None or not within([current], limit):
        return best
    as_close = excess(current, target) <= excess(best, target) + _ROUNDING
    return current if as_close and current.error <= best.error * (1.0 + _ROUNDING) else best


def _remedy(target: Target, needed: Setting | None) -> Remedy | None:
    if not target.stated:
        return Remedy.STATE_A_TARGET
    if needed is None:
        return None
    return Remedy.WEAKER_RECORDS if target.rho2 is None else Remedy.LARGER_RHO2


def _verdict(
    settings: Sequence[Setting],
    target: Target,
    rho1: float,
    current: Setting,
    chosen: Setting | None,
    needed: Setting | None,
    nearest: Setting | None,
) -> str:
    tried = words.tried(settings)
    if chosen is not None:
        found = words.in_words(chosen, rho1)
        return f"Recommended for {words.wish(target, rho1)}: {found}. ({tried}.)"
    if not any(setting.eligible for setting in settings):
        return f"{tried}. None of them keeps its promise in every group: lower p, ε or δ."
    if not target.stated:
        return f"{tried}. Without a target there is no recommendation."
    return f"{words.out_of_reach(target, rho1, current, needed, nearest)} ({tried}.)"


def _numbers(name: str, values: Iterable[float]) -> list[float]:
    found = sorted({float(value) for value in values})
    if not found:
        raise PolicyError(f"There is no {name} to try.")
    return found

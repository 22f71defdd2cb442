"""Many policies on one table: the efficient ones, and the one that a target asks for."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import product

import numpy as np

from reconpriv.errors import PolicyError
from reconpriv.policy import Policy
from reconpriv.theory.bounds import Bound, TailBound
from reconpriv.theory.perturbation import PRIOR, retention_for_privacy
from reconpriv.tuning.report import Setting, Target, TuneReport
from reconpriv.tuning.tuner import Tuner

RETENTIONS = tuple(round(0.05 * i, 2) for i in range(2, 19))
EPSILONS = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
DELTAS = (0.1, 0.2, 0.3, 0.4, 0.5)
SIZES = ("octave", "public")

_SETTINGS_AT_MOST = 200_000
# p from ρ1 and ρ2 and back again is the same up to rounding.
_ROUNDING = 1e-9


def sweep(
    tuner: Tuner,
    *,
    retentions: Iterable[float] | None = None,
    epsilons: Iterable[float] | None = None,
    deltas: Iterable[float] | None = None,
    sample_sizes: Iterable[str] | str | None = None,
    bound: str | Bound | TailBound = "chernoff",
    target: Target | None = None,
) -> TuneReport:
    """Try every combination; lists that are not given are the defaults of this module.

    With ρ1 and ρ2 in the target the largest retention that keeps them is tried as well.
    """
    wanted = Target() if target is None else target
    check_target(wanted)
    rho1 = PRIOR if wanted.rho1 is None else wanted.rho1
    p_list = _numbers("retention", RETENTIONS if retentions is None else retentions)
    if wanted.rho2 is not None and retentions is None:
        largest = retention_for_privacy(rho1, wanted.rho2, tuner.schema.domain_size)
        p_list = sorted({*p_list, largest})
    e_list = _numbers("ε", EPSILONS if epsilons is None else epsilons)
    d_list = _numbers("δ", DELTAS if deltas is None else deltas)
    sizes = SIZES if sample_sizes is None else sample_sizes
    sizes = (sizes,) if isinstance(sizes, str) else tuple(dict.fromkeys(sizes))
    if not sizes:
        raise PolicyError("There is no sample size to try.")
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
    return _report(tuner, mark_efficient(settings), wanted, rho1, left_out)


def check_target(target: Target) -> None:
    """Refuse a target that makes no sense."""
    for name, value in (("expected error", target.max_error), ("group", target.min_group_error)):
        if value is not None and not (math.isfinite(value) and value > 0):
            raise PolicyError(f"The {name} target must be above 0; got {value:g}.")
    if target.rho1 is not None and not 0 < target.rho1 < 1:
        raise PolicyError(f"The prior ρ1 must lie strictly between 0 and 1; got {target.rho1:g}.")
    before = PRIOR if target.rho1 is None else target.rho1
    if target.rho2 is not None and not before < target.rho2 < 1:
        raise PolicyError(
            f"ρ2 must lie between ρ1 = {before:g} and 1; got {target.rho2:g}.",
            hint="ρ1 is the belief before, ρ2 the largest belief allowed after.",
        )


def mark_efficient(settings: Sequence[Setting]) -> tuple[Setting, ...]:
    """Mark the eligible settings that no other eligible one beats.

    One beats another where its expected error is no larger, its p no larger and the adversary's
    error in the best told group no smaller, and one of the three is better.
    """
    order = sorted(
        (i for i, setting in enumerate(settings) if setting.eligible),
        key=lambda i: (settings[i].error, settings[i].retention, -settings[i].group_error),
    )
    # Whoever comes later has no smaller error, so only p and the group error are compared: by
    # p, the best group error so far of all that have at most this p.
    grid = sorted({settings[i].retention for i in order})
    position = {p: k for k, p in enumerate(grid)}
    best = np.full(len(grid), -np.inf)
    ties: dict[tuple[float, float, float], bool] = {}
    efficient = set()
    for i in order:
        one = settings[i]
        figures = (one.error, one.retention, one.group_error)
        k = position[one.retention]
        if ties.setdefault(figures, one.group_error > best[k]):
            efficient.add(i)
            best[k:] = np.maximum(best[k:], one.group_error)
    return tuple(
        replace(setting, efficient=True) if i in efficient else setting
        for i, setting in enumerate(settings)
    )


def recommend(settings: Sequence[Setting], target: Target) -> Setting | None:
    """The setting that a target asks for, among the eligible ones that reach it.

    Where an error is stated, the one whose best told group is told worst: no more accuracy than is
    asked. Where only privacy is stated, the most accurate one.
    """
    reached = [s for s in settings if s.eligible and excess(s, target) <= _ROUNDING]
    if not reached or not target.stated:
        return None
    if target.max_error is None:
        return min(reached, key=lambda s: (s.error, s.retention, -s.delta, -s.epsilon))
    return min(reached, key=lambda s: (-s.group_error, s.retention, s.error, -s.delta, -s.epsilon))


def excess(setting: Setting, target: Target) -> float:
    """How far a setting misses a target, as the largest of the relative excesses; 0: not at all."""
    misses = [0.0]
    if target.max_error is not None:
        misses.append(setting.error / target.max_error - 1.0)
    if target.rho2 is not None:
        misses.append(setting.posterior / target.rho2 - 1.0)
    if target.min_group_error is not None:
        misses.append(target.min_group_error / setting.group_error - 1.0)
    return max(misses)


def _report(
    tuner: Tuner, settings: tuple[Setting, ...], target: Target, rho1: float, left_out: int
) -> TuneReport:
    chosen = recommend(settings, target)
    nearest = None
    eligible = [setting for setting in settings if setting.eligible]
    if chosen is None and target.stated and eligible:
        nearest = min(eligible, key=lambda s: (excess(s, target), s.error))
    return TuneReport(
        sensitive=tuner.schema.sensitive.name,
        public=tuple(column.name for column in tuner.schema.public),
        records=tuner.records,
        groups=tuner.batch.groups,
        domain_size=tuner.schema.domain_size,
        queries=len(tuner.workload),
        rho1=rho1,
        target=target,
        settings=settings,
        recommended=chosen,
        nearest=nearest,
        verdict=_verdict(settings, target, chosen, nearest),
        left_out=left_out,
    )


def _verdict(
    settings: Sequence[Setting], target: Target, chosen: Setting | None, nearest: Setting | None
) -> str:
    efficient = sum(setting.efficient for setting in settings)
    tried = f"{len(settings):,} settings tried, {efficient:,} efficient"
    if not any(setting.eligible for setting in settings):
        return f"{tried}. None of them keeps its promise in every group: lower p, ε or δ."
    if not target.stated:
        return f"{tried}. State a target, such as --max-error 0.1, for a recommendation."
    wish = _wish(target)
    if chosen is not None:
        return f"Recommended for {wish}: {in_words(chosen)}. ({tried}.)"
    assert nearest is not None
    return f"No setting reaches {wish}. Nearest: {in_words(nearest)}. ({tried}.)"


def _wish(target: Target) -> str:
    parts = []
    if target.max_error is not None:
        parts.append(f"an expected error of at most {target.max_error:g}")
    if target.rho2 is not None:
        rho1 = PRIOR if target.rho1 is None else target.rho1
        parts.append(f"ρ1 = {rho1:g}, ρ2 = {target.rho2:g}")
    if target.min_group_error is not None:
        parts.append(f"an error of at least {target.min_group_error:g} in every group")
    return " with ".join(parts)


def in_words(setting: Setting) -> str:
    """A setting in one line."""
    return (
        f"p = {setting.retention:.4g}, ε = {setting.epsilon:g}, δ = {setting.delta:g}, sample size"
        f" {setting.sample_size}: queries off by {setting.error:.1%} on average, the best told"
        f" group by {setting.group_error:.1%}, posterior at most {setting.posterior:.2f}"
    )


def _numbers(name: str, values: Iterable[float]) -> list[float]:
    found = sorted({float(value) for value in values})
    if not found:
        raise PolicyError(f"There is no {name} to try.")
    return found

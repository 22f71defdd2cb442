"""Which settings reach a target, and which part of it is in the way where none does."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from reconpriv.policy.policy import Policy
from reconpriv.tuning.report import BlockingGoal, Setting, Target


@dataclass(frozen=True)
class Goal:
    """A part of a target: its field in :class:`Target`, and the figure of a setting that it limits.

    ``least`` says that it is a lower limit. In words, ``name`` is the figure, ``missed`` what a
    setting misses and ``wished`` what was asked for; each takes the limit.
    """

    field: str
    figure: str
    name: str
    missed: str
    wished: str = ""
    least: bool = False

    def excess(self, setting: Setting, target: Target) -> float | None:
        """By how much a setting is beyond the limit, relatively; None without limit or figure."""
        limit, figure = getattr(target, self.field), getattr(setting, self.figure)
        if limit is None or figure is None:
            return None
        return float(limit / figure if self.least else figure / limit) - 1.0


MAX_ERROR, RHO2, MIN_GROUP_ERROR = "max_error", "rho2", "min_group_error"
MAX_RECONSTRUCTED, MAX_POOLED = "max_reconstructed", "max_pooled"
GOALS = (
    Goal(
        MAX_ERROR,
        "error",
        "the error",
        "an error of at most {percent}",
        "an expected error of at most {limit:g}",
    ),
    Goal(
        RHO2,
        "posterior",
        "the belief",
        "a belief of at most {percent}",
        "ρ1 = {rho1:g}, ρ2 = {limit:g}",
    ),
    Goal(
        MIN_GROUP_ERROR,
        "group_error",
        "the adversary's error in the most exposed group",
        "an adversary's error of at least {percent} in every group",
        "an error of at least {limit:g} in every group",
        least=True,
    ),
    Goal(
        MAX_RECONSTRUCTED,
        "reconstructed",
        "the share of people reconstructed",
        "at most {percent} of the people reconstructed",
    ),
    Goal(
        MAX_POOLED,
        "pooled",
        "the share of people reconstructed by pooling",
        "at most {percent} of the people reconstructed by pooling",
        "at most {percent} reconstructed by pooling",
    ),
)
# Converting ρ1 and ρ2 to p and back changes them by rounding only.
ROUNDING = 1e-9
# At most so many settings are all measured where the limit of pooling is looked for.
_MEASURED_AT_MOST = 24


def within(settings: Iterable[Setting], limit: float) -> list[Setting]:
    """The eligible settings with a posterior of at most this limit."""
    return [s for s in settings if s.eligible and within_limit(s.posterior, limit)]


def within_limit(posterior: float, limit: float) -> bool:
    """True if a posterior is at most this, but for rounding."""
    return posterior <= limit * (1.0 + ROUNDING)


def excess(setting: Setting, target: Target) -> float:
    """By how much a setting misses a target: the largest relative excess; 0 if it does not."""
    return max([0.0, *excesses(setting, target).values()])


def missed(setting: Setting, target: Target) -> tuple[str, ...]:
    """The parts of a target that a setting misses, by field name."""
    found = excesses(setting, target)
    return tuple(name for name, miss in found.items() if miss > ROUNDING)


def excesses(setting: Setting, target: Target) -> dict[str, float]:
    """By how much a setting exceeds each part of a target, relatively; negative if it does not.

    What pooling tells counts only where it was measured.
    """
    found = {goal.field: goal.excess(setting, target) for goal in GOALS}
    return {name: miss for name, miss in found.items() if miss is not None}


MeasurePooling = Callable[[Setting], Setting]
"""What adds to a setting the figure of an adversary who pools groups."""


@dataclass(frozen=True)
class Search:
    """The settings of a sweep; what pooling tells is measured where a target limits it."""

    settings: Sequence[Setting]
    measure: MeasurePooling
    _measured: dict[Policy, Setting] = field(default_factory=dict, repr=False)

    @property
    def measured(self) -> list[Setting]:
        """The settings that have been measured so far."""
        return list(self._measured.values())

    def reaching(self, target: Target, limit: float) -> list[Setting]:
        """The settings that reach a target with a posterior of at most this limit.

        If it limits what pooling tells, only settings that were measured.
        """
        rest = [s for s in within(self.settings, limit) if not missed(s, target)]
        if target.max_pooled is None:
            return rest
        few = len(rest) <= _MEASURED_AT_MOST
        asked = self.least_pooled(rest) if few else self._around_the_limit(rest, target)
        return [s for s in asked if not missed(s, target)]

    def least_pooled(self, settings: Sequence[Setting]) -> list[Setting]:
        """Those of these settings whose trials tell least in all, measured."""
        told = sorted(settings, key=lambda s: s.retention**2 * s.trials)
        return [self._known(one) for one in told[:_MEASURED_AT_MOST]]

    def _around_the_limit(self, settings: Sequence[Setting], target: Target) -> list[Setting]:
        """Some of many settings with their figure of pooling, around the most accurate one within.

        Each takes up to seconds, so only those are asked about that reconstruct fewer people than
        every more accurate one. Pooling tells less along that list, nearly always, so its limit is
        found by halving. If none of them is within it, those are asked that tell least.
        """
        front: list[Setting] = []
        for one in sorted(settings, key=lambda s: (s.error, s.reconstructed)):
            if not front or one.reconstructed < front[-1].reconstructed:
                front.append(one)
        found = [self._known(front[-1])]
        low, high = 0, len(front) - 1
        while low < high and MAX_POOLED not in missed(found[0], target):
            middle = (low + high) // 2
            found.append(self._known(front[middle]))
            too_much = MAX_POOLED in missed(found[-1], target)
            low, high = (middle + 1, high) if too_much else (low, middle)
        return found if MAX_POOLED not in missed(found[0], target) else self.least_pooled(settings)

    def _known(self, setting: Setting) -> Setting:
        if setting.policy not in self._measured:
            self._measured[setting.policy] = self.measure(setting)
        return self._measured[setting.policy]


def obstacles(search: Search, target: Target, limit: float) -> tuple[BlockingGoal, ...]:
    """The parts of a target without any one of which the others can be reached, nearest first."""
    found = []
    for goal in GOALS:
        name = goal.field
        # ρ2 limits what settings are allowed at all.
        if name == RHO2 or getattr(target, name) is None:
            continue
        lifted: dict[str, Any] = {name: None}
        rest = search.reaching(replace(target, **lifted), limit)
        if name == MAX_POOLED:
            rest = search.least_pooled(rest)
        if rest:
            miss, best = min(
                ((excesses(one, target)[name], one) for one in rest), key=lambda pair: pair[0]
            )
            found.append((miss, BlockingGoal(name, getattr(best, goal.figure), best)))
    return tuple(one for _, one in sorted(found, key=lambda pair: pair[0]))

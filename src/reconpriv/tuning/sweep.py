"""Many policies on one table, each with its figures."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import product
from typing import Any

from reconpriv.errors import PolicyError
from reconpriv.policy.exposure import check_exposed_above
from reconpriv.policy.margin_settings import NO_MARGINS, Margins, as_margins
from reconpriv.policy.policy import Policy
from reconpriv.policy.presets import DEFAULT, no_margins_reason
from reconpriv.policy.sampling_rules import recommended
from reconpriv.theory.perturbation import PRIOR, posterior_limit, retention_for_privacy
from reconpriv.theory.tails.bounds import Bound, TailBound
from reconpriv.tuning.reach import MeasurePooling, within_limit
from reconpriv.tuning.recommend import (
    CLEARLY,
    EQUAL,
    Tried,
    check_target,
    posterior_allowed,
    report_on,
)
from reconpriv.tuning.report import Setting, Target, TuneReport
from reconpriv.tuning.tuner import Tuner

# The defaults of `publish`.
CURRENT = DEFAULT.policy
# Margins for a policy that has none.
USUAL_MARGINS = Margins(1.0)

GoOn = Callable[[int, int], bool]
"""Asked before each setting, with how many were tried and how many there are."""

Judge = Callable[[Policy], Setting]
"""The figures of a policy, its risk by what the current one calls exposed."""

_SETTINGS_AT_MOST = 200_000
_MOVED = ("retention", "tolerance", "doubt")


@dataclass(frozen=True)
class SweptValues:
    """What is tried of p, tolerance and doubt; without a tolerance, that of the current policy."""

    retentions: tuple[float, ...]
    tolerances: tuple[float, ...]
    doubts: tuple[float, ...]

    @classmethod
    def of(cls, bound: Bound, margins: Sequence[Margins]) -> SweptValues:
        """The values for a bound; fewer where a setting takes long to judge."""
        if bound.exact:
            return EXACT
        return FINE if [*margins] == [NO_MARGINS] else COARSE


# With exact tails doubt is a probability, so it is small, and tolerance is part of what is signed;
# with a larger p, not even one trial keeps the promise.
EXACT = SweptValues((0.2, 0.3, 0.4, 0.5, 0.6), (), (0.01, 0.05, 0.1))
FINE = SweptValues(
    tuple(round(0.05 * i, 2) for i in range(2, 19)),
    (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9),
    (0.1, 0.2, 0.3, 0.4, 0.5),
)
COARSE = SweptValues(FINE.retentions[::2], FINE.tolerances[::2], FINE.doubts[::2])


def sweep(
    tuner: Tuner,
    *,
    retentions: Iterable[float] | None = None,
    tolerances: Iterable[float] | None = None,
    doubts: Iterable[float] | None = None,
    samplings: Iterable[str] | str | None = None,
    exposed_above: Iterable[float] | None = None,
    margins: Iterable[Margins | float | None] | None = None,
    bound: str | Bound | TailBound | None = None,
    target: Target | None = None,
    current: Policy | None = None,
    pooled: Callable[[Policy], float] | None = None,
    risk: bool = True,
    decimals: int | None = None,
    go_on: GoOn | None = None,
) -> TuneReport:
    """Try every combination; what is not listed is that of the current policy, or as follows.

    The current policy is that of ``publish`` unless another is given. Of p, tolerance and doubt the
    values of this module are tried, and the largest p that single records allow: a recommendation
    lets one record reveal no more than the current policy does, or than ρ2 if the target sets it.
    ``margins`` lists the ε of margins, None or 0 for none. With margins a setting takes long to
    judge, so larger p and other sampling rules than the current one, unless they are listed, are
    tried only if the target is not reached without them; otherwise all recommended rules are. Where
    no margins can be published, settings without are tried instead.

    The current policy also says what counts as exposed where the risk of every setting is counted.
    ``pooled`` measures what an adversary learns who looks beyond each group; it is asked about the
    settings that the report describes. Without ``risk``, that of the current policy alone is
    counted, which is quicker. ``decimals`` rounds the largest retention down, for those who can set
    no other. ``go_on`` may end the search early: it tries the settings closest to the current
    policy first.
    """
    wanted = Target() if target is None else target
    check_target(wanted)
    if wanted.max_pooled is not None and pooled is None:
        raise PolicyError("A limit on what pooling tells can be kept only where it is measured.")
    rho1 = PRIOR if wanted.rho1 is None else wanted.rho1
    in_use = CURRENT if current is None else current
    now = _standing(tuner, in_use, rho1)
    base = replace(in_use, bound=in_use.bound if bound is None else bound, margins=None)
    listed, wished = (False, [in_use.wanted_margins]) if margins is None else (True, margins)
    budgets = _budgets(wished)
    usual = SweptValues.of(base.tail_bound, budgets)
    p_list = _numbers("retention", usual.retentions if retentions is None else retentions)
    if retentions is None:
        largest = now.retention
        if wanted.rho2 is not None:
            largest = retention_for_privacy(rho1, wanted.rho2, tuner.schema.domain_size)
            largest = rounded_down(largest, decimals) or largest
        p_list = sorted({*p_list, largest})
    every_tolerance = usual.tolerances or (in_use.tolerance,)
    rules = recommended() if samplings is None else samplings
    rules = (rules,) if isinstance(rules, str) else tuple(dict.fromkeys(rules))
    if not rules:
        raise PolicyError("There is no sampling rule to try.")
    shares = [base.exposed_above] if exposed_above is None else exposed_above
    policies = _grid(
        base,
        exposed_above=_numbers("φ", map(check_exposed_above, shares)),
        retention=p_list,
        tolerance=_numbers("tolerance", every_tolerance if tolerances is None else tolerances),
        doubt=_numbers("doubt", usual.doubts if doubts is None else doubts),
        sampling=rules,
    )
    allowed = posterior_allowed(wanted, now)

    def first_choice(policy: Policy) -> bool:
        belief = posterior_limit(policy.retention, tuner.schema.domain_size, rho1)
        strong = allowed is None or within_limit(belief, allowed)
        as_now = policy.sampling == in_use.sampling or in_use.sampling not in rules
        return (strong or retentions is not None) and (as_now or samplings is not None)

    judge = partial(tuner.setting, rho1=rho1, exposing=in_use, risk=risk)
    slow = budgets != [NO_MARGINS]
    first: list[Policy] = []
    later: list[Policy] = []
    for policy in policies:
        (first if not slow or first_choice(policy) else later).append(policy)
    course = _Course(in_use, len(first) * len(budgets), go_on)
    tried = _tried(judge, first, budgets, listed=listed, course=course)
    if not tried.settings and tried.refused:
        raise tried.refused[-1]
    offered = next((one for one in budgets if one.rho), USUAL_MARGINS)
    helped = None
    leaves_out = no_margins_reason(in_use, tuner.schema)
    if not in_use.margins and not leaves_out and (slow or not listed):
        helped = _with_margins(judge, now, replace(in_use, margins=offered))
    measure = _measuring(pooled)

    def reported(tried: Tried) -> TuneReport:
        return report_on(tuner, tried, now, helped, wanted, rho1, measure)

    report = reported(tried)
    if report.recommended is not None or not wanted.stated or not later:
        return report
    course.settings += len(later) * len(budgets)
    return reported(tried + _tried(judge, later, budgets, listed=listed, course=course))


def usual_unless(policy: Policy) -> Margins:
    """The margins of a policy, or the usual ones if it has none."""
    return policy.wanted_margins or USUAL_MARGINS


def rounded_down(retention: float, decimals: int | None) -> float:
    """A retention with this many decimals, if any, that protects no less."""
    if decimals is None:
        return retention
    scale = 10.0**decimals
    return math.floor(retention * scale + 1e-6) / scale


def _grid(base: Policy, **lists: Sequence[Any]) -> list[Policy]:
    """The policy with every combination of these fields, without margins."""
    count = math.prod(map(len, lists.values()))
    if count > _SETTINGS_AT_MOST:
        raise PolicyError(
            f"{count:,} settings are more than a sweep tries at once ({_SETTINGS_AT_MOST:,}).",
            hint="Give fewer values of p, tolerance or doubt.",
        )
    found = [
        replace(base, **dict(zip(lists, values, strict=True)))
        for values in product(*lists.values())
    ]
    for policy in found:
        policy.check_sampling()
    return found


@dataclass
class _Course:
    """How far a search has come, around the policy in use, and whether it goes on."""

    around: Policy
    settings: int
    go_on: GoOn | None
    tried: int = 0

    def order(self, policies: Sequence[Policy]) -> list[int]:
        """In which order to try: as they are listed, or the closest first if it may end early."""
        places = list(range(len(policies)))
        return (
            places if self.go_on is None else sorted(places, key=lambda i: self._far(policies[i]))
        )

    def _far(self, policy: Policy) -> tuple[bool, float]:
        pairs = ((getattr(policy, name), getattr(self.around, name)) for name in _MOVED)
        return policy.sampling != self.around.sampling, sum(abs(a - b) for a, b in pairs)

    def next(self) -> bool:
        """True if one more setting is to be tried."""
        if self.go_on is not None and not self.go_on(self.tried, self.settings):
            return False
        self.tried += 1
        return True


def _tried(
    judge: Judge,
    policies: Sequence[Policy],
    budgets: Sequence[Margins],
    *,
    listed: bool,
    course: _Course,
) -> Tried:
    """The policies with each of the margins; without any if none can be published.

    Margins that were ``listed`` on their own are refused instead.
    """
    settings: list[Setting] = []
    refused: list[PolicyError] = []
    no_margins = ""
    for budget in budgets:
        some = [replace(one, margins=budget) for one in policies]
        more, why = _judged(judge, some, course)
        if budget.rho and why and not more and (not listed or NO_MARGINS in budgets):
            no_margins = why[-1].what
            more, why = ([], []) if listed else _judged(judge, policies, course)
        settings += more
        refused += why
    return Tried(tuple(settings), tuple(refused), no_margins)


def _judged(
    judge: Judge, policies: Sequence[Policy], course: _Course
) -> tuple[list[Setting], list[PolicyError]]:
    """The settings, as listed, and why some policies cannot be settings."""
    found, refused = dict[int, Setting](), []
    for i in course.order(policies):
        if not course.next():
            break
        try:
            found[i] = judge(policies[i])
        except PolicyError as error:
            refused.append(error)
    return [found[i] for i in sorted(found)], refused


def _measuring(pooled: Callable[[Policy], float] | None) -> MeasurePooling:
    """What adds the figure of pooling to a setting, if it is wanted; each is measured once."""
    if pooled is None:
        return lambda setting: setting
    known = cache(pooled)
    return lambda setting: replace(setting, pooled=known(setting.policy))


def _budgets(margins: Iterable[Margins | float | None]) -> list[Margins]:
    """The margins to try, the least revealing first; 0 is none."""
    found = {as_margins(one or None) for one in margins}
    if not found:
        raise PolicyError("There are no margins to try.", hint="0 stands for none.")
    return sorted(found, key=lambda one: one.rho)


def _with_margins(judge: Judge, now: Setting, policy: Policy) -> Setting | None:
    """The figures of a policy if its margins clearly help the current one, which has none."""
    if not now.eligible:
        return None
    for found in _judged(judge, [policy], _Course(policy, 1, None))[0]:
        as_safe = found.group_error >= now.group_error * (1.0 - EQUAL)
        if found.eligible and as_safe and found.error <= now.error * (1.0 - CLEARLY):
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


def _numbers(name: str, values: Iterable[float]) -> list[float]:
    found = sorted({float(value) for value in values})
    if not found:
        raise PolicyError(f"There is no {name} to try.")
    return found

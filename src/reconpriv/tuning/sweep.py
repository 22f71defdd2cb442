"""Many policies on one table, each with its figures."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product

from reconpriv.core.exposure import check_exposed_above
from reconpriv.core.margins import Margins, as_margins
from reconpriv.core.sample_sizes import recommended
from reconpriv.errors import PolicyError
from reconpriv.policy import Policy
from reconpriv.presets import DEFAULT
from reconpriv.theory.bounds import Bound, TailBound
from reconpriv.theory.perturbation import PRIOR, retention_for_privacy
from reconpriv.tuning.recommend import (
    CLEARLY,
    EQUAL,
    Found,
    check_target,
    frontier,
    mark_efficient,
    posterior_allowed,
    recommend,
    report_on,
    spent,
    within,
)
from reconpriv.tuning.report import Setting, Target, TuneReport
from reconpriv.tuning.tuner import Tuner

RETENTIONS = tuple(round(0.05 * i, 2) for i in range(2, 19))
EPSILONS = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
DELTAS = (0.1, 0.2, 0.3, 0.4, 0.5)
# With exact tails δ is a probability, so it is small, and ε is part of what is signed. Each setting
# takes a good part of a second, so there are fewer.
EXACT_RETENTIONS = tuple(round(0.1 * i, 1) for i in range(1, 10))
EXACT_DELTAS = (0.01, 0.05, 0.1)
# The defaults of `publish`.
CURRENT = DEFAULT.policy

# None stands for no margins.
MARGINS: tuple[float | None, ...] = (None, 1.0)

Judge = Callable[[Policy], Setting]
"""The figures of a policy, its risk by what the current one calls exposed."""

_SETTINGS_AT_MOST = 200_000
# How many settings are tried with margins, at each of their ε.
WITH_MARGINS = 48
_BESIDE = 4  # and on either side of the best of them


def sweep(
    tuner: Tuner,
    *,
    retentions: Iterable[float] | None = None,
    epsilons: Iterable[float] | None = None,
    deltas: Iterable[float] | None = None,
    sample_sizes: Iterable[str] | str | None = None,
    exposed_above: Iterable[float] | None = None,
    margins: Iterable[Margins | float | None] | None = None,
    bound: str | Bound | TailBound | None = None,
    target: Target | None = None,
    current: Policy | None = None,
    pooled: Callable[[Policy], float] | None = None,
    risk: bool = True,
    with_margins: int = WITH_MARGINS,
    decimals: int | None = None,
) -> TuneReport:
    """Try every combination; lists that are not given default to those of this module.

    Without ``sample_sizes`` all recommended ones are tried. ``margins`` lists the ε of margins,
    None or 0 for none; by default none, and those of the current policy or ε = 1. Margins take
    longer to judge, so of many settings only the best without are tried with them, at most
    ``with_margins`` at each ε and a few beside the best of those.
    The bound, the values of ``exposed_above`` and which values are harmless or news are by default
    those of the current policy (that of ``publish`` unless another is given), which also says what
    counts as exposed where the risk of every setting is counted. A recommendation lets
    a single record reveal no more than the current policy does, or than ρ2 if the target sets it.
    The largest retention within that limit is tried as well. ``pooled`` measures what an adversary
    learns who looks beyond each group; it is asked about the settings that the report describes.
    Without ``risk``, that of the current policy alone is counted, which is quicker. ``decimals``
    rounds the largest retention down, for those who can set no other.
    """
    wanted = Target() if target is None else target
    check_target(wanted)
    if wanted.max_pooled is not None and pooled is None:
        raise PolicyError("A limit on what pooling tells can be kept only where it is measured.")
    rho1 = PRIOR if wanted.rho1 is None else wanted.rho1
    in_use = CURRENT if current is None else current
    now = _standing(tuner, in_use, rho1)
    base = replace(in_use, bound=in_use.bound if bound is None else bound, margins=None)
    by_tails = base.tail_bound.lattice
    usual = EXACT_RETENTIONS if by_tails else RETENTIONS
    p_list = _numbers("retention", usual if retentions is None else retentions)
    if retentions is None:
        largest = now.retention
        if wanted.rho2 is not None:
            largest = retention_for_privacy(rho1, wanted.rho2, tuner.schema.domain_size)
            largest = rounded_down(largest, decimals) or largest
        p_list = sorted({*p_list, largest})
    every_epsilon = (in_use.epsilon,) if by_tails else EPSILONS
    sizes = recommended() if sample_sizes is None else sample_sizes
    sizes = (sizes,) if isinstance(sizes, str) else tuple(dict.fromkeys(sizes))
    if not sizes:
        raise PolicyError("There is no sample size to try.")
    if margins is None:
        margins = MARGINS if in_use.margins is None else (None, in_use.wanted_margins)
    shares = [base.exposed_above] if exposed_above is None else exposed_above
    grid = _Grid(
        base,
        p_list,
        _numbers("ε", every_epsilon if epsilons is None else epsilons),
        _numbers("δ", (EXACT_DELTAS if by_tails else DELTAS) if deltas is None else deltas),
        sizes,
        _numbers("φ", map(check_exposed_above, shares)),
    )
    judge = partial(tuner.setting, rho1=rho1, exposing=in_use, risk=risk)
    settings, left_out = grid.tried(judge)
    budgets = _budgets(margins)
    tried, no_margins = _beside_margins(judge, settings, budgets, wanted, now, with_margins)
    helped = _with_margins(judge, now, in_use, budgets)
    found = Found(mark_efficient(tried), now, helped, left_out, no_margins)
    return report_on(tuner, found, wanted, rho1, _measured(pooled))


def rounded_down(retention: float, decimals: int | None) -> float:
    """A retention with this many decimals, if any, that protects no less."""
    if decimals is None:
        return retention
    scale = 10.0**decimals
    return math.floor(retention * scale + 1e-6) / scale


@dataclass(frozen=True)
class _Grid:
    """The numbers to try, and the policy that has the rest."""

    base: Policy
    retentions: Sequence[float]
    epsilons: Sequence[float]
    deltas: Sequence[float]
    sample_sizes: Sequence[str]
    exposed_above: Sequence[float]

    def tried(self, judge: Judge) -> tuple[list[Setting], int]:
        """Every combination with its figures, and how many are outside the bounds' range."""
        lists = (
            self.exposed_above,
            self.retentions,
            self.epsilons,
            self.deltas,
            self.sample_sizes,
        )
        count = math.prod(map(len, lists))
        if count > _SETTINGS_AT_MOST:
            raise PolicyError(
                f"{count:,} settings are more than a sweep tries at once ({_SETTINGS_AT_MOST:,}).",
                hint="Give fewer values of p, ε or δ.",
            )
        settings, left_out = [], 0
        refused: PolicyError | None = None
        for share, p, epsilon, delta, size in product(*lists):
            policy = replace(
                self.base,
                retention=p,
                epsilon=epsilon,
                delta=delta,
                sample_size=size,
                exposed_above=share,
            )
            policy.check_sampling()
            try:
                settings.append(judge(policy))
            except PolicyError as error:
                left_out, refused = left_out + 1, error
        if not settings and refused is not None:
            raise refused
        return settings, left_out


def _measured(
    pooled: Callable[[Policy], float] | None,
) -> Callable[[Setting], Setting]:
    """What adds the figure of pooling to a setting, if it is wanted."""
    if pooled is None:
        return lambda setting: setting

    def measured(setting: Setting) -> Setting:
        if setting.pooled is not None:
            return setting
        return replace(setting, pooled=pooled(setting.policy))

    return measured


def _beside_margins(
    judge: Judge,
    settings: Sequence[Setting],
    budgets: Sequence[Margins | None],
    target: Target,
    now: Setting,
    most: int,
) -> tuple[list[Setting], str]:
    """The settings with each of the margins, and why there are none with the last, if so."""
    allowed = posterior_allowed(target, now)
    found: list[Setting] = []
    no_margins = ""
    for budget in budgets:
        if budget is None:
            found += settings
            continue
        tried = _worth_margins(settings, allowed, most)
        more, reason = _try_margins(judge, [s.policy for s in tried], budget)
        if reason is not None and None not in budgets:
            raise reason
        no_margins = "" if reason is None else reason.what
        best = recommend(more, target, math.inf if allowed is None else allowed)
        if best is not None:
            near = [s for s in _around(settings, best, allowed) if s not in tried]
            more += _try_margins(judge, [s.policy for s in near], budget)[0]
        found += more
    return found, no_margins


def _try_margins(
    judge: Judge, policies: Sequence[Policy], margins: Margins
) -> tuple[list[Setting], PolicyError | None]:
    """The policies with margins, or why none of them can have any."""
    found, refused = [], None
    for policy in policies:
        try:
            found.append(judge(replace(policy, margins=margins)))
        except PolicyError as error:
            refused = error
    return found, None if found else refused


def _budgets(margins: Iterable[Margins | float | None]) -> list[Margins | None]:
    """The margins to try, the least revealing first; 0 is none."""
    found = {as_margins(one or None) for one in margins}
    if not found:
        raise PolicyError("There are no margins to try.", hint="0 stands for none.")
    return sorted(found, key=spent)


def _worth_margins(settings: Sequence[Setting], limit: float | None, most: int) -> list[Setting]:
    """The settings to try with margins: all, or an even choice of the best without them.

    Half of the choice is within the limit of what a single record may reveal.
    """
    if len(settings) <= most:
        return list(settings)
    shares = {s.exposed_above for s in settings}
    some = (most if limit is None else most // 2) // len(shares)
    chosen = []
    for share in sorted(shares):
        mine = [s for s in settings if s.exposed_above == share]
        chosen += _spread(frontier(mine), some)
        if limit is not None:
            chosen += _spread(frontier(within(mine, limit)), some)
    return list(dict.fromkeys(chosen))


def _around(settings: Sequence[Setting], best: Setting, limit: float | None) -> list[Setting]:
    """The settings beside the best one, which may have been passed over."""
    mine = [s for s in settings if s.exposed_above == best.exposed_above]
    front = frontier(mine if limit is None else within(mine, limit))
    for i, one in enumerate(front):
        if _numbers_of(one) == _numbers_of(best):
            return front[max(i - _BESIDE, 0) : i + _BESIDE + 1]
    return []


def _numbers_of(setting: Setting) -> tuple[float | str, ...]:
    return setting.retention, setting.epsilon, setting.delta, setting.sample_size


def _spread(settings: Sequence[Setting], most: int) -> list[Setting]:
    if len(settings) <= most:
        return list(settings)
    if most < 2:
        return list(settings[:most])
    step = (len(settings) - 1) / (most - 1)
    return [settings[round(i * step)] for i in range(most)]


def _with_margins(
    judge: Judge, now: Setting, policy: Policy, budgets: Sequence[Margins | None]
) -> Setting | None:
    """The current policy with the first margins that help, if it has none."""
    if now.margins is not None or not now.eligible:
        return None
    for budget in budgets:
        if budget is None:
            continue
        more, _ = _try_margins(judge, [policy], budget)
        if not more:
            continue
        found = more[0]
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

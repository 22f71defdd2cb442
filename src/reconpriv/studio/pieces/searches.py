"""A search for better settings around a policy: bounded in time, closest first."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from htmltools import Tag, tags

from reconpriv.studio.pieces.parts import button, notice
from reconpriv.studio.pieces.risk_utility import RiskUtility
from reconpriv.studio.pieces.targets import DECIMALS, TuningRequest
from reconpriv.theory.tails.bounds import resolve_bound
from reconpriv.tuning.report import TuneReport
from reconpriv.tuning.sweep import sweep, usual_unless

Step = Callable[[int, int], None]
_PLAIN_BOUND = "chernoff"
# How long a search may take unasked.
SECONDS = 4.0


class Sweep(NamedTuple):
    """Many settings around a policy, and their picture if any can be published.

    ``tried`` and ``settings`` say how many of how many: a search ends when its time is over.
    """

    report: TuneReport
    chart: RiskUtility | None
    tried: int = 0
    settings: int = 0

    @property
    def whole(self) -> bool:
        """Whether no setting was left out."""
        return self.tried >= self.settings


def try_settings(request: TuningRequest, step: Step = lambda *_: None) -> Sweep:
    """Many settings around a policy, as many as the time allows; ``step`` may cancel the search."""
    begun, course = time.monotonic(), (0, 0)
    until = begun + request.seconds

    def go_on(tried: int, settings: int) -> bool:
        nonlocal begun, course
        course = tried, settings
        step(tried, settings)
        # If the next one takes as long as the last, it would end too late.
        last, begun = begun, time.monotonic()
        if tried and begun + (begun - last) > until:
            return False
        course = tried + 1, settings
        return True

    tuner = request.candidate.loaded.tuner
    policy = request.candidate.policy.on(tuner.schema)
    # What one record reveals depends on p alone; without sampling that is quick to compute.
    plain = replace(policy, bound=_PLAIN_BOUND, sampling="none", margins=None)
    # The policy's bound, if settings with a sample can use it.
    bound = policy.tail_bound if policy.tail_bound.sizes_classes else resolve_bound(_PLAIN_BOUND)
    # Without exact tails, settings with and without margins are judged quickly.
    both = [None, usual_unless(policy)]
    report = sweep(
        tuner,
        margins=None if bound.exact else both,
        target=request.searched(tuner.setting(plain).posterior),
        bound=bound,
        current=policy,
        decimals=DECIMALS,
        go_on=go_on,
    )
    return Sweep(report, RiskUtility.of(report), *course)


def unfinished(found: Sweep) -> Tag:
    """That a search has left settings out, and how to try them."""
    words = (
        f"Only {found.tried:,} of {found.settings:,} settings were tried, those closest to yours:"
        f" more take longer than {SECONDS:g} seconds."
    )
    return tags.div(notice(words, "info"), button("try_all", "Try the others"), class_="unfinished")

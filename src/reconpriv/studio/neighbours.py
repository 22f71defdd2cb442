"""What an adversary learns who also uses neighbouring groups: measured once the dials rest."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from shiny import reactive

import reconpriv as rp
from reconpriv.attacks.pooled_risk import pooled_share, quickly_pooled
from reconpriv.studio.jobs import Job
from reconpriv.studio.judged import Judged
from reconpriv.studio.live import Live
from reconpriv.tuning.report import Setting

Measured = Judged[float | None]


def measured(found: Judged[Setting], tuner: Any) -> Measured:
    """The share of people, by a publication in memory; None if there can be none."""
    try:
        share = pooled_share(tuner.cube, tuner.settled(found.policy))
    except rp.ReconprivError:
        return Judged(found.settled, found.policy, None)
    return Judged(found.settled, found.policy, share)


def with_share(found: Judged[Setting], known: Measured | None, tuner: Any) -> tuple[Setting, bool]:
    """A setting with its figure, if that is known, and whether it is still being measured."""
    if known is not None and known.holds_for(found.settled, found.policy):
        return replace(found.found, pooled=known.found), False
    return found.found, quickly_pooled(tuner.cube)


def serve(
    live: Live,
    rested: Callable[[], rp.Policy | None],
    judged: Callable[[], Judged[Setting] | None],
    tuner: Callable[[], Any],
) -> Callable[[], Measured | None]:
    """Measure the policy in force, in the background, where that takes seconds."""
    known: reactive.Value[Measured | None] = reactive.value(None)
    job: Job[Measured] = Job(live.desk.report_pool, known.set, lambda _: None)

    @reactive.effect
    def _() -> None:
        found, ready = judged(), tuner()
        if found is None or ready is None or rested() != found.policy:
            return
        if not found.holds_for(live.settled(), live.policy()) or not quickly_pooled(ready.cube):
            return
        with reactive.isolate():
            last = known()
        if last is None or not last.holds_for(found.settled, found.policy):
            job.start(lambda: measured(found, ready))

    return known

"""Repeated releases: averaging defeats a policy with fresh keys, and gains nothing with one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from reconpriv.attacks.attacked_table import (
    AttackedTable,
    attack_key,
    dense,
    frequency_in,
    uniforms,
)
from reconpriv.attacks.best_estimate import best_estimates
from reconpriv.attacks.result import AttackResult, as_rows
from reconpriv.attacks.statistics import (
    ConfidenceInterval,
    bootstrap,
    correlation,
    log_slope,
    rate,
    relative_error,
    root_mean_square,
)
from reconpriv.cells.cell_batch import CellBatch
from reconpriv.cells.cube import Cube
from reconpriv.errors import PolicyError
from reconpriv.theory.arrays import Floats, Ints
from reconpriv.theory.margins.concentrated import epsilon_of
from reconpriv.theory.perturbation import keep_probability

_RESAMPLES = 200
_KEYS = 32
_TRIES = 200
KNEW = "every release of the table, their policy; not the keys"
KNEW_MORE = f"{KNEW}; and, which nobody can know, the variance of every estimate"


def attack_repeat(target: AttackedTable, *, releases: int = 16, worst: int = 5) -> AttackResult:
    """Publish repeatedly with fresh keys and with one key; insert a record between releases."""
    if releases < 4:
        raise PolicyError(f"Averaging needs at least 4 releases; got {releases}.")
    exposed = target.exposed
    alone, fresh = _estimates(target, target.steps("release", range(releases)))
    again = _estimates(target, (0, 0, 0))[1]
    # Half of it: closer than one release gets in most groups.
    truth, near = exposed.frequency, target.policy.tolerance / 2
    averaged = relative_error(fresh.mean(axis=0), truth)
    success = rate(
        averaged <= near, f"violating groups within half the tolerance, {releases} fresh keys"
    )
    one = exposed.within(fresh[0], "violating groups within half the tolerance, one release", near)
    kept, expected = inserted_records(target)
    counts: list[float] = [*_powers(releases)]
    margins, columns = target.policy.wanted_margins, {"releases": counts}
    columns["root mean square error"] = [_error(fresh, truth, k) for k in counts]
    knew = KNEW
    if margins:
        knew = KNEW_MORE
        columns["records alone"] = [_error(alone, truth, k) for k in counts]
        columns["ε of the margins"] = [epsilon_of(k * margins.rho, margins.delta) for k in counts]
    return AttackResult(
        name="repeat",
        knew=knew,
        success=success,
        baseline=exposed.within(exposed.shares_of_whole, "the same from the whole table", near),
        control=exposed.within(
            again.mean(axis=0), "the same with one key, however often it is published", near
        ),
        figures={
            "one release": one,
            "slope of ln error over ln k": error_slope(fresh, truth),
            "releases with one key differ": bool((again != again[0]).any()),
            "correlation of errors, one key and another p": independence(exposed),
            "inserted record: kept value shows": kept,
            "inserted record: r": expected,
        },
        table=as_rows(columns),
        worst=exposed.first(averaged, worst, {"error of the average": averaged}),
        verdict=f"From {releases} releases with fresh keys, f is estimated within ±{near:.0%} in"
        f" {success.share:.1%} of the violating groups, from one release in {one.share:.1%}; with"
        " one key, all releases are the same.",
    )


def _estimates(target: AttackedTable, numbers: Iterable[int]) -> tuple[Floats, Floats]:
    """F' of each violating group in some releases: from records alone, and with margins."""
    groups, top = target.violating(), target.exposed.values
    found = [best_estimates(target, target.publication(i), groups, top) for i in numbers]
    return np.array([one.alone for one in found]), np.array([one.combined for one in found])


def _powers(releases: int) -> list[int]:
    return [1 << i for i in range(releases.bit_length()) if 1 << i <= releases]


def _error(fresh: Floats, truth: Floats, k: float) -> float:
    """The root mean square relative error of averages over k releases, all disjoint sets."""
    blocks = fresh[: int(len(fresh) // k * k)].reshape(-1, int(k), truth.size).mean(axis=1)
    return root_mean_square(relative_error(blocks, truth))


def error_slope(fresh: Floats, truth: Floats) -> ConfidenceInterval:
    """The slope of ln error over ln k, bootstrapped over groups; -1/2 in theory."""
    k = np.array(_powers(len(fresh)), dtype=np.float64)
    rows = np.vstack([fresh, truth]).T

    def slope(some: Floats) -> float:
        errors = [_error(some[:, :-1].T, some[:, -1], int(i)) for i in k]
        return log_slope(k, np.array(errors))

    draws = uniforms(_RESAMPLES * truth.size, "slope").reshape(_RESAMPLES, truth.size)
    return bootstrap(rows, slope, draws)


def independence(target: AttackedTable) -> ConfidenceInterval:
    """Errors of two releases with one key and two retentions: independent, so uncorrelated.

    Words are bound to p, the sensitive column and the domain; shared words would reveal data.
    """
    p = target.policy.retention
    errors: list[list[Floats]] = [[], []]
    for number in target.steps("key", range(_KEYS)):
        for side, retention in enumerate((p, p * 0.8)):
            policy = replace(target.policy, retention=retention, sampling="none", margins=None)
            published = target.publication_as(policy, attack_key(number)).cube
            found = frequency_in(published, target.values, retention)
            # Errors fall with the square root of a group's size; scaled, all groups count alike.
            errors[side].append((found - target.frequency) * np.sqrt(target.batch.sizes))
    return correlation(np.concatenate(errors[0]), np.concatenate(errors[1]))


def inserted_records(target: AttackedTable) -> tuple[ConfidenceInterval, float]:
    """Insert a record into groups that are not sampled; the difference is one randomised value.

    Returns how often it shows the true value, with an interval, and r of Eq. 1.
    """
    quiet = np.flatnonzero(np.asarray(target.batch.sizes == 1))
    if not quiet.size:
        quiet = np.argsort(target.batch.sizes, kind="stable")[:_TRIES]
    some = target.only(np.sort(quiet[:: max(1, quiet.size // _TRIES)][:_TRIES]))
    first = some.batch.value[some.batch.starts]
    grown, shown = replace(some, batch=with_one_more(some.batch)), []
    for number in range(8):
        before, after = some.publish(number, "none"), grown.publish(number, "none")
        shown.append(published_difference(before, after)[1] == first)
    found = rate(np.concatenate(shown), "inserted values shown as they are")
    r = keep_probability(target.policy.retention, target.schema.domain_size)
    return ConfidenceInterval(found.share, found.low, found.high), r


def with_one_more(batch: CellBatch) -> CellBatch:
    """One more record in every group, with the value of its first cell."""
    count = batch.count.copy()
    count[batch.starts] += 1
    return CellBatch(batch.public, batch.starts, batch.value, count)


def published_difference(before: Cube, after: Cube) -> tuple[Ints, Ints]:
    """How many published records changed in each group, and the value that was added."""
    change = dense(after) - dense(before)
    return np.abs(change).sum(axis=1), change.argmax(axis=1)

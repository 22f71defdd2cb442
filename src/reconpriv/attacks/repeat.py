"""Repeated releases: averaging defeats a policy with fresh keys, and gains nothing with one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from reconpriv.attacks.attacked_table import (
    AttackedTable,
    attack_key,
    count_of,
    uniforms,
)
from reconpriv.attacks.best_estimate import best_estimates
from reconpriv.attacks.result import AttackResult, Row
from reconpriv.attacks.statistics import (
    Interval,
    bootstrap,
    correlation,
    log_slope,
    rate,
    relative_error,
)
from reconpriv.core.cells import CellBatch
from reconpriv.core.cube import Cube
from reconpriv.errors import PolicyError
from reconpriv.theory.arrays import Floats, Ints
from reconpriv.theory.concentrated import epsilon_of
from reconpriv.theory.perturbation import keep_probability
from reconpriv.theory.reconstruction import reconstruct_frequency

_RESAMPLES = 200
_KEYS = 32
KNEW = "every release of the table, their policy; not the keys"
KNEW_MORE = f"{KNEW}; and, which nobody can know, the variance of every estimate"


def attack_repeat(target: AttackedTable, *, releases: int = 16, worst: int = 5) -> AttackResult:
    """Publish repeatedly with fresh keys and with one key; insert a record between releases."""
    if releases < 4:
        raise PolicyError(f"Averaging needs at least 4 releases; got {releases}.")
    exposed = target.only(target.violating())
    alone, fresh = (np.array(side) for side in zip(*_fresh(target, exposed, releases), strict=True))
    again = np.array([next(_fresh(target, exposed, 1))[1] for _ in range(3)])
    truth, epsilon = exposed.frequency, target.policy.epsilon
    averaged = relative_error(fresh.mean(axis=0), truth)
    one = relative_error(fresh[0], truth)
    same = relative_error(again.mean(axis=0), truth)
    # Half of ε: closer than one release gets in most groups.
    near = epsilon / 2
    counts = _powers(releases)
    slope = error_slope(fresh, truth)
    other_p = independence(exposed)
    kept, expected = inserted_records(target)
    table: tuple[Row, ...] = tuple(
        {"releases": k, "root mean square error": _error(fresh, truth, k)} for k in counts
    )
    margins = target.policy.wanted_margins
    if margins is not None:
        for row in table:
            k = row["releases"]
            row["records alone"] = _error(alone, truth, k)
            row["ε of the margins"] = epsilon_of(k * margins.rho, margins.delta)
    top = exposed.values
    return AttackResult(
        name="repeat",
        knew=KNEW if margins is None else KNEW_MORE,
        success=rate(averaged <= near, f"violating groups within ε/2, {releases} fresh keys"),
        baseline=rate(
            relative_error(target.overall[top], truth) <= near, "the same from the whole table"
        ),
        control=rate(same <= near, "the same with one key, however often it is published"),
        figures={
            "one release": rate(one <= near, "violating groups within ε/2, one release"),
            "slope of ln error over ln k": slope,
            "releases with one key differ": bool((again != again[0]).any()),
            "correlation of errors, one key and another p": other_p,
            "inserted record: kept value shows": kept,
            "inserted record: r": expected,
        },
        table=table,
        worst=_worst(exposed, averaged, worst),
        verdict=f"From {releases} releases with fresh keys, f is estimated within ±{near:.0%} in"
        f" {np.mean(averaged <= near):.1%} of the violating groups, from one release in"
        f" {np.mean(one <= near):.1%}; with one key, all releases are the same.",
    )


def _fresh(
    target: AttackedTable, exposed: AttackedTable, releases: int
) -> Iterator[tuple[Floats, Floats]]:
    """F' of each exposed group in each release: from records alone, and with margins."""
    groups, top = target.violating(), exposed.values
    for number in target.steps("release", range(releases)):
        if target.policy.margins is None:
            found = estimates(exposed, exposed.publish(number))
            yield found, found
        else:
            best = best_estimates(target, target.publication(number), groups, top)
            yield best.alone, best.combined


def estimates(target: AttackedTable, published: Cube) -> Floats:
    """F' of each group's truly most frequent value."""
    return reconstruct_frequency(
        count_of(published, target.values),
        published.records,
        retention=target.policy.retention,
        domain_size=target.schema.domain_size,
    )


def _powers(releases: int) -> list[int]:
    return [1 << i for i in range(releases.bit_length()) if 1 << i <= releases]


def _error(fresh: Floats, truth: Floats, k: int) -> float:
    """The root mean square relative error of averages over k releases, all disjoint sets."""
    blocks = fresh[: len(fresh) // k * k].reshape(-1, k, truth.size).mean(axis=1)
    return float(np.sqrt(np.mean(((blocks - truth) / truth) ** 2)))


def error_slope(fresh: Floats, truth: Floats) -> Interval:
    """The slope of ln error over ln k, bootstrapped over groups; -1/2 in theory."""
    k = np.array(_powers(len(fresh)), dtype=np.float64)
    rows = np.vstack([fresh, truth]).T

    def slope(some: Floats) -> float:
        errors = [_error(some[:, :-1].T, some[:, -1], int(i)) for i in k]
        return log_slope(k, np.array(errors))

    draws = uniforms(_RESAMPLES * truth.size, "slope").reshape(_RESAMPLES, truth.size)
    return bootstrap(rows, slope, draws)


def independence(target: AttackedTable) -> Interval:
    """Errors of two releases with one key and two retentions: independent, so uncorrelated.

    Words are bound to p, the sensitive column and the domain; shared words would reveal data.
    """
    p = target.policy.retention
    errors: list[list[Floats]] = [[], []]
    for number in target.steps("key", range(_KEYS)):
        for side, retention in enumerate((p, p * 0.8)):
            policy = replace(target.policy, retention=retention, sample_size="none", margins=None)
            other = replace(target, policy=policy)
            found = estimates(other, target.publish_as(policy, attack_key(number)))
            # Errors fall with the square root of a group's size; scaled, all groups count alike.
            errors[side].append((found - target.frequency) * np.sqrt(target.batch.sizes))
    return correlation(np.concatenate(errors[0]), np.concatenate(errors[1]))


def inserted_records(target: AttackedTable, *, tries: int = 200) -> tuple[Interval, float]:
    """Insert a record into groups that are not sampled; the difference is one randomised value.

    Returns how often it shows the true value, with an interval, and r of Eq. 1.
    """
    quiet = np.flatnonzero(np.asarray(target.batch.sizes == 1))
    if not quiet.size:
        quiet = np.argsort(target.batch.sizes, kind="stable")[:tries]
    some = target.only(np.sort(quiet[:: max(1, quiet.size // tries)][:tries]))
    grown = replace(some, batch=with_one_more(some.batch))
    shown = []
    for number in range(8):
        before, after = some.publish(number, "none"), grown.publish(number, "none")
        shown.append(published_difference(before, after)[1] == first_values(some.batch))
    found = rate(np.concatenate(shown), "inserted values shown as they are")
    r = keep_probability(target.policy.retention, target.schema.domain_size)
    return Interval(found.share, found.low, found.high), r


def with_one_more(batch: CellBatch) -> CellBatch:
    """One more record in every group, with the value of its first cell."""
    count = batch.count.copy()
    count[batch.starts] += 1
    return CellBatch(batch.public, batch.starts, batch.value, count)


def first_values(batch: CellBatch) -> Ints:
    """The value of each group's first cell."""
    return batch.value[batch.starts]


def published_difference(before: Cube, after: Cube) -> tuple[Ints, Ints]:
    """How many published records changed in each group, and the value that was added."""
    m = before.schema.domain_size
    change = np.zeros(before.groups * m, dtype=np.int64)
    np.add.at(change, after.group * m + after.value, after.count)
    np.add.at(change, before.group * m + before.value, -before.count)
    by_group = change.reshape(before.groups, m)
    return np.abs(by_group).sum(axis=1), by_group.argmax(axis=1)


def _worst(exposed: AttackedTable, averaged: Floats, how_many: int) -> tuple[Row, ...]:
    return tuple(
        {
            "group": exposed.describe(int(g)),
            "size": int(exposed.batch.sizes[g]),
            "largest f": float(exposed.frequency[g]),
            "error of the average": float(averaged[g]),
        }
        for g in np.argsort(averaged, kind="stable")[:how_many]
    )

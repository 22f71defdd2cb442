"""Micro reconstruction (Example 1): the distribution of a person's group from its records."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from reconpriv.attacks.attacked_table import AttackedTable, count_of, largest_values
from reconpriv.attacks.result import AttackResult, Row
from reconpriv.attacks.statistics import Rate, rate, relative_error, score
from reconpriv.core.cube import Cube
from reconpriv.core.sample_sizes import SAMPLE_SIZES, sample_limits
from reconpriv.policy import Policy
from reconpriv.schema import json_value
from reconpriv.theory.arrays import Flags, Floats
from reconpriv.theory.counts import ObservedCount
from reconpriv.theory.exact import exact_tails
from reconpriv.theory.perturbation import keep_probability, replacement_probability
from reconpriv.theory.reconstruction import reconstruct_frequency

# Products that are whole on paper must count as whole here.
_WHOLE = 1e-9
_QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9)
KNEW = "every public value of a person, the release, its policy; not the key"


def attack_micro(target: AttackedTable, *, keys: int = 5, worst: int = 5) -> AttackResult:
    """Reconstruct every group by Lemma 1, for each sample size, with several keys."""
    exposed = target.only(target.violating())
    sizes = [size for size in reversed(SAMPLE_SIZES) if _possible(target.policy, size)]
    rows = [_measure(target, exposed, size, keys) for size in sizes]
    table = tuple(row for row, _ in rows)
    errors = dict(zip(sizes, (error for _, error in rows), strict=True))
    own = target.policy.sample_size
    epsilon = target.policy.epsilon
    success = rate(errors[own] <= epsilon, f"violating groups with an error of at most ε ({own})")
    return AttackResult(
        name="micro",
        knew=KNEW,
        success=success,
        baseline=_baseline(exposed, target.overall),
        control=_control(target, own),
        figures={
            "violating groups": exposed.batch.groups,
            "keys": keys,
            "best guess from the whole table": json_value(
                target.schema.domain[int(np.argmax(target.overall))]
            ),
            "it is right in": _whole_table_guess(exposed, target.overall),
            "persons it is right for": float(target.overall.max()),
        },
        table=table,
        worst=_worst(exposed, errors[own], worst),
        verdict=_verdict(table, own, epsilon),
    )


def _possible(policy: Policy, sample_size: str) -> bool:
    """Whether the sample size works with the bound; those rounded in f do not with every one."""
    return replace(policy, sample_size=sample_size).can_sample


def _measure(
    target: AttackedTable, exposed: AttackedTable, size: str, keys: int
) -> tuple[Row, Floats]:
    """One sample size: errors over keys, the exact prediction, and the best guesses."""
    errors = np.concatenate([top_errors(exposed, exposed.publish(i, size)) for i in range(keys)])
    by_trials = predicted_share(exposed, size)
    predicted = share_with_copies(exposed, size) if SAMPLE_SIZES[size].samples else by_trials
    epsilon = target.policy.epsilon
    under = errors <= epsilon
    published = target.publish(0, size)
    right, persons = guesses(target, published)
    quantiles = np.quantile(errors, _QUANTILES)
    row: Row = {
        "sample size": size,
        "under ε": float(under.mean()),
        "exact tails": float(by_trials.mean()),
        "with copies": None if predicted is None else float(predicted.mean()),
        "z": None
        if predicted is None
        else score(under.astype(np.float64), np.tile(predicted, keys)),
        **{f"error {q:.0%}": float(v) for q, v in zip(_QUANTILES, quantiles, strict=True)},
        "guess right": float(right[target.violating()].mean()),
        "all groups": float(right.mean()),
        "persons": persons,
    }
    return row, errors


def top_errors(target: AttackedTable, published: Cube) -> Floats:
    """|F' - f|/f of each group's truly most frequent value."""
    top = largest_values(target.raw)
    estimate = reconstruct_frequency(
        count_of(published, top),
        published.records,
        retention=target.policy.retention,
        domain_size=target.schema.domain_size,
    )
    return relative_error(estimate, target.frequency)


def predicted_share(target: AttackedTable, sample_size: str) -> Floats:
    """1 - Pr[error above ε] - Pr[below -ε] by the exact tails at each group's trials.

    Trials in `paper` vary by coin flips around s(f); the prediction is at their mean.
    """
    count = ObservedCount(
        _trials(target, sample_size),
        target.frequency,
        target.policy.retention,
        target.schema.domain_size,
        target.policy.epsilon,
    )
    upper, lower = exact_tails(count)
    return np.asarray(1.0 - upper - lower)


def _trials(target: AttackedTable, sample_size: str) -> Floats:
    policy = replace(target.policy, sample_size=sample_size)
    limits = np.maximum(sample_limits(target.batch, policy, target.schema.domain_size), 1.0)
    return np.round(np.minimum(limits, target.batch.sizes)).astype(np.float64)


def share_with_copies(target: AttackedTable, sample_size: str) -> Floats | None:
    """The same for the counts as published: copies of trials are not quite even.

    A value with k of the n trials is published k⌊|g|/n⌋ + H times, H hypergeometric: its share
    of the |g| mod n trials that got one extra copy. No answer if coin flips also move n.
    """
    if SAMPLE_SIZES[sample_size].coins:
        return None
    shares = [
        _one_share(int(n), int(size), float(f), target.policy, target.schema.domain_size)
        for n, size, f in zip(
            _trials(target, sample_size), target.batch.sizes, target.frequency, strict=True
        )
    ]
    return np.array(shares)


def _one_share(n: int, size: int, f: float, policy: Policy, domain_size: int) -> float:
    from scipy.stats import hypergeom  # noqa: PLC0415 - slow import

    k = np.arange(n + 1)
    copies, extra = divmod(size, n)
    whole = ObservedCount(
        np.array(float(size)), np.array(f), policy.retention, domain_size, policy.epsilon
    )
    reach = size * whole.shift
    high = np.floor(whole.mean + reach + _WHOLE) - k * copies
    low = np.ceil(whole.mean - reach - _WHOLE) - k * copies
    inside = hypergeom.cdf(high, n, k, extra) - hypergeom.cdf(low - 1, n, k, extra)
    return float(np.dot(_trial_counts(n, n * f, policy.retention, domain_size), inside))


def _trial_counts(n: int, quota: float, retention: float, domain_size: int) -> Floats:
    """The distribution of O* among n trials, Bin(c, r) + Bin(n - c, t), c the rounded quota."""
    from scipy.stats import binom  # noqa: PLC0415

    r = keep_probability(retention, domain_size)
    t = replacement_probability(retention, domain_size)
    below = int(np.floor(quota + _WHOLE))
    share = max(quota - below, 0.0)
    result = np.zeros(n + 1)
    for holders, weight in ((below, 1 - share), (min(below + 1, n), share)):
        kept = binom.pmf(np.arange(holders + 1), holders, r)
        strayed = binom.pmf(np.arange(n - holders + 1), n - holders, t)
        result += weight * np.convolve(kept, strayed)
    return result


def guesses(target: AttackedTable, published: Cube) -> tuple[Flags, float]:
    """Where the largest estimate is the most frequent value; the share of people guessed right."""
    guess = largest_values(published)
    held = count_of(target.raw, guess)
    most = target.batch.largest_counts
    return held == most, float(held.sum() / target.batch.sizes.sum())


def _baseline(exposed: AttackedTable, overall: Floats) -> Rate:
    """Without the group: the share of its most frequent value in the whole table."""
    error = relative_error(overall[largest_values(exposed.raw)], exposed.frequency)
    what = "violating groups whose f the whole table predicts within ε"
    return rate(error <= exposed.policy.epsilon, what)


def _whole_table_guess(exposed: AttackedTable, overall: Floats) -> Rate:
    """How often the most frequent value of the whole table is also that of the group."""
    guess = np.full(exposed.batch.groups, int(np.argmax(overall)))
    most = exposed.batch.largest_counts
    return rate(count_of(exposed.raw, guess) == most, "violating groups")


def _control(target: AttackedTable, sample_size: str) -> Rate:
    """A shuffled sensitive column: its release must reveal nothing about the true groups."""
    published = target.shuffled().publish(0, sample_size)
    error = top_errors(target, published)[target.violating()]
    return rate(error <= target.policy.epsilon, "the same with the sensitive column shuffled")


def _worst(exposed: AttackedTable, errors: Floats, how_many: int) -> tuple[Row, ...]:
    """The groups estimated best, on average over the keys."""
    mean = errors.reshape(-1, exposed.batch.groups).mean(axis=0)
    return tuple(
        {
            "group": exposed.describe(int(g)),
            "size": int(exposed.batch.sizes[g]),
            "largest f": float(exposed.frequency[g]),
            "mean error": float(mean[g]),
        }
        for g in np.argsort(mean, kind="stable")[:how_many]
    )


def _verdict(table: tuple[Row, ...], own: str, epsilon: float) -> str:
    share = {row["sample size"]: row["under ε"] for row in table}
    return (
        f"With perturbation alone, f is estimated within ±{epsilon:.0%} in {share['none']:.1%}"
        f" of the violating groups; with sample size {own!r}, in {share[own]:.1%}."
    )


def guess_from_release(cube: Cube, retention: float, *, show: int = 20) -> AttackResult:
    """The adversary's guesses from a release alone; nothing here says whether they are right."""
    m = cube.schema.domain_size
    guess = largest_values(cube)
    estimate = reconstruct_frequency(
        count_of(cube, guess), cube.records, retention=retention, domain_size=m
    )
    order = np.argsort(-cube.trials, kind="stable")[:show]
    values = cube.group_table().take(order).to_pylist()
    table = tuple(
        {
            "group": {name: json_value(value) for name, value in public.items()},
            "records": int(cube.records[g]),
            "trials": float(cube.trials[g]),
            "guess": json_value(cube.schema.domain[int(guess[g])]),
            "F'": float(estimate[g]),
        }
        for g, public in zip(order, values, strict=True)
    )
    return AttackResult(
        name="micro",
        knew=KNEW,
        table=table,
        figures={"groups": cube.groups},
        verdict="Guesses only, for the groups with the most trials: without the table, nobody"
        " can say which of them are right.",
    )

"""Micro reconstruction (Example 1): the distribution of a person's group from its records."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from reconpriv.attacks.attacked_table import (
    AttackedTable,
    Publication,
    count_of,
    largest_values,
)
from reconpriv.attacks.best_estimate import (
    WHOLE,
    BestEstimates,
    best_estimates,
    best_guesses,
    combined_share,
    limits_of,
    normal_share,
    over_limit,
    trial_counts,
    truly_over_limit,
)
from reconpriv.attacks.result import AttackResult, Row
from reconpriv.attacks.statistics import Rate, rate, relative_error, score
from reconpriv.core.cube import Cube, sum_selections
from reconpriv.core.sample_sizes import SAMPLE_SIZES, sample_limits
from reconpriv.policy import Policy
from reconpriv.queries.estimate import Design, mle_counts
from reconpriv.queries.margins import Asked, PreparedMargins
from reconpriv.schema import json_value
from reconpriv.theory.arrays import Flags, Floats, Ints
from reconpriv.theory.counts import ObservedCount
from reconpriv.theory.exact import exact_tails
from reconpriv.theory.reconstruction import reconstruct_frequency

_QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9)
KNEW = "every public value of a person, the release, its policy; not the key"
GUESSES_ONLY = (
    "Guesses only, for the groups with the most trials: without the table, nobody can say which of"
    " them are right."
)
KNEW_MORE = f"{KNEW}; and, which nobody can know, the variance of every estimate"


def attack_micro(
    target: AttackedTable, *, keys: int = 5, worst: int = 5, check: bool = True
) -> AttackResult:
    """Reconstruct every group by Lemma 1, for each sample size, with several keys.

    If margins are published, then also by the best estimate from records and margins together.
    Without ``check``, the attack is not held against what theory predicts for uneven copies.
    """
    exposed = target.only(target.violating())
    with_margins = target.policy.margins is not None
    measure = measure_with_margins if with_margins else partial(_measure, check=check)
    sizes = possible_sizes(target.policy)
    rows = [measure(target, exposed, size, keys) for size in target.steps("sample size", sizes)]
    table = tuple(row for row, _ in rows)
    errors = dict(zip(sizes, (error for _, error in rows), strict=True))
    own = target.policy.sample_size
    epsilon = target.policy.epsilon
    how = ", from records and margins" if with_margins else ""
    what = f"violating groups with an error of at most ε{how} ({own})"
    return AttackResult(
        name="micro",
        knew=KNEW_MORE if with_margins else KNEW,
        success=rate(errors[own] <= epsilon, what),
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
            **(_margin_figures(target, own) if with_margins else {}),
        },
        table=table,
        worst=_worst(exposed, errors[own], worst),
        verdict=_verdict(table, own, epsilon),
    )


def possible_sizes(policy: Policy) -> list[str]:
    """The sample sizes that work with the bound and, where groups are protected, keep totals."""
    return [
        size
        for size in reversed(SAMPLE_SIZES)
        if not (SAMPLE_SIZES[size].coins and policy.protect is not None)
        and replace(policy, sample_size=size).can_sample
    ]


def _measure(
    target: AttackedTable, exposed: AttackedTable, size: str, keys: int, *, check: bool
) -> tuple[Row, Floats]:
    """One sample size: errors over keys, the exact prediction, and the best guesses."""
    errors = np.concatenate([top_errors(exposed, exposed.publish(i, size)) for i in range(keys)])
    by_trials = predicted_share(exposed, size)
    checked: Row = _checked(exposed, size, errors, by_trials) if check else {}
    guess = largest_values(target.publish(0, size))
    row: Row = {
        "sample size": size,
        "under ε": float((errors <= target.policy.epsilon).mean()),
        "exact tails": float(by_trials.mean()),
        **checked,
        **_spread_and_guesses(target, errors, guess),
    }
    return row, errors


def _checked(exposed: AttackedTable, size: str, errors: Floats, by_trials: Floats) -> Row:
    """The prediction for the counts as published, and how far the errors are from it."""
    predicted = share_with_copies(exposed, size) if SAMPLE_SIZES[size].samples else by_trials
    if predicted is None:
        return {"with copies": None, "z": None}
    keys = errors.size // predicted.size
    return {
        "with copies": float(predicted.mean()),
        "z": _score(errors, np.tile(predicted, keys), exposed),
    }


def _score(errors: Floats, predicted: Floats, target: AttackedTable) -> float:
    return score((errors <= target.policy.epsilon).astype(np.float64), predicted)


def _spread_and_guesses(target: AttackedTable, errors: Floats, guess: Ints) -> Row:
    right, persons = guesses(target, guess)
    quantiles = np.quantile(errors, _QUANTILES)
    return {
        **{f"error {q:.0%}": float(v) for q, v in zip(_QUANTILES, quantiles, strict=True)},
        "guess right": float(right[target.violating()].mean()),
        "all groups": float(right.mean()),
        "persons": persons,
    }


def measure_with_margins(
    target: AttackedTable, exposed: AttackedTable, size: str, keys: int
) -> tuple[Row, Floats]:
    """The same from records and margins together, beside the records alone.

    Without margins both are the same.
    """
    groups, top = target.violating(), exposed.values
    epsilon, coins = target.policy.epsilon, SAMPLE_SIZES[size].coins
    each = []
    for number in range(keys):
        published = target.publication(number, size)
        found = best_estimates(target, published, groups, top)
        each.append(_OneKey.of(target, published, found))
        if number == 0:
            guess = best_guesses(target, published)
    joined = _OneKey.join(each)
    row: Row = {
        "sample size": size,
        "records alone": float((joined.alone <= epsilon).mean()),
        "predicted alone": None if coins else float(joined.predicted_alone.mean()),
        "z alone": None if coins else _score(joined.alone, joined.predicted_alone, target),
        "under ε": float((joined.errors <= epsilon).mean()),
        "normal form": None if coins else float(joined.normal.mean()),
        "predicted": None if coins else float(joined.predicted.mean()),
        "z": None if coins else _score(joined.errors, joined.predicted, target),
        "trials": float(np.median(joined.trials)),
        "effective trials": float(np.median(joined.effective)),
        "limit": float(np.median(joined.limits)) if SAMPLE_SIZES[size].samples else None,
        "over limit": int(joined.counted_over.sum()) if SAMPLE_SIZES[size].samples else None,
        "truly over": int(joined.over.sum()) if SAMPLE_SIZES[size].samples else None,
        **_spread_and_guesses(target, joined.errors, guess),
    }
    return row, joined.errors


@dataclass(frozen=True)
class _OneKey:
    """Every attacked group of one publication, or of several joined.

    ``counted_over`` says which groups have more effective trials than their limit as the publisher
    counts them (or by true variances, if nobody does), ``over`` by the true variances.
    """

    alone: Floats
    errors: Floats
    predicted_alone: Floats
    predicted: Floats
    normal: Floats
    trials: Floats
    effective: Floats
    limits: Floats
    counted_over: Flags
    over: Flags

    @classmethod
    def of(cls, target: AttackedTable, published: Publication, found: BestEstimates) -> _OneKey:
        epsilon, limits = target.policy.epsilon, limits_of(target, published, found.groups)
        over = truly_over_limit(target, published, found)
        if over is None:
            over = (found.effective_trials > limits + WHOLE) & (limits >= 1.0)
        counted = over_limit(target, published, found.groups)
        return cls(
            alone=relative_error(found.alone, found.truth),
            errors=relative_error(found.combined, found.truth),
            predicted_alone=combined_share(found.without_margins, epsilon),
            predicted=combined_share(found, epsilon),
            normal=normal_share(found, epsilon),
            trials=found.trials.astype(np.float64),
            effective=found.effective_trials,
            limits=limits,
            counted_over=over if counted is None else counted,
            over=over,
        )

    @classmethod
    def join(cls, each: list[_OneKey]) -> _OneKey:
        names = cls.__dataclass_fields__
        return cls(*(np.concatenate([getattr(one, name) for one in each]) for name in names))


def _margin_figures(target: AttackedTable, size: str) -> Row:
    """What is published, and whether any group has more effective trials than its limit."""
    published = target.publication(0, size)
    plan = target.margins(published.policy, None)
    assert plan is not None
    every = np.arange(target.batch.groups)
    counted = over_limit(target, published, every)
    rows = sum(table.rows for table in published.tables)
    return {
        "ε of the margins": plan.margins.epsilon,
        "σ of the margins": float(np.sqrt(published.variance)),
        "rows published": rows,
        "rows left out": plan.totals.rows - rows,
        "groups over their limit of effective trials": None
        if counted is None
        else rate(counted, "groups, as the publisher counts margins"),
    }


def top_errors(target: AttackedTable, published: Cube) -> Floats:
    """|F' - f|/f of each group's truly most frequent value."""
    top = target.values
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
    high = np.floor(whole.mean + reach + WHOLE) - k * copies
    low = np.ceil(whole.mean - reach - WHOLE) - k * copies
    inside = hypergeom.cdf(high, n, k, extra) - hypergeom.cdf(low - 1, n, k, extra)
    return float(np.dot(trial_counts(n, n * f, policy.retention, domain_size), inside))


def guesses(target: AttackedTable, guess: Ints) -> tuple[Flags, float]:
    """Where a guess is the most frequent value of its group; the share of people guessed right."""
    held = count_of(target.raw, guess)
    most = target.batch.largest_counts
    return held == most, float(held.sum() / target.batch.sizes.sum())


def _baseline(exposed: AttackedTable, overall: Floats) -> Rate:
    """Without the group: the share of its most frequent value in the whole table."""
    error = relative_error(overall[exposed.values], exposed.frequency)
    what = "violating groups whose f the whole table predicts within ε"
    return rate(error <= exposed.policy.epsilon, what)


def _whole_table_guess(exposed: AttackedTable, overall: Floats) -> Rate:
    """How often the most frequent value of the whole table is also that of the group."""
    guess = np.full(exposed.batch.groups, int(np.argmax(overall)))
    most = exposed.batch.largest_counts
    return rate(count_of(exposed.raw, guess) == most, "violating groups")


def _control(target: AttackedTable, sample_size: str) -> Rate:
    """A shuffled sensitive column: its release must reveal nothing about the true groups."""
    shuffled, groups = target.shuffled(), target.violating()
    if target.policy.margins is None:
        error = top_errors(target, shuffled.publish(0, sample_size))[groups]
    else:
        published = shuffled.publication(0, sample_size)
        top = target.values[groups]
        found = best_estimates(shuffled, published, groups, top)
        error = relative_error(found.combined, target.frequency[groups])
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
    rows = {row["sample size"]: row for row in table}
    row, alone = rows[own], rows["none"].get("records alone", rows["none"]["under ε"])
    said = (
        f"With perturbation alone, f is estimated within ±{epsilon:.0%} in {alone:.1%}"
        f" of the violating groups; with sample size {own!r}, in "
    )
    if "records alone" not in row:
        return f"{said}{row['under ε']:.1%}."
    said += f"{row['records alone']:.1%} from the records and {row['under ε']:.1%} with the margins"
    if row["over limit"] is None:
        return f"{said}."
    many, over = row["over limit"], "none has"
    if many:
        over = f"{many:,} {'has' if many == 1 else 'have'}"
    return f"{said}; {over} more effective trials than allowed."


def guess_from_release(
    cube: Cube, design: Design, margins: PreparedMargins | None = None, *, show: int = 20
) -> AttackResult:
    """The adversary's guesses from a release alone; nothing here says whether they are right."""
    order = np.argsort(-cube.trials, kind="stable")[:show]
    counts = _estimated_counts(cube, design, margins, order)
    guess = counts.argmax(axis=1)
    values = cube.group_table().take(order).to_pylist()
    table = tuple(
        {
            "group": {name: json_value(value) for name, value in public.items()},
            "records": int(cube.records[g]),
            "trials": float(cube.trials[g]),
            "guess": json_value(cube.schema.domain[int(guess[i])]),
            "F'": float(counts[i, guess[i]] / cube.records[g]),
        }
        for i, (g, public) in enumerate(zip(order, values, strict=True))
    )
    return AttackResult(
        name="micro",
        knew=KNEW,
        table=table,
        figures={"groups": cube.groups},
        verdict=GUESSES_ONLY,
    )


def _estimated_counts(
    cube: Cube, design: Design, margins: PreparedMargins | None, groups: Ints
) -> Floats:
    """Every count of some groups, as an analyst would estimate it, a column per value."""
    place = np.full(cube.groups, -1)
    place[groups] = np.arange(groups.size)
    sums = sum_selections(cube, place, groups.size, None)
    m = design.domain_size
    group, value = np.repeat(np.arange(groups.size), m), np.tile(np.arange(m), groups.size)
    asked = sums.at(group, value)
    if margins is not None and groups.size:
        asked = margins.combine(cube, asked, Asked(group, value), lambda _: place)
    return mle_counts(asked, 1, design).reshape(groups.size, m)

"""The granularity attack: infer |g1| from the duplicates of a scaled group, and f from |g1|.

The paper overlooks it. Algorithm 1 draws s_g trials, and s_g falls strictly with the very
frequency that it protects; the number of trials shows in the published counts. See lattice.py.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from reconpriv.attacks.attacked_table import AttackedTable, dense, uniforms
from reconpriv.attacks.result import AttackResult, Row
from reconpriv.attacks.statistics import (
    Interval,
    bootstrap,
    mean_ratio,
    median_ratio,
    rate,
    relative_error,
)
from reconpriv.attacks.trial_likelihood import (
    Inferences,
    Knowledge,
    infer,
    leading,
    likely_exposed,
)
from reconpriv.core.cube import Cube
from reconpriv.core.sample_sizes import SAMPLE_SIZES, SampleSize
from reconpriv.errors import InputError
from reconpriv.messages.phrases import listed
from reconpriv.policy import Policy
from reconpriv.schema import json_value
from reconpriv.theory.arrays import Flags, Floats, Ints
from reconpriv.theory.reconstruction import observed_mean, reconstruct_frequency

# A frequency estimated within a tenth counts as revealed.
TOLERANCE = 0.1
_RESAMPLES = 400
# With fewer groups than this, resampling gives no meaningful interval.
_FEW = 10
KNEW = "the published counts of each group, p, m, ε, δ, the bound and the sample size; not the key"
_OF_EXPOSED = (
    " f is the largest frequency of an exposed value, which sets the number of trials; a value that"
    " is {others} may be more frequent."
)


@dataclass(frozen=True)
class Attempt:
    """The attack on every group of a target in one publication, one row per group."""

    records: Ints
    truth: Floats
    trials: Ints
    inferred_trials: Ints
    frequency: Floats
    mle: Floats
    located: Flags

    @property
    def error(self) -> Floats:
        """The attack's relative error in f."""
        return relative_error(self.frequency, self.truth)

    @property
    def mle_error(self) -> Floats:
        """The relative error of Lemma 1, cut to the range of f that the release reveals anyway."""
        return relative_error(self.mle, self.truth)

    @property
    def exact(self) -> Flags:
        """Whether |g1| was recovered exactly."""
        return np.asarray(self.inferred_trials == self.trials)

    def where(self, rows: Flags) -> Attempt:
        """Some of the groups."""
        return Attempt(*(getattr(self, name)[rows] for name in Attempt.__dataclass_fields__))


def attempt(
    target: AttackedTable, sample_size: str, number: int = 0, *, knowing_the_rest: bool = False
) -> Attempt:
    """Publish with one key and attack every group of the target.

    ``knowing_the_rest`` gives the adversary the true frequencies of all but the most exposed
    value: what the attack could achieve with the best possible prior.
    """
    policy = replace(target.policy, sample_size=sample_size)
    published = target.publish(number, sample_size)
    known = Knowledge.of(policy, target.schema.domain_size, int(published.records.max()))
    counts = dense(published)
    values = likely_exposed(counts, policy)
    counts = leading(counts, values)
    # Algorithm 1 keeps |g1| secret; the hardened forms publish it, so there is nothing to guess.
    told = published.trials.astype(np.int64) if policy.sampling.trials_known else None
    shares = leading(_true_shares(target), values) if knowing_the_rest else None
    what = f"inferring trials, sample size {sample_size}"
    found = infer(counts, known, told, shares, lambda done: target.progress(what, done))
    low, high = _ranges(published, known, told)
    return Attempt(
        records=target.batch.sizes,
        truth=target.frequency,
        trials=published.trials.astype(np.int64),
        inferred_trials=found.trials,
        frequency=found.frequency,
        mle=np.clip(plain_estimate(counts, policy), low, high),
        # The grid of candidates stops just short of the ends of an octave.
        located=(target.frequency >= low * 0.99) & (target.frequency <= high * 1.01),
    )


def _true_shares(target: AttackedTable) -> Floats:
    """pf + t of every value of every group."""
    counts = dense(target.raw)
    return observed_mean(
        counts / counts.sum(axis=1, keepdims=True),
        1.0,
        retention=target.policy.retention,
        domain_size=target.schema.domain_size,
    )


def plain_estimate(counts: Ints, policy: Policy) -> Floats:
    """F' of the value in the first column (Lemma 1)."""
    return reconstruct_frequency(
        counts[:, 0],
        counts.sum(axis=1),
        retention=policy.retention,
        domain_size=counts.shape[1],
    )


def _ranges(published: Cube, known: Knowledge, told: Ints | None) -> tuple[Floats, Floats]:
    """The range of f that the release reveals: the domain, or an octave."""
    if told is None:
        ends = known.frequency[0], known.frequency[-1]
        return np.full(published.groups, ends[0]), np.full(published.groups, ends[1])
    allowed = [
        known.frequency[known.consistent(int(records), int(trials))]
        for records, trials in zip(published.records, told, strict=True)
    ]
    return np.array([f[0] for f in allowed]), np.array([f[-1] for f in allowed])


def gain(found: Attempt, statistic: str = "median") -> Interval:
    """How many times smaller the attack's error is than the MLE's, paired by group."""
    pairs = np.column_stack([found.mle_error, found.error])
    chosen = median_ratio if statistic == "median" else mean_ratio
    if len(pairs) < _FEW:
        return Interval(chosen(pairs), 0.0, float("inf"))
    draws = uniforms(_RESAMPLES * len(pairs), "bootstrap").reshape(_RESAMPLES, len(pairs))
    return bootstrap(pairs, chosen, draws)


def attack_granularity(
    target: AttackedTable, *, keys: int = 1, least: int = 1, worst: int = 5
) -> AttackResult:
    """Attack every violating group of a minimum size, for each scaled sample size."""
    own = target.policy.sample_size
    # Without classes, exact tails give each histogram a size of its own, which cannot be inverted.
    lattice = target.policy.tail_bound.lattice
    scaled = [
        one.name
        for one in SAMPLE_SIZES.values()
        if one.samples and (one.classes is not None or one.name == own or not lattice)
    ]
    if own not in scaled:
        raise InputError(
            "Without sampling nothing is scaled, so there is no granularity to read.",
            hint=f"Choose sample size {listed(scaled, 'or')}.",
        )
    exposed = target.only(target.violating(least))
    attempts = {size: _several(exposed, size, keys) for size in scaled}
    table = tuple(
        summary(found.where(found.records >= floor), size, floor)
        for size, found in attempts.items()
        for floor in (least, 200, 500)
        if floor >= least and (found.records >= floor).any()
    )
    found = attempts[own]
    told = "groups whose f is estimated within 10 %"
    may_be = target.policy.may_be_exposed(target.schema.domain_size)
    largest = float(target.overall[may_be].max())
    by_table = relative_error(np.full(found.truth.size, largest), found.truth)
    elsewhere = relative_error(np.roll(found.frequency, 1), found.truth)
    return AttackResult(
        name="granularity",
        knew=KNEW,
        success=rate(found.error <= TOLERANCE, f"{told} ({own})"),
        baseline=rate(by_table <= TOLERANCE, f"{told} by the largest f of the whole table"),
        control=rate(elsewhere <= TOLERANCE, f"{told} by the estimate for another group"),
        figures={
            "groups": exposed.batch.groups,
            "keys": keys,
            "MLE within 10 %": rate(found.mle_error <= TOLERANCE, f"{told} by the MLE"),
            "gain over the MLE": gain(found),
        },
        table=table,
        worst=_worst(exposed, found, worst),
        verdict=_verdict(target.policy.sampling, found) + _what_f_is(target.policy),
    )


def _several(exposed: AttackedTable, sample_size: str, keys: int) -> Attempt:
    parts = [attempt(exposed, sample_size, number) for number in range(keys)]
    columns = ([getattr(part, name) for part in parts] for name in Attempt.__dataclass_fields__)
    return Attempt(*(np.concatenate(column) for column in columns))


def summary(found: Attempt, sample_size: str, least: int) -> Row:
    """One line: errors of the attack and of the MLE, and how often |g1| was exact."""
    ratio, mean = gain(found), gain(found, "mean")
    return {
        "sample size": sample_size,
        "records from": least,
        "groups": found.truth.size,
        "median error": float(np.median(found.error)),
        "MLE's": float(np.median(found.mle_error)),
        "gain": ratio.value,
        "gain low": ratio.low,
        "gain high": ratio.high,
        "mean gain": mean.value,
        "mean gain low": mean.low,
        "mean gain high": mean.high,
        "|g1| exact": float(found.exact.mean()),
        "f located": float(found.located.mean()),
    }


def _worst(exposed: AttackedTable, found: Attempt, how_many: int) -> tuple[Row, ...]:
    first = slice(0, exposed.batch.groups)
    order = np.argsort(found.error[first], kind="stable")[:how_many]
    return tuple(
        {
            "group": exposed.describe(int(g)),
            "size": int(found.records[g]),
            "largest f": float(found.truth[g]),
            "inferred f": float(found.frequency[g]),
            "|g1|": int(found.trials[g]),
            "inferred |g1|": int(found.inferred_trials[g]),
        }
        for g in order
    )


def _what_f_is(policy: Policy) -> str:
    """Which value the inferences are about, where it need not be the most frequent one."""
    others = ["harmless"] * bool(policy.harmless) + ["no news"] * policy.news_only
    return _OF_EXPOSED.format(others=listed(others, "or")) if others else ""


def _verdict(own: SampleSize, found: Attempt) -> str:
    error, plain = float(np.median(found.error)), float(np.median(found.mle_error))
    if own.leaks:
        return (
            f"The number of trials leaks: f is estimated with a median error of {error:.1%}, where"
            f" the MLE is off by {plain:.1%}; do not release with sample size {own.name!r}."
        )
    beyond = f"its {own.class_name} and the MLE in it" if own.class_name else "the MLE"
    return (
        f"The number of trials is public and reveals nothing beyond {beyond}: median error"
        f" {error:.1%} against {plain:.1%}."
    )


def infer_from_release(cube: Cube, policy: Policy, *, show: int = 20) -> AttackResult:
    """The adversary's inferences from a release alone, largest groups first."""
    if not policy.sampling.samples:
        raise InputError("This release was not sampled: there is no granularity to read.")
    if policy.news_only:
        policy = policy.on(cube.schema, _estimated_overall(cube, policy))
    known = Knowledge.of(policy, cube.schema.domain_size, int(cube.records.max(initial=0)))
    sampled = policy.sampling.trials_known & (cube.trials < cube.records)
    suspects = np.flatnonzero(sampled | (cube.records > known.size.min()))
    suspects = suspects[np.argsort(-cube.records[suspects], kind="stable")]
    counts = dense(cube, suspects)
    values = likely_exposed(counts, policy)
    counts = leading(counts, values)
    told = cube.trials.astype(np.int64)[suspects] if policy.sampling.trials_known else None
    found = infer(counts, known, told)
    inferred = int(np.count_nonzero(found.trials < counts.sum(axis=1)))
    plain = plain_estimate(counts, policy) if suspects.size else np.empty(0)
    return AttackResult(
        name="granularity",
        knew=KNEW,
        table=tuple(_guesses(cube, suspects[:show], values, found, plain)),
        figures={"groups that may be sampled": suspects.size, "inferred to be": inferred},
        verdict="Inferences only, for the largest groups: without the table, nobody can say how"
        " good they are. Run the same attack on the table to find out." + _what_f_is(policy),
    )


def _estimated_overall(cube: Cube, policy: Policy) -> tuple[float, ...]:
    """How frequent each value is in the whole table, as the release has it."""
    m = cube.schema.domain_size
    counts = np.bincount(cube.value, weights=cube.count, minlength=m)
    p, records = policy.retention, counts.sum()
    found = reconstruct_frequency(counts, np.full(m, records), retention=p, domain_size=m)
    return tuple(np.maximum(found, 0.0).tolist())


def _guesses(cube: Cube, groups: Ints, values: Ints, found: Inferences, plain: Floats) -> list[Row]:
    public = cube.group_table().take(groups).to_pylist()
    return [
        {
            "group": {name: json_value(value) for name, value in public[i].items()},
            "records": int(cube.records[g]),
            "value": json_value(cube.schema.domain[int(values[i])]),
            "inferred |g1|": int(found.trials[i]),
            "inferred f": float(found.frequency[i]),
            "from": float(found.low[i]),
            "to": float(found.high[i]),
            "MLE": float(plain[i]),
        }
        for i, g in enumerate(groups)
    ]

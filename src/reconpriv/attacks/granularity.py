"""The granularity attack: infer |g1| from the duplicates of a scaled group, and f from |g1|.

The paper overlooks it. Algorithm 1 draws s_g trials, and s_g falls strictly with the very
frequency that it protects; the number of trials shows in the published counts (see
trial_likelihood.py).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from reconpriv.attacks.attacked_table import AttackedTable, dense, uniforms
from reconpriv.attacks.from_release import Columns, group_rows, publication_of, values_of
from reconpriv.attacks.result import AttackResult, Row
from reconpriv.attacks.statistics import (
    Aligned,
    ConfidenceInterval,
    Rate,
    bootstrap,
    rate,
    ratio_of,
    relative_error,
)
from reconpriv.attacks.trial_likelihood import Knowledge, infer, leading, likely_exposed
from reconpriv.cells.cube import Cube
from reconpriv.errors import InputError
from reconpriv.messages.phrases import listed
from reconpriv.policy.policy import Policy
from reconpriv.policy.sampling_rules import SAMPLING_RULES, SamplingRule
from reconpriv.release.folder import ReleaseFolder
from reconpriv.theory.arrays import Flags, Floats, Ints
from reconpriv.theory.estimation.reconstruction import observed_mean, reconstruct_frequency

# A frequency estimated within a tenth counts as revealed.
TOLERANCE = 0.1
_RESAMPLES = 400
# With fewer groups than this, resampling gives no meaningful interval.
_FEW = 10
KNEW = (
    "the published counts of each group, p, m, tolerance, doubt, the bound and the sampling rule;"
    " not the key"
)
# Which value the inferences are about, where it need not be the most frequent one.
_OF_EXPOSED = (
    " f is the largest frequency of an exposed value, which sets the number of trials; a value that"
    " is harmless may be more frequent."
)


@dataclass(frozen=True)
class Attempt(Aligned):
    """The attack on every group of a target in one publication or several, one after another."""

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
        """True where |g1| was recovered exactly."""
        return np.asarray(self.inferred_trials == self.trials)


def attempt(
    target: AttackedTable, sampling: str, number: int = 0, *, knowing_the_rest: bool = False
) -> Attempt:
    """Publish with one key and attack every group of the target.

    ``knowing_the_rest`` gives the adversary the true frequencies of all but the most exposed
    value: what the attack could achieve with the best possible prior.
    """
    policy = replace(target.policy, sampling=sampling)
    published = target.publish(number, sampling)
    m = target.schema.domain_size
    known = Knowledge.of(policy, m, int(published.records.max()))
    counts = dense(published)
    values = likely_exposed(counts, policy)
    counts = leading(counts, values)
    # Algorithm 1 keeps |g1| secret; the hardened forms publish it, so there is nothing to guess.
    told = published.trials.astype(np.int64) if policy.sampling_rule.trials_known else None
    shares = None
    if knowing_the_rest:  # pf + t of every value
        true = dense(target.raw) / target.batch.sizes[:, None]
        shares = leading(
            observed_mean(true, 1.0, retention=policy.retention, domain_size=m), values
        )
    what = f"inferring trials, sampling rule {sampling}"
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


def plain_estimate(counts: Ints, policy: Policy) -> Floats:
    """F' of the value in the first column (Lemma 1)."""
    p, m = policy.retention, counts.shape[1]
    return reconstruct_frequency(counts[:, 0], counts.sum(axis=1), retention=p, domain_size=m)


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


def gain(found: Attempt, average: Callable[..., Floats] = np.median) -> ConfidenceInterval:
    """How many times smaller the attack's error is than the MLE's, paired by group."""
    pairs = np.column_stack([found.mle_error, found.error])
    chosen = partial(ratio_of, average=average)
    if len(pairs) < _FEW:
        return ConfidenceInterval(chosen(pairs), 0.0, float("inf"))
    draws = uniforms(_RESAMPLES * len(pairs), "bootstrap").reshape(_RESAMPLES, len(pairs))
    return bootstrap(pairs, chosen, draws)


def attack_granularity(
    target: AttackedTable, *, keys: int = 1, least: int = 1, worst: int = 5
) -> AttackResult:
    """Attack every violating group of a minimum size, for each scaled sampling rule."""
    own, policy = target.policy.sampling, target.policy
    # Without classes, exact tails give each histogram a size of its own, which cannot be inverted.
    exact = policy.tail_bound.exact
    scaled = [
        one.name
        for one in SAMPLING_RULES.values()
        if one.samples and (one.classes is not None or one.name == own or not exact)
    ]
    if own not in scaled:
        raise InputError(
            "Without sampling nothing is scaled, so there is no granularity to read.",
            hint=f"Choose sampling rule {listed(scaled, 'or')}.",
        )
    exposed = target.only(target.violating(least))
    attempts = {
        rule: Attempt.join([attempt(exposed, rule, number) for number in range(keys)])
        for rule in scaled
    }
    found = attempts[own]
    exposable = ~np.array(policy.harmless_flags or (False,) * target.schema.domain_size)
    largest = np.full(found.truth.size, target.overall[exposable].max())

    def near(estimate: Floats, how: str) -> Rate:
        what = f"groups whose f is estimated within 10 % {how}"
        return rate(relative_error(estimate, found.truth) <= TOLERANCE, what)

    first = slice(0, exposed.batch.groups)
    return AttackResult(
        name="granularity",
        knew=KNEW,
        success=near(found.frequency, f"({own})"),
        baseline=near(largest, "by the largest f of the whole table"),
        control=near(np.roll(found.frequency, 1), "by the estimate for another group"),
        figures={
            "groups": exposed.batch.groups,
            "keys": keys,
            "MLE within 10 %": near(found.mle, "by the MLE"),
            "gain over the MLE": gain(found),
        },
        table=tuple(
            summary(one.where(one.records >= floor), rule, floor)
            for rule, one in attempts.items()
            for floor in (least, 200, 500)
            if floor >= least and (one.records >= floor).any()
        ),
        worst=exposed.first(
            found.error[first],
            worst,
            {
                "inferred f": found.frequency[first],
                "|g1|": found.trials[first],
                "inferred |g1|": found.inferred_trials[first],
            },
        ),
        verdict=_verdict(policy.sampling_rule, found) + _OF_EXPOSED * bool(policy.harmless),
    )


def summary(found: Attempt, sampling: str, least: int) -> Row:
    """One line: errors of the attack and of the MLE, and how often |g1| was exact."""
    ratio, mean = gain(found), gain(found, np.mean)
    return {
        "sampling": sampling,
        "records from": least,
        "groups": found.truth.size,
        "median error": np.median(found.error),
        "MLE's": np.median(found.mle_error),
        "gain": ratio.value,
        "gain low": ratio.low,
        "gain high": ratio.high,
        "mean gain": mean.value,
        "mean gain low": mean.low,
        "mean gain high": mean.high,
        "|g1| exact": found.exact.mean(),
        "f located": found.located.mean(),
    }


def _verdict(own: SamplingRule, found: Attempt) -> str:
    error, plain = float(np.median(found.error)), float(np.median(found.mle_error))
    if own.leaks:
        return (
            f"The number of trials leaks: f is estimated with a median error of {error:.1%}, where"
            f" the MLE is off by {plain:.1%}; do not release with sampling rule {own.name!r}."
        )
    beyond = f"its {own.class_name} and the MLE in it" if own.class_name else "the MLE"
    return (
        f"The number of trials is public and reveals nothing beyond {beyond}: median error"
        f" {error:.1%} against {plain:.1%}."
    )


def guess_from_release(release: ReleaseFolder, *, show: int = 20) -> AttackResult:
    """The adversary's inferences from a release alone, largest groups first."""
    published = publication_of(release)
    cube, policy = published.cube, published.policy
    if not policy.sampling_rule.samples:
        raise InputError("This release was not sampled: there is no granularity to read.")
    known = Knowledge.of(policy, cube.schema.domain_size, int(cube.records.max(initial=0)))
    sampled = policy.sampling_rule.trials_known & (cube.trials < cube.records)
    suspects = np.flatnonzero(sampled | (cube.records > known.size.min()))
    suspects = suspects[np.argsort(-cube.records[suspects], kind="stable")]
    counts = dense(cube, suspects)
    values = likely_exposed(counts, policy)
    counts = leading(counts, values)
    told = cube.trials.astype(np.int64)[suspects] if policy.sampling_rule.trials_known else None
    found = infer(counts, known, told)
    inferred = int(np.count_nonzero(found.trials < counts.sum(axis=1)))
    columns: Columns = {
        "value": values_of(cube.schema, values[:show]),
        "inferred |g1|": found.trials[:show],
        "inferred f": found.frequency[:show],
        "from": found.low[:show],
        "to": found.high[:show],
        "MLE": plain_estimate(counts[:show], policy),
    }
    return AttackResult(
        name="granularity",
        knew=KNEW,
        table=group_rows(cube, suspects[:show], columns),
        figures={"groups that may be sampled": suspects.size, "inferred to be": inferred},
        verdict="Inferences only, for the largest groups: without the table, nobody can say how"
        " good they are. Run the same attack on the table to find out."
        + _OF_EXPOSED
        * bool(policy.harmless),
    )

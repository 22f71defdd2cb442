"""Micro reconstruction (Example 1): the distribution of a person's group from its records."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from reconpriv.attacks.attacked_table import (
    AttackedTable,
    Publication,
    count_of,
    guessed_right,
    possible_rules,
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
    truly_over_limit,
)
from reconpriv.attacks.from_release import Columns, guess_groups, publication_of
from reconpriv.attacks.result import KNEW, KNEW_MORE, AttackResult, Row
from reconpriv.attacks.statistics import rate, relative_error, score
from reconpriv.columns.schema import json_value
from reconpriv.estimate.linear import selection_sums
from reconpriv.estimate.set_counts import SetCounts
from reconpriv.policy.sampling_rules import SAMPLING_RULES, own_trials, sample_limits
from reconpriv.protect.margins.tables import MarginTable
from reconpriv.release.folder import ReleaseFolder
from reconpriv.theory.arrays import Flags, Floats, Ints
from reconpriv.theory.counts import ObservedCount
from reconpriv.theory.tails.exact import exact_tails

_QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9)


def attack_micro(
    target: AttackedTable, *, keys: int = 5, worst: int = 5, check: bool = True
) -> AttackResult:
    """Reconstruct every group by Lemma 1, for each sampling rule, with several keys.

    If margins are published, then also by the best estimate from records and margins together.
    Without ``check``, the attack is not held against what theory predicts for uneven copies.
    """
    exposed, own, tolerance = target.exposed, target.policy.sampling, target.policy.tolerance
    rules = target.steps("sampling rule", possible_rules(target.policy))
    found = {rule: measure(target, rule, keys, check=check) for rule in rules}
    mine, rows = found[own], {rule: one.row() for rule, one in found.items()}
    common = int(np.argmax(target.overall))
    most = guessed_right(exposed, np.full(exposed.batch.groups, common))
    error = mine.errors.reshape(keys, -1).mean(axis=0)
    shuffled = target.shuffled()
    published = shuffled.publication(0, own)
    control = best_estimates(shuffled, published, target.violating(), exposed.values)
    how, knew = (", from records and margins", KNEW_MORE) if mine.tables else ("", KNEW)
    return AttackResult(
        name="micro",
        knew=knew,
        success=rate(
            mine.errors <= tolerance, f"violating groups within the tolerance{how} ({own})"
        ),
        baseline=exposed.within(
            exposed.shares_of_whole,
            "violating groups whose f the whole table predicts within the tolerance",
        ),
        control=exposed.within(control.combined, "the same with the sensitive column shuffled"),
        figures={
            "violating groups": exposed.batch.groups,
            "keys": keys,
            "best guess from the whole table": json_value(target.schema.domain[common]),
            "it is right in": rate(most, "violating groups"),
            "persons it is right for": target.overall[common],
            **mine.figures(),
        },
        table=tuple(rows.values()),
        worst=exposed.first(error, worst, {"mean error": error}),
        verdict=_verdict(rows, own, tolerance),
    )


@dataclass(frozen=True)
class Measured:
    """The violating groups of a table under one sampling rule, from several publications.

    ``found`` has the estimates from each, ``guess`` the value guessed for every group of the
    table from the first of them.
    """

    target: AttackedTable
    rule: str
    published: Sequence[Publication]
    found: Sequence[BestEstimates]
    guess: Ints
    check: bool

    @property
    def tables(self) -> tuple[MarginTable, ...]:
        """The margin tables that are published beside the records."""
        return self.published[0].tables

    @property
    def errors(self) -> Floats:
        """|F' - f|/f from records and margins, publication after publication."""
        return np.concatenate([relative_error(one.combined, one.truth) for one in self.found])

    def row(self) -> Row:
        """The share within the tolerance, and what exact tails predict by even and uneven copies.

        If margins are published, see :meth:`with_margins`.
        """
        if self.tables:
            return self.with_margins()
        within = self.errors <= self.target.policy.tolerance
        predicted = self._predicted(self.found) if self.check else None
        checked = {"with copies": _mean(predicted), "z": _score(within, predicted)}
        return {
            "sampling": self.rule,
            "within tolerance": within.mean(),
            "exact tails": predicted_share(self.target.exposed, self.rule).mean(),
            **(checked if self.check else {}),
            **self._spread_and_guesses(),
        }

    def with_margins(self) -> Row:
        """The shares within the tolerance with and without margins, with what is predicted."""
        tolerance, samples = self.target.policy.tolerance, SAMPLING_RULES[self.rule].samples
        errors = [relative_error(one.alone, one.truth) for one in self.found]
        alone, within = np.concatenate(errors) <= tolerance, self.errors <= tolerance
        by_records = self._predicted([one.without_margins for one in self.found])
        predicted = self._predicted(self.found)
        normal = np.concatenate([normal_share(one, tolerance) for one in self.found])
        limits, counted, over = (np.concatenate(each) for each in zip(*self._limits(), strict=True))
        return {
            "sampling": self.rule,
            "records alone": alone.mean(),
            "predicted alone": _mean(by_records),
            "z alone": _score(alone, by_records),
            "within tolerance": within.mean(),
            "normal form": None if predicted is None else normal.mean(),
            "predicted": _mean(predicted),
            "z": _score(within, predicted),
            "trials": np.median([one.trials for one in self.found]),
            "effective trials": np.median([one.effective_trials for one in self.found]),
            "limit": np.median(limits) if samples else None,
            "over limit": counted.sum() if samples else None,
            "truly over": over.sum() if samples else None,
            **self._spread_and_guesses(),
        }

    def figures(self) -> Row:
        """What margins are published; whether any group has more effective trials than allowed."""
        if not self.tables:
            return {}
        target, published = self.target, self.published[0]
        plan = target.margins(published.policy, None)
        counted = over_limit(target, published, np.arange(target.batch.groups))
        rows = sum(table.rows for table in self.tables)
        return {
            "ε of the margins": plan.margins.epsilon,
            "σ of the margins": float(np.sqrt(published.variance)),
            "rows published": rows,
            "rows left out": plan.totals.rows - rows,
            "groups over their limit of effective trials": None
            if counted is None
            else rate(counted, "groups, as the publisher counts margins"),
        }

    def _predicted(self, found: Sequence[BestEstimates]) -> Floats | None:
        """The chance that each estimate is close; unknown if coins decide on its trials."""
        if SAMPLING_RULES[self.rule].coin_flips:
            return None
        tolerance = self.target.policy.tolerance
        return np.concatenate([combined_share(one, tolerance) for one in found])

    def _limits(self) -> list[tuple[Floats, Flags, Flags]]:
        """The limit of every group; whether it is exceeded as the publisher counts, and truly.

        Where nobody counts margins, the true variances decide on both.
        """
        found = []
        for published, best in zip(self.published, self.found, strict=True):
            limits = limits_of(self.target, published, best.groups)
            over = truly_over_limit(self.target, published, best)
            if over is None:
                over = (best.effective_trials > limits + WHOLE) & (limits >= 1.0)
            counted = over_limit(self.target, published, best.groups)
            found.append((limits, over if counted is None else counted, over))
        return found

    def _spread_and_guesses(self) -> Row:
        right = guessed_right(self.target, self.guess)
        held = count_of(self.target.raw, self.guess)
        quantiles = np.quantile(self.errors, _QUANTILES)
        return {
            **{f"error {q:.0%}": v for q, v in zip(_QUANTILES, quantiles, strict=True)},
            "guess right": right[self.target.violating()].mean(),
            "all groups": right.mean(),
            "persons": held.sum() / self.target.batch.sizes.sum(),
        }


def measure(target: AttackedTable, rule: str, keys: int, *, check: bool = True) -> Measured:
    """Estimate the most exposed value of every violating group, with several keys."""
    groups, values = target.violating(), target.exposed.values
    published = [target.publication(number, rule) for number in range(keys)]
    found = [best_estimates(target, one, groups, values) for one in published]
    return Measured(target, rule, published, found, best_guesses(target, published[0]), check)


def predicted_share(target: AttackedTable, sampling: str) -> Floats:
    """Pr[an error within the tolerance] by the exact tails at each group's trials.

    Trials in `paper` vary by coin flips around s(f); the prediction is at their mean.
    """
    policy, m = replace(target.policy, sampling=sampling), target.schema.domain_size
    limits = sample_limits(target.batch, policy, m)
    trials = np.round(own_trials(target.batch.sizes, limits))
    count = ObservedCount(trials, target.frequency, policy.retention, m, policy.tolerance)
    upper, lower = exact_tails(count)
    return np.asarray(1.0 - upper - lower)


def _mean(predicted: Floats | None) -> Any:
    return None if predicted is None else predicted.mean()


def _score(within: Flags, predicted: Floats | None) -> float | None:
    return None if predicted is None else score(within.astype(np.float64), predicted)


def _verdict(rows: dict[str, Row], own: str, tolerance: float) -> str:
    row, alone = rows[own], rows["none"].get("records alone", rows["none"]["within tolerance"])
    said = (
        f"With perturbation alone, f is estimated within ±{tolerance:.0%} in {alone:.1%}"
        f" of the violating groups; with sampling rule {own!r}, in "
    )
    if "records alone" not in row:
        return f"{said}{row['within tolerance']:.1%}."
    said += f"{row['records alone']:.1%} from the records and {row['within tolerance']:.1%}"
    said += " with the margins"
    if row["over limit"] is None:
        return f"{said}."
    many, over = row["over limit"], "none has"
    if many:
        over = f"{many:,} {'has' if many == 1 else 'have'}"
    return f"{said}; {over} more effective trials than allowed."


def guess_from_release(release: ReleaseFolder, *, show: int = 20) -> AttackResult:
    """The most frequent value of each group, as an analyst would estimate it."""
    return guess_groups("micro", publication_of(release), _guess, show)


def _guess(published: Publication, groups: Ints) -> tuple[Ints, Columns]:
    """The largest estimated count of each group, from records and margins together."""
    cube, told = published.cube, published.measurements
    place = np.full(cube.groups, -1)
    place[groups] = np.arange(groups.size)
    sums = selection_sums(told, cube, lambda _: place, groups.size, None)
    counts = SetCounts(sums, published.design).number
    guess = counts.argmax(axis=1)
    return guess, {"F'": counts[np.arange(groups.size), guess] / cube.records[groups]}

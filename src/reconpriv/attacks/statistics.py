"""The statistics of the attacks, and nothing else: no tables, no randomness."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np

from reconpriv.theory.arrays import Flags, Floats, Ints

_CONFIDENCE = 0.95
# The two-sided normal quantile for that confidence.
_Z = 1.959963984540054


@dataclass(frozen=True)
class Aligned:
    """Arrays that have an entry for each case, such as a group."""

    def where(self, cases: Ints | Flags) -> Self:
        """Some of the cases."""
        return type(self)(*(getattr(self, one.name)[cases] for one in fields(self)))

    @classmethod
    def join(cls, parts: Sequence[Self]) -> Self:
        """The cases of several, one after another."""
        names = [one.name for one in fields(cls)]
        return cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))


@dataclass(frozen=True)
class Rate:
    """How often something succeeded, with Wilson's interval; ``what`` says what was counted."""

    successes: int
    trials: int
    what: str

    @property
    def share(self) -> float:
        """Successes over trials."""
        return self.successes / self.trials if self.trials else math.nan

    @property
    def low(self) -> float:
        """The lower end of the interval."""
        return wilson(self.successes, self.trials)[0]

    @property
    def high(self) -> float:
        """The upper end of the interval."""
        return wilson(self.successes, self.trials)[1]

    def as_dict(self) -> dict[str, Any]:
        """The rate with its interval, for JSON."""
        return {
            "what": self.what,
            "successes": self.successes,
            "trials": self.trials,
            "share": self.share if self.trials else None,
            "interval": [self.low, self.high],
        }

    def __str__(self) -> str:
        if not self.trials:
            return "nothing to count"
        return f"{self.share:.1%} ({self.low:.1%} to {self.high:.1%}) of {self.trials:,}"


def rate(hits: Flags, what: str) -> Rate:
    """The rate of an array of outcomes."""
    return Rate(int(np.count_nonzero(hits)), int(np.size(hits)), what)


def wilson(successes: int, trials: int) -> tuple[float, float]:
    """Wilson's score interval, 95 %; all of [0, 1] if nothing was tried."""
    if trials == 0:
        return 0.0, 1.0
    share, z2 = successes / trials, _Z * _Z
    centre = (share + z2 / (2 * trials)) / (1 + z2 / trials)
    inner = share * (1 - share) / trials + z2 / (4 * trials * trials)
    half = _Z / (1 + z2 / trials) * math.sqrt(inner)
    # At the ends, rounding must not push the interval off the share itself.
    return min(max(0.0, centre - half), share), max(min(1.0, centre + half), share)


@dataclass(frozen=True)
class ConfidenceInterval:
    """A number with a 95 % interval."""

    value: float
    low: float
    high: float

    def contains(self, number: float) -> bool:
        """True if the interval contains a number, ends included."""
        return self.low <= number <= self.high

    def as_dict(self) -> dict[str, float]:
        """The number with its interval, for JSON."""
        return {"value": self.value, "low": self.low, "high": self.high}

    def __str__(self) -> str:
        return f"{self.value:.3g} ({self.low:.3g} to {self.high:.3g})"


def bootstrap(
    rows: Floats, statistic: Callable[[Floats], float], uniform: Floats
) -> ConfidenceInterval:
    """A statistic of rows with the percentile interval of its bootstrap.

    ``uniform`` has one row per resample and one column per row of the data; rows stay whole, so
    what is paired in a row stays paired.
    """
    picks = (uniform * rows.shape[0]).astype(np.int64)
    values = np.array([statistic(rows[pick]) for pick in picks])
    low, high = np.quantile(values, [(1 - _CONFIDENCE) / 2, (1 + _CONFIDENCE) / 2])
    return ConfidenceInterval(float(statistic(rows)), float(low), float(high))


def ratio_of(pairs: Floats, average: Callable[..., Floats] = np.median) -> float:
    """The average, such as the median, of the first column over that of the second."""
    above, below = average(pairs, axis=0)
    return float(above / below) if below > 0 else math.inf


def log_slope(x: Floats, y: Floats) -> float:
    """The least-squares slope of ln y over ln x: -1/2 if y falls like 1/sqrt(x)."""
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])


def relative_error(estimate: Floats, truth: Floats) -> Floats:
    """|F' - f| / f."""
    return np.asarray(np.abs(estimate - truth) / truth)


def score(observed: Floats, expected: Floats) -> float:
    """z of a sum of independent yes-or-no outcomes against their probabilities."""
    variance = float((expected * (1 - expected)).sum())
    difference = float(observed.sum() - expected.sum())
    return difference / math.sqrt(variance) if variance > 0 else 0.0


def correlation(x: Floats, y: Floats) -> ConfidenceInterval:
    """Pearson's correlation with Fisher's interval."""
    r = float(np.corrcoef(x, y)[0, 1])
    middle, half = math.atanh(max(min(r, 1 - 1e-12), -1 + 1e-12)), _Z / math.sqrt(len(x) - 3)
    return ConfidenceInterval(r, math.tanh(middle - half), math.tanh(middle + half))


def difference_of_shares(right: Flags, first: Ints, second: Ints) -> tuple[float, float]:
    """How much more often the first people are right than the second, with its standard error.

    Every line stands for people of both kinds, in two counts. The error is that of drawing the
    first people by lot from both.
    """
    shares = [float(people[right].sum() / people.sum()) for people in (first, second)]
    variances = [share * (1.0 - share) for share in shares]
    error = math.sqrt(variances[0] / first.sum() + variances[1] / second.sum())
    return shares[0] - shares[1], error


def root_mean_square(errors: Floats) -> float:
    """Over all groups and publications."""
    return float(np.sqrt(np.mean(errors**2)))


def paired_difference(first: Flags, second: Flags) -> tuple[float, float]:
    """How much more often the first succeeds than the second, with its standard error.

    A row per repetition, a column per case; cases are independent, repetitions of one are not.
    """
    each = first.mean(axis=0) - second.mean(axis=0)
    error = float(np.std(each, ddof=1)) / math.sqrt(each.size) if each.size > 1 else math.nan
    return float(each.mean()), error


def true_positives(
    score: Floats, first: Ints, second: Ints, false_positives: float
) -> tuple[float, float]:
    """The share of the first people above the score that so many of the second are above.

    People with the same score are counted in part, and between two of the second the share is
    interpolated, so that it is ``false_positives`` on average if the score tells nothing. The
    standard error is that of drawing people by lot, to first order: a threshold that is off by
    some of the second is off by as many of the first, in proportion.
    """
    order = np.argsort(-score, kind="stable")
    last = np.flatnonzero(np.diff(score[order], append=-np.inf))
    inside, outside = (np.cumsum(people[order])[last] / people.sum() for people in (first, second))
    # Only where somebody of the second was passed, or the first would have a head start.
    passed = np.diff(outside, prepend=0.0) > 0
    inside, outside = (np.append(0.0, share[passed]) for share in (inside, outside))
    found = float(np.interp(false_positives, outside, inside))
    level = score[order][last][passed]
    reached = min(int(np.searchsorted(outside[1:], false_positives)), level.size - 1)
    part = (false_positives - outside[reached]) / (outside[reached + 1] - outside[reached])
    weight = np.where(score > level[reached], 1.0, np.where(score == level[reached], part, 0.0))
    spread = [
        float((weight**2 * people).sum() / people.sum() - mean**2) / people.sum()
        for people, mean in ((first, found), (second, false_positives))
    ]
    slope = found / false_positives
    return found, math.sqrt(max(spread[0], 0.0) + slope**2 * max(spread[1], 0.0))

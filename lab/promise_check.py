"""Whether the promise about exposed values holds, over many releases of one table.

If groups rest on too many trials, one of two checks fails:

- *Predicted*: both tails of every exposed value, at the trials of its group, its true frequency and
  what margins are truly worth about it. None may be below δ.
- *Seen*: how often estimates were too high or too low, pooled over values of one class, against
  what was predicted. Values of a table share their margins, so the spread of a class is that over
  releases.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from reconpriv.attacks.attacked_table import AttackedTable, Publication
from reconpriv.attacks.best_estimate import WHOLE, BestEstimates, best_estimates, combined_outside
from reconpriv.policy.exposure import exposed_cells
from reconpriv.research.results import Row
from reconpriv.theory.arrays import Floats, Ints
from reconpriv.theory.tails.exact_margins import rounded_up

STANDARD_ERRORS = 3.0
# Classes of exposed values, by what margins are worth about them and by the trials of their group.
WORTH, TRIALS = (0.25, 1.0, 4.0), (6, 11, 21)
# A class in which fewer estimates were to be off says nothing.
LEAST_OFF = 30.0
READERS, SIDES = ("own records", "with margins"), ("high", "low")


@dataclass
class Tails:
    """How often estimates of each exposed value were too high and too low."""

    high: Ints
    low: Ints
    keys: int = 0

    @classmethod
    def of(cls, cells: int) -> Tails:
        """Nothing seen yet."""
        return cls(np.zeros(cells, dtype=np.int64), np.zeros(cells, dtype=np.int64))

    def add(self, sides: Floats) -> None:
        """Count the estimates of one release."""
        self.high += sides[0].astype(np.int64)
        self.low += sides[1].astype(np.int64)
        self.keys += 1

    def below(self, delta: float) -> int:
        """How many values have a tail below δ by more than three standard errors."""
        error = np.sqrt(delta * (1.0 - delta) / self.keys)
        least = self.keys * (delta - STANDARD_ERRORS * error)
        return int((np.minimum(self.high, self.low) < least).sum())

    @property
    def smallest(self) -> float:
        """The smallest tail of all values."""
        return float(np.minimum(self.high, self.low).min(initial=self.keys) / self.keys)


@dataclass(frozen=True)
class WorstClass:
    """The class whose estimates are off more or less often than predicted, in standard errors."""

    name: str
    score: float
    seen: float
    predicted: float


@dataclass
class PromiseCheck:
    """Both checks, release after release.

    ``seen`` and ``predicted`` have an entry per release, reader, side and class; ``over`` is the
    number of groups with a predicted tail below δ, ``undercounted`` that of the values about which
    margins are worth more than the publisher counted, ``of_counted`` the largest quotient of both.
    """

    target: AttackedTable
    groups: Ints
    values: Ints
    own: Tails
    both: Tails
    seen: list[Floats] = field(default_factory=list)
    predicted: list[Floats] = field(default_factory=list)
    smallest: float = 1.0
    over: list[int] = field(default_factory=list)
    undercounted: list[int] = field(default_factory=list)
    of_counted: float = 0.0

    @classmethod
    def of(cls, target: AttackedTable) -> PromiseCheck:
        """Every value of every group that the policy protects, sampled or not."""
        cells = np.flatnonzero(exposed_cells(target.batch, target.policy))
        groups, values = target.batch.group_of_cell[cells], target.batch.value[cells]
        return cls(target, groups, values, Tails.of(cells.size), Tails.of(cells.size))

    def add(self, published: Publication) -> None:
        """Look at one more release."""
        best = best_estimates(self.target, published, self.groups, self.values)
        epsilon = self.target.policy.tolerance
        readers = (best.without_margins, best)
        off = np.array([_off(one, epsilon) for one in readers])
        chance = np.array([combined_outside(one, epsilon) for one in readers])
        self.own.add(off[0])
        self.both.add(off[1])
        place = _classes(best)
        self.seen.append(_pooled(off, place))
        self.predicted.append(_pooled(chance, place))
        tail = chance.min(axis=(0, 1), initial=1.0)
        self.smallest = min(self.smallest, float(tail.min(initial=1.0)))
        failing = self.groups[tail < self.target.policy.doubt - WHOLE]
        self.over.append(np.unique(failing).size)
        self._compare_worth(best, published)

    def _compare_worth(self, best: BestEstimates, published: Publication) -> None:
        """What margins are truly worth, against what the publisher counted."""
        told = published.counted.told(self.target.batch)
        counted = rounded_up(np.zeros(0) if told is None else told[self.groups])
        some = counted > 0.0
        quotient = best.worth[some] / counted[some]
        self.undercounted.append(int((quotient > 1.0 + WHOLE).sum()))
        self.of_counted = max(self.of_counted, float(quotient.max(initial=0.0)))

    def worst_class(self) -> WorstClass:
        """The class that is furthest from its prediction."""
        seen, predicted = np.array(self.seen), np.array(self.predicted)
        difference = seen - predicted
        spread = difference.std(axis=0, ddof=1) / np.sqrt(difference.shape[0])
        enough = (predicted.sum(axis=0) >= LEAST_OFF) & (spread > 0.0)
        score = np.divide(difference.mean(axis=0), spread, out=np.zeros_like(spread), where=enough)
        reader, side, place = np.unravel_index(int(np.abs(score).argmax()), score.shape)
        where = (reader, side, place)
        return WorstClass(
            f"{READERS[reader]}, too {SIDES[side]}, {_class_name(int(place))}",
            float(score[where]),
            float(seen.sum(axis=0)[where]),
            float(predicted.sum(axis=0)[where]),
        )

    def row(self) -> Row:
        """What was found."""
        delta, worst = self.target.policy.doubt, self.worst_class()
        return {
            "tail_keys": self.both.keys,
            "exposed": self.groups.size,
            "below_own": self.own.below(delta),
            "smallest_own": self.own.smallest,
            "below_both": self.both.below(delta),
            "smallest_both": self.both.smallest,
            "smallest_predicted": self.smallest,
            "over_limit": float(np.mean(self.over)),
            "undercounted": float(np.mean(self.undercounted)),
            "largest_of_counted": self.of_counted,
            "worst_class": worst.name,
            "worst_score": worst.score,
            "worst_seen": worst.seen,
            "worst_predicted": worst.predicted,
        }


def _off(best: BestEstimates, epsilon: float) -> tuple[Floats, Floats]:
    """Which estimates are too high and too low by more than ε."""
    high = best.combined > (1.0 + epsilon) * best.truth + WHOLE
    low = best.combined < (1.0 - epsilon) * best.truth - WHOLE
    return high.astype(np.float64), low.astype(np.float64)


def _classes(best: BestEstimates) -> Ints:
    worth = np.searchsorted(WORTH, best.worth, side="right")
    trials = np.searchsorted(TRIALS, best.trials, side="right")
    return np.asarray(worth * (len(TRIALS) + 1) + trials)


def _pooled(tails: Floats, place: Ints) -> Floats:
    """Sums over the values of each class, by reader and side."""
    count = (len(WORTH) + 1) * (len(TRIALS) + 1)
    return np.array(
        [[np.bincount(place, weights=one, minlength=count) for one in sides] for sides in tails]
    )


def _class_name(place: int) -> str:
    worth, trials = divmod(place, len(TRIALS) + 1)
    return f"{_between(WORTH, worth, 'E')}, {_between(TRIALS, trials, 'n')}"


def _between(borders: tuple[float, ...], place: int, name: str) -> str:
    if place == 0:
        return f"{name} < {borders[0]:g}"
    if place == len(borders):
        return f"{name} ≥ {borders[-1]:g}"
    return f"{borders[place - 1]:g} ≤ {name} < {borders[place]:g}"

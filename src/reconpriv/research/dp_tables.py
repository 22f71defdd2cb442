"""Tables 4 and 5: the ratio attack on Laplace answers, printed, exact and simulated."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np

from reconpriv.attacks.ratio import simulated_ratios
from reconpriv.research.data import BASES, Population
from reconpriv.research.results import Result, Row, Step
from reconpriv.research.setting import SIZES, StudySize
from reconpriv.theory.arrays import Floats
from reconpriv.theory.ratio import ratio_tails

PRIVACIES = (0.1, 0.05)
# λ, ε and the side of each of the paper's eight columns.
COLUMNS = tuple(product(PRIVACIES, (0.2, 0.3), ("above", "below")))
PRINTED_TRIALS = 100

# |g|, f in g, f in D, then the counts of each column.
PRINTED: dict[str, tuple[tuple[float, ...], ...]] = {
    "EDU": (
        (89, 0.87, 0.025, 18, 13, 14, 7, 34, 29, 24, 22),
        (74, 0.77, 0.025, 25, 23, 14, 7, 32, 32, 28, 23),
        (138, 0.76, 0.172, 11, 9, 8, 3, 18, 27, 20, 15),
        (104, 0.76, 0.172, 21, 12, 9, 6, 35, 28, 22, 22),
        (104, 0.75, 0.172, 23, 14, 11, 6, 35, 25, 21, 28),
        (77, 0.74, 0.025, 26, 11, 18, 11, 26, 39, 27, 26),
        (102, 0.72, 0.025, 18, 13, 8, 8, 32, 31, 29, 21),
    ),
    "OCC": (
        (142, 0.48, 0.038, 13, 18, 11, 4, 29, 29, 27, 20),
        (213, 0.47, 0.024, 8, 8, 3, 0, 23, 19, 15, 11),
        (111, 0.47, 0.026, 26, 18, 16, 13, 40, 30, 27, 29),
        (113, 0.45, 0.024, 28, 20, 17, 8, 38, 30, 23, 25),
        (153, 0.45, 0.026, 18, 15, 6, 6, 20, 40, 26, 21),
        (237, 0.45, 0.024, 8, 9, 3, 3, 17, 21, 13, 12),
        (143, 0.44, 0.038, 12, 17, 12, 6, 38, 34, 27, 20),
    ),
}

# The paper picks the seven groups with the largest f among those with more records than this.
LEAST_SIZE = {"EDU": 70, "OCC": 100}
PICKED = 7


@dataclass(frozen=True)
class Group:
    """A micro group as a row of the tables; ``printed`` holds the paper's eight counts."""

    base: str
    source: str
    number: int
    size: int
    frequency: float
    frequency_in_table: float
    printed: tuple[int, ...] = ()


def paper_groups() -> Iterator[Group]:
    """The 14 groups that the paper prints."""
    for base, rows in PRINTED.items():
        for number, (size, f, overall, *counts) in enumerate(rows, start=1):
            yield Group(base, "paper", number, int(size), f, overall, tuple(int(c) for c in counts))


def own_groups(population: Population) -> Iterator[Group]:
    """The groups of our own data, chosen as in the paper."""
    records = min(SIZES[-1], population.largest)
    for base in BASES:
        found: list[tuple[float, int, int]] = []
        with population.sample(base, records) as table:
            overall = table.engine.value_counts(table.schema.sensitive)
            domain = table.schema.domain
            for batch in table.batches():
                frequency = batch.largest_frequencies
                for group in np.flatnonzero(batch.sizes > LEAST_SIZE[base]):
                    alone = batch.slice(int(group), int(group) + 1)
                    value = int(alone.value[np.argmax(alone.count)])
                    found.append((float(frequency[group]), int(batch.sizes[group]), value))
        best = sorted(found, key=lambda row: (-row[0], -row[1]))[:PICKED]
        for number, (frequency_, size, value) in enumerate(best, start=1):
            share = overall[domain[value]] / records
            yield Group(base, "ours", number, size, frequency_, share)


def run_dp_tables(population: Population, effort: StudySize, step: Step) -> Result:
    """For each group, λ, ε and side: the printed count, exact probability and simulated share."""
    rows: list[Row] = []
    for group in (*paper_groups(), *own_groups(population)):
        size, f = group.size, group.frequency
        errors = {
            privacy: simulated_ratios(size, f, privacy, effort.trials) / f - 1.0
            for privacy in PRIVACIES
        }
        for column, (privacy, epsilon, side) in enumerate(COLUMNS):
            error = errors[privacy]
            beyond = error > epsilon if side == "above" else error < -epsilon
            rows.append(
                {
                    "base": group.base,
                    "source": group.source,
                    "group": group.number,
                    "size": size,
                    "frequency": f,
                    "frequency_in_table": group.frequency_in_table,
                    "privacy": privacy,
                    "epsilon": epsilon,
                    "side": side,
                    "printed": group.printed[column] if group.printed else "",
                    "exact": _tail(group, privacy, epsilon, side),
                    "simulated": float(beyond.mean()),
                    "trials": effort.trials,
                }
            )
        step(f"{group.base} {group.source} group {group.number}")
    return Result("dp-tables", tuple(rows))


def _tail(group: Group, privacy: float, epsilon: float, side: str) -> float:
    tails = ratio_tails(group.size, group.frequency, privacy=privacy, epsilon=epsilon)
    return float(getattr(tails, side))


def printed_scores(privacy_factor: float = 1.0) -> Floats:
    """z of all 112 printed counts against their exact probabilities.

    A ``privacy_factor`` other than 1 tests whether another noise scale would fit as well.
    """
    scores = []
    for group in paper_groups():
        for count, (privacy, epsilon, side) in zip(group.printed, COLUMNS, strict=True):
            p = _tail(group, privacy * privacy_factor, epsilon, side)
            spread = math.sqrt(PRINTED_TRIALS * p * (1 - p))
            scores.append((count - PRINTED_TRIALS * p) / spread)
    return np.array(scores)

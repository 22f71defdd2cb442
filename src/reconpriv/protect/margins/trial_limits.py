"""Limits of trials, and what margins cost them: the base that counts no margins."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reconpriv.cells.cell_batch import CellBatch
from reconpriv.theory.arrays import Floats, Ints


@dataclass(frozen=True)
class CostPart:
    """What margins cost some of the groups; ``most`` is the most that they tell about one."""

    groups: int = 0
    trials: int = 0
    trials_lost: int = 0
    most: float = 0.0

    def __add__(self, other: CostPart) -> CostPart:
        """Both parts together."""
        return CostPart(
            self.groups + other.groups,
            self.trials + other.trials,
            self.trials_lost + other.trials_lost,
            max(self.most, other.most),
        )


class TrialLimits:
    """Lowers the limits of a sample size by what margins tell about the groups: here, nothing."""

    def lowered(self, batch: CellBatch, limits: Floats) -> Floats:  # noqa: ARG002
        """The limits of a sample size, lowered by what margins are worth about each group."""
        return limits

    def told(self, batch: CellBatch) -> Floats | None:  # noqa: ARG002
        """How many trials margins are worth about each group; None if they are not counted."""
        return None

    def cost(self, batch: CellBatch) -> CostPart:  # noqa: ARG002
        """What margins cost the groups of a batch."""
        return CostPart()

    def beside(self, batch: CellBatch) -> dict[str, Floats]:  # noqa: ARG002
        """For every group: its own trials, those that margins are worth, and both together."""
        return {}


UNCOUNTED = TrialLimits()


def own_trials(sizes: Ints, limits: Floats) -> Floats:
    """How many records of each group are drawn: all, or as many as its limit allows."""
    return np.where(sizes > limits, np.maximum(limits, 1.0), sizes)

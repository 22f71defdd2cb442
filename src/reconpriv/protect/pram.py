"""A transition matrix for one column, with what it costs and what it promises."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from reconpriv.columns.schema import Value, json_value
from reconpriv.errors import PolicyError
from reconpriv.messages.arguments import checked
from reconpriv.messages.readable import Readable
from reconpriv.theory.arrays import Floats
from reconpriv.theory.estimation.transition import (
    check_transition,
    condition_number,
    transition_privacy_level,
)
from reconpriv.theory.perturbation import check_domain_size

FROM_DATA = (
    "the matrix was made from the data: whoever has it can compute the exact frequencies of the"
    " column from it"
)
UNBOUNDED = (
    "no local privacy level: the matrix has zeros, so that a published value can rule out a true"
    " one"
)


@dataclass(frozen=True, eq=False, repr=False)
class PramMatrix(Readable):
    """A matrix for post-randomisation (PRAM): row i is the distribution of what i becomes.

    ``from_data`` says that it was computed from the column that it is for.
    """

    values: tuple[Value, ...]
    probabilities: Floats
    from_data: bool = False

    @cached_property
    def condition_number(self) -> float:
        """How much the reconstruction may magnify noise; 1 is best."""
        return condition_number(self.probabilities)

    @cached_property
    def local_privacy_level(self) -> float:
        """The ε of local differential privacy that one published value provides; may be inf."""
        return transition_privacy_level(self.probabilities)

    @property
    def remarks(self) -> tuple[str, ...]:
        """What to know before it is used or passed on."""
        unbounded = (UNBOUNDED,) if math.isinf(self.local_privacy_level) else ()
        return (*unbounded, *((FROM_DATA,) if self.from_data else ()))

    @checked
    def ordered(self, values: Sequence[Value]) -> PramMatrix:
        """The same matrix for the values in another order."""
        if tuple(values) == self.values:
            return self
        if set(values) != set(self.values):
            raise PolicyError("The matrix is for other values than those of the domain.")
        position = {value: i for i, value in enumerate(self.values)}
        order = [position[value] for value in values]
        return PramMatrix(tuple(values), self.probabilities[np.ix_(order, order)], self.from_data)

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON; an infinite privacy level is None."""
        level = self.local_privacy_level
        return {
            "values": [json_value(value) for value in self.values],
            "matrix": self.probabilities.tolist(),
            "condition_number": self.condition_number,
            "local_dp_epsilon": None if math.isinf(level) else level,
            "from_data": self.from_data,
            "remarks": list(self.remarks),
        }


def described(matrix: Any, values: tuple[Value, ...]) -> PramMatrix:
    """A matrix that has been checked, for the values in this order."""
    size = check_domain_size(len(values))
    if hasattr(matrix, "loc") and hasattr(matrix, "columns"):
        matrix = _by_label(matrix, list(values))
    return PramMatrix(values, check_transition(matrix, size))


def _by_label(frame: Any, values: list[Value]) -> Any:
    """A data frame in the order of the values; without labels, as it is."""
    labels = list(frame.index), list(frame.columns)
    if all(set(some) == set(values) for some in labels):
        return frame.loc[values, values]
    if any(some != list(range(len(values))) for some in labels):
        raise PolicyError(
            "The rows and columns of the matrix are labelled with other values than the domain's."
        )
    return frame

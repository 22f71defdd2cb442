"""Single records: how many stand alone on the public columns, and what their value then reveals."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from reconpriv.cells.cell_batch import CellBatch
from reconpriv.cells.cube import Cube
from reconpriv.errors import PolicyError
from reconpriv.messages.phrases import share_words
from reconpriv.policy.policy import Policy
from reconpriv.theory.arrays import Ints
from reconpriv.theory.perturbation import PRIOR, keep_probability, posterior_limit

K = 5  # records in groups below this size are counted


@dataclass(frozen=True)
class SingleRecords:
    """Records that are alone in their group, or in one with fewer than ``k`` records.

    Anyone who knows such a person's public values finds the record. Sampling does not change that:
    it concerns large groups.
    """

    k: int
    records: int
    unique: int
    below_k: int
    policy: Policy
    domain_size: int

    prior = PRIOR

    @property
    def retention_probability(self) -> float:
        """The belief in the published value if all values seemed equally likely before."""
        return keep_probability(self.policy.retention, self.domain_size)

    @property
    def posterior(self) -> float:
        """The largest belief in the published value of somebody who believed it with ``prior``."""
        return posterior_limit(self.policy.retention, self.domain_size, PRIOR)

    @property
    def sentence(self) -> str:
        """How many there are, and what a published value reveals about one of them."""
        return f"{self._how_many} {self.what_it_tells}"

    @property
    def every_value(self) -> str:
        """All values of the domain, in words."""
        return "both values" if self.domain_size == 2 else f"all {self.domain_size:,} values"

    @property
    def columns(self) -> str:
        """What sets a record apart."""
        return self.policy.wanted_protection.apart

    @property
    def _how_many(self) -> str:
        columns = self.columns
        small = f"in groups of fewer than {self.k}"
        if self.unique:
            verb, them = ("is", "it") if self.unique == 1 else ("are", "them")
            more = f" and {self.below_k:,} in all are {small}" if self.below_k > self.unique else ""
            return (
                f"{share_words(self.unique, self.records)} {verb} unique on {columns}"
                f" (sampling groups does not protect {them}){more}."
            )
        if self.below_k:
            some = share_words(self.below_k, self.records)
            return f"No record is unique on {columns}, but {some} are {small}."
        return f"No record is unique on {columns}, and none is in a group of fewer than {self.k}."

    @property
    def what_it_tells(self) -> str:
        """What a published value reveals about one of them."""
        # Two beliefs, each with what it was before: r alone would be read as what to believe.
        which = "the value published about such a person" if self.unique else "a published value"
        return (
            f"How likely {which} is to be the true one depends on what was known before:"
            f" {self.retention_probability:.1%} if {self.every_value} seemed equally likely,"
            f" at most {self.posterior:.1%} if that value seemed {self.prior:.0%} likely."
        )

    def as_dict(self) -> dict[str, Any]:
        """The counts, both beliefs and their sentence."""
        counts = ("sentence", "k", "records", "unique", "below_k")
        beliefs = ("retention_probability", "prior", "posterior")
        return {name: getattr(self, name) for name in counts + beliefs}


def count_unique(batches: Iterator[CellBatch]) -> int:
    """How many records are alone in their group; for workers."""
    return sum(int((batch.sizes == 1).sum()) for batch in batches)


def unique_without(cube: Cube) -> list[int]:
    """How many records would be unique without each public column, in their order.

    Groups merge if they agree on the columns before it and on those after it.
    """
    every = [codes.astype(np.int64) for codes in cube.codes]
    start = np.zeros(cube.groups, dtype=np.int64)
    after = [start]
    for codes in reversed(every[1:]):
        after.append(_together(codes, after[-1]))
    before, found = start, []
    for codes, rest in zip(every, reversed(after), strict=True):
        merged = np.bincount(_together(before, rest), weights=cube.records)
        found.append(int((merged == 1).sum()))
        before = _together(before, codes)
    return found


def _together(one: Ints, other: Ints) -> Ints:
    """A number for each pair of codes."""
    pairs = one * (int(other.max(initial=0)) + 1) + other
    return np.asarray(np.unique(pairs, return_inverse=True)[1].reshape(-1))


def check_k(k: int) -> int:
    """Return k if it is at least 2; every group has at least one record."""
    if k < 2:
        raise PolicyError(
            f"k must be at least 2; got {k}.", hint="k = 5 counts records in groups below 5."
        )
    return k

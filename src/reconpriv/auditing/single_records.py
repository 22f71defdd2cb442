"""Single records: how many stand alone on the public columns, and what their value then reveals."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from reconpriv.cells.cell_batch import CellBatch
from reconpriv.errors import PolicyError
from reconpriv.messages.phrases import share_words
from reconpriv.policy.policy import Policy
from reconpriv.theory.perturbation import PRIOR, keep_probability, posterior_limit

K = 5  # records in groups below this size are counted


@dataclass(frozen=True)
class SingleRecords:
    """Records that are alone in their group, or in one with fewer than ``k`` records.

    Anyone who knows such a person's public values finds the record. The published value is the true
    one with ``retention_probability``: what to believe who thought all ``domain_size`` values
    equally likely. A belief of ``prior`` in it grows to at most ``posterior``. Sampling does not
    change that: it concerns large groups. ``columns`` are those that set a record apart: in a
    protection group values are dealt, so nobody's own value shows.
    """

    k: int
    records: int
    unique: int
    below_k: int
    domain_size: int
    retention_probability: float
    prior: float
    posterior: float
    columns: str = "the public columns"

    @classmethod
    def of(
        cls, *, k: int, records: int, unique: int, below_k: int, policy: Policy, domain_size: int
    ) -> SingleRecords:
        """The risk of single records with these counts, under a policy."""
        return cls(
            k=k,
            records=records,
            unique=unique,
            below_k=below_k,
            domain_size=domain_size,
            retention_probability=keep_probability(policy.retention, domain_size),
            prior=PRIOR,
            posterior=posterior_limit(policy.retention, domain_size, PRIOR),
            columns="the coarsened columns" if policy.protect else "the public columns",
        )

    @property
    def sentence(self) -> str:
        """How many there are, and what a published value reveals about one of them."""
        return f"{self._how_many} {self.what_it_tells}"

    @property
    def every_value(self) -> str:
        """All values of the domain, in words."""
        return "both values" if self.domain_size == 2 else f"all {self.domain_size:,} values"

    @property
    def _how_many(self) -> str:
        if self.unique:
            verb, them = ("is", "it") if self.unique == 1 else ("are", "them")
            text = (
                f"{share_words(self.unique, self.records)} {verb} unique on {self.columns}"
                f" (sampling groups does not protect {them})"
            )
            if self.below_k > self.unique:
                text += f" and {self.below_k:,} in all are in groups of fewer than {self.k}"
            return f"{text}."
        if self.below_k:
            return (
                f"No record is unique on {self.columns}, but"
                f" {share_words(self.below_k, self.records)} are in groups of fewer than {self.k}."
            )
        return (
            f"No record is unique on {self.columns}, and none is in a group of fewer than {self.k}."
        )

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


def check_k(k: int) -> int:
    """Return k if it is at least 2; every group has at least one record."""
    if k < 2:
        raise PolicyError(
            f"k must be at least 2; got {k}.", hint="k = 5 counts records in groups below 5."
        )
    return k

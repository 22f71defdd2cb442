"""Results that know what they are about."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

from htmltools import Tag, TagChild, tags

import reconpriv as rp
from reconpriv.studio.desk import Settled

T = TypeVar("T")


@dataclass(frozen=True)
class Judged(Generic[T]):
    """A result and what it was computed for; it is valid for nothing else."""

    settled: Settled
    policy: rp.Policy
    found: T

    def holds_for(self, settled: Settled | None, policy: rp.Policy | None) -> bool:
        """Whether it is about this table with this policy."""
        return self.settled is settled and self.policy == policy


def shown(content: TagChild, *, current: bool) -> Tag:
    """A result; one for another table or policy is greyed out and marked as being recomputed."""
    if current:
        return tags.div(content, class_="judged")
    return tags.div(
        tags.p("Recomputing…", class_="working recomputing"),
        tags.div(content, class_="old"),
        {"aria-busy": "true"},
        class_="judged stale",
    )

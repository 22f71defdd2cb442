"""What a release shows of its own groups, without the table that it was made from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from reconpriv.auditing.classes import ClassPart, EquivalenceClasses, GroupsSeen, shares_of
from reconpriv.cells.cube import Cells
from reconpriv.release.folder import ReleaseFolder
from reconpriv.release.load import load_cells


@dataclass(frozen=True)
class ReleasedFigures:
    """The groups of a release as published, values randomised, and the draws that they rest on.

    ``trials`` and ``sampled_groups`` (those with fewer trials than records) are None if the release
    does not say them. ``digest`` is that of the groups that its promise is about.
    """

    classes: EquivalenceClasses
    trials: int | None
    sampled_groups: int | None
    digest: int

    def as_dict(self) -> dict[str, Any]:
        """The figures for JSON."""
        return {
            "equivalence_classes": self.classes.as_dict(),
            "independent_draws": self.trials,
            "groups_with_fewer_draws_than_records": self.sampled_groups,
        }


def released_figures(stored: ReleaseFolder, memory: str | None = None) -> ReleasedFigures:
    """Read the cells of a release, whose files have been checked, and judge them."""
    cells: Cells = load_cells(stored, memory)
    described = stored.manifest
    counts = np.zeros(described.schema.domain_size, dtype=np.int64)
    for part in cells.parts():
        np.add.at(counts, part.value, part.count)
    overall = shares_of(counts)
    seen = GroupsSeen(described.group_schema)
    trials, sampled, classes = 0.0, 0, []
    for part in cells.parts():
        classes.append(ClassPart.of(part.as_batch(), overall))
        whole = part.whole
        seen.add(whole.as_batch())
        trials += float(whole.trials.sum())
        sampled += int(whole.sampled.sum())
    known = described.policy.sampling_rule.trials_known
    return ReleasedFigures(
        EquivalenceClasses.of(classes),
        round(trials) if known else None,
        sampled if known else None,
        seen.digest,
    )

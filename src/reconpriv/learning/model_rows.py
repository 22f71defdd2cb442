"""The rows that a regression on a release is fitted to: cells, never expanded records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from reconpriv.answers.answerer import Answerer
from reconpriv.ask.selections import Selected
from reconpriv.cells.cube import Cube
from reconpriv.cells.sums import Sums
from reconpriv.columns.schema import Value
from reconpriv.errors import InputError
from reconpriv.estimate.counts import Design
from reconpriv.learning.terms import position_of
from reconpriv.theory.arrays import Floats, Ints
from reconpriv.theory.estimation.class_counts import (
    ClassCounts,
    Evidence,
    PublishedCounts,
    class_counts,
    joined,
    noisy_counts,
)

if TYPE_CHECKING:
    from reconpriv.release.release import Release

MOST_CELLS = 1 << 23  # groups x values of a model with margins, several times over


@dataclass(frozen=True)
class Classes:
    """The sensitive values as classes, the reference last: labels, and which values each holds."""

    labels: tuple[Value, ...]
    members: Floats


@dataclass(frozen=True)
class ModelRows:
    """Rows of records that agree on all public columns of a model.

    ``counts`` are those of the records alone. ``group_row`` is the row of each group in memory, if
    margins are to be used with them.
    """

    sums: Sums
    counts: ClassCounts
    codes: tuple[Ints, ...]
    answerer: Answerer
    group_row: Ints | None = None

    @property
    def margins(self) -> bool:
        """Whether margins are used."""
        return self.group_row is not None

    def evidence(self, members: Floats) -> Evidence:
        """What the release tells about classes, each a line of 0 and 1 over the values.

        Margins tell about sums over groups that cut across the rows of a model. So with them the
        counts that a fit rests on are those of single groups, and of the margins.
        """
        if self.group_row is None or len(members) < 2:
            return Evidence.of(self.counts.merged(members))
        cube, told, row = self.answerer.cube, self.answerer.measurements, self.group_row
        groups, holds = _group_counts(cube, told.design), told.incidence(cube).matrix
        unknown = cube.scale * cube.records
        one_trial, noise = told.alike(members)
        inside = np.flatnonzero(row >= 0)

        def weights(q: Floats) -> Floats:
            """What every group and every margin row weigh in Σ q y."""
            own = np.zeros((cube.groups, q.shape[1]))
            own[inside] = q[row[inside]]
            known = np.asarray(holds @ (unknown[:, None] * own)).T
            taken = told.spectrum.weights(known, np.full(q.shape[1], one_trial), noise).T
            return np.concatenate([own - holds.T @ taken, taken])

        margins = told.distance + holds @ groups.counts
        exact = not told.design.sampling.coins
        published = noisy_counts(margins, told.variance, exact_sizes=exact)
        return Evidence(self.sums.records, joined(groups, published).merged(members), weights)


def answerer_of(release: Release, names: Sequence[str]) -> Answerer:
    """What a model of these columns rests on: protection groups, if the release has any.

    Dealt values say nothing within a protection group, so its coarse values are the finest that a
    model can use.
    """
    answerer = release.group_answerer
    known = [column.name for column in answerer.cells.schema.columns]
    for name in release.column_names():
        if name not in known and any(text in (name, f"C({name})") for text in names):
            raise InputError(
                f"The protection groups of this release ignore column {name!r}, so no model can"
                " use it."
            )
    return answerer


def gather(
    answerer: Answerer, selected: Selected, names: Sequence[str], *, margins: bool = True
) -> ModelRows:
    """Sum the selected groups by the columns of a model; ``margins`` says whether to use any."""
    rows = answerer.rows_of(selected, names)
    sums = answerer.sums(rows, None, margins=False)
    if not sums.records.sum() > 0:
        raise InputError("No record satisfies the condition.")
    group_row = None
    if margins and answerer.margins and few_groups(answerer):
        group_row = rows.of(answerer.cube)
    return ModelRows(sums, counts_of(sums, answerer.design), tuple(rows.keys), answerer, group_row)


def few_groups(answerer: Answerer) -> bool:
    """Whether the counts of all groups can be held at once."""
    cells = answerer.cells
    return isinstance(cells, Cube) and cells.groups * cells.schema.domain_size <= MOST_CELLS


def counts_of(sums: Sums, design: Design) -> ClassCounts:
    """Reconstructed counts of the rows of a cross table."""
    published = PublishedCounts(
        records=sums.records,
        observed=sums.observed,
        scaled_observed=sums.scaled_observed,
        scaled_records=sums.scaled_records,
        sampled_squares=sums.sampled_squares,
        uneven=sums.uneven,
        coins=design.sampling.coins,
    )
    return class_counts(published, design.retention)


def _group_counts(cube: Cube, design: Design) -> ClassCounts:
    """Reconstructed counts of every group."""
    observed = np.zeros((cube.groups, cube.schema.domain_size))
    observed[cube.group, cube.value] = cube.count
    published = PublishedCounts(
        records=cube.records.astype(np.float64),
        observed=observed,
        scaled_observed=cube.scale[:, None] * observed,
        scaled_records=cube.scale * cube.records,
        sampled_squares=np.where(cube.sampled, cube.scale**2, 0.0),
        uneven=cube.uneven,
        coins=cube.coins,
    )
    return class_counts(published, design.retention)


def classes_of(
    answerer: Answerer,
    merge: Mapping[str, Sequence[Value]] | None,
    reference: Mapping[str, Value],
    totals: Floats,
) -> Classes:
    """Every sensitive value is a class, except those that are merged into one with a new name.

    The reference is the most frequent class, unless another is asked for.
    """
    schema = answerer.cells.schema
    name, domain = schema.sensitive.name, list(schema.domain)
    owner: dict[int, Value] = {}
    for label, values in (merge or {}).items():
        if label in domain:
            raise InputError(f"Merged values need a name of their own; {label!r} is a value.")
        wanted = answerer.select(None, {name: values}).values
        for place in range(len(domain)) if wanted is None else wanted:
            if place in owner:
                raise InputError(f"The value {domain[place]!r} of {name!r} is merged twice.")
            owner[place] = label
    labels = list(dict.fromkeys(owner.get(i, value) for i, value in enumerate(domain)))
    if len(labels) < 2:
        raise InputError("All sensitive values are merged into one, so there is nothing to model.")
    members = np.zeros((len(labels), len(domain)))
    for i, value in enumerate(domain):
        members[labels.index(owner.get(i, value)), i] = 1.0
    last = int((members @ totals).argmax())
    if name in reference:
        last = position_of(name, reference[name], labels)
    order = [*(i for i in range(len(labels)) if i != last), last]
    return Classes(tuple(labels[i] for i in order), members[order])

"""The rows that a regression on a release is fitted to: cells, never expanded records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from reconpriv.core.cube import Cube, Sums
from reconpriv.errors import InputError
from reconpriv.learning.margin_evidence import MOST_CELLS, margin_evidence
from reconpriv.learning.regression import ABOUT, Regression
from reconpriv.learning.terms import (
    Encodings,
    Feature,
    check_collinear,
    encode_features,
    position_of,
)
from reconpriv.queries.answer import Answerer, Selected
from reconpriv.queries.estimate import Design, approximate
from reconpriv.schema import Value
from reconpriv.theory.arrays import Floats, Ints
from reconpriv.theory.class_counts import ClassCounts, Evidence, PublishedCounts, class_counts

if TYPE_CHECKING:
    from reconpriv.release.release import Release

_MOST_ENTRIES = 1 << 26  # of the design matrix
_MOST_PARAMETERS = 1_500

TOO_MANY = "margins are not used: the release has too many groups for a model with them"
COARSE = "columns that protection groups pool are used with their coarse values"


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
        """What the release tells about classes, each a line of 0 and 1 over the values."""
        margins = self.answerer.margins
        if self.group_row is None or margins is None or len(members) < 2:
            return Evidence.of(self.counts.merged(members))
        cube, records = self.answerer.cube, self.sums.records
        return margin_evidence(cube, margins, self.group_row, records, members)


@dataclass(frozen=True)
class Classes:
    """The sensitive values as classes, the reference last: labels, and which values each holds."""

    labels: tuple[Value, ...]
    members: Floats


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
    keys, sums = answerer.sums_by_value(selected, list(names), margins=False)
    if not sums.records.sum() > 0:
        raise no_record()
    group_row = None
    if margins and answerer.margins is not None and _few_groups(answerer):
        group_row = answerer.rows_of_groups(selected, list(names))
    return ModelRows(sums, counts_of(sums, answerer.design), tuple(keys), answerer, group_row)


def _few_groups(answerer: Answerer) -> bool:
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


def encoded(
    answerer: Answerer,
    features: Sequence[Feature],
    rows: ModelRows,
    codes: Sequence[Ints],
    reference: Mapping[str, Value],
    classes: int = 1,
) -> tuple[Encodings, Floats]:
    """The encodings of the features, and their design matrix; one that cannot be fitted is refused.

    ``classes`` is how many sets of coefficients the model has.
    """
    encodings, columns = encode_features(
        features, codes, answerer.known, rows.sums.records, reference
    )
    check_size(len(encodings.terms), classes, rows.sums.records.size)
    x = encodings.matrix(columns) if columns else np.ones((rows.sums.records.size, 1))
    check_collinear(x, encodings.terms, rows.sums.records)
    return encodings, x


def check_size(terms: int, classes: int, rows: int) -> None:
    """Refuse a model that is too large to fit."""
    if terms * classes > _MOST_PARAMETERS or terms * rows > _MOST_ENTRIES:
        raise InputError(
            f"The model has too many parameters: {terms * classes:,} for {rows:,} different rows;"
            f" at most {min(_MOST_PARAMETERS, _MOST_ENTRIES // rows):,} can be fitted.",
            hint="Leave columns out, merge sensitive values, or use a number as it is.",
        )


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


def check_reference(reference: Mapping[str, Value], categories: Sequence[str]) -> None:
    """Refuse a reference for a column that is not a category of the model."""
    for name in reference:
        if name not in categories:
            raise InputError(
                f"A reference is given for {name!r}, which is not a category of the model.",
                hint=f"Its categories: {', '.join(categories) or 'none'}.",
            )


def remarks_of(answerer: Answerer, selected: Selected, *, margins: bool) -> list[str]:
    """What to know about every regression on a release; ``margins`` are to be used, if any."""
    found = [ABOUT, *selected.remarks]
    if not answerer.design.sampling.trials_known:
        found.append(approximate(answerer.design.sampling))
    if margins and answerer.margins is not None and not _few_groups(answerer):
        found.append(TOO_MANY)
    return found


def on_groups(release: Release, found: Regression) -> Regression:
    """A regression with the remark on protection groups, if the release has any."""
    if release.description.protect is None:
        return found
    return replace(found, remarks=(*found.remarks, COARSE))


def no_record() -> InputError:
    """The error for an empty selection."""
    return InputError("No record satisfies the condition.")

"""One path of every regression on a release: columns, rows, classes, a fit, and what it says."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from reconpriv.answers.answerer import Answerer
from reconpriv.ask.selections import Selected
from reconpriv.cells.cube import Cube
from reconpriv.cells.sums import Sums, sum_selections
from reconpriv.columns.schema import Value
from reconpriv.errors import InputError
from reconpriv.estimate.counts import Design, approximate, check_confidence
from reconpriv.learning.from_release import public_selection
from reconpriv.learning.regression import ABOUT, Coefficient, Regression
from reconpriv.learning.terms import (
    Encodings,
    Feature,
    check_collinear,
    encode_features,
    position_of,
)
from reconpriv.theory.arrays import Floats, Ints
from reconpriv.theory.estimation.class_counts import (
    ClassCounts,
    Evidence,
    class_counts,
    joined,
    noisy_counts,
)

if TYPE_CHECKING:
    from reconpriv.release.release import Release

_MOST_ENTRIES = 1 << 26  # of the design matrix
_MOST_PARAMETERS = 1_500
MOST_CELLS = 1 << 23  # groups x values of a model with margins, several times over

TOO_MANY = "margins are not used: the release has too many groups for a model with them"
COARSE = "columns that protection groups pool are used with their coarse values"


@dataclass(frozen=True)
class Options:
    """What may be chosen about a regression besides its columns."""

    merge: Mapping[str, Sequence[Value]] | None = None
    reference: Mapping[str, Value] | None = None
    confidence: float = 0.95
    margins: bool = True

    def __post_init__(self) -> None:
        check_confidence(self.confidence)

    @property
    def fixed(self) -> dict[str, Value]:
        """The reference of each column for which one is asked for."""
        return dict(self.reference or {})


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
        """True if margins are used."""
        return self.group_row is not None

    def evidence(self, members: Floats) -> Evidence:
        """What the release tells about classes, each a line of 0 and 1 over the values.

        Margins tell about sums over groups that cut across the rows of a model. So with them the
        counts that a fit rests on are those of single groups, and of the margins.
        """
        if self.group_row is None or len(members) < 2:
            return Evidence.of(self.counts.merged(members))
        cube, told, row = self.answerer.cube, self.answerer.measurements, self.group_row
        each = sum_selections(cube, np.arange(cube.groups), cube.groups, None)
        groups, holds = counts_of(each, told.design), told.incidence(cube).matrix
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
        exact = not told.design.sampling_rule.coin_flips
        published = noisy_counts(margins, told.variance, exact_sizes=exact)
        return Evidence(self.sums.records, joined(groups, published).merged(members), weights)


def gather(
    answerer: Answerer, selected: Selected, names: Sequence[str], *, margins: bool = True
) -> ModelRows:
    """Sum the selected groups by the columns of a model; ``margins`` says whether to use any."""
    rows = answerer.rows_of(selected, names)
    sums = answerer.sums(rows, None, margins=False)
    if not sums.records.sum() > 0:
        raise InputError("No record satisfies the condition.")
    group_row = None
    if answerer.told(margins=margins).rows and few_groups(answerer):
        group_row = rows.of(answerer.cube)
    return ModelRows(sums, counts_of(sums, answerer.design), tuple(rows.keys), answerer, group_row)


def few_groups(answerer: Answerer) -> bool:
    """True if the counts of all groups can be held at once."""
    cells = answerer.cells
    return isinstance(cells, Cube) and cells.groups * cells.schema.domain_size <= MOST_CELLS


def counts_of(sums: Sums, design: Design) -> ClassCounts:
    """Reconstructed counts of the rows of a cross table."""
    return class_counts(
        records=sums.records,
        observed=sums.observed,
        scaled_observed=sums.scaled_observed,
        scaled_records=sums.scaled_records,
        sampled_squares=sums.sampled_squares,
        uneven=sums.uneven,
        retention=design.retention,
        coin_flips=design.sampling_rule.coin_flips,
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


@dataclass(frozen=True)
class PreparedModel:
    """A model that is ready to be fitted.

    ``features`` are all that were asked for, ``encodings`` and ``x`` those of the public ones;
    ``named`` says whether the classes are sensitive values, one of which is the reference.
    """

    answerer: Answerer
    selected: Selected
    features: Sequence[Feature]
    options: Options
    rows: ModelRows
    classes: Classes
    named: bool
    encodings: Encodings
    x: Floats
    counts: Evidence

    @classmethod
    def of(
        cls,
        answerer: Answerer,
        selected: Selected,
        features: Sequence[Feature],
        options: Options,
        classes: Callable[[Floats], Classes],
        *,
        named: bool,
        also: Sequence[str] = (),
    ) -> PreparedModel:
        """Gather the rows by the public features and ``also`` other columns, and encode them.

        ``classes`` are found from the counts of all sensitive values.
        """
        sensitive = answerer.cells.schema.sensitive.name
        public = [one for one in features if one.column != sensitive]
        columns = [*(one.column for one in public), *also]
        rows = gather(answerer, selected, columns, margins=options.margins)
        categories = [one.column for one in public if not one.numeric]
        _check_reference(options.fixed, [*categories, sensitive] if named else categories)
        found = classes(rows.counts.counts.sum(axis=0))
        records = rows.sums.records
        encodings, values = encode_features(
            public, rows.codes[: len(public)], answerer.known, records, options.fixed
        )
        # Each class but the reference has coefficients of its own, unless classes are predictors.
        labels, terms = len(found.labels), len(encodings.terms)
        if len(public) < len(features):
            _check_size(terms + labels, 1, records.size)
        else:
            _check_size(terms, max(labels - 1, 1), records.size)
        x = encodings.matrix(values) if values else np.ones((records.size, 1))
        check_collinear(x, encodings.terms, records)
        counts = rows.evidence(found.members)
        return cls(
            answerer, selected, features, options, rows, found, named, encodings, x, counts
        )  # fmt: skip

    def result(
        self,
        kind: str,
        outcome: str,
        table: tuple[Coefficient, ...],
        covariance: Floats,
        remarks: Sequence[str],
    ) -> Regression:
        """What was found."""
        said = {
            part.feature.column: part.values[part.reference]
            for part in self.encodings.parts
            if not part.feature.numeric
        }
        if self.named:
            said[self.answerer.cells.schema.sensitive.name] = self.classes.labels[-1]
        sums = self.rows.sums
        return Regression(
            kind=kind,
            outcome=outcome,
            features=tuple(one.text for one in self.features),
            condition=self.selected.text,
            coefficients=table,
            covariance=covariance,
            reference=said,
            confidence=self.options.confidence,
            records=int(sums.records.sum()),
            groups=int(sums.groups.sum()),
            trials=float(sums.trials.sum()),
            remarks=tuple(remarks),
            margins=self.rows.margins,
        )

    @property
    def remarks(self) -> list[str]:
        """What to know about every regression on a release."""
        found = [ABOUT, *self.selected.remarks]
        if not self.answerer.design.sampling_rule.trials_known:
            found.append(approximate(self.answerer.design.sampling_rule))
        told = self.answerer.told(margins=self.options.margins)
        if told.rows and not few_groups(self.answerer):
            found.append(TOO_MANY)
        return found


RegressionFit = Callable[[Answerer, Selected, Any, Sequence[str], Options], Regression]
"""A regression of a target or an outcome on features."""


def regression_on(
    release: Release,
    fit: RegressionFit,
    outcome: Value,
    features: Sequence[str] | str,
    where: str | None,
    equal: Mapping[str, Any],
    options: Options,
) -> Regression:
    """A regression on the selected records, in the coarse values of columns that are pooled.

    It rests on protection groups, if the release has any: dealt values say nothing within one, so
    its coarse values are the finest that a model can use.
    """
    named = [features] if isinstance(features, str) else list(features)
    answerer, schema = release.group_answerer, release.group_answerer.cells.schema
    columns = [*named, *([outcome] if isinstance(outcome, str) else [])]
    known = [*(column.name for column in schema.columns), *schema.domain]
    for name in release.column_names():
        if name not in known and any(text in (name, f"C({name})") for text in columns):
            raise InputError(
                f"The protection groups of this release ignore column {name!r}, so no model can"
                " use it."
            )
    found = fit(answerer, public_selection(answerer, where, **equal), outcome, named, options)
    if answerer is release.answerer:
        return found
    return replace(found, remarks=(*found.remarks, COARSE))


def _check_size(terms: int, classes: int, rows: int) -> None:
    """Refuse a model that is too large to fit."""
    if terms * classes > _MOST_PARAMETERS or terms * rows > _MOST_ENTRIES:
        raise InputError(
            f"The model has too many parameters: {terms * classes:,} for {rows:,} different rows;"
            f" at most {min(_MOST_PARAMETERS, _MOST_ENTRIES // rows):,} can be fitted.",
            hint="Leave columns out, merge sensitive values, or use a number as it is.",
        )


def _check_reference(reference: Mapping[str, Value], categories: Sequence[str]) -> None:
    """Refuse a reference for a column that is not a category of the model."""
    for name in reference:
        if name not in categories:
            raise InputError(
                f"A reference is given for {name!r}, which is not a category of the model.",
                hint=f"Its categories: {', '.join(categories) or 'none'}.",
            )

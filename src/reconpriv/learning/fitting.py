"""One path of every regression on a release: columns, rows, classes, a fit, and what it says."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from reconpriv.answers.answerer import Answerer
from reconpriv.ask.selections import Selected
from reconpriv.columns.schema import Value
from reconpriv.errors import InputError
from reconpriv.estimate.counts import approximate, check_confidence
from reconpriv.learning.from_release import public_selection
from reconpriv.learning.model_rows import Classes, ModelRows, answerer_of, few_groups, gather
from reconpriv.learning.regression import ABOUT, Coefficient, Regression
from reconpriv.learning.terms import Encodings, Feature, check_collinear, encode_features
from reconpriv.theory.arrays import Floats
from reconpriv.theory.estimation.class_counts import Evidence

if TYPE_CHECKING:
    from reconpriv.release.release import Release

_MOST_ENTRIES = 1 << 26  # of the design matrix
_MOST_PARAMETERS = 1_500

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
        """Check the confidence level."""
        check_confidence(self.confidence)

    @property
    def fixed(self) -> dict[str, Value]:
        """The reference of each column for which one is asked for."""
        return dict(self.reference or {})


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
        margins: bool = True,
    ) -> PreparedModel:
        """Gather the rows by the public features and ``also`` other columns, and encode them.

        ``classes`` are found from the counts of all sensitive values.
        """
        sensitive = answerer.cells.schema.sensitive.name
        public = [one for one in features if one.column != sensitive]
        columns = [*(one.column for one in public), *also]
        rows = gather(answerer, selected, columns, margins=margins and options.margins)
        categories = [one.column for one in public if not one.numeric]
        check_reference(options.fixed, [*categories, sensitive] if named else categories)
        found = classes(rows.counts.counts.sum(axis=0))
        encodings, values = encode_features(
            public, rows.codes[: len(public)], answerer.known, rows.sums.records, options.fixed
        )
        # Each class but the reference has coefficients of its own, unless classes are predictors.
        predictors = len(public) < len(features)
        check_size(
            len(encodings.terms) + (len(found.labels) if predictors else 0),
            1 if predictors else max(len(found.labels) - 1, 1),
            rows.sums.records.size,
        )
        x = encodings.matrix(values) if values else np.ones((rows.sums.records.size, 1))
        check_collinear(x, encodings.terms, rows.sums.records)
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
        remarks: Sequence[str] | None = None,
    ) -> Regression:
        """What was found; ``remarks`` are those of every regression, unless others are given."""
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
            remarks=tuple(self.remarks if remarks is None else remarks),
            margins=self.rows.margins,
        )

    @property
    def remarks(self) -> list[str]:
        """What to know about every regression on a release."""
        found = [ABOUT, *self.selected.remarks]
        if not self.answerer.design.sampling.trials_known:
            found.append(approximate(self.answerer.design.sampling))
        if self.options.margins and self.answerer.margins and not few_groups(self.answerer):
            found.append(TOO_MANY)
        return found


def regression_on(
    release: Release,
    columns: Sequence[str],
    where: str | None,
    equal: Mapping[str, Any],
    fit: Callable[[Answerer, Selected], Regression],
) -> Regression:
    """A regression on the selected records of a release, in coarse values if it pools columns."""
    answerer = answerer_of(release, columns)
    found = fit(answerer, public_selection(answerer, where, **equal))
    if answerer is release.answerer:
        return found
    return replace(found, remarks=(*found.remarks, COARSE))


def check_size(terms: int, classes: int, rows: int) -> None:
    """Refuse a model that is too large to fit."""
    if terms * classes > _MOST_PARAMETERS or terms * rows > _MOST_ENTRIES:
        raise InputError(
            f"The model has too many parameters: {terms * classes:,} for {rows:,} different rows;"
            f" at most {min(_MOST_PARAMETERS, _MOST_ENTRIES // rows):,} can be fitted.",
            hint="Leave columns out, merge sensitive values, or use a number as it is.",
        )


def check_reference(reference: Mapping[str, Value], categories: Sequence[str]) -> None:
    """Refuse a reference for a column that is not a category of the model."""
    for name in reference:
        if name not in categories:
            raise InputError(
                f"A reference is given for {name!r}, which is not a category of the model.",
                hint=f"Its categories: {', '.join(categories) or 'none'}.",
            )

"""Regression on reconstructed counts for prediction, with the interface of scikit-learn.

For coefficients with intervals see :mod:`reconpriv.learning.logistic` and ``linear``: these
estimators shrink theirs, so that they predict well and always exist.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from itertools import compress
from numbers import Real
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import (  # type: ignore[import-untyped]
    BaseEstimator,
    ClassifierMixin,
    RegressorMixin,
)
from sklearn.utils.multiclass import check_classification_targets  # type: ignore[import-untyped]
from sklearn.utils.validation import (  # type: ignore[import-untyped]
    _check_sample_weight,
    check_is_fitted,
    validate_data,
)

from reconpriv.errors import InputError, PolicyError
from reconpriv.given_values import is_missing
from reconpriv.learning.categories import (
    array_of,
    columns_of,
    encode,
    plain_values,
    rows_as_given,
    sorted_categories,
)
from reconpriv.learning.terms import Encoding, Encodings, Feature
from reconpriv.messages.arguments import checked
from reconpriv.messages.shares import check_share
from reconpriv.theory.arrays import Floats, Ints
from reconpriv.theory.class_counts import Evidence, PublishedCounts, class_counts
from reconpriv.theory.regression import fit_linear, fit_logistic

if TYPE_CHECKING:
    from reconpriv.release.release import Release


class _Reconstructed(BaseEstimator):  # type: ignore[misc]
    """What both have: encoded columns, and a penalty in records."""

    def __init__(
        self,
        *,
        retention: float = 1.0,
        domain: Sequence[Any] | None = None,
        alpha: float = 1.0,
    ) -> None:
        """Store the parameters unchanged; :meth:`fit` checks them."""
        self.retention = retention
        self.domain = domain
        self.alpha = alpha

    def _check_parameters(self) -> None:
        for name, value in (("retention p", self.retention), ("penalty α", self.alpha)):
            if not isinstance(value, Real):
                raise PolicyError(f"The {name} must be a number; got {value!r}.")
        check_share(self.retention, "The retention p", one=True, hint="1 is for raw records.")
        if not self.alpha > 0:
            raise PolicyError(f"The penalty α must be above 0; got {self.alpha:g}.")

    def _penalty(self, terms: int) -> Floats:
        return np.append(0.0, np.full(terms - 1, float(self.alpha)))

    def _columns(self, X: Any) -> list[list[Any]]:
        """The columns of records to predict."""
        check_is_fitted(self)
        X = rows_as_given(X)
        checked = validate_data(self, X, dtype=None, ensure_all_finite="allow-nan", reset=False)
        return columns_of(X, checked)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags


class ReconstructedLogisticRegression(ClassifierMixin, _Reconstructed):  # type: ignore[misc]
    """Logistic regression of an attribute that was randomised, on others that were not.

    Numbers are used as they are, other columns by their values, with missing as a value; a value
    not seen in training counts as the most frequent one. Once fitted, it has ``classes_``,
    ``coef_``, ``intercept_`` and ``terms_``, the names of the columns of ``coef_``.

    :param retention: p, the probability that a target was kept. Use 1 for raw records.
    :param domain: all values of the target. Defaults to those that occur, which is wrong if the
        release has more.
    :param alpha: the penalty α|β|²/2 of the coefficients of standardised numbers and of values.
    """

    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Learn from records whose target was randomised (or not, p = 1), each a separate trial.

        Rows of a sampled release are partly copies: use :meth:`from_release` for those.
        """
        self._check_parameters()
        X = rows_as_given(X)
        checked, y = validate_data(self, X, y, dtype=None, ensure_all_finite="allow-nan")
        check_classification_targets(y)
        labels = plain_values(y)
        weight = _check_sample_weight(sample_weight, checked, ensure_non_negative=True)
        columns, labels, weight = _weighing(columns_of(X, checked), labels, weight)
        classes = sorted_categories(labels if self.domain is None else self.domain, "The target")
        if len(classes) < 2:
            raise InputError("The target needs at least two classes; it has one class.")
        codes = encode(labels, classes)
        if codes.min() < 0:
            raise InputError(
                f"The target holds {labels[int(codes.argmin())]!r}, which is not in the domain."
            )
        encodings, x = _encode_records(self, columns, weight)
        counts = _count_records(codes, weight, len(classes), self.retention)
        return self._learn(encodings, x, counts, classes)

    @classmethod
    @checked
    def from_release(
        cls,
        release: Release,
        target: Any = None,
        features: Sequence[str] | None = None,
        *,
        where: str | None = None,
        alpha: float = 1.0,
        margins: bool = True,
    ) -> ReconstructedLogisticRegression:
        """Learn from a release: its retention, domain, and the trials behind its groups.

        ``target`` is the sensitive column (the default), or a sensitive value or list of values:
        the classes are then True and False. ``features`` default to all public columns.
        ``margins=False`` leaves margins aside, if the release has any.
        """
        from reconpriv.learning.for_prediction import logistic_data  # noqa: PLC0415 - not for fit

        data = logistic_data(release, target, features, where, margins=margins)
        model = cls(retention=data.retention, domain=list(data.labels), alpha=alpha)
        model._check_parameters()
        _name_features(model, data.encodings)
        return model._learn(data.encodings, data.x, data.counts, list(data.labels))

    def _learn(self, encodings: Encodings, x: Floats, counts: Evidence, classes: list[Any]) -> Self:
        """Fit with the most frequent class as the reference."""
        last = int(counts.whole().argmax())
        if len(classes) == 2:
            last = 0
        order = [*(i for i in range(len(classes)) if i != last), last]
        fit = fit_logistic(x, counts.merged(np.eye(len(classes))[order]), self._penalty(x.shape[1]))
        if not fit.converged:
            raise InputError("The regression did not converge.", hint="Use a larger penalty α.")
        beta = np.zeros((x.shape[1], len(classes)))
        beta[:, order[:-1]] = encodings.restoring() @ fit.coefficients
        kept = beta[:, 1:] if len(classes) == 2 else beta
        self.encodings_ = encodings
        self.classes_ = array_of(classes)
        self.coef_, self.intercept_ = kept[1:].T.copy(), kept[0].copy()
        self.terms_ = [term.name for term in encodings.terms[1:]]
        return self

    def decision_function(self, X: Any) -> Floats:
        """The log-odds of each class, or of the second one if there are two."""
        columns = self._columns(X)
        x = _unscaled(self.encodings_, columns)
        scores = x[:, 1:] @ self.coef_.T + self.intercept_
        return np.asarray(scores[:, 0] if self.classes_.size == 2 else scores)

    def predict_log_proba(self, X: Any) -> Floats:
        """log P(class | x)."""
        from scipy.special import log_softmax  # noqa: PLC0415 - slow import

        scores = self.decision_function(X)
        if scores.ndim == 1:
            scores = np.column_stack([np.zeros(scores.size), scores])
        return np.asarray(log_softmax(scores, axis=1))

    def predict_proba(self, X: Any) -> Floats:
        """P(class | x)."""
        return np.exp(self.predict_log_proba(X))

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable class of each record."""
        most = self.predict_log_proba(X).argmax(axis=1)
        return np.asarray(self.classes_[most])


class ReconstructedLinearRegression(RegressorMixin, _Reconstructed):  # type: ignore[misc]
    """Least squares with one randomised attribute among the predictors, corrected for it.

    Columns are used as in :class:`ReconstructedLogisticRegression`; the randomised one by its
    values. To predict, give it true values. Once fitted, it has ``coef_``, ``intercept_`` and
    ``terms_``.

    :param retention: p, the probability that a value was kept. Use 1 for raw records.
    :param sensitive: the randomised column of X, by name or position; None if there is none.
    :param domain: all values of that column.
    :param alpha: the penalty α|β|²/2.
    """

    def __init__(
        self,
        *,
        retention: float = 1.0,
        sensitive: str | int | None = None,
        domain: Sequence[Any] | None = None,
        alpha: float = 1e-6,
    ) -> None:
        """Store the parameters unchanged; :meth:`fit` checks them."""
        super().__init__(retention=retention, domain=domain, alpha=alpha)
        self.sensitive = sensitive

    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Learn from records, each an independent trial."""
        self._check_parameters()
        X = rows_as_given(X)
        checked = validate_data(self, X, dtype=None, ensure_all_finite="allow-nan")
        _, y = validate_data(
            self, X, y, dtype=None, ensure_all_finite="allow-nan", y_numeric=True, reset=False
        )
        weight = _check_sample_weight(sample_weight, checked, ensure_non_negative=True)
        columns, kept, weight = _weighing(columns_of(X, checked), list(y), weight)
        outcome = np.array(kept, dtype=np.float64)
        place = self._position(len(columns))
        classes: list[Any] = [None]
        codes = np.zeros(outcome.size, dtype=np.int64)
        if place is not None:
            values = columns[place]
            classes = sorted_categories(
                values if self.domain is None else self.domain, "The sensitive column"
            )
            codes = encode(values, classes)
            if codes.min() < 0:
                raise InputError(
                    f"The sensitive column holds {values[int(codes.argmin())]!r}, which is not in"
                    " the domain."
                )
        public = [column for i, column in enumerate(columns) if i != place]
        names = [self._name(i) for i in range(len(columns)) if i != place]
        encodings, x = _encode_records(self, public, weight, names)
        counts = _count_records(codes, weight, len(classes), self.retention)
        return self._learn(encodings, x, outcome, counts, classes, place)

    @classmethod
    @checked
    def from_release(
        cls,
        release: Release,
        outcome: str,
        features: Sequence[str] | None = None,
        *,
        where: str | None = None,
        alpha: float = 1e-6,
        margins: bool = True,
    ) -> ReconstructedLinearRegression:
        """Learn from a release; ``features`` default to all columns but the outcome.

        ``margins=False`` leaves margins aside, if the release has any.
        """
        from reconpriv.learning.for_prediction import linear_data  # noqa: PLC0415 - not for fit

        data = linear_data(release, outcome, features, where, margins=margins)
        model = cls(
            retention=data.retention,
            sensitive=data.sensitive,
            domain=list(data.labels),
            alpha=alpha,
        )
        model._check_parameters()
        model.n_features_in_ = len(data.features)
        model.feature_names_in_ = np.array(data.features, dtype=object)
        place = None if data.sensitive is None else data.features.index(data.sensitive)
        return model._learn(
            data.encodings, data.x, data.outcome, data.counts, list(data.labels), place
        )

    def _learn(
        self,
        encodings: Encodings,
        x: Floats,
        outcome: Floats,
        counts: Evidence,
        classes: list[Any],
        place: int | None,
    ) -> Self:
        last = int(counts.whole().argmax())
        order = [*(i for i in range(len(classes)) if i != last), last]
        k = x.shape[1]
        ridge = self._penalty(k + len(classes) - 1)
        fit = fit_linear(x, outcome, counts.merged(np.eye(len(classes))[order]), ridge)
        if not fit.converged:
            raise InputError(
                "The records are too noisy to tell the sensitive values apart in this model.",
                hint="Use a larger penalty α, or fewer features.",
            )
        beta = encodings.restoring() @ fit.coefficients[:k]
        effects = np.zeros(len(classes))
        effects[order[:-1]] = fit.coefficients[k:]
        self.encodings_, self.classes_in_, self.place_ = encodings, classes, place
        self.intercept_ = float(beta[0])
        self.coef_ = np.concatenate([beta[1:], effects]) if place is not None else beta[1:]
        self.terms_ = [term.name for term in encodings.terms[1:]]
        if place is not None:
            self.terms_ += [f"{self._name(place)}[{value}]" for value in classes]
        return self

    def predict(self, X: Any) -> Floats:
        """The expected outcome of each record."""
        columns = self._columns(X)
        public = [column for i, column in enumerate(columns) if i != self.place_]
        x = _unscaled(self.encodings_, public, len(columns[0]))
        k = x.shape[1] - 1
        found = x[:, 1:] @ self.coef_[:k] + self.intercept_
        if self.place_ is not None:
            codes = encode(columns[self.place_], self.classes_in_)
            found = found + np.append(self.coef_[k:], 0.0)[codes]
        return np.asarray(found)

    def _position(self, columns: int) -> int | None:
        if self.sensitive is None:
            return None
        names = [self._name(i) for i in range(columns)]
        if isinstance(self.sensitive, str) and self.sensitive in names:
            return names.index(self.sensitive)
        if isinstance(self.sensitive, str) or not 0 <= self.sensitive < columns:
            raise InputError(
                f"X has no column {self.sensitive!r}, named as the sensitive one.",
                hint=f"It has {columns}: {', '.join(names)}.",
            )
        return self.sensitive

    def _name(self, place: int) -> str:
        names = getattr(self, "feature_names_in_", None)
        return f"x{place}" if names is None else str(names[place])


def _weighing(
    columns: list[list[Any]], labels: list[Any], weight: Floats
) -> tuple[list[list[Any]], list[Any], Floats]:
    """The records with a positive weight."""
    weighs = weight > 0
    if not weighs.any():
        raise InputError("Every record has the weight 0.")
    kept = [list(compress(column, weighs)) for column in columns]
    return kept, list(compress(labels, weighs)), weight[weighs]


def _name_features(model: Any, encodings: Encodings) -> None:
    names = [part.feature.column for part in encodings.parts]
    model.n_features_in_ = len(names)
    model.feature_names_in_ = np.array(names, dtype=object)


def _encode_records(
    model: Any, columns: list[list[Any]], weight: Floats, names: list[str] | None = None
) -> tuple[Encodings, Floats]:
    """Encode columns of records: numbers if all values are, else categories."""
    known = getattr(model, "feature_names_in_", None)
    if names is None:
        names = [f"x{i}" if known is None else str(known[i]) for i in range(len(columns))]
    parts: list[Encoding] = []
    found: list[Floats | Ints] = []
    for name, column in zip(names, columns, strict=True):
        present = [value for value in column if not is_missing(value)]
        numeric = bool(present) and all(map(_is_number, present))
        feature = Feature(name, numeric)
        if numeric:
            numbers = _as_numbers(name, column)
            mean = float(np.average(numbers, weights=weight))
            spread = float(np.sqrt(np.average((numbers - mean) ** 2, weights=weight)))
            parts.append(Encoding(feature, mean=mean, spread=spread or 1.0))
            found.append(numbers)
            continue
        values = tuple(sorted_categories(column, f"Column {name!r}"))
        codes = encode(column, values)
        first = int(np.bincount(codes, weights=weight).argmax())
        parts.append(Encoding(feature, values, first))
        found.append(codes)
    encodings = Encodings(tuple(parts))
    return encodings, _matrix(encodings, found, weight.size)


def _matrix(encodings: Encodings, columns: list[Any], rows: int) -> Floats:
    return encodings.matrix(columns) if columns else np.ones((rows, 1))


def _unscaled(encodings: Encodings, columns: list[list[Any]], rows: int = 0) -> Floats:
    """The design matrix of records to predict, with numbers as they are."""
    found: list[Floats | Ints] = []
    parts = []
    for part, column in zip(encodings.parts, columns, strict=True):
        name = part.feature.column
        if not part.feature.numeric:
            parts.append(part)
            found.append(encode(column, part.values))
            continue
        if not all(is_missing(value) or _is_number(value) for value in column):
            raise InputError(
                f"Column {name!r} holds values that are not numbers, where numbers were learned."
            )
        numbers = _as_numbers(name, column)
        parts.append(Encoding(part.feature))
        found.append(numbers)
    return _matrix(Encodings(tuple(parts)), found, rows)


def _is_number(value: Any) -> bool:
    return isinstance(value, Real | Decimal) and not isinstance(value, bool)


def _as_numbers(name: str, column: list[Any]) -> Floats:
    """A column of numbers, none of which may be missing."""
    numbers = np.array([np.nan if is_missing(value) else float(value) for value in column])
    if not np.isfinite(numbers).all():
        raise InputError(f"Column {name!r} holds NaN or infinity (inf), which is no number.")
    return numbers


def _count_records(codes: Ints, weight: Floats, classes: int, retention: float) -> Evidence:
    """Each record as a row: its class, reconstructed."""
    observed = np.zeros((codes.size, classes))
    observed[np.arange(codes.size), codes] = weight
    nothing = np.zeros(codes.size)
    published = PublishedCounts(weight, observed, observed, weight, nothing, nothing)
    return Evidence.of(class_counts(published, retention if classes > 1 else 1.0))

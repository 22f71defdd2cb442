"""Naive Bayes on reconstructed distributions, with the interface of scikit-learn.

P(class | x) is proportional to P(class) Π P(x_j | class). Only the factors that involve the
sensitive attribute are randomised in a release, and those are reconstructed.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress
from numbers import Real
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin  # type: ignore[import-untyped]
from sklearn.utils import assert_all_finite  # type: ignore[import-untyped]
from sklearn.utils.multiclass import check_classification_targets  # type: ignore[import-untyped]
from sklearn.utils.validation import (  # type: ignore[import-untyped]
    _check_sample_weight,
    check_consistent_length,
    check_is_fitted,
    validate_data,
)

from reconpriv.columns.given_values import is_missing
from reconpriv.errors import InputError, PolicyError
from reconpriv.learning.categories import (
    array_of,
    check_kinds,
    columns_of,
    cross_count,
    encode,
    plain_values,
    rows_as_given,
    sorted_categories,
)
from reconpriv.learning.distributions import (
    CrossTable,
    exact_table,
    log_conditional,
    log_prior,
    reconstructed_table,
    sensitive_counts,
)
from reconpriv.messages.arguments import checked
from reconpriv.messages.shares import check_share
from reconpriv.theory.arrays import Floats, Ints

if TYPE_CHECKING:
    from reconpriv.release.release import Release


class ReconstructedNaiveBayes(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Naive Bayes for categories, one attribute of which was randomised.

    Every column is categorical, with missing values as a separate category, in the target too. A
    value not seen in training says nothing about the class; a column of another kind is refused.

    Once fitted, it has ``classes_``, ``class_count_``, ``class_log_prior_``, ``feature_log_prob_``
    and ``categories_`` like ``CategoricalNB``, with reconstructed counts, and ``kept_``: for each
    feature, how much of each class's profile stood out from the noise (0 to 1).

    :param retention: p, the probability that a sensitive value was kept. Use 1 for raw records; the
        classifier is then scikit-learn's ``CategoricalNB``.
    :param sensitive: the randomised column of X, by name or position; None if it is the target.
    :param domain: all sensitive values. Defaults to those that occur, which is wrong if the
        release has more.
    :param alpha: Laplace's smoothing, in records.
    """

    def __init__(
        self,
        *,
        retention: float = 1.0,
        sensitive: str | int | None = None,
        domain: Sequence[Any] | None = None,
        alpha: float = 1.0,
    ) -> None:
        """Store the parameters unchanged; :meth:`fit` checks them."""
        self.retention = retention
        self.sensitive = sensitive
        self.domain = domain
        self.alpha = alpha

    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Learn from records, randomised (``retention`` below 1) or raw, each an independent trial.

        Rows of a sampled release are partly copies: use :meth:`from_release` for those. A weight is
        the number of such records; records with weight zero are left out.
        """
        self._check_parameters()
        columns, labels, weight = self._records(X, y, sample_weight)
        domain = None if self.domain is None else sorted_categories(self.domain, "The domain")
        target_is_sensitive = self.sensitive is None
        classes = sorted_categories(labels, "The target")
        if target_is_sensitive and domain is not None:
            classes = domain
        target = _codes_within(labels, classes, "The target")
        sensitive = None if target_is_sensitive else self._position(len(columns))
        categories, tables = [], []
        for j, column in enumerate(columns):
            declared = domain if j == sensitive else None
            known = sorted_categories(column, f"Column {j}") if declared is None else declared
            codes = _codes_within(column, known, f"Column {j}")
            counts = cross_count(codes, target, weight, (len(known), len(classes)))
            categories.append(known)
            if target_is_sensitive or j == sensitive:
                table = reconstructed_table(
                    counts, self.retention, along_classes=target_is_sensitive
                )
            else:
                table = exact_table(counts)
            tables.append(table)
        class_counts: Floats = np.zeros(len(classes))
        np.add.at(class_counts, target, weight)
        if target_is_sensitive:
            class_counts = sensitive_counts(class_counts, self.retention)
        return self._learn(classes, class_counts, categories, tables)

    def _records(
        self, X: Any, y: Any, sample_weight: ArrayLike | None
    ) -> tuple[list[list[Any]], list[Any], Floats]:
        """Checked columns and labels of the records with a positive weight, and their weights."""
        X = rows_as_given(X)
        labels = plain_values(y) if _is_one_column(y) else []
        missing = [is_missing(label) for label in labels]
        if any(missing):
            # scikit-learn refuses these; here a missing value is a separate class.
            checked = validate_data(self, X, dtype=None, ensure_all_finite="allow-nan")
            check_consistent_length(checked, labels)
            if all(missing):
                raise InputError("The target is missing in every record.")
            present = array_of([label for label in labels if not is_missing(label)])
            assert_all_finite(present, input_name="y")
            check_classification_targets(present)
        else:
            checked, y = validate_data(self, X, y, dtype=None, ensure_all_finite="allow-nan")
            check_classification_targets(y)
            labels = labels or plain_values(y)
        weight = _check_sample_weight(sample_weight, checked, ensure_non_negative=True)
        weighs = weight > 0
        columns = [list(compress(column, weighs)) for column in columns_of(X, checked)]
        return columns, list(compress(labels, weighs)), weight[weighs]

    @classmethod
    @checked
    def from_release(
        cls,
        release: Release,
        target: str | None = None,
        features: Sequence[str] | None = None,
        *,
        where: str | None = None,
        alpha: float = 1.0,
        margins: bool = True,
    ) -> ReconstructedNaiveBayes:
        """Learn from a release: its retention, domain, and the trials behind its groups.

        ``target`` defaults to the sensitive attribute, ``features`` to all others; ``where`` is a
        condition on public attributes, as after WHERE in SQL. ``margins=False`` leaves margins
        aside, if the release has any.
        """
        from reconpriv.learning.from_release import learn_tables  # noqa: PLC0415 - not for fit

        learned = learn_tables(release, target, features, where, margins=margins)
        model = cls(
            retention=learned.retention,
            sensitive=learned.sensitive,
            domain=learned.domain,
            alpha=alpha,
        )
        model._check_parameters()
        model.n_features_in_ = len(learned.features)
        model.feature_names_in_ = np.array(learned.features, dtype=object)
        return model._learn(
            learned.classes, learned.class_counts, learned.categories, learned.tables
        )

    def _learn(
        self,
        classes: list[Any],
        class_counts: Floats,
        categories: list[list[Any]],
        tables: list[CrossTable],
    ) -> Self:
        """Turn counts into the attributes of a fitted classifier."""
        self.classes_ = array_of(classes)
        self.class_count_ = class_counts
        self.class_log_prior_ = log_prior(class_counts, self.alpha)
        self.categories_ = [array_of(values) for values in categories]
        learned = [log_conditional(table, class_counts, self.alpha) for table in tables]
        self.feature_log_prob_ = [np.ascontiguousarray(logs.T) for logs, _ in learned]
        self.kept_ = [kept for _, kept in learned]
        return self

    def predict_joint_log_proba(self, X: Any) -> Floats:
        """log P(x, class): one row per record, one column per class."""
        check_is_fitted(self)
        X = rows_as_given(X)
        checked = validate_data(self, X, dtype=None, ensure_all_finite="allow-nan", reset=False)
        return joint_log_proba(self, columns_of(X, checked))

    def predict_log_proba(self, X: Any) -> Floats:
        """log P(class | x)."""
        from scipy.special import log_softmax  # noqa: PLC0415 - slow import

        return np.asarray(log_softmax(self.predict_joint_log_proba(X), axis=1))

    def predict_proba(self, X: Any) -> Floats:
        """P(class | x)."""
        return np.exp(self.predict_log_proba(X))

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable class of each record."""
        joint = self.predict_joint_log_proba(X)
        return np.asarray(self.classes_[joint.argmax(axis=1)])

    def score(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> float:
        """The share of records predicted correctly; a missing value may be a class."""
        labels = plain_values(y if _is_one_column(y) else np.asarray(y, dtype=object).ravel())
        found = self.predict_joint_log_proba(X).argmax(axis=1)
        weight = np.ones(found.size) if sample_weight is None else np.asarray(sample_weight)
        return float(np.average(found == encode(labels, self.classes_.tolist()), weights=weight))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        tags.input_tags.allow_nan = True
        return tags

    def _check_parameters(self) -> None:
        for name, value in (("retention p", self.retention), ("smoothing α", self.alpha)):
            if not isinstance(value, Real):
                raise PolicyError(f"The {name} must be a number; got {value!r}.")
        check_share(self.retention, "The retention p", one=True, hint="1 is for raw records.")
        if not self.alpha > 0:
            raise PolicyError(f"The smoothing α must be above 0; got {self.alpha:g}.")

    def _position(self, columns: int) -> int:
        """The position of the sensitive column."""
        if isinstance(self.sensitive, str):
            names = list(getattr(self, "feature_names_in_", ()))
            if self.sensitive not in names:
                raise InputError(
                    f"X has no column called {self.sensitive!r}, named as the sensitive one.",
                    hint=f"It has: {', '.join(names)}." if names else "It has no column names.",
                )
            return names.index(self.sensitive)
        assert self.sensitive is not None
        if not 0 <= self.sensitive < columns:
            raise InputError(
                f"X has no column {self.sensitive}, named as the sensitive one.",
                hint=f"It has {columns} columns, counted from 0.",
            )
        return self.sensitive


def joint_log_proba(model: ReconstructedNaiveBayes, columns: list[list[Any]]) -> Floats:
    """log P(x, class) of records given column by column, in the order of the features."""
    joint: Floats = np.tile(model.class_log_prior_, (len(columns[0]), 1))
    learned = zip(columns, model.categories_, model.feature_log_prob_, strict=True)
    for j, (column, values, logs) in enumerate(learned):
        known = values.tolist()
        codes = encode(column, known)
        if codes.size and codes.max() < 0:
            check_kinds(column, known, f"Column {_name(model, j)}")
        # An unseen value has the code -1, and the last row says nothing.
        joint += np.vstack([logs.T, np.zeros(model.classes_.size)])[codes]
    return joint


def _is_one_column(y: Any) -> bool:
    return np.asarray(y, dtype=object).ndim == 1


def _name(model: ReconstructedNaiveBayes, j: int) -> str:
    names = getattr(model, "feature_names_in_", None)
    return str(j) if names is None else repr(str(names[j]))


def _codes_within(values: list[Any], known: list[Any], what: str) -> Ints:
    """Codes of values that must all be known."""
    codes = encode(values, known)
    if codes.size and codes.min() < 0:
        stranger = values[int(np.argmin(codes))]
        raise InputError(f"{what} holds {stranger!r}, which is not in the domain.")
    return codes

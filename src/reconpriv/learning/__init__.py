"""Learning from a release: regression, naive Bayes and a test of independence, all corrected.

The estimators need scikit-learn (the extra ``learn``), which is imported when one is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from reconpriv.learning.independence import IndependenceTest, chi_square
from reconpriv.learning.linear import linear
from reconpriv.learning.logistic import logistic
from reconpriv.learning.regression import Coefficient, Regression

if TYPE_CHECKING:
    from reconpriv.learning.naive_bayes import ReconstructedNaiveBayes as ReconstructedNaiveBayes
    from reconpriv.learning.regressors import (
        ReconstructedLinearRegression as ReconstructedLinearRegression,
    )
    from reconpriv.learning.regressors import (
        ReconstructedLogisticRegression as ReconstructedLogisticRegression,
    )

__all__ = [
    "Coefficient",
    "IndependenceTest",
    "ReconstructedLinearRegression",
    "ReconstructedLogisticRegression",
    "ReconstructedNaiveBayes",
    "Regression",
    "chi_square",
    "linear",
    "logistic",
]


_ESTIMATORS = {
    "ReconstructedNaiveBayes": "naive_bayes",
    "ReconstructedLinearRegression": "regressors",
    "ReconstructedLogisticRegression": "regressors",
}


def __getattr__(name: str) -> Any:
    if name not in _ESTIMATORS:
        raise AttributeError(f"module 'reconpriv.learning' has no attribute {name!r}")
    from reconpriv.learning.extra import require_scikit_learn  # noqa: PLC0415 - an extra

    require_scikit_learn()
    return getattr(import_module(f"reconpriv.learning.{_ESTIMATORS[name]}"), name)

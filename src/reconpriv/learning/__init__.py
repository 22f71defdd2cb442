"""Learning from a release: regression, naive Bayes and a test of independence, all corrected.

The classifier needs scikit-learn (the extra ``learn``), which is imported when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from reconpriv.learning.independence import IndependenceTest, chi_square
from reconpriv.learning.linear import linear
from reconpriv.learning.logistic import logistic
from reconpriv.learning.regression import Coefficient, Regression

if TYPE_CHECKING:
    from reconpriv.learning.naive_bayes import ReconstructedNaiveBayes as ReconstructedNaiveBayes

__all__ = [
    "Coefficient",
    "IndependenceTest",
    "ReconstructedNaiveBayes",
    "Regression",
    "chi_square",
    "linear",
    "logistic",
]


def __getattr__(name: str) -> Any:
    if name != "ReconstructedNaiveBayes":
        raise AttributeError(f"module 'reconpriv.learning' has no attribute {name!r}")
    from reconpriv.learning.extra import require_scikit_learn  # noqa: PLC0415 - an extra

    require_scikit_learn()
    from reconpriv.learning.naive_bayes import ReconstructedNaiveBayes  # noqa: PLC0415 - an extra

    return ReconstructedNaiveBayes

"""Learning from a release: regression, naive Bayes and a test of independence, all corrected.

The classifier needs scikit-learn (the extra ``learn``), which is imported when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from reconpriv.extras import needs
from reconpriv.learning.independence import IndependenceTest
from reconpriv.learning.regression import Coefficient, Regression

if TYPE_CHECKING:
    from reconpriv.learning.naive_bayes import ReconstructedNaiveBayes as ReconstructedNaiveBayes

__all__ = ["Coefficient", "IndependenceTest", "ReconstructedNaiveBayes", "Regression"]
NO_SCIKIT_LEARN = "The classifier needs the package scikit-learn."


def __getattr__(name: str) -> Any:
    if name != "ReconstructedNaiveBayes":
        raise AttributeError(f"module 'reconpriv.learning' has no attribute {name!r}")
    with needs("learn", NO_SCIKIT_LEARN):
        from reconpriv.learning.naive_bayes import ReconstructedNaiveBayes  # noqa: PLC0415

    return ReconstructedNaiveBayes

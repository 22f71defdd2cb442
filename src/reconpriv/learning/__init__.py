"""Learning from a release: naive Bayes on reconstructed distributions, a test of independence.

The classifier needs scikit-learn (the extra ``learn``), which is imported when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from reconpriv.learning.independence import IndependenceTest, chi_square

if TYPE_CHECKING:
    from reconpriv.learning.naive_bayes import ReconstructedNaiveBayes as ReconstructedNaiveBayes

__all__ = ["IndependenceTest", "ReconstructedNaiveBayes", "chi_square"]


def __getattr__(name: str) -> Any:
    if name != "ReconstructedNaiveBayes":
        raise AttributeError(f"module 'reconpriv.learning' has no attribute {name!r}")
    from reconpriv.learning.extra import require_scikit_learn  # noqa: PLC0415 - an extra

    require_scikit_learn()
    from reconpriv.learning.naive_bayes import ReconstructedNaiveBayes  # noqa: PLC0415

    return ReconstructedNaiveBayes

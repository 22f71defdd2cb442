"""What a regression on a release finds: coefficients with intervals for the original table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from reconpriv.messages.readable import Readable
from reconpriv.queries.estimate import quantile
from reconpriv.schema import Value, json_value
from reconpriv.theory.arrays import Floats

ABOUT = (
    "intervals and p-values are about the fit on the original table: they count the noise of the"
    " publication, not that people might be a sample of a population"
)
EXACT = "exact: the model uses public columns alone"


@dataclass(frozen=True)
class Coefficient:
    """A coefficient of the model, with an interval for its value in the original table.

    ``outcome`` is the class of a multinomial model. If the estimate is exact, there is no
    statistic and no p-value.
    """

    term: str
    outcome: Value
    estimate: float
    standard_error: float
    low: float
    high: float
    statistic: float | None
    p_value: float | None

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "term": self.term,
            "outcome": json_value(self.outcome),
            "estimate": self.estimate,
            "standard_error": self.standard_error,
            "low": self.low,
            "high": self.high,
            "statistic": self.statistic,
            "p_value": self.p_value,
        }


@dataclass(frozen=True, repr=False)
class Regression(Readable):
    """A regression: the fit that the original records would have, as far as a release tells.

    ``kind`` is logistic, multinomial or linear. ``reference`` says what the values of each category
    are compared with. ``covariance`` is that of the coefficients, in their order.
    """

    kind: str
    outcome: str
    features: tuple[str, ...]
    condition: str
    coefficients: tuple[Coefficient, ...]
    covariance: Floats = field(compare=False)
    reference: Mapping[str, Value]
    confidence: float
    records: int
    groups: int
    trials: float
    remarks: tuple[str, ...] = ()

    @property
    def params(self) -> dict[Any, float]:
        """Estimates by term, or by (class, term) in a multinomial model."""
        return {self._key(one): one.estimate for one in self.coefficients}

    @property
    def bse(self) -> dict[Any, float]:
        """Standard errors, with the keys of ``params``."""
        return {self._key(one): one.standard_error for one in self.coefficients}

    @property
    def pvalues(self) -> dict[Any, float | None]:
        """P-values of the coefficient 0, with the keys of ``params``."""
        return {self._key(one): one.p_value for one in self.coefficients}

    def conf_int(self) -> dict[Any, tuple[float, float]]:
        """Intervals, with the keys of ``params``."""
        return {self._key(one): (one.low, one.high) for one in self.coefficients}

    def _key(self, one: Coefficient) -> Any:
        return (one.outcome, one.term) if self.kind == "multinomial" else one.term

    @property
    def title(self) -> str:
        """What was fitted, in a line."""
        kind = {"linear": "Linear", "logistic": "Logistic", "multinomial": "Multinomial logistic"}
        return f"{kind[self.kind]} regression of {self.outcome} on {', '.join(self.features)}"

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "kind": self.kind,
            "outcome": self.outcome,
            "features": list(self.features),
            "condition": self.condition,
            "reference": {name: json_value(value) for name, value in self.reference.items()},
            "confidence": self.confidence,
            "records": self.records,
            "groups": self.groups,
            "trials": self.trials,
            "coefficients": [one.as_dict() for one in self.coefficients],
            "covariance": self.covariance.tolist(),
            "remarks": list(self.remarks),
        }


def coefficients(
    terms: list[tuple[str, Value]], estimates: Floats, covariance: Floats, confidence: float
) -> tuple[Coefficient, ...]:
    """Estimates with Wald's intervals and tests; ``terms`` are (term, class)."""
    from scipy.special import ndtr  # noqa: PLC0415 - slow import

    errors = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    reach = quantile(confidence) * errors
    found = []
    for i, (term, outcome) in enumerate(terms):
        estimate, error = float(estimates[i]), float(errors[i])
        z = estimate / error if error > 0 else None
        found.append(
            Coefficient(
                term=term,
                outcome=outcome,
                estimate=estimate,
                standard_error=error,
                low=estimate - float(reach[i]),
                high=estimate + float(reach[i]),
                statistic=z,
                p_value=None if z is None else float(2.0 * ndtr(-abs(z))),
            )
        )
    return tuple(found)

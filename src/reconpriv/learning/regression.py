"""What a regression on a release finds: coefficients with intervals for the original table."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

import numpy as np

from reconpriv.columns.schema import Value, json_value
from reconpriv.estimate.counts import quantile
from reconpriv.messages.readable import Plottable
from reconpriv.theory.arrays import Flags, Floats

ABOUT = (
    "intervals and p-values are about the fit on the original table: they count the noise of the"
    " publication, not that people might be a sample of a population"
)
OPEN = (
    "an infinite limit means that the release does not exclude that none, or all, of the records"
    " concerned have the value"
)
EXACT = "exact: the model uses public columns alone"


@dataclass(frozen=True)
class Coefficient:
    """A coefficient of the model, with an interval for its value in the original table.

    ``outcome`` is the class of a multinomial model. A limit may be infinite (None in JSON). If the
    estimate is exact, there is no statistic and no p-value.
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
        """Its fields as JSON has them."""
        limits = {name: getattr(self, name) for name in ("low", "high")}
        # JSON has no infinity.
        finite = {name: end if math.isfinite(end) else None for name, end in limits.items()}
        return asdict(self) | {"outcome": json_value(self.outcome)} | finite


@dataclass(frozen=True, repr=False)
class Regression(Plottable):
    """A regression: the fit that the original records would have, as far as a release tells.

    ``kind`` is logistic, multinomial or linear. ``reference`` says what the values of each category
    are compared with. ``covariance`` is that of the coefficients, in their order. ``margins`` says
    whether the fit used margins.
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
    margins: bool = False

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
        """Its fields as JSON has them."""
        return {one.name: getattr(self, one.name) for one in fields(self)} | {
            "features": list(self.features),
            "reference": {name: json_value(value) for name, value in self.reference.items()},
            "coefficients": [one.as_dict() for one in self.coefficients],
            "covariance": self.covariance.tolist(),
            "remarks": list(self.remarks),
        }


# The value of a coefficient (by position) if the data were some standard errors higher for it.
Mover = Callable[[int, float], float]


def coefficients(
    terms: list[tuple[str, Value]],
    estimates: Floats,
    covariance: Floats,
    confidence: float,
    move: Mover | None = None,
    rough: Flags | None = None,
) -> tuple[Coefficient, ...]:
    """Estimates with intervals and tests; ``terms`` are (term, class).

    They are Wald's, except that coefficients which are ``rough`` have limits found by moving them.
    """
    from scipy.special import ndtr  # noqa: PLC0415 - slow import

    errors, z = np.sqrt(np.maximum(np.diag(covariance), 0.0)), quantile(confidence)
    usual = quantile(0.95)  # a p-value is read off the way to the 95 % limit on the side of 0
    found = []
    for i, (term, outcome) in enumerate(terms):
        estimate, error = float(estimates[i]), float(errors[i])
        low, high = estimate - z * error, estimate + z * error
        towards = error  # the standard error on the side of 0
        if move is not None and rough is not None and rough[i]:
            low, high = move(i, -z), move(i, z)
            limit = low if estimate > 0 else high
            if abs(z - usual) > 1e-9:
                limit = move(i, -usual if estimate > 0 else usual)
            towards = abs(estimate - limit) / usual
        statistic = estimate / towards if error > 0 else None
        p_value = None if statistic is None else float(2.0 * ndtr(-abs(statistic)))
        found.append(Coefficient(term, outcome, estimate, error, low, high, statistic, p_value))
    return tuple(found)

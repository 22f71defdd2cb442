"""Small areas: direct counts and those of a main-effects model, weighted by their errors.

An area j is a combination of public values with N_j records, of which c_j hold a sensitive value.
The release gives a direct count D_j = c_j + e_j with a variance ψ_j that is known from the design.
A logistic model of main effects (a parameter for each public value, none for combinations) gives a
synthetic count S_j = N_j π_j. True counts scatter around the model with variance

    A_j = B_j + σ² B_j²,   B_j = N_j π_j (1 - π_j):

B_j is what independent records would give, and σ the standard deviation of the departures on the
scale of the logit. The model solves X' diag(B/(ψ + A)) (D - S) = 0, which weighs areas by what they
tell, and σ is judged by the residuals D - S (Fay and Herriot 1979). The composite count is
γ_j D_j + (1 - γ_j) S_j with γ_j = A_j/(A_j + ψ_j), averaged over what is unknown about σ.

Its mean squared error (Prasad and Rao 1990) is γ_j ψ_j, plus what the parameters add, plus what σ
adds, plus what it costs that areas add up to the direct total. The parameters' errors have the
covariance (X' diag(B²/(ψ + A)) X)^-1 and, as γ_j ψ_j = (1 - γ_j) A_j, they are uncorrelated with
the error that a composite would have if they were known.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from reconpriv.theory.arrays import Floats, Ints

_ROUNDS = 60  # of Newton's method; a handful is usual
_LARGEST_STEP = 2.0  # of a logit in one round
_CLOSE = 1e-8  # relative distance of the sums that ends the rounds
_RIDGE = 1e-9  # relative; parameters that the areas cannot tell apart share their effect
_HALVINGS = 60
LARGEST_DEPARTURE = 2.0  # of a logit, as a standard deviation
_GRID = 61
_UNLIKELY = 1e-6


@dataclass(frozen=True)
class Layout:
    """Areas by their public values: the parameter of each area for every attribute.

    ``levels`` has a line per area and a column per attribute; parameters are numbered through all
    attributes, and ``parameters`` is how many there are.
    """

    levels: Ints
    parameters: int

    @classmethod
    def of(cls, codes: Ints) -> Layout:
        """From codes, a line per attribute and a column per area."""
        columns, first = [], 0
        for line in codes:
            known, place = np.unique(line, return_inverse=True)
            columns.append(place.reshape(-1) + first)
            first += known.size
        return cls(np.stack(columns, axis=1), first)

    @property
    def areas(self) -> int:
        """How many areas there are."""
        return int(self.levels.shape[0])

    @property
    def free(self) -> int:
        """How many parameters areas can tell apart: one less for each attribute but one."""
        return self.parameters - int(self.levels.shape[1]) + 1

    def sums(self, weights: Floats) -> Floats:
        """X'w: the sum over the areas of each public value."""
        total = np.zeros(self.parameters)
        for column in self.levels.T:
            total += np.bincount(column, weights=weights, minlength=self.parameters)
        return total

    def products(self, weights: Floats) -> Floats:
        """X' diag(w) X."""
        k = self.parameters
        total = np.zeros((k, k))
        for i, one in enumerate(self.levels.T):
            for j, other in enumerate(self.levels.T[i:]):
                found = np.bincount(one * k + other, weights=weights, minlength=k * k)
                found = found.reshape(k, k)
                total += found if j == 0 else found + found.T
        return total

    def effects(self, parameters: Floats) -> Floats:
        """X β: the sum of an area's parameters."""
        return np.asarray(parameters[self.levels].sum(axis=1))


def main_effects(layout: Layout, records: Floats, totals: Floats) -> Floats | None:
    """π: the shares of a logistic model that add up to ``totals``, one for each public value.

    None if Newton's method does not settle.
    """
    sizes = layout.sums(records)
    beta = np.log(totals / (sizes - totals)) / layout.levels.shape[1]
    for _ in range(_ROUNDS):
        shares = 1.0 / (1.0 + np.exp(-np.clip(layout.effects(beta), -40.0, 40.0)))
        missing = totals - layout.sums(records * shares)
        if np.all(np.abs(missing) <= _CLOSE * (totals + 1.0)):
            return np.asarray(shares)
        step = _inverse(layout.products(records * shares * (1.0 - shares))) @ missing
        beta = beta + np.clip(step, -_LARGEST_STEP, _LARGEST_STEP)
    return None


def _inverse(products: Floats) -> Floats:
    ridge = _RIDGE * float(np.trace(products)) / products.shape[0] + np.finfo(float).tiny
    return np.asarray(np.linalg.inv(products + ridge * np.eye(products.shape[0])))


def possible_totals(layout: Layout, records: Floats, direct: Floats, errors: Floats) -> Floats:
    """X'D, moved inside what is possible where it is not, and with the same sum for all attributes.

    ``errors`` are the variances of X'D: a public value is taken to have at least half a standard
    error of holders, and of others. Where nothing is moved, totals are the direct ones.
    """
    sizes, wanted = layout.sums(records), layout.sums(direct)
    least = np.minimum(0.5 * np.sqrt(errors), 0.4 * sizes)
    inside = np.clip(wanted, least, sizes - least)
    if np.array_equal(inside, wanted):
        return wanted
    first = [int(column.min()) for column in layout.levels.T] + [layout.parameters]
    parts = [slice(a, b) for a, b in pairwise(first)]
    whole = float(inside[parts[0]].sum())
    for part in parts[1:]:
        # Move logits alike, so that nothing leaves what is possible.
        inside[part] = _shifted(inside[part], sizes[part], whole)
    return np.asarray(inside)


def _shifted(totals: Floats, sizes: Floats, whole: float) -> Floats:
    logits = np.log(totals / (sizes - totals))
    low, high = -40.0, 40.0
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        found = sizes / (1.0 + np.exp(-np.clip(logits + middle, -80.0, 80.0)))
        low, high = (middle, high) if found.sum() < whole else (low, middle)
    return np.asarray(found)


@dataclass(frozen=True)
class Departure:
    """What the areas tell about σ, the spread of departures: a grid with probabilities."""

    sigma: Floats
    probability: Floats

    @property
    def variance(self) -> float:
        """The mean of σ²."""
        return float(self.probability @ self.sigma**2)

    @property
    def strong(self) -> float:
        """The probability that σ > 1: that odds are typically off by a factor of e or more."""
        return float(self.probability[self.sigma > 1.0].sum())


def departure(residuals: Floats, direct: Floats, binomial: Floats, freedom: int) -> Departure:
    """What the residuals D - S tell about σ: the profile of Q (Viechtbauer 2007).

    ``direct`` are the variances ψ, ``binomial`` is B. At the true σ, Q = Σ r²/(ψ + B + σ² B²) is a
    draw from χ² with ``freedom`` degrees, so σ is below s with the probability that χ² exceeds
    Q(s). At its median this is the estimate by moments of Fay and Herriot (1979); unlike that one
    it is never certain that σ = 0.
    """
    from scipy.special import chdtrc  # noqa: PLC0415 - slow import

    sigma = LARGEST_DEPARTURE * np.linspace(0.0, 1.0, _GRID) ** 2
    squares, level = residuals**2, direct + binomial
    q = np.array([np.sum(squares / (level + (one * binomial) ** 2)) for one in sigma])
    below = np.asarray(chdtrc(freedom, q))
    below[-1] = 1.0
    return Departure(sigma, np.diff(below, prepend=0.0))


def direct_weight(direct: Floats, model: Floats) -> Floats:
    """γ = A_j/(A_j + ψ_j): 1 if nothing is known from the model, 0 if it is certain."""
    weight = np.ones(np.broadcast(direct, model).shape)
    total = direct + model
    some = (total > 0) & np.isfinite(model)
    np.divide(model, total, out=weight, where=some)
    return weight


@dataclass(frozen=True)
class Composite:
    """Areas with both counts, and what is known about their errors.

    ``direct`` and ``synthetic`` are D and S, ``variance`` is ψ, ``binomial`` is B and
    ``departure`` A. Weights below have a line per question and a column per area: 1 where the
    question counts the area, else 0.
    """

    layout: Layout
    direct: Floats
    synthetic: Floats
    variance: Floats
    binomial: Floats
    departure: Departure

    @cached_property
    def model(self) -> Floats:
        """A_j = B_j + σ² B_j², for the mean of σ²."""
        return np.asarray(self.binomial + self.departure.variance * self.binomial**2)

    def _weights(self, areas: Ints) -> Floats:
        """γ of some areas at every σ of the grid that matters, a line each."""
        b = self.binomial[areas]
        model = b + np.square(self._likely[0][:, None] * b)
        return direct_weight(self.variance[areas], model)

    @cached_property
    def _likely(self) -> tuple[Floats, Floats]:
        some = self.departure.probability > _UNLIKELY
        chance = self.departure.probability[some]
        return self.departure.sigma[some], chance / chance.sum()

    @cached_property
    def weight(self) -> Floats:
        """The mean of γ_j over σ."""
        return np.asarray(self._likely[1] @ self._weights(np.arange(self.layout.areas)))

    @cached_property
    def counts(self) -> Floats:
        """The composite count of every area; they add up to the direct ones.

        What is missing in the sum is shared out by mean squared error.
        """
        plain = self.weight * self.direct + (1.0 - self.weight) * self.synthetic
        return np.asarray(plain + self._share * (self.direct.sum() - plain.sum()))

    @cached_property
    def _share(self) -> Floats:
        own = (1.0 - self.weight) * self.variance
        total = float(own.sum())
        return own / total if total > 0 else np.zeros(own.shape)

    @cached_property
    def _covariance(self) -> Floats:
        """Of the parameters: (X' diag(B²/(ψ + A)) X)^-1."""
        return _inverse(self.layout.products(self.binomial**2 / (self.variance + self.model)))

    def mean_squared_error(self, areas: Ints, caution: float = 1.0) -> float:
        """That of the sum over some areas, whose departures may vary ``caution`` times as much.

        With A_j times k, γ² ψ + (1 - γ)² k A_j = γ ψ + (k - 1) γ (1 - γ) ψ.
        """
        chance, weights = self._likely[1], self._weights(areas)
        own = weights * (1.0 + (caution - 1.0) * (1.0 - weights))
        known = float(chance @ own @ self.variance[areas])
        moved = weights @ (self.direct - self.synthetic)[areas]
        departure = float(chance @ (moved - chance @ moved) ** 2)
        line = self._line(areas, 1.0 - self.weight[areas])
        parameters = float(line @ self._covariance @ line)
        benchmark = float(self._share[areas].sum()) ** 2 * self._missing_variance
        return known + departure + parameters + benchmark

    @cached_property
    def _missing_variance(self) -> float:
        """Of the sum that benchmarking shares out: Σ (1 - γ)(D - S)."""
        return self._residual_variance(np.arange(self.layout.areas), 1.0 - self.weight)

    def _line(self, areas: Ints, weights: Floats) -> Floats:
        """X' diag(B) w: how a weighted sum of S moves with the parameters."""
        some = Layout(self.layout.levels[areas], self.layout.parameters)
        return some.sums(weights * self.binomial[areas])

    def _residual_variance(self, areas: Ints, weights: Floats) -> float:
        """Of Σ w (D - S) over some areas, if the model holds."""
        spread = (self.variance + self.model)[areas]
        line = self._line(areas, weights)
        explained = float(line @ self._covariance @ line)
        return max(float(np.sum(weights**2 * spread)) - explained, 0.0)

    def departure_of(self, areas: Ints) -> float:
        """How many standard errors the direct count of some areas is from that of the model."""
        ones = np.ones(areas.size)
        spread = self._residual_variance(areas, ones)
        gap = float(self.direct[areas].sum() - self.synthetic[areas].sum())
        return gap / float(np.sqrt(spread)) if spread > 0 else 0.0

    @cached_property
    def departures(self) -> Floats:
        """The same for every area by itself, without what the fit takes off."""
        spread = self.variance + self.model
        return np.asarray((self.direct - self.synthetic) / np.sqrt(np.maximum(spread, 1e-300)))

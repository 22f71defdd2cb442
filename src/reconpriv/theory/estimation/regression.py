"""Regression on reconstructed counts: the fit that the original records would have.

A model whose score is a sum over records, Σ_i ψ(record i; β) = 0, is fitted to the original table
by replacing each record's indicator of a sensitive value by its unbiased reconstruction
(O - t)/p. The score is linear in the indicators, so its mean over publications is that of the
original records for *every* β, whether or not the model is right; likelihood of the published
classes (p softmax + t) has that mean only if the model is right in every cell. What is left of the
score at the original fit has the covariance M of the design, and with H its derivative
β̂ - β varies by H^-1 M H^-1 (a sandwich in which copies count once).

Margins replace a sum over groups by one that weighs groups and margins (theory.margins). Weights
are linear in what is summed and the same for all classes, so everything above holds with them: the
score is still a weighted sum of independent counts (``Evidence`` of theory.class_counts). The first
column of x is 1 throughout.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from reconpriv.theory.arrays import Floats
from reconpriv.theory.estimation.class_counts import ClassCounts, Evidence

_MOST_STEPS = 60
_CLOSE = 1e-8  # what another Newton step would still gain, in nats
_LARGEST = 40.0  # a linear predictor beyond this is on its way to infinity
_FLAT = 1e-7  # of the information that a column of x would have at even odds
_FAST = 0.3  # a Hessian is used again if its step promised so much less than the one before
_SHORTEST, _ENOUGH = 1e-6, 1e-4  # of a Newton step, and of the gain that it promises (Armijo)


@dataclass(frozen=True)
class Fit:
    """Coefficients, one column per class but the last, and the covariance of them all in order.

    ``bread`` is the derivative H of the score and ``meat`` the covariance M of what is left of it.
    ``wanted`` are the sufficient statistics Σ xỹ of a logistic fit.
    ``converged`` is False if the coefficients run off to infinity; they mean nothing then.
    """

    coefficients: Floats
    bread: Floats
    meat: Floats
    converged: bool = True
    wanted: Floats = field(default_factory=lambda: np.zeros(0))

    @property
    def covariance(self) -> Floats:
        """H^-1 M H^-1, the coefficients of each class after those of the one before."""
        half = np.linalg.solve(self.bread, self.meat)
        return np.asarray(np.linalg.solve(self.bread, half.T))


def fit_logistic(x: Floats, rows: Evidence) -> Fit:
    """Multinomial logistic regression; the last class is the reference.

    Maximises Σ ỹ log softmax(xβ), Nakamura's corrected likelihood, which is concave because the
    classes of a row add up to its exact number of records.
    """
    free = rows.classes - 1
    weighed = rows.weights(x)
    wanted = weighed.T @ rows.counts.counts[:, :free]
    start = np.zeros((x.shape[1], free))
    beta, hessian, converged = _solve(x, rows.records, wanted, start)
    meat = _meat(weighed, rows.counts) if converged else np.zeros_like(hessian)
    return Fit(beta, hessian, meat, converged, wanted)


def move_logistic(
    x: Floats,
    records: Floats,
    fit: Fit,
    contrast: Floats,
    errors: float,
    levels: Floats | None = None,
) -> float:
    """A contrast of the coefficients if the data were so many standard errors higher for it.

    The sufficient statistics Σ xỹ are moved by their regression on the contrast, M H^-1 c, and the
    model is fitted again. They are sums of many trials and nearly normal, also where a log-odds of
    few holders is far from it; so these are the ends of an interval that may be skew, or infinite.
    ``levels`` are combinations of the columns of x that are indicators of records: if a class has
    none of them, there is no need to try.
    """
    free = fit.wanted.shape[1]
    direction = fit.meat @ np.linalg.solve(fit.bread, contrast)
    length = np.sqrt(contrast @ np.linalg.solve(fit.bread, direction))
    moved = errors * (direction / length).reshape(free, -1).T
    wanted = fit.wanted + moved
    endless = float(np.sign(errors) * np.inf)
    if levels is not None and level_counts(x, records, wanted, levels).min() <= 0:
        return endless
    beta, _, converged = _solve(x, records, wanted, fit.coefficients, fit.bread)
    return float(contrast @ beta.T.ravel()) if converged else endless


def level_counts(x: Floats, records: Floats, wanted: Floats, levels: Floats) -> Floats:
    """How many records of each level are in each class, the reference last, from Σ xy."""
    found = levels @ wanted
    return np.column_stack([found, levels @ (x.T @ records) - found.sum(axis=1)])


def _solve(
    x: Floats, records: Floats, wanted: Floats, start: Floats, known: Floats | None = None
) -> tuple[Floats, Floats, bool]:
    """Newton's method for Σ xμ = wanted: coefficients, Hessian, and whether there is a solution.

    ``known`` is the Hessian at a point nearby; one is used again as long as the steps shrink fast.
    """
    free = wanted.shape[1]

    def loss(scores: Floats, beta: Floats) -> float:
        return float(records @ _log_sums(scores) - np.sum(wanted * beta))

    sizes = records @ x**2
    beta, scores = start, x @ start
    value, before = loss(scores, beta), np.inf
    hessian = np.eye(start.size)
    for _ in range(_MOST_STEPS):
        shares = np.exp(scores - _log_sums(scores)[:, None])
        gradient = wanted - x.T @ (records[:, None] * shares)
        hessian = _hessian(x, records, shares) if known is None else known
        try:
            step = np.linalg.solve(hessian, gradient.T.ravel()).reshape(free, -1).T
        except np.linalg.LinAlgError:
            break
        gain = float(np.sum(step * gradient))
        if not np.isfinite(gain) or gain < 0:
            break
        if gain < _CLOSE:
            # Where nearly all records are certain of their class, the way up only became flat.
            information = (records[:, None] * shares * (1.0 - shares)).T @ x**2
            certain = bool((information < _FLAT * sizes).any())
            return beta + step, hessian, not certain
        length, change = 1.0, x @ step
        while length > _SHORTEST:
            lower = loss(scores + length * change, beta + length * step)
            if lower <= value - _ENOUGH * length * gain:
                break
            length /= 2.0
        else:
            break
        beta, scores, value = beta + length * step, scores + length * change, lower
        if np.abs(scores).max() > _LARGEST:
            break
        known = hessian if known is not None and gain < _FAST * before else None
        before = gain
    return beta, hessian, False


def _log_sums(scores: Floats) -> Floats:
    """log(1 + Σ exp(score)): the reference has the score 0."""
    top = np.maximum(scores.max(axis=1), 0.0)
    return np.asarray(top + np.log(np.exp(scores - top[:, None]).sum(axis=1) + np.exp(-top)))


def _blocks(x: Floats, classes: int, weight: list[list[Floats]]) -> Floats:
    """The matrix of blocks x' diag(weight) x, symmetric in the classes."""
    k = x.shape[1]
    found = np.zeros((classes * k, classes * k))
    for a in range(classes):
        for b in range(a + 1):
            block = _gram(x, weight[a][b])
            found[a * k : (a + 1) * k, b * k : (b + 1) * k] = block
            found[b * k : (b + 1) * k, a * k : (a + 1) * k] = block.T
    return found


def _gram(x: Floats, weight: Floats) -> Floats:
    if weight.min() < 0:
        return np.asarray(x.T @ (weight[:, None] * x))
    half = np.sqrt(weight)[:, None] * x  # half the work: BLAS sees that it is symmetric
    return np.asarray(half.T @ half)


def _hessian(x: Floats, records: Floats, shares: Floats) -> Floats:
    """Σ N (diag μ - μμ') ⊗ xx': the same as on the original records."""
    free = shares.shape[1]
    weight = [
        [records * shares[:, a] * ((a == b) - shares[:, b]) for b in range(a + 1)]
        for a in range(free)
    ]
    return _blocks(x, free, weight)


def _meat(x: Floats, rows: ClassCounts) -> Floats:
    """The covariance of the score, class by class."""
    free = rows.classes - 1
    weight = [[rows.covariance(a, b) for b in range(a + 1)] for a in range(free)]
    return _blocks(x, free, weight)


def fit_linear(x: Floats, outcome: Floats, rows: Evidence) -> Fit:
    """Least squares on x and indicators of all classes but the last, with corrected moments.

    Σ z, Σ xz' and Σ zy are replaced by their unbiased reconstructions, in which each record has
    (O - t)/p instead of its indicator z: the errors-in-variables correction for misclassified
    groups. Not converged: noise leaves the moments of the classes without an inverse.
    """
    free, k = rows.classes - 1, x.shape[1]
    weighed = rows.weights(np.column_stack([x, outcome]))
    totals = weighed.T @ rows.counts.counts[:, :free]
    moments = np.zeros((k + free, k + free))
    moments[:k, :k] = x.T @ (rows.records[:, None] * x)
    moments[:k, k:] = totals[:k]
    moments[k:, :k] = moments[:k, k:].T
    moments[k:, k:] = np.diag(totals[0])
    with_outcome = np.concatenate([x.T @ (rows.records * outcome), totals[k]])
    try:
        np.linalg.cholesky(moments)  # positive definite, as the moments of records are
        beta = np.linalg.solve(moments, with_outcome)
    except np.linalg.LinAlgError:
        return Fit(np.zeros(k + free), moments, np.zeros_like(moments), converged=False)
    return Fit(beta, moments, _linear_meat(x, outcome, rows, weighed, beta))


def _linear_meat(
    x: Floats, outcome: Floats, rows: Evidence, weighed: Floats, beta: Floats
) -> Floats:
    """The covariance of the score Σ (x, z)(e - γ), e = y - xβ and γ the effect of the class.

    ``weighed`` are the weights of x and y. A record counts with x(e - γ) in the part of x, with
    e - γ in that of its own class.
    """
    k, counts = x.shape[1], rows.counts
    own, effects = weighed[:, :k], np.append(beta[k:], 0.0)
    free = effects.size - 1
    left = rows.weights(x * (outcome - x @ beta[:k])[:, None])
    residuals = (weighed[:, k] - own @ beta[:k])[:, None] - own[:, :1] * effects
    of_one = counts.times(np.ones_like(counts.counts))
    of_effects = counts.times(np.broadcast_to(effects, counts.counts.shape))
    mixed = (of_one @ effects)[:, None]
    meat = np.zeros((k + free, k + free))
    meat[:k, :k] = left.T @ (of_one.sum(axis=1)[:, None] * left)
    meat[:k, :k] += own.T @ ((of_effects @ effects)[:, None] * own)
    meat[:k, :k] -= left.T @ (mixed * own) + own.T @ (mixed * left)
    both = left.T @ (of_one * residuals) - own.T @ (of_effects * residuals)
    meat[:k, k:] = both[:, :free]
    meat[k:, :k] = meat[:k, k:].T
    meat[k:, k:] = counts.weighted(residuals)[:free, :free]
    return meat

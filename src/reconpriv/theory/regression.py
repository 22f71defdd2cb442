"""Regression on reconstructed counts: the fit that the original records would have.

A model whose score is a sum over records, Σ_i ψ(record i; β) = 0, is fitted to the original table
by replacing each record's indicator of a sensitive value by its unbiased reconstruction
(O - t)/p. The score is linear in the indicators, so its mean over publications is that of the
original records for *every* β, whether or not the model is right; likelihood of the published
classes (p softmax + t) has that mean only if the model is right in every cell. What is left of the
score at the original fit has the covariance M of the design, and with H its derivative
β̂ - β varies by H^-1 M H^-1 (a sandwich in which copies count once).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reconpriv.theory.arrays import Floats
from reconpriv.theory.class_counts import ClassCounts

_MOST_STEPS = 60
_CLOSE = 1e-9  # what another Newton step would still gain, in nats
_LARGEST = 40.0  # a linear predictor beyond this is on its way to infinity


@dataclass(frozen=True)
class Fit:
    """Coefficients, one row per parameter of a class, and the covariance of them all in order.

    ``converged`` is False if they run off to infinity; there is no covariance then.
    """

    coefficients: Floats
    covariance: Floats
    converged: bool = True


def fit_logistic(x: Floats, rows: ClassCounts, ridge: Floats | None = None) -> Fit:
    """Multinomial logistic regression; the last class is the reference.

    Maximises Σ ỹ log softmax(xβ), Nakamura's corrected likelihood, which is concave because the
    classes of a row add up to its exact number of records. ``ridge`` are the penalties β²/2 of the
    rows of x, none by default. Coefficients have a column per class but the last.
    """
    free = rows.classes - 1
    wanted = x.T @ rows.counts[:, :free]
    penalty = np.zeros(x.shape[1]) if ridge is None else ridge
    beta = np.zeros((x.shape[1], free))
    value = _loss(x, rows, beta, wanted, penalty)
    for _ in range(_MOST_STEPS):
        shares = _shares(x @ beta)
        gradient = wanted - x.T @ (rows.records[:, None] * shares) - penalty[:, None] * beta
        hessian = _hessian(x, rows.records, shares)
        hessian[np.diag_indices_from(hessian)] += np.tile(penalty, free)
        try:
            step = np.linalg.solve(hessian, gradient.T.ravel()).reshape(free, -1).T
        except np.linalg.LinAlgError:
            break
        gain = float(np.sum(step * gradient))
        if not np.isfinite(gain) or gain < 0:
            break
        length = 1.0
        while length > 1e-6:
            found = beta + length * step
            less = _loss(x, rows, found, wanted, penalty)
            if less <= value - 1e-4 * length * gain or gain < _CLOSE:
                break
            length /= 2.0
        beta, value = beta + length * step, less
        if ridge is None and np.abs(x @ beta).max() > _LARGEST:
            break
        if gain < _CLOSE:
            return Fit(beta, _sandwich(hessian, _meat(x, rows)))
    return Fit(beta, np.zeros((beta.size, beta.size)), converged=False)


def _shares(scores: Floats) -> Floats:
    """softmax of the scores with a 0 for the reference, whose share is left out."""
    top = np.maximum(scores.max(axis=1, keepdims=True), 0.0)
    raised = np.exp(scores - top)
    return np.asarray(raised / (raised.sum(axis=1, keepdims=True) + np.exp(-top)))


def _loss(x: Floats, rows: ClassCounts, beta: Floats, wanted: Floats, penalty: Floats) -> float:
    scores = x @ beta
    top = np.maximum(scores.max(axis=1), 0.0)
    logs = top + np.log(np.exp(scores - top[:, None]).sum(axis=1) + np.exp(-top))
    shrunk = 0.5 * np.sum(penalty[:, None] * beta**2)
    return float(rows.records @ logs - np.sum(wanted * beta) + shrunk)


def _blocks(x: Floats, classes: int, weight: list[list[Floats]]) -> Floats:
    """The matrix of blocks x' diag(weight) x, symmetric in the classes."""
    k = x.shape[1]
    found = np.zeros((classes * k, classes * k))
    for a in range(classes):
        for b in range(a + 1):
            block = x.T @ (weight[a][b][:, None] * x)
            found[a * k : (a + 1) * k, b * k : (b + 1) * k] = block
            found[b * k : (b + 1) * k, a * k : (a + 1) * k] = block.T
    return found


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


def _sandwich(bread: Floats, meat: Floats) -> Floats:
    half = np.linalg.solve(bread, meat)
    return np.asarray(np.linalg.solve(bread, half.T))


def fit_linear(x: Floats, outcome: Floats, rows: ClassCounts) -> Fit:
    """Least squares on x and indicators of all classes but the last, with corrected moments.

    Σ z, Σ xz' and Σ zy are replaced by their unbiased reconstructions, in which each record has
    (O - t)/p instead of its indicator z: the errors-in-variables correction for misclassified
    groups. Not converged: noise leaves the moments of the classes without an inverse.
    """
    free = rows.classes - 1
    z = rows.counts[:, :free]
    k = x.shape[1]
    moments = np.zeros((k + free, k + free))
    moments[:k, :k] = x.T @ (rows.records[:, None] * x)
    moments[:k, k:] = x.T @ z
    moments[k:, :k] = moments[:k, k:].T
    moments[k:, k:] = np.diag(z.sum(axis=0))
    with_outcome = np.concatenate([x.T @ (rows.records * outcome), z.T @ outcome])
    try:
        np.linalg.cholesky(moments)  # positive definite, as the moments of records are
        beta = np.linalg.solve(moments, with_outcome)
    except np.linalg.LinAlgError:
        return Fit(np.zeros(k + free), np.zeros((k + free, k + free)), converged=False)
    effects = np.append(beta[k:], 0.0)
    residuals = (outcome - x @ beta[:k])[:, None] - effects
    varied = rows.times(residuals)
    meat = np.zeros_like(moments)
    meat[:k, :k] = x.T @ (np.sum(residuals * varied, axis=1)[:, None] * x)
    meat[:k, k:] = x.T @ (varied * residuals)[:, :free]
    meat[k:, :k] = meat[:k, k:].T
    meat[k:, k:] = rows.weighted(residuals)[:free, :free]
    return Fit(beta, _sandwich(moments, meat))

"""Any transition matrix instead of Equation 1: post-randomisation (PRAM) of one column.

Row i of a matrix P is the distribution of what is published for x_i: P[i, j] = Pr[x_j | x_i], as
in the literature on PRAM (Gouweleeuw et al., 1998). It is the transpose of the paper's P, which is
symmetric. With λ the published shares and Q = P⁻¹,

    f̂ = λ Q                                      (Theorem 1; unbiased)
    Cov f̂ = Qᵀ [diag(f P) - Pᵀ diag(f) P] Q / n    for the frequencies f of these n records,

which is linear in f, so f̂ gives an unbiased estimate of it.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from reconpriv.errors import PolicyError
from reconpriv.theory.arrays import Floats

# Beyond this, rounding alone moves an estimate by about a millionth.
LARGEST_CONDITION = 1e10

_ROUNDING = 1e-9  # how far the sum of a row may be from 1
_DECIMALS = 12  # of a product: what processors compute alike


def check_transition(matrix: ArrayLike, domain_size: int) -> Floats:
    """Return the matrix as numbers; refuse what cannot be drawn from or undone."""
    m = domain_size
    try:
        found = np.array(matrix, dtype=np.float64)
    except (OverflowError, TypeError, ValueError):
        raise PolicyError(
            "The matrix is not one of numbers.", hint=f"Give {m} rows of {m} probabilities."
        ) from None
    if found.shape != (m, m):
        shown = " x ".join(f"{length:,}" for length in found.shape) or "a single number"
        raise PolicyError(
            f"The matrix must have a row and a column for each of the {m} values of the domain;"
            f" got {shown}."
        )
    if not np.isfinite(found).all() or (found < 0).any():
        raise PolicyError("The matrix has an entry that is negative or no number.")
    sums = found.sum(axis=1)
    wrong = np.flatnonzero(np.abs(sums - 1.0) > _ROUNDING)
    if wrong.size:
        turned = (np.abs(found.sum(axis=0) - 1.0) <= _ROUNDING).all()
        raise PolicyError(
            f"Row {wrong[0] + 1} of the matrix adds up to {sums[wrong[0]]:.10g}, not to 1.",
            hint="Transpose it: a row holds the probabilities of what is published for one value."
            if turned
            else "Divide each row by its sum.",
        )
    if np.isin(found, (0.0, 1.0)).all():
        raise PolicyError("The matrix randomises nothing: each row has a single entry.")
    condition = condition_number(found)
    if not condition <= LARGEST_CONDITION:
        raise PolicyError(
            "The matrix is singular, or nearly so: no frequency could be reconstructed.",
            hint="Give more weight to its diagonal.",
        )
    return found


def condition_number(matrix: Floats) -> float:
    """How much the reconstruction may magnify noise: the ratio of the extreme singular values."""
    values = np.linalg.svd(matrix, compute_uv=False)
    return float(values[0] / values[-1]) if values[-1] > 0 else math.inf


def transition_privacy_level(matrix: Floats) -> float:
    """The ε of local differential privacy of one published value: max_j ln(max_i P_ij/min_i P_ij).

    Infinite if a value that can be published rules out another true one.
    """
    low, high = matrix.min(axis=0), matrix.max(axis=0)
    used = high > 0
    if (low[used] == 0).any():
        return math.inf
    return float(np.log(high[used] / low[used]).max())


def keep_or_draw(frequencies: Floats, retention: float) -> Floats:
    """The invariant matrix pI + (1-p) 1fᵀ: keep a value, or draw one from the data."""
    m = frequencies.size
    return np.asarray(retention * np.eye(m) + (1.0 - retention) * frequencies[None, :])


def made_invariant(matrix: Floats, frequencies: Floats) -> Floats:
    """R = PQ with Q the posterior of P, Pr[x_k | published x_j]; then fᵀR = fᵀ.

    The two stages of Gouweleeuw et al. (1998): randomise, then draw a true value that could have
    led there.
    """
    if (frequencies <= 0).any():
        raise PolicyError(
            "A matrix cannot be made invariant where the domain has a value that nobody has.",
            hint="Leave that value out, or give a retention instead of a matrix.",
        )
    joint = frequencies[:, None] * matrix
    published = joint.sum(axis=0)
    posterior = (joint / published).T
    return np.asarray(np.round(matrix @ posterior, _DECIMALS))


def undo(matrix: Floats, published: Floats) -> Floats:
    """f̂ = λ P⁻¹: the unbiased frequencies."""
    return np.asarray(np.linalg.solve(matrix.T, published))


def unit_variances(matrix: Floats) -> Floats:
    """What one record with value i adds to n² Var f̂_k, in row i and column k.

    Σ_j P_ij Q_jk² - [i = k], since the mean Σ_j P_ij Q_jk is 1 for i = k and 0 otherwise.
    """
    inverse = np.linalg.inv(matrix)
    return np.maximum(matrix @ inverse**2 - np.eye(matrix.shape[0]), 0.0)


def covariances(matrix: Floats, frequencies: Floats, records: int) -> Floats:
    """Cov f̂ for the given (or estimated) frequencies among these records."""
    inverse = np.linalg.inv(matrix)
    observed = np.diag(frequencies @ matrix) - matrix.T @ (frequencies[:, None] * matrix)
    return np.asarray(inverse.T @ observed @ inverse / records)


def variances(matrix: Floats, frequencies: Floats, records: int) -> Floats:
    """Var f̂ of every value; an estimate is never below the smallest that is possible."""
    unit = unit_variances(matrix)
    return np.asarray(np.maximum(frequencies @ unit, unit.min(axis=0)) / records)


def frequency_limits(
    matrix: Floats, frequencies: Floats, records: int, *, quantile: float
) -> tuple[Floats, Floats]:
    """Which frequencies the estimated ones do not contradict (a score interval), within 0 to 1.

    The variance is taken at the frequency that is tested: c v_kk + (1-c) w_k, where w_k is the mean
    of v_ik over the other values in their estimated proportions, and z² more records of the value
    that would add most: few of them may pass for none. It is linear in c, so the limits are the
    roots of (f̂ - c)² = z² [w + c (v - w)] / n, widened by half a record.
    """
    unit = unit_variances(matrix)
    own = np.diag(unit)
    possible = np.maximum(frequencies, 0.0)
    others = possible.sum() - possible
    # Where nobody seems to hold another value, any of them may be it.
    evenly = (unit.sum(axis=0) - own) / (unit.shape[0] - 1)
    weighted = possible @ unit - possible * own
    other = np.where(others > 0, weighted / np.where(others > 0, others, 1.0), evenly)
    share = quantile**2 / records
    other += share * np.where(np.eye(own.size, dtype=bool), 0.0, unit).max(axis=0)
    # An unlucky draw must not look like certainty.
    found = np.clip(frequencies, 0.0, 1.0)
    half = 0.5 / records
    low, high = (_root(found + side * half, share, own, other, side) for side in (-1.0, 1.0))
    return np.clip(low, 0.0, found), np.clip(high, found, 1.0)


def _root(found: Floats, share: float, own: Floats, other: Floats, side: float) -> Floats:
    """The root of (f̂ - c)² = share [other + c (own - other)] on one side of f̂."""
    middle = found + share * (own - other) / 2.0
    under = middle**2 - found**2 + share * other
    return np.asarray(middle + side * np.sqrt(np.maximum(under, 0.0)))

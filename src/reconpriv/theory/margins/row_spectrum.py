"""What margins tell: noisy sums over groups, combined with the groups' own trials.

A group of N records that rests on n trials gives an unbiased estimate D of how many of its records
hold a value, with variance (N²/n) v: v = (α f + β)/p² is that of one trial (theory.design). A
margin row adds up the true counts of the groups in it, plus noise of variance σ². With B the 0/1
matrix of rows x groups and V the diagonal matrix of the groups' variances, generalised least
squares in its dual form combines both: with Q = B V B' + σ² I, a sum of groups q is estimated by

    q'D + λ'(M - B D),   λ = Q^-1 B V q,   with variance q'V q - λ'B V q.

For a single group g, Q = Q_g + V_g b b' (b its rows, Q_g without it) turns this variance into
V_g/(1 + V_g k), k = b'Q_g^-1 b: as if the group had n + n V_g k = n + N² v k trials. So margins are
worth a fixed number of trials to whoever wants to know one group, however many it has itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from reconpriv.theory.arrays import Floats, Ints
from reconpriv.theory.estimation.design import mixing

# Where a group is all that a row tells about, rounding must not make what it tells infinite.
_LEAST = 1e-12
_DIGITS = 2.0**30
# Rows of a matrix that is inverted at once.
_ONE_THREAD = 64
# How many groups are looked up at once: what stays in the cache.
_BLOCK = 512


def cell_noise(variance: float, domain_size: int, values: int = 1) -> float:
    """The noise of a row's count of ``values`` values, once all counts add up to its known size.

    Spreading the excess of a row evenly over its m counts takes k²/m of k independent noises away.
    """
    return variance * values * (1.0 - values / domain_size)


@dataclass(frozen=True)
class RowSpectrum:
    """P = B U B' over the rows, decomposed, so that weights for any v and σ² are quick.

    U has N²/n of every group: what is unknown about it, in units of the variance v of one trial.
    """

    vectors: Floats
    spectrum: Floats

    @classmethod
    def of(cls, products: Floats) -> Self:
        """Decompose P."""
        spectrum, vectors = np.linalg.eigh(products)
        return cls(vectors, np.maximum(spectrum, 0.0))

    def weights(
        self, unknown: Floats, one_trial: Floats, noise: Floats | float, line: Ints | None = None
    ) -> Floats:
        """λ = v (v P + σ² I)^-1 B U q, a line per question.

        ``unknown`` has the lines B U q; ``line`` says which of them each question has, if several
        share one. ``one_trial`` is v and ``noise`` σ² of each question.
        """
        one_trial, noise = one_trial[..., None], np.asarray(noise)[..., None]
        turned = unknown @ self.vectors
        scaled = (turned if line is None else turned[line]) * one_trial
        # Margins of all values together say nothing, and have no noise.
        scaled /= np.maximum(one_trial * self.spectrum + noise, np.finfo(float).tiny)
        return np.asarray(scaled @ self.vectors.T)


def row_precision(
    products: Floats, variance: float, others: Floats, *, retention: float, domain_size: int
) -> Floats:
    """Q^-1 over the rows, if the groups of a row hold the value as often as ``others`` says.

    Groups that two rows share are taken to hold it as often as the geometric mean of both, which
    keeps Q positive. The less the other groups vary, the more a row tells about one of them: a
    smaller ``others`` errs on the side of the adversary. ``products`` are the sums of N²/n over the
    groups of two rows.
    """
    holder, anybody = mixing(retention, domain_size)
    noise = cell_noise(variance, domain_size)
    root = np.sqrt(others)
    unknown = products * (holder * np.outer(root, root) + anybody)
    return precision_of(unknown, noise)


def precision_of(unknown: Floats, noise: float) -> Floats:
    """Q^-1 = (B V B' + σ² I)^-1 over the rows, from B V B' and σ²."""
    return _inverse(unknown + noise * np.eye(unknown.shape[0]))


def _inverse(matrix: Floats) -> Floats:
    """The inverse of a symmetric positive matrix, block by block.

    Blocks are small enough for one thread: threads that wait for a busy processor take a hundred
    times as long, and how many there are decides about the last digits.
    """
    size = matrix.shape[0]
    if size <= _ONE_THREAD:
        return np.asarray(np.linalg.inv(matrix))
    half = (size + 1) // 2
    first, shared, last = matrix[:half, :half], matrix[:half, half:], matrix[half:, half:]
    inverse = _inverse(first)
    slope = inverse @ shared
    rest = _inverse(last - shared.T @ slope)
    both = slope @ rest
    return np.block([[inverse + both @ slope.T, -both], [-both.T, rest]])


def trials_from_margins(
    rows: Ints,
    sizes: Ints,
    trials: Floats,
    own: Floats,
    others: Floats,
    precision: Floats,
    *,
    retention: float,
    domain_size: int,
) -> Floats:
    """N² v k: how many trials of its own margins are worth, for an adversary who wants one group.

    ``rows`` lists the rows of each group (-1: none). ``own`` is the frequency in the group of the
    value asked about, ``others`` (by row) and ``trials`` are those of ``precision`` = Q^-1.

    In Q the group counts with the matrix V = (N²/n)(α s s' + β b b'), s having the roots of
    ``others`` in its rows. Without it, k = b'(Q - V)^-1 b, by Woodbury's identity of rank two.
    """
    holder, anybody = mixing(retention, domain_size)
    root = np.sqrt(others)
    once = precision * root
    plain, mixed, rooted = between_rows(rows, precision, once, root[:, None] * once)
    squares = sizes.astype(np.float64) ** 2
    alike, held = squares / trials * anybody, squares / trials * holder
    # (Q - V)^-1 = Q^-1 + Q^-1 [b s] (D^-1 - [b s]'Q^-1 [b s])^-1 [b s]'Q^-1, D = diag(β, α) N²/n.
    first, second = 1.0 - alike * plain, 1.0 - held * rooted
    determinant = np.maximum(first * second - alike * held * mixed**2, _LEAST)
    information = (plain * second + held * mixed**2) / determinant
    return same_everywhere(squares * (holder * own + anybody) * information)


def same_everywhere(numbers: Floats) -> Floats:
    """Numbers to nine digits; the others depend on how many threads a machine has.

    So numbers that are equal on paper are, and none of them is just below a whole number.
    """
    mantissa, exponent = np.frexp(numbers)
    return np.asarray(np.ldexp(np.round(mantissa * _DIGITS) / _DIGITS, exponent))


def between_rows(rows: Ints, *matrices: Floats) -> Floats:
    """b'A b of each group: matrices over the rows, summed over the pairs of rows of the group.

    With A = Q^-1 this is h.
    """
    found = np.zeros((len(matrices), rows.shape[0]))
    # A line of zeros at the end stands for no row.
    padded = [np.pad(matrix, (0, 1)) for matrix in matrices]
    side = padded[0].shape[0]
    for start in range(0, rows.shape[0], _BLOCK):
        some = np.ascontiguousarray(rows[start : start + _BLOCK].T) % side
        places = some[:, None] * side + some
        for line, matrix in zip(found, padded, strict=True):
            line[start : start + _BLOCK] = matrix.ravel().take(places).sum(axis=(0, 1))
    return found


def without_itself(told: Floats, variances: Floats) -> Floats:
    """k = h/(1 - V h): what the rows of a group tell about it besides what it says itself."""
    return np.asarray(told / np.maximum(1.0 - variances * told, np.finfo(float).tiny))

"""The main-effects model: what margins say about a group, if attributes do not act on one another.

The frequency of value v in group g is proportional to the product, over all margin tables, of a
factor of v and the group's row. Of all tables with the published public counts and these margins,
this one has the largest entropy: it claims nothing beyond what the margins say (a log-linear model
with main effects only). Iterative proportional fitting finds it: in turn, each table's counts are
scaled to the published ones and each group's to its size, until nothing changes.

It starts from the values' shares of the whole table instead of equal ones. Where every row is
published, the result is the same; a group whose row is not takes that table's effect to be none.
"""

from __future__ import annotations

import numpy as np

from reconpriv.theory.arrays import Floats, Ints, quotient

# The fit is done once no frequency changes by more than this, or after so many rounds. Noisy tables
# contradict one another a little, and what later rounds change follows the noise: on the census,
# 200 rounds describe the true table no better than 30.
TOLERANCE = 1e-6
MOST_ROUNDS = 50
# The least count of a margin, in records, once it is made positive.
_LEAST = 0.5
_LEAST_SHARE = 1e-4


def main_effects(
    rows: Ints,
    sizes: Ints,
    margins: Floats,
    *,
    tolerance: float = TOLERANCE,
    most_rounds: int = MOST_ROUNDS,
) -> Floats:
    """The frequencies of all values in all groups: a line per group, which adds up to 1.

    ``rows`` has the row of every group in every table, numbered through over all tables (-1: not
    published), ``sizes`` the records of every group, ``margins`` a line of counts per row. Noisy
    counts come from :func:`positive_counts`; if two tables contradict each other, the fit ends
    between them. A group of size 0 has no part in the fit, and gets what it says about the group.
    """
    count, m = margins.shape
    expected = np.ascontiguousarray(margins.T, dtype=np.float64)
    start = _shares(expected)
    records = sizes.astype(np.float64)
    frequency = np.repeat(start[:, None], sizes.size, axis=1)
    published = [np.flatnonzero(table >= 0) for table in rows.T]
    tables = [(inside, rows[inside, t]) for t, inside in enumerate(published)]
    for _ in range(most_rounds):
        before, total = frequency.copy(), np.zeros(sizes.size)
        # Value by value, so that what is being scaled stays in the cache.
        for v in range(m):
            line = frequency[v]
            for inside, row in tables:
                fitted = np.bincount(row, weights=(line * records)[inside], minlength=count)
                line[inside] *= quotient(expected[v], fitted)[row]
            total += line
        # A group whose values are all excluded by some margin or other is like everybody.
        frequency[:, total <= 0.0] = start[:, None]
        frequency /= np.where(total > 0.0, total, 1.0)
        np.abs(np.subtract(before, frequency, out=before), out=before)
        if before.max(initial=0.0) <= tolerance:
            break
    return np.ascontiguousarray(frequency.T)


def positive_counts(noisy: Floats, sizes: Floats) -> Floats:
    """Noisy counts as a model can have come to them: positive, each row adding up to its size."""
    excess = (noisy.sum(axis=1) - sizes) / noisy.shape[1]
    clipped = np.maximum(noisy - excess[:, None], _LEAST)
    return np.asarray(clipped * (sizes / clipped.sum(axis=1))[:, None])


def _shares(expected: Floats) -> Floats:
    """How frequent each value is in all margins together."""
    total = expected.sum(axis=1)
    whole = total.sum()
    return total / whole if whole > 0 else np.full(total.size, 1.0 / total.size)


def shrunken(counts: Floats, sizes: Floats, overall: Floats, noise: float) -> Floats:
    """Frequencies of noisy rows, drawn towards those of the whole table where noise outweighs them.

    A row counts as its own size, the whole table as one standard deviation of the ``noise``.
    """
    drawn = (counts + noise * overall) / (sizes + noise)[:, None]
    return np.asarray(np.clip(drawn, _LEAST_SHARE, 1.0))


def expected_frequencies(rows: Ints, by_row: Floats, overall: Floats) -> Floats:
    """The larger of the prediction by main effects and the mean of a group's rows, value by value.

    Without a fit: if each public column shifted the sensitive value in the same way whatever the
    others are, a group would hold x with a frequency proportional to f(x) Π_j f(x | row j) / f(x).
    ``rows`` lists the rows of each group, ``by_row`` the frequencies of the values in each row.
    """
    logs = np.log(by_row)
    base = np.log(np.maximum(overall, _LEAST_SHARE))
    exponent = np.full((rows.shape[0], base.size), (1 - rows.shape[1]) * base)
    mean = np.zeros_like(exponent)
    for table in rows.T:
        exponent += logs[table]
        mean += by_row[table]
    exponent -= exponent.max(axis=1, keepdims=True)
    predicted = np.exp(exponent)
    predicted /= predicted.sum(axis=1, keepdims=True)
    return np.asarray(np.maximum(predicted, mean / rows.shape[1]))

"""How often a group is expected to hold each value, as far as margins tell: by main effects.

A group has a row in every margin table. If each public column shifted the sensitive value in the
same way whatever the others are, the group would hold x with a frequency proportional to

    f(x) Π_j f(x | row j) / f(x).
"""

from __future__ import annotations

import numpy as np

from reconpriv.theory.arrays import Floats, Ints

_LEAST = 1e-4


def shrunken(counts: Floats, sizes: Floats, overall: Floats, noise: float) -> Floats:
    """Frequencies of noisy rows, drawn towards those of the whole table where noise outweighs them.

    A row counts as its own size, the whole table as one standard deviation of the ``noise``.
    """
    drawn = (counts + noise * overall) / (sizes + noise)[:, None]
    return np.asarray(np.clip(drawn, _LEAST, 1.0))


def expected_frequencies(rows: Ints, by_row: Floats, overall: Floats) -> Floats:
    """The larger of the prediction by main effects and the mean of a group's rows, value by value.

    ``rows`` lists the rows of each group, ``by_row`` the frequencies of the values in each row.
    """
    logs = np.log(by_row)
    base = np.log(np.maximum(overall, _LEAST))
    exponent = np.full((rows.shape[0], base.size), (1 - rows.shape[1]) * base)
    mean = np.zeros_like(exponent)
    for table in rows.T:
        exponent += logs[table]
        mean += by_row[table]
    exponent -= exponent.max(axis=1, keepdims=True)
    predicted = np.exp(exponent)
    predicted /= predicted.sum(axis=1, keepdims=True)
    return np.asarray(np.maximum(predicted, mean / rows.shape[1]))

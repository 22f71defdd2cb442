"""How often 95 % intervals of counts hold, by class of the true count, over many releases.

Every count of a sensitive value by one public column and by two is asked for. Counts of one release
share its margins, so how sure a share is depends on its spread over releases.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np

from reconpriv.answers.answerer import Answerer
from reconpriv.attacks.attacked_table import AttackedTable
from reconpriv.estimate.counts import Design, Estimate, Settings
from reconpriv.estimate.measurements import prepare_margins
from reconpriv.research.results import Row
from reconpriv.theory.arrays import Floats

# True counts from these on are a class.
CLASSES = (0, 1, 10, 30, 100, 300, 1_000, 3_000)
_UNPERTURBED = 1.0 - 1e-12


def counts_covered(target: AttackedTable, keys: int) -> list[Row]:
    """A row for every class of counts that occurs: how many intervals, and how many hold."""
    policy, schema = target.policy, target.schema
    truth = _counts(Answerer(target.raw, Design(_UNPERTURBED, schema.domain_size, "none")))
    true = np.rint([one.count for one in truth])
    place = np.searchsorted(CLASSES, true, side="right") - 1
    design = Design.of(policy, schema)
    low, high = (np.zeros((keys, len(CLASSES))) for _ in range(2))
    for number in range(keys):
        published = target.publication(number)
        cube, tables = published.cube, published.tables
        ready = prepare_margins(cube, tables, published.variance, design)
        found = _counts(Answerer(cube, design, ready))
        low[number] = _shares(np.array([one.high for one in found]) < true, place)
        high[number] = _shares(np.array([one.low for one in found]) > true, place)
    size = np.bincount(place, minlength=len(CLASSES))
    covered = 1.0 - low - high
    return [
        {
            "from_count": CLASSES[i],
            "intervals": int(size[i] * keys),
            "covered": float(covered[:, i].mean()),
            "standard_error": float(covered[:, i].std(ddof=1) / np.sqrt(keys)),
            "too_low": float(low[:, i].mean()),
            "too_high": float(high[:, i].mean()),
            "keys": keys,
        }
        for i in np.flatnonzero(size)
    ]


def _counts(answerer: Answerer) -> list[Estimate]:
    """Every value by one column and by two, always in the same order."""
    schema, everybody = answerer.cells.schema, answerer.select(None, {})
    names = [column.name for column in schema.public]
    asked = [[*some, schema.sensitive.name] for k in (1, 2) for some in combinations(names, k)]
    return [one for by in asked for _, one in answerer.table(everybody, by, Settings())]


def _shares(flags: np.ndarray, place: np.ndarray) -> Floats:
    """The share of flags in each class."""
    size = np.bincount(place, minlength=len(CLASSES))
    return np.bincount(place, weights=flags, minlength=len(CLASSES)) / np.maximum(size, 1)

"""Many publications of one small table in memory, and the same questions to the original."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import numpy as np
import pyarrow as pa

import reconpriv as rp
from query_fixtures import numbered_key, people
from reconpriv.answers.answerer import Answerer
from reconpriv.cells.cube import Cube, collect
from reconpriv.estimate.counts import Design
from reconpriv.protect.publish_cube import published_cube

P = 0.5


@cache
def _opened(kind: str) -> Cube:
    table = people() if kind == "people" else null_table()
    with rp.read(table, sensitive="job", public="all", missing="value") as opened:
        return collect(opened.batches(), opened.schema)


def original(kind: str = "people") -> Answerer:
    """The original table, asked as if nothing had been perturbed."""
    cube = _opened(kind)
    return Answerer(cube, Design(1.0, cube.schema.domain_size, "none"))


def published(size: str, keys: int, *, told: float = P, kind: str = "people") -> Iterator[Answerer]:
    """Publications with different keys; ``told`` is the p that the analyst is told."""
    cube = _opened(kind)
    policy = rp.Policy(retention=P, tolerance=0.5, doubt=0.3, sampling=size)
    design = Design(told, cube.schema.domain_size, size)
    for number in range(keys):
        yield Answerer(published_cube(cube, policy, numbered_key(number)), design)


def null_table() -> pa.Table:
    """Two groups of 300 and 500 records, in each of which 30 % are nurses."""
    jobs, sexes = [], []
    for sex, size in (("F", 300), ("M", 500)):
        nurses = round(0.3 * size)
        others = np.resize(["baker", "clerk", "pilot"], size - nurses).tolist()
        jobs += ["nurse"] * nurses + others
        sexes += [sex] * size
    return pa.table({"Sex": sexes, "job": jobs})

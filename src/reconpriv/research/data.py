"""EDU-n and OCC-n: samples of the census workers, or of a user's own extract.

The paper's CENSUS extract is not freely redistributable. The bundled samples are drawn by survey
weight, with replacement, from 148,318 workers of the Current Population Survey 1994-95: a
bootstrap, and labelled as such wherever it is shown.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from reconpriv.attacks.attacked_table import words_of
from reconpriv.cells.randomness import Key, repeatable_key, unit_interval
from reconpriv.datasets import dataset_path
from reconpriv.engines.local import read_all
from reconpriv.errors import InputError
from reconpriv.reading import read
from reconpriv.table import Table
from reconpriv.theory.arrays import Floats, Ints

ATTRIBUTES = ("Age", "Gender", "Education", "Marital", "Race", "Workclass", "Occupation")
BASES = {"EDU": "Education", "OCC": "Occupation"}

BOOTSTRAP = "bootstrap of the census workers, drawn by survey weight with replacement"
OWN = "records of the given extract, drawn without replacement"


@dataclass(frozen=True)
class Population:
    """The people that samples are drawn from, in a fixed random order shared by all samples."""

    people: pa.Table
    order: Ints
    label: str

    @property
    def largest(self) -> int:
        """The size of the largest possible sample."""
        return self.order.size

    def sample(self, base: str, records: int) -> Table:
        """EDU-n or OCC-n: the first n in the order, so smaller samples are part of larger ones."""
        if records > self.largest:
            raise InputError(
                f"A sample of {records:,} needs as many records; the extract has {self.largest:,}."
            )
        sensitive = BASES[base]
        taken = self.people.take(pa.array(self.order[:records]))
        public = [name for name in ATTRIBUTES if name != sensitive]
        return read(taken, sensitive=sensitive, public=public)


def census_population(records: int = 500_000, seed: int = 0) -> Population:
    """The bundled workers, drawn with replacement in proportion to their survey weight."""
    table = pyarrow.parquet.read_table(dataset_path("census_workers"))
    weight = np.cumsum(table["Weight"].to_numpy())
    u = _uniform(records, seed)
    drawn = np.searchsorted(weight, u * weight[-1], side="right")
    return Population(table.select(list(ATTRIBUTES)), np.minimum(drawn, weight.size - 1), BOOTSTRAP)


def own_population(path: Path, seed: int = 0) -> Population:
    """A user's extract: a CSV or Parquet file with (at least) the seven columns of the paper.

    The layout: a header Age, Gender, Education, Marital, Race, Workclass, Occupation (in any order;
    other columns are ignored) and one line per person, values coded as you like.
    """
    table = read_all(path)
    missing = [name for name in ATTRIBUTES if name not in table.column_names]
    if missing:
        raise InputError(
            f"The extract lacks the column(s) {', '.join(missing)}.",
            hint=f"It needs: {', '.join(ATTRIBUTES)}.",
        )
    order = np.argsort(_uniform(table.num_rows, seed), kind="stable")
    return Population(table.select(list(ATTRIBUTES)), order, OWN)


def study_key(number: int, purpose: str = "release") -> Key:
    """A repeatable key: the study is about spread, not secrecy."""
    return repeatable_key(f"study {purpose} {number}")


def _uniform(count: int, seed: int) -> Floats:
    return unit_interval(words_of(study_key(seed, "sample"), count))

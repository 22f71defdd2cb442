"""Loading a release into memory as cells with their design."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
from numpy.typing import NDArray

from reconpriv.engines.duckdb import DuckDBEngine
from reconpriv.errors import ReleaseError
from reconpriv.manifest import Description
from reconpriv.queries.cube import Cube, collect
from reconpriv.schema import Column
from reconpriv.theory.bounds import BOUNDS
from reconpriv.theory.privacy import largest_private_size
from reconpriv.theory.reconstruction import reconstruct_frequency

Floats = NDArray[np.float64]


def load_cube(description: Description) -> Cube:
    """Count the published records; take trials from the groups file, or estimate them."""
    schema = description.schema
    engine = DuckDBEngine(description.data)
    try:
        _check_columns(engine.columns(), description)
        found = engine.value_counts(schema.sensitive)
        if not set(found) <= set(schema.domain):
            raise ReleaseError(
                f"The file {description.data.name} does not match its manifest (domain)."
            )
        cube = collect(engine.groups(schema, drop_missing=False), schema)
    finally:
        engine.close()
    if int(cube.records.sum()) != description.manifest["reconpriv"]["records"]:
        raise ReleaseError(f"The file {description.data.name} does not match its manifest (rows).")
    if description.sample_size == "none":
        return cube
    if description.groups is None:
        return _with(cube, _plug_in_trials(cube, description), coins=True)
    return _with(cube, _published_trials(cube, description), coins=False)


def _with(cube: Cube, trials: Floats, *, coins: bool) -> Cube:
    return Cube(
        cube.schema,
        cube.codes,
        cube.values,
        cube.records,
        trials,
        cube.group,
        cube.value,
        cube.count,
        coins,
    )


def _check_columns(columns: list[Column], description: Description) -> None:
    if columns != list(description.schema.columns):
        raise ReleaseError(
            f"The file {description.data.name} does not match its manifest (columns)."
        )


def _published_trials(cube: Cube, description: Description) -> Floats:
    """The groups file has a row a group in the same canonical order as the cells."""
    assert description.groups is not None
    names = list(description.count_names)
    if description.groups.suffix == ".csv":
        table: pa.Table = pyarrow.csv.read_csv(description.groups).select(names)
    else:
        table = pyarrow.parquet.read_table(description.groups, columns=names)
    records, trials = (column.to_numpy() for column in table.columns)
    if not np.array_equal(records, cube.records):
        raise ReleaseError(
            f"The file {description.groups.name} does not match {description.data.name} (records)."
        )
    return np.asarray(trials, dtype=np.float64)


def _plug_in_trials(cube: Cube, description: Description) -> Floats:
    """What an analyst can know of the trials in `paper` mode: s(F') of the estimated largest f.

    The largest of several noisy frequencies is too large on average, so s(F') is too small and
    the interval too wide rather than too narrow.
    """
    block = description.manifest["reconpriv"]
    m = description.schema.domain_size
    largest = np.zeros(cube.groups)
    np.maximum.at(
        largest,
        cube.group,
        reconstruct_frequency(
            cube.count, cube.records[cube.group], retention=description.retention, domain_size=m
        ),
    )
    bound = BOUNDS.get(block["bound"])
    if bound is None or bound.lattice:
        bound = BOUNDS["chernoff-full"]
    sizes = largest_private_size(
        np.clip(largest, 1.0 / m, 1.0),
        retention=description.retention,
        domain_size=m,
        epsilon=block["epsilon"],
        delta=block["delta"],
        bound=bound,
    )
    return np.minimum(np.maximum(sizes, 1.0), cube.records)

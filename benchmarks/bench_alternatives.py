"""A histogram from a release against the same histogram with differentially private noise.

A quarter of a million generated records, one sensitive column of 24 values, public columns as
given below, and the defaults of publish. Prints a section of RESULTS.md.
"""

from __future__ import annotations

import hashlib
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import reconpriv as rp

RECORDS = 250_000
VALUES = 24
KEYS = 10
EPSILON = 1.0
# How many values each public column has; with none, only the sensitive column is released.
LAYOUTS: dict[str, tuple[int, ...]] = {
    "none": (),
    "sex": (2,),
    "sex, region": (2, 10),
    "sex, region, age": (2, 10, 70),
}
POLICY = rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3)


def made_table(sizes: tuple[int, ...]) -> pa.Table:
    """Records with independent public columns; sensitive values have shares like 1 / rank."""
    rng = np.random.default_rng(2024)
    share = 1.0 / np.arange(1, VALUES + 1)
    columns: dict[str, Any] = {
        f"public{i}": rng.integers(0, size, RECORDS) for i, size in enumerate(sizes)
    }
    values = rng.choice(VALUES, RECORDS, p=share / share.sum())
    return pa.table(columns | {"sensitive": [f"value {v:02d}" for v in values]})


def true_histogram(table: pa.Table) -> np.ndarray:
    """The counts of the sensitive values, in their order."""
    return np.unique(table["sensitive"].to_numpy(), return_counts=True)[1]


def release_error(table: pa.Table) -> float:
    """The mean absolute error of a release's histogram, over several keys."""
    truth = true_histogram(table)
    errors = []
    with (
        rp.read(table, sensitive="sensitive", public="all") as opened,
        tempfile.TemporaryDirectory() as scratch,
    ):
        for number in range(KEYS):
            key = rp.Key(hashlib.sha256(f"alternatives {number}".encode()).digest())
            release = opened.publish(POLICY, Path(scratch) / str(number), key=key)
            found = [estimate.count for _, estimate in release.frequencies()]
            errors.append(np.abs(np.array(found) - truth).mean())
    return float(np.mean(errors))


def noisy_error(truth: np.ndarray) -> float:
    """The mean absolute error of OpenDP's histogram at ε: one record changes one count by one."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int)
    noisy = dp.m.make_laplace(*space, scale=1.0 / EPSILON)
    assert noisy.map(d_in=1) <= EPSILON + 1e-9
    drawn = [noisy([int(count) for count in truth]) for _ in range(100 * KEYS)]
    return float(np.abs(np.array(drawn) - truth).mean())


def main() -> None:
    """Measure, and print the table."""
    warnings.simplefilter("ignore", rp.ReconprivWarning)
    print("## A fixed histogram: noisy counts against a release\n")
    print(
        f"{RECORDS:,} made records, a sensitive column of {VALUES} values, its histogram; mean"
        f" absolute error of a count, over {KEYS} keys. OpenDP: discrete Laplace noise, ε ="
        f" {EPSILON:g} (adding or removing one record). reconpriv: the defaults of publish (p ="
        " 0.5, ε = 0.5, δ = 0.3, octave).\n"
    )
    print("| public columns of the release | groups | OpenDP | reconpriv |\n|---|---:|---:|---:|")
    for name, sizes in LAYOUTS.items():
        table = made_table(sizes)
        noisy, released = noisy_error(true_histogram(table)), release_error(table)
        print(f"| {name} | {int(np.prod(sizes)):,} | {noisy:.2f} | {released:,.0f} |", flush=True)


if __name__ == "__main__":
    main()

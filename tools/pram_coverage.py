"""How often 95 % intervals of a column perturbed by a matrix hold, for docs/pram-coverage.csv.

Columns of the census workers, four kinds of matrix and fixed keys, so the same run gives the same
figures:

    python tools/pram_coverage.py            # about two minutes
"""

from __future__ import annotations

import csv
import hashlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

import reconpriv as rp

CSV = Path(__file__).parent.parent / "docs" / "pram-coverage.csv"
COLUMNS = ("Education", "Occupation")
RECORDS = (50, 400, 4000)
KEYS = 1000
CLASSES = ("0", "1-3", "4-15", "16-40", "41-200", "201+")
_BORDERS = np.array([1, 4, 16, 41, 201])
HEAD = ("column", "matrix", "records", "true_count", "cases", "covered", "covered_30_percent_off")


def matrices(domain: list[str], values: list[str]) -> Iterator[tuple[str, rp.PramMatrix]]:
    """Uniform replacement, neighbours only, anything goes, and an invariant one."""
    m = len(domain)
    yield "uniform", rp.pram_matrix(mixed(0.5, np.full((m, m), 1 / m)), domain)
    away = np.abs(np.arange(m)[:, None] - np.arange(m)) == 1
    yield "neighbours", rp.pram_matrix(mixed(0.7, away / away.sum(axis=1, keepdims=True)), domain)
    rows = np.random.default_rng(5).dirichlet(np.full(m, 0.5), size=m)
    yield "uneven", rp.pram_matrix(mixed(0.6, rows), domain)
    yield "invariant", rp.invariant_matrix(values, domain, retention=0.5)


def mixed(p: float, rows: np.ndarray) -> np.ndarray:
    """Keep a value with probability p, else draw from its row."""
    return p * np.eye(rows.shape[0]) + (1 - p) * rows


def thirty_percent_off(matrix: rp.PramMatrix) -> np.ndarray:
    """The same matrix with its diagonal believed to be 30 % smaller than it is."""
    wrong = matrix.probabilities.copy()
    np.fill_diagonal(wrong, 0.7 * np.diag(wrong))
    others = wrong - np.diag(np.diag(wrong))
    return others * ((1 - np.diag(wrong)) / others.sum(axis=1))[:, None] + np.diag(np.diag(wrong))


def holds(found: rp.Frequencies, truth: np.ndarray) -> np.ndarray:
    """Which intervals contain the true frequency."""
    return (found.low <= truth + 1e-12) & (truth - 1e-12 <= found.high)


def rows(keys: int = KEYS) -> Iterator[tuple[str, str, int, str, int, int, int]]:
    """Cases and hits by class of true count."""
    census = pq.read_table(rp.dataset_path("census_workers"), columns=list(COLUMNS))
    for column in COLUMNS:
        everybody = np.array(census[column].to_pylist(), dtype=object)
        domain = sorted(set(everybody.tolist()))
        for records in RECORDS:
            chosen = np.random.default_rng(records).choice(everybody.size, records, replace=False)
            values = everybody[chosen].tolist()
            counts = np.array([Counter(values)[value] for value in domain])
            names = np.searchsorted(_BORDERS, counts, side="right")
            for name, matrix in matrices(domain, values):
                wrong = thirty_percent_off(matrix)
                right, off = np.zeros(len(domain), int), np.zeros(len(domain), int)
                for number in range(keys):
                    secret = hashlib.blake2b(b"pram%d" % number, digest_size=32).digest()
                    sent = rp.perturb(values, domain, matrix=matrix, key=secret)
                    truth = counts / records
                    right += holds(rp.reconstruct(sent, domain, matrix=matrix), truth)
                    off += holds(rp.reconstruct(sent, domain, matrix=wrong), truth)
                for number, label in enumerate(CLASSES):
                    some = names == number
                    cases = int(some.sum()) * keys
                    if cases:
                        hits = int(right[some].sum()), int(off[some].sum())
                        yield column, name, records, label, cases, *hits


def main() -> None:
    """Write the table and say which class is covered least."""
    found = list(rows())
    with CSV.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(HEAD)
        writer.writerows(found)
    worst = min(found, key=lambda row: row[5] / row[4])
    print("worst:", *worst, f"{worst[5] / worst[4]:.1%}")
    for label in CLASSES:
        some = [row for row in found if row[3] == label]
        cases = sum(row[4] for row in some)
        shares = [sum(row[i] for row in some) / cases for i in (5, 6)]
        least = min(row[5] / row[4] for row in some)
        print(f"{label:8} {cases:9,} {shares[0]:.1%} worst {least:.1%}; 30 % off: {shares[1]:.1%}")


if __name__ == "__main__":
    main()

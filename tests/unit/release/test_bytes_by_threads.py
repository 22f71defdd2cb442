"""The same key gives the same bytes, however many threads DuckDB and BLAS have."""

import hashlib
import os
import subprocess
import sys

import numpy as np
import pytest

from reconpriv.protect.margins.limits import _telling_rows
from reconpriv.theory.margins.row_spectrum import same_everywhere

# Education has 143 margin rows: more than one thread inverts at once.
PUBLISH = """
import sys
import reconpriv as rp

plain = rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3, margins=1.0)
policies = [rp.preset("recommended"), plain]
public = ["Age", "Gender", "Marital", "Race", "Workclass", "Occupation"]
settings = {"sensitive": "Education", "public": public, "threads": int(sys.argv[2])}
with rp.read(rp.dataset_path("census_workers"), **settings) as table:
    for i, policy in enumerate(policies):
        table.publish(policy, f"{sys.argv[1]}/{i}", key=rp.Key.test())
"""


def published(folder, threads, blas):
    """The digest of every file of two releases."""
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": str(blas), "OMP_NUM_THREADS": str(blas)}
    command = [sys.executable, "-W", "ignore", "-c", PUBLISH, str(folder), str(threads)]
    subprocess.run(command, env=environment, check=True, capture_output=True)
    files = sorted(file for file in folder.rglob("*") if file.is_file())
    return {
        str(file.relative_to(folder)): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in files
    }


def test_a_release_with_margins_does_not_depend_on_threads(tmp_path):
    one = published(tmp_path / "one", threads=1, blas=1)
    assert len(one) > 6 and any("margin" in name for name in one)
    assert published(tmp_path / "two", threads=2, blas=2) == one
    assert published(tmp_path / "mixed", threads=3, blas=1) == one


@pytest.mark.parametrize("seed", range(5))
def test_rows_that_tell_as_much_are_chosen_alike_whatever_the_last_digits(seed):
    rows = np.array([[0, 2], [1, 2], [0, 3]])
    precision = np.full((4, 4), -0.1) + np.eye(4)
    noise = 1.0 + 1e-13 * np.random.default_rng(seed).normal(size=precision.shape)
    assert _telling_rows(rows, precision * noise).tolist() == [0, 1, 0]
    # More than rounding decides as it should.
    precision[2, 2] *= 1.1
    assert _telling_rows(rows, precision * noise).tolist() == [2, 2, 0]


def test_the_last_digits_of_a_whole_number_are_dropped():
    numbers = np.array([3.0, 3.0 - 1e-12, 3.0 + 1e-12, 0.0, 1e6 - 1e-6, 0.1])
    assert same_everywhere(numbers).tolist()[:5] == [3.0, 3.0, 3.0, 0.0, 1e6]
    assert same_everywhere(numbers)[5] == pytest.approx(0.1, rel=1e-9)

"""The peer benchmark: our side and the baselines do the job, and verdicts are measured.

The peers themselves are not installed here.
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from repository import ROOT

BENCHMARKS = ROOT / "benchmarks"
ROWS, M, P = 20_000, 14, 0.5
Z_LIMIT = 5.0


@pytest.fixture
def peers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    """The benchmark, with a cache folder of its own."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    monkeypatch.syspath_prepend(str(BENCHMARKS / "peers"))
    import bench_peers

    monkeypatch.setattr(bench_peers, "CACHE", tmp_path)
    yield bench_peers
    for name in ("bench_peers", "common", "harness", "run_reconpriv", "run_numpy"):
        sys.modules.pop(name, None)


@pytest.mark.parametrize(
    ("script", "job"),
    [
        ("run_reconpriv", "text"),
        ("run_reconpriv", "codes"),
        ("run_numpy", "aes"),
        ("run_numpy", "pcg64"),
    ],
)
def test_our_side_and_the_floors_reconstruct_the_column(peers, script, job):
    import importlib

    from harness import Task

    file = peers.column_file(ROWS, M)
    work = importlib.import_module(script).JOBS[job]
    seconds, frequencies = work.run(Task(str(file), ROWS, M, P))
    assert seconds > 0
    assert peers.largest_error(frequencies, file, ROWS) < Z_LIMIT
    # The same answers, read as if p were 30 % off, are refused.
    observed = np.asarray(frequencies) * P + (1 - P) / M
    for wrong in (0.7 * P, 1.3 * P):
        mistaken = (observed - (1 - wrong) / M) / wrong
        assert peers.largest_error(mistaken, file, ROWS) > Z_LIMIT


def test_a_task_says_which_epsilon_its_retention_amounts_to():
    # p = .5, m = 2: kept or drawn .75, the other value .25.
    sys.path.insert(0, str(BENCHMARKS / "peers"))
    try:
        from harness import Task
    finally:
        sys.path.pop(0)
        sys.modules.pop("harness", None)
    task = Task("", 1, 2, 0.5)
    assert task.epsilon == pytest.approx(np.log(3))
    assert task.truthful == 0.75


def outcomes(peers, seconds):
    """Everybody takes a second, but the peers so many; all answers are exact."""
    file = peers.column_file(ROWS, M)
    exact = np.bincount(np.fromfile(file, dtype="<i4"), minlength=M) / ROWS
    return file, {
        entrant: peers.Outcome(ROWS, seconds if entrant.peer else 1.0, exact)
        for entrant in peers.COLUMN
    }


@pytest.mark.parametrize(("seconds", "met"), [(5.1, True), (4.9, False)])
def test_the_bar_is_met_or_not_by_what_was_measured(peers, seconds, met):
    file, measured = outcomes(peers, seconds)
    table = "\n".join(peers.column_table(measured, file, ROWS))
    assert f"{seconds} times faster" in table
    assert ("bar 5: met" in table) == met
    assert ("bar 5: NOT met" in table) != met


def test_one_fast_peer_decides_and_one_that_cannot_run_does_not(peers):
    file, measured = outcomes(peers, 50.0)
    fast, broken = [entrant for entrant in peers.COLUMN if entrant.peer][:2]
    measured[fast].seconds = 2.0
    measured[broken] = peers.Outcome(ROWS, 0.1, problem="no such package")
    table = "\n".join(peers.column_table(measured, file, ROWS))
    assert f"2.0 times faster than the fastest peer ({fast.name}); bar 5: NOT met" in table
    assert f"| {broken.name} | skipped: no such package |" in table


def test_a_wrong_reconstruction_and_a_scaled_time_show(peers):
    file, measured = outcomes(peers, 50.0)
    one, other = [entrant for entrant in peers.COLUMN if entrant.peer][:2]
    measured[one].result = np.roll(measured[one].result, 1)
    measured[other].rows = 1_000
    lines = peers.column_table(measured, file, ROWS)
    assert [line for line in lines if "WRONG" in line and one.name in line]
    assert [line for line in lines if "1,000, scaled" in line and f"| {other.name} |" in line]


def test_without_r_its_peer_is_left_out(peers, monkeypatch):
    monkeypatch.setenv("PATH", "")
    entrant = next(entrant for entrant in peers.COLUMN if entrant.script.endswith(".R"))
    raced = peers.race([entrant], peers.column_file(1_000, M), 1_000, M, 2)
    assert raced[entrant].problem == "no Rscript"

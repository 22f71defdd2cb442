"""Shared fixtures: the bundled tables, a key, the command line, and releases made once."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

# Before NumPy: two workers whose BLAS uses every core wait for each other, up to 30 times as long.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import typer.testing

import reconpriv as rp

try:
    from scheduling import make_scheduler as pytest_xdist_make_scheduler  # noqa: F401
    from scheduling import place
except ImportError:  # without xdist, in one process, the order does not matter

    def place(nodeid: str) -> tuple[int, str]:
        """No order."""
        return 0, nodeid


# Typer's runner would rebuild the command from all signatures on every call: 0.05 s.
typer.testing._get_command = cache(typer.testing._get_command)

CHROMIUM = "/usr/bin/chromium"
CENSUS = ["Age", "Gender", "Education", "Marital", "Race", "Workclass", "Occupation"]


def pytest_configure() -> None:
    """In the background or under nohup, commands would inherit that signals are ignored."""
    usual = {signal.SIGHUP: signal.SIG_DFL, signal.SIGINT: signal.default_int_handler}
    for number, handler in usual.items():
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the slow files first; keep the order within each file."""
    items.sort(key=lambda item: place(item.nodeid)[0])


def pytest_collection_finish() -> None:
    """Spare the garbage collector what was imported: looking through it took 8 % of the time."""
    gc.collect()
    gc.freeze()


def pytest_unconfigure() -> None:
    """Libraries complain at the end about what is never collected."""
    gc.unfreeze()


@dataclass(frozen=True)
class Outcome:
    """What a command did."""

    code: int
    out: str
    err: str


@pytest.fixture(scope="session")
def key() -> rp.Key:
    """A key that is not the test key, with bytes that are easy to search for."""
    return rp.Key(bytes((37 * i + 11) % 256 for i in range(32)))


@pytest.fixture(scope="session")
def policy() -> rp.Policy:
    """The paper's default."""
    return rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3)


@pytest.fixture(scope="session")
def census() -> pa.Table:
    """The seven attributes of the paper."""
    return pq.read_table(rp.dataset_path("census_workers"), columns=CENSUS)


@pytest.fixture(scope="session")
def census_tables() -> Iterator[Callable[[str], rp.Table]]:
    """The census table with one attribute sensitive and the other six public, opened once."""

    @cache
    def opened(sensitive: str) -> rp.Table:
        public = [name for name in CENSUS if name != sensitive]
        table = rp.read(rp.dataset_path("census_workers"), sensitive=sensitive, public=public)
        tables.append(table)
        return table

    tables: list[rp.Table] = []
    yield opened
    for table in tables:
        table.close()


@pytest.fixture(scope="session")
def census_release(
    census_tables: Callable[[str], rp.Table], key: rp.Key, tmp_path_factory: pytest.TempPathFactory
) -> Callable[..., rp.Release]:
    """A release of the census table, made once for each choice."""
    folder = tmp_path_factory.mktemp("releases")

    @cache
    def made(sensitive: str, sampling: str, file_format: str) -> rp.Release:
        policy = rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3, sampling=sampling)
        return census_tables(sensitive).publish(
            policy, folder / f"{sensitive}-{sampling}-{file_format}", key=key,
            file_format=file_format,
        )  # fmt: skip

    def released(
        sensitive: str, sampling: str = "octave", file_format: str = "parquet"
    ) -> rp.Release:
        return made(sensitive, sampling, file_format)

    return released


@pytest.fixture(scope="session")
def small(census: pa.Table) -> pa.Table:
    """4,000 census records of four columns: large skewed groups, quick to publish."""
    rows = np.random.default_rng(20).choice(census.num_rows, 4_000, replace=False)
    return census.select(["Gender", "Race", "Workclass", "Education"]).take(pa.array(rows))


@pytest.fixture(scope="session")
def adult() -> Iterator[rp.Table]:
    """Occupations by age, sex and race: 48,842 records in a thousand groups."""
    public = ["age", "sex", "race"]
    with rp.read("example:adult", sensitive="occupation", public=public, missing="value") as table:
        yield table


@pytest.fixture(scope="session")
def tiny() -> pa.Table:
    """Two groups of 200 records, each with its largest frequency at 0.5."""
    return pa.table({"g": ["a", "b"] * 200, "s": ["x", "x", "y", "z"] * 100})


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """One local Spark session for all tests on a worker (see scheduling.py)."""
    from spark_fixtures import start_session

    session = start_session(tmp_path_factory.mktemp("spark"))
    yield session
    session.stop()


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """One browser for all tests on a worker; without one, CI fails and a laptop skips."""
    from playwright.sync_api import sync_playwright

    if not Path(CHROMIUM).exists():
        reason = f"{CHROMIUM} is missing (apt-get install chromium)"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    with sync_playwright() as playwright:
        # As root it must run without its sandbox.
        running = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield running
        running.close()


@pytest.fixture
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A private temporary folder, so a test can check that nothing is left in it."""
    folder = tmp_path / "scratch"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


@pytest.fixture(scope="session")
def cli() -> Callable[..., Outcome]:
    """Run a command in this process, as the console script would."""
    from typer.testing import CliRunner

    from reconpriv.cli.app import app

    def run(*args: object, stdin: str | bytes | None = None) -> Outcome:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", rp.ReconprivWarning)
            result = CliRunner().invoke(app, [str(arg) for arg in args], input=stdin)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return Outcome(result.exit_code, result.stdout, result.stderr)

    return run


@pytest.fixture(scope="session")
def process() -> Callable[..., Outcome]:
    """Run a command in a separate process."""

    def run(
        *args: object,
        stdin: bytes | None = None,
        cwd: Path | None = None,
        env: dict[str, str] | None = None,
    ) -> Outcome:
        done = subprocess.run(
            [sys.executable, "-m", "reconpriv", *map(str, args)],
            input=stdin if stdin is not None else b"",
            capture_output=True,
            check=False,
            cwd=cwd,
            env={**os.environ, **(env or {})},
            timeout=60,
        )
        return Outcome(done.returncode, done.stdout.decode(), done.stderr.decode())

    return run


@pytest.fixture(scope="session")
def files_of() -> Callable[[Path], dict[str, bytes]]:
    """Every file in a folder with its bytes."""

    def contents(folder: Path) -> dict[str, bytes]:
        return {
            str(file.relative_to(folder)): file.read_bytes()
            for file in sorted(Path(folder).rglob("*"))
            if file.is_file()
        }

    return contents


@pytest.fixture(scope="session")
def count_rows() -> Callable[[pa.Table], Counter]:
    """The rows of a table as a multiset, whatever their order."""

    def counted(table: pa.Table) -> Counter:
        return Counter(zip(*(column.to_pylist() for column in table.columns), strict=True))

    return counted

"""A standalone master with two workers: the same bytes, even if one of them is lost."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest

import reconpriv as rp
import spark_processes
from spark_fixtures import (
    LOOPBACK,
    PANDAS,
    Choice,
    hashes,
    limit_rows_per_file,
    publish,
    require_spark,
    wait_for,
    write,
)
from spark_processes import (
    Cluster,
    Worker,
    defaults,
    descendants,
    driver,
    environment,
    event_log,
    run,
)

pytestmark = [pytest.mark.filterwarnings(PANDAS)]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    require_spark()
    with spark_processes.cluster(tmp_path_factory.mktemp("cluster")) as made:
        yield made


@pytest.fixture
def file(small: pa.Table, tmp_path: Path) -> Path:
    return write(small, tmp_path / "t.parquet")


def test_the_command_on_a_cluster_writes_the_same_bytes(
    cluster: Cluster, file: Path, tmp_path: Path, key: rp.Key, scratch: Path
) -> None:
    key.write(tmp_path / "key")
    env = environment(**LOOPBACK, **defaults(tmp_path / "conf"), TMPDIR=str(scratch))
    done = run(
        sys.executable,
        "-m",
        "reconpriv",
        "publish",
        file,
        tmp_path / "spark",
        "-s",
        "Education",
        "--public=all",
        "--preset",
        "paper",
        "--key",
        tmp_path / "key",
        "--engine",
        "spark",
        "--master",
        cluster.master,
        "--memory",
        "512MB",
        env=env,
    )
    assert (done.code, done.err) == (0, "")
    assert hashes(tmp_path / "spark") == publish(
        file, tmp_path / "duckdb", Choice(key), sensitive="Education", public="all"
    )
    assert cluster.alive() == 2


def test_neither_a_second_attempt_nor_a_lost_worker_changes_a_byte(
    cluster: Cluster, file: Path, tmp_path: Path, key: rp.Key, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("events", "stragglers", "gate"):
        (tmp_path / name).mkdir()
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(
            driver, "publish_twice_on_a_cluster", cluster.master, file, tmp_path, key.secret.hex(),
            env=environment(**LOOPBACK),
        )  # fmt: skip
        try:
            lost = kill_a_worker_in_the_middle(cluster, tmp_path / "gate", running.done)
        finally:
            (tmp_path / "gate" / "go").touch()
        done = running.result()
    assert done.code == 0, done.err
    limit_rows_per_file(monkeypatch, 700)
    by_duckdb = publish(file, tmp_path / "duckdb", Choice(key), sensitive="Education", public="all")
    assert sum(name.startswith("data-") for name in by_duckdb) == 6

    assert hashes(tmp_path / "speculative") == by_duckdb
    second = {path.name for path in (tmp_path / "stragglers").iterdir() if path.name.endswith("-1")}
    assert {"PublishGroups-1", "WriteFiles-data-1"} <= second

    assert hashes(tmp_path / "interrupted") == by_duckdb
    check_that_it_was_lost(event_log(tmp_path / "events"), lost)
    wait_for(lambda: cluster.alive() == 1, 240, "the master to notice")


def kill_a_worker_in_the_middle(cluster: Cluster, gate: Path, ended) -> int:
    """Kill the worker that has more to lose, once both are at work; how many files it had.

    Which of the two wrote the shuffled groups is Spark's choice.
    """

    def both_at_work() -> bool:
        assert not ended(), "it ended before a worker could be killed"
        begun = {int(path.name.split("-")[1]) for path in gate.glob("begun-*")}
        return all(begun & set(descendants(one.process.pid)) for one in cluster.workers)

    def shuffled(worker: Worker) -> int:
        return len(list(worker.folder.rglob("shuffle_*.data")))

    wait_for(both_at_work, 600, "both workers to be at work")
    victim = max(cluster.workers, key=shuffled)
    lost = shuffled(victim)
    victim.kill()
    return lost


def check_that_it_was_lost(events: list[dict], shuffled: int) -> None:
    """Else the test would show nothing: files and running tasks went with the worker.

    Whether another task then misses those files (FetchFailed) or had them already is chance.
    """
    assert shuffled > 0
    names = [event["Event"] for event in events]
    assert names.count("SparkListenerExecutorAdded") >= 2
    assert "SparkListenerExecutorRemoved" in names
    reasons = {
        event["Task End Reason"]["Reason"]
        for event in events
        if event["Event"] == "SparkListenerTaskEnd"
    }
    assert "ExecutorLostFailure" in reasons
    speculative = [
        event["Task Info"]["Speculative"]
        for event in events
        if event["Event"] == "SparkListenerTaskStart"
    ]
    assert any(speculative)

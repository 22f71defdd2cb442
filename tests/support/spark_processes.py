"""Spark in separate processes: commands, a Connect server, a cluster of two workers.

Run as a program, this file is the driver of such a cluster or the client of such a server.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import urllib.request
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import reconpriv as rp
from spark_fixtures import LOOPBACK, QUICK_JAVA, Choice, publish, ship_these_tasks, wait_for

SECONDS = 900


@dataclass(frozen=True)
class Done:
    """What a process did."""

    code: int
    out: str
    err: str


def spark_home() -> Path:
    import pyspark

    return Path(pyspark.__file__).parent


def environment(**more: str) -> dict[str, str]:
    """This process's environment without the variables set by its own Spark session."""
    inherited = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("SPARK_", "PYSPARK_", "PYTEST_"))
    }
    quick = {"SPARK_SUBMIT_OPTS": QUICK_JAVA, "SPARK_DAEMON_JAVA_OPTS": QUICK_JAVA}
    return {**inherited, **quick, **more}


def defaults(folder: Path) -> dict[str, str]:
    """A spark-defaults.conf for commands, which set few options themselves: small and quick."""
    folder.mkdir()
    (folder / "spark-defaults.conf").write_text(
        "spark.sql.shuffle.partitions 4\n"
        "spark.sql.adaptive.coalescePartitions.enabled false\n"
        f"spark.sql.warehouse.dir {folder}/warehouse\n"
        f"spark.executor.extraJavaOptions {QUICK_JAVA}\n"
    )
    return {"SPARK_CONF_DIR": str(folder)}


def run(*command: object, cwd: Path | None = None, env: dict[str, str]) -> Done:
    done = subprocess.run(
        [str(part) for part in command],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        cwd=cwd,
        env=env,
        timeout=SECONDS,
    )
    return Done(done.returncode, done.stdout.decode(), done.stderr.decode())


def driver(task: str, *args: object, env: dict[str, str]) -> Done:
    """Run one of the functions below in a separate process."""
    return run(sys.executable, "-W", "ignore::FutureWarning", __file__, task, *args, env=env)


# --- processes -----------------------------------------------------------------------------------


def descendants(pid: int) -> list[int]:
    """The descendants of a process, from the top."""
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                stat = (entry / "stat").read_text()
            except OSError:
                continue
            parent = int(stat.rsplit(")", 1)[1].split()[1])
            parents.setdefault(parent, []).append(int(entry.name))
    found = list(parents.get(pid, []))
    for child in found:
        found.extend(parents.get(child, []))
    return found


def is_running(pid: int) -> bool:
    """Whether a process exists and is not a zombie."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rsplit(")", 1)[1].split()[0] not in "ZX"


def processes_with(text: str) -> list[int]:
    """Processes whose environment contains a text, such as the name of a test's own folder."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                if text.encode() in (entry / "environ").read_bytes():
                    found.append(int(entry.name))
            except OSError:
                continue
    return found


def end(process: subprocess.Popen) -> None:
    """Kill a process that we started, and everything it started."""
    if process.poll() is not None:  # its number may have been reused by now
        return
    for pid in [process.pid, *descendants(process.pid)]:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    process.wait()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@contextmanager
def java(log: Path, *args: str, env: dict[str, str]) -> Iterator[subprocess.Popen]:
    """One of Spark's Java programs, for the duration of a with statement."""
    with log.open("wb") as stream:
        process = subprocess.Popen(
            [str(spark_home() / "bin" / "spark-class"), *args],
            stdin=subprocess.DEVNULL, stdout=stream, stderr=subprocess.STDOUT, cwd=log.parent,
            env=env,
        )  # fmt: skip
    try:
        yield process
    finally:
        end(process)


@contextmanager
def connect_server(folder: Path) -> Iterator[str]:
    """A Spark Connect server; yields its URL."""
    port = free_port()
    command = [
        "org.apache.spark.deploy.SparkSubmit",
        "--class", "org.apache.spark.sql.connect.service.SparkConnectServer",
        "--master", "local[2]", "--driver-memory", "1g",
    ]  # fmt: skip
    for setting in (
        f"spark.connect.grpc.binding.port={port}",
        "spark.connect.grpc.binding.address=127.0.0.1",
        "spark.ui.enabled=false",
        "spark.sql.shuffle.partitions=3",
        f"spark.local.dir={folder}",
        f"spark.sql.warehouse.dir={folder}/warehouse",
    ):
        command += ["--conf", setting]
    log = folder / "connect.log"
    with java(log, *command, "spark-internal", env=environment(**LOOPBACK)) as server:
        wait_for(lambda: answers(port) or server.poll() is not None, 240, "the Connect server")
        assert server.poll() is None, log.read_text()[-2_000:]
        yield f"sc://127.0.0.1:{port}"


# --- a cluster -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Worker:
    """A worker of the cluster, with the folder of its executors' files."""

    process: subprocess.Popen
    folder: Path

    def kill(self) -> None:
        """Kill its processes and remove its shuffle files, as if its machine were gone."""
        end(self.process)
        shutil.rmtree(self.folder)


@dataclass(frozen=True)
class Cluster:
    """A standalone master with two single-core workers on loopback."""

    master: str
    page: str
    workers: tuple[Worker, Worker]

    def alive(self) -> int:
        """How many workers the master believes to be alive."""
        direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with direct.open(f"{self.page}/json/", timeout=10) as answer:
                status = json.load(answer)
        except (OSError, ValueError):  # it is still starting
            return 0
        return sum(worker["state"] == "ALIVE" for worker in status["workers"])


@contextmanager
def cluster(folder: Path) -> Iterator[Cluster]:
    port, page = free_port(), free_port()
    url = f"spark://127.0.0.1:{port}"
    common = {**LOOPBACK, "SPARK_DAEMON_MEMORY": "256m"}
    master = ("org.apache.spark.deploy.master.Master", "--host", "127.0.0.1", "--port", str(port),
              "--webui-port", str(page))  # fmt: skip
    with java(folder / "master.log", *master, env=environment(**common)):
        wait_for(lambda: answers(port), 240, "the master")
        # Two hosts: Spark runs a second attempt only on a different host.
        hosts = ("127.0.0.1", "127.0.0.2")
        with (
            worker(folder, url, common, hosts[0]) as one,
            worker(folder, url, common, hosts[1]) as two,
        ):
            made = Cluster(url, f"http://127.0.0.1:{page}", (one, two))
            wait_for(lambda: made.alive() == 2, 240, "two workers")
            yield made


@contextmanager
def worker(folder: Path, url: str, common: dict[str, str], host: str) -> Iterator[Worker]:
    work = folder / host
    work.mkdir()
    command = ("org.apache.spark.deploy.worker.Worker", "--host", host, "--cores", "1",
               "--memory", "1g", "--webui-port", "0", "--work-dir", str(work), url)  # fmt: skip
    own = {"SPARK_LOCAL_IP": host, "SPARK_LOCAL_DIRS": str(work / "local")}
    with java(folder / f"{host}.log", *command, env=environment(**{**common, **own})) as process:
        yield Worker(process, work)


def cluster_session(master: str, events: str) -> Any:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(master).appName("tests of reconpriv")
    for name, value in {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.executor.memory": "512m",
        "spark.executor.extraJavaOptions": QUICK_JAVA,
        "spark.scheduler.minRegisteredResourcesRatio": "1.0",
        "spark.scheduler.maxRegisteredResourcesWaitingTime": "60s",
        "spark.sql.shuffle.partitions": "4",
        "spark.sql.adaptive.coalescePartitions.enabled": "false",
        # A lost worker's files must be lost, although they are on this machine.
        "spark.shuffle.readHostLocalDisk": "false",
        "spark.shuffle.io.maxRetries": "1",
        "spark.shuffle.io.retryWait": "500ms",
        # Every stage uses both workers, so each of them has something to lose.
        "spark.locality.wait": "0s",
        "spark.shuffle.reduceLocality.enabled": "false",
        "spark.sql.files.maxPartitionBytes": "4096",
        "spark.speculation": "true",
        "spark.speculation.quantile": "0.1",
        "spark.speculation.multiplier": "1.1",
        "spark.speculation.task.duration.threshold": "1s",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.compress": "false",
        "spark.eventLog.dir": f"file://{events}",
    }.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def event_log(folder: Path) -> list[dict[str, Any]]:
    """What happened in the applications that wrote their events there."""
    files = [file for file in folder.rglob("*") if file.is_file() and "app" in file.name]
    lines = [line for file in files for line in file.read_text().splitlines()]
    return [json.loads(line) for line in lines if line.startswith("{")]


# --- what drivers and clients do -----------------------------------------------------------------


def publish_twice_on_a_cluster(master: str, file: str, out: str, key: str) -> None:
    """Publish once with stragglers that are run twice, and once with a worker that is lost."""
    from reconpriv.engines.base import Layout
    from reconpriv.engines.spark import output as spark_output
    from reconpriv.release import publication
    from spark_fixtures import Gate, Straggler

    ship_these_tasks()
    folder, choice = Path(out), Choice(rp.Key.from_hex(key))
    spark = cluster_session(master, str(folder / "events"))
    spark.sparkContext.setLogLevel("OFF")
    frame = spark.read.parquet(file)
    plain_layout, kernel, plain = Layout.of, publication.Kernel, spark_output.map_in_arrow

    def in_small_files(release_format: str, *, with_trials: bool) -> Layout:
        return replace(plain_layout(release_format, with_trials=with_trials), rows_per_file=700)

    Layout.of = staticmethod(in_small_files)  # type: ignore[assignment, method-assign]
    stragglers = str(folder / "stragglers")
    spark_output.map_in_arrow = lambda frame, task, ddl: plain(
        frame, Straggler(task, stragglers), ddl
    )
    publish(frame, folder / "speculative", choice, sensitive="Education", public="all")
    spark_output.map_in_arrow = plain
    publication.Kernel = lambda *parts: Gate(kernel(*parts), str(folder / "gate"))
    publish(frame, folder / "interrupted", choice, sensitive="Education", public="all")
    spark.stop()


def publish_over_connect(url: str, file: str, out: str, key: str) -> None:
    """Publish from a data frame and from a path, in one session, which stays as it is."""
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.remote(url).getOrCreate()
    before = dict(spark.conf.getAll)
    frame = spark.read.parquet(file)
    choice, folder = Choice(rp.Key.from_hex(key)), Path(out)
    publish(frame, folder / "frame", choice, sensitive="Education", public="all")
    publish(
        file,
        folder / "path",
        replace(choice, file_format="csv"),
        sensitive="Education",
        public="all",
        engine="spark",
    )
    with rp.read(frame, sensitive="Education", public="all") as table:
        report = table.audit(rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3)).as_dict()
        groups = sum(batch.groups for batch in table.batches())
        same = table.engine.session.spark is spark
    try:
        with rp.read(frame, sensitive="Education", public="all") as table:
            table.publish(choice.policy, f"file://{out}/uri", key=choice.key)
        refused = ""
    except rp.ReconprivError as error:
        refused = str(error)
    facts = {
        "report": report, "groups": groups, "same": same, "refused": refused,
        "unchanged": dict(spark.conf.getAll) == before, "alive": spark.range(3).count(),
    }  # fmt: skip
    print(json.dumps(facts))
    spark.stop()


if __name__ == "__main__":
    warnings.simplefilter("ignore", FutureWarning)
    globals()[sys.argv[1]](*sys.argv[2:])

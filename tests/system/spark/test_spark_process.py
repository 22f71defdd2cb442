"""The command with its own Spark session: what it writes, says, refuses and leaves behind."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import reconpriv as rp
from spark_fixtures import PANDAS, Choice, hashes, publish, require_spark, wait_for, write
from spark_processes import (
    SECONDS,
    defaults,
    descendants,
    end,
    environment,
    is_running,
    processes_with,
    run,
    spark_home,
)

pytestmark = [pytest.mark.filterwarnings(PANDAS)]

RECONPRIV = Path(sys.executable).with_name("reconpriv")


@pytest.fixture(autouse=True)
def needed() -> None:
    require_spark()


@pytest.fixture
def desk(tmp_path: Path) -> Path:
    """An empty folder to work in, which must not fill with Spark's own files."""
    folder = tmp_path / "desk"
    folder.mkdir()
    return folder


def check_nothing_is_left(scratch: Path) -> None:
    """Neither a process nor a temporary file of it."""
    wait_for(lambda: not processes_with(str(scratch)), 240, "all processes to end")
    assert list(scratch.iterdir()) == []


def test_the_command_publishes_the_same_bytes(
    small: pa.Table, tmp_path: Path, desk: Path, scratch: Path, key: rp.Key
) -> None:
    file = write(small, tmp_path / "t.parquet")
    key.write(tmp_path / "key")
    done = run(
        RECONPRIV,
        "publish",
        file,
        "release",
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
        "local[2]",
        "--memory",
        "1GB",
        "--json",
        cwd=desk,
        env=environment(**defaults(tmp_path / "conf"), TMPDIR=str(scratch)),
    )
    assert (done.code, done.err) == (0, "")
    by_duckdb = publish(file, tmp_path / "duckdb", Choice(key), sensitive="Education", public="all")
    assert hashes(desk / "release") == by_duckdb
    assert json.loads(done.out)["records"] == 4_000
    assert [path.name for path in desk.iterdir()] == ["release"]
    check_nothing_is_left(scratch)


def test_a_submitted_command_audits_as_duckdb_does(
    small: pa.Table, tmp_path: Path, desk: Path, scratch: Path, cli: Callable
) -> None:
    file = write(small, tmp_path / "t.parquet")
    program = tmp_path / "main.py"
    program.write_text("from reconpriv.cli import main\n\nmain()\n")
    done = run(
        spark_home() / "bin" / "spark-submit",
        "--master",
        "local[2]",
        "--conf",
        "spark.ui.enabled=false",
        "--conf",
        f"spark.local.dir={scratch}",
        program,
        "audit",
        file,
        "-s",
        "Education",
        "--public=all",
        "--json",
        "--engine",
        "spark",
        "--groups",
        "g.csv",
        cwd=desk,
        env=environment(
            **defaults(tmp_path / "conf"), TMPDIR=str(scratch), PYSPARK_PYTHON=sys.executable
        ),
    )
    by_duckdb = cli(
        "audit", file, "-s", "Education", "--public=all", "--json", "--groups", tmp_path / "g.csv"
    )
    assert done.code == by_duckdb.code == 1, done.err
    assert json.loads(done.out) == json.loads(by_duckdb.out)
    assert (desk / "g.csv").read_bytes() == (tmp_path / "g.csv").read_bytes()
    assert "Traceback" not in done.err
    check_nothing_is_left(scratch)


# --- refused -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--engine", "flink"), "There is no engine called 'flink'. Choose one of: duckdb, spark."),
        (("--engine", "duckdb", "--master", "local"), "A master needs the Spark engine."),
        (("--engine", "spark", "--memory", "lots"), "'lots' is not a"),
        (("--engine", "spark", "--memory", "1GB; rm"), "'1GB; rm' is not a"),
        (("--engine", "spark", "--threads", "0"), "must be 1 to 1,024; got 0."),
        (("--master", "local[2]", "--threads", "2"), "Give either a number of threads or"),
        (("--master", "sc://here", "--memory", "1GB"), "Connect server has its own memory"),
        (("--master", "sc://here", "--threads", "1"), "Connect server has its own memory"),
    ],
)
def test_options_that_do_not_go_together_are_refused_before_java_starts(
    tmp_path: Path, scratch: Path, cli: Callable, monkeypatch: pytest.MonkeyPatch,
    options: tuple[str, ...], sentence: str,
) -> None:  # fmt: skip
    # Another test of this process may have started a session, which would be used.
    monkeypatch.setattr("reconpriv.engines.spark.session._running_session", lambda _: None)
    monkeypatch.setattr("pyspark.java_gateway.launch_gateway", None)
    file = tmp_path / "t.csv"
    file.write_text("a,s\n1,x\n2,y\n")
    outcome = cli(
        "publish", file, tmp_path / "out", "-s", "s", "--public=all", "--test-key", *options
    )
    assert outcome.code == 2 and outcome.out == ""
    assert outcome.err.startswith("error: ") and outcome.err.count("\n") == 1
    assert sentence in outcome.err
    assert not (tmp_path / "out").exists() and list(scratch.iterdir()) == []


def test_what_spark_submit_settles_is_not_settled_again(
    tmp_path: Path, cli: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reconpriv.engines.spark.session._running_session", lambda _: None)
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")
    outcome = cli(
        "audit",
        tmp_path / "t.parquet",
        "-s",
        "s",
        "--public=all",
        "--engine",
        "spark",
        "--threads",
        2,
    )
    assert outcome.code == 2 and "spark-submit sets memory and threads" in outcome.err


def test_without_pyspark_the_command_says_what_to_install(
    tmp_path: Path, cli: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyspark.sql", None)
    outcome = cli("audit", tmp_path / "t.parquet", "-s", "s", "--public=all", "--engine", "spark")
    assert outcome.code == 2 and "-m pip install '" in outcome.err and "'pyspark>=" in outcome.err


def test_without_java_the_command_says_what_it_needs(
    tmp_path: Path, desk: Path, scratch: Path
) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("bash", "sh", "dirname", "basename", "env", "cat", "tr", "id", "ls", "uname"):
        (tools / name).symlink_to(str(shutil.which(name)))
    (tmp_path / "secret.csv").write_text("a,s\nhidden,x\n2,y\n")
    env = environment(TMPDIR=str(scratch), PATH=str(tools))
    env.pop("JAVA_HOME", None)
    done = run(
        RECONPRIV,
        "publish",
        tmp_path / "secret.csv",
        desk / "out",
        "-s",
        "s",
        "--public=all",
        "--test-key",
        "--engine",
        "spark",
        cwd=desk,
        env=env,
    )
    assert done.code == 2 and done.out == ""
    assert done.err.startswith("error: ") and done.err.count("\n") == 1
    assert "Java 17 or newer" in done.err
    assert "secret" not in done.err and "hidden" not in done.err
    assert list(desk.iterdir()) == []
    check_nothing_is_left(scratch)


@pytest.mark.parametrize(("ci", "outcome"), [("true", pytest.fail), ("", pytest.skip)])
def test_without_java_these_tests_are_skipped_but_fail_in_ci(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ci: str, outcome: Any
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("CI", ci)
    with pytest.raises(outcome.Exception, match="Java not found"):
        require_spark()


def test_a_master_that_is_none_is_refused_in_one_sentence(
    tmp_path: Path, desk: Path, scratch: Path
) -> None:
    (tmp_path / "secret.csv").write_text("a,s\nhidden,x\n2,y\n")
    done = run(
        RECONPRIV,
        "audit",
        tmp_path / "secret.csv",
        "-s",
        "s",
        "--public=all",
        "--engine",
        "spark",
        "--master",
        "nonsense",
        cwd=desk,
        env=environment(TMPDIR=str(scratch)),
    )
    assert done.code == 2 and done.out == ""
    assert done.err.startswith("error: No Spark session could be started")
    assert done.err.count("\n") == 1 and "secret" not in done.err
    assert list(desk.iterdir()) == []
    check_nothing_is_left(scratch)


# --- interrupted ---------------------------------------------------------------------------------


def test_ctrl_c_in_the_middle_leaves_nothing_behind(
    tmp_path: Path, desk: Path, scratch: Path
) -> None:
    large = tmp_path / "large.parquet"
    duckdb.sql(
        "SELECT (i * 7919 % 97)::INT a, (hash(i) % 50)::INT b, (hash(i + 1) % 400)::INT c,"
        " chr(65 + (hash(i + 3) % 10)::INT) s FROM range(300_000) r(i)"
    ).write_parquet(str(large))
    running = subprocess.Popen(
        [
            RECONPRIV,
            "publish",
            large,
            "out",
            "-s",
            "s",
            "--public=all",
            "--test-key",
            "--master",
            "local[2]",
        ],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=desk,
        env=environment(TMPDIR=str(scratch)),
    )

    def at_work() -> bool:
        assert running.poll() is None, "it ended before it could be interrupted"
        # Each task that has begun to write has a folder; the first ones are far from their end.
        return any(desk.rglob("published/_temporary/*/_temporary/attempt_*"))

    try:
        wait_for(at_work, 240, "it to write")
        children = descendants(running.pid)
        assert any("java" in os.readlink(f"/proc/{pid}/exe") for pid in children)
        running.send_signal(signal.SIGINT)
        out, err = running.communicate(timeout=SECONDS)
    finally:
        end(running)
    assert running.returncode == 130, err
    assert (out, err) == ("", "interrupted: nothing unfinished was left behind.\n")
    check_nothing_is_left(scratch)
    assert list(desk.iterdir()) == []
    assert not any(map(is_running, children))

"""A full disk, a file that cannot grow, a pipe without a reader: one sentence, nothing left."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import reconpriv as rp
from refusals import check_sentence
from small_disks import small_disk_at

LIMITED = """
import resource, runpy, signal, sys
limit = int(sys.argv.pop(1))
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
sys.dont_write_bytecode = True
runpy.run_module("reconpriv", run_name="__main__")
"""


def run_limited(limit, *args, scratch):
    return subprocess.run(
        [sys.executable, "-c", LIMITED, str(limit), *map(str, args)],
        capture_output=True, text=True, check=False, timeout=60, stdin=subprocess.DEVNULL,
        env={**os.environ, "TMPDIR": str(scratch)},
    )  # fmt: skip


CENSUS = ("example:census_workers",)


CENSUS_ROLES = ("-s", "Education", "--public", "Age,Gender,Race,Workclass")


@pytest.mark.parametrize(("limit", "file_format"), [(100, "parquet"), (20_000, "parquet"),
                                                    (200_000, "csv")])  # fmt: skip
def test_a_file_that_cannot_grow_leaves_nothing(limit, file_format, tmp_path, scratch):
    done = run_limited(
        limit, "publish", *CENSUS, tmp_path / "out", *CENSUS_ROLES, "--test-key",
        "--format", file_format, scratch=scratch,
    )  # fmt: skip
    assert done.returncode == 2, done.stderr
    check_sentence(done.stderr)
    assert "File too large" in done.stderr
    assert list(tmp_path.rglob("*")) == [scratch]


def test_a_groups_file_that_cannot_grow_leaves_nothing(tmp_path, scratch):
    (tmp_path / "desk").mkdir()
    done = run_limited(
        5_000, "audit", *CENSUS, *CENSUS_ROLES, "--groups", tmp_path / "desk" / "g.parquet",
        "--no-columns", scratch=scratch,
    )  # fmt: skip
    assert done.returncode == 2, done.stderr
    check_sentence(done.stderr)
    assert list((tmp_path / "desk").iterdir()) == []


def test_a_key_file_that_cannot_be_written_leaves_nothing(tmp_path, scratch):
    """Half a key would block the name and look like a key."""
    done = run_limited(10, "keygen", tmp_path / "key", scratch=scratch)
    assert done.returncode == 2, done.stderr
    check_sentence(done.stderr)
    assert not (tmp_path / "key").exists()


@pytest.fixture
def small_disk(tmp_path):
    with small_disk_at(tmp_path / "disk", "64k") as place:
        yield place


@pytest.mark.parametrize("file_format", ["parquet", "csv"])
def test_a_full_disk_leaves_nothing(small_disk, process, scratch, file_format):
    outcome = process(
        "publish", *CENSUS, small_disk / "out", *CENSUS_ROLES, "--public", "Marital",
        "--test-key", "--format", file_format,
    )  # fmt: skip
    assert outcome.code == 2, outcome.err
    check_sentence(outcome.err.splitlines(keepends=True)[-1])
    assert "No space left" in outcome.err
    assert list(small_disk.iterdir()) == []
    assert list(scratch.iterdir()) == []


def test_a_full_disk_keeps_the_old_release(small_disk, process, cli, files_of, small, tmp_path):
    pq.write_table(small, tmp_path / "good.parquet")
    good = tmp_path / "good.parquet"
    done = cli("publish", good, small_disk / "out", "-s", "Education", "--public=all", "--test-key")
    assert done.code == 0, done.err
    before = files_of(small_disk)
    outcome = process(
        "publish", *CENSUS, small_disk / "out", *CENSUS_ROLES, "--test-key", "--format", "csv",
        "--overwrite",
    )  # fmt: skip
    assert outcome.code == 2, outcome.err
    assert files_of(small_disk) == before


def test_a_full_disk_for_standard_input(small_disk, process):
    rows = b"a,s\n" + b"1,x\n2,y\n" * 20_000
    outcome = process(
        "audit", "-", "-s", "s", "--public=all", stdin=rows, env={"TMPDIR": str(small_disk)}
    )
    assert outcome.code == 2, outcome.err
    check_sentence(outcome.err)
    assert list(small_disk.iterdir()) == []


@pytest.mark.parametrize(
    "args",
    [
        ("audit", "example:adult", "-s", "sex", "--public", "race", "--preset", "paper"),
        ("audit", "example:adult", "-s", "sex", "--public", "race", "--preset=paper", "--json"),
        ("retention", "--rho1", "0.1", "--rho2", "0.5", "-m", "10"),
        ("publish", "--help"),
    ],
)
def test_a_broken_pipe_is_no_scandal(args):
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "reconpriv", *args],
            stdin=subprocess.DEVNULL, stdout=writing, stderr=subprocess.PIPE, text=True,
            check=False, timeout=60,
        )  # fmt: skip
    finally:
        os.close(writing)
    assert done.stderr == ""
    assert done.returncode not in (0, 70)


@pytest.fixture(scope="module")
def small_release(tmp_path_factory):
    folder = tmp_path_factory.mktemp("printed")
    table = folder / "table.csv"
    table.write_text("sex,disease\n" + "f,flu\nm,cold\nf,cold\nm,flu\n" * 10, encoding="utf-8")
    rp.publish(
        table, rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3), sensitive="disease",
        public="all", out=folder / "release",
        key=rp.Key(bytes(range(32))),
    )  # fmt: skip
    return folder


COMMANDS = {
    "retention": ("retention", "--rho1=0.1", "--rho2=0.5", "-m", "10"),
    "audit": ("audit", "table.csv", "-s", "disease", "--public=all"),
    "publish": (
        "publish", "table.csv", "out", "-s", "disease", "--public=all", "--test-key",
        "--overwrite",
    ),
    "info": ("info", "release"),
    "info as JSON": ("info", "release", "--json"),
    "query": ("query", "release", "SELECT count(*) FROM release"),
    "batch": ("query", "release", "--batch", "batch.csv"),
}  # fmt: skip


@pytest.mark.parametrize("name", COMMANDS)
def test_standard_output_that_is_full(name, small_release):
    (small_release / "batch.csv").write_text("disease\nflu\n", encoding="utf-8")
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "reconpriv", *COMMANDS[name]], cwd=small_release,
            stdin=subprocess.DEVNULL, stdout=full, stderr=subprocess.PIPE, text=True,
            check=False, timeout=60,
        )  # fmt: skip
    assert done.returncode == 2, done.stderr
    assert "could not be printed: No space left on device" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("name", ["retention", "publish", "info"])
def test_standard_output_that_is_closed(name, small_release):
    command = shlex.join([sys.executable, "-m", "reconpriv", *COMMANDS[name]])
    done = subprocess.run(
        ["sh", "-c", f"{command} >&-"], cwd=small_release, stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "unexpected" not in done.stderr

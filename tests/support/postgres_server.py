"""A private PostgreSQL server for tests: on loopback, with passwords, removed at the end."""

from __future__ import annotations

import glob
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

USER = "clerk_of_records"
PASSWORD = "pa55-Wörd:with/odd@signs"
DATABASE = "people"
_ESCAPED = "pa55-W%C3%B6rd%3Awith%2Fodd%40signs"


@dataclass(frozen=True)
class Server:
    """Where a running server is, and how to get in."""

    folder: Path
    port: int
    binaries: Path
    user: str = USER
    password: str = PASSWORD
    kept: dict[str, Any] = field(default_factory=dict, repr=False)  # one connection per database

    def url(self, database: str = DATABASE, *, login: str = f"{USER}:{_ESCAPED}@") -> str:
        return f"postgresql://{login}127.0.0.1:{self.port}/{database}"

    @property
    def secrets(self) -> tuple[str, ...]:
        """What no message may show."""
        return (self.user, self.password, _ESCAPED, "127.0.0.1", str(self.port))

    def connect(self, database: str = DATABASE, *, autocommit: bool = True) -> Any:
        import adbc_driver_postgresql.dbapi

        return adbc_driver_postgresql.dbapi.connect(self.url(database), autocommit=autocommit)

    def _kept(self, database: str) -> Any:
        """A cached connection: making one takes a while, and tests ask often."""
        if database not in self.kept:
            self.kept[database] = self.connect(database)
        return self.kept[database]

    def run(self, *statements: str, database: str = DATABASE) -> None:
        with self._kept(database).cursor() as cursor:
            for statement in (*statements, "RESET ALL"):
                cursor.executescript(statement)

    def ask(self, query: str, database: str = DATABASE) -> list[tuple[Any, ...]]:
        with self._kept(database).cursor() as cursor:
            cursor.execute(query)
            return cursor.fetchall()

    def close(self) -> None:
        for connection in self.kept.values():
            with suppress(Exception):
                connection.close()
        self.kept.clear()

    @property
    def postmaster(self) -> int:
        return int((self.folder / "data" / "postmaster.pid").read_text().split()[0])

    def running(self, part: str) -> list[tuple[Any, ...]]:
        """The running queries of other sessions that contain this text."""
        return self.ask(
            "SELECT pid::int8 FROM pg_stat_activity WHERE state = 'active'"
            f" AND pid <> pg_backend_pid() AND query LIKE '%{part}%'"
        )

    def wait_until_ended(self, part: str) -> None:
        """Wait until no such query is running: a server takes a moment to end one."""
        until = time.monotonic() + 20
        while self.running(part):
            assert time.monotonic() < until
            time.sleep(0.05)

    def wait_for(self, part: str, process: subprocess.Popen[bytes] | None = None) -> None:
        """Wait until such a query is running; if the process ends first, show why."""
        until = time.monotonic() + 60
        while not self.running(part):
            assert time.monotonic() < until
            if process is not None and process.poll() is not None:
                raise AssertionError(process.communicate())
            time.sleep(0.05)

    def kill(self) -> None:
        """End the postmaster and all its children at once, as a power cut would."""
        postmaster = self.postmaster
        for process in (postmaster, *_children(postmaster)):
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)


def _children(parent: int) -> list[int]:
    found = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            # The name in brackets may contain anything, so read what follows from its end.
            fields = status.read_text().rpartition(")")[2].split()
            if int(fields[1]) == parent:
                found.append(int(status.parent.name))
    return found


def require_server() -> Path:
    """The folder of the server's programs; in CI, they and the driver must be installed."""
    found = shutil.which("initdb")
    folders = sorted(glob.glob("/usr/lib/postgresql/*/bin"), key=lambda f: int(f.split("/")[4]))
    missing = [] if found or folders else ["PostgreSQL (initdb)"]
    try:
        import adbc_driver_postgresql.dbapi  # noqa: F401
    except ImportError:
        missing.append("adbc-driver-postgresql")
    if missing:
        refuse = pytest.fail if os.environ.get("CI") == "true" else pytest.skip
        refuse(f"{' and '.join(missing)} not found")
    return Path(folders[-1]) if folders else Path(str(found)).parent


def _owner() -> dict[str, Any]:
    """PostgreSQL refuses to run as root: use Debian's user postgres then, or nobody."""
    if os.getuid() != 0:
        return {}
    import pwd

    known = {entry.pw_name for entry in pwd.getpwall()}
    name = "postgres" if "postgres" in known else "nobody"
    return {"user": name, "group": pwd.getpwnam(name).pw_gid, "extra_groups": []}


@contextmanager
def running_server(**settings: str) -> Iterator[Server]:
    """Start a server in a new folder; whatever happens, end it and remove the folder."""
    binaries = require_server()
    folder = Path(tempfile.mkdtemp(prefix="pg-", dir="/tmp"))  # a socket path must be short
    owner = _owner()
    if owner:
        shutil.chown(folder, owner["user"])
    process: subprocess.Popen[bytes] | None = None
    server: Server | None = None
    try:
        _initialise(binaries, folder, owner)
        server, process = _start(binaries, folder, owner, settings)
        server.run(
            f"CREATE DATABASE {DATABASE} ENCODING 'UTF8' TEMPLATE template0", database="postgres"
        )
        yield server
    finally:
        if server is not None:
            server.close()
        if process is not None:
            process.send_signal(signal.SIGQUIT)  # an immediate shutdown
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        _forget_shared_memory(folder)
        shutil.rmtree(folder, ignore_errors=True)


def _forget_shared_memory(folder: Path) -> None:
    """Remove the small segment that a killed server leaves; its number is in the pid file."""
    with suppress(OSError, IndexError):
        segment = (folder / "data" / "postmaster.pid").read_text().splitlines()[6].split()[1]
        subprocess.run(["ipcrm", "-m", segment], capture_output=True, check=False)


def _initialise(binaries: Path, folder: Path, owner: dict[str, Any]) -> None:
    secret = folder / "password"
    secret.write_text(PASSWORD, encoding="utf-8")
    if owner:
        shutil.chown(secret, owner["user"])
    subprocess.run(
        [
            binaries / "initdb", "-D", folder / "data", "-U", USER, "--pwfile", secret, "-A",
            "scram-sha-256", "--locale=C.UTF-8", "-E", "UTF8", "--no-sync",
        ],
        check=True, capture_output=True, cwd=folder, env={"PATH": os.environ["PATH"]}, **owner,
    )  # fmt: skip
    secret.unlink()


def _start(
    binaries: Path, folder: Path, owner: dict[str, Any], settings: dict[str, str]
) -> tuple[Server, subprocess.Popen[bytes]]:
    """Start on a free port; if another process takes it first, try the next."""
    for _ in range(5):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        chosen = {
            "listen_addresses": "127.0.0.1", "port": str(port), "fsync": "off",
            "unix_socket_directories": str(folder), "max_connections": "20",
            "shared_buffers": "16MB", "temp_file_limit": "256MB",
            "dynamic_shared_memory_type": "mmap", **settings,
        }  # fmt: skip
        options = [part for name, value in chosen.items() for part in ("-c", f"{name}={value}")]
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen(
                [binaries / "postgres", "-D", folder / "data", *options],
                stdout=log, stderr=log, cwd=folder, env={"PATH": os.environ["PATH"]}, **owner,
            )  # fmt: skip
        server = Server(folder, port, binaries)
        if _is_up(server, process):
            return server, process
    log = (folder / "log").read_text(encoding="utf-8", errors="replace")
    raise RuntimeError(f"PostgreSQL did not start: {log[-2000:]}")


def _is_up(server: Server, process: subprocess.Popen[bytes]) -> bool:
    until = time.monotonic() + 60
    while process.poll() is None and time.monotonic() < until:
        ready = subprocess.run(
            [server.binaries / "pg_isready", "-h", "127.0.0.1", "-p", str(server.port)],
            capture_output=True, check=False,
        )  # fmt: skip
        if ready.returncode == 0:
            return True
        time.sleep(0.1)
    if process.poll() is None:
        process.kill()
        process.wait()
    return False

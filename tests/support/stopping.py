"""Commands in separate processes that get a signal at a chosen point, not after some time."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

# A command that works in small batches and stops itself, as Ctrl-Z would, once a file exists.
HELD = """
import glob, os, runpy, signal, sys
from reconpriv.protect.kernel import Kernel
from reconpriv.engines import record_file
from reconpriv.engines.duckdb import groups
groups.BATCH = record_file.ROWS_PER_ROW_GROUP = 5_000
plain, files = Kernel.draw, [sys.argv.pop(1)]
def held(kernel, batch):
    if files and glob.glob(files[0]):
        files.clear()
        os.kill(os.getpid(), signal.SIGSTOP)
    return plain(kernel, batch)
Kernel.draw = held
runpy.run_module("reconpriv", run_name="__main__")
"""
# A query that takes days, on one thread: with several, DuckDB may not notice a signal until a
# thread has finished its part.
ENDLESS = "SELECT i % 5 AS a, i % 3 AS s FROM range(1_000_000_000_000_000) r(i)"


def seconds_used(process: int) -> float:
    """The CPU time of a process, over all its threads."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def working(process: int, begun: Callable[[], bool]) -> Callable[[], bool]:
    """Whether a process has been computing for a while since something began."""
    since: list[float] = []

    def ready() -> bool:
        if not since and begun():
            since.append(seconds_used(process))
        return bool(since) and seconds_used(process) > since[0] + 0.3

    return ready


def wait_for(ready: Callable[[], bool], seconds: float, what: str) -> None:
    """Poll until ready; allows for a busy machine."""
    limit = time.monotonic() + seconds
    while not ready():
        assert time.monotonic() < limit, f"waited {seconds} s for {what}"
        time.sleep(0.02)


class Command:
    """`reconpriv` with these arguments and its own temporary folder."""

    def __init__(
        self, *args: object, scratch: Path, hold_at: object = None, stdin: int = subprocess.DEVNULL
    ) -> None:
        how = ["-m", "reconpriv"] if hold_at is None else ["-c", HELD, str(hold_at)]
        self.process = subprocess.Popen(
            [sys.executable, *how, *map(str, args)],
            stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env={**os.environ, "TMPDIR": str(scratch)},
        )  # fmt: skip

    def until(self, ready: Callable[[], bool]) -> Command:
        """Wait until it has got this far; it must not end before."""

        def there() -> bool:
            assert self.process.poll() is None, self.process.communicate()
            return ready()

        wait_for(there, 60, "the command")
        return self

    def until_held(self) -> Command:
        """Wait until it has stopped itself."""
        found = os.waitid(os.P_PID, self.process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
        assert found is not None and found.si_code == os.CLD_STOPPED, self.process.communicate()
        return self

    def stop(self, number: signal.Signals) -> tuple[int, str, str]:
        """Send a signal, and return the exit code and all that was printed."""
        try:
            self.process.send_signal(number)
            self.process.send_signal(signal.SIGCONT)
            if self.process.stdin is not None:
                # A command that waits for its input must end even if none comes.
                self.process.wait(60)
            out, err = self.process.communicate(timeout=60)
        finally:
            self.process.kill()
            self.process.wait()
        return self.process.returncode, out, err

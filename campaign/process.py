"""Commands that are not just run to their end: several at once, short of something, or stopped."""

from __future__ import annotations

import os
import resource
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from campaign.case import Step
from campaign.place import Place
from campaign.run import be_the_command


@dataclass(frozen=True)
class Running:
    """A command that has been started."""

    pid: int
    out: Path
    err: Path
    begun: float

    def signal_after(self, number: int, moment: float) -> bool:
        """Send a signal this many seconds after the start; False if it had ended by then."""
        handle = os.pidfd_open(self.pid)
        try:
            left = max(self.begun + moment - time.monotonic(), 0.0)
            if select.select([handle], [], [], left)[0]:
                return False
            os.kill(self.pid, number)
            return True
        finally:
            os.close(handle)

    def wait(self, seconds: float) -> int | None:
        """Its exit status, a signal as a negative number, or None if it had to be killed."""
        handle = os.pidfd_open(self.pid)
        try:
            ended = bool(select.select([handle], [], [], seconds)[0])
        finally:
            os.close(handle)
        if not ended:
            os.kill(self.pid, signal.SIGKILL)
        status = os.waitpid(self.pid, 0)[1]
        return os.waitstatus_to_exitcode(status) if ended else None


def begin(
    step: Step,
    place: Place,
    name: str = "",
    *,
    limit: Callable[[], None] | None = None,
    space: int | None = None,
) -> Running:
    """Start a command in a fork of this warm process, which saves the second of its imports.

    ``limit`` takes something away from it; ``space`` is how many bytes of address space it may add.
    """
    given, out, err = (place.root / f"{stream}{name}" for stream in ("stdin", "stdout", "stderr"))
    given.write_bytes(step.stdin)
    for file in (out, err):  # there even if the process never gets to open them
        file.write_bytes(b"")
    begun = time.monotonic()
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    pid = os.fork()
    if pid == 0:
        # Until the command has its own handlers, as before Python has any.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
    if pid == 0:
        if limit is not None:
            limit()
        more = {} if space is None else {"memory": _address_space() + space}
        be_the_command(step, place, given, out, err, **more)
    return Running(pid, out, err, begun)


def _address_space() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    return pages * resource.getpagesize()


def begin_cold(step: Step, place: Place) -> Running:
    """Start a command as a user would; its interpreter ends as it does for a user, too."""
    out, err = place.root / "stdout", place.root / "stderr"
    with out.open("wb") as stdout, err.open("wb") as stderr:
        begun = time.monotonic()
        process = subprocess.Popen(
            [sys.executable, "-m", "reconpriv", *step.args],
            stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr, cwd=place.desk,
            env={**os.environ, "TMPDIR": str(place.scratch)},
        )  # fmt: skip
    return Running(process.pid, out, err, begun)

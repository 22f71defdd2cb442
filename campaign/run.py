"""Running cases: warm workers that fork a process for every command, so starting one costs little.

A worker never opens a table itself. Making the input, running a command and judging it happen in
forked processes; a signal that ends one of them is its status.
"""

from __future__ import annotations

import atexit
import json
import os
import pickle
import resource
import select
import shutil
import signal
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

from campaign.case import Case, Fault, Generator, Outcome, Step
from campaign.judge import ANSWER, compared, judged
from campaign.place import Place

_MEMORY = 12 << 30  # a command that asks for more is wrong, and must not take the machine with it


@dataclass(frozen=True)
class Result:
    """A case in short."""

    generator: str
    number: int
    what: str
    codes: list[int | None]
    faults: list[Fault]
    compared: bool
    seconds: float


def warm_up() -> None:
    """Import what commands use, once; nothing is opened, so no thread is started."""
    import duckdb  # noqa: F401, PLC0415
    import scipy.special  # noqa: PLC0415
    import scipy.stats  # noqa: F401, PLC0415
    import sqlglot.dialects.duckdb  # noqa: F401, PLC0415
    import typer.main  # noqa: PLC0415
    from typer.testing import CliRunner  # noqa: PLC0415

    import reconpriv.reports.internal  # noqa: PLC0415
    import reconpriv.show.results.answers  # noqa: PLC0415
    import reconpriv.show.results.audit  # noqa: PLC0415
    import reconpriv.show.results.release  # noqa: PLC0415
    import reconpriv.show.text  # noqa: PLC0415
    from reconpriv.cli.app import app  # noqa: PLC0415

    for name in reconpriv.__all__:
        getattr(reconpriv, name)
    # The commands are built once, and one is run for what parsing imports.
    typer.main.get_command = cache(typer.main.get_command)
    small = ["--rho1", "0.1", "--rho2", "0.5", "-m", "10"]
    assert CliRunner().invoke(app, ["retention", *small]).exit_code == 0
    typer.main.get_command(app)


def prepare(generators: Iterable[Generator], shared: Path) -> None:
    """Fill the shared folder; what several generators need is made once, in its own process."""
    shared.mkdir(parents=True, exist_ok=True)
    for generator in generators:
        folder = shared / _prepared(generator)
        if generator.prepare is not None and not folder.exists():
            folder.mkdir()
            in_fork(generator.prepare, folder)


def _prepared(generator: Generator) -> str:
    """The name of the folder that was made for a generator."""
    made = generator.prepare
    return "nothing" if made is None else f"{made.__module__}.{made.__qualname__}"


def run_all(
    cases: list[tuple[Generator, int]], seed: int, folder: Path, *, jobs: int, keep: Path | None
) -> Iterator[Result]:
    """The results as they come, from as many workers as asked for."""
    readers: dict[int, Any] = {}
    workers = []
    for job in range(jobs):
        read, write = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(read)
            code = 1
            try:
                with os.fdopen(write, "w", encoding="utf-8") as stream:
                    for generator, number in cases[job::jobs]:
                        place = Place(
                            folder / f"job{job}", folder / "shared" / _prepared(generator)
                        )
                        result = run_case(generator, number, seed, place)
                        if result.faults and keep is not None:
                            name = keep / f"{generator.name.replace(' ', '-')}-{number}"
                            shutil.copytree(place.root, name, symlinks=True, dirs_exist_ok=True)
                        stream.write(json.dumps(asdict(result)) + "\n")
                        stream.flush()
                code = 0
            except BrokenPipeError:
                code = 0
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(code)
        os.close(write)
        workers.append(pid)
        readers[read] = os.fdopen(read, encoding="utf-8")
    try:
        yield from _collected(readers)
    finally:
        for stream in readers.values():
            # Whoever reads the results may have seen enough; a worker then ends at its next one.
            stream.close()
        failed = [pid for pid in workers if os.waitpid(pid, 0)[1]]
    if failed:
        raise RuntimeError("a worker of the campaign ended early")


def _collected(readers: dict[int, Any]) -> Iterator[Result]:
    while readers:
        ready, _, _ = select.select(list(readers), [], [])
        for one in ready:
            line = readers[one].readline()
            if not line:
                readers.pop(one).close()
                continue
            found = json.loads(line)
            yield Result(**{**found, "faults": [Fault(**fault) for fault in found["faults"]]})


def run_case(generator: Generator, number: int, seed: int, place: Place) -> Result:
    """Make a case, run it and judge it; the same seed gives the same case."""
    begun = time.monotonic()
    place.make()
    rng = Random(f"{seed}/{generator.name}/{number}")
    case: Case = in_fork(generator.make, rng, place)
    if generator.run is None:
        outcomes = _steps(case, place, generator.seconds)
    else:
        outcomes = generator.run(case, place)
    try:
        faults: list[Fault] = in_fork(judged, case, place, outcomes)
    except RuntimeError as error:
        faults = [Fault(ANSWER, f"the judge failed: {error}")]
    try:
        answers: list[Fault] | None = in_fork(compared, generator, case, place, outcomes)
    except RuntimeError as error:
        answers = [Fault(ANSWER, f"the reference failed: {error}")]
    return Result(
        generator.name,
        number,
        case.what,
        [one.code for one in outcomes],
        faults + (answers or []),
        answers is not None,
        time.monotonic() - begun,
    )


def _steps(case: Case, place: Place, seconds: float) -> list[Outcome]:
    outcomes = []
    for step in case.steps:
        outcomes.append(run_step(step, place, seconds))
        if outcomes[-1].code not in (0, 1):
            break
    return outcomes


def run_step(step: Step, place: Place, seconds: float = 20.0) -> Outcome:
    """Run one command to its end, or kill it when its time is over."""
    before = place.snapshot()
    out, err = place.root / "stdout", place.root / "stderr"
    given = place.root / "stdin"
    given.write_bytes(step.stdin)
    begun = time.monotonic()
    pid = os.fork()
    if pid == 0:
        be_the_command(step, place, given, out, err)
    code = _wait(pid, begun, seconds, step.stop)
    return Outcome(
        code, out.read_bytes(), err.read_bytes(), time.monotonic() - begun, before, place.snapshot()
    )


def _wait(pid: int, begun: float, seconds: float, stop: tuple[int, float] | None) -> int | None:
    handle = os.pidfd_open(pid)
    try:
        if stop is not None:
            number, after = stop
            if not select.select([handle], [], [], after)[0]:
                os.kill(pid, number)
        left = seconds - (time.monotonic() - begun)
        ended = bool(select.select([handle], [], [], max(left, 0.0))[0])
        if not ended:
            os.killpg(pid, signal.SIGKILL)
        status = os.waitpid(pid, 0)[1]
        return os.waitstatus_to_exitcode(status) if ended else None
    finally:
        os.close(handle)


def be_the_command(
    step: Step, place: Place, given: Path, out: Path, err: Path, memory: int = _MEMORY
) -> None:
    """Become what ``reconpriv ARGS`` would be, in this forked process; never returns."""
    os.setsid()
    for number, (file, flags) in enumerate(
        ((given, os.O_RDONLY), (out, os.O_WRONLY | os.O_CREAT), (err, os.O_WRONLY | os.O_CREAT))
    ):
        os.dup2(os.open(file, flags | (os.O_TRUNC if number else 0), 0o600), number)
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = open(  # noqa: SIM115
        2, "w", encoding="utf-8", errors="backslashreplace", closefd=False, buffering=1
    )
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # RLIMIT_AS only if a case is about it: the engine behind charts reserves far more than it uses.
    kind = resource.RLIMIT_DATA if memory == _MEMORY else resource.RLIMIT_AS
    resource.setrlimit(kind, (memory, memory))
    os.environ["TMPDIR"] = tempfile.tempdir = str(place.scratch)
    os.chdir(place.desk)
    sys.argv = ["reconpriv", *step.args]
    code: Any = 0
    try:
        from reconpriv.cli import main  # noqa: PLC0415

        main()
    except SystemExit as leaving:
        code = leaving.code
        if code is None:
            code = 0
    except BaseException:
        traceback.print_exc()
        code = 1
    try:
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
    except BaseException:
        code = 120
    os._exit(code if isinstance(code, int) else 1)


def in_fork(work: Callable[..., Any], *args: Any) -> Any:
    """The result of a call in a process of its own, so that its threads never meet a fork."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            os.close(read)
            with os.fdopen(write, "wb") as stream:
                pickle.dump(work(*args), stream)
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    os.close(write)
    with os.fdopen(read, "rb") as stream:
        content = stream.read()
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if status:
        raise RuntimeError(f"{work} ended with {status}")
    return pickle.loads(content)

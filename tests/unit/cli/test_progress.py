"""The progress bar: on a terminal's standard error, past a second, and nowhere else."""

from __future__ import annotations

import io
import json
import os
import pty
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import pytest

import reconpriv as rp
from peoples_rows import peoples_rows
from reconpriv.attacks.run import Effort
from reconpriv.attacks.run import attack as run_attack
from reconpriv.cli.process import progress
from reconpriv.cli.process.progress import QUIET_SECONDS, counting_steps, ticking


class Terminal(io.StringIO):
    """Takes what a terminal would be sent."""

    def isatty(self):
        return True


@dataclass
class Clock:
    """Keeps what is due later until the second is over."""

    due: list[tuple[float, Callable[[], None]]] = field(default_factory=list)
    daemon: bool = False

    def __call__(self, seconds, function):
        self.due.append((seconds, function))
        return self

    def start(self):
        """Nothing happens by itself."""

    def cancel(self):
        """Too late for what is due."""
        self.due.clear()

    def second_is_over(self):
        for seconds, function in self.due:
            assert seconds == QUIET_SECONDS
            function()


@pytest.fixture
def on_terminal(monkeypatch):
    """Called in the test, not before: pytest replaces standard error as a test begins."""
    for name, value in (("TERM", "xterm"), ("COLUMNS", "120")):
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("NO_COLOR", raising=False)

    def turn_on():
        screen = Terminal()
        monkeypatch.setattr(sys, "stderr", screen)
        return screen

    return turn_on


def test_after_a_second_the_stage_and_what_is_done_are_shown_and_cleared_at_the_end(on_terminal):
    terminal = on_terminal()
    clock = Clock()
    with (
        pytest.raises(ValueError, match="wrong"),
        ticking(1_000, "attack [bold]", later=clock) as bar,
    ):
        bar("sampling rule 2 of 4", 0.25)
        assert terminal.getvalue() == ""
        clock.second_is_over()
        shown = terminal.getvalue()
        assert "attack [bold]: sampling rule 2 of 4" in shown
        assert "25%" in shown
        raise ValueError("wrong")
    # The cursor goes back up and the line is erased.
    assert terminal.getvalue().rstrip().endswith("\x1b[2K")
    assert not clock.due


def test_a_bar_that_is_due_after_the_end_does_not_appear(on_terminal):
    terminal = on_terminal()
    clock = Clock()
    with ticking(later=clock):
        late = list(clock.due)
    for _, function in late:
        function()
    assert late and terminal.getvalue() == ""


def test_records_are_counted_with_a_rate(on_terminal):
    terminal = on_terminal()
    clock = Clock()
    with ticking(later=clock) as bar:
        bar.records = 2_000
        clock.second_is_over()
        bar("counting", 0.5)
        bar._bar.refresh()
        assert "1,000 records" in terminal.getvalue()
        bar("comparing columns", 0.0)
        bar._bar.refresh()
    assert "comparing columns" in terminal.getvalue()


def test_steps_count_up(on_terminal, monkeypatch):
    terminal = on_terminal()
    clock = Clock()
    monkeypatch.setattr(progress, "ticking", partial(ticking, later=clock))
    with counting_steps(4) as step:
        step("EDU error")
        clock.second_is_over()
        assert "EDU error" in terminal.getvalue() and "25%" in terminal.getvalue()


ATTACKS = ("granularity", "micro", "pool", "infer", "repeat", "updates", "differencing", "margins")


@pytest.mark.parametrize("name", ATTACKS)
def test_every_attack_says_what_it_is_doing(name, census_tables):
    told: list[tuple[str, float]] = []
    effort = Effort(
        releases=4, updates=2, least=200, progress=lambda step, done: told.append((step, done))
    )
    policy = rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3)
    run_attack(name, census_tables("Education"), policy, effort)
    steps = {step for step, _ in told}
    assert steps - {"counting", "grouping"}
    assert all(0.0 <= done <= 1.0 for _, done in told)


def test_the_attack_on_people_says_what_it_is_doing():
    told: list[str] = []
    effort = Effort(keys=2, progress=lambda step, _: told.append(step))
    with rp.read(
        peoples_rows([2], 20), sensitive="result", public=["visit"], person="pid"
    ) as table:
        run_attack("persons", table, rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3), effort)
    assert {"key 1 of 2", "key 2 of 2"} <= set(told)


def _on_a_terminal(*arguments, quiet):
    """Standard output and standard error of a command whose errors go to a terminal."""
    code = (
        "import sys; from reconpriv.cli.process import progress;"
        f" progress.QUIET_SECONDS = {quiet};"
        " sys.argv[0] = 'reconpriv'; from reconpriv.cli import main; main()"
    )
    master, slave = pty.openpty()
    seen: list[bytes] = []

    def read():
        # The end of a terminal is an error on Linux and an empty read elsewhere.
        try:
            while part := os.read(master, 65536):
                seen.append(part)
        except OSError:
            return

    reader = threading.Thread(target=read)
    reader.start()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "120"}
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        stdout=subprocess.PIPE,
        stderr=slave,
        text=True,
        env=environment,
        check=False,
    )
    os.close(slave)
    reader.join()
    os.close(master)
    return done.stdout, b"".join(seen).decode()


COMMAND = ("attack", "micro", "example:adult", "-s", "occupation", "--public", "age,sex",
           "--missing", "value", "--json")  # fmt: skip


def test_the_bar_goes_to_the_terminal_and_the_result_does_not():
    out, screen = _on_a_terminal(*COMMAND, quiet=0.0)
    assert json.loads(out)["attack"] == "micro"
    assert "attack micro" in screen and "\x1b[2K" in screen


def test_a_short_command_shows_none():
    out, screen = _on_a_terminal(*COMMAND, quiet=3600.0)
    assert json.loads(out)["attack"] == "micro"
    assert screen == ""


@pytest.mark.parametrize(("given", "used"), [(None, "1"), ("2", "2")])
def test_a_command_uses_one_thread_for_matrices_unless_told_otherwise(given, used):
    code = (
        "import atexit, os, sys; sys.argv[1:] = ['--version'];"
        " atexit.register(lambda: print(os.environ['OPENBLAS_NUM_THREADS']));"
        " from reconpriv.cli import main; main()"
    )
    environment = {k: v for k, v in os.environ.items() if k != "OPENBLAS_NUM_THREADS"}
    if given is not None:
        environment["OPENBLAS_NUM_THREADS"] = given
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True
    )
    assert done.stdout.split()[-1] == used

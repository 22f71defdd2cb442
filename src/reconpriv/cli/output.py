"""What the commands print: text or JSON on standard output, everything else on standard error."""

from __future__ import annotations

import json
import math
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import typer

from reconpriv.cli.remedy_words import as_options, option_words
from reconpriv.cli.signals import INTERRUPTED, exit_code, interruptible, stopped
from reconpriv.cli.streams import NotPrinted, echo, printing, silence_standard_output
from reconpriv.errors import ReconprivError
from reconpriv.messages.one_line import LONGEST_SENTENCE, escaped_json, sentence
from reconpriv.messages.remedies import worded

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.progress import Progress, TaskID

EXIT_NOT_PRIVATE = 1
EXIT_BAD_INPUT = 2
EXIT_BUG = 70
EXIT_BROKEN_PIPE = 141

_QUIET_SECONDS = 2.0


@contextmanager
def reported() -> Iterator[None]:
    """Turn an error into one sentence and an exit code; never a traceback."""
    try:
        with interruptible():
            yield
    except (typer.Exit, typer.Abort):
        raise
    except (KeyboardInterrupt, Exception) as error:
        if isinstance(error, KeyboardInterrupt) or stopped():
            say("interrupted", INTERRUPTED)
            raise typer.Exit(exit_code()) from None
        if isinstance(error, ReconprivError):
            say("error", error.worded(option_words))
            raise typer.Exit(EXIT_BAD_INPUT) from None
        if isinstance(error, MemoryError) or str(error) == "can't start new thread":
            say("error", "There is not enough memory for this; raise the limit of this process.")
            raise typer.Exit(EXIT_BAD_INPUT) from None
        if isinstance(error, BrokenPipeError):
            silence_standard_output()  # its reader is gone
            raise typer.Exit(EXIT_BROKEN_PIPE) from None
        if isinstance(error, NotPrinted):
            silence_standard_output()
            say(
                "error",
                f"The result could not be printed: {error}."
                " Files that the command writes may be in place.",
            )
            raise typer.Exit(EXIT_BAD_INPUT) from None
        if os.environ.get("RECONPRIV_DEBUG"):
            raise
        say(
            "error",
            f"Something unexpected happened in reconpriv ({type(error).__name__})."
            " Please report it; RECONPRIV_DEBUG=1 shows where.",
        )
        raise typer.Exit(EXIT_BUG) from None


def say(kind: str, text: str) -> None:
    """A line on standard error, coloured on a terminal."""
    colours = {"error": "red", "interrupted": "red", "warning": "yellow", "note": "cyan"}
    typer.secho(f"{kind}: ", fg=colours[kind], bold=True, err=True, nl=False)
    # An error and its hint are bounded on their own; a note may be as long as both.
    typer.echo(sentence(worded(text, option_words), 2 * LONGEST_SENTENCE + 1), err=True)


def say_all(kind: str, texts: Iterable[str]) -> None:
    """Several such lines."""
    for text in texts:
        say(kind, text)


def show(renderable: RenderableType) -> None:
    """Rich tables on a terminal, plain text elsewhere."""
    if sys.stdout.isatty():
        from reconpriv.show.text import print_safely

        with printing():
            print_safely(renderable)
    else:
        from reconpriv.show.text import as_text

        echo(as_text(renderable))


def show_json(value: dict[str, Any]) -> None:
    """JSON with readable text, whatever the language."""
    text = json.dumps(_finite(as_options(value)), indent=2, ensure_ascii=False, allow_nan=False)
    echo(escaped_json(text))


def _finite(value: Any) -> Any:
    """The same with infinite numbers as text: a table may hold them, JSON has none."""
    if isinstance(value, dict):
        return {name: _finite(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(one) for one in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


class Ticker:
    """Progress with a rate on standard error, once work takes over two seconds."""

    def __init__(self, records: int) -> None:
        """Nothing is shown unless on a terminal."""
        self._records = records
        self._begun = time.monotonic()
        self._bar: Progress | None = None
        self._task: TaskID | None = None
        self._stage = ""
        self._enabled = sys.stderr.isatty()

    def __call__(self, stage: str, done: float) -> None:
        """Record progress and show it when due."""
        if not self._enabled or time.monotonic() - self._begun < _QUIET_SECONDS:
            return
        if self._bar is None:
            self._bar = _progress_bar()
            self._bar.start()
        if stage != self._stage or self._task is None:
            if self._task is not None:
                self._bar.remove_task(self._task)
            self._task = self._bar.add_task(stage, total=self._records)
            self._stage = stage
        self._bar.update(self._task, completed=done * self._records)

    def close(self) -> None:
        """Clear the line."""
        if self._bar is not None:
            self._bar.stop()


@contextmanager
def ticking(records: int) -> Iterator[Ticker]:
    """A ticker for the duration of a with statement, on work over this many records."""
    ticker = Ticker(records)
    try:
        yield ticker
    finally:
        ticker.close()


@contextmanager
def counting_steps(steps: int) -> Iterator[Callable[[str], None]]:
    """A progress bar over a known number of steps, on a terminal; otherwise silent."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("starting", total=steps)
        yield lambda words: bar.update(task, advance=1, description=words)


def _progress_bar() -> Progress:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    class Rate(TextColumn):
        """How much is done, and how much per second."""

        def render(self, task: Any) -> Any:
            from rich.text import Text

            return Text(f"{task.completed:,.0f} records, {task.speed or 0:,.0f}/s")

    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        Rate(""),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )

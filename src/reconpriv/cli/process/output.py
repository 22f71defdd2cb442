"""What the commands print: text or JSON on standard output, everything else on standard error."""

from __future__ import annotations

import json
import math
import os
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import typer

from reconpriv.cli.process.remedy_words import as_options, option_words, proposal_options
from reconpriv.cli.process.signals import INTERRUPTED, exit_code, interruptible, stopped
from reconpriv.cli.process.streams import (
    NotPrinted,
    echo,
    printing,
    prints_unicode,
    silence_standard_output,
)
from reconpriv.errors import ReconprivError, RolesError
from reconpriv.messages.commands import folded
from reconpriv.messages.one_line import LONGEST_SENTENCE, escaped_json, printable, sentence
from reconpriv.messages.redaction import without_secrets
from reconpriv.messages.remedies import worded

if TYPE_CHECKING:
    from reconpriv.show.document import Document

TYPED: list[str] = []
"""The words of the command that runs, for messages that repeat it."""

EXIT_NOT_PRIVATE = 1
EXIT_BAD_INPUT = 2
EXIT_BUG = 70
EXIT_BROKEN_PIPE = 141


@contextmanager
def reported() -> Iterator[None]:
    """Turn an error into one sentence and an exit code; never a traceback."""
    try:
        with interruptible():
            yield
    except (typer.Exit, typer.Abort):
        raise
    except (KeyboardInterrupt, Exception) as error:
        code = EXIT_BAD_INPUT
        if isinstance(error, KeyboardInterrupt) or stopped():
            say("interrupted", INTERRUPTED)
            code = exit_code()
        elif isinstance(error, RolesError):
            say_roles(error)
        elif isinstance(error, ReconprivError):
            say("error", error.worded(option_words))
        elif isinstance(error, MemoryError) or str(error) == "can't start new thread":
            say("error", "There is not enough memory for this; raise the limit of this process.")
        elif isinstance(error, BrokenPipeError):
            silence_standard_output()  # its reader is gone
            code = EXIT_BROKEN_PIPE
        elif isinstance(error, NotPrinted):
            silence_standard_output()
            done = "Files that the command writes may be in place."
            say("error", f"The result could not be printed: {error}. {done}")
        elif isinstance(error, FileNotFoundError) and _current_folder_is_gone():
            say("error", "The current folder no longer exists. Change to another one.")
        elif os.environ.get("RECONPRIV_DEBUG"):
            raise
        else:
            what = f"Something unexpected happened in reconpriv ({type(error).__name__})."
            say("error", f"{what} Please report it; RECONPRIV_DEBUG=1 shows where.")
            code = EXIT_BUG
        raise typer.Exit(code) from None


def _current_folder_is_gone() -> bool:
    try:
        os.getcwd()
    except FileNotFoundError:
        return True
    return False


def say(kind: str, text: str) -> None:
    """A line on standard error, coloured on a terminal."""
    colours = {"error": "red", "interrupted": "red", "warning": "yellow", "note": "cyan"}
    typer.secho(f"{kind}: ", fg=colours[kind], bold=True, err=True, nl=False)
    # An error and its hint are bounded on their own; a note may be as long as both.
    typer.echo(sentence(worded(text, option_words), 2 * LONGEST_SENTENCE + 1), err=True)


def shown_command(words: Iterable[str], options: Iterable[str]) -> str:
    """A command to paste: words as they were typed, but without secrets, then further options."""
    typed = shlex.join(["reconpriv", *(without_secrets(word, [word]) for word in words)])
    return folded([typed, *options])


def say_roles(error: RolesError) -> None:
    """A proposal for each column without a role, and the command that accepts them all."""
    say("error", error.what)
    command = shown_command(TYPED, proposal_options(error.proposals))
    lines = "".join(f"  {line}\n" for line in error.proposals.lines())
    typer.echo(printable(f"{lines}\nTo accept this proposal, type:\n\n{command}"), err=True)


def say_all(kind: str, texts: Iterable[str]) -> None:
    """Several such lines."""
    for text in texts:
        say(kind, text)


@dataclass(frozen=True)
class Printed:
    """What a command prints, and what it exits with.

    ``text`` (or the document that it makes) replaces that of the result, ``after`` follows either;
    JSON has what is ``more`` instead.
    """

    result: Any
    text: str | Callable[[], Document] | None = None
    more: dict[str, Any] = field(default_factory=dict)
    after: str = ""
    code: int = 0

    def give(self, *, json: bool) -> None:
        """Print it as JSON, or as text, and exit."""
        if json:
            plain = self.result if isinstance(self.result, dict) else self.result.as_dict()
            show_json(plain | self.more)
        else:
            self._show()
            if self.after:
                echo(self.after.removesuffix("\n"))
        if self.code:
            raise typer.Exit(self.code)

    def _show(self) -> None:
        if isinstance(self.text, str):
            if self.text:
                echo(self.text.removesuffix("\n"))
        elif self.text is not None:
            show(self.text())
        else:
            from reconpriv.show.results.registered import document_of

            show(document_of(self.result, option_words))


def show(shown: Document) -> None:
    """Rich tables on a terminal, plain text elsewhere."""
    if sys.stdout.isatty():
        from reconpriv.show.text import print_safely

        with printing():
            print_safely(shown)
    else:
        from reconpriv.show.text import as_text

        echo(as_text(shown))


def show_json(value: dict[str, Any]) -> None:
    """JSON with readable text, whatever the language."""
    plain = not prints_unicode()
    text = json.dumps(_finite(as_options(value)), indent=2, ensure_ascii=plain, allow_nan=False)
    echo(escaped_json(text))


def _finite(value: Any) -> Any:
    """The same with infinite numbers as text: a table may hold them, JSON has none."""
    if isinstance(value, dict):
        return {name: _finite(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(one) for one in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value

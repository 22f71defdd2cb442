"""Standard streams that are closed or full."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import typer


def open_closed_streams() -> None:
    """Let a closed standard stream be /dev/null, so that no file gets its number."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115


class NotPrinted(Exception):  # noqa: N818 - it says what happened
    """Standard output takes no more."""


@contextmanager
def printing() -> Iterator[None]:
    """Tell a standard output that fails from a file that does."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise NotPrinted(error.strerror) from error


def echo(text: str, *, nl: bool = True) -> None:
    """Print to standard output."""
    with printing():
        typer.echo(text, nl=nl)


def say_no_more() -> None:
    """Drop what libraries print at Python's end: of an interrupted one, that it was not done."""
    sys.stderr.flush()
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)


def silence_standard_output() -> None:
    """Drop what could not be written; Python would complain about it at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())

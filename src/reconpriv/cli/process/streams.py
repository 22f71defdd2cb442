"""Standard streams that are closed or full."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import typer


def open_closed_streams() -> None:
    """Let a closed standard stream be /dev/null, so that no file gets its number."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115


def print_any_character() -> None:
    """Write the code of a character that the encoding of a terminal lacks, rather than fail."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def prints_unicode() -> bool:
    """True if standard output can show every character."""
    return (getattr(sys.stdout, "encoding", None) or "utf-8").lower().startswith("utf")


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
    with suppress(OSError):
        sys.stderr.flush()
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)


def give_up_printing(error: OSError) -> None:
    """Say why help, a version or a message could not be printed, if anything can be."""
    silence_standard_output()
    try:
        typer.echo(f"error: This could not be printed: {error.strerror}.", err=True)
    except OSError:
        say_no_more()


def silence_standard_output() -> None:
    """Drop what could not be written; Python would complain about it at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())

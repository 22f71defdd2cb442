"""Text files that cannot be read as they are: what they look like, and the command that helps."""

from __future__ import annotations

import codecs
import gzip
import os
import shlex
import zlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from reconpriv.errors import InputError
from reconpriv.messages.redaction import may_hold_password

STANDARD_INPUT = "standard input"

_CHUNK = 1 << 20
_ASCII = bytes(range(128))
_MARKS = (
    (codecs.BOM_UTF32_LE, "UTF-32"),  # it begins with the mark of UTF-16
    (codecs.BOM_UTF32_BE, "UTF-32"),
    (codecs.BOM_UTF16_LE, "UTF-16"),
    (codecs.BOM_UTF16_BE, "UTF-16"),
)
_UNUSED_IN_1252 = frozenset(b"\x81\x8d\x8f\x90\x9d")
_CONTROLS_IN_LATIN_1 = frozenset(range(0x80, 0xA0))


def not_utf8(path: str | os.PathLike[str], what: str) -> InputError:
    """The refusal of a file that is not UTF-8: its likely encoding, and how to convert it.

    ``what`` is what the sentence calls the file; standard input is a file of ours by then.
    """
    encoding = _encoding(os.fspath(path))
    if encoding is None:
        return InputError(f"{what} is not UTF-8 text.", hint="Save it as UTF-8.")
    convert = f"iconv -f {encoding} -t UTF-8"
    seen = f"{what} is not UTF-8 text; it looks like {encoding}."
    return InputError(seen, hint=through(path, what, convert, "utf8"))


def through(path: str | os.PathLike[str], what: str, program: str, ending: str) -> str:
    """The advice to send a file through a program, as a command to paste.

    Only the last part of the path is shown, so the command is one for the file's own folder.
    """
    if what == STANDARD_INPUT:
        return f"Send it through {program} first."
    name = Path(path).name
    if may_hold_password(path):
        return f"Send it through {program}."
    stem, dot, rest = name.partition(".")
    new = shlex.quote(f"{stem}-{ending}{dot}{rest}")
    command = f"{program} {shlex.quote(name)} > {new}"
    if _is_gzip(name):
        command = f"gzip -dc {shlex.quote(name)} | {program} | gzip > {new}"
    where = "" if os.fspath(path) == name else " in its folder"
    # Nothing follows the command, not even a full stop: it is copied to the end of the line.
    return f"Read {new} instead, after this command{where}: {command}"


def _is_gzip(name: str) -> bool:
    return name.lower().endswith(".gz")


def _encoding(path: str) -> str | None:
    """What the bytes look like; Latin-1 is told from Windows-1252 by what only one of them has."""
    beginning, high = b"", set[int]()
    for chunk in _chunks(path):
        beginning = beginning or chunk
        high.update(chunk.translate(None, _ASCII))
    marked = next((name for mark, name in _MARKS if beginning.startswith(mark)), None)
    if marked is not None:
        return marked
    even, odd = beginning[0:4096:2].count(0), beginning[1:4096:2].count(0)
    if even + odd > len(beginning[:4096]) // 4:
        return "UTF-16LE" if odd > even else "UTF-16BE"
    if not high or high & _UNUSED_IN_1252:
        return None
    return "WINDOWS-1252" if high & _CONTROLS_IN_LATIN_1 else "ISO-8859-1"


def is_utf8(path: str) -> bool:
    """Whether a whole file is UTF-8 text."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        for chunk in _chunks(path):
            decoder.decode(chunk)
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True


def _chunks(path: str) -> Iterator[bytes]:
    opener = gzip.open if _is_gzip(path) else open
    with suppress(OSError, EOFError, zlib.error), opener(path, "rb") as stream:
        while chunk := stream.read(_CHUNK):
            yield chunk

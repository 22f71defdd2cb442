"""Texts that anyone may have written: read and parsed, or refused with the command that helps.

Files that go with a table or a release (domains, groups, questions) are small; what has no end must
not be read at all.
"""

from __future__ import annotations

import codecs
import gzip
import json
import os
import select
import shlex
import stat
import zlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from reconpriv.errors import InputError, MissingFileError
from reconpriv.messages.arguments import check_path
from reconpriv.messages.redaction import may_hold_password, shown_path

STANDARD_INPUT = "standard input"

LARGEST = 100 << 20
"""In bytes; a group for each of a million values is a quarter of it."""

_PATIENCE = 5.0
"""Seconds in which somebody has to begin to write into a named pipe."""

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
    """True if a whole file is UTF-8 text."""
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


def read_side_file(path: str | os.PathLike[str], what: str, hint: str = "") -> str:
    """The text of a file or of a pipe; ``what`` is what a sentence calls it."""
    shown = f"The {what} {shown_path(path)}"
    check_path(f"The path of the {what}", path)
    try:
        mode = Path(path).stat().st_mode
        if not stat.S_ISREG(mode) and not stat.S_ISFIFO(mode):
            kind = "a folder" if stat.S_ISDIR(mode) else "a device"
            raise InputError(f"{shown} cannot be read: it is {kind}.", hint=hint)
        # Without waiting, as a pipe would, until somebody writes into it.
        unwaiting = getattr(os, "O_NONBLOCK", 0)
        with open(path, "rb", opener=lambda file, how: os.open(file, how | unwaiting)) as stream:
            content = _begun(stream.fileno(), mode) + stream.read(LARGEST + 1)
        if len(content) > LARGEST:
            raise InputError(f"{shown} is larger than {LARGEST >> 20} MB.", hint=hint)
        return content.decode("utf-8-sig")
    except FileNotFoundError:
        raise MissingFileError(f"There is no {what} at {shown_path(path)}.") from None
    except UnicodeDecodeError:
        if stat.S_ISREG(mode):
            raise not_utf8(path, shown) from None
        raise InputError(f"{shown} is not UTF-8 text.", hint=hint) from None
    except TimeoutError:
        raise InputError(f"{shown} is a pipe that nobody writes into.", hint=hint) from None
    except OSError as error:
        raise InputError(f"{shown} cannot be read ({type(error).__name__}).", hint=hint) from None


def _begun(handle: int, mode: int) -> bytes:
    """The first bytes of a pipe, if they are there; TimeoutError if nobody writes into it."""
    if not stat.S_ISFIFO(mode):
        return b""
    waiting = select.poll()
    waiting.register(handle, select.POLLIN)
    ready = waiting.poll(_PATIENCE * 1000)
    try:
        first = os.read(handle, LARGEST)
    except BlockingIOError:  # there is a writer, and it is slow
        first, ready = b"", [(handle, 0)]
    if not ready:
        raise TimeoutError
    os.set_blocking(handle, True)
    return first


def parsed_json(text: str) -> Any:
    """Parsed JSON; a ValueError says in brackets what is wrong with it.

    Python's own parser gives up on deep nesting and on huge integers with other errors, and lets
    half a surrogate pair through, which no file can hold.
    """
    try:
        found = json.loads(text)
        if "\\u" in text:
            json.dumps(found, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        raise ValueError(f" (line {error.lineno})") from None
    except UnicodeEncodeError:
        raise ValueError(" (half a surrogate pair)") from None
    except RecursionError:
        raise ValueError(" (nested too deeply)") from None
    except ValueError:
        raise ValueError(" (an integer of thousands of digits)") from None
    return found

"""What a message may show of a path or a word: nothing that may hold a password or a key.

A database URL or a key is easily given in place of a file, and a message would then repeat it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

HIDDEN = "(hidden: it may hold a password)"
HIDDEN_KEY = "(hidden: it may be a key)"

# A path object folds the two slashes of a URL into one, so one is enough.
URL = re.compile(r"(?P<scheme>[a-z][a-z0-9+.-]+):/+(?P<rest>.*)", re.I | re.S)

_PASSWORD = r"(?:password|passwd|passphrase|pwd)\s*="
_SUSPECT = re.compile(rf"{URL.pattern}|jdbc:|.*{_PASSWORD}|.*:.*@", re.I | re.S)
# In the middle of a sentence, a word ends at the next blank or quote.
_WORD = re.compile(r"[^\s'\"]+")
_GIVEN = re.compile(rf"{_PASSWORD}\s*[^\s'\"]+", re.I)
# 256 bits in hexadecimal digits, in one piece or in blocks, or a part that was cut off; with an
# ending it is a file.
_BEGIN = r"(?<![0-9a-f])(?:(?=[0-9a-f]{2})|(?<!\w))"  # not at the e of "file"
_KEY = re.compile(_BEGIN + r"(?:[0-9a-f][ :-]?){47,}[0-9a-f](?!\.?\w)", re.I)


def may_hold_password(path: str | os.PathLike[str]) -> bool:
    """True if this is a URL, a connection string, or has a login in it."""
    return _SUSPECT.match(os.fspath(path)) is not None


def shown_path(path: str | os.PathLike[str]) -> str:
    """A path as it was given, unless it may hold a password."""
    return HIDDEN if may_hold_password(path) else os.fspath(path)


def shown_file(path: str | os.PathLike[str]) -> str:
    """The last part of a path, unless any part of it may hold a password."""
    return HIDDEN if may_hold_password(path) else Path(path).name or os.fspath(path)


def _parts(words: Iterable[str]) -> Iterator[str]:
    """The words, and the values of options: --option=value is one word."""
    for word in words:
        yield from (part for part in (word, word.partition("=")[2]) if part)


def without_folders(text: str, words: Iterable[str]) -> str:
    """A text in which paths among some words are cut to the names of their files."""
    for part in _parts(words):
        if "/" in part.strip("/") and not may_hold_password(part):
            text = text.replace(part, Path(part).name)
    return text


def without_secrets(text: str, words: Iterable[str] = ()) -> str:
    """A text without the suspicious ones among some words, recognisable logins and keys."""
    for part in _parts(words):
        if may_hold_password(part):
            text = text.replace(part, HIDDEN)
    return _KEY.sub(HIDDEN_KEY, _GIVEN.sub(HIDDEN, _WORD.sub(_without_login, text)))


def _without_login(word: re.Match[str]) -> str:
    _, url, rest = word[0].partition(":/")
    return HIDDEN if url and "@" in rest.partition(":")[2] else word[0]

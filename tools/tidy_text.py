"""Tidy the ends of lines and files, refuse merge marks; exits 1 if there was something to do."""

from __future__ import annotations

import re
import sys
from pathlib import Path

_BLANKS = re.compile(rb"[ \t]+(?=\r?\n|\Z)")
_MARKS = re.compile(rb"^(<{7} |>{7} )", re.MULTILINE)


def tidied(text: bytes) -> bytes:
    """The same text without trailing blanks, ending in exactly one line break."""
    text = _BLANKS.sub(b"", text).rstrip(b"\r\n")
    return text + b"\n" if text else text


def main(names: list[str]) -> int:
    """Tidy the files; say which ones changed and which have merge marks."""
    found = 0
    for name in names:
        path = Path(name)
        before = path.read_bytes()
        after = tidied(before)
        if after != before:
            path.write_bytes(after)
            print(f"{name}: tidied")
            found = 1
        if _MARKS.search(after):
            print(f"{name}: has merge marks")
            found = 1
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

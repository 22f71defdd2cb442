"""Whether every record of a CSV is on a line of its own.

DuckDB's threads begin to read in the middle of a file. If a quoted text has several lines, one may
take a line of that text for a record, and records are lost without an error.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

_CHUNK = 1 << 20
_NEWLINE = ord("\n")


def on_lines_of_their_own(files: Sequence[str], records: int) -> bool:
    """Whether the files, each with a header, have as many lines as that many records need.

    Without quotes, no text can have several lines, and nothing is counted.
    """
    if not any(b'"' in chunk for file in files for chunk in _chunks(file)):
        return True
    lines = 0
    for file in files:
        last = b"\n"
        for chunk in _chunks(file):
            lines += int(np.count_nonzero(np.frombuffer(chunk, dtype=np.uint8) == _NEWLINE))
            last = chunk[-1:]
        lines += last != b"\n"
    return lines == records + len(files)


def _chunks(file: str) -> Iterator[bytes]:
    with open(file, "rb") as stream:
        while chunk := stream.read(_CHUNK):
            yield chunk

"""SAS transport files from a record onwards.

ReadStat parses the records that it skips, so the later a chunk, the more it costs. But a transport
file is a header and records of one length: leaving out records gives another such file.
"""

from __future__ import annotations

import io
import os
from pathlib import Path

from reconpriv.errors import InputError

_CARD = 80
_MARKS = (
    b"HEADER RECORD*******OBS     HEADER RECORD",
    b"HEADER RECORD*******OBSV8   HEADER RECORD",
)


class Transport:
    """The header of a transport file and where its records are."""

    def __init__(self, path: Path, record_bytes: int) -> None:
        """Find the header's end; ``record_bytes`` is the length of a record."""
        self.path, self.record_bytes = path, record_bytes
        with path.open("rb") as stream:
            cards = iter(lambda: stream.read(_CARD), b"")
            header = []
            for card in cards:
                header.append(card)
                if card.startswith(_MARKS):
                    break
        self.header = b"".join(header)
        # Version 8 says how many records there are; in version 5 the file's end does.
        count = header[-1][48:63].strip() if header and header[-1].startswith(_MARKS[1]) else b""
        self.records = int(count) if count.isdigit() and int(count) else None

    def check_end(self, records: int) -> None:
        """Refuse a file that ends too early or too late: only blanks fill its last card."""
        end = len(self.header) + records * self.record_bytes
        with self.path.open("rb") as stream:
            stream.seek(end)
            rest = stream.read(_CARD + self.record_bytes)
        whole = records == self.records or self.records is None
        if not whole or rest.strip(b" ") or len(rest) >= _CARD or (end + len(rest)) % _CARD:
            raise InputError(
                f"{self.path.name} is truncated, or holds more than one table.",
                hint="Fetch or export it again, one table per file.",
            )


class Window(io.RawIOBase):
    """A transport file without its first records; closed with :meth:`close` like any file."""

    def __init__(self, transport: Transport, skipped: int) -> None:
        self._header = transport.header
        self._skipped = skipped * transport.record_bytes
        self._stream = transport.path.open("rb")
        self._at = 0
        self.seek(0)

    def read(self, size: int = -1) -> bytes:
        """Bytes of the header, then of the records that are left."""
        if size < 0:
            raise io.UnsupportedOperation("read all")
        if self._at >= len(self._header):
            found = self._stream.read(size)
        else:
            found = self._header[self._at : self._at + size]
            if len(found) < size:
                found += self._stream.read(size - len(found))
        self._at += len(found)
        return found

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Go to a place in the file as it appears here."""
        if whence == os.SEEK_END:
            size = self._stream.seek(0, os.SEEK_END)
            self._at = size - self._skipped + offset
        else:
            self._at = offset + (self._at if whence == os.SEEK_CUR else 0)
        self._stream.seek(max(self._at, len(self._header)) + self._skipped)
        return self._at

    def tell(self) -> int:
        """The place in the file as it appears here."""
        return self._at

    def close(self) -> None:
        """Close the underlying file."""
        self._stream.close()
        super().close()

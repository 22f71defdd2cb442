"""The lines of a ledger: JSON, each after a MAC that also covers the line before.

A line is ``MAC JSON``. Its MAC is HMAC-SHA-256 of the previous MAC and the JSON text, under a key
derived from the secret one. So a line that is changed, removed, added or moved is noticed, except
that lines may be cut off at the end: what remains is a ledger as it once was.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

Body = dict[str, Any]

_MAC_DIGITS = 64
START = "0" * _MAC_DIGITS


@dataclass(frozen=True)
class Fault:
    """The first line that is not as it was written; ``torn`` if it only lacks its end."""

    line: int
    torn: bool


@dataclass(frozen=True)
class Lines:
    """The lines up to the first fault, the MAC of the last one and the length of all, in bytes."""

    bodies: tuple[Body, ...]
    mac: str
    length: int
    fault: Fault | None = None


def written_line(secret: bytes, previous: str, body: Body) -> bytes:
    """A line that follows the one with the previous MAC."""
    text = json.dumps(body, ensure_ascii=True, allow_nan=False, separators=(",", ":")).encode()
    return _mac(secret, previous, text).encode() + b" " + text + b"\n"


def read_lines(secret: bytes, content: bytes) -> Lines:
    """Check the lines of a ledger, one after another."""
    bodies: list[Body] = []
    mac, length = START, 0
    for number, line in enumerate(_split(content), start=1):
        found, text = line[:_MAC_DIGITS], line[_MAC_DIGITS + 1 :].removesuffix(b"\n")
        genuine = hmac.compare_digest(found, _mac(secret, mac, text).encode())
        if not line.endswith(b"\n"):
            return Lines(tuple(bodies), mac, length, Fault(number, torn=True))
        if not genuine or line[_MAC_DIGITS : _MAC_DIGITS + 1] != b" ":
            return Lines(tuple(bodies), mac, length, Fault(number, torn=False))
        bodies.append(json.loads(text))
        mac, length = found.decode(), length + len(line)
    return Lines(tuple(bodies), mac, length)


def unchecked_bodies(content: bytes) -> Iterator[Body]:
    """What the lines of another key's ledger say, as far as it can be read."""
    for line in _split(content):
        try:
            body = json.loads(line[_MAC_DIGITS + 1 :])
        except (ValueError, RecursionError):
            continue
        if isinstance(body, dict):
            yield body


def _split(content: bytes) -> list[bytes]:
    """The lines with their newlines; bytes.splitlines would also cut at carriage returns."""
    *lines, last = content.split(b"\n")
    return [line + b"\n" for line in lines] + ([last] if last else [])


def _mac(secret: bytes, previous: str, text: bytes) -> str:
    return hmac.new(secret, previous.encode() + b" " + text, "sha256").hexdigest()

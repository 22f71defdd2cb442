"""Ways to damage a file."""

from __future__ import annotations

from collections.abc import Callable
from random import Random


def _flip(rng: Random, content: bytearray) -> None:
    for _ in range(rng.choice((1, 1, 2, 5, 20))):
        content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)


def _overwrite(rng: Random, content: bytearray) -> None:
    begin = rng.randrange(len(content))
    length = min(rng.choice((1, 4, 8, 64, 512)), len(content) - begin)
    content[begin : begin + length] = rng.randbytes(length)


def _extreme(rng: Random, content: bytearray) -> None:
    """A length or an offset that is far too large, negative or zero."""
    begin = rng.randrange(len(content))
    word = rng.choice((b"\xff" * 4, bytes(4), b"\xff\xff\xff\x7f", b"\x00\x00\x00\x80"))
    content[begin : begin + 4] = word


def _cut(rng: Random, content: bytearray) -> None:
    del content[rng.randrange(len(content)) :]


def _drop(rng: Random, content: bytearray) -> None:
    begin = rng.randrange(len(content))
    del content[begin : begin + rng.choice((1, 3, 16, 200))]


def _double(rng: Random, content: bytearray) -> None:
    begin = rng.randrange(len(content))
    content[begin:begin] = content[begin : begin + rng.choice((1, 16, 200))]


def _zeros(rng: Random, content: bytearray) -> None:
    begin = rng.randrange(len(content))
    content[begin:begin] = bytes(rng.choice((1, 16, 4096)))


WAYS: dict[str, Callable[[Random, bytearray], None]] = {
    "flipped bits": _flip,
    "random bytes": _overwrite,
    "an extreme number": _extreme,
    "cut": _cut,
    "a hole": _drop,
    "a part twice": _double,
    "zeros": _zeros,
}


def damaged(rng: Random, content: bytes) -> tuple[str, bytes]:
    """A damaged copy, and what was done to it."""
    what = rng.choice(list(WAYS))
    found = bytearray(content)
    WAYS[what](rng, found)
    return what, bytes(found)

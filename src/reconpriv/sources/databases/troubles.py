"""What a database says went wrong, in words of ours: its own may quote a value, a path or a URL."""

from __future__ import annotations

from collections.abc import Sequence

Trouble = tuple[tuple[str, ...], str, str]
"""Signs in a message, any of which is enough, and the sentence and hint that they stand for."""


def meaning(
    message: str, troubles: Sequence[Trouble], otherwise: tuple[str, str]
) -> tuple[str, str]:
    """The sentence and hint of the first trouble of which the message has a sign."""
    known = ((words, hint) for signs, words, hint in troubles if any(s in message for s in signs))
    return next(known, otherwise)

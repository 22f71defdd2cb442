"""Where in a text something is wrong, as a reader counts: from 1, in characters."""

from __future__ import annotations


def place_words(text: str, line: int, character: int) -> str:
    """A place, with its line if the text has several."""
    if "\n" in text.strip():
        return f"near line {line}, character {character}"
    return f"near character {character}"


def offset_words(text: str, offset: int) -> str:
    """The place of the character at this offset."""
    before = text[:offset]
    return place_words(text, before.count("\n") + 1, len(before) - before.rfind("\n"))


def byte_words(text: str, position: int) -> str:
    """The place of a byte of the text encoded as UTF-8."""
    return offset_words(text, len(text.encode()[:position].decode(errors="ignore")))

"""Text that is safe to print: on one line, of bounded length, without control characters.

Names and values come from files that anyone may have made. A terminal would obey their control
characters, and a header without its closing quote is as long as its file.
"""

from __future__ import annotations

import re

LONGEST_SENTENCE = 500
_LONGEST_WORD = 200
_CUT = "…"

# C0 and C1 controls, what breaks a line, what turns the direction of text, and lone surrogates.
_UNPRINTABLE = r"\x00-\x1f\x7f-\x9f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff"
_CONTROL = re.compile(f"[{_UNPRINTABLE}]")
_CONTROL_BUT_LINES = re.compile(f"(?!\n)[{_UNPRINTABLE}]")
_WORD = re.compile(rf"\S{{{_LONGEST_WORD + 1},}}")


def printable(text: str) -> str:
    """A text of several lines, with the other control characters as Python would write them."""
    return _CONTROL_BUT_LINES.sub(_escaped, text)


def escaped_json(text: str) -> str:
    """JSON whose strings hold no control character as such; what it says stays the same."""
    return _CONTROL_BUT_LINES.sub(lambda one: f"\\u{ord(one[0]):04x}", text)


def one_line(text: str) -> str:
    """A text on one line: line breaks become spaces, other control characters are written out."""
    return _CONTROL.sub(_escaped, re.sub(r"[ \t]*[\r\n]+[ \t]*", " ", text))


def sentence(text: str, longest: int = LONGEST_SENTENCE) -> str:
    """A message on one line; a word or a message that is too long loses its middle."""
    return shortened(
        _WORD.sub(lambda word: shortened(word[0], _LONGEST_WORD), one_line(text)), longest
    )


def shortened(text: str, longest: int = _LONGEST_WORD) -> str:
    """A text without its middle if it is too long to be read."""
    if len(text) <= longest:
        return text
    end = longest // 3
    return f"{text[: longest - end - 1]}{_CUT}{text[-end:]}"


def _escaped(character: re.Match[str]) -> str:
    number = ord(character[0])
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}"


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

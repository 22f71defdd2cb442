"""What to do about an error, as data that every surface words in its own way.

A message says what to do in plain English and names the control that does it. Python (below), the
command line and the studio (``remedy_words.py`` in ``cli`` and ``studio``) each word it in one
function.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum

Control = StrEnum(
    "Control",
    "BIN COLUMNS DATABASE DOMAIN DROP ENGINE EXPOSED_ABOVE GROUP HARMLESS KEEP_GIVEAWAY "
    "KEEP_IDENTIFIER KEY LABELS LEDGER MARGINS MARGIN_TABLES MASTER MAX_ERROR MAX_UNIQUE MEMORY "
    "MISSING OVERWRITE PERSON PLAIN PORT PUBLIC RHO2 ROLE_CHANGE ROWS_PER_PERSON SECOND_SAMPLE "
    "SQL TABLE TEST_KEY THREADS TO_TABLE UNATTAINABLE WEAKER_RECORDS WHOLE_BINS WITHDRAW",
)
"""What a user can set: an argument in Python (its name is the value), an option, a field."""


@dataclass(frozen=True)
class Remedy:
    """One thing to do, the control that does it and, if known, what to set it to.

    ``do`` is an imperative without a full stop. If it holds ``{}``, the control is named there and
    the remedy makes no sense without it; otherwise it is named at the end, after "with". The names
    of columns are a tuple; for :attr:`Control.BIN` it is a column and its borders, for
    :attr:`Control.WITHDRAW` a key file and a line of its ledger.
    """

    do: str
    control: Control
    value: str | tuple[str, ...] | float | None = None

    def by(self, name: str) -> str:
        """The remedy with this name for the control; empty if it makes no sense."""
        if "{}" in self.do:
            return self.do.replace("{}", name) if name else ""
        return f"{self.do} with {name}" if name else self.do


Way = str | Remedy
Sentence = Way | tuple[Way, ...]
Words = Callable[[Remedy], str]
"""A surface: a remedy in its words, or nothing if it has none to offer."""

AS_TEXT = Remedy("turn it into text", Control.SQL)
REPLACE = Remedy("use {} to replace it", Control.OVERWRITE, True)
WHOLE_BINS = Remedy("allow whole bins", Control.WHOLE_BINS, True)


def make_key(file: str = "FILE") -> Remedy:
    """Make a key in a file of this name."""
    return Remedy("make one: {}", Control.KEY, file)


def python_words(remedy: Remedy) -> str:
    """A remedy as a Python user would type it."""
    control, value = remedy.control, remedy.value
    written = json.dumps(value, ensure_ascii=False)
    calls = {
        Control.KEY: f"Key.generate().write({written})",
        Control.LEDGER: f"Ledger({written}).check()",
        Control.MARGIN_TABLES: "Margins(tables=…)",
        Control.TEST_KEY: "key=Key.test()",
        Control.TO_TABLE: "release.to_table()",
    }
    if control in calls:
        return remedy.by(calls[control])
    if control is Control.WITHDRAW and isinstance(value, tuple):
        file, line = value
        return remedy.by(f"Ledger({json.dumps(file)}).withdraw({line}, why=…)")
    if value is None:
        return remedy.by(f"`{control}`")
    if control is Control.BIN and isinstance(value, tuple):
        column, *borders = value
        parts = [json.dumps(one) if ":" in one else one for one in borders]
        written = f"{{{json.dumps(column, ensure_ascii=False)}: [{', '.join(parts)}]}}"
    return remedy.by(f"{control}={'True' if value is True else written}")


def plain_words(remedy: Remedy) -> str:
    """A remedy in a report, whose reader may use any surface or none."""
    return remedy.by("")


class Advice(str):
    """Sentences, some of which say what to change; read as text they address a Python user.

    A sentence is a text, a remedy, or a tuple of alternatives; a surface leaves out those that it
    cannot offer.
    """

    sentences: tuple[Sentence, ...]

    def __new__(cls, *sentences: Sentence) -> Advice:
        """The sentences one after another; those of another advice are included."""
        flat: list[Sentence] = []
        for sentence in sentences:
            flat += sentence.sentences if isinstance(sentence, Advice) else (sentence,)
        advice = super().__new__(cls, _said(flat, python_words))
        advice.sentences = tuple(flat)
        return advice

    def __getnewargs__(self) -> tuple[Sentence, ...]:  # type: ignore[override]
        """What recreates the same advice in another process."""
        return self.sentences


def either(*ways: Way) -> Advice:
    """One sentence of alternatives, each an imperative without a full stop."""
    return Advice(ways)


def worded(text: str, words: Words) -> str:
    """A text in the words of a surface."""
    return _said(text.sentences, words) if isinstance(text, Advice) else text


def _said(sentences: Iterable[Sentence], words: Words) -> str:
    said = (one if isinstance(one, str) else _sentence(one, words) for one in sentences)
    return " ".join(sentence for sentence in said if sentence)


def _sentence(ways: Remedy | tuple[Way, ...], words: Words) -> str:
    ways = (ways,) if isinstance(ways, Remedy) else ways
    said = [way if isinstance(way, str) else words(way) for way in ways]
    *others, last = [clause for clause in said if clause] or [""]
    text = f"{', '.join(others)}, or {last}" if others else last
    return f"{text[0].upper()}{text[1:]}." if text else ""

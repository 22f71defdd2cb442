"""What every script says: the design, the correction and three answers to compare with."""

from __future__ import annotations

import re
import textwrap
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass

from reconpriv.schema import Column, Kind, Value

# What a script can compare with. Numbers with fractions, and moments, differ in their last digits.
_COMPARABLE = (Kind.STRING, Kind.INTEGER, Kind.BOOLEAN, Kind.DATE)
_LARGEST = 2**31
_AWKWARD = '\\"`$'  # some program takes them for more than letters
_LONGEST = 80
_WIDTH = 90


@dataclass(frozen=True)
class Answer:
    """An answer of the release: how many records have a public value, a sensitive one, or both.

    ``among`` is a public column with its value, ``holding`` a sensitive value; None is any.
    """

    among: tuple[Column, Value] | None
    holding: Value | None
    count: float
    standard_error: float


@dataclass(frozen=True)
class DesignNames:
    """What the columns are called that carry the design; all begin alike, and nothing else does."""

    prefix: str

    @property
    def group(self) -> str:
        """The group that was randomised as one."""
        return f"{self.prefix}group"

    @property
    def records(self) -> str:
        """Its records."""
        return f"{self.prefix}records"

    @property
    def trials(self) -> str:
        """The independent trials that they rest on."""
        return f"{self.prefix}trials"

    @property
    def weight(self) -> str:
        """Records per trial."""
        return f"{self.prefix}weight"

    @property
    def all(self) -> tuple[str, str, str, str]:
        """In the order of the file."""
        return self.group, self.records, self.trials, self.weight


@dataclass(frozen=True)
class Setting:
    """What a script is about. ``names`` are the columns as the file calls them."""

    data: str
    script: str
    sensitive: Column
    retention: float
    domain_size: int
    design: DesignNames
    names: Mapping[str, str]
    labels: Mapping[str, str]
    pooled: tuple[str, ...]
    margins: bool
    answers: tuple[Answer, ...]

    @property
    def holder(self) -> str:
        """The sensitive column, as the file calls it."""
        return self.names[self.sensitive.name]

    def about(self) -> list[str]:
        """What to know, sentence by sentence."""
        design = self.design
        sentences = [
            f"Counts from {_plain(self.data)}, a randomised release made by reconpriv.",
            f"Public columns are exact, but {_plain(self.holder)} is randomised: a value was kept"
            " with probability p, else replaced by any of the m values, so a published count must"
            " be corrected: estimate = (n - N (1-p) / m) / p for n of N records.",
            f"The {design.records} records of a group rest on {design.trials} independent trials,"
            f" each of which stands for {design.weight} records; programs that take rows as"
            " independent give standard errors that are too small, but those below are right.",
            "For intervals that also hold for small counts, ask reconpriv query.",
        ]
        if self.pooled:
            sentences.append(
                f"Groups are pooled over {_plain(', '.join(self.pooled))}: choose records by other"
                " columns only, or estimates and standard errors are wrong."
            )
        if self.margins:
            sentences.append(
                "The release also has margins, which this file has not; with them reconpriv answers"
                " more precisely, and with the estimator 'records' it answers as below."
            )
        return [*sentences, "At the end, three answers are compared with those of the release."]

    def comments(self, mark: str, end: str = "", more: str = "") -> list[str]:
        """What to know as comments that begin with a mark; lines after the first with ``more``."""
        lines = []
        for sentence in self.about():
            first, *rest = textwrap.wrap(sentence, _WIDTH)
            lines += [f"{mark}{first}", *(f"{more or mark}{line}" for line in rest)]
            lines[-1] += end
        return lines


def filled(text: str, setting: Setting) -> str:
    """A template with its names: @word is a name that begins like the columns of the design."""
    known = {"retention": repr(setting.retention), "domain": str(setting.domain_size)}
    return re.sub(
        r"@(\w+)", lambda found: known.get(found[1], setting.design.prefix + found[1]), text
    )


def comparable(column: Column, value: Value) -> bool:
    """Whether every program can be asked for this value, and reads it as we do."""
    if value is None or column.kind not in _COMPARABLE:
        return False
    if isinstance(value, str):
        awkward = any(c in _AWKWARD or unicodedata.category(c).startswith("C") for c in value)
        return value.strip() == value != "" and len(value) <= _LONGEST and not awkward
    return isinstance(value, bool) or not isinstance(value, int) or abs(value) < _LARGEST


def _plain(text: str) -> str:
    """A name inside a comment: on one line, and unable to end it."""
    kept = "".join(" " if unicodedata.category(c).startswith("C") else c for c in text)
    return kept.replace("*/", "* /").replace("/*", "/ *")

"""What a release promises, for both reports; from the policy alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reconpriv.messages.numbers import unbroken
from reconpriv.promise import AGAINST, sentences
from reconpriv.reports.page import facts
from reconpriv.show.markup import Html, tag

TITLE = "What is promised, and against whom"


def promised(policy: Mapping[str, Any], *more: tuple[str, str]) -> tuple[Html, ...]:
    """The two sentences, and below them whom they are about; ``more`` are further facts."""
    said = [
        tag("p", tag("b", f"{name}: "), unbroken(text), class_="promise")
        for name, text in sentences(policy)
    ]
    return (*said, facts([("Against", AGAINST), *more]))

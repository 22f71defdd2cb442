"""What a release promises, for both reports; from the policy alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reconpriv.messages.numbers import unbroken
from reconpriv.promise import (
    NOTHING,
    against,
    exceptions,
    exposed_words,
    guarantee,
    pooled_words,
    rows_words,
)
from reconpriv.reports.page import facts, paragraph
from reconpriv.show.markup import Html

TITLE = "What is promised, and against whom"


def promised(policy: Mapping[str, Any], *more: tuple[str, str]) -> tuple[Html, Html]:
    """The promise, and below it what it is about; ``more`` are further facts."""
    said = guarantee(policy)
    exposed = "" if said == NOTHING else exposed_words(policy)
    rows = [
        ("Exposed", exposed),
        ("Protection", "" if said == NOTHING else pooled_words(policy)),
        ("Rows", rows_words(policy)),
        ("Against", against(policy)),
        ("Exceptions", exceptions(policy)),
        *more,
    ]
    kept = [(name, unbroken(text)) for name, text in rows if text]
    return paragraph(unbroken(said), "promise"), facts(kept)

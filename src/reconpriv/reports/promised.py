"""What a release promises, for both reports; from the policy alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reconpriv.policy.promise import AGAINST, sentences
from reconpriv.show.document import Document, Facts, Paragraph

TITLE = "What is promised, and against whom"


def promised(policy: Mapping[str, Any], *more: tuple[str, str]) -> Document:
    """The two sentences, and below them whom they are about; ``more`` are further facts."""
    said = [Paragraph(text, "promise", name) for name, text in sentences(policy)]
    return [*said, Facts([("Against", AGAINST), *more])]

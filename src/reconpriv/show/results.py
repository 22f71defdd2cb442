"""How each kind of result is shown: the functions that make its text and HTML."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from rich.console import RenderableType

from reconpriv.show import audit, html, learning, text, tuning


class _Views(NamedTuple):
    """What a terminal prints and what a notebook shows."""

    terminal: Callable[[Any], RenderableType]
    notebook: Callable[[Any], str]


# By class name: importing all results would take longer than showing one.
_VIEWS = {
    "AttackResult": _Views(text.attack_view, html.attack_html),
    "AuditReport": _Views(audit.audit_view, html.audit_html),
    "Estimate": _Views(str, html.estimate_html),
    "EstimateTable": _Views(text.estimate_table_view, html.estimate_table_html),
    "IndependenceTest": _Views(learning.independence_view, learning.independence_html),
    "Release": _Views(text.release_view, html.release_html),
    "TuneReport": _Views(tuning.tune_view, tuning.tune_html),
}


def text_of(result: object) -> str:
    """A result as plain text."""
    return text.as_text(_VIEWS[type(result).__name__].terminal(result))


def html_of(result: object) -> str:
    """A result as HTML."""
    return _VIEWS[type(result).__name__].notebook(result)

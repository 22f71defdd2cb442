"""The settings of a session as a file: no key, and of the data no more than what was typed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from reconpriv.ask.form import QUESTION_KINDS, FormQuestion
from reconpriv.errors import InputError
from reconpriv.studio.work.workspace import Opened, Workspace

SETTINGS_FILE = "studio-settings.json"
_KIND = "reconpriv studio"
_VERSION = 1
# What a draft may hold that concerns the choice of a key, which is no part of the settings.
_KEYS = ("key_kind", "key_path")
_PARTS = ("roles", "bins", "groups")


def roles_place(opened: Opened) -> str:
    """Where the draft keeps the roles of a table: another table has others."""
    return f"roles of {opened.identity}"


def harmless_place(opened: Opened, sensitive: str) -> str:
    """Where the draft keeps the harmless values of a column: elsewhere they may not be right."""
    return f"harmless in {opened.identity}: {sensitive}"


def settings_text(workspace: Workspace) -> str:
    """Which table is open, and what was chosen and typed, as JSON."""
    opened = workspace.opened
    table = None if opened is None or opened.uploaded else opened.source
    draft = {name: value for name, value in workspace.draft.items() if name not in _KEYS}
    return json.dumps(
        {"kind": _KIND, "version": _VERSION, "table": table, "draft": draft}, indent=1
    )


def open_settings(workspace: Workspace, text: str) -> None:
    """Go on where settings were saved; an upload has to be made again, and is then recognised."""
    try:
        found = json.loads(text)
        kind, version = found["kind"], found["version"]
        table, draft = found["table"], found["draft"]
    except (ValueError, KeyError, TypeError):
        kind = None
    if kind != _KIND:
        raise InputError(
            "This file holds no settings of the studio.",
            hint=f"Choose one that “Save settings” has made ({SETTINGS_FILE}).",
        )
    if version != _VERSION:
        raise InputError("These settings are those of another version of the studio.")
    if not isinstance(draft, dict) or not all(_fits(*pair) for pair in draft.items()):
        raise InputError("These settings are damaged.", hint="Save them anew.")
    if table is not None:
        workspace.look(str(table))
    workspace.draft |= draft
    workspace.step = 1 if table is None else 2


def _fits(name: str, value: Any) -> bool:
    """Whether a page can show this as the value of its name."""
    if name.startswith("roles of "):
        return isinstance(value, dict) and all(
            _texts(part) if key in _PARTS else isinstance(part, str) for key, part in value.items()
        )
    if name.startswith("harmless in "):
        return isinstance(value, list) and all(isinstance(one, str) for one in value)
    if name == "question":
        return question_in({name: value}) is not None
    return value is None or isinstance(value, str | int | float)


def _texts(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(one, str) for one in value.values())


def question_in(draft: Mapping[str, Any]) -> FormQuestion | None:
    """The question of a draft; None if there is none that makes sense."""
    try:
        asked = FormQuestion(**draft["question"])
        asked = replace(asked, scores=tuple(asked.scores))
        return asked if asked.kind in QUESTION_KINDS else None
    except (KeyError, TypeError):
        return None

"""Turn Sphinx roles in docstrings, such as :func:`reconpriv.read`, into links."""

from __future__ import annotations

import re
from typing import Any

import griffe

ROLE = re.compile(r":(?:func|meth|class|attr|mod|data|exc):`~?([\w.]+)`")


class Roles(griffe.Extension):
    """Rewrite the roles of every docstring."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Link a full name; show a short one as code."""
        if obj.docstring:
            obj.docstring.value = ROLE.sub(_link, obj.docstring.value)


def _link(match: re.Match[str]) -> str:
    name = match[1]
    short = name.rsplit(".", 1)[-1]
    return f"[`{short}`][{name}]" if name.startswith("reconpriv.") else f"`{name}`"

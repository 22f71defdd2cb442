"""The words of the command that runs, for messages that repeat it."""

from __future__ import annotations

TYPED: list[str] = []

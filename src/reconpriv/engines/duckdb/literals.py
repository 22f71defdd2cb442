"""SQL literals."""

from __future__ import annotations

import glob


def literal(text: str) -> str:
    """An SQL string."""
    return "'" + text.replace("'", "''") + "'"


def file_list(files: list[str]) -> str:
    """A list of files, each taken by its very name."""
    # DuckDB would take a bracket or star in a name for a pattern.
    return "[" + ", ".join(literal(glob.escape(file)) for file in files) + "]"

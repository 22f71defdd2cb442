"""The two real tables that come with the package; see data/README.md for their origin."""

from __future__ import annotations

from importlib.resources import as_file, files
from pathlib import Path

from reconpriv.errors import InputError
from reconpriv.messages.arguments import checked

NAMES = ("adult", "census_workers")
EXAMPLE = "example:"
"""What the name of a bundled table begins with where a path is expected."""


def with_bundled(path: str) -> str:
    """A path, or that of the bundled table that it names."""
    return str(dataset_path(path.removeprefix(EXAMPLE))) if path.startswith(EXAMPLE) else path


@checked
def dataset_path(name: str) -> Path:
    """The path of a bundled table: ``adult`` or ``census_workers``."""
    if name not in NAMES:
        raise InputError(
            f"There is no bundled table {name!r}.", hint=f"Choose one of: {', '.join(NAMES)}."
        )
    with as_file(files("reconpriv") / "data" / f"{name}.parquet") as path:
        return path

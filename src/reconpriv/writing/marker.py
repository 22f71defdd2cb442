"""What makes a folder a release, and what must not be written into one."""

from __future__ import annotations

from pathlib import Path

from reconpriv.errors import OutputError
from reconpriv.messages.redaction import shown_file
from reconpriv.messages.text_files import parsed_json

MANIFEST = "datapackage.json"
BLOCK = "reconpriv"


def is_manifest(text: str) -> bool:
    """True if a text is a manifest with our block, damaged or not."""
    try:
        manifest = parsed_json(text)
    except ValueError:
        return False
    return isinstance(manifest, dict) and isinstance(manifest.get(BLOCK), dict)


def is_release(folder: Path) -> bool:
    """True if a folder holds a release."""
    try:
        return is_manifest((folder / MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False


def release_around(path: Path) -> Path | None:
    """The release in whose folder, or in a folder inside it, a path lies."""
    inside = path.parent.resolve()
    return next((folder for folder in (inside, *inside.parents) if is_release(folder)), None)


def refuse_inside_release(path: Path, what: str) -> None:
    """Refuse to write into a release what does not belong there: it is handed out whole."""
    around = release_around(path)
    if around is not None:
        raise OutputError(
            f"{shown_file(around)!r} is a release; {what} must not be inside it.",
            hint="Choose another folder.",
        )

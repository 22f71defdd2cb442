"""A hook of the build: the README as the description of the package, with links that work anywhere.

In the repository links are relative. Where only the description is shown they lead into the
repository, pictures to the file itself.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

_LINK = re.compile(r"""(\]\(|\b(?:src|srcset|href)=")(?![a-z]+:|#)([^)"\s]+)""")
_PICTURES = (".svg", ".png")


def with_addresses(text: str, home: str) -> str:
    """A page in the root of a repository at ``home``, with addresses in place of relative links."""

    def address(link: re.Match[str]) -> str:
        kind = "raw" if link[2].endswith(_PICTURES) else "blob"
        return f"{link[1]}{home}/{kind}/main/{link[2]}"

    return _LINK.sub(address, text)


class CustomMetadataHook(MetadataHookInterface):
    """What the build asks."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Add the description."""
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        page = with_addresses(text, metadata["urls"]["Source"])
        metadata["readme"] = {"content-type": "text/markdown", "text": page}

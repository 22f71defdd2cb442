"""A notebook with its outputs as a Markdown page."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

PICTURES = {"image/svg+xml": ".svg", "image/png": ".png"}


def notebook_page(text: str, page: Path) -> str:
    """The cells in order; pictures are written beside the page."""
    parts, number = [], 0
    for cell in json.loads(text)["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
            continue
        parts.append(f"```python\n{source}\n```")
        for output in cell["outputs"]:
            number += 1
            picture = page.with_name(f"{page.stem}-{number}")
            parts.append(_output(output, picture, cell["metadata"].get("alt", "")))
    return "\n\n".join(parts) + "\n"


def _output(output: dict[str, Any], picture: Path, alt: str) -> str:
    if output["output_type"] == "stream":
        return f"```text\n{''.join(output['text']).rstrip()}\n```"
    data = output["data"]
    for kind, ending in PICTURES.items():
        if kind in data:
            file = picture.with_suffix(ending)
            content = "".join(data[kind])
            file.write_bytes(content.encode() if ending == ".svg" else base64.b64decode(content))
            return f'<img class="picture" src="{file.name}" alt="{alt}">'
    if "text/html" in data:
        html = "".join(data["text/html"]).replace("\n", " ")
        return f'<div class="output">{html}</div>'
    return f"```text\n{''.join(data['text/plain'])}\n```"

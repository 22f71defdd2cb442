"""Draw the badges of the README from pyproject.toml: what is true of the package, offline.

Nothing is fetched when somebody reads the page, and no badge says how a build went.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "docs" / "figures"
_LETTER, _PAD = 6.6, 7
_SVG = (
    '<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="20" role="img"'
    ' aria-label="{name}: {value}"><title>{name}: {value}</title>'
    '<rect width="{width}" height="20" rx="3" fill="#24292f"/>'
    '<path d="M{left} 0h{right}a3 3 0 0 1 3 3v14a3 3 0 0 1-3 3h-{right}z" fill="#17603a"/>'
    '<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11">'
    '<text x="{pad}" y="14" textLength="{name_width}">{name}</text>'
    '<text x="{second}" y="14" textLength="{value_width}">{value}</text></g></svg>\n'
)


def badges() -> dict[str, str]:
    """The badges by the names of their files."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    said = "\n".join(project["classifiers"])
    pythons = re.findall(r":: Python :: (3\.\d+)$", said, re.MULTILINE)
    status = re.search(r"Development Status :: \d - (\w+)", said)
    assert status is not None
    found = {
        "licence": project["license"],
        "python": f"{pythons[0]} to {pythons[-1]}",
        "status": status[1].lower(),
        "types": "checked",
    }
    return {f"badge-{name}.svg": _drawn(name, value) for name, value in found.items()}


def _drawn(name: str, value: str) -> str:
    name_width, value_width = (round(_LETTER * len(text)) for text in (name, value))
    left = name_width + 2 * _PAD
    return _SVG.format(
        name=name,
        value=value,
        width=left + value_width + 2 * _PAD,
        left=left,
        right=value_width + 2 * _PAD - 3,
        pad=_PAD,
        second=left + _PAD,
        name_width=name_width,
        value_width=value_width,
    )


if __name__ == "__main__":
    for file, drawing in badges().items():
        (FOLDER / file).write_text(drawing, encoding="utf-8")

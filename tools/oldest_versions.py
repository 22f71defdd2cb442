"""Print constraints that pin every dependency to the oldest version pyproject.toml allows."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

PYPROJECT = Path(__file__).parents[1] / "pyproject.toml"
SHIPPED = re.compile(r"^([\w.-]+)(?:\[[\w,]+\])?>=([\d.]+)$")


def oldest(requirement: str) -> str:
    """The constraint for one requirement: its oldest version, patches included."""
    name, version = SHIPPED.fullmatch(requirement.replace(" ", "")).groups()  # type: ignore[union-attr]
    return f"{name}=={version}.*" if version.count(".") < 2 else f"{name}=={version}"


def constraints() -> list[str]:
    """One line per dependency of the package and its extras."""
    project = tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"].values()
    requirements = {*project["dependencies"], *(line for extra in extras for line in extra)}
    ours = f"{project['name']}["  # an extra that refers to others
    return sorted(oldest(one) for one in requirements if not one.startswith(ours))


if __name__ == "__main__":
    print("\n".join(constraints()))

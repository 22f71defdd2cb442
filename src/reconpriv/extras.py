"""The packages that an extra needs, and the command that installs them.

Hints name the packages themselves: that works wherever reconpriv came from, a wheel, a source
folder or an index.
"""

from __future__ import annotations

import importlib.metadata
import os
import re
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from reconpriv.errors import InputError, ReconprivError


@dataclass(frozen=True)
class Requirement:
    """A package, its minimum version, and the extra that asks for it."""

    name: str
    least: str
    extra: str | None

    @property
    def text(self) -> str:
        """The requirement as pip takes it."""
        return f"{self.name}>={self.least}" if self.least else self.name


def requirements() -> list[Requirement]:
    """What the package itself says it needs, with and without extras."""
    found = []
    for line in importlib.metadata.requires("reconpriv") or []:
        name = re.match(r"[\w.-]+", line)
        least = re.search(r">=\s*([\d.]+)", line)
        extra = re.search(r"extra\s*==\s*['\"]([\w-]+)['\"]", line)
        assert name is not None
        found.append(Requirement(name[0], least[1] if least else "", extra[1] if extra else None))
    return found


def installed(requirement: Requirement) -> tuple[bool, str]:
    """Whether it is there and new enough, and its version."""
    try:
        version = importlib.metadata.version(requirement.name)
    except importlib.metadata.PackageNotFoundError:
        return False, "missing"
    enough = _numbers(version) >= _numbers(requirement.least)
    return enough, version if enough else f"{version}, too old"


def library_versions(*names: str) -> dict[str, str]:
    """The versions of these packages, as installed."""
    found = {name: installed(Requirement(name, "", None)) for name in names}
    return {name: version if there else "not installed" for name, (there, version) in found.items()}


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", version.partition("+")[0])[:3])


def install_command(wanted: Sequence[Requirement]) -> str:
    """The command that adds these packages to the running Python; empty if there are none."""
    quoted = " ".join(f"'{requirement.text}'" for requirement in wanted)
    return f"{_python()} -m pip install {quoted}" if wanted else ""


def _python() -> str:
    """The running Python, as you would type it."""
    found = shutil.which("python")
    same = found is not None and os.path.realpath(found) == os.path.realpath(sys.executable)
    inside = found is not None and os.path.dirname(found) == os.path.dirname(sys.executable)
    return "python" if same and inside else sys.executable


def install_hint(extra: str) -> str:
    """How to get what an extra needs, as the hint of an error."""
    try:
        needed = [requirement for requirement in requirements() if requirement.extra == extra]
    except importlib.metadata.PackageNotFoundError:  # run from its sources, not installed
        return f"In the folder of reconpriv's sources: pip install '.[{extra}]'."
    missing = [requirement for requirement in needed if not installed(requirement)[0]]
    return f"Install what is missing (the extra {extra!r}): {install_command(missing or needed)}"


@contextmanager
def needs(extra: str, sentence: str, error: type[ReconprivError] = InputError) -> Iterator[None]:
    """Imports of what an extra brings: without it, this sentence and how to install it."""
    try:
        yield
    except ImportError:
        raise error(sentence, hint=install_hint(extra)) from None

"""What is installed here, what is not, and the command that would add it."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from reconpriv._version import __version__
from reconpriv.datasets import NAMES, dataset_path
from reconpriv.errors import ReconprivError
from reconpriv.extras import Requirement, install_command, installed, requirements

_JAVA = 17
_BROWSERS = ("chromium", "chromium-browser", "google-chrome", "firefox", "microsoft-edge", "open")
_USES = {
    "all": "all of the following",
    "query": "count queries in SQL",
    "report": "reports with charts",
    "studio": "the studio, a local web app",
    "attacks": "the attack on differentially private answers, pictures of attacks",
    "experiments": "the paper's study, with figures",
    "spark": "tables on Spark",
    "formats": "SPSS, Stata, SAS and Excel files",
    "databases": "tables in PostgreSQL",
    "learn": "classifiers and tests of independence from a release",
}
_PACKAGES = {
    # name of the program: Debian's package, Homebrew's
    "java": ("openjdk-17-jre-headless", "openjdk@17"),
    "browser": ("chromium", "--cask chromium"),
}


@dataclass(frozen=True)
class Check:
    """One thing that was looked for: what was found, what it is for, how to add it."""

    part: str
    name: str
    ok: bool
    found: str
    use: str = ""
    add: str = ""


@dataclass(frozen=True)
class Examination:
    """Everything that was looked for."""

    checks: tuple[Check, ...]

    @property
    def healthy(self) -> bool:
        """True if everything that every installation needs is there; extras may be missing."""
        return all(check.ok for check in self.checks if check.part in ("python", "core", "data"))

    def as_dict(self) -> dict[str, Any]:
        """The findings as JSON has them."""
        return {
            "version": __version__,
            "healthy": self.healthy,
            "checks": [asdict(check) for check in self.checks],
        }


def examine() -> Examination:
    """Look at this machine; nothing is installed, nothing is sent anywhere."""
    return Examination((*_machine(), *_core(), *_extras(), _java(), _browser(), *_data()))


def _machine() -> Iterator[Check]:
    newer = "install Python 3.11 or newer and make a new environment"
    supported = sys.version_info[:2] >= (3, 11)
    version = platform.python_version()
    yield Check("python", "Python", supported, version, "3.11 or newer", "" if supported else newer)
    yield Check("machine", "cores", True, str(os.cpu_count() or 1), "threads used by default")
    free = shutil.disk_usage(tempfile.gettempdir()).free
    yield Check(
        "machine", "scratch disk", free > 1 << 30, f"{free / 1e9:,.0f} GB free",
        "where counting spills to when memory runs short", "free some, or point TMPDIR elsewhere",
    )  # fmt: skip


def _core() -> Iterator[Check]:
    for requirement in requirements():
        if requirement.extra is None:
            ok, version = installed(requirement)
            add = "" if ok else install_command([requirement])
            yield Check("core", requirement.name, ok, version, "needed", add)


def _extras() -> Iterator[Check]:
    by_extra: dict[str, list[Requirement]] = {}
    for requirement in requirements():
        if requirement.extra is not None:
            by_extra.setdefault(requirement.extra, []).append(requirement)
    for extra in sorted(by_extra):
        states = [(requirement, *installed(requirement)) for requirement in by_extra[extra]]
        missing = [requirement for requirement, ok, _ in states if not ok]
        found = ", ".join(f"{requirement.name} {version}" for requirement, _, version in states)
        yield Check(
            "extra", extra, not missing, found, _USES.get(extra, ""), install_command(missing)
        )


def _java() -> Check:
    home = os.environ.get("JAVA_HOME")
    program = os.path.join(home, "bin", "java") if home else shutil.which("java")
    ok, found = False, "missing"
    if program and os.path.exists(program):
        ok, found = _java_version(program)
    add = "" if ok else _system("java")
    return Check("system", "Java", ok, found, f"Spark ({_JAVA} or newer)", add)


def _java_version(program: str) -> tuple[bool, str]:
    """Whether it is new enough, and which version it is."""
    try:
        done = subprocess.run(
            [program, "-version"], capture_output=True, text=True, timeout=30, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return False, "does not start"
    version = re.search(r'version "(\d+)([^"]*)"', done.stderr + done.stdout)
    if version is None:
        return False, "of unknown version"
    enough = int(version[1]) >= _JAVA
    return enough, version[1] + version[2] + ("" if enough else ", too old")


def _browser() -> Check:
    found = next((name for name in _BROWSERS if shutil.which(name)), None)
    use = "to look at reports and the studio (any machine's browser will do)"
    add = "" if found else _system("browser")
    return Check("system", "browser", found is not None, found or "missing", use, add)


def _system(name: str) -> str:
    debian, homebrew = _PACKAGES[name]
    if shutil.which("apt-get"):
        sudo = "" if os.access("/var/lib/dpkg", os.W_OK) else "sudo "
        return f"{sudo}apt-get install {debian}"
    return f"brew install {homebrew}" if shutil.which("brew") else f"install {debian}"


def _data() -> Iterator[Check]:
    for name in NAMES:
        try:
            size = f"{dataset_path(name).stat().st_size / 1e6:.1f} MB"
        except (OSError, ReconprivError):
            size = "missing"
        ok = size != "missing"
        add = "" if ok else "install reconpriv again: the installation is incomplete"
        yield Check("data", f"example:{name}", ok, size, "bundled table", add)

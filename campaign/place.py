"""Where a case happens, and the secrets planted there."""

from __future__ import annotations

import hashlib
import shutil
from dataclasses import dataclass
from pathlib import Path

KEY = "5e1fb00c" + "9a7d3c" * 4 + "0123456789abcdef" * 2
"""The key in use; no output may hold it."""

RAW = "Wintersmith-8842"
"""A value of the column ``note``, which no command publishes."""

VAULT = "vault-of-sources"
"""The folder of the tables, whose path no message may hold."""


@dataclass(frozen=True)
class Place:
    """The folders of one case.

    ``vault`` holds the table, ``desk`` is where the command runs and writes, ``scratch`` is its
    TMPDIR, and ``shared`` holds what generators prepared.
    """

    root: Path
    shared: Path

    @property
    def vault(self) -> Path:
        """The folder of the table."""
        return self.root / VAULT

    @property
    def desk(self) -> Path:
        """The folder where the command runs."""
        return self.root / "desk"

    @property
    def scratch(self) -> Path:
        """The folder for temporary files."""
        return self.root / "scratch"

    def make(self) -> None:
        """Make the folders, empty but for the key."""
        shutil.rmtree(self.root, ignore_errors=True)
        for folder in (self.vault, self.desk, self.scratch):
            folder.mkdir(parents=True)
        self.write("my.key", KEY.encode(), mode=0o600)

    def write(self, name: str, content: bytes, mode: int = 0o644) -> Path:
        """A file on the desk."""
        file = self.desk / name
        file.write_bytes(content)
        file.chmod(mode)
        return file

    def source(self, name: str, content: bytes) -> str:
        """A table in the vault, and its path."""
        file = self.vault / name
        file.write_bytes(content)
        return str(file)

    def snapshot(self) -> dict[str, str]:
        """Everything on the desk, in the vault and in scratch, with a digest of each file."""
        found = {}
        for folder in (self.vault, self.desk, self.scratch):
            for path in folder.rglob("*"):
                whole = path.is_file() and not path.is_symlink()
                digest = hashlib.blake2b(path.read_bytes()).hexdigest() if whole else "-"
                found[str(path.relative_to(self.root))] = digest
        return found

"""The folder of a release: its manifest, and where the files that it names are."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from reconpriv.errors import ReleaseError
from reconpriv.release.described import Files
from reconpriv.release.manifest import Manifest


@dataclass(frozen=True)
class ReleaseFolder:
    """A folder with the manifest that it has, or had when it was written."""

    path: Path
    manifest: Manifest

    @classmethod
    def open(cls, path: Path) -> Self:
        """Read and check the manifest; the files are not looked at yet."""
        return cls(path, Manifest.read(path))

    @property
    def data_files(self) -> tuple[Path, ...]:
        """The files of records or cells."""
        return self._paths(self.manifest.data_files)

    @property
    def group_files(self) -> tuple[Path, ...]:
        """The files of groups with their trials; none if trials are not published."""
        return self._paths(self.manifest.group_files)

    @property
    def margin_files(self) -> tuple[Path, ...]:
        """The files of margins; none if there are no margins."""
        margins = self.manifest.margins
        return self._paths(margins.files) if margins else ()

    @property
    def files(self) -> tuple[Path, ...]:
        """All files that the manifest names."""
        return (*self.data_files, *self.group_files, *self.margin_files)

    def _paths(self, files: Files | None) -> tuple[Path, ...]:
        return () if files is None else tuple(self.path / name for name in files.names)

    def check_files(self) -> None:
        """Compare every file with its hash; a release that was changed is refused."""
        margins = self.manifest.margins
        described = (
            self.manifest.data_files,
            self.manifest.group_files,
            margins.files if margins else None,
        )
        hashes = [digest for files in described if files is not None for digest in files.hashes]
        for path, expected in zip(self.files, hashes, strict=True):
            try:
                with path.open("rb") as stream:
                    digest = hashlib.file_digest(stream, "sha256").hexdigest()
            except OSError:
                raise ReleaseError(f"The release lacks its file {path.name}.") from None
            if f"sha256:{digest}" != expected:
                raise ReleaseError(
                    f"The file {path.name} does not match its manifest (hash).",
                    hint="It was changed or damaged; fetch the release again.",
                )

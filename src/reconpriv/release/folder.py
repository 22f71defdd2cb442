"""The folder of a release: its manifest, and the files that it names."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Self

from reconpriv.errors import ReleaseError
from reconpriv.release.manifest import Manifest
from reconpriv.sources.input_files import sha256_of


@dataclass(frozen=True)
class ReleaseFolder:
    """A folder with the manifest that it has, or had when it was written."""

    path: Path
    manifest: Manifest

    @classmethod
    def open(cls, path: Path) -> Self:
        """Read and check the manifest; the files are not looked at yet."""
        return cls(path, Manifest.read(path))

    def paths(self, resource: str) -> tuple[Path, ...]:
        """The files of the data, the groups or the margins; none if the release has none."""
        found = self.manifest.resources.get(resource)
        return () if found is None else tuple(self.path / name for name in found.files.names)

    @property
    def files(self) -> tuple[Path, ...]:
        """All files that the manifest names."""
        return tuple(path for name in self.manifest.resources for path in self.paths(name))

    def check_files(self) -> None:
        """Compare every file with its hash; a release that was changed is refused."""
        described = self.manifest.resources.values()
        hashes = [digest for resource in described for digest in resource.files.hashes]
        for path, expected in zip(self.files, hashes, strict=True):
            try:
                digest = sha256_of(path)
            except OSError:
                raise ReleaseError(f"The release lacks its file {path.name}.") from None
            if f"sha256:{digest}" != expected:
                raise ReleaseError(
                    f"The file {path.name} does not match its manifest (hash).",
                    hint="It was changed or damaged; fetch the release again.",
                )

    def unlike_manifest(self, resource: str, what: str) -> ReleaseError:
        """The error for files with the right hashes that are not what the manifest says."""
        name = self.paths(resource)[0].name
        return ReleaseError(f"The file {name} does not match its manifest ({what}).")

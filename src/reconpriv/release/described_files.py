"""The files of a release as its manifest describes them: the resources of a Data Package."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from reconpriv.engines.base import WrittenFile
from reconpriv.release import json_parts

_MEDIA_TYPES = {"parquet": "application/vnd.apache.parquet", "csv": "text/csv"}


@dataclass(frozen=True)
class Files:
    """The files of one resource, in order, each with its hash; rows and bytes of all of them."""

    names: tuple[str, ...]
    hashes: tuple[str, ...]
    rows: int
    bytes: int

    @classmethod
    def of(cls, written: Sequence[WrittenFile]) -> Self:
        """What was written."""
        return cls(
            tuple(file.name for file in written),
            tuple(f"sha256:{file.sha256}" for file in written),
            sum(file.rows for file in written),
            sum(file.bytes for file in written),
        )

    @classmethod
    def from_dict(cls, resource: Mapping[str, Any]) -> Self:
        """Read a resource; only the names of files count, so none can lie elsewhere."""
        path = resource["path"]
        paths = [path] if isinstance(path, str) else path
        hashes = [resource["hash"]] if isinstance(path, str) else resource["reconpriv:hashes"]
        if not paths or len(paths) != len(hashes) or resource["format"] not in _MEDIA_TYPES:
            raise ValueError
        if any("\0" in one for one in paths):  # which no file can be called
            raise ValueError
        return cls(
            tuple(Path(one).name for one in paths),
            tuple(json_parts.text(digest) for digest in hashes),
            json_parts.count(resource["rows"]),
            resource.get("bytes", 0),
        )

    def as_dict(self, name: str, file_format: str, fields: list[dict[str, Any]]) -> dict[str, Any]:
        """The resource of a Data Package."""
        one = len(self.names) == 1
        described: dict[str, Any] = {
            "name": name,
            "type": "table",
            "path": self.names[0] if one else list(self.names),
            "format": file_format,
            "mediatype": _MEDIA_TYPES[file_format],
            "bytes": self.bytes,
            "rows": self.rows,
            "schema": {"fields": fields},
        }
        # A Data Package knows one hash per resource; several files have a list of our own.
        hashes = {"hash": self.hashes[0]} if one else {"reconpriv:hashes": list(self.hashes)}
        return described | hashes

"""What a manifest says about files and margins, read into the types that it must have.

Whatever is damaged is a ValueError, KeyError or TypeError, which the reader of manifests turns
into one sentence.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Self

from reconpriv.columns.schema import Column
from reconpriv.engines.base import WrittenFile
from reconpriv.policy.margin_settings import NEIGHBOURS, NO_MARGINS, Margins
from reconpriv.protect.margins.planned import DescribedTable

_MEDIA_TYPES = {"parquet": "application/vnd.apache.parquet", "csv": "text/csv"}
_NAMES = ("table", "count")
_PRIVACY = ("rho", "epsilon", "delta", "variance")


def as_number(value: Any) -> float:
    """A number, but not true or false."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError
    return value


def as_count(value: Any) -> int:
    """A whole number from 0 on."""
    if type(value) is not int or value < 0:
        raise ValueError
    return value


def as_text(value: Any) -> str:
    """A text."""
    if not isinstance(value, str):
        raise ValueError
    return value


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
        known = resource["format"] in _MEDIA_TYPES
        nameless = any("\0" in one for one in paths)  # no file can be called that
        if not paths or len(paths) != len(hashes) or nameless or not known:
            raise ValueError
        return cls(
            tuple(Path(one).name for one in paths),
            tuple(as_text(digest) for digest in hashes),
            as_count(resource["rows"]),
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


NO_FILES = Files((), (), 0, 0)


class Resource(NamedTuple):
    """A part of a release: its files, its columns as stored, and which of them the table lacks."""

    files: Files
    columns: list[Column]
    added: tuple[str, ...] = ()


@dataclass(frozen=True)
class DescribedMargins:
    """The margins of a release: their privacy, their noise, their tables and their files.

    Without a table they are those of a release that has none, false as a condition.

    ``names`` are those of the two columns that hold the name of a table and a noisy count.
    """

    rho: float = 0.0
    epsilon: float = 0.0
    delta: float = 0.0
    variance: float = 0.0
    tables: tuple[DescribedTable, ...] = ()
    names: tuple[str, str] = _NAMES
    files: Files = NO_FILES

    def __bool__(self) -> bool:
        """True if any table is published."""
        return bool(self.tables)

    @classmethod
    def from_dict(cls, said: Mapping[str, Any], files: Files) -> Self:
        """Read the block; a ValueError, KeyError or TypeError if it is damaged."""
        tables = tuple(
            DescribedTable(
                as_text(one["name"]),
                tuple(as_text(name) for name in one["columns"]),
                as_count(one["rows"]),
                as_count(one["left_out"]),
            )
            for one in said["tables"]
        )
        table, count = (as_text(said["columns"][name]) for name in _NAMES)
        rho, epsilon, delta, variance = (as_number(said[name]) for name in _PRIVACY)
        empty = not tables or not all(one.columns and one.rows for one in tables)
        if empty or not min(rho, epsilon, delta, variance) > 0:
            raise ValueError
        return cls(rho, epsilon, delta, variance, tables, (table, count), files)

    @property
    def wanted(self) -> Margins:
        """What a policy says to get them."""
        if not self.tables:
            return NO_MARGINS
        tables = [table.columns for table in self.tables]
        return Margins(rho=self.rho, delta=self.delta, tables=tables)

    def as_dict(self) -> dict[str, Any]:
        """The block in the manifest."""
        return {
            **{name: getattr(self, name) for name in _PRIVACY},
            "neighbours": NEIGHBOURS,
            "tables": [table.as_dict() for table in self.tables],
            "columns": dict(zip(_NAMES, self.names, strict=True)),
        }


NO_MARGIN_FILES = DescribedMargins()

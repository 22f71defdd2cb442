"""The files that can be read: one registry of formats, with their endings and how to open them.

A format without an opener is one that the engines read themselves. Nothing heavy is imported until
a file is opened, so help and completion are quick.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from reconpriv.errors import InputError
from reconpriv.registry import Registry

if TYPE_CHECKING:
    from reconpriv.sources.lazy import LazyTable

GZIP = ".gz"


@dataclass(frozen=True)
class Opening:
    """What an opener is given besides the files.

    ``scratch`` makes a private folder; ``table`` names a sheet; ``labels`` says what becomes of
    value labels.
    """

    scratch: Callable[[], Path]
    table: str | None
    labels: str


Opener = Callable[[Sequence[str], Opening], "LazyTable"]


@dataclass(frozen=True)
class Format:
    """A kind of file: what it is called, how its files end, and what can be done with it.

    ``gzip``: also compressed, with an additional ending. ``local`` and ``distributed``: whether
    engines on one machine and on many can read it. ``has_sheets`` and ``has_labels``: whether a
    sheet can be chosen, and value labels applied.
    """

    name: str
    label: str
    endings: tuple[str, ...]
    open: Opener | None = None
    gzip: bool = False
    local: bool = True
    distributed: bool = False
    has_sheets: bool = False
    has_labels: bool = False


def _opener(module: str, function: str) -> Opener:
    """The opener of that name, imported when a file is opened."""

    def opened(files: Sequence[str], how: Opening) -> LazyTable:
        found: LazyTable = getattr(import_module(module, __package__), function)(files, how)
        return found

    return opened


_open_statistical = _opener(".statistical.read", "open_statistical")
_open_excel = _opener(".excel", "open_excel")
_EXCEL = (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods")

_EXCEL = (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods")

FORMATS = Registry(
    "file format",
    (
        Format("parquet", "Parquet", (".parquet", ".pq"), distributed=True),
        Format("csv", "CSV", (".csv", ".tsv", ".txt"), gzip=True, distributed=True),
        Format("json", "JSON lines", (".jsonl", ".ndjson", ".json"), gzip=True),
        Format("arrow", "Arrow", (".arrow", ".feather", ".ipc")),
        Format("orc", "ORC", (".orc",), local=False, distributed=True),
        Format("spss", "SPSS", (".sav", ".zsav", ".por"), _open_statistical, has_labels=True),
        Format("stata", "Stata", (".dta",), _open_statistical, has_labels=True),
        Format("sas", "SAS", (".sas7bdat", ".xpt", ".xport"), _open_statistical, has_labels=True),
        Format("excel", "Excel", _EXCEL, _open_excel, has_sheets=True),
    ),
    InputError,
)


def ending_of(path: str) -> str:
    """How the name of a file ends, in lower case and without the suffix for compression."""
    return Path(Path(path).name.lower().removesuffix(GZIP)).suffix


def format_of(path: str) -> Format | None:
    """The format that the name of a file stands for."""
    ending = ending_of(path)
    return next((one for one in FORMATS.values() if ending in one.endings), None)


def local_formats() -> list[Format]:
    """The formats that are read on one machine."""
    return [one for one in FORMATS.values() if one.local]


def distributed_formats() -> list[Format]:
    """The formats that are read on many machines."""
    return [one for one in FORMATS.values() if one.distributed]


def with_endings(formats: Iterable[Format]) -> list[str]:
    """Each format with its endings, for a message."""
    return [
        f"{one.label} ({', '.join([*one.endings, *(['also ' + GZIP] if one.gzip else [])])})"
        for one in formats
    ]


def upload_endings() -> list[str]:
    """The endings of all files that are read on one machine, the compressed ones included."""
    return [*(ending for one in local_formats() for ending in one.endings), GZIP]

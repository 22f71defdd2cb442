"""Which inputs are databases. A URL may hold a password, so nothing of one is ever shown."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from reconpriv.errors import InputError, MissingFileError
from reconpriv.messages.redaction import URL, shown_file

POSTGRESQL = "postgresql"
SQLITE = "sqlite"
DUCKDB = "duckdb"

_SHOWN = {POSTGRESQL: "a PostgreSQL database", SQLITE: "a SQLite file", DUCKDB: "a DuckDB file"}
_SCHEMES = {"postgresql": POSTGRESQL, "postgres": POSTGRESQL, "sqlite": SQLITE, "duckdb": DUCKDB}
_ENDINGS = {
    ".sqlite": SQLITE, ".sqlite3": SQLITE, ".db": None, ".duckdb": DUCKDB, ".ddb": DUCKDB,
}  # fmt: skip
_MAGIC = ((0, b"SQLite format 3\0", SQLITE), (8, b"DUCK", DUCKDB))


def is_database_url(source: Any) -> bool:
    """True if this is the URL of a database."""
    found = URL.match(os.fspath(source)) if isinstance(source, str | os.PathLike) else None
    return found is not None and found["scheme"].lower() in _SCHEMES


def is_database(source: Any) -> bool:
    """True if this is the URL of a database, or a file that is named like one."""
    if not isinstance(source, str | os.PathLike):
        return False
    return is_database_url(source) or Path(source).suffix.lower() in _ENDINGS


def shown_database(source: str | os.PathLike[str]) -> str:
    """A database in words that give nothing away."""
    return _SHOWN[database_kind(source, must_exist=False)]


def has_password(source: Any) -> bool:
    """True if the URL of a database holds a password."""
    if not is_database_url(source):
        return False
    url = os.fspath(source)
    return re.search(r":/+[^/@?#]*:[^/@]+@", url) is not None or "password=" in url


def database_kind(source: str | os.PathLike[str], *, must_exist: bool = True) -> str:
    """Which kind of database this is; a file's content counts more than its name."""
    found = URL.match(os.fspath(source))
    if found is not None:
        return _SCHEMES[found["scheme"].lower()]
    path = Path(source)
    kind = None
    if path.is_file():
        try:
            with path.open("rb") as stream:
                head = stream.read(32)
        except OSError as error:
            raise InputError(f"{shown_file(path)} cannot be read: {error.strerror}.") from None
        kinds = (kind for at, magic, kind in _MAGIC if head[at : at + len(magic)] == magic)
        kind = next(kinds, None)
    elif must_exist:
        raise MissingFileError(
            f"There is no file {shown_file(path)!r}.", hint="Check the name and the folder."
        )
    if kind is None and must_exist:
        raise InputError(
            f"{shown_file(path)} is neither a SQLite nor a DuckDB database.",
            hint="It may be empty, damaged or encrypted.",
        )
    return kind or _ENDINGS[path.suffix.lower()] or SQLITE


def database_file(source: str | os.PathLike[str]) -> Path:
    """The file that a path or a URL such as sqlite:///people.sqlite names."""
    text = os.fspath(source)
    found = URL.match(text)
    if found is None:
        return Path(text)
    path = re.fullmatch(r"[A-Za-z]+:(?:///|/(?!/))(.+)", text, re.DOTALL)
    if path is None:
        raise InputError(
            "The URL names no file.", hint=f"Write {found['scheme']}:///people.db, or a path."
        )
    return Path(path[1])


def postgresql_url(source: str | os.PathLike[str]) -> str:
    """The URL as libpq wants it, with a limit on how long to try to connect."""
    text = os.fspath(source)
    url = text if "://" in text else text.replace(":/", "://", 1)
    elsewhere = {"PGCONNECT_TIMEOUT", "PGSERVICE"} & set(os.environ)
    if "connect_timeout=" in url or "service=" in url or elsewhere:
        return url
    return f"{url}{'&' if '?' in url else '?'}connect_timeout=30"

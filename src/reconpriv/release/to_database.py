"""Loading a release into a database: records, groups, margins and manifest, or nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from reconpriv.columns.schema import Column
from reconpriv.errors import OutputError
from reconpriv.messages.remedies import REPLACE, Advice, Control, Remedy
from reconpriv.release.folder import ReleaseFolder
from reconpriv.release.manifest import DATA, GROUPS, MARGINS, resource_names
from reconpriv.sources.databases.table_names import parse_table_name, shown_name
from reconpriv.sources.databases.url import POSTGRESQL, database_kind, is_database, shown_database
from reconpriv.writing.marker import MANIFEST

if TYPE_CHECKING:
    from reconpriv.sources.databases.write import DatabaseWriter

_SUFFIX_OF = {DATA: "", GROUPS: "_groups", MARGINS: "_margins"}
_SUFFIXES = (*_SUFFIX_OF.values(), "_manifest")


@dataclass(frozen=True)
class DatabaseTarget:
    """A database and the name of the tables to make in it. The database is never shown."""

    database: str
    name: str

    def __repr__(self) -> str:
        """Without the database: its URL may hold a password."""
        return f"<tables {self.name} in {shown_database(self.database)}>"


def database_target(database: str, name: str) -> DatabaseTarget:
    """Check that this is a database and a name."""
    if not is_database(database):
        raise OutputError(
            "Tables can only be made in a database.",
            hint=Advice(
                Remedy("name one with {}", Control.DATABASE),
                "It is postgresql://…, a .sqlite or a .duckdb file.",
            ),
        )
    parse_table_name(name)
    return DatabaseTarget(database, name)


def check_database_target(target: DatabaseTarget, *, overwrite: bool) -> None:
    """Refuse, before any work is done, a database that will not take the tables."""
    with _transaction(target) as work:
        work.check_free(overwrite=overwrite)


def load_release(folder: Path, target: DatabaseTarget, *, overwrite: bool) -> tuple[str, ...]:
    """Make the tables of a release in one transaction; return their names."""
    stored = ReleaseFolder.open(folder)
    with _transaction(target) as work:
        for table in work.check_free(overwrite=overwrite):
            work.writer.drop(table)
        made = [
            work.create(_SUFFIX_OF[name], stored.paths(name), resource.columns)
            for name, resource in stored.manifest.resources.items()
        ]
        text = (folder / MANIFEST).read_text(encoding="utf-8")
        manifest = pa.table({"manifest": pa.array([text], pa.string())})
        work.writer.create(work.names["_manifest"], manifest.to_reader())
        made.append(work.shown("_manifest"))
        work.writer.commit()
    return tuple(made)


@dataclass(frozen=True)
class _Work:
    """A transaction, and what its tables are called."""

    writer: DatabaseWriter
    schema: str | None
    names: dict[str, str]

    def shown(self, suffix: str) -> str:
        name = shown_name(self.names[suffix])
        return name if self.schema is None else f"{shown_name(self.schema)}.{name}"

    def check_free(self, *, overwrite: bool) -> list[str]:
        """The tables of an earlier release to be dropped; refuse to touch any other."""
        longest = self.writer.longest_name
        for name in sorted(self.names.values(), key=len, reverse=True):
            if longest is not None and len(name.encode()) > longest:
                raise OutputError(
                    f"The name of table {name} is too long for the database.",
                    hint=f"At most {longest} bytes are allowed, with the {_SUFFIXES[-1]} at its end"
                    " included; choose a shorter one.",
                )
        there = {suffix: name for suffix, name in self.names.items() if self.writer.exists(name)}
        if not there:
            return []
        if not overwrite:
            raise OutputError(
                f"The table {self.shown(next(iter(there)))} exists already.", hint=REPLACE
            )
        texts = self.writer.texts(there["_manifest"]) if "_manifest" in there else []
        ours = _tables_of_manifest(texts)
        foreign = next((suffix for suffix in there if suffix not in ours), None)
        if foreign is not None:
            what = "is not a release" if not ours else "is not part of the release there"
            raise OutputError(
                f"The table {self.shown(foreign)} exists and {what}; it will not be replaced.",
                hint="Choose another name, or remove it yourself.",
            )
        return list(there.values())

    def create(self, suffix: str, files: Sequence[Path], columns: list[Column]) -> str:
        from reconpriv.engines.local import LocalEngine  # noqa: PLC0415 - no engine until used

        with closing(LocalEngine(list(files), columns=columns)) as engine:
            self.writer.create(self.names[suffix], engine.to_reader())
        return self.shown(suffix)


@contextmanager
def _transaction(target: DatabaseTarget) -> Iterator[_Work]:
    from reconpriv.sources.databases.write import open_writer  # noqa: PLC0415 - not until used

    parsed = parse_table_name(target.name)
    folds = database_kind(target.database, must_exist=False) == POSTGRESQL
    schema, name = (
        (parsed.folded_schema, parsed.folded_table) if folds else (parsed.schema, parsed.table)
    )
    with closing(open_writer(target.database, schema)) as writer:
        yield _Work(writer, schema, {suffix: name + suffix for suffix in _SUFFIXES})


def _tables_of_manifest(texts: list[str]) -> list[str]:
    """Which tables, by their suffixes, the manifest of a release says are its own."""
    names = resource_names(texts[0]) if len(texts) == 1 else set()
    found = [suffix for name, suffix in _SUFFIX_OF.items() if name in names]
    return [*found, "_manifest"] if found else []

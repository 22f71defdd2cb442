"""The part of `publish` that loads a release into a database."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from reconpriv.cli.options import shared as opt
from reconpriv.errors import PolicyError

if TYPE_CHECKING:
    from reconpriv.release.release import Release
    from reconpriv.release.to_database import DatabaseTarget


@dataclass
class Loading:
    """Loads a release from its folder before that is put in place, and remembers the tables."""

    target: DatabaseTarget
    overwrite: bool
    keeps_folder: bool
    tables: tuple[str, ...] = field(default=())

    def __call__(self, folder: Path) -> None:
        """Load the release."""
        from reconpriv.release.to_database import load_release

        self.tables = load_release(folder, self.target, overwrite=self.overwrite)

    def loaded(self, release: Release) -> Release:
        """The release with its tables; without a folder, they are its location."""
        from reconpriv.sources.databases.url import shown_database

        found = replace(release, tables=self.tables)
        if self.keeps_folder:
            return found
        return replace(found, uri=f"{self.tables[0]} in {shown_database(self.target.database)}")


def begin_loading(
    source: str, to: str | None, name: str | None, out: str | None, *, overwrite: bool
) -> Loading | None:
    """What --to-table and --to ask for; refused before any work is done."""
    from reconpriv.release.to_database import check_database_target, database_target
    from reconpriv.sources.databases.url import is_database

    if name is None:
        if to is not None:
            raise PolicyError("--to needs --to-table NAME.")
        if out is None:
            raise PolicyError(
                "Where should the release go?", hint="Give a folder OUT, or --to-table NAME."
            )
        return None
    if to is None and not is_database(source):
        raise PolicyError(
            "Which database should --to-table load into?",
            hint="Name it with --to: postgresql://…, a .sqlite or a .duckdb file.",
        )
    if to is not None:
        opt.warn_of_password(to)
    target = database_target(to if to is not None else source, name)
    check_database_target(target, overwrite=overwrite)
    return Loading(target, overwrite, keeps_folder=out is not None)

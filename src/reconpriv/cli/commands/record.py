"""The command `record`: what a disclosure review asks for, in one file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from reconpriv.cli.options import shared as opt
from reconpriv.cli.options.declared import argument, declared_in, option, taking
from reconpriv.cli.options.table import TableOptions
from reconpriv.cli.process.completion import tables
from reconpriv.cli.process.output import Printed, say_all
from reconpriv.cli.process.progress import ticking
from reconpriv.errors import InputError, PolicyError
from reconpriv.messages.redaction import shown_path

# How the table is read, where the release does not say it.
_READ = (
    "person", "rows_per_person", "sql", "table", "labels", "threads", "memory", "engine", "master"
)  # fmt: skip


@taking(
    left_out=[name for name in declared_in(TableOptions) if name not in ("source", *_READ)],
    instead={
        "source": argument(
            "TABLE|RELEASE",
            "The table that the release was made from, as for publish; or a release folder alone,"
            " for what the release itself shows.",
            autocompletion=tables,
        )
    },
)
def record(
    table: TableOptions,
    release: Path | None = argument("RELEASE", "With TABLE: the release folder.", None),
    *,
    out: Path | None = option("-o, --out FILE", "Write the record to this JSON file (mode 0600)."),
    overwrite: bool = opt.OVERWRITE,
    key: Path | None = option(
        "--key FILE", "The key of the release, whose ledger is then looked up."
    ),
) -> Any:
    """Write everything a disclosure review asks for: roles, policy, promise, checks, hashes.

    Of the raw table: unique records, records in small groups, l-diversity,
    t-closeness, giveaways and rows per person. Roles, bins and policy are those of
    the release, which is compared with the table. Such a record is internal: it
    holds no data, but figures of the raw table.
    """
    from reconpriv.release.record import check_record
    from reconpriv.writing.marker import is_release

    if overwrite and out is None:
        raise PolicyError("--overwrite needs -o.")
    if out is not None:
        check_record(out, overwrite=overwrite)
    source = table.source
    if is_release(Path(source)):
        if release is not None:
            raise InputError(
                f"{shown_path(source)} is a release.",
                hint="Give the table first, then its release.",
            )
        for given, _ in table.parts():
            raise PolicyError(f"{given} is about a table, and there is only a release.")
        made = opt.open_with_warnings(Path(source)).record(key=key)
    elif release is None:
        raise InputError(
            f"{shown_path(source)} is not a release.",
            hint="Give the folder of a release, or a table and the folder of its release.",
        )
    else:
        made = _of_table(table, release, key)
    if out is None:
        return made
    made.save(out, overwrite=overwrite)
    found = {"file": str(out), "audience": made.audience}
    return Printed(found, f"Record written to {shown_path(out)} ({made.audience}, mode 0600).")


def _of_table(options: TableOptions, release: Path, key: Path | None) -> Any:
    from reconpriv.reading import read_as_published

    opened = opt.open_with_warnings(release)
    opt.warn_of_password(options.source)
    how = {name: getattr(options, name) for name in _READ}
    with ticking() as bar, read_as_published(options.source, opened, **how) as table:
        bar.records = table.schema.records
        made = table.record(opened, key=key)
    say_all("warning", table.warnings)
    return made

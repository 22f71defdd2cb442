"""The command `record`: what a disclosure review asks for, in one file."""

from __future__ import annotations

import contextlib
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

_TABLE: dict[str, Any] = dict(declared_in(TableOptions))


@taking()
def record(
    source: str = argument(
        "TABLE|RELEASE",
        "The table that the release was made from, as for publish; or a release folder alone, for"
        " what the release itself shows.",
        autocompletion=tables,
    ),
    release: Path | None = argument("RELEASE", "With TABLE: the release folder.", None),
    *,
    out: Path | None = option("-o, --out FILE", "Write the record to this JSON file (mode 0600)."),
    overwrite: bool = opt.OVERWRITE,
    key: Path | None = option(
        "--key FILE", "The key of the release, whose ledger is then looked up."
    ),
    person: str | None = _TABLE["person"],
    rows_per_person: str = _TABLE["rows_per_person"],
    sql: str | None = _TABLE["sql"],
    table: str | None = _TABLE["table"],
    labels: str = _TABLE["labels"],
    threads: int | None = _TABLE["threads"],
    memory: str | None = _TABLE["memory"],
    engine: str | None = _TABLE["engine"],
    master: str | None = _TABLE["master"],
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
    how = {
        "person": person,
        "rows_per_person": rows_per_person,
        "sql": sql,
        "table": table,
        "labels": labels,
        "threads": threads,
        "memory": memory,
        "engine": engine,
        "master": master,
    }
    if is_release(Path(source)):
        if release is not None:
            raise InputError(
                f"{shown_path(source)} is a release.",
                hint="Give the table first, then its release.",
            )
        given = [name for name, value in how.items() if value != _TABLE[name].default]
        if given:
            option_ = f"--{given[0].replace('_', '-')}"
            raise PolicyError(f"{option_} is about a table, and there is only a release.")
        made = opt.open_with_warnings(Path(source)).record(key=key)
    elif release is None:
        raise InputError(
            f"{shown_path(source)} is not a release.",
            hint="Give the folder of a release, or a table and the folder of its release.",
        )
    else:
        made = _of_table(source, release, key, how)
    if out is None:
        return made
    made.save(out, overwrite=overwrite)
    found = {"file": str(out), "audience": made.audience}
    return Printed(found, f"Record written to {shown_path(out)} ({made.audience}, mode 0600).")


def _of_table(source: str, release: Path, key: Path | None, how: dict[str, Any]) -> Any:
    from reconpriv.reading import read_as_published

    opened = opt.open_with_warnings(release)
    opt.warn_of_password(source)
    with ticking() as bar, contextlib.closing(read_as_published(source, opened, **how)) as table:
        bar.records = table.schema.records
        made = table.record(opened, key=key)
    say_all("warning", table.warnings)
    return made

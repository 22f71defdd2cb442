"""The command that writes a release: publish."""

from __future__ import annotations

import contextlib
from pathlib import Path

from reconpriv.cli.options import shared as opt
from reconpriv.cli.options.accepting import AcceptOptions
from reconpriv.cli.options.declared import argument, option, taking
from reconpriv.cli.options.policy import PolicyOptions
from reconpriv.cli.options.table import TableOptions
from reconpriv.cli.process.output import give, say_all
from reconpriv.cli.process.progress import ticking
from reconpriv.errors import PolicyError

_SQL_NOTE = (
    "reconpriv cannot know what --sql did to a column: if it was binned there, it is counted"
    " by the values it has now. Declare bins with --bin instead."
)


@taking(TableOptions, PolicyOptions, AcceptOptions)
def publish(
    table: TableOptions,
    out: str | None = argument(
        "OUT",
        "The release folder to create (with Spark, also a URI); not needed with --to-table.",
        None,
    ),
    *,
    policy_options: PolicyOptions,
    key: Path | None = option(
        "--key FILE", "The secret key (from reconpriv keygen); by default a fresh one."
    ),
    test_key: bool = option(
        "--test-key", "Use a key that everybody knows, for tests and examples.", False
    ),
    file_format: str = option(
        "--format parquet|csv|cells",
        "Records as Parquet or CSV, or cells with their counts (Parquet).",
        "parquet",
    ),
    overwrite: bool = option(
        "--overwrite", "Replace OUT if it is a release, and the report.", False
    ),
    to_table: str | None = option(
        "--to-table NAME", "Load the release into this table of a database (or schema.table)."
    ),
    to: str | None = option(
        "--to DATABASE",
        "With --to-table: postgresql://…, a SQLite or DuckDB file; by default the database of"
        " TABLE.",
    ),
    accept: AcceptOptions,
    second_sample: bool = option(
        "--second-sample",
        "Publish although this gives adversaries a second sample of a table that the key's ledger"
        " knows.",
        False,
    ),
    role_change: bool = option(
        "--role-change",
        "Publish although the key's ledger knows a column in another role (sensitive then, public"
        " now, or the reverse).",
        False,
    ),
    report_file: Path | None = opt.INTERNAL_REPORT,
    json: bool = opt.JSON,
) -> None:
    """Write a release whose groups resist reconstruction to the extent the policy requires."""
    with contextlib.ExitStack() as stack:
        from reconpriv.cells.randomness import Key
        from reconpriv.cli.commands.loading import begin_loading
        from reconpriv.release.publication import check_format
        from reconpriv.sources.databases.url import is_database_url
        from reconpriv.writing.folder import check_folder, is_uri
        from reconpriv.writing.scratch import temporary

        if key is not None and test_key:
            raise PolicyError("Give either --key or --test-key, not both.")
        policy = policy_options.chosen()
        policy.check_sampling()
        check_format(file_format)
        accepted = accept.chosen()
        loading = begin_loading(table.source, to, to_table, out, overwrite=overwrite)
        if out is None:
            out = str(stack.enter_context(temporary()) / "release")
        if not is_uri(out):
            check_folder(Path(out), overwrite=overwrite)
        elif is_database_url(out) or not table.writes_to_uri():
            raise PolicyError(
                "Only Spark writes a release to a URI.",
                hint="Give a folder on this machine, or use --engine spark; to load it into a"
                " database, use --to-table.",
            )
        if report_file is not None:
            from reconpriv.reports.internal import check_internal

            check_internal(report_file, overwrite=overwrite, out=None if is_uri(out) else Path(out))
        secret = Key.test() if test_key else Key.from_file(key) if key is not None else None
        with ticking() as bar, contextlib.closing(table.open()) as opened:
            bar.records = opened.schema.records
            suited = policy_options.on(policy, opened.schema)
            policy = suited.policy
            release = opened.publish(
                policy,
                out,
                key=secret,
                file_format=file_format,
                overwrite=overwrite,
                **accepted,
                second_sample=second_sample,
                role_change=role_change,
                progress=bar,
                also=loading,
            )
            if report_file is not None:
                opened.report(
                    policy,
                    report_file,
                    release=release,
                    source=table.name,
                    overwrite=overwrite,
                    **accepted,
                    progress=bar,
                )
        if loading is not None:
            release = loading.loaded(release)
        say_all("warning", release.warnings)
        say_all(
            "note", [*suited.notes, *release.notes, *([_SQL_NOTE] if table.sql is not None else [])]
        )
        give(release, json=json)

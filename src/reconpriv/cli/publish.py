"""The command that writes a release: publish."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Annotated

import typer

from reconpriv.cli import options as opt
from reconpriv.cli.accept_options import NOTHING_ACCEPTED, AcceptOptions
from reconpriv.cli.choices import one_of
from reconpriv.cli.margin_options import NO_MARGINS, MarginOptions
from reconpriv.cli.output import reported, say_all, show, show_json
from reconpriv.cli.policy_options import NO_POLICY, PolicyOptions
from reconpriv.cli.progress import ticking
from reconpriv.cli.protect_options import NO_PROTECTION, ProtectOptions
from reconpriv.cli.table_options import TableOptions, taking_table
from reconpriv.errors import PolicyError

_SQL_NOTE = (
    "reconpriv cannot know what --sql did to a column: if it was binned there, it is counted"
    " by the values it has now. Declare bins with --bin instead."
)


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    example = (
        "reconpriv keygen my.key && reconpriv publish example:adult release/ -s occupation"
        " --public age,sex,race --missing value --key my.key"
    )
    app.command(rich_help_panel=opt.PUBLISHER, epilog=opt.EXAMPLE + example)(publish)


@taking_table(engines=True)
def publish(
    table: TableOptions,
    out: Annotated[
        str | None,
        typer.Argument(
            metavar="OUT",
            help="The release folder to create (with Spark, also a URI); not needed with"
            " --to-table.",
            show_default=False,
        ),
    ] = None,
    policy_options: PolicyOptions = NO_POLICY,
    margins: MarginOptions = NO_MARGINS,
    protect: ProtectOptions = NO_PROTECTION,
    key: Annotated[
        Path | None,
        typer.Option(
            "--key",
            metavar="FILE",
            help="The secret key (from reconpriv keygen); by default a fresh one.",
        ),
    ] = None,
    test_key: Annotated[
        bool,
        typer.Option("--test-key", help="Use a key that everybody knows, for tests and examples."),
    ] = False,
    file_format: Annotated[
        str,
        typer.Option(
            "--format",
            metavar="parquet|csv|cells",
            autocompletion=one_of("parquet", "csv", "cells"),
            help="Records as Parquet or CSV, or cells with their counts (Parquet).",
        ),
    ] = "parquet",
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace OUT if it is a release, and the report.")
    ] = False,
    to_table: Annotated[
        str | None,
        typer.Option(
            "--to-table",
            metavar="NAME",
            help="Load the release into this table of a database (or schema.table).",
        ),
    ] = None,
    to: Annotated[
        str | None,
        typer.Option(
            "--to",
            metavar="DATABASE",
            help="With --to-table: postgresql://…, a SQLite or DuckDB file; by default the"
            " database of TABLE.",
        ),
    ] = None,
    accept: AcceptOptions = NOTHING_ACCEPTED,
    second_sample: Annotated[
        bool,
        typer.Option(
            "--second-sample",
            help="Publish although this gives adversaries a second sample of a table that the key's"
            " ledger knows.",
        ),
    ] = False,
    role_change: Annotated[
        bool,
        typer.Option(
            "--role-change",
            help="Publish although the key's ledger knows a column in another role (sensitive"
            " then, public now, or the reverse).",
        ),
    ] = False,
    report_file: opt.InternalReport = None,
    json: opt.Json = False,
) -> None:
    """Write a release whose groups resist reconstruction to the extent the policy requires."""
    with reported(), contextlib.ExitStack() as stack:
        from reconpriv.cli.loading import begin_loading, temporary_release
        from reconpriv.core.randomness import Key
        from reconpriv.release.publication import check_format
        from reconpriv.sources.databases.url import is_database_url
        from reconpriv.writing.folder import check_folder, is_uri

        if key is not None and test_key:
            raise PolicyError("Give either --key or --test-key, not both.")
        policy = policy_options.chosen(margins.chosen(), protect.chosen())
        policy.check_sampling()
        check_format(file_format)
        accepted = accept.chosen()
        loading = begin_loading(table.source, to, to_table, out, overwrite=overwrite)
        if out is None:
            out = str(stack.enter_context(temporary_release()))
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
            suited = policy_options.on(policy, opened.schema, margins)
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
        if json:
            show_json(release.as_dict())
        else:
            from reconpriv.show.release import release_view

            show(release_view(release))

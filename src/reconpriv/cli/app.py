"""The commands."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from reconpriv._version import __version__
from reconpriv.cli import (
    analyst,
    attack,
    crosstab,
    doctor,
    learning,
    ledger,
    regression,
    studio,
    study,
    tune,
)
from reconpriv.cli import options as opt
from reconpriv.cli.choices import Command, one_of
from reconpriv.cli.margin_options import NO_MARGINS, MarginOptions
from reconpriv.cli.output import (
    EXIT_NOT_PRIVATE,
    reported,
    say_all,
    show,
    show_json,
)
from reconpriv.cli.policy_options import NO_POLICY, PolicyOptions
from reconpriv.cli.progress import ticking
from reconpriv.cli.protect_options import NO_PROTECTION, ProtectOptions
from reconpriv.cli.remedy_words import option_words
from reconpriv.cli.streams import echo
from reconpriv.cli.table_options import TableOptions, taking_table
from reconpriv.cli.usage import Commands
from reconpriv.errors import PolicyError
from reconpriv.messages.redaction import shown_path

if TYPE_CHECKING:
    from reconpriv.policy import Policy
    from reconpriv.table import Table, Watcher

_ROOT_NOTES = """[bold]Start here[/bold]

reconpriv demo
reconpriv audit TABLE -s COLUMN
reconpriv COMMAND --help

[bold]Exit status[/bold]

0  done
1  audit: a group is not private, or a column is nearly unique;
   tune: no setting reaches the target; doctor: something needed is missing;
   ledger: a line is torn or was edited
2  bad input; nothing was written
70  a bug
129, 130, 143  interrupted; nothing unfinished was left behind

[bold]Environment[/bold]

TMPDIR  where counting spills to when memory runs short
RECONPRIV_DEBUG=1  show tracebacks, which may quote the table
NO_COLOR=1  plain text
XDG_CACHE_HOME  where the script of the charts is kept for the next report
"""

app = typer.Typer(
    name="reconpriv",
    cls=Commands,
    help="Publish a table with one sensitive column: groups resist reconstruction, counts stay"
    " accurate.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=_ROOT_NOTES,
)


_SQL_NOTE = (
    "reconpriv cannot know what --sql did to a column: if it was binned there, it is counted"
    " by the values it has now. Declare bins with --bin instead."
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"reconpriv {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    del version


def _example(text: str) -> str:
    return "[bold]Example[/bold]\n\n" + text


@app.command(
    rich_help_panel=opt.PUBLISHER,
    epilog=_example(
        "reconpriv audit example:adult -s occupation --public age,sex,race --missing value"
    ),
)
@taking_table(engines=True, unattainable=False)
def audit(
    table: TableOptions,
    policy_options: PolicyOptions = NO_POLICY,
    margins: MarginOptions = NO_MARGINS,
    protect: ProtectOptions = NO_PROTECTION,
    worst: Annotated[
        int, typer.Option("--worst", min=0, help="How many of the worst groups to show.")
    ] = 10,
    groups: Annotated[
        Path | None,
        typer.Option(
            "--groups",
            metavar="FILE",
            help="Also write every group with its verdict to this .parquet or .csv file"
            " (internal).",
        ),
    ] = None,
    exact_tails: Annotated[
        bool,
        typer.Option("--exact-tails", help="With --groups: add the exact tails of every group."),
    ] = False,
    k: Annotated[
        int, typer.Option("--k", min=2, help="Also count the records in groups smaller than this.")
    ] = 5,
    columns: Annotated[
        bool | None,
        typer.Option(
            "--columns/--no-columns",
            help="Show the audit without each public column in turn; on by default up to a"
            " million cells.",
            show_default=False,
        ),
    ] = None,
    keep_identifier: opt.KeepIdentifier = None,
    report_file: opt.InternalReport = None,
    json: opt.Json = False,
) -> None:
    """Check for groups that could be reconstructed, unique records and nearly unique columns.

    Exits 0 if every group is private and no public column is nearly unique
    (except those named in --keep-identifier), 1 if not, 2 on bad input. Records
    that are unique on the public columns do not change the exit status; the
    verdict says how many there are.
    """
    with reported():
        policy = policy_options.chosen(margins.chosen(), protect.chosen())
        kept = opt.split_names(keep_identifier or "")
        if exact_tails and groups is None:
            raise PolicyError("--exact-tails needs --groups FILE.")
        if groups is not None:
            from reconpriv.writing.group_file import check_groups_file

            check_groups_file(groups)
        if report_file is not None:
            from reconpriv.reports.internal import check_internal

            check_internal(report_file)
        with ticking() as bar, contextlib.ExitStack() as stack:
            opened = stack.enter_context(contextlib.closing(table.open()))
            bar.records = opened.schema.records
            policy = opened.settled(policy)
            watch: list[Watcher] = []
            if groups is not None:
                watch.append(stack.enter_context(_groups_file(groups, opened, policy, exact_tails)))
            if report_file is not None:
                from reconpriv.reports.internal import TAILS, Survey, write_findings

                schema = opened.group_schema(policy)
                survey = Survey(schema, policy, opened.margin_plan(policy))
                watch.append(survey.add)
            report = opened.audit(
                policy,
                worst=worst if report_file is None else max(worst, TAILS),
                k=k,
                columns=columns,
                keep_identifier=kept,
                progress=bar,
                watch=watch,
            )
            if report_file is not None:
                shown = replace(report, worst=report.worst[:TAILS])
                found = survey.findings(shown, source=table.name, progress=bar)
                write_findings(found, report_file)
        report = replace(report, worst=report.worst[:worst])
        say_all("warning", report.warnings)
        if json:
            show_json(report.as_dict())
        else:
            from reconpriv.show.audit import audit_view

            show(audit_view(report, option_words))
    if not report.passes:
        raise typer.Exit(EXIT_NOT_PRIVATE)


@contextlib.contextmanager
def _groups_file(path: Path, table: Table, policy: Policy, exact: bool) -> Iterator[Watcher]:
    """What writes every audited group, with its verdict, to a file."""
    from reconpriv.core.verdicts import verdict_table
    from reconpriv.writing.group_file import groups_file

    plan = table.margin_plan(policy)
    counted = None if plan is None else plan.counted
    schema = table.group_schema(policy)
    with groups_file(path) as add:
        yield lambda batch: add(verdict_table(batch, schema, policy, exact=exact, counted=counted))


@app.command(
    rich_help_panel=opt.PUBLISHER,
    epilog=_example(
        "reconpriv keygen my.key && reconpriv publish example:adult release/ -s occupation"
        " --public age,sex,race --missing value --key my.key"
    ),
)
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
    keep_identifier: opt.KeepIdentifier = None,
    second_sample: Annotated[
        bool,
        typer.Option(
            "--second-sample",
            help="Publish although this gives adversaries a second sample of a table that the key's"
            " ledger knows.",
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
        kept = opt.split_names(keep_identifier or "")
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
            release = opened.publish(
                policy,
                out,
                key=secret,
                file_format=file_format,
                overwrite=overwrite,
                keep_identifier=kept,
                second_sample=second_sample,
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
                    keep_identifier=kept,
                    progress=bar,
                )
        if loading is not None:
            release = loading.loaded(release)
        say_all("warning", release.warnings)
        say_all("note", [*release.notes, *([_SQL_NOTE] if table.sql is not None else [])])
        if json:
            show_json(release.as_dict())
        else:
            from reconpriv.show.release import release_view

            show(release_view(release))


@app.command(
    rich_help_panel=opt.PUBLISHER,
    epilog=_example("reconpriv retention --rho1 0.1 --rho2 0.5 -m 10"),
)
def retention(
    rho1: Annotated[
        float, typer.Option("--rho1", help="The belief before seeing a published value.")
    ],
    rho2: Annotated[
        float, typer.Option("--rho2", help="The largest belief allowed after seeing it.")
    ],
    domain_size: Annotated[
        int, typer.Option("-m", "--domain-size", help="The number of sensitive values.")
    ],
    json: opt.Json = False,
) -> None:
    """Find the largest retention p with ρ1-ρ2 privacy, and its local differential privacy level."""
    with reported():
        from reconpriv.theory.perturbation import local_privacy_level, retention_for_privacy

        p = retention_for_privacy(rho1, rho2, domain_size)
        level = local_privacy_level(p, domain_size)
        if json:
            show_json({"retention": p, "local_dp_epsilon": level, "domain_size": domain_size})
        else:
            echo(f"largest retention p   {p:.6g}")
            echo(f"local-DP level        ε = {level:.6g}")


@app.command(rich_help_panel=opt.PUBLISHER, epilog=_example("reconpriv keygen my.key"))
def keygen(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Where to write the key.")],
    json: opt.Json = False,
) -> None:
    """Make a secret 256-bit key that only you can read; never overwrites a file."""
    with reported():
        from reconpriv.core.randomness import Key
        from reconpriv.writing.marker import refuse_inside_release

        refuse_inside_release(file, "the key")
        Key.generate().write(file)
        if json:
            show_json({"key_file": str(file), "bits": 256})
        else:
            echo(
                f"Key written to {shown_path(file)} (256 bits, mode 0600)."
                " Keep it secret, keep it safe:"
            )
            echo(
                "anyone who has it can undo the randomisation; if you lose it, publishing the\n"
                "same table again gives adversaries a second, independent sample."
            )


def demo(
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="DIR", help="Keep the release here instead of removing it."),
    ] = None,
    json: opt.Json = False,
) -> None:
    """Audit, publish and query a real table (48,842 people; occupation is sensitive)."""
    with reported():
        from reconpriv.cli.demo import demo_view, run_demo

        result = run_demo(out)
        if json:
            show_json(result.as_dict())
        else:
            show(demo_view(result))


analyst.register(app)
app.command(rich_help_panel=opt.MORE, epilog=_example("reconpriv demo --out demo-release"))(demo)
doctor.register(app)
ledger.register(app)
attack.register(app)
learning.register(app)
regression.register(app)
crosstab.register(app)
studio.register(app)
study.register(app)
tune.register(app)
for _registered in app.registered_commands:
    _registered.cls = Command

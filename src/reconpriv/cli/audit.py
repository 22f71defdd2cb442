"""The command that looks before anything is published: audit."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from reconpriv.cli import options as opt
from reconpriv.cli.accept_options import NOTHING_ACCEPTED, AcceptOptions
from reconpriv.cli.margin_options import NO_MARGINS, MarginOptions
from reconpriv.cli.output import EXIT_NOT_PRIVATE, reported, say_all, show, show_json
from reconpriv.cli.policy_options import NO_POLICY, PolicyOptions
from reconpriv.cli.progress import ticking
from reconpriv.cli.protect_options import NO_PROTECTION, ProtectOptions
from reconpriv.cli.remedy_words import option_words
from reconpriv.cli.table_options import TableOptions, taking_table
from reconpriv.errors import PolicyError

if TYPE_CHECKING:
    from reconpriv.policy import Policy
    from reconpriv.table import Table, Watcher


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    example = "reconpriv audit example:adult -s occupation --public age,sex,race --missing value"
    app.command(rich_help_panel=opt.PUBLISHER, epilog=opt.EXAMPLE + example)(audit)


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
            help="Show the audit without each public column in turn; on by default up to 24"
            " columns and a million cells.",
            show_default=False,
        ),
    ] = None,
    accept: AcceptOptions = NOTHING_ACCEPTED,
    report_file: opt.InternalReport = None,
    json: opt.Json = False,
) -> None:
    """Check for groups that could be reconstructed, and for what must not be published.

    Exits 0 if every group is private and nothing stands in the way of a
    publication, 1 if not, 2 on bad input. In the way stand nearly unique columns,
    columns that give the sensitive value away, people with several rows, and more
    unique records than --max-unique allows.
    """
    with reported():
        policy = policy_options.chosen(margins.chosen(), protect.chosen())
        accepted = accept.chosen()
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
            suited = policy_options.on(policy, opened.schema, margins)
            policy = opened.settled(suited.policy)
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
                **accepted,
                progress=bar,
                watch=watch,
            )
            if report_file is not None:
                shown = replace(report, worst=report.worst[:TAILS])
                found = survey.findings(shown, source=table.name, progress=bar)
                write_findings(found, report_file)
        report = replace(report, worst=report.worst[:worst])
        say_all("warning", report.warnings)
        say_all("note", suited.notes)
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

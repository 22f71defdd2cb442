"""The command that looks before anything is published: audit."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from reconpriv.cli.options import shared as opt
from reconpriv.cli.options.accepting import AcceptOptions
from reconpriv.cli.options.declared import option, taking
from reconpriv.cli.options.policy import PolicyOptions
from reconpriv.cli.options.table import TableOptions
from reconpriv.cli.process.output import EXIT_NOT_PRIVATE, give, say_all
from reconpriv.cli.process.progress import ticking
from reconpriv.errors import PolicyError

if TYPE_CHECKING:
    from reconpriv.policy.policy import Policy
    from reconpriv.table import Table
    from reconpriv.tables.watcher import Watcher


@taking(TableOptions, PolicyOptions, AcceptOptions, left_out=("unattainable",))
def audit(
    table: TableOptions,
    policy_options: PolicyOptions,
    *,
    worst: int = option("--worst", "How many of the worst groups to show.", 10, min=0),
    groups: Path | None = option(
        "--groups FILE",
        "Also write every group with its verdict to this .parquet or .csv file (internal).",
    ),
    exact_tails: bool = option(
        "--exact-tails", "With --groups: add the exact tails of every group.", False
    ),
    k: int = option("--k", "Also count the records in groups smaller than this.", 5, min=2),
    columns: bool | None = option(
        "--columns/--no-columns",
        "Show the audit without each public column in turn; on by default up to 24 columns and a"
        " million cells.",
        show_default=False,
    ),
    accept: AcceptOptions,
    report_file: Path | None = opt.INTERNAL_REPORT,
    json: bool = opt.JSON,
) -> None:
    """Check for groups that could be reconstructed, and for what must not be published.

    Exits 0 if every group is private and nothing stands in the way of a
    publication, 1 if not, 2 on bad input. In the way stand nearly unique columns,
    columns that give the sensitive value away, people with several rows, and more
    unique records than --max-unique allows.
    """
    policy, accepted = policy_options.chosen(), accept.chosen()
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
        suited = policy_options.on(policy, opened.schema)
        policy = opened.fitted(suited.policy)
        watch: list[Watcher] = []
        if groups is not None:
            watch.append(stack.enter_context(_groups_file(groups, opened, policy, exact_tails)))
        if report_file is not None:
            from reconpriv.reports.internal import TAILS, Survey, write_findings

            survey = Survey(opened.groups(policy).group_schema, policy, opened.margin_plan(policy))
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
    give(report, json=json)
    if not report.passes:
        raise typer.Exit(EXIT_NOT_PRIVATE)


@contextlib.contextmanager
def _groups_file(path: Path, table: Table, policy: Policy, exact: bool) -> Iterator[Watcher]:
    """What writes every audited group, with its verdict, to a file."""
    from reconpriv.auditing.verdicts import verdict_table
    from reconpriv.writing.group_file import groups_file

    counted = table.margin_plan(policy).counted
    schema = table.groups(policy).group_schema
    with groups_file(path) as add:
        yield lambda batch: add(verdict_table(batch, schema, policy, exact=exact, counted=counted))

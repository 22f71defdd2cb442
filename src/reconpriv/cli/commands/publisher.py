"""The publisher's commands on a table: columns, audit, publish and attack."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reconpriv.cli.options import shared as opt
from reconpriv.cli.options.choices import attacks_using
from reconpriv.cli.options.declared import argument, arguments, option, optional, shared, taking
from reconpriv.cli.options.policy import AcceptOptions, PolicyOptions
from reconpriv.cli.options.table import ENGINE, TableOptions
from reconpriv.cli.process.completion import tables
from reconpriv.cli.process.output import EXIT_NOT_PRIVATE, Printed, say_all, shown_command
from reconpriv.cli.process.progress import ticking
from reconpriv.cli.process.remedy_words import proposal_options
from reconpriv.errors import InputError, PolicyError
from reconpriv.messages.one_line import printable
from reconpriv.messages.phrases import listed
from reconpriv.messages.redaction import shown_path

if TYPE_CHECKING:
    from reconpriv.attacks.run import Effort
    from reconpriv.policy.policy import Policy
    from reconpriv.release.to_database import DatabaseTarget
    from reconpriv.table import Table
    from reconpriv.tables.audited import BatchWatcher

_SQL_NOTE = (
    "reconpriv cannot know what --sql did to a column: if it was binned there, it is counted"
    " by the values it has now. Declare bins with --bin instead."
)
_ROLES = ("public", "drop", "person", "rows_per_person", "domain", "missing", "bin", "group")
_ANY_SENSITIVE = {"sensitive": optional(TableOptions, "sensitive")}
_INTERNAL_REPORT: Any = option(
    "--report FILE",
    "Also write the publisher's report to this HTML file (internal: not for release).",
)


@taking(left_out=_ROLES, instead=_ANY_SENSITIVE)
def columns(table: TableOptions) -> Any:
    """Propose a role for every column, with the reason: public, dropped, or the person's number.

    With -s, columns that give the sensitive value away are found, too. Nothing
    is published, and nothing is decided: only you know what else is sensitive.
    """
    from reconpriv.reading import propose_roles

    opt.warn_of_password(table.source)
    with ticking():
        found = propose_roles(**{n: v for n, v in vars(table).items() if n not in _ROLES})
    options, after = proposal_options(found), ""
    if table.sensitive is not None:
        words = ["audit", table.source]
        for name, value in table.parts():
            words += [name] if value is None else [name, value]
        after = printable(f"\n{shown_command(words, options)}")
    return Printed(found, more={"options": options}, after=after)


@taking(left_out=("unattainable",))
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
    report_file: Path | None = _INTERNAL_REPORT,
) -> Any:
    """Check for groups that could be reconstructed, and for what must not be published.

    Exits 0 if every group is private and nothing stands in the way of a
    publication, 1 if not, 2 on bad input. In the way stand nearly unique columns,
    columns that give the sensitive value away, people with several rows, and more
    unique records than --max-unique allows.
    """
    policy, accepted = policy_options.chosen(), arguments(accept)
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
        watch: list[BatchWatcher] = []
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
    say_all("warning", report.warnings)
    say_all("note", suited.notes)
    code = 0 if report.passes else EXIT_NOT_PRIVATE
    return Printed(replace(report, worst=report.worst[:worst]), code=code)


@contextlib.contextmanager
def _groups_file(path: Path, table: Table, policy: Policy, exact: bool) -> Iterator[BatchWatcher]:
    """What writes every audited group, with its verdict, to a file."""
    from reconpriv.auditing.verdicts import verdict_table
    from reconpriv.writing.group_file import groups_file

    counted = table.margin_plan(policy).counted
    schema = table.groups(policy).group_schema
    with groups_file(path) as add:
        yield lambda batch: add(verdict_table(batch, schema, policy, exact=exact, counted=counted))


@taking()
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
        "--overwrite", "Replace OUT if it is a release, the report and the record.", False
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
    report_file: Path | None = _INTERNAL_REPORT,
    record_file: Path | None = option(
        "--record FILE",
        "Also write a record for the review board to this JSON file (internal: not for release).",
    ),
) -> Any:
    """Write a release whose groups resist reconstruction to the extent the policy requires."""
    with contextlib.ExitStack() as stack:
        from reconpriv.cells.randomness import Key
        from reconpriv.release.publication import check_format
        from reconpriv.release.to_database import load_release
        from reconpriv.sources.databases.url import is_database_url, shown_database
        from reconpriv.writing.folder import check_folder, is_uri
        from reconpriv.writing.scratch import temporary

        if key is not None and test_key:
            raise PolicyError("Give either --key or --test-key, not both.")
        policy = policy_options.chosen()
        policy.check_sampling()
        check_format(file_format)
        accepted = arguments(accept)
        target = _database(table.source, to, to_table, overwrite=overwrite)
        keeps_folder = out is not None
        if out is None:
            if target is None:
                hint = "Give a folder OUT, or --to-table NAME."
                raise PolicyError("Where should the release go?", hint=hint)
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
        loaded: list[str] = []

        def load(folder: Path) -> None:
            """Load the release from its folder before that is put in place."""
            assert target is not None
            loaded.extend(load_release(folder, target, overwrite=overwrite))

        with ticking() as bar, contextlib.closing(table.open()) as opened:
            bar.records = opened.schema.records
            suited = policy_options.on(policy, opened.schema)
            release = opened.publish(
                suited.policy,
                out,
                key=secret,
                file_format=file_format,
                overwrite=overwrite,
                **accepted,
                second_sample=second_sample,
                role_change=role_change,
                record=record_file,
                progress=bar,
                also=None if target is None else load,
            )
            if report_file is not None:
                opened.report(
                    suited.policy,
                    report_file,
                    release=release,
                    source=table.name,
                    overwrite=overwrite,
                    **accepted,
                    progress=bar,
                )
        if target is not None:
            release = replace(release, tables=tuple(loaded))
            if not keeps_folder:
                uri = f"{loaded[0]} in {shown_database(target.database)}"
                release = replace(release, uri=uri)
        say_all("warning", release.warnings)
        notes = [] if table.sql is None else [_SQL_NOTE]
        say_all("note", [*suited.notes, *release.notes, *notes])
        return release


def _database(
    source: str, to: str | None, name: str | None, *, overwrite: bool
) -> DatabaseTarget | None:
    """The database that --to-table and --to ask for; refused before any work is done."""
    from reconpriv.release.to_database import check_database_target, database_target
    from reconpriv.sources.databases.url import is_database

    if name is None:
        if to is not None:
            raise PolicyError("--to needs --to-table NAME.")
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
    return target


def _effort(name: str, help: str, default: Any, **more: Any) -> Any:
    """An option that some attacks use."""
    words = "" if name == "worst" else f" ({{attacks using {name.split(maxsplit=1)[0]}}})"
    return shared(f"--{name}", f"{help}{words}.", default, rich_help_panel="Attack", **more)


@dataclass(frozen=True)
class EffortOptions:
    """How much effort an attack makes; each field is an option."""

    keys: int = _effort("keys", "Publications to attack, each with its own key", 1)
    releases: int = _effort("releases", "Releases to average", 16)
    updates: int = _effort("updates", "Changes of the table, each published", 10)
    privacy: float = _effort("privacy", "λ of the noisy counts", 0.1)
    least: int = _effort("least", "Leave out groups smaller than this", 1)
    classifier: str | None = _effort(
        "classifier NAME",
        "A classifier of scikit-learn that learns from the release as well: {classifiers}",
        None,
        choices="classifiers",
    )
    worst: int = _effort("worst", "How many groups to show (internal)", 5)

    def of(self, attack: str) -> Effort:
        """The effort of an attack, which must use what is not at its default."""
        from reconpriv.attacks.run import Effort

        effort = Effort(**vars(self))
        for field in fields(effort):
            uses = attacks_using(field.name)
            if uses and attack not in uses and getattr(effort, field.name) != field.default:
                raise PolicyError(
                    f"--{field.name} works only with the attack {listed(uses, 'or')}."
                )
        return effort


@taking(
    left_out=(*ENGINE, "unattainable"),
    instead={
        "source": argument(
            "TABLE|RELEASE",
            "A table, as for publish; or, for {attacks on releases}, a release folder, though then"
            " there is no truth to compare with.",
            autocompletion=tables,
        ),
        **_ANY_SENSITIVE,
    },
)
def attack(
    name: str = argument("NAME", "{attacks}.", choices="attacks"),
    *,
    table: TableOptions,
    policy_options: PolicyOptions,
    effort_options: EffortOptions,
) -> Any:
    """Attack your own table, or a release: what would an adversary find out?

    The result is for the publisher only: it compares the attack with the raw table.
    """
    from reconpriv.attacks.run import ATTACKS, attack, attack_release
    from reconpriv.writing.marker import is_release

    ATTACKS.find(name)
    effort = effort_options.of(name)
    if is_release(Path(table.source)):
        if table != TableOptions(table.source, None) or policy_options != PolicyOptions():
            raise PolicyError(
                "A release has its columns and its policy already.",
                hint="Leave out the table and policy options.",
            )
        with ticking(what=f"attack {name}"):
            return attack_release(name, Path(table.source), show=max(effort.worst, 1))
    if table.sensitive is None:
        raise InputError(
            f"{shown_path(table.source)} is not a release; a table needs its sensitive column.",
            hint="Name it with -s, or give the folder of a release.",
        )
    policy = replace(policy_options.chosen(), unattainable="one-trial")
    policy.check_sampling()
    with ticking():
        opened = table.open()
    with contextlib.closing(opened):
        # A line that is printed would cut through a bar.
        say_all("warning", opened.warnings)
        suited = policy_options.on(policy, opened.schema)
        with ticking(opened.schema.records, f"attack {name}") as bar:
            result = attack(name, opened, suited.policy, replace(effort, progress=bar))
        say_all("note", suited.notes)
        return result

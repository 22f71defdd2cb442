"""Arguments and options that several commands share, and what they stand for."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from reconpriv.cli.completion import tables
from reconpriv.shown import shown_file

if TYPE_CHECKING:
    from reconpriv.policy import Policy
    from reconpriv.table import Table

TABLE = "Table"
POLICY = "Policy"

# The parts of the list of commands.
PUBLISHER = "For the publisher"
ANALYST = "For the analyst"
MORE = "More"


def one_of(*names: str) -> Callable[[str], list[str]]:
    """What a shell offers where a word is to be one of these."""
    # Typer finds the argument by its name.
    return lambda incomplete: [name for name in names if name.startswith(incomplete)]


Source = Annotated[
    str,
    typer.Argument(
        metavar="TABLE",
        help="Parquet, CSV, JSON lines, Arrow, SPSS, Stata, SAS or Excel file; a folder or glob of"
        " Parquet; - for CSV on standard input; postgresql://…, a SQLite or DuckDB file (with"
        " --table); example:adult or example:census_workers.",
        autocompletion=tables,
    ),
]
Sensitive = Annotated[
    str, typer.Option("-s", "--sensitive", help="The sensitive column.", rich_help_panel=TABLE)
]
Public = Annotated[
    str | None,
    typer.Option(
        "--public",
        metavar="A,B,…",
        help="The public columns; by default all but the sensitive one.",
        rich_help_panel=TABLE,
    ),
]
Drop = Annotated[
    str | None,
    typer.Option("--drop", metavar="X,…", help="Columns to leave out.", rich_help_panel=TABLE),
]
Domain = Annotated[
    Path | None,
    typer.Option(
        "--domain",
        metavar="FILE",
        help="The full sensitive domain: one value a line, or a JSON array.",
        rich_help_panel=TABLE,
    ),
]
Missing = Annotated[
    str,
    typer.Option(
        "--missing",
        metavar="refuse|drop|value",
        autocompletion=one_of("refuse", "drop", "value"),
        help="Records without a sensitive value: refuse, drop them, or make missing a value.",
        rich_help_panel=TABLE,
    ),
]
Sql = Annotated[
    str | None,
    typer.Option(
        "--sql",
        metavar="QUERY",
        help="A SELECT over the table `input`, to bin, rename or filter on the way in.",
        rich_help_panel=TABLE,
    ),
]
TableName = Annotated[
    str | None,
    typer.Option(
        "--table",
        metavar="NAME",
        help="Of a database: the table or view, also as schema.table. Of a spreadsheet: the sheet.",
        rich_help_panel=TABLE,
    ),
]
Labels = Annotated[
    str,
    typer.Option(
        "--labels",
        metavar="describe|apply",
        autocompletion=one_of("describe", "apply"),
        help="Value labels of SPSS and Stata: describe codes in the release, or replace them.",
        rich_help_panel=TABLE,
    ),
]
Threads = Annotated[
    int | None, typer.Option("--threads", help="Threads to use.", rich_help_panel=TABLE)
]
Memory = Annotated[
    str | None,
    typer.Option(
        "--memory", metavar="2GB", help="Memory for counting before disk is used.",
        rich_help_panel=TABLE,
    ),
]  # fmt: skip
EngineName = Annotated[
    str | None,
    typer.Option(
        "--engine", metavar="duckdb|spark", autocompletion=one_of("duckdb", "spark"),
        help="What counts and writes: one machine, or Spark.",
        rich_help_panel=TABLE,
    ),
]  # fmt: skip
Master = Annotated[
    str | None,
    typer.Option(
        "--master",
        metavar="URL",
        help="Spark's master: local[4], spark://host:7077, yarn, sc://host (Connect).",
        rich_help_panel=TABLE,
    ),
]
Retention = Annotated[
    float,
    typer.Option(
        "-p", "--retention", help="Probability that a value is kept.", rich_help_panel=POLICY
    ),
]
Epsilon = Annotated[
    float,
    typer.Option(
        "-e", "--epsilon", help="ε, the relative error to protect.", rich_help_panel=POLICY
    ),
]
Delta = Annotated[
    float,
    typer.Option("-d", "--delta", help="δ, the least tail probability.", rich_help_panel=POLICY),
]
BoundName = Annotated[
    str,
    typer.Option(
        "--bound",
        help="chernoff, chernoff-full, hoeffding, bernstein, chebyshev, markov or exact.",
        autocompletion=one_of(
            "chernoff", "chernoff-full", "hoeffding", "bernstein", "chebyshev", "markov", "exact"
        ),
        rich_help_panel=POLICY,
    ),
]
InternalReport = Annotated[
    Path | None,
    typer.Option(
        "--report",
        metavar="FILE",
        help="Also write the publisher's report, one HTML file (internal: not for release).",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]


def open_table(
    source: str,
    sensitive: str,
    public: str | None,
    drop: str | None,
    domain: Path | None,
    missing: str,
    sql: str | None,
    threads: int | None,
    memory: str | None,
    engine: str | None = None,
    master: str | None = None,
    table: str | None = None,
    labels: str = "describe",
) -> Table:
    """The table that the shared options describe."""
    from reconpriv.errors import PolicyError
    from reconpriv.reading import read

    if public is not None and not split_names(public):
        raise PolicyError("--public is empty.", hint="Name the public columns, or leave it out.")
    warn_of_password(source)
    return read(
        source,
        sensitive=sensitive,
        public=None if public is None else split_names(public),
        drop=split_names(drop or ""),
        domain=domain,
        missing=missing,
        sql=sql,
        table=table,
        threads=threads,
        memory=memory,
        engine=engine,
        master=master,
        labels=labels,
    )


def source_name(source: str, table: str | None = None) -> str:
    """What a report calls the table: its name in a database, or the last part of its path."""
    if table is not None:
        return table
    return "standard input" if source == "-" else shown_file(source)


def warn_of_password(database: str) -> None:
    """A command line can be read by every user of the machine while the command runs."""
    from reconpriv.cli.output import say
    from reconpriv.engines.database_url import has_password

    if has_password(database):
        say(
            "warning",
            "Other users of this machine can see the password in the command;"
            " put it into ~/.pgpass or PGPASSWORD.",
        )


def make_policy(
    retention: float,
    epsilon: float,
    delta: float,
    bound: str,
    sample_size: str = "octave",
    unattainable: str = "refuse",
) -> Policy:
    """The policy that the shared options describe."""
    from reconpriv.policy import Policy

    return Policy(
        retention=retention,
        epsilon=epsilon,
        delta=delta,
        bound=bound,
        sample_size=sample_size,
        unattainable=unattainable,
    )


def split_names(text: str) -> list[str]:
    """Column names between commas; one in double quotes may hold commas and outer spaces."""
    pattern = r'\s*"((?:[^"]|"")*)"\s*(?:,|$)|([^,]*)(?:,|$)'
    names = []
    for quoted, plain in re.findall(pattern, text):
        name = quoted.replace('""', '"') if quoted else plain.strip()
        if name:
            names.append(name)
    return names

"""The options that describe a table, the same in every command that reads one.

A command declares one parameter of type :class:`TableOptions`; :func:`taking_table` replaces it
with the arguments and options of the command line. To add an option, add a field here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from reconpriv.cli.accept_options import AcceptOptions
from reconpriv.cli.choices import one_of
from reconpriv.cli.completion import tables
from reconpriv.cli.margin_options import MarginOptions
from reconpriv.cli.options import (
    TABLE,
    Memory,
    Texts,
    listed_names,
    several,
    split_assignments,
    warn_of_password,
)
from reconpriv.cli.policy_options import PolicyOptions
from reconpriv.cli.protect_options import ProtectOptions
from reconpriv.cli.spreading import Command, parameters_of, spread_out
from reconpriv.engines.choice import ENGINES, kind_of_engine
from reconpriv.errors import PolicyError
from reconpriv.messages.commands import Part
from reconpriv.messages.phrases import listed
from reconpriv.messages.redaction import shown_file
from reconpriv.schema import ALL

if TYPE_CHECKING:
    from reconpriv.table import Table

_ENGINE = ("engine", "master")

Source = Annotated[
    str,
    typer.Argument(
        metavar="TABLE",
        help="{formats} file; a folder or glob of Parquet files; - for CSV on standard input;"
        " postgresql://…, a SQLite or DuckDB file (with --table); example:adult or"
        " example:census_workers.",
        autocompletion=tables,
    ),
]
Sensitive = Annotated[
    str | None,
    typer.Option("-s", "--sensitive", help="The sensitive column.", rich_help_panel=TABLE),
]
Public = Annotated[
    Texts,
    several(
        "--public",
        metavar="A,B,…",
        help="The public columns; those that are not named are left out. `all` makes every other"
        " column public.",
        rich_help_panel=TABLE,
    ),
]
Drop = Annotated[
    Texts,
    several("--drop", metavar="X,…", help="Columns to leave out.", rich_help_panel=TABLE),
]
Person = Annotated[
    str | None,
    typer.Option(
        "--person",
        metavar="COLUMN",
        help="The column that says who a row is about; it is never published.",
        rich_help_panel=TABLE,
    ),
]
RowsPerPerson = Annotated[
    str,
    typer.Option(
        "--rows-per-person",
        metavar="refuse|one",
        autocompletion=one_of("refuse", "one"),
        help="People with several rows: refuse the table, or keep one row of each, chosen by the"
        " key.",
        rich_help_panel=TABLE,
    ),
]
Domain = Annotated[
    Path | None,
    typer.Option(
        "--domain",
        metavar="FILE",
        help="The full sensitive domain: one value per line, or a JSON array.",
        rich_help_panel=TABLE,
    ),
]
Missing = Annotated[
    str,
    typer.Option(
        "--missing",
        metavar="refuse|drop|value",
        autocompletion=one_of("refuse", "drop", "value"),
        help="Records without a sensitive value: refuse the table, drop them, or make missing"
        " a value.",
        rich_help_panel=TABLE,
    ),
]
Sql = Annotated[
    str | None,
    typer.Option(
        "--sql",
        metavar="QUERY",
        help="A SELECT over the table `input`, to rename or filter on the way in. The release"
        " cannot know what it did to a column, so use --bin for bins.",
        rich_help_panel=TABLE,
    ),
]
BinOption = Annotated[
    list[str] | None,
    typer.Option(
        "--bin",
        metavar="COLUMN=BINS",
        help="Publish bins of a number: a width (age=10), borders (age=0,18,65; top:99 after them"
        " closes the last bin) or quantiles (age=quantiles:5; their borders reveal something about"
        " the data); of a date month, quarter or year (visit=month). Repeatable.",
        rich_help_panel=TABLE,
    ),
]
GroupOption = Annotated[
    list[str] | None,
    typer.Option(
        "--group",
        metavar="COLUMN=FILE[:LEVEL]",
        help="Publish groups of values, from a CSV file with a header and the columns value"
        " and group; further columns are coarser levels. Repeatable.",
        rich_help_panel=TABLE,
    ),
]
TableName = Annotated[
    str | None,
    typer.Option(
        "--table",
        metavar="NAME",
        help="The table or view of a database (or schema.table); the sheet of a spreadsheet.",
        rich_help_panel=TABLE,
    ),
]
Labels = Annotated[
    str,
    typer.Option(
        "--labels",
        metavar="describe|apply",
        autocompletion=one_of("describe", "apply"),
        help="Value labels from SPSS and Stata: describe the codes in the release, or replace"
        " the codes.",
        rich_help_panel=TABLE,
    ),
]
Threads = Annotated[
    int | None, typer.Option("--threads", help="How many threads to use.", rich_help_panel=TABLE)
]
EngineName = Annotated[
    str | None,
    typer.Option(
        "--engine", metavar="|".join(ENGINES), autocompletion=one_of(*ENGINES),
        help="The engine that counts and writes: "
        f"{listed([kind.explanation for kind in ENGINES.values()], 'or')}.",
        rich_help_panel=TABLE,
    ),
]  # fmt: skip
Master = Annotated[
    str | None,
    typer.Option(
        "--master",
        metavar="URL",
        help="The Spark master: local[4], spark://host:7077, yarn, sc://host (Connect).",
        rich_help_panel=TABLE,
    ),
]


@dataclass(frozen=True)
class TableOptions:
    """A table as the command line describes it; each field is an argument or an option."""

    source: Source
    sensitive: Sensitive
    public: Public = None
    drop: Drop = None
    person: Person = None
    rows_per_person: RowsPerPerson = "refuse"
    domain: Domain = None
    missing: Missing = "refuse"
    bin: BinOption = None
    group: GroupOption = None
    sql: Sql = None
    table: TableName = None
    labels: Labels = "describe"
    threads: Threads = None
    memory: Memory = None
    engine: EngineName = None
    master: Master = None

    @property
    def name(self) -> str:
        """What a report calls the table: its name in a database, or the last part of its path."""
        if self.table is not None:
            return self.table
        return "standard input" if self.source == "-" else shown_file(self.source)

    @property
    def only_source(self) -> bool:
        """Whether only the source was given."""
        return self == TableOptions(self.source, None)

    def parts(self) -> list[Part]:
        """The options given, each with its value; defaults are left out."""
        found: list[Part] = []
        hints = get_type_hints(TableOptions, include_extras=True)
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name == "source" or value is None or value == field.default:
                continue
            # Within Annotated, typer takes the first name for the default.
            option = str(hints[field.name].__metadata__[0].default)
            if value is True:
                found.append((option, None))
                continue
            each = value if isinstance(value, list | tuple) else [value]
            found += [(option, str(one)) for one in each]
        return found

    def writes_to_uri(self) -> bool:
        """Whether the engine that reads the table also writes to its own file systems."""
        return kind_of_engine(self.source, self.engine, {"master": self.master}).writes_to_uri

    def open(self) -> Table:
        """Read the table."""
        from reconpriv.declared_bins import HOW
        from reconpriv.reading import read
        from reconpriv.recoding import HOW_TO_GROUP

        assert self.sensitive is not None
        warn_of_password(self.source)
        return read(
            self.source,
            sensitive=self.sensitive,
            public=self._public(),
            drop=listed_names("--drop", self.drop) or [],
            person=self.person,
            rows_per_person=self.rows_per_person,
            domain=self.domain,
            missing=self.missing,
            sql=self.sql,
            table=self.table,
            threads=self.threads,
            memory=self.memory,
            engine=self.engine,
            master=self.master,
            labels=self.labels,
            bin=split_assignments("--bin", self.bin or (), HOW),
            group=split_assignments("--group", self.group or (), HOW_TO_GROUP),
        )

    def _public(self) -> list[str] | str | None:
        """The public columns, or ``all``, which goes with no other name."""
        texts = [text.strip() for text in self.public or ()]
        if ALL not in texts:
            return listed_names("--public", self.public)
        if len(texts) > 1:
            raise PolicyError(
                "--public all is every other column, and goes with no further --public.",
                hint="Write --public '\"all\"' for a column of that name.",
            )
        return ALL


def taking_table(
    *,
    engines: bool = False,
    source: Any = Source,
    sensitive_required: bool = True,
    unattainable: bool = True,
    left_out: Sequence[str] = (),
) -> Callable[[Command], Command]:
    """Replace a command's ``TableOptions`` parameter with its arguments and options.

    ``engines`` adds the choice of engine; ``source`` describes another kind of argument. A
    parameter of type ``PolicyOptions``, ``MarginOptions`` or ``ProtectOptions`` is replaced
    likewise; a command that publishes nothing does without ``unattainable``. ``left_out`` are
    options that a command has no use for.
    """
    table = parameters_of(
        TableOptions,
        left_out=(*left_out, *(() if engines else _ENGINE)),
        instead={"source": source},
    )
    if not sensitive_required:
        table = [one.replace(default=None) if one.name == "sensitive" else one for one in table]
    policy = parameters_of(PolicyOptions, left_out=() if unattainable else ("unattainable",))
    groups = {TableOptions: table, PolicyOptions: policy}
    for kind in (MarginOptions, ProtectOptions, AcceptOptions):
        groups[kind] = parameters_of(kind)
    return lambda command: spread_out(command, groups)

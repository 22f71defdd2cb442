"""The options that describe a table, the same in every command that reads one.

A command declares a parameter of type :class:`TableOptions`, which ``taking`` replaces with the
arguments and options of the command line. To add an option, add a field here.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reconpriv.cli.options.declared import (
    REQUIRED,
    argument,
    arguments,
    declared_in,
    option_name,
    shared,
)
from reconpriv.cli.options.shared import (
    MEMORY,
    TABLE,
    Texts,
    listed_names,
    some_names,
    split_assignments,
    warn_of_password,
)
from reconpriv.cli.process.completion import tables
from reconpriv.columns.schema import ALL
from reconpriv.engines.choice import kind_of_engine
from reconpriv.errors import PolicyError
from reconpriv.messages.commands import Part
from reconpriv.messages.redaction import shown_file

if TYPE_CHECKING:
    from reconpriv.table import Table

# Fields that most commands leave out.
ENGINE = ("engine", "master")


def _option(usage: str, help: str, default: Any = None, **more: Any) -> Any:
    return shared(usage, help, default, rich_help_panel=TABLE, **more)


def _public(option: str, given: Texts) -> list[str] | str | None:
    """The public columns, or ``all``, which goes with no other name."""
    texts = [text.strip() for text in given or ()]
    if ALL not in texts:
        return listed_names(option, given)
    if len(texts) > 1:
        raise PolicyError(
            "--public all is every other column, and goes with no further --public.",
            hint="Write --public '\"all\"' for a column of that name.",
        )
    return ALL


def _bins(option: str, texts: Texts) -> dict[str, str]:
    from reconpriv.columns.declared_bins import HOW

    return split_assignments(option, texts, HOW)


def _groups(option: str, texts: Texts) -> dict[str, str]:
    from reconpriv.columns.declared_groups import HOW_TO_GROUP

    return split_assignments(option, texts, HOW_TO_GROUP)


@dataclass(frozen=True)
class TableOptions:
    """A table as the command line describes it; each field is an argument or an option."""

    source: str = shared(
        argument(
            "TABLE",
            "{formats} file; a folder or glob of Parquet files; - for CSV on standard input;"
            " postgresql://…, a SQLite or DuckDB file (with --table); example:adult or"
            " example:census_workers.",
            autocompletion=tables,
        )
    )
    sensitive: str | None = _option("-s, --sensitive", "The sensitive column.", REQUIRED)
    public: Texts = _option(
        "--public A,B,…",
        "The public columns; those that are not named are left out. `all` makes every other column"
        " public.",
        repeatable=True,
        parse=_public,
    )
    drop: Texts = _option("--drop X,…", "Columns to leave out.", repeatable=True, parse=some_names)
    person: str | None = _option(
        "--person COLUMN", "The column that says who a row is about; it is never published."
    )
    rows_per_person: str = _option(
        "--rows-per-person refuse|one",
        "People with several rows: refuse the table, or keep one row of each, chosen by the key.",
        "refuse",
    )
    domain: Path | None = _option(
        "--domain FILE", "The full sensitive domain: one value per line, or a JSON array."
    )
    missing: str = _option(
        "--missing refuse|drop|value",
        "Records without a sensitive value: refuse the table, drop them, or make missing a value.",
        "refuse",
    )
    bin: Texts = _option(
        "--bin COLUMN=BINS",
        "Publish bins of a number: a width (age=10), borders (age=0,18,65; top:99 after them closes"
        " the last bin) or quantiles (age=quantiles:5; their borders reveal something about the"
        " data); of a date month, quarter or year (visit=month).",
        repeatable=True,
        parse=_bins,
    )
    group: Texts = _option(
        "--group COLUMN=FILE[:LEVEL]",
        "Publish groups of values, from a CSV file with a header and the columns value and group;"
        " further columns are coarser levels.",
        repeatable=True,
        parse=_groups,
    )
    sql: str | None = _option(
        "--sql QUERY",
        "A SELECT over the table `input`, to rename or filter on the way in. The release cannot"
        " know what it did to a column, so use --bin for bins.",
    )
    table: str | None = _option(
        "--table NAME",
        "The table or view of a database (or schema.table); the sheet of a spreadsheet.",
    )
    labels: str = _option(
        "--labels describe|apply",
        "Value labels from SPSS and Stata: describe the codes in the release, or replace the"
        " codes.",
        "describe",
    )
    threads: int | None = _option("--threads", "How many threads to use.")
    memory: str | None = shared(MEMORY)
    engine: str | None = _option(
        "--engine {engines|}", "The engine that counts and writes: {explained engines}."
    )
    master: str | None = _option(
        "--master URL", "The Spark master: local[4], spark://host:7077, yarn, sc://host (Connect)."
    )

    @property
    def name(self) -> str:
        """What a report calls the table: its name in a database, or the last part of its path."""
        if self.table is not None:
            return self.table
        return "standard input" if self.source == "-" else shown_file(self.source)

    def parts(self) -> list[Part]:
        """The options given, each with its value; defaults are left out."""
        found: list[Part] = []
        for name, declared in declared_in(TableOptions).items():
            value = getattr(self, name)
            if name == "source" or value is None or value == declared.default:
                continue
            each = value if isinstance(value, list | tuple) else [value]
            found += [(option_name(declared), str(one)) for one in each]
        return found

    def writes_to_uri(self) -> bool:
        """True if the engine that reads the table also writes to its own file systems."""
        return kind_of_engine(self.source, self.engine, {"master": self.master}).writes_to_uri

    def open(self) -> Table:
        """Read the table."""
        from reconpriv.reading import read

        assert self.sensitive is not None
        warn_of_password(self.source)
        return read(**arguments(self))

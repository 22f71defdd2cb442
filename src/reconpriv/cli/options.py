"""Arguments and options that several commands share, and what they stand for."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

TABLE = "Table"
POLICY = "Policy"

# The sections of the list of commands.
EXAMPLE = "[bold]Example[/bold]\n\n"
PUBLISHER = "For the publisher"
ANALYST = "For the analyst"
MORE = "More"


# What an option holds that takes a list: a text for each time it was given.
Texts = list[str] | None


def several(*names: str, help: str, **more: Any) -> Any:
    """An option that takes a list separated by commas; each time it is given adds to the list."""
    return typer.Option(*names, help=f"{help} Repeatable.", **more)


Memory = Annotated[
    str | None,
    typer.Option(
        "--memory", metavar="2GB", help="Memory for counting before spilling to disk.",
        rich_help_panel=TABLE,
    ),
]  # fmt: skip
InternalReport = Annotated[
    Path | None,
    typer.Option(
        "--report",
        metavar="FILE",
        help="Also write the publisher's report to this HTML file (internal: not for release).",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]


def warn_of_password(database: str) -> None:
    """Warn that every user of the machine can read a command line while the command runs."""
    from reconpriv.cli.output import say
    from reconpriv.sources.databases.url import has_password

    if has_password(database):
        say(
            "warning",
            "Other users of this machine can see the password in the command;"
            " put it into ~/.pgpass or PGPASSWORD.",
        )


def split_names(text: str) -> list[str]:
    """Column names separated by commas; one in double quotes may hold commas and outer spaces."""
    pattern = r'\s*"((?:[^"]|"")*)"\s*(?:,|$)|([^,]*)(?:,|$)'
    names = []
    for quoted, plain in re.findall(pattern, text):
        name = quoted.replace('""', '"') if quoted else plain.strip()
        if name:
            names.append(name)
    return names


def listed_names(
    option: str, texts: Sequence[str] | None, what: str = "column"
) -> list[str] | None:
    """The names in all texts of an option; None if it was not given."""
    from reconpriv.errors import PolicyError

    found = [split_names(text) for text in texts or ()]
    if not all(found):
        raise PolicyError(f"{option} is empty.", hint=f"Name a {what}, or leave it out.")
    return [name for names in found for name in names] or None


def split_assignments(option: str, texts: Sequence[str], how: str) -> dict[str, str]:
    """COLUMN=WHAT, repeatable; a column in double quotes may contain anything, even =.

    ``how`` says what may follow the =.
    """
    from reconpriv.errors import PolicyError

    found: dict[str, str] = {}
    for text in texts:
        parts = re.fullmatch(r'\s*(?:"((?:[^"]|"")+)"\s*|([^="]+))=(.+)', text, re.DOTALL)
        if parts is None:
            named, _, said = text.partition("=")
            if not said and '"' not in text:
                raise PolicyError(
                    f"{option} takes COLUMN=…; got only the column {named.strip()!r}.",
                    hint=how,
                )
            raise PolicyError(
                f"{option} takes COLUMN=…; got {text!r}.",
                hint='Put a name that holds = or " in double quotes, and double any quotes in it.',
            )
        name = parts[1].replace('""', '"') if parts[1] else parts[2].strip()
        if name in found:
            raise PolicyError(f"{option} is given twice for column {name!r}.")
        found[name] = parts[3]
    return found

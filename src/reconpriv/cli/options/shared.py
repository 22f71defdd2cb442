"""Options that several commands take, and what the texts of options stand for."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reconpriv.cli.options.declared import argument, option, shared
from reconpriv.cli.process.output import Printed, say, say_all
from reconpriv.errors import PolicyError
from reconpriv.messages.redaction import shown_path

if TYPE_CHECKING:
    from reconpriv.messages.readable import Plottable
    from reconpriv.release.release import Release

# The panels of the help of a command.
TABLE = "Table"
POLICY = "Policy"

# What an option holds that takes a list: a text for each time it was given.
Texts = list[str] | None

MEMORY: Any = option(
    "--memory 2GB", "Memory for counting before spilling to disk.", rich_help_panel=TABLE
)
OVERWRITE: Any = option("--overwrite", "Replace the file.", False)

# Of commands that ask a release.
RELEASE: Any = argument("RELEASE", "A release folder.")
ESTIMATOR: Any = option("--estimator {estimators|}", "How to estimate: {estimator labels}.", "mle")
CONFIDENCE: Any = option("--confidence", "The confidence level of the intervals.", 0.95)
MARGINS: Any = option(
    "--margins/--no-margins", "Use the margins of the release, or its records alone.", True
)
WHERE: Any = option("--where SQL", "A condition on public columns, to use only some records.")


@dataclass(frozen=True)
class AnswerOptions:
    """How a release answers; each field is an option."""

    estimator: str = shared(ESTIMATOR)
    confidence: float = shared(CONFIDENCE)
    simultaneous: bool = shared(
        "--simultaneous", "Make all intervals of a table hold at once, at that level.", False
    )
    whole_bins: bool = shared(
        "--whole-bins", "If a condition cuts a bin or group, count all of it and say so.", False
    )


@dataclass(frozen=True)
class ChartOptions:
    """A file to draw an answer in; each field is an option."""

    chart: Path | None = shared(
        "--chart FILE",
        "Also draw the answer with its intervals: .html, .svg, .png or .json (Vega-Lite).",
    )
    overwrite: bool = shared(OVERWRITE)

    def check(self) -> None:
        """Refuse a chart that cannot be written, before any work is done."""
        if self.chart is not None:
            from reconpriv.show.charts.chart import check_chart

            check_chart(self.chart, overwrite=self.overwrite)
        elif self.overwrite:
            raise PolicyError("--overwrite needs --chart.")

    def drawn(self, answer: Plottable) -> Printed:
        """Draw an answer if asked to; a chart that fails leaves nothing behind."""
        from reconpriv.show.results.registered import document_of

        # A crosstab as a list would not show that it has columns.
        two_way = getattr(answer, "two_way", lambda: answer)
        more, after = {}, ""
        if self.chart is not None:
            answer.plot().save(self.chart, overwrite=self.overwrite)
            more, after = {"chart": str(self.chart)}, f"Chart written to {shown_path(self.chart)}."
        return Printed(answer, lambda: document_of(two_way()), more, after)


def open_with_warnings(folder: Path, memory: str | None = None) -> Release:
    """Open a release and print what its manifest warns of."""
    from reconpriv.release.release import open_release

    opened = open_release(folder, memory=memory)
    say_all("warning", opened.warnings)
    return opened


def warn_of_password(database: str) -> None:
    """Warn that every user of the machine can read a command line while the command runs."""
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
    found = re.findall(pattern, text)
    names = (quoted.replace('""', '"') if quoted else plain.strip() for quoted, plain in found)
    return [name for name in names if name]


def listed_names(
    option: str, texts: Sequence[str] | None, what: str = "column"
) -> list[str] | None:
    """The names in all texts of an option; None if it was not given."""
    found = [split_names(text) for text in texts or ()]
    if not all(found):
        raise PolicyError(f"{option} is empty.", hint=f"Name a {what}, or leave it out.")
    return [name for names in found for name in names] or None


def some_names(option: str, texts: Sequence[str] | None) -> list[str]:
    """The same; an empty list if the option was not given."""
    return listed_names(option, texts) or []


sensitive_values = partial(listed_names, what="sensitive value")


def split_assignments(option: str, texts: Sequence[str] | None, how: str) -> dict[str, str]:
    """COLUMN=WHAT, repeatable; a column in double quotes may contain anything, even =.

    ``how`` says what may follow the =.
    """
    found: dict[str, str] = {}
    for text in texts or ():
        parts = re.fullmatch(r'\s*(?:"((?:[^"]|"")+)"\s*|([^="]+))=(.+)', text, re.DOTALL)
        if parts is None:
            named, _, said = text.partition("=")
            bare = not said and '"' not in text
            got = f"only the column {named.strip()!r}" if bare else repr(text)
            quotes = 'Put a name that holds = or " in double quotes, and double any quotes in it.'
            raise PolicyError(f"{option} takes COLUMN=…; got {got}.", hint=how if bare else quotes)
        name = parts[1].replace('""', '"') if parts[1] else parts[2].strip()
        if name in found:
            raise PolicyError(f"{option} is given twice for column {name!r}.")
        found[name] = parts[3]
    return found

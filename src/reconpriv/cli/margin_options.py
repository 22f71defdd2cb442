"""The options for margins, the same in every command that takes a policy."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from reconpriv.cli.options import POLICY, Texts, several

if TYPE_CHECKING:
    from reconpriv.core.margins import Margins

# The ε of margins if only their tables are chosen; that of the recommended policy.
USUAL = 1.0

Epsilon = Annotated[
    float | None,
    typer.Option(
        "--margins",
        metavar="ε",
        help="Also publish noisy tables of the sensitive column: the ε of all of them together"
        " (differential privacy), or 0 for none. \\[default: 1]",
        rich_help_panel=POLICY,
    ),
]
Rho = Annotated[
    float | None,
    typer.Option(
        "--margins-rho",
        metavar="ρ",
        help="Instead of --margins: their ρ (zero-concentrated differential privacy).",
        rich_help_panel=POLICY,
    ),
]
Delta = Annotated[
    float | None,
    typer.Option(
        "--margins-delta",
        metavar="δ",
        help="The δ that goes with the ε of margins; by default 1e-9.",
        rich_help_panel=POLICY,
    ),
]
Tables = Annotated[
    Texts,
    several(
        "--margin-tables",
        metavar="A,B,A+C,…",
        help="The tables of margins: public columns, up to three of them joined by +; by default"
        " each column on its own. A name that holds a comma or + goes in double quotes.",
        rich_help_panel=POLICY,
    ),
]


@dataclass(frozen=True)
class MarginOptions:
    """Margins as the command line describes them; each field is an option."""

    margins: Epsilon = None
    margins_rho: Rho = None
    margins_delta: Delta = None
    margin_tables: Tables = None

    @property
    def given(self) -> bool:
        """Whether any of the options was used."""
        return self != MarginOptions()

    def chosen(self) -> Margins | Literal[False] | None:
        """The margins that the options stand for, if any; False for an ε of 0: none."""
        from reconpriv.core.margins import DELTA, Margins
        from reconpriv.errors import PolicyError

        if self.margins is not None and self.margins_rho is not None:
            raise PolicyError("Give either --margins or --margins-rho, not both.")
        if not self.given:
            return None
        if self.margins == 0:
            if self != MarginOptions(margins=self.margins):
                raise PolicyError("With --margins 0 there are no margins, so none can be chosen.")
            return False
        return Margins(
            USUAL if self.margins is None and self.margins_rho is None else self.margins,
            DELTA if self.margins_delta is None else self.margins_delta,
            rho=self.margins_rho,
            tables=None
            if self.margin_tables is None
            else [names for text in self.margin_tables for names in split_tables(text)],
        )


NO_MARGINS = MarginOptions()

_NAME = re.compile(r'\s*(?:"((?:[^"]|"")+)"|([^,+"]*[^,+"\s]))\s*')


def split_tables(text: str) -> list[tuple[str, ...]]:
    """Tables separated by commas, columns by +; a column in double quotes may hold both."""
    from reconpriv.errors import PolicyError

    if not text.strip():
        raise PolicyError("--margin-tables is empty.", hint="Name public columns, or leave it out.")
    tables: list[tuple[str, ...]] = []
    at = 0
    names: tuple[str, ...] = ()
    while True:
        found = _NAME.match(text, at)
        if found is None:
            raise PolicyError(
                f"--margin-tables takes columns separated by commas or +; got {text!r}.",
                hint='Put a name that holds a comma, + or " in double quotes, and double any'
                " quotes in it.",
            )
        names = (*names, found[1].replace('""', '"') if found[1] else found[2])
        at = found.end()
        mark = text[at : at + 1]
        if mark != "+":
            tables.append(names)
            names = ()
        if not mark:
            return tables
        if mark not in ",+":
            raise PolicyError(
                f"--margin-tables takes columns separated by commas or +; got {text!r}.",
                hint="Close the quotes before the next column.",
            )
        at += 1

"""The option for protection beyond the micro group, the same in every command with a policy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from reconpriv.cli.options import POLICY, split_assignments

if TYPE_CHECKING:
    from reconpriv.core.protection import Protection

Protect = Annotated[
    list[str] | None,
    typer.Option(
        "--protect",
        metavar="COLUMN=HOW",
        help="Extend the promise to whoever pools over this public column: in bins of a width"
        " (age=10) or with borders (age=0,18,65), ignoring it (race=*), where its values are alike"
        " (age=merge), or by a file of groups. Repeatable.",
        rich_help_panel=POLICY,
    ),
]


@dataclass(frozen=True)
class ProtectOptions:
    """Protection as the command line describes it; each field is an option."""

    protect: Protect = None

    @property
    def given(self) -> bool:
        """Whether the option was used."""
        return bool(self.protect)

    def chosen(self) -> Protection | None:
        """The protection that the options stand for, if any."""
        from reconpriv.core.protection import HOW, Protection

        if not self.protect:
            return None
        return Protection.of(split_assignments("--protect", self.protect, HOW))


NO_PROTECTION = ProtectOptions()

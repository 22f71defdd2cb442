"""Proposed roles, as text and as HTML."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.table import Table as RichTable
from rich.text import Text

from reconpriv.show.markup import tag
from reconpriv.show.notebook import box, html_table

if TYPE_CHECKING:
    from reconpriv.proposals import Proposals

_ROLES = {"drop": "leave out", "person": "person's number"}


def proposals_view(found: Proposals) -> RenderableType:
    """A row per column, then what to think of it."""
    return Group(_table(found), Text(f"\n{_words(found)}"))


def proposals_html(found: Proposals) -> str:
    """The same for a notebook."""
    return box(html_table(_table(found)), tag("p", _words(found)))


def _words(found: Proposals) -> str:
    text = "A proposal, not a decision: leave out whatever else should not be published as it is."
    if found.sensitive is None:
        text += " Name the sensitive column to find those that give its value away."
    return text


def _table(found: Proposals) -> RichTable:
    table = RichTable(box=None, padding=(0, 2, 0, 0))
    table.add_column("column", overflow="fold")
    table.add_column("values", justify="right", no_wrap=True)
    table.add_column("proposal", no_wrap=True)
    table.add_column("because", overflow="fold")
    for one in found.columns:
        role = f"public, bins {one.bins}" if one.bins else _ROLES.get(one.role, one.role)
        table.add_row(Text(one.column), f"{one.distinct:,}", Text(role), Text(one.reason))
    return table

"""Proposed roles."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reconpriv.show.document import Document, Field, Grid, Paragraph, number

if TYPE_CHECKING:
    from reconpriv.proposals import Proposals

_ROLES = {"drop": "leave out", "person": "person's number"}


def proposals_document(found: Proposals) -> Document:
    """A row per column, then what to think of it."""
    text = "A proposal, not a decision: leave out whatever else should not be published as it is."
    if found.sensitive is None:
        text += " Name the sensitive column to find those that give its value away."
    rows = [
        (
            one.column,
            one.distinct,
            f"public, bins {one.bins}" if one.bins else _ROLES.get(one.role, one.role),
            one.reason,
        )
        for one in found.columns
    ]
    fields = [Field("column"), number("values"), Field("proposal"), Field("because")]
    return [Grid(fields, rows), Paragraph(text)]

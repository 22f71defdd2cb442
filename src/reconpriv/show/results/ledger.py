"""The ledger of a key."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reconpriv.messages.numbers import brief
from reconpriv.show.document import Document, Headline, Paragraph, rows_grid

if TYPE_CHECKING:
    from reconpriv.ledger.entries import Entry
    from reconpriv.ledger.ledger import Ledger


def ledger_document(ledger: Ledger) -> Document:
    """Every publication in a row, oldest first."""
    name, entries, doubts = ledger.file.path.name, ledger.entries, ledger.doubts
    if not entries and not doubts:
        return [Paragraph(f"{name}: nothing was published with this key yet.")]
    gone = [
        f"Line {one.line} was withdrawn on {one.withdrawn.date[:10]}: {one.withdrawn.why}"
        for one in entries
        if one.withdrawn is not None
    ]
    return [
        Headline(f"Ledger {name}"),
        *([rows_grid("", [_row(entry) for entry in entries])] if entries else []),
        *(Paragraph(text, joined=bool(entries)) for text in [*gone, *doubts]),
    ]


def _row(entry: Entry) -> dict[str, object]:
    policy = entry.policy
    remarks = [
        *(["second sample"] if entry.second_sample else []),
        *(["roles changed"] if entry.role_change else []),
        *([] if entry.finished else ["not finished"]),
        *([] if entry.counted else ["uncounted trials"]),
    ]
    if entry.withdrawn is not None:
        remarks = ["withdrawn"]
    return {
        "line": entry.line,
        "date": f"{entry.date[:10]} {entry.date[11:16]}",
        "series": entry.series,
        "release": entry.release,
        "p": brief(policy["retention"]),
        "ε": brief(policy["epsilon"]),
        "δ": brief(policy["delta"]),
        "sample size": policy["sample_size"],
        "records": entry.records,
        "groups": entry.groups,
        "ρ of margins": "-" if entry.rho is None else f"{entry.rho:.4g}",
        "": ", ".join(remarks),
    }

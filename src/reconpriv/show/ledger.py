"""The ledger of a key, on a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.text import Text

from reconpriv.messages.numbers import brief
from reconpriv.show.text import rows_table

if TYPE_CHECKING:
    from reconpriv.ledger.ledger import Entry, Ledger


def ledger_view(ledger: Ledger) -> RenderableType:
    """Every publication in a row, oldest first."""
    name, entries, doubts = ledger.file.path.name, ledger.entries, ledger.doubts
    if not entries and not doubts:
        return Text(f"{name}: nothing was published with this key yet.")
    table = [rows_table("", tuple(_row(entry) for entry in entries))] if entries else []
    return Group(Text(f"Ledger {name}\n", style="bold"), *table, *map(Text, doubts))


def _row(entry: Entry) -> dict[str, object]:
    policy = entry.policy
    remarks = [
        *(["second sample"] if entry.second_sample else []),
        *([] if entry.finished else ["not finished"]),
        *([] if entry.counted else ["trials not all counted"]),
    ]
    return {
        "date": entry.date.replace("+00:00", "Z"),
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

"""The record of a release and of the table that it was made from, for the review board."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from reconpriv.auditing.classes import GroupsSeen
from reconpriv.cells.randomness import Key
from reconpriv.columns.schema import Schema
from reconpriv.errors import InputError, LedgerError
from reconpriv.ledger.entries import Entry, Fingerprint
from reconpriv.ledger.ledger import Ledger
from reconpriv.release.folder import ReleaseFolder
from reconpriv.release.manifest import Manifest
from reconpriv.release.record import ReviewRecord, TableReview, review_record
from reconpriv.release.released_figures import released_figures
from reconpriv.sources.input_files import input_files

if TYPE_CHECKING:
    from reconpriv.table import Table

_OTHER = "The release was not made from this table"
_COLUMNS_ALIKE = "columns, kinds and sensitive values (group sizes of this sampling rule vary)"
_GROUPS_ALIKE = "columns, kinds, sensitive values, and the size of every group"


def review_table(
    table: Table, stored: ReleaseFolder, key: Key | None, warnings: tuple[str, ...]
) -> ReviewRecord:
    """Audit a table by the policy of its release, whose files have been checked, and compare both.

    The table has the columns of the release, and its rows and protection groups are made as then.
    With the key, its ledger is looked up.
    """
    described = stored.manifest
    policy, coin_flips = described.policy, described.policy.sampling_rule.coin_flips
    seen = GroupsSeen(described.group_schema)
    # Coin flips make groups larger and smaller.
    audit = table.audit(policy, worst=0, columns=False, watch=[] if coin_flips else [seen.add])
    released = released_figures(stored)
    if not coin_flips and seen.digest != released.digest:
        kept = "If one row of each person was kept, give the key that chose it."
        raise InputError(
            f"{_OTHER}: groups, or the numbers of their records, differ.",
            hint=kept if table.one_row_each else "Give the table as it was published.",
        )
    review = TableReview(
        audit,
        table.schema.person,
        {column.name: column.kind.value for column in table.engine.columns()},
        input_files(table.source),
        _COLUMNS_ALIKE if coin_flips else _GROUPS_ALIKE,
    )
    return review_record(
        stored,
        released,
        table=review,
        entry=entry_of(key, described, table.schema),
        warnings=warnings,
    )


def check_same_schema(mine: Schema, released: Schema) -> None:
    """Refuse a table that has other columns, bins or values than a release."""
    ours, theirs = ({one.name: one.kind.value for one in it.columns} for it in (mine, released))
    if mine.sensitive.name != released.sensitive.name:
        raise InputError(
            f"{_OTHER}: its sensitive column is {released.sensitive.name!r}, and that of the table"
            f" {mine.sensitive.name!r}."
        )
    for name in sorted(ours.keys() ^ theirs.keys()):
        what = "the table does not" if name in theirs else "the release does not"
        raise InputError(f"{_OTHER}: one of them has a public column {name!r}, {what}.")
    for name, kind in ours.items():
        if kind != theirs[name]:
            raise InputError(
                f"{_OTHER}: column {name!r} holds {kind} values in the table and {theirs[name]}"
                " values in the release."
            )
        if mine.recoding(name) != released.recoding(name):
            raise InputError(f"{_OTHER}: column {name!r} has other bins or groups.")
    if set(mine.domain) != set(released.domain):
        raise InputError(f"{_OTHER}: column {mine.sensitive.name!r} has another domain.")


def entry_of(key: Key | None, described: Manifest, schema: Schema) -> Entry | None:
    """The last line of the ledger with the settings and records of a release.

    None if there is no ledger to look into.
    """
    ledger = None if key is None else Ledger.of(key)
    if key is None or ledger is None:
        return None
    mark = Fingerprint.of(key, schema, described.policy)
    found = [
        one
        for one in ledger.entries
        # Groups that were merged for protection are not in a manifest as they were asked for.
        if replace(one.fingerprint, protect=mark.protect) == mark
        and one.records == described.records
        and one.finished
        and one.withdrawn is None
    ]
    if not found:
        raise LedgerError(
            "The ledger of this key has no publication like this release.",
            hint="Give the key that the release was made with.",
        )
    return found[-1]

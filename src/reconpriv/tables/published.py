"""Publishing a table: refused while anything stands in the way, entered into the ledger."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from reconpriv.auditing.column_risk import ColumnRisk
from reconpriv.auditing.giveaways import ColumnsSeen
from reconpriv.auditing.obstacles import Accepted
from reconpriv.cells.randomness import Key
from reconpriv.engines.base import Progress, Written
from reconpriv.ledger.account import Account
from reconpriv.policy.policy import Policy
from reconpriv.release.publication import Destination, publication_notes, write_release
from reconpriv.release.release import Release
from reconpriv.tables.opened import OpenTable
from reconpriv.writing.folder import is_uri


def publish_table(
    table: OpenTable,
    policy: Policy,
    secret: Key,
    place: Destination,
    accepted: Accepted,
    again: dict[str, bool],
    progress: Progress,
) -> Release:
    """Publish the table; ``again`` says which repeated publications are accepted on purpose."""
    if table.one_row_each:
        table.keep_one_row_each(secret)
    table.checks.refuse(accepted)
    columns = ColumnsSeen.of(table.schema)

    def check(found: Written) -> None:
        table.checks.refuse_written(found, columns.giveaways(policy.harmless), accepted)

    account = Account.open(secret, table.schema, policy, **again)
    secret = replace(secret, file=None)  # workers need not know where it lies
    manifest, written, plan = write_release(
        table.grouped(progress),
        policy,
        secret,
        place,
        labels=table.labels,
        watchers=[columns],
        check=check,
        account=account,
    )
    table.warn_of(
        ColumnRisk(name, values, identifier=True, kept=True)
        for name, values in table.checks.identifiers.items()
    )
    table._published_as(policy, manifest.protect)
    warned = table.warnings + manifest.protect.notes
    warned += publication_notes(policy, secret, written, plan, manifest.group_schema)
    notes = table.notes
    if account is not None:
        warned, notes = warned + tuple(account.warnings), notes + tuple(account.notes)
    uri = str(place.out) if is_uri(place.out) else None
    return Release(Path(place.out), manifest, written, warned, uri=uri, notes=notes)

"""Publishing: an engine writes the files, and the manifest joins them."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

from reconpriv.cells.randomness import Key
from reconpriv.columns.schema import ColumnLabels, Schema
from reconpriv.engines.base import FORMATS, Layout, Written
from reconpriv.engines.grouped import GroupedTable
from reconpriv.errors import InputError, OutputError, PolicyError, UnattainableError
from reconpriv.ledger.account import Account
from reconpriv.messages.remedies import Advice, Control, Remedy, either
from reconpriv.policy.policy import Policy
from reconpriv.protect.kernel import Kernel
from reconpriv.protect.margins.planned import MarginPlan, margin_notes
from reconpriv.protect.watched import Watched, Watcher
from reconpriv.release.described import NO_MARGIN_FILES, DescribedMargins
from reconpriv.release.folder import ReleaseFolder
from reconpriv.release.labels import LabelledValues
from reconpriv.release.manifest import TEST_KEY_NOTE, Manifest
from reconpriv.release.margin_file import write_margins
from reconpriv.sources.databases.url import is_database_url
from reconpriv.writing.folder import is_uri, new_folder
from reconpriv.writing.marker import MANIFEST
from reconpriv.writing.scratch import temporary

_LARGER_SHARES = 0.25


def no_folder(call: str) -> InputError:
    """The error for a release that has no place; ``call`` gives it one."""
    return InputError("There is no folder to write the release to.", hint=f"Give one: {call}.")


def check_format(file_format: str) -> None:
    """Refuse a format that a release cannot have."""
    if file_format not in FORMATS:
        raise PolicyError(
            f"There is no release format {file_format!r}.",
            hint=f"Choose one of: {', '.join(FORMATS)}.",
        )


@dataclass(frozen=True)
class Destination:
    """Where a release goes and in which format, and what is done with the folder when it is whole.

    ``overwrite`` replaces a release that is there.
    """

    out: str | os.PathLike[str]
    file_format: str = "parquet"
    overwrite: bool = False
    also: Callable[[Path], None] | None = None


def write_release(
    table: GroupedTable,
    policy: Policy,
    key: Key,
    place: Destination,
    *,
    labels: Mapping[str, ColumnLabels],
    watchers: Sequence[Watcher],
    check: Callable[[Written], None],
    account: Account | None = None,
) -> tuple[Manifest, Written, MarginPlan]:
    """Write a release to a folder, or to a URI that only the engine can reach.

    ``watchers`` see every batch of groups. ``check`` may refuse what was written before it becomes
    final. ``account`` is its entry in the ledger of the key, written just before that.
    """
    engine, schema = table.engine, table.grouping.schema
    out, also, overwrite = place.out, place.also, place.overwrite
    layout = Layout.of(place.file_format, with_trials=policy.sampling_rule.trials_public)
    table = table.protected(policy, key)
    grouping, plan = table.grouping, table.margins(policy, key)
    policy = policy if plan.published else replace(policy, margins=None)
    named = LabelledValues(schema, labels)
    watchers = [*watchers, *([named] if labels else []), *([account.tally] if account else [])]
    kernel = Watched(Kernel(grouping.group_schema, policy, key, plan.counted), tuple(watchers))

    def margins_in(folder: Path) -> DescribedMargins:
        if not plan.published:
            return NO_MARGIN_FILES
        schema, ending = grouping.group_schema, layout.file_format
        return write_margins(folder, plan.tables, plan.margins, plan.variance, schema, ending)

    def describe(written: Written, margins: DescribedMargins) -> Manifest:
        if written.unattainable_groups and policy.unattainable == "refuse":
            raise _unattainable(policy, written)
        check(written)
        return Manifest.of(
            schema,
            policy,
            written,
            layout=layout,
            test_key=key.is_test,
            labels=named.published,
            margins=margins,
            protect=grouping.coarsening,
        )

    def recorded(manifest: Manifest, written: Written) -> Manifest:
        if account is not None:
            account.record(manifest.records, written.groups)
        return manifest

    if not is_uri(out):
        with account or nullcontext(), new_folder(Path(out), overwrite=overwrite) as folder:
            written = engine.write(grouping, kernel, folder, layout, table.progress)
            manifest = describe(written, margins_in(folder))
            _finish_folder(folder, manifest)
            recorded(manifest, written)
            if also is not None:
                also(folder)
    elif is_database_url(out) or also is not None:
        raise OutputError(
            "A release is written to a folder on this machine before it goes elsewhere.",
            hint=Remedy("to load it into a database, use {}", Control.TO_TABLE),
        )
    else:
        with temporary("margins") as folder:  # small, so made here wherever they go
            margins = margins_in(folder)
            contents = {name: (folder / name).read_bytes() for name in margins.files.names}
        with account or nullcontext():
            written = engine.write_to_uri(
                grouping,
                kernel,
                str(out),
                layout,
                table.progress,
                overwrite=overwrite,
                manifest=lambda found: recorded(describe(found, margins), found).to_json(),
                beside=contents,
            )
        manifest = describe(written, margins)
    return manifest, written, plan


def _finish_folder(folder: Path, manifest: Manifest) -> None:
    """Add the manifest; a release holds the files that the manifest names and nothing else."""
    (folder / MANIFEST).write_text(manifest.to_json(), encoding="utf-8")
    expected = {MANIFEST, *(path.name for path in ReleaseFolder(folder, manifest).files)}
    found = {file.name for file in folder.iterdir()}
    if found != expected:
        raise OutputError(
            "Something else was written into the release folder in the meantime.",
            hint="Publish it again.",
        )


def _unattainable(policy: Policy, written: Written) -> UnattainableError:
    exact = policy.tail_bound.exact
    groups, records = written.unattainable_groups, written.unattainable_records
    # Rare values are rarely overestimated by half, so exact tails may not be had for all values.
    rarer = Remedy("protect only larger shares", Control.EXPOSED_ABOVE, _LARGER_SHARES)
    what = "no number of trials is private" if exact else "not even one trial is private (s_g < 1)"
    return UnattainableError(
        f"In {groups:,} group(s) with {records:,} record(s) {what}.",
        hint=either(
            "lower p, the tolerance or the doubt",
            *([rarer] if exact and policy.exposed_above < _LARGER_SHARES else []),
            Remedy("accept one trial in each of them", Control.UNATTAINABLE, "one-trial"),
        ),
    )


def publication_notes(
    policy: Policy, key: Key, written: Written, plan: MarginPlan, schema: Schema
) -> tuple[str, ...]:
    """What the chosen key, policy and margins give up."""
    notes: list[str] = []
    if key.is_test:
        notes.append(TEST_KEY_NOTE)
    elif key.ephemeral:
        notes.append(
            Advice(
                "No key was given: a second publication would be an independent sample that can be"
                " averaged with this one.",
                Remedy("if you will publish again, keep a key: {}", Control.KEY, "FILE"),
            )
        )
    if policy.sampling_rule.warning:
        notes.append(policy.sampling_rule.warning)
    if written.unattainable_groups:
        notes.append(
            f"{written.unattainable_groups:,} groups in which not even one trial is private keep"
            " one; nothing is promised for them."
        )
    return (*notes, *margin_notes(plan, policy, schema))

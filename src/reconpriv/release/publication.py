"""Publishing: an engine writes the files, and the manifest joins them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from reconpriv.core.cells import CellBatch
from reconpriv.core.coarsening import coarsen
from reconpriv.core.cube import Cube, collect
from reconpriv.core.kernel import Kernel, PublishedBatch
from reconpriv.core.margin_cost import margin_notes
from reconpriv.core.margin_plan import MapGroups, MarginPlan, count_margins, plan_margins
from reconpriv.core.margins import NoMarginsError
from reconpriv.core.protected import publish_protected
from reconpriv.core.randomness import Key
from reconpriv.engines.base import (
    FORMATS,
    Engine,
    Layout,
    Progress,
    PublishFunction,
    Written,
    no_progress,
)
from reconpriv.engines.local import LocalEngine
from reconpriv.engines.writer import write_protected_files
from reconpriv.errors import InputError, OutputError, PolicyError, UnattainableError
from reconpriv.ledger.account import Account
from reconpriv.ledger.trials import Tallied, TallyPart
from reconpriv.messages.remedies import Advice, Control, Remedy, either
from reconpriv.policy import Policy
from reconpriv.release.described_margins import DescribedMargins
from reconpriv.release.folder import ReleaseFolder
from reconpriv.release.labels import Watched
from reconpriv.release.manifest import TEST_KEY_NOTE, Manifest
from reconpriv.release.margin_file import write_margins
from reconpriv.schema import ColumnLabels, Schema
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


def write_release(
    engine: Engine,
    schema: Schema,
    policy: Policy,
    key: Key,
    out: str | os.PathLike[str],
    *,
    labels: Mapping[str, ColumnLabels],
    file_format: str,
    drop_missing: bool,
    overwrite: bool,
    progress: Progress,
    also: Callable[[Path], None] | None,
    watch: Callable[[CellBatch], None],
    check: Callable[[Written], None],
    account: Account | None = None,
) -> tuple[Manifest, Written, MarginPlan | None]:
    """Write a release to a folder, or to a URI that only the engine can reach.

    On this machine, ``watch`` sees every batch of groups. ``check`` may refuse what was written
    before it becomes final. ``account`` is its entry in the ledger of the key, written just before
    that.
    """
    layout = Layout.of(file_format, with_trials=policy.sampling.trials_public)
    map_groups = partial(engine.map_groups, schema, drop_missing=drop_missing, progress=progress)
    planned = _planned_margins(map_groups, schema, policy, key)
    plan = planned if planned is not None and planned.published else None
    policy = policy if plan is not None else replace(policy, margins=None)
    protected = None
    if policy.protect is not None:
        raw = protection_cells(engine, schema, drop_missing=drop_missing, progress=progress)
        protected = publish_protected(raw, policy, key)
        watch(raw.as_batch())
        if account is not None:
            coarse = coarsen(raw, protected.settled).cube
            account.tally.add(Kernel(coarse.schema, policy, key), coarse.as_batch())
    plain = Kernel(schema, policy, key, None if plan is None else plan.counted)
    kernel: PublishFunction = plain
    if account is not None:
        kernel = _tallied(engine, plain, account, drop_missing=drop_missing, progress=progress)
    if labels:
        kernel = Watched(kernel, schema, labels)
        if protected is not None:
            kernel.see(raw.as_batch())

    def describe(written: Written, margins: DescribedMargins | None) -> Manifest:
        if written.unattainable_groups and policy.unattainable == "refuse":
            raise _unattainable(policy, written)
        check(written)
        return Manifest.of(
            schema,
            policy,
            written,
            layout=layout,
            test_key=key.is_test,
            labels=kernel.published if isinstance(kernel, Watched) else {},
            margins=margins,
            protect=None if protected is None else protected.settled,
        )

    def write(folder: Path) -> Written:
        if protected is not None:
            return write_protected_files(protected, schema, folder, layout, progress)
        return engine.write(
            schema,
            Seen(kernel, watch) if engine.name == LocalEngine.name else kernel,
            folder,
            layout=layout,
            drop_missing=drop_missing,
            progress=progress,
        )

    def recorded(manifest: Manifest, written: Written) -> Manifest:
        if account is not None:
            account.record(manifest.records, written.groups)
        return manifest

    if not is_uri(out):
        with account or nullcontext(), new_folder(Path(out), overwrite=overwrite) as folder:
            written = write(folder)
            margins = None
            if plan is not None:
                margins = write_margins(folder, plan, schema, layout.file_format)
            manifest = describe(written, margins)
            _finish_folder(folder, manifest)
            recorded(manifest, written)
            if also is not None:
                also(folder)
    elif is_database_url(out) or also is not None or protected is not None:
        raise OutputError(
            "A release is written to a folder on this machine before it goes elsewhere.",
            hint=Remedy("to load it into a database, use {}", Control.TO_TABLE),
        )
    else:
        margins, contents = _margin_contents(plan, schema, layout)
        with account or nullcontext():
            written = engine.write_to_uri(
                schema,
                kernel,
                str(out),
                layout=layout,
                drop_missing=drop_missing,
                overwrite=overwrite,
                manifest=lambda found: recorded(describe(found, margins), found).to_json(),
                beside=contents,
                progress=progress,
            )
        manifest = describe(written, margins)
    return manifest, written, planned


def _planned_margins(
    map_groups: MapGroups, schema: Schema, policy: Policy, key: Key
) -> MarginPlan | None:
    """The margins that a policy asks for, with their noise."""
    if policy.margins is None:
        return None
    try:
        totals = count_margins(map_groups, policy, schema)
    except NoMarginsError:
        return None
    return plan_margins(totals, policy, schema, key)


@dataclass(frozen=True)
class Seen:
    """Publishes as a kernel does, and shows every batch to somebody."""

    publish: PublishFunction
    watch: Callable[[CellBatch], None]

    def __call__(self, batch: CellBatch) -> Iterator[PublishedBatch]:
        """Publish the batch."""
        self.watch(batch)
        return self.publish(batch)


def _tallied(
    engine: Engine, kernel: Kernel, account: Account, *, drop_missing: bool, progress: Progress
) -> PublishFunction:
    """The kernel; the account learns the trials as they pass, or from the machines they pass on."""
    if engine.name == LocalEngine.name:
        return Tallied(kernel, account.tally)
    tally = TallyPart(kernel)
    for part in engine.map_groups(
        kernel.schema, tally, drop_missing=drop_missing, progress=progress
    ):
        account.tally.join(part)
    return kernel


def protection_cells(
    engine: Engine, schema: Schema, *, drop_missing: bool, progress: Progress = no_progress
) -> Cube:
    """The cells of a table in memory, which protection groups are made from."""
    if engine.name != LocalEngine.name:
        raise PolicyError(
            f"Protection beyond the micro group is not available on {engine.name}.",
            hint=Remedy("use the default engine", Control.ENGINE, LocalEngine.name),
        )
    return collect(engine.batches(schema, drop_missing=drop_missing, progress=progress), schema)


def _margin_contents(
    plan: MarginPlan | None, schema: Schema, layout: Layout
) -> tuple[DescribedMargins | None, dict[str, bytes]]:
    """The files of margins by name: small, so they are made here wherever they go."""
    if plan is None:
        return None, {}
    with temporary("margins") as folder:
        margins = write_margins(folder, plan, schema, layout.file_format)
        return margins, {file: (folder / file).read_bytes() for file in margins.files.names}


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
    exact = policy.tail_bound.lattice
    groups, records = written.unattainable_groups, written.unattainable_records
    # Rare values are rarely overestimated by half, so exact tails may not be had for all values.
    rarer = Remedy("protect only larger shares", Control.EXPOSED_ABOVE, _LARGER_SHARES)
    what = "no number of trials is private" if exact else "not even one trial is private (s_g < 1)"
    return UnattainableError(
        f"In {groups:,} group(s) with {records:,} record(s) {what}.",
        hint=either(
            "lower p, ε or δ",
            *([rarer] if exact and policy.exposed_above < _LARGER_SHARES else []),
            Remedy("accept one trial in each of them", Control.UNATTAINABLE, "one-trial"),
        ),
    )


def publication_notes(
    policy: Policy, key: Key, written: Written, plan: MarginPlan | None, schema: Schema
) -> tuple[str, ...]:
    """What the chosen key, policy and margins give up."""
    notes = _key_notes(key) + _policy_notes(policy, written)
    return notes if policy.margins is None else notes + margin_notes(plan, policy, schema)


def _policy_notes(policy: Policy, written: Written) -> tuple[str, ...]:
    notes = [policy.sampling.warning] if policy.sampling.warning else []
    if written.unattainable_groups:
        notes.append(
            f"{written.unattainable_groups:,} groups in which not even one trial is private keep"
            " one; nothing is promised for them."
        )
    return tuple(notes)


def _key_notes(key: Key) -> tuple[str, ...]:
    if key.is_test:
        return (TEST_KEY_NOTE,)
    if key.ephemeral:
        return (
            Advice(
                "No key was given: a second publication would be an independent sample that can be"
                " averaged with this one.",
                Remedy("if you will publish again, keep a key: {}", Control.KEY, "FILE"),
            ),
        )
    return ()

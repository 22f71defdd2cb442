"""Side channels: a release's files must depend on nothing but its published content.

The published rows are read back, and the files are written again from them alone. If every
byte is the same, row order, sizes, statistics, row groups and dictionaries reveal nothing more.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet

from reconpriv.attacks.attacked_table import AttackedTable, attack_key, uniform_words
from reconpriv.attacks.result import AttackResult, Row
from reconpriv.attacks.statistics import rate
from reconpriv.cells.cube import Cube
from reconpriv.engines.base import Layout, Progress, no_progress
from reconpriv.engines.record_file import rows_per_row_group
from reconpriv.engines.writer import write_release_files
from reconpriv.policy.policy import Policy
from reconpriv.protect.group_by import GroupBy
from reconpriv.protect.kernel import PublishedBatch, PublishedCells
from reconpriv.protect.margins.planned import PlannedTable
from reconpriv.release.folder import ReleaseFolder
from reconpriv.release.load import load_cube, load_records, load_table
from reconpriv.release.manifest import DATA, GROUPS
from reconpriv.release.margin_file import read_margins, write_margins
from reconpriv.writing.marker import MANIFEST
from reconpriv.writing.scratch import temporary

if TYPE_CHECKING:
    from reconpriv.table import Table

KNEW = "the files of the release, byte by byte"


class Channel(NamedTuple):
    """One way in which a file could reveal more than its rows, and whether it does."""

    name: str
    leaks: bool
    detail: str


def attack_side_channels(
    table: Table, policy: Policy, *, progress: Progress = no_progress
) -> AttackResult:
    """Publish the table, check every channel, and publish it again from shuffled records."""
    target = AttackedTable.of(table, policy, progress)
    heard = target.progress
    with temporary("attack") as work:
        folder, again = Path(work, "release"), Path(work, "again")
        # Nothing here leaves the lab, so nothing needs permission, nor a check of people.
        public = [column.name for column in table.schema.public]

        def publish(records: Table, folder: Path) -> None:
            records.publish(
                policy, folder, key=attack_key(0), max_unique=1.0, keep_identifier=public,
                keep_giveaway=public, progress=heard,
            )  # fmt: skip

        if table.schema.person is None:
            publish(table, folder)
        else:
            with table.with_records(shuffled_records(target, "rows of people")) as nobodys:
                publish(nobodys, folder)
        heard("checking the files", 0.0)
        channels = [*release_channels(folder)]
        with table.with_records(shuffled_records(target)) as shuffled:
            publish(shuffled, again)
        differ = [f.name for f in sorted(folder.iterdir()) if not _same(f, again / f.name)]
        detail = f"differs: {', '.join(differ)}" if differ else "same bytes from shuffled records"
        channels.append(Channel("order of the input", bool(differ), detail))
        control = spoiled_channels(folder, Path(work, "spoiled"))
    return _result(channels, control)


def guess_from_release(release: ReleaseFolder, *, show: int = 0) -> AttackResult:
    """Check every channel of an existing release."""
    del show  # all are shown
    with temporary("attack") as work:
        channels = list(release_channels(release.path))
        control = spoiled_channels(release.path, Path(work, "spoiled"))
    return _result(channels, control)


def _result(channels: list[Channel], control: list[Channel]) -> AttackResult:
    leaking = [channel.name for channel in channels if channel.leaks]
    rows: tuple[Row, ...] = tuple(
        {"channel": c.name, "leaks": "yes" if c.leaks else "no", "detail": c.detail}
        for c in channels
    )
    found = ", ".join(leaking)
    return AttackResult(
        name="side-channels",
        knew=KNEW,
        success=rate(np.array([c.leaks for c in channels]), "channels that reveal more"),
        control=rate(
            np.array([c.leaks for c in control]), "the same for a release with its rows shuffled"
        ),
        table=rows,
        verdict=f"The files reveal more than their rows: {found}."
        if leaking
        else f"None of {len(channels)} channels reveals more than the published rows do.",
    )


def release_channels(folder: Path) -> Iterator[Channel]:
    """Every channel of a release folder."""
    stored = ReleaseFolder.open(folder)
    cube = load_cube(stored)
    yield from _rewritten(stored, cube)
    yield _row_order(stored)
    if stored.manifest.file_format == "parquet":
        files = {file.name: pyarrow.parquet.read_metadata(file) for file in stored.files}
        wrong = ", ".join(name for name, metadata in files.items() if not _full_groups(metadata))
        detail = f"odd row groups in {wrong}" if wrong else "row groups of a fixed size"
        yield Channel("row groups", bool(wrong), detail)
        # No schema of a data frame, no path, no time.
        wrong = ", ".join(name for name, metadata in files.items() if metadata.metadata)
        detail = f"metadata in {wrong}" if wrong else "none but the writer's version"
        yield Channel("Parquet metadata", bool(wrong), detail)
    unknown = ", ".join(stored.manifest.unknown)
    detail = f"unknown: {unknown}" if unknown else "policy and published table only"
    yield Channel("manifest", bool(unknown), detail)
    known = {MANIFEST, *(file.name for file in stored.files)}
    found = sorted({file.name for file in stored.path.iterdir()} - known)
    yield Channel("other files", bool(found), ", ".join(found) or "none")


def _rewritten(stored: ReleaseFolder, cube: Cube) -> Iterator[Channel]:
    """Write data, groups and margins again from what they say, and compare bytes."""
    schema, batch = stored.manifest.schema, cube.as_batch()
    own, none = batch.whole, np.zeros(batch.whole.groups, dtype=bool)
    everything = np.arange(batch.groups)
    dealt = PublishedCells(batch.public, everything, batch.group_of_cell, batch.value, batch.count)
    published = PublishedBatch(
        own.public, np.arange(own.groups), own.group_of_cell, own.value, own.count,
        own.sizes, own.sizes, cube.whole.trials.astype(np.int64), none, none, dealt,
    )  # fmt: skip
    layout = Layout(
        stored.manifest.file_format,
        stored.manifest.cell_count is not None,
        bool(stored.paths(GROUPS)),
    )
    with temporary("attack") as work:
        grouping = GroupBy(schema, coarsening=stored.manifest.protect)
        publish = lambda _: iter([published])  # noqa: E731
        write_release_files([batch], grouping, publish, Path(work), layout, no_progress)
        said = stored.manifest.margins
        if tables := [PlannedTable(table, 0) for table in read_margins(stored)]:
            schema, ending = cube.whole.schema, layout.file_format
            write_margins(Path(work), tables, said.wanted, said.variance, schema, ending)
        for file in stored.files:
            same = _same(file, Path(work, file.name))
            detail = "same bytes when written from its rows" if same else "other bytes"
            yield Channel(f"bytes of {file.name}", not same, detail)


def _row_order(stored: ReleaseFolder) -> Channel:
    """Rows are sorted by public values, then by the sensitive value's position in the domain."""
    records = load_records(stored)
    domain = pa.array(stored.manifest.schema.domain, records.column(records.num_columns - 1).type)
    place = pc.index_in(records.column(records.num_columns - 1), domain)
    public = records.select(range(records.num_columns - 1))
    keyed = public.append_column("\0place", place)
    # Missing values come last, the default, as in a release.
    order = pc.sort_indices(keyed, [(name, "ascending") for name in keyed.column_names])
    same = np.array_equal(order.to_numpy(), np.arange(len(order)))
    return Channel("row order", not same, "sorted by group, then value" if same else "not sorted")


def _full_groups(metadata: pyarrow.parquet.FileMetaData) -> bool:
    """True if all row groups but the last have the fixed number of rows."""
    *rows, last = (metadata.row_group(i).num_rows for i in range(metadata.num_row_groups))
    full = rows_per_row_group(metadata.num_columns)
    return all(n == full for n in rows) and last <= full


def spoiled_channels(folder: Path, copy: Path) -> list[Channel]:
    """The control: the same rows in another order, in one odd file, must be detected."""
    stored = ReleaseFolder.open(folder)
    copy.mkdir()
    for file in folder.iterdir():
        (copy / file.name).write_bytes(file.read_bytes())
    first = stored.paths(DATA)[:1]
    rows = load_table(stored, DATA, first)
    order = np.argsort(uniform_words(rows.num_rows, "spoil"), kind="stable")
    spoiled = copy / first[0].name
    if spoiled.suffix == ".parquet":
        pyarrow.parquet.write_table(rows.take(order), spoiled, row_group_size=997)
    else:
        pa.csv.write_csv(rows.take(order), spoiled)
    return list(release_channels(copy))


def shuffled_records(target: AttackedTable, order: str = "order") -> pa.Table:
    """The raw records in another order, one for each name."""
    batch, schema = target.batch, target.schema
    cell = np.repeat(np.arange(batch.count.size), batch.count)
    cell = cell[np.argsort(uniform_words(cell.size, order), kind="stable")]
    group = batch.group_of_cell[cell]
    columns = {
        column.name: encoded.values.take(pa.array(encoded.codes[group]))
        for column, encoded in zip(schema.public, batch.public, strict=True)
    }
    columns[schema.sensitive.name] = pa.array(schema.domain).take(pa.array(batch.value[cell]))
    return pa.table(columns)


def _same(one: Path, other: Path) -> bool:
    return other.is_file() and one.read_bytes() == other.read_bytes()

"""Writing a release from Spark: published groups are staged, put in order, and cut into files.

Staging fixes the published groups before anything else is made of them. A file of a release holds a
fixed range of its rows, so once the range of each group is known, workers write the files
independently, and they come out as a single machine would write them.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from reconpriv.auditing.single_records import K
from reconpriv.engines.base import Layout, Progress, Written, WrittenFile
from reconpriv.engines.record_file import file_name
from reconpriv.engines.spark.jobs import map_in_arrow, remove_for_good, spark_work
from reconpriv.engines.spark.session import Session
from reconpriv.engines.spark.tasks import (
    FileRows,
    NumberGroups,
    PublishGroups,
    SeesFile,
    WriteFiles,
)
from reconpriv.engines.writer import data_names, group_names
from reconpriv.errors import OutputError
from reconpriv.protect.watched import Watched

Finish = Callable[[Any, FileRows], Sequence[dict[str, Any]]]
"""Writes files from rows sorted by (file, start); returns (file, rows, bytes, sha256) of each."""

PartTotals = dict[str, int]
"""Of a part: its number, rows, and what a publication counts for its publisher."""

FILE_COLUMNS = {"file": "bigint", "rows": "bigint", "bytes": "bigint", "sha256": "string"}
_PUBLISHED = {
    "records": "bigint",
    "trials": "bigint",
    "sampled": "boolean",
    "unattainable": "bigint",
    "values": "array<int>",
    "counts": "array<bigint>",
}
_NUMBERED = {"part": "bigint", "data_start": "bigint", "group_start": "bigint"}
_TOTALS = {
    "records": "sum(records)",
    "groups": "count(*)",
    "sampled_groups": "count_if(sampled)",
    "trials": "sum(trials)",
    "unattainable_groups": "count_if(unattainable > 0)",
    "unattainable_records": "sum(unattainable)",
    "unique_records": "count_if(records = 1)",
    "few_records": f"coalesce(sum(records) FILTER (WHERE records < {K}), 0)",
}


def write_to_folder(
    session: Session,
    groups: Any,
    task: PublishGroups,
    folder: Path,
    layout: Layout,
    progress: Progress,
) -> Written:
    """Publish into a folder that this machine and all workers share."""
    folder = folder.absolute()
    # Beside the release, not in it: nothing here can ever be mistaken for part of it.
    staging = Path(tempfile.mkdtemp(prefix=f"{folder.name}.staging-", dir=folder.parent))
    try:
        with spark_work(session, "writing", "starting", progress):
            _check_shared(session, staging)

        def finish(ordered: Any, rows: FileRows) -> Sequence[dict[str, Any]]:
            files = WriteFiles(rows, str(staging), str(folder))
            done = map_in_arrow(ordered, files, struct(FILE_COLUMNS)).toArrow()
            return list(done.to_pylist())

        # Spark takes a path as it is written: nothing in it may be encoded.
        written = write_release(
            session, groups, task, f"file://{staging}", finish, layout, progress
        )
    except BaseException as error:
        remove = partial(shutil.rmtree, staging, ignore_errors=True)
        remove_for_good(session, remove, staging.exists, cancel=not isinstance(error, Exception))
        raise
    shutil.rmtree(staging, ignore_errors=True)
    return written


def write_release(
    session: Session,
    groups: Any,
    task: PublishGroups,
    staging: str,
    finish: Finish,
    layout: Layout,
    progress: Progress,
) -> Written:
    """Publish sorted whole groups (public…, sensitive, n) and write the release's files."""
    schema = task.grouping.schema
    micro = task.micro_columns
    with spark_work(session, "publishing", "publishing", progress):
        own = _public_fields(groups, task)
        published = map_in_arrow(groups, task, struct(_PUBLISHED | {"told": "binary"}, own))
        staged = _stage(session, published, f"{staging}/published")
        staged = _heard(staged, task)

        def numbered(rows: Any, public: Sequence[str], name: str) -> tuple[Any, list[PartTotals]]:
            """Some of the groups in order, with their places."""
            ordered = rows.coalesce(1)
            if public:
                ordered = rows.orderBy(*(rows[name].asc_nulls_last() for name in public))
            placed = map_in_arrow(
                ordered, NumberGroups(layout), struct(_PUBLISHED | _NUMBERED, own)
            )
            placed = _stage(session, placed, f"{staging}/{name}")
            totals = _part_totals(placed, layout)
            return placed.join(_bases(session, totals), "part"), totals

        if task.columns == micro:
            data, of_data = placed, totals = numbered(staged, micro, "numbered")
        else:
            data, of_data = numbered(staged.where("counts IS NOT NULL"), micro, "rows")
            placed, totals = numbered(staged.where("trials IS NOT NULL"), task.columns, "groups")
    if not totals:
        raise OutputError(
            "What Spark's workers wrote cannot be seen from here.",
            hint="Give a folder that all machines share, or a URI such as hdfs://… or s3a://….",
        )
    with spark_work(session, "writing", "writing", progress):
        names = tuple(data_names(schema, layout))
        rows = FileRows("data", _files(of_data, "rows", layout), names, schema, layout)
        data_files = _write_files(data, micro, rows, finish)
        group_files: tuple[WrittenFile, ...] = ()
        if layout.with_trials:
            of_groups = task.grouping.group_schema
            names = tuple(group_names(of_groups))
            rows = FileRows("groups", _files(totals, "groups", layout), names, of_groups, layout)
            group_files = _write_files(placed, task.columns, rows, finish)
    sums = {name: sum(total[name] for total in totals) for name in _TOTALS}
    return Written(data=data_files, groups_files=group_files, **sums)


def _heard(staged: Any, task: PublishGroups) -> Any:
    """The staged groups, once the watchers know what was told to them."""
    publish = task.publish
    if isinstance(publish, Watched) and publish.watchers:
        told = staged.where("told IS NOT NULL").select("told").toArrow()
        for one in told.column(0).to_pylist():
            publish.join(one)
    return staged.where("told IS NULL").drop("told")


def _public_fields(groups: Any, task: PublishGroups) -> list[Any]:
    """The public columns of published groups: those of micro groups, then of protection groups."""
    from pyspark.sql import types  # noqa: PLC0415 - an extra

    schema, coarsening = task.grouping.schema, task.grouping.coarsening
    fields = [groups.schema[f"c{i}"] for i in range(len(schema.public))]
    kinds = {
        column.name: types.StringType() if column.name in coarsening.names else field.dataType
        for column, field in zip(schema.public, fields, strict=True)
    }
    coarse = zip(task.columns, task.grouping.group_schema.public, strict=True)
    found = {field.name: field for field in fields}
    for name, column in coarse:
        found.setdefault(name, types.StructField(name, kinds[column.name]))
    return [*found.values()]


def struct(columns: dict[str, str], first: Sequence[Any] = ()) -> Any:
    """A Spark schema: some fields as they are, then columns by name and type.

    Types as text would depend on settings of the session (what `timestamp` means).
    """
    from pyspark.sql import types  # noqa: PLC0415 - an extra

    known = {
        "bigint": types.LongType(),
        "boolean": types.BooleanType(),
        "string": types.StringType(),
        "binary": types.BinaryType(),
        "int": types.IntegerType(),
        "array<int>": types.ArrayType(types.IntegerType()),
        "array<bigint>": types.ArrayType(types.LongType()),
    }
    rest = [types.StructField(name, known[kind]) for name, kind in columns.items()]
    return types.StructType([*first, *rest])


def _stage(session: Session, frame: Any, path: str) -> Any:
    frame.write.parquet(path)
    # Spark takes a bracket or star for a pattern when it reads, not when it writes.
    escaped = re.sub(r"([\[\]{}*?\\])", r"\\\1", path)
    return session.spark.read.schema(frame.schema).parquet(escaped)


def _part_totals(numbered: Any, layout: Layout) -> list[PartTotals]:
    """Totals of each part, in the order of the parts."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - Spark's own custom; an extra

    rows = "coalesce(sum(size(counts)), 0)" if layout.cells else "sum(records)"
    sums = [F.expr(sql).alias(name) for name, sql in {**_TOTALS, "rows": rows}.items()]
    table = numbered.groupBy("part").agg(*sums).toArrow()
    return sorted(table.to_pylist(), key=lambda total: total["part"])


def _bases(session: Session, totals: list[PartTotals]) -> Any:
    """How many rows and groups come before each part."""
    bases, rows, groups = [], 0, 0
    for total in totals:
        bases.append((total["part"], rows, groups))
        rows += total["rows"]
        groups += total["groups"]
    return session.spark.createDataFrame(
        bases, "part bigint, data_base bigint, group_base bigint"
    ).hint("broadcast")


def _files(totals: list[PartTotals], what: str, layout: Layout) -> int:
    """How many files it takes to hold all rows, or all groups."""
    return -(-sum(total[what] for total in totals) // layout.rows_per_file)


def _write_files(
    placed: Any, public: Sequence[str], rows: FileRows, finish: Finish
) -> tuple[WrittenFile, ...]:
    """One or more files per task; each row goes to the file that its place belongs to."""
    layout, files, groups = rows.layout, rows.files, rows.stem == "groups"
    per_file = layout.rows_per_file
    length = "1" if groups else "size(counts)" if layout.cells else "records"
    start = "group_base + group_start" if groups else "data_base + data_start"
    spread = placed.selectExpr(
        *(f"{name} AS c{i}" for i, name in enumerate(public)),
        *(["records", "trials"] if groups else ["`values`", "counts"]),
        f"{start} AS start",
        f"explode(sequence(({start}) DIV {per_file}, ({start} + {length} - 1) DIV {per_file}))"
        " AS file",
    )
    together = spread.repartition(1) if files == 1 else spread.repartitionByRange(files, "file")
    ordered = together.sortWithinPartitions("file", "start")
    return tuple(
        WrittenFile(
            file_name(rows.stem, layout.file_format, row["file"], files),
            row["rows"],
            row["bytes"],
            row["sha256"],
        )
        for row in sorted(finish(ordered, rows), key=lambda row: row["file"])
    )


def _check_shared(session: Session, folder: Path) -> None:
    """Have workers look for a file that was just put there."""
    marker = folder / "shared"
    marker.touch()
    asked = session.spark.range(0, 8, 1, 4)
    seen = map_in_arrow(asked, SeesFile(str(marker)), struct({"seen": "boolean"})).toArrow()
    if not all(seen.column("seen").to_pylist()):
        raise OutputError(
            "Spark's workers do not see the folder of the release.",
            hint="Give a folder that all machines share and may write, or a URI such as hdfs://…"
            " or s3a://….",
        )

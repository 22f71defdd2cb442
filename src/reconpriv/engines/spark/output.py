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

from reconpriv.core.single_records import K
from reconpriv.engines.base import Layout, Progress, PublishFunction, Written, WrittenFile
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
from reconpriv.schema import Schema

Finish = Callable[[Any, FileRows], Sequence[dict[str, Any]]]
"""Writes files from rows sorted by (file, start); returns (file, rows, bytes, sha256) of each."""

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
    schema: Schema,
    publish: PublishFunction,
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
            task = WriteFiles(rows, str(staging), str(folder))
            done = map_in_arrow(ordered, task, struct(FILE_COLUMNS)).toArrow()
            return list(done.to_pylist())

        # Spark takes a path as it is written: nothing in it may be encoded.
        written = write_release(
            session, groups, schema, publish, f"file://{staging}", finish, layout, progress
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
    schema: Schema,
    publish: PublishFunction,
    staging: str,
    finish: Finish,
    layout: Layout,
    progress: Progress,
) -> Written:
    """Publish sorted whole groups (public…, sensitive, n) and write the release's files."""
    public = [f"c{i}" for i in range(len(schema.public))]
    with spark_work(session, "publishing", "publishing", progress):
        own = [groups.schema[name] for name in public]
        task = PublishGroups(publish, schema)
        published = map_in_arrow(groups, task, struct(_PUBLISHED, own))
        staged = _stage(session, published, f"{staging}/published")
        ordered = staged.coalesce(1)
        if public:
            ordered = staged.orderBy(*(staged[name].asc_nulls_last() for name in public))
        numbering = NumberGroups(layout)
        numbered = map_in_arrow(ordered, numbering, struct(_PUBLISHED | _NUMBERED, own))
        numbered = _stage(session, numbered, f"{staging}/numbered")
        totals = _part_totals(numbered, layout)
    if not totals:
        raise OutputError(
            "What Spark's workers wrote cannot be seen from here.",
            hint="Give a folder that all machines share, or a URI such as hdfs://… or s3a://….",
        )
    with spark_work(session, "writing", "writing", progress):
        placed = numbered.join(_bases(session, totals), "part")
        data = _write_files(placed, "data", schema, layout, finish, totals)
        group_files: tuple[WrittenFile, ...] = ()
        if layout.with_trials:
            group_files = _write_files(placed, "groups", schema, layout, finish, totals)
    sums = {name: sum(total[name] for total in totals) for name in _TOTALS}
    return Written(data=data, groups_files=group_files, **sums)


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


def _part_totals(numbered: Any, layout: Layout) -> list[dict[str, int]]:
    """Totals of each part, in the order of the parts."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - Spark's own custom; an extra

    rows = "sum(size(counts))" if layout.cells else "sum(records)"
    sums = [F.expr(sql).alias(name) for name, sql in {**_TOTALS, "rows": rows}.items()]
    table = numbered.groupBy("part").agg(*sums).toArrow()
    return sorted(table.to_pylist(), key=lambda total: total["part"])


def _bases(session: Session, totals: list[dict[str, int]]) -> Any:
    """How many rows and groups come before each part."""
    bases, rows, groups = [], 0, 0
    for total in totals:
        bases.append((total["part"], rows, groups))
        rows += total["rows"]
        groups += total["groups"]
    return session.spark.createDataFrame(
        bases, "part bigint, data_base bigint, group_base bigint"
    ).hint("broadcast")


def _write_files(
    placed: Any,
    stem: str,
    schema: Schema,
    layout: Layout,
    finish: Finish,
    totals: list[dict[str, int]],
) -> tuple[WrittenFile, ...]:
    """One or more files per task; each row goes to the file that its place belongs to."""
    whole = sum(total["groups" if stem == "groups" else "rows"] for total in totals)
    per_file = layout.rows_per_file
    files = -(-whole // per_file)
    rows = "1" if stem == "groups" else "size(counts)" if layout.cells else "records"
    start = "group_base + group_start" if stem == "groups" else "data_base + data_start"
    kept = [f"c{i}" for i in range(len(schema.public))]
    kept += ["records", "trials"] if stem == "groups" else ["`values`", "counts"]
    spread = placed.selectExpr(
        *kept,
        f"{start} AS start",
        f"explode(sequence(({start}) DIV {per_file}, ({start} + {rows} - 1) DIV {per_file}))"
        " AS file",
    )
    names = group_names(schema) if stem == "groups" else data_names(schema, layout)
    together = spread.repartition(1) if files == 1 else spread.repartitionByRange(files, "file")
    ordered = together.sortWithinPartitions("file", "start")
    found = finish(ordered, FileRows(stem, files, tuple(names), schema, layout))
    return tuple(
        WrittenFile(
            file_name(stem, layout.file_format, row["file"], files),
            row["rows"],
            row["bytes"],
            row["sha256"],
        )
        for row in sorted(found, key=lambda row: row["file"])
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

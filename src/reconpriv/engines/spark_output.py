"""Writing a release from Spark: published groups are staged, put in order, and cut into files.

Staging fixes the published groups before anything else is made of them. A file of a release holds
a fixed range of its rows, so where the range of a group is known, workers write the files
independently, and they come out as a single machine writes them.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from reconpriv.engines.base import Layout, Progress, PublishFunction, Written, WrittenFile
from reconpriv.engines.record_file import file_name
from reconpriv.engines.spark_session import Session, map_in_arrow, spark_work
from reconpriv.engines.spark_tasks import NumberGroups, PublishGroups, WriteFiles
from reconpriv.engines.writer import data_names, group_names
from reconpriv.errors import OutputError
from reconpriv.schema import Schema

_STAGING = ".staging"
_PUBLISHED = (
    "records bigint, trials bigint, sampled boolean, unattainable bigint,"
    " `values` array<int>, counts array<bigint>"
)
_NUMBERED = "part bigint, data_start bigint, group_start bigint"
_FILES = "file bigint, rows bigint, bytes bigint, sha256 string"


def write_release(
    session: Session,
    groups: Any,
    schema: Schema,
    publish: PublishFunction,
    folder: Path,
    layout: Layout,
    progress: Progress,
) -> Written:
    """Publish sorted whole groups (public…, sensitive, n) and write the release's files."""
    folder = folder.absolute()
    staging = folder / _STAGING
    with spark_work(session, "publishing", "publishing", progress):
        published = _stage(session, publish_groups(groups, schema, publish), staging / "published")
        numbered = _stage(session, number_groups(published, schema, layout), staging / "numbered")
    with spark_work(session, "writing", "writing", progress):
        totals = part_totals(numbered, layout)
        placed = numbered.join(_bases(session, totals), "part")
        data = _write_files(placed, "data", schema, layout, folder, totals)
        group_files: tuple[WrittenFile, ...] = ()
        if layout.with_trials:
            group_files = _write_files(placed, "groups", schema, layout, folder, totals)
    _check_shared(folder, (*data, *group_files))
    _remove(staging)
    sums = {name: sum(total[name] for total in totals) for name in TOTALS}
    return Written(data=data, groups_files=group_files, **sums)


def publish_groups(groups: Any, schema: Schema, publish: PublishFunction) -> Any:
    """A row a published group: public values, totals, and its cells as lists."""
    ddl = ", ".join([*public_ddl(groups, schema), _PUBLISHED])
    return map_in_arrow(groups, PublishGroups(publish, schema), ddl)


def number_groups(published: Any, schema: Schema, layout: Layout) -> Any:
    """The published groups in canonical order over the partitions, each with its place."""
    public = [f"c{i}" for i in range(len(schema.public))]
    ordered = (
        published.orderBy(*(published[name].asc_nulls_last() for name in public))
        if public
        else published.coalesce(1)
    )
    ddl = ", ".join([*public_ddl(published, schema), _PUBLISHED, _NUMBERED])
    return map_in_arrow(ordered, NumberGroups(layout), ddl)


def public_ddl(frame: Any, schema: Schema, names: Sequence[str] | None = None) -> list[str]:
    """The declarations of the public columns, under their names here or given ones."""
    own = [f"c{i}" for i in range(len(schema.public))]
    return [
        f"`{name.replace('`', '``')}` {frame.schema[column].dataType.simpleString()}"
        for column, name in zip(own, names or own, strict=True)
    ]


def _stage(session: Session, frame: Any, path: Path) -> Any:
    frame.write.parquet(path.as_uri())
    return session.spark.read.schema(frame.schema).parquet(path.as_uri())


TOTALS = {
    "records": "sum(records)",
    "groups": "count(*)",
    "sampled_groups": "count_if(sampled)",
    "trials": "sum(trials)",
    "unattainable_groups": "count_if(unattainable > 0)",
    "unattainable_records": "sum(unattainable)",
}


def part_totals(numbered: Any, layout: Layout) -> list[dict[str, int]]:
    """Totals of each part, in the order of the parts."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - Spark's own custom; an extra

    rows = "sum(size(counts))" if layout.cells else "sum(records)"
    sums = [F.expr(sql).alias(name) for name, sql in {**TOTALS, "rows": rows}.items()]
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
    folder: Path,
    totals: list[dict[str, int]],
) -> tuple[WrittenFile, ...]:
    """One task a file, or several files a task; each row goes to the file its place belongs to."""
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
    task = WriteFiles(stem, files, tuple(names), schema, layout, str(folder))
    together = spread.repartition(1) if files == 1 else spread.repartitionByRange(files, "file")
    ordered = together.sortWithinPartitions("file", "start")
    done = map_in_arrow(ordered, task, _FILES).toArrow()
    found = sorted(done.to_pylist(), key=lambda row: row["file"])
    return tuple(
        WrittenFile(
            file_name(stem, layout.file_format, row["file"], files),
            row["rows"],
            row["bytes"],
            row["sha256"],
        )
        for row in found
    )


def _check_shared(folder: Path, files: tuple[WrittenFile, ...]) -> None:
    for file in files:
        path = folder / file.name
        if not path.is_file() or path.stat().st_size != file.bytes:
            raise OutputError(
                "The files that Spark's workers wrote are not to be seen from here.",
                hint="Give a folder that all machines share, or a URI such as hdfs://… or s3a://….",
            )


def _remove(staging: Path) -> None:
    shutil.rmtree(staging, ignore_errors=True)
    # Left by attempts that were killed while they wrote.
    for unfinished in staging.parent.glob(".writing-*"):
        shutil.rmtree(unfinished, ignore_errors=True)

"""A release on any file system that Spark writes, named by a URI: hdfs://, s3a://, file:///, …

Spark's own writer makes the part files there; they are named, described and moved into place
through Hadoop's file system calls, which a classic session has and Spark Connect has not.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from reconpriv.engines.base import Layout, Progress, PublishFunction, Written, WrittenFile
from reconpriv.engines.record_file import file_name
from reconpriv.engines.spark_output import (
    TOTALS,
    number_groups,
    part_totals,
    public_ddl,
    publish_groups,
)
from reconpriv.engines.spark_session import Session, map_in_arrow, spark_work, translated
from reconpriv.engines.spark_tasks import ReleaseRows
from reconpriv.engines.writer import data_names, group_names
from reconpriv.errors import OutputError, ReconprivError
from reconpriv.schema import Schema

MANIFEST = "datapackage.json"


class RemoteFolder:
    """A folder on a file system of Spark's."""

    def __init__(self, session: Session, uri: str) -> None:
        """Look at nothing yet."""
        if session.connect:
            raise OutputError(
                "Over Spark Connect a release cannot be written to a URI.",
                hint="Give a folder that this machine and the workers share, or use a classic"
                " session.",
            )
        self.uri = uri.rstrip("/")
        self._jvm = session.spark._jvm
        self._path = self._jvm.org.apache.hadoop.fs.Path(self.uri)
        self._files = self._path.getFileSystem(session.spark._jsc.hadoopConfiguration())

    def path(self, name: str) -> Any:
        """A path below this one, for Hadoop."""
        return self._jvm.org.apache.hadoop.fs.Path(self._path, name)

    def exists(self) -> bool:
        """Whether there is anything at this place."""
        return bool(self._files.exists(self._path))

    def is_release(self) -> bool:
        """Whether it holds a manifest with our block."""
        if not self._files.exists(self.path(MANIFEST)):
            return False
        stream = self._files.open(self.path(MANIFEST))
        try:
            text = self._jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8")
        finally:
            stream.close()
        try:
            return isinstance(json.loads(text).get("reconpriv"), dict)
        except (ValueError, AttributeError):
            return False

    def names(self, below: str) -> list[str]:
        """The part files in a folder below, in order."""
        found = [status.getPath().getName() for status in self._files.listStatus(self.path(below))]
        return sorted(name for name in found if name.startswith("part-"))

    def rename(self, name: str, to: str) -> None:
        """Move a file within the folder."""
        if not self._files.rename(self.path(name), self.path(to)):
            raise OutputError(f"{self.uri} could not be written.")

    def move_to(self, other: RemoteFolder) -> None:
        """Take the place of another folder, which stays where this fails."""
        aside = self._jvm.org.apache.hadoop.fs.Path(f"{self.uri}.old")
        replacing = other.exists()
        if replacing and not self._files.rename(other._path, aside):
            raise OutputError(f"{other.uri} could not be replaced.")
        if not self._files.rename(self._path, other._path):
            if replacing:
                self._files.rename(aside, other._path)
            raise OutputError(f"{other.uri} could not be written.")
        self._files.delete(aside, True)

    def write_text(self, name: str, text: str) -> None:
        """A small file."""
        stream = self._files.create(self.path(name))
        try:
            stream.write(bytearray(text.encode("utf-8")))
        finally:
            stream.close()

    def delete(self, name: str | None = None) -> None:
        """Remove the folder, or something in it, with all that is below."""
        self._files.delete(self._path if name is None else self.path(name), True)


@contextmanager
def remote_release(session: Session, uri: str, *, overwrite: bool) -> Iterator[RemoteFolder]:
    """A folder beside the target that takes its place when whole, or vanishes."""
    try:
        target = RemoteFolder(session, uri)
        check_remote(target, overwrite=overwrite)
        parent, _, name = target.uri.rpartition("/")
        work = RemoteFolder(session, f"{parent}/.{name}.{os.getpid()}.part")
        try:
            yield work
            work.move_to(target)
        finally:
            work.delete()
    except ReconprivError:
        raise
    except Exception as error:
        raise translated(error, "writing") from None


def check_remote(target: RemoteFolder, *, overwrite: bool) -> None:
    """Refuse to write over anything that we did not make, or without being told to."""
    if not target.exists():
        return
    if not overwrite:
        raise OutputError(f"{target.uri} exists already.", hint="Use --overwrite to replace it.")
    if not target.is_release():
        raise OutputError(
            f"{target.uri} exists and is not a release; it will not be replaced.",
            hint="Choose another name, or remove it yourself.",
        )


def write_remote(
    session: Session,
    groups: Any,
    schema: Schema,
    publish: PublishFunction,
    folder: RemoteFolder,
    layout: Layout,
    progress: Progress,
) -> Written:
    """Publish sorted whole groups and have Spark write the release's files."""
    spark = session.spark
    sensitive = groups.schema[f"c{len(schema.public)}"].dataType.simpleString()

    def stage(frame: Any, name: str) -> Any:
        frame.write.parquet(f"{folder.uri}/{name}")
        return spark.read.schema(frame.schema).parquet(f"{folder.uri}/{name}")

    with spark_work(session, "publishing", "publishing", progress):
        published = stage(publish_groups(groups, schema, publish), ".published")
        numbered = stage(number_groups(published, schema, layout), ".numbered")
        totals = part_totals(numbered, layout)
    with spark_work(session, "writing", "writing", progress):
        public = public_ddl(published, schema, names=[c.name for c in schema.public])
        count = [f"`{data_names(schema, layout)[-1]}` bigint"] if layout.cells else []
        data_ddl = ", ".join([*public, f"{_quoted(schema.sensitive.name)} {sensitive}", *count])
        data = _write_rows(spark, numbered, "data", data_ddl, schema, layout, folder, len(totals))
        group_files: tuple[WrittenFile, ...] = ()
        if layout.with_trials:
            counts = [f"`{name}` bigint" for name in group_names(schema)[-2:]]
            group_ddl = ", ".join([*public, *counts])
            group_files = _write_rows(
                spark, numbered, "groups", group_ddl, schema, layout, folder, len(totals)
            )
        folder.delete(".published")
        folder.delete(".numbered")
    sums = {name: sum(total[name] for total in totals) for name in TOTALS}
    return Written(data=data, groups_files=group_files, **sums)


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _write_rows(
    spark: Any,
    numbered: Any,
    stem: str,
    ddl: str,
    schema: Schema,
    layout: Layout,
    folder: RemoteFolder,
    parts: int,
) -> tuple[WrittenFile, ...]:
    """Spark writes part files; each is given its name and described, on the workers."""
    names = group_names(schema) if stem == "groups" else data_names(schema, layout)
    task = ReleaseRows(stem, tuple(names), schema, layout)
    ordered = numbered.repartitionByRange(parts, "part", "group_start").sortWithinPartitions(
        "part", "group_start"
    )
    where = f"{folder.uri}/.{stem}"
    if layout.file_format == "csv":
        map_in_arrow(ordered, task, "value string").write.text(where)
    else:
        rows = map_in_arrow(ordered, task, ddl)
        rows.write.option("maxRecordsPerFile", layout.rows_per_file).option(
            "compression", "zstd"
        ).parquet(where)
    found = folder.names(f".{stem}")
    described = _describe_parts(spark, where)
    counted = _rows_of_parts(spark, where, layout)
    files = []
    for number, part in enumerate(found):
        name = file_name(stem, layout.file_format, number, len(found))
        size, digest = described[part]
        files.append(WrittenFile(name, counted.get(part, 0), size, digest))
        folder.rename(f".{stem}/{part}", name)
    folder.delete(f".{stem}")
    return tuple(files)


def _describe_parts(spark: Any, where: str) -> dict[str, tuple[int, str]]:
    found = (
        spark.read.format("binaryFile")
        .load(where)
        .selectExpr("path", "length", "sha2(content, 256) AS sha256")
        .collect()
    )
    return {row.path.rsplit("/", 1)[-1]: (row.length, row.sha256) for row in found}


def _rows_of_parts(spark: Any, where: str, layout: Layout) -> dict[str, int]:
    reader = spark.read.option("header", True).option("escape", '"').option("multiLine", True)
    frame = reader.csv(where) if layout.file_format == "csv" else spark.read.parquet(where)
    counted = frame.selectExpr("_metadata.file_name AS name").groupBy("name").count().collect()
    return {row["name"]: row["count"] for row in counted}

"""A release on any file system that Spark writes, named by a URI: hdfs://, s3a://, file:///, …

Workers make the files, and Spark's own writer puts their bytes there; they are named and moved into
place through Hadoop's file system calls, which a classic session has and Spark Connect does not.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from reconpriv.engines.base import Layout, Progress, Written
from reconpriv.engines.record_file import file_name
from reconpriv.engines.spark.jobs import map_in_arrow, remove_for_good, translated
from reconpriv.engines.spark.output import FILE_COLUMNS, struct, write_release
from reconpriv.engines.spark.session import Session
from reconpriv.engines.spark.tasks import ENDINGS, FileContents, FileRows, PublishGroups
from reconpriv.errors import OutputError, ReconprivError
from reconpriv.messages.remedies import REPLACE
from reconpriv.writing.marker import MANIFEST, is_manifest

_STAGING = ".staging"


class RemoteFolder:
    """A folder on a file system that Spark writes."""

    def __init__(self, session: Session, uri: str) -> None:
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

    def make(self) -> None:
        """Make the folder, open only to its owner while it is being filled."""
        permission = self._jvm.org.apache.hadoop.fs.permission.FsPermission
        self._files.mkdirs(self._path, permission("700"))
        self._files.setPermission(self._path, permission("700"))

    def open_up(self) -> None:
        """Let others read the finished folder, without Hadoop's checksums of local files."""
        if hasattr(self._files, "getRawFileSystem"):
            raw = self._files.getRawFileSystem()
            for status in raw.listStatus(self._path):
                if status.getPath().getName().endswith(".crc"):
                    raw.delete(status.getPath(), False)
        permission = self._jvm.org.apache.hadoop.fs.permission.FsPermission("755")
        self._files.setPermission(self._path, permission)

    def exists(self) -> bool:
        """True if there is anything at this place."""
        return bool(self._files.exists(self._path))

    def is_release(self) -> bool:
        """True if it holds a manifest with our block."""
        if not self._files.exists(self.path(MANIFEST)):
            return False
        stream = self._files.open(self.path(MANIFEST))
        try:
            text = self._jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8")
        finally:
            stream.close()
        return is_manifest(text)

    def files_below(self, below: str) -> list[str]:
        """The part files anywhere below a folder, by their paths from there."""
        found = []
        for status in self._files.listStatus(self.path(below)):
            name = status.getPath().getName()
            if status.isDirectory():
                found += [f"{name}/{rest}" for rest in self.files_below(f"{below}/{name}")]
            elif name.startswith("part-"):
                found.append(name)
        return found

    def rename(self, name: str, to: str) -> None:
        """Move a file within the folder."""
        if not self._files.rename(self.path(name), self.path(to)):
            raise OutputError(f"{self.uri} could not be written.")

    def move_to(self, other: RemoteFolder) -> None:
        """Take the place of another folder, which stays if this fails."""
        aside = self._jvm.org.apache.hadoop.fs.Path(f"{self.uri}.old")
        replacing = other.exists()
        if replacing and not self._files.rename(other._path, aside):
            raise OutputError(f"{other.uri} could not be replaced.")
        if not self._files.rename(self._path, other._path):
            if replacing:
                self._files.rename(aside, other._path)
            raise OutputError(f"{other.uri} could not be written.")
        self._files.delete(aside, True)

    def write_bytes(self, name: str, content: bytes) -> None:
        """A small file."""
        stream = self._files.create(self.path(name))
        try:
            stream.write(bytearray(content))
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
        work = RemoteFolder(session, f"{parent}/.{name}.{os.urandom(6).hex()}")
        work.make()
        try:
            yield work
            work.open_up()
            work.move_to(target)
        except BaseException as error:
            cancel = not isinstance(error, Exception)
            remove_for_good(session, work.delete, work.exists, cancel=cancel)
            raise
    except ReconprivError:
        raise
    except Exception as error:
        raise translated(error, "writing") from None


def check_remote(target: RemoteFolder, *, overwrite: bool) -> None:
    """Refuse to overwrite what we did not make, or anything without being told to."""
    if not target.exists():
        return
    if not overwrite:
        raise OutputError(f"{target.uri} exists already.", hint=REPLACE)
    if not target.is_release():
        raise OutputError(
            f"{target.uri} exists and is not a release; it will not be replaced.",
            hint="Choose another name, or remove it yourself.",
        )


def write_remote(
    session: Session,
    groups: Any,
    task: PublishGroups,
    folder: RemoteFolder,
    layout: Layout,
    progress: Progress,
) -> Written:
    """Publish sorted whole groups; Spark puts the bytes of the release's files where they go."""
    staging = f"{folder.uri}/{_STAGING}"
    ending = ENDINGS[layout.file_format]
    described = [*FILE_COLUMNS]

    def finish(ordered: Any, rows: FileRows) -> Sequence[dict[str, Any]]:
        columns = FILE_COLUMNS | {"piece": "bigint", "content": "binary"}
        pieces = map_in_arrow(ordered, FileContents(rows), struct(columns))
        # A text is written as it is, then the ending: together the very bytes of the file. The
        # descriptions become names of folders, so nothing has to be read again.
        pieces.sortWithinPartitions(*described, "piece").selectExpr(
            *described, "CAST(content AS STRING) AS value"
        ).write.partitionBy(*described).option("lineSep", ending).text(f"{staging}/{rows.stem}")
        return _take_files(folder, rows)

    written = write_release(session, groups, task, staging, finish, layout, progress)
    folder.delete(_STAGING)
    return written


def _take_files(folder: RemoteFolder, rows: FileRows) -> list[dict[str, Any]]:
    """Give the files their names; the names of their folders describe them."""
    found = []
    for path in folder.files_below(f"{_STAGING}/{rows.stem}"):
        facts = dict(part.split("=", 1) for part in path.split("/") if "=" in part)
        row: dict[str, Any] = {name: int(facts[name]) for name in ("file", "rows", "bytes")}
        row["sha256"] = facts["sha256"]
        name = file_name(rows.stem, rows.layout.file_format, row["file"], rows.files)
        folder.rename(f"{_STAGING}/{rows.stem}/{path}", name)
        found.append(row)
    return found

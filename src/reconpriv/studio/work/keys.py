"""One table, one key: which key a table has, for as long as the studio runs.

A table is identified by its path, whatever the file holds by now: one that has grown or been
corrected keeps its key. An upload is identified by its content. An upload with different content
but the name of one that has a key is taken for a newer version of it.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path

import reconpriv as rp
from reconpriv.columns.schema import Schema
from reconpriv.studio.work.plan import PublicationPlan

_UPLOAD = "upload:"


@dataclass(frozen=True)
class TableKey:
    """The key of a table, and the last publication that it was used for."""

    key: rp.Key = field(repr=False)
    made: datetime
    generated: bool
    shown: str
    plan: PublicationPlan
    schema: Schema

    @property
    def origin(self) -> str:
        """Where it comes from, for people."""
        return f"{'made' if self.generated else 'given'} at {self.made:%H:%M}"


@dataclass
class KeyRing:
    """The keys of all tables that were published since the studio was started."""

    keys: dict[str, TableKey] = field(default_factory=dict, repr=False)

    def of(self, identity: str, name: str, *, uploaded: bool) -> TableKey | None:
        """The key of a table, or else that of an earlier upload of the same name."""
        if identity in self.keys:
            return self.keys[identity]
        older = (
            known
            for id, known in self.keys.items()
            if id.startswith(_UPLOAD) and known.shown == name
        )
        return max(older, key=lambda known: known.made, default=None) if uploaded else None

    def remember(self, identity: str, key: TableKey) -> None:
        """Record that a table was published with a key, unless it is the public test key."""
        if key.key.is_test:
            return
        known = self.of(identity, key.shown, uploaded=key.plan.uploaded)
        if known is not None and known.key.secret == key.key.secret:
            key = replace(key, made=known.made, generated=known.generated)
        self.keys[identity] = key


def identity_of_path(source: str) -> str:
    """A file by its path; an example or an address by its text."""
    local = Path(source)
    return f"path:{local.resolve()}" if os.path.lexists(local) else f"source:{source}"


def identity_of_upload(file: Path) -> str:
    """An upload by its content."""
    with file.open("rb") as content:
        return f"{_UPLOAD}{hashlib.file_digest(content, 'sha256').hexdigest()}"

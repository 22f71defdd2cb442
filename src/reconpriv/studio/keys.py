"""One table, one key: which key a table has, for as long as the studio runs.

A table is identified by its path, whatever the file holds by now: one that has grown or been
corrected keeps its key. An upload is identified by its content. An upload with different content
but the name of one that has a key is taken for a newer version of it.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import reconpriv as rp
from reconpriv.studio.plan import Plan

_CHUNK = 1 << 20


@dataclass(frozen=True)
class TableKey:
    """The key of a table, and the plans it was used for, in order."""

    key: rp.Key = field(repr=False)
    made: datetime
    generated: bool
    shown: str
    uses: tuple[Plan, ...] = ()

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
        older = (known for id, known in self.keys.items() if is_upload(id) and known.shown == name)
        return max(older, key=lambda known: known.made, default=None) if uploaded else None

    def remember(self, identity: str, name: str, plan: Plan, key: rp.Key, generated: bool) -> None:
        """Record that a table was published with a key, unless it is the public test key."""
        if key.is_test:
            return
        known = self.of(identity, name, uploaded=plan.uploaded)
        if known is not None and known.key.secret == key.secret:
            used = TableKey(key, known.made, known.generated, name, (*known.uses, plan))
        else:
            used = TableKey(key, datetime.now().astimezone(), generated, name, (plan,))
        self.keys[identity] = used


def identity_of_path(source: str) -> str:
    """A file by its path; an example or an address by its text."""
    local = Path(source)
    return f"path:{local.resolve()}" if os.path.lexists(local) else f"source:{source}"


def identity_of_upload(file: Path) -> str:
    """An upload by its content."""
    digest = hashlib.sha256()
    with file.open("rb") as content:
        while chunk := content.read(_CHUNK):
            digest.update(chunk)
    return f"upload:{digest.hexdigest()}"


def is_upload(identity: str) -> bool:
    """Whether it identifies a content rather than a path."""
    return identity.startswith("upload:")

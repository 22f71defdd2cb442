"""One table, one key: which key a table has, which one the page gives, and where its ledger is.

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
from typing import TYPE_CHECKING, Any

from shiny import Inputs

import reconpriv as rp
from reconpriv.columns.schema import Schema
from reconpriv.errors import LedgerError
from reconpriv.ledger import file as ledger_file
from reconpriv.ledger import trials as trial_file
from reconpriv.studio.work.plan import PublicationPlan

if TYPE_CHECKING:
    from reconpriv.studio.work.workspace import Opened, Workspace

NEVER_USED = "This key was never used"
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
        """The key of a table, or else that of the latest upload of the same name."""
        if identity in self.keys or not uploaded:
            return self.keys.get(identity)
        older = [one for id, one in self.keys.items() if id.startswith(_UPLOAD)]
        named = (one for one in older if one.shown == name)
        return max(named, key=lambda one: one.made, default=None)

    def remember(self, identity: str, key: TableKey) -> None:
        """Record that a table was published with a key, unless it is the public test key."""
        if key.key.is_test:
            return
        known = self.of(identity, key.shown, uploaded=key.plan.uploaded)
        if known is not None and known.key.secret == key.key.secret:
            key = replace(key, made=known.made, generated=known.generated)
        self.keys[identity] = key


def identity_of(source: str, *, uploaded: bool) -> str:
    """A file by its path, an upload by its content, an example or an address by its text."""
    local = Path(source)
    if not uploaded:
        return f"path:{local.resolve()}" if os.path.lexists(local) else f"source:{source}"
    return f"{_UPLOAD}{content_of(source)}"


def content_of(source: str) -> str:
    """The digest of a file's content, or the name of an example; empty if neither is known."""
    local = Path(source)
    if not local.is_file():
        return source if source.startswith("example:") else ""
    with local.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


class UnknownLedgerError(LedgerError):
    """A key came without its ledger, and nobody said that it has none."""

    def __init__(self, key: rp.Key) -> None:
        super().__init__(
            "This key came without its ledger, which says what was published with it.",
            hint="Choose its .ledger and .trials files together with the key. If nothing was"
            f" published with it, tick “{NEVER_USED}” below.",
        )
        self.key = key


Uploads = dict[tuple[str, ...], dict[str, bytes]]
"""What was uploaded and read, by where it was: publishing again must not ask for it again."""


def chosen_key(
    input: Inputs,
    workspace: Workspace,
    opened: Opened,
    uploads: Uploads,
    unused: rp.Key | None = None,
) -> rp.Key:
    """The key that the form describes; a table that has one gets another only on request.

    ``uploads`` are those that were read before, ``unused`` is a key that is said to be new. Any
    other that comes without its ledger is refused: a new one would know of no earlier release.
    """
    kind, known = input.key_kind(), workspace.key_of(opened)
    if kind == "test":
        return rp.Key.test()
    # A form drawn before the first release still says "generate" for a moment after it.
    if kind in ("table", "generate") and known is not None:
        return known.key
    if kind != "own":
        return rp.Key.generate()
    text, path = input.key_text().strip(), input.key_path().strip()
    if path and not text:
        return rp.Key.from_file(Path(path).expanduser())
    files = input.key_file() or ()
    where = tuple(one["datapath"] for one in files)
    if where not in uploads:
        uploads[where] = _uploaded(files)
    found = uploads[where]
    key = rp.Key.from_hex(text or found.get("", b"").decode("ascii", errors="replace"))
    ledger = found.get(ledger_file.SUFFIX)
    if ledger is not None:
        workspace.ledgers.take(key, ledger, found.get(trial_file.SUFFIX))
    elif not workspace.ledgers.knows(key) and key != unused:
        raise UnknownLedgerError(key)
    return key


def _uploaded(files: Any) -> dict[str, bytes]:
    """What was uploaded, by the ending of its name; a key has none of them.

    Read and removed at once: a key has no place in a temporary folder.
    """
    found: dict[str, bytes] = {}
    for one in files:
        file, ending = Path(one["datapath"]), Path(one["name"]).suffix
        kind = ending if ending in (ledger_file.SUFFIX, trial_file.SUFFIX) else ""
        if file.exists():
            found[kind] = file.read_bytes()
            file.unlink()
    return found

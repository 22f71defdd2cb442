"""A key of the user's own: typed, named by its path, or uploaded, perhaps with its ledger."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from shiny import Inputs

import reconpriv as rp
from reconpriv.errors import LedgerError
from reconpriv.ledger import file as ledger_file
from reconpriv.ledger import trials as trial_file
from reconpriv.studio.work.workspace import Opened, Workspace

NEVER_USED = "This key was never used"


class UnknownLedgerError(LedgerError):
    """A key came without its ledger, and nobody said that it has none."""

    def __init__(self, key: rp.Key) -> None:
        """``key`` is the one whose ledger is asked for."""
        super().__init__(
            "This key came without its ledger, which says what was published with it.",
            hint="Choose its .ledger and .trials files together with the key. If nothing was"
            f" published with it, tick “{NEVER_USED}” below.",
        )
        self.key = key


@dataclass(frozen=True)
class GivenKey:
    """The key, and the content of the ledger files that were uploaded with it."""

    key: rp.Key
    ledger: bytes | None = field(default=None, repr=False)
    trials: bytes | None = field(default=None, repr=False)


Uploads = dict[tuple[str, ...], dict[str, bytes]]
"""What was uploaded and read, by where it was: publishing again must not ask for it again."""


def _given_key(input: Inputs, read: Uploads) -> GivenKey:
    """What the form describes."""
    text, path = input.key_text().strip(), input.key_path().strip()
    if path and not text:
        return GivenKey(rp.Key.from_file(Path(path).expanduser()))
    files = input.key_file() or ()
    where = tuple(one["datapath"] for one in files)
    if where not in read:
        read[where] = _uploads(files)
    found = read[where]
    key = rp.Key.from_hex(text or found.get("", b"").decode("ascii", errors="replace"))
    return GivenKey(key, found.get(ledger_file.SUFFIX), found.get(trial_file.SUFFIX))


def chosen_key(
    input: Inputs,
    workspace: Workspace,
    opened: Opened,
    uploads: Uploads | None = None,
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
    if kind in ("table", "generate", "another"):
        return rp.Key.generate()
    given = _given_key(input, {} if uploads is None else uploads)
    if given.ledger is not None:
        workspace.ledgers.take(given.key, given.ledger, given.trials)
    elif not workspace.ledgers.knows(given.key) and given.key != unused:
        raise UnknownLedgerError(given.key)
    return given.key


def _uploads(files: Any) -> dict[str, bytes]:
    """What was uploaded, by the ending of its name; a key has none of them.

    Read and removed at once: a key has no place in a temporary folder.
    """
    found: dict[str, bytes] = {}
    for one in files:
        file = Path(one["datapath"])
        ending = Path(one["name"]).suffix
        kind = ending if ending in (ledger_file.SUFFIX, trial_file.SUFFIX) else ""
        if file.exists():
            found[kind] = file.read_bytes()
            file.unlink()
    return found

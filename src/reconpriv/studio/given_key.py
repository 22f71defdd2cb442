"""A key of the user's own: typed, named by its path, or uploaded, perhaps with its ledger."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from htmltools import Tag, tags
from shiny import Inputs, ui

import reconpriv as rp
from reconpriv.errors import LedgerError
from reconpriv.ledger import file as ledger_file
from reconpriv.ledger import trial_file

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


def key_fields() -> Tag:
    """Three ways to give a key."""
    return tags.div(
        tags.div(
            tags.label("64 hexadecimal digits", {"for": "key_text"}),
            tags.input(id="key_text", type="password", autocomplete="off", spellcheck="false"),
            class_="field",
        ),
        tags.div(
            tags.label("or the path of a key file on this computer", {"for": "key_path"}),
            tags.input(id="key_path", type="text", autocomplete="off", spellcheck="false"),
            tags.p("The ledger beside it is checked and kept up, as on the command line.",
                   class_="help"),
            class_="field",
        ),
        ui.input_file("key_file", "or a key file, together with its .ledger and .trials files",
                      multiple=True, button_label="Choose files…",
                      placeholder="Nothing chosen", width="100%"),
        class_="own-key",
    )  # fmt: skip


def unused_key_box() -> Tag:
    """What must be confirmed before a key starts a new ledger."""
    return tags.label(
        tags.input(type="checkbox", id="key_unused"),
        tags.span(tags.strong(NEVER_USED), ": start its ledger"),
        class_="check",
    )


Uploads = dict[tuple[str, ...], dict[str, bytes]]
"""What was uploaded and read, by where it was: publishing again must not ask for it again."""


def given_key(input: Inputs, read: Uploads) -> GivenKey:
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

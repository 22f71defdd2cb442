"""The ledgers of keys that the studio has in memory, in its own folder until they are downloaded.

A key given by its path has its ledger beside it, as on the command line. A browser hands over
content but no path, so the ledger of a key that was made here, typed or uploaded cannot lie beside
the key: the studio keeps it, takes it back if it is uploaded with the key, and offers it for
download.
"""

from __future__ import annotations

import zipfile
from dataclasses import dataclass, field, replace
from pathlib import Path

import reconpriv as rp
from reconpriv.errors import LedgerError
from reconpriv.ledger import file as ledger_file
from reconpriv.ledger import trials as trial_file
from reconpriv.studio.work.plan import KEY_FILE

LEDGER, TRIALS = KEY_FILE + ledger_file.SUFFIX, KEY_FILE + trial_file.SUFFIX
ARCHIVE = f"{LEDGER}.zip"


@dataclass
class Ledgers:
    """A folder for each key; the key itself is never written."""

    home: Path
    folders: dict[bytes, Path] = field(default_factory=dict, repr=False)
    taken: dict[bytes, bytes] = field(default_factory=dict, repr=False)

    def beside(self, key: rp.Key) -> rp.Key:
        """The key, with a place for its ledger; the test key needs none."""
        if key.file is not None or key.is_test:
            return key
        folder = self.folders.get(key.secret)
        if folder is None:
            folder = self.home / f"ledger-{len(self.folders)}"
            folder.mkdir(mode=0o700)
            self.folders[key.secret] = folder
        return replace(key, file=folder / KEY_FILE)

    def keeps(self, key: rp.Key) -> bool:
        """True if the ledger of this key is here rather than beside a key file."""
        return key.file is not None and key.file.parent in self.folders.values()

    def knows(self, key: rp.Key) -> bool:
        """True if a ledger for this key is here or beside its file; the test key needs none."""
        folder = self.folders.get(key.secret)
        here = folder is not None and (folder / LEDGER).exists()
        return here or key.file is not None or key.is_test

    def take(self, key: rp.Key, ledger: bytes, trials: bytes | None) -> None:
        """Go on with a ledger that was uploaded, unless the studio's own has more lines.

        One that was uploaded before and got no line here may be replaced: it was the wrong one.
        """
        place = self.beside(key).file
        assert place is not None
        mine = place.with_name(LEDGER)
        known = mine.read_bytes() if mine.exists() else b""
        grown = known and known != self.taken.get(key.secret)
        if grown and known.startswith(ledger):
            return
        if grown and not ledger.startswith(known):
            raise LedgerError(
                "This ledger is not the one that the studio keeps for this key: what was published"
                " since the studio was started is not in it.",
                hint="Restart the studio, and give the key and its ledger together.",
            )
        self.taken[key.secret] = ledger
        _write(mine, ledger)
        count = place.with_name(TRIALS)
        count.unlink(missing_ok=True)
        if trials is not None:
            _write(count, trials)

    def archive(self, key: rp.Key, folder: Path) -> Path:
        """The ledger and the count of trials as one file, readable by their owner alone."""
        assert key.file is not None
        target = folder / ARCHIVE
        with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
            for name in (LEDGER, TRIALS):
                file = key.file.with_name(name)
                if file.exists():
                    archive.write(file, name)  # with its mode
        return target


def _write(file: Path, content: bytes) -> None:
    file.touch(mode=0o600)
    file.write_bytes(content)

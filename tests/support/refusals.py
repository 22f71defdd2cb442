"""How a command refuses: one sentence, exit code 2, nothing left behind."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

# Internal messages of DuckDB, Arrow and Python must not reach a user.
INTERNAL = [
    "Traceback", "duckdb", "DuckDB", "LINE 1", "Candidate bindings", "Error:", "Exception",
    "reconpriv_table", "read_csv", "read_parquet", "Errno", "pyarrow", "unexpected happened",
    "=True", "`",
]  # fmt: skip


class Desk:
    """Sources in a folder that no message may name; everything else is next to it."""

    def __init__(self, root: Path, scratch: Path, cli: Callable) -> None:
        self.vault = root / "vault-of-sources"
        self.desk = root / "desk"
        self.out = self.desk / "out"
        self.scratch = scratch
        self.vault.mkdir()
        self.desk.mkdir()
        self._cli = cli

    def source(self, name: str, content: bytes | str | pa.Table) -> Path:
        file = self.vault / name
        if isinstance(content, pa.Table):
            pq.write_table(content, file)
        else:
            file.write_bytes(content.encode() if isinstance(content, str) else content)
        return file

    def file(self, name: str, content: bytes | str = "", mode: int = 0o600) -> Path:
        file = self.desk / name
        file.write_bytes(content.encode() if isinstance(content, str) else content)
        file.chmod(mode)
        return file

    def snapshot(self) -> dict[str, bytes | None]:
        return {
            str(path.relative_to(self.desk.parent)): path.read_bytes() if path.is_file() else None
            for folder in (self.desk, self.scratch, self.vault)
            for path in folder.rglob("*")
        }

    def audit(self, *args: object, stdin: str | None = None) -> str:
        return self._refused("audit", *args, stdin=stdin)

    def publish(self, source: object, *args: object, stdin: str | None = None) -> str:
        return self._refused("publish", source, self.out, *args, stdin=stdin)

    def _refused(self, *args: object, stdin: str | None) -> str:
        before = self.snapshot()
        outcome = self._cli(*args, stdin=stdin)
        assert outcome.code == 2, outcome
        assert outcome.out == ""
        check_sentence(outcome.err)
        assert "vault-of-sources" not in outcome.err
        assert self.snapshot() == before
        return outcome.err

    def both(self, source: object, *args: object, stdin: str | None = None) -> str:
        """Check that audit and publish refuse it in the same words."""
        message = self.audit(source, *args, stdin=stdin)
        assert self.publish(source, *args, stdin=stdin) == message
        return message


def check_sentence(err: str) -> None:
    """Check for a single line, from error: to a full stop (or a command to run)."""
    assert err.startswith("error: ")
    assert err.count("error: ") == 1
    assert err.endswith("\n")
    assert err.count("\n") == 1, err
    command = re.search(r"this command[^:]*: .+ > \S+$", err.rstrip())  # copied to its end
    assert command or err.rstrip()[-1] in ".?'…", err
    for text in INTERNAL:
        assert text not in err

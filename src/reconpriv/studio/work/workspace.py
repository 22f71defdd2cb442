"""The workspace: one user's work in one process. It outlives a reload of the page.

Everything here blocks and runs in the workspace's own threads, never on the event loop.
"""

from __future__ import annotations

import filecmp
import os
import re
import shutil
import tempfile
import threading
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import reconpriv as rp
from reconpriv.errors import InputError
from reconpriv.studio.pieces.remedy_words import page_words
from reconpriv.studio.work.keys import KeyRing, TableKey, content_of, identity_of
from reconpriv.studio.work.ledgers import Ledgers
from reconpriv.studio.work.plan import DeclaredRoles, PublicationPlan, read_table

if TYPE_CHECKING:
    from reconpriv.answers.beside_truth import BesideTruth
    from reconpriv.tuning.tuner import Tuner

# How long work that is no longer wanted may take to end.
_GRACE = 2.0


class CancelledError(Exception):
    """The user pressed cancel, or the work is about a table that was replaced."""


@dataclass(frozen=True)
class Opened:
    """An opened table: where it is read from, and what the user calls it.

    ``number`` distinguishes openings, so a form field of one is never taken for that of another.
    ``identity`` is the same whenever the same table is opened: its key depends on it. ``content``
    is the same only if nothing in it has changed, and empty if that is not known. ``proposals``
    are roles for its columns before one of them is sensitive.
    """

    source: str
    shown: str
    uploaded: bool
    summary: rp.TableSummary
    proposals: rp.Proposals
    number: int = 0
    identity: str = ""
    content: str = ""

    def same_content(self, other: Opened) -> bool:
        """Whether it is known that nothing has changed between two openings of a table."""
        return self.content != "" and self.content == other.content


@dataclass(frozen=True, eq=False)
class LoadedTable:
    """A table with its roles; results about it are about no other."""

    opened: Opened
    roles: DeclaredRoles
    table: rp.Table

    @cached_property
    def tuner(self) -> Tuner:
        """The table counted once, ready to judge any policy."""
        return self.table.tuner()


@dataclass(frozen=True)
class Published:
    """A release in the workspace's folder, with the plan and the key that made it.

    ``answers`` are those to the latest questions, with the truth beside them; a new release starts
    without any. ``again`` says that it is the release before, byte for byte: what a ledger fears of
    another release of the series is then not among its ``warnings``.
    """

    plan: PublicationPlan
    release: rp.Release
    key: rp.Key
    generated: bool
    loaded: LoadedTable
    made: datetime = field(default_factory=lambda: datetime.now().astimezone())
    answers: list[BesideTruth] = field(default_factory=list, compare=False, repr=False)
    again: bool = False
    warnings: tuple[str, ...] = ()

    @property
    def shown_plan(self) -> PublicationPlan:
        """The plan with the table named as its user names it, not by the path of the upload."""
        return replace(self.plan, source=self.loaded.opened.shown)


class Workspace:
    """What is open at the moment; ``draft`` holds inputs as last seen.

    ``revision`` grows with every change, so a page can notice that another one made it.
    """

    def __init__(self, home: Path) -> None:
        """Start with nothing; ``home`` is a folder for all files."""
        self.home = home
        self.step = 1
        self.opened: Opened | None = None
        self.loaded: LoadedTable | None = None
        self.published: Published | None = None
        self.draft: dict[str, Any] = {}
        self.keys = KeyRing()
        self.ledgers = Ledgers(home)
        self.revision = 0
        self.progress = ("", 0.0)
        self.cancel = threading.Event()
        # One thread for the table, which is never used twice at the same time. The figures of a
        # policy come from numbers in memory, so a slider need not wait for a table, nor for the
        # figures of many policies. Reports open the table separately, so questions need not wait.
        self.pool, self.quick_pool, self.sweep_pool, self.report_pool = self._pools = tuple(
            ThreadPoolExecutor(1, name) for name in ("table", "quick", "sweep", "report")
        )
        # Openings and sensitive columns for which the columns that tell the latter were left out.
        self._acted_on: set[tuple[int, str | None]] = set()

    @property
    def open_steps(self) -> list[int]:
        """The steps that can be visited."""
        steps = [1]
        if self.opened is not None:
            steps.append(2)
        if self.loaded is not None and self.loaded.opened is self.opened:
            steps += [3, 4]
        if self.published is not None:
            steps += [5, 6]
        return steps

    def folder(self, prefix: str) -> Path:
        """A new folder inside the workspace's own folder."""
        return Path(tempfile.mkdtemp(prefix=f"{prefix}-", dir=self.home))

    def look(self, source: str, *, shown: str | None = None, uploaded: bool = False) -> Opened:
        """Inspect a table and open it in the workspace."""
        number = 0 if self.opened is None else self.opened.number + 1
        summary, proposals = rp.describe(source), rp.propose_roles(source)
        identity = identity_of(source, uploaded=uploaded)
        content = content_of(source)
        self.opened = Opened(
            source, shown or source, uploaded, summary, proposals, number, identity, content
        )
        return self.opened

    def take_upload(self, file: str, name: str) -> Opened:
        """Move an upload to a separate folder under its own name: the extension gives its type."""
        target = self.folder("upload") / safe_name(name)
        shutil.move(file, target)
        return self.look(str(target), shown=target.name, uploaded=True)

    def key_of(self, opened: Opened) -> TableKey | None:
        """The key that a table was published with in this studio."""
        return self.keys.of(opened.identity, opened.shown, uploaded=opened.uploaded)

    def acts_first(self, opened: Opened, proposals: rp.Proposals) -> bool:
        """True for the first page that acts on these proposals, and for no other."""
        before, key = len(self._acted_on), (opened.number, proposals.sensitive)
        self._acted_on.add(key)
        return len(self._acted_on) > before

    def load(self, opened: Opened, roles: DeclaredRoles) -> LoadedTable:
        """Assign roles to the columns; the first audit counts the cells and keeps them."""
        table = read_table(opened.source, roles)
        before, self.loaded = self.loaded, LoadedTable(opened, roles, table)
        if before is not None and (self.published is None or before is not self.published.loaded):
            before.table.close()
        return self.loaded

    def _current(self, loaded: LoadedTable) -> LoadedTable:
        if loaded is not self.loaded:
            raise CancelledError
        return loaded

    def audit(self, loaded: LoadedTable, policy: rp.Policy, *, worst: int) -> rp.AuditReport:
        """Audit, unless the table has been replaced in the meantime.

        What the table would be without each column is left out: it takes too long.
        """
        return self._current(loaded).table.audit(policy, worst=worst, columns=False)

    def tuner(self, loaded: LoadedTable) -> Tuner:
        """One pass over the table for all policies, unless it has been replaced."""
        return self._current(loaded).tuner

    def audit_columns(
        self,
        loaded: LoadedTable,
        policy: rp.Policy,
        step: Callable[[int, int], None] = lambda *_: None,
    ) -> rp.AuditReport:
        """What the audit would be without each column; opens the table separately."""
        with read_table(loaded.opened.source, loaded.roles) as table:
            return table.audit(
                policy, worst=0, columns=True, progress=lambda _, done: step(round(100 * done), 100)
            )

    def publish(
        self,
        loaded: LoadedTable,
        plan: PublicationPlan,
        key: rp.Key,
        *,
        generated: bool,
        **consents: Any,
    ) -> Published:
        """Write a release into the workspace's folder; :attr:`cancel` stops it.

        ``consents`` are ``second_sample`` and ``role_change``, as publish takes them.
        """
        key = self.ledgers.beside(key)
        if loaded is not self.loaded:
            raise InputError(
                "The table or its roles were changed in another tab.", hint="Reload this page."
            )

        def progress(stage: str, done: float) -> None:
            self.progress = (stage, done)
            if self.cancel.is_set():
                raise CancelledError

        out = self.folder("made") / "release"
        release = loaded.table.publish(
            plan.policy, out, key=key, progress=progress, **plan.accepted, **consents
        )
        before = self.published
        again = before is not None and same_files(before.release.path, out)
        warned = tuple(release.warnings)
        if again and before is not None:
            warned = tuple(text for text in warned if text in before.warnings)
        self.published = Published(
            plan, release, key, generated, loaded, again=again, warnings=warned
        )
        shown, made = loaded.opened.shown, self.published.made
        used = TableKey(key, made, generated, shown, plan, loaded.table.schema)
        self.keys.remember(loaded.opened.identity, used)
        if before is not None:
            shutil.rmtree(before.release.path.parent, ignore_errors=True)
            if before.loaded is not loaded:
                before.loaded.table.close()
        return self.published

    def write_reports(self, published: Published) -> dict[str, Path | str]:
        """Both reports of a release, by their names; if one could not be made, the reason."""
        folder = self.folder("reports")
        loaded, plan, release = published.loaded, published.plan, published.release

        def internal(file: Path) -> None:
            shown = loaded.opened.shown
            with read_table(loaded.opened.source, loaded.roles) as table:
                if loaded.roles.keeps_one:
                    table.keep_one_row_each(published.key)
                table.report(plan.policy, file, release=release, source=shown, **plan.accepted)

        made: dict[str, Path | str] = {}
        writers: dict[str, Any] = {
            "internal-report.html": internal,
            "release-report.html": release.report,
        }
        for name, write in writers.items():
            try:
                write(folder / name)
                made[name] = folder / name
            except rp.ReconprivError as error:
                made[name] = explain(error)
        return made

    def stop(self) -> None:
        """Stop a publication, whether it is counting or writing."""
        self.cancel.set()
        if self.loaded is not None:
            self.loaded.table.interrupt()

    def close(self) -> bool:
        """Stop all work; whoever made the folder removes it. False if some work goes on."""
        self.stop()

        def end() -> None:
            for pool in reversed(self._pools):
                pool.shutdown(wait=True, cancel_futures=True)

        # A library may take long, and asks nobody whether it should go on.
        ending = threading.Thread(target=end, daemon=True)
        ending.start()
        ending.join(_GRACE)
        if ending.is_alive():
            return False
        kept = None if self.published is None else self.published.loaded
        for loaded in {one for one in (self.loaded, kept) if one is not None}:
            loaded.table.close()
        return True


def same_files(one: Path, other: Path) -> bool:
    """Whether two folders hold the same files, byte for byte."""
    names = sorted(file.name for file in one.iterdir())
    if names != sorted(file.name for file in other.iterdir()):
        return False
    return all(filecmp.cmp(one / name, other / name, shallow=False) for name in names)


def safe_name(name: str) -> str:
    """The last part of a file's name, without characters special in a path or a pattern."""
    plain = re.sub(r"[^\w.()+ -]", "_", re.split(r"[\\/]", name)[-1]).lstrip(".")
    return plain[-120:] or "table"


def explain(error: BaseException) -> str:
    """An error in a sentence or two, in the words of the page."""
    if isinstance(error, rp.ReconprivError):
        return error.worded(page_words)
    if os.environ.get("RECONPRIV_DEBUG"):
        traceback.print_exception(error)
    return (
        f"Something unexpected happened ({type(error).__name__}). Your settings are kept;"
        " RECONPRIV_DEBUG=1 shows more in the terminal."
    )

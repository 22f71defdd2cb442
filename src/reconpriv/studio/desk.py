"""The desk: one user's work in one process. It outlives a reload of the page.

Everything here blocks and runs in the desk's own thread, never on the event loop.
"""

from __future__ import annotations

import re
import shutil
import tempfile
import threading
import zipfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import reconpriv as rp
from reconpriv.errors import InputError
from reconpriv.studio.keys import KeyRing, TableKey, identity_of_path, identity_of_upload
from reconpriv.studio.ledgers import Ledgers
from reconpriv.studio.plan import Plan, Roles, read_table
from reconpriv.studio.remedy_words import page_words

if TYPE_CHECKING:
    from reconpriv.queries.beside_truth import Answered

Progress = Callable[[str, float], None]


class CancelledError(Exception):
    """The user pressed cancel."""


@dataclass(frozen=True)
class Opened:
    """An opened table: where it is read from, and what the user calls it.

    ``number`` distinguishes openings, so a form field of one is never taken for that of another.
    ``identity`` is the same whenever the same table is opened: its key depends on it. ``proposals``
    are roles for its columns before one of them is sensitive.
    """

    source: str
    shown: str
    uploaded: bool
    summary: rp.TableSummary
    proposals: rp.Proposals
    number: int = 0
    identity: str = ""


@dataclass(frozen=True)
class Settled:
    """A table with its roles."""

    opened: Opened
    roles: Roles
    table: rp.Table


@dataclass(frozen=True)
class Published:
    """A release in the desk's folder, with the plan and the key that made it.

    ``answers`` are those to the latest questions, with the truth beside them; a new release starts
    without any.
    """

    plan: Plan
    release: rp.Release
    key: rp.Key
    generated: bool
    settled: Settled
    made: datetime = field(default_factory=lambda: datetime.now().astimezone())
    answers: list[Answered] = field(default_factory=list, compare=False, repr=False)


@dataclass(frozen=True)
class Reports:
    """Both reports of a release; if one could not be made, the reason instead."""

    published: Published
    internal: Path | str
    analyst: Path | str


@dataclass
class Desk:
    """What is open at the moment; ``draft`` holds inputs as last seen.

    ``revision`` grows with every change, so a page can notice that another one made it.
    """

    home: Path
    step: int = 1
    opened: Opened | None = None
    settled: Settled | None = None
    published: Published | None = None
    draft: dict[str, Any] = field(default_factory=dict)
    keys: KeyRing = field(default_factory=KeyRing)
    revision: int = 0
    progress: tuple[str, float] = ("", 0.0)
    _tuner: tuple[Settled, Any] | None = field(default=None, repr=False)
    # What was proposed once a column was sensitive, by opening and column; and what came of it.
    _acted: set[tuple[int, str | None]] = field(default_factory=set, repr=False)
    _proposed: dict[tuple[int, str], rp.Proposals] = field(default_factory=dict, repr=False)
    cancel: threading.Event = field(default_factory=threading.Event)
    # One thread: a table is never used twice at the same time.
    pool: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1, "studio"))
    # A policy's figures come from numbers in memory; a slider must not wait for a table.
    quick_pool: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1, "quick"))
    # So do those of many policies; neither a slider nor a publication must wait for all of them.
    sweep_pool: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1, "sweep"))
    # Reports take seconds and open the table separately, so questions need not wait.
    report_pool: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1, "report"))

    def __post_init__(self) -> None:
        """Make room for the ledgers of keys that are in no file."""
        self.ledgers = Ledgers(self.home)

    @property
    def open_steps(self) -> list[int]:
        """The steps that can be visited."""
        steps = [1]
        if self.opened is not None:
            steps.append(2)
        if self.settled is not None and self.settled.opened is self.opened:
            steps += [3, 4]
        if self.published is not None:
            steps += [5, 6]
        return steps

    def folder(self, prefix: str) -> Path:
        """A new folder inside the desk's own folder."""
        return Path(tempfile.mkdtemp(prefix=f"{prefix}-", dir=self.home))

    def look(self, source: str, *, shown: str | None = None, uploaded: bool = False) -> Opened:
        """Inspect a table and put it on the desk."""
        number = 0 if self.opened is None else self.opened.number + 1
        summary, proposals = rp.describe(source), rp.propose_roles(source)
        identity = identity_of_upload(Path(source)) if uploaded else identity_of_path(source)
        opened = Opened(source, shown or source, uploaded, summary, proposals, number, identity)
        self.opened = opened
        return opened

    def take_upload(self, file: str, name: str) -> Opened:
        """Move an upload to a separate folder under its own name: the extension gives its type."""
        target = self.folder("upload") / safe_name(name)
        shutil.move(file, target)
        return self.look(str(target), shown=target.name, uploaded=True)

    def key_of(self, opened: Opened) -> TableKey | None:
        """The key that a table was published with in this studio."""
        return self.keys.of(opened.identity, opened.shown, uploaded=opened.uploaded)

    def audit(self, settled: Settled, policy: rp.Policy, *, worst: int) -> rp.AuditReport:
        """Audit, unless the table has been replaced in the meantime.

        What the table would be without each column is left out: it takes too long.
        """
        if settled is not self.settled:
            raise CancelledError
        return settled.table.audit(policy, worst=worst, columns=False)

    def tuner(self, settled: Settled) -> Any:
        """One pass over the table for all policies, kept as long as the table is."""
        if settled is not self.settled:
            raise CancelledError
        if self._tuner is None or self._tuner[0] is not settled:
            self._tuner = settled, settled.table.tuner()
        return self._tuner[1]

    def propose(self, opened: Opened, sensitive: str) -> rp.Proposals:
        """Propose roles anew, once: columns that tell the sensitive one are left out."""
        known, key = self._proposed, (opened.number, sensitive)
        if key not in known:
            known[key] = rp.propose_roles(opened.source, sensitive=sensitive)
        return known[key]

    def first_told(self, opened: Opened, proposals: rp.Proposals) -> bool:
        """Whether a page has not yet acted on these proposals; from now on one has."""
        told = opened.number, proposals.sensitive
        first = told not in self._acted
        self._acted.add(told)
        return first

    def audit_columns(self, settled: Settled, policy: rp.Policy) -> rp.AuditReport:
        """What the audit would be without each column; opens the table separately."""
        with read_table(settled.opened.source, settled.roles) as table:
            return table.audit(policy, worst=0, columns=True)

    def settle(self, opened: Opened, roles: Roles) -> Settled:
        """Assign roles to the columns; the first audit counts the cells and keeps them."""
        table = read_table(opened.source, roles)
        before, self.settled = self.settled, Settled(opened, roles, table)
        kept = self.published.settled if self.published else None
        if before is not None and before is not kept:
            before.table.close()
        return self.settled

    def publish(
        self,
        settled: Settled,
        plan: Plan,
        key: rp.Key,
        *,
        generated: bool,
        second_sample: bool = False,
        role_change: bool = False,
    ) -> Published:
        """Write a release into the desk's folder; :attr:`cancel` stops it."""
        key = self.ledgers.beside(key)
        if settled is not self.settled:
            raise InputError(
                "The table or its roles were changed in another tab.", hint="Reload this page."
            )

        def progress(stage: str, done: float) -> None:
            self.progress = (stage, done)
            if self.cancel.is_set():
                raise CancelledError

        try:
            out = self.folder("made") / "release"
            release = settled.table.publish(
                plan.policy,
                out,
                key=key,
                **plan.accepted,
                second_sample=second_sample,
                role_change=role_change,
                progress=progress,
            )
        except KeyboardInterrupt:
            # The engine was interrupted; on the event loop this would end the whole studio.
            raise CancelledError from None
        before = self.published
        self.published = Published(plan, release, key, generated, settled)
        opened = settled.opened
        self.keys.remember(opened.identity, opened.shown, plan, key, generated)
        if before is not None:
            shutil.rmtree(before.release.path.parent, ignore_errors=True)
            if before.settled is not settled:
                before.settled.table.close()
        return self.published

    def write_reports(self, published: Published) -> Reports:
        """Write both reports beside the release; they take a few seconds."""
        folder = self.folder("reports")
        settled, policy, release = published.settled, published.plan.policy, published.release

        def internal(file: Path) -> None:
            with read_table(settled.opened.source, settled.roles) as table:
                if settled.roles.keeps_one:
                    table.keep_one_row_each(published.key)
                table.report(
                    policy,
                    file,
                    release=release,
                    source=settled.opened.shown,
                    **published.plan.accepted,
                )

        def made(file: Path, write: Callable[[Path], object]) -> Path | str:
            try:
                write(file)
            except rp.ReconprivError as error:
                return explain(error)
            return file

        return Reports(
            published,
            made(folder / "internal-report.html", internal),
            made(folder / "release-report.html", release.report),
        )

    def stop(self) -> None:
        """Stop a publication, whether it is counting or writing."""
        self.cancel.set()
        if self.settled is not None:
            self.settled.table.interrupt()

    def close(self) -> None:
        """Stop all work; whoever made the folder removes it."""
        self.stop()
        for pool in (self.quick_pool, self.sweep_pool, self.report_pool, self.pool):
            pool.shutdown(wait=True, cancel_futures=True)
        for held in {id(h): h for h in (self.settled, self._kept()) if h is not None}.values():
            held.table.close()

    def _kept(self) -> Settled | None:
        return self.published.settled if self.published is not None else None


def safe_name(name: str) -> str:
    """The last part of a file's name, without characters special in a path or a pattern."""
    plain = re.sub(r"[^\w.()+ -]", "_", re.split(r"[\\/]", name)[-1]).lstrip(".")
    return plain[-120:] or "table"


def zip_release(release: rp.Release, folder: Path) -> Path:
    """The release as one file."""
    target = folder / "release.zip"
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(release.path.iterdir()):
            archive.write(file, f"release/{file.name}")
    return target


def shown_plan(published: Published) -> Plan:
    """The plan with the table named as its user names it, not by the path of the upload."""
    return replace(published.plan, source=published.settled.opened.shown)


def explain(error: BaseException) -> str:
    """An error in a sentence or two, in the words of the page."""
    if not isinstance(error, rp.ReconprivError):
        return (
            f"Something unexpected happened ({type(error).__name__}). Your settings are kept;"
            " RECONPRIV_DEBUG=1 shows more in the terminal."
        )
    return error.worded(page_words)

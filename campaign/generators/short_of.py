"""Publications that run short of disk, memory or descriptors, or may not write."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

from campaign.case import Case, Generator, Outcome
from campaign.generators import publications as pub
from campaign.place import Place
from campaign.process import begin

_SECONDS = 60.0
_KINDS = (
    "full disk", "full TMPDIR", "read-only folder", "read-only TMPDIR", "file size", "descriptors",
    "--memory", "address space",
)  # fmt: skip


def _make(rng: Random, place: Place) -> Case:
    kind = rng.choice(_KINDS)
    source, form = rng.choice(pub.SOURCES), rng.choice(pub.FORMATS)
    old = rng.choice((None, *pub.FORMATS))
    amount = {
        "full disk": rng.randrange(4, 40),
        "full TMPDIR": rng.randrange(4, 40),
        "file size": rng.randrange(0, 60_000),
        "descriptors": rng.choice((64, rng.randrange(16, 64))),
        "--memory": rng.randrange(1, 60),
        "address space": rng.randrange(0, 2_000),
    }.get(kind, 0)
    more = ["--overwrite"] if old is not None else []
    if kind == "--memory":
        more += ["--memory", f"{amount}MB"]
    path = pub.lay_out(place, source, old=old)
    step = pub.publication(path, "new", form, *more)
    what = f"{kind} {amount}, {source} to {form}, {'new' if old is None else 'overwrite'}"
    return Case(what, (step,), {"kind": kind, "amount": amount, "form": form, "old": old})


def _run(case: Case, place: Place) -> list[Outcome]:
    kind, amount = case.facts["kind"], case.facts["amount"]
    with _disks(kind, amount, place):
        before = place.snapshot()
        space = amount << 20 if kind == "address space" else None
        running = begin(case.steps[0], place, limit=_limit(kind, amount), space=space)
        code = running.wait(_SECONDS)
        after = place.snapshot()
        if code == 0 and pub.which(place, case.facts["form"], case.facts["old"]) != "new":
            after["the wrong release"] = "-"
    return [
        Outcome(
            code, running.out.read_bytes(), running.err.read_bytes(),
            time.monotonic() - running.begun, before, after,
        )
    ]  # fmt: skip


def _limit(kind: str, amount: int) -> Callable[[], None]:
    def limit() -> None:
        if kind == "file size":
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (amount, amount))
        elif kind == "descriptors":
            resource.setrlimit(resource.RLIMIT_NOFILE, (amount, amount))

    return limit


@contextmanager
def _disks(kind: str, amount: int, place: Place) -> Iterator[None]:
    """A small or read-only disk where one is asked for; without root, a folder without rights."""
    folder = place.scratch if "TMPDIR" in kind else place.desk
    if kind.startswith("full") and os.geteuid() == 0:
        # What is on the desk already has to fit, and so does the start of something new.
        blocks = amount + sum(-(-p.stat().st_size // 4096) + 1 for p in folder.rglob("*"))
        held = {p: p.read_bytes() for p in folder.rglob("*") if p.is_file()}
        folders = [p for p in folder.rglob("*") if p.is_dir()]
        with _mounted(folder, f"size={blocks * 4096}"):
            for made in folders:
                made.mkdir()
            for file, content in held.items():
                file.write_bytes(content)
                file.chmod(0o600 if file.suffix == ".key" else 0o644)
            yield
    elif kind.startswith("read-only"):
        if os.geteuid() == 0:
            subprocess.run(["mount", "--bind", str(folder), str(folder)], check=True)
            subprocess.run(["mount", "-o", "remount,bind,ro", str(folder)], check=True)
            try:
                yield
            finally:
                subprocess.run(["umount", "--lazy", str(folder)], check=True)
        else:
            folder.chmod(0o500)
            try:
                yield
            finally:
                folder.chmod(0o700)
    else:
        yield


@contextmanager
def _mounted(folder: Path, option: str) -> Iterator[None]:
    subprocess.run(["mount", "-t", "tmpfs", "-o", option, "tmpfs", str(folder)], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


SHORT = Generator(
    "short of something",
    "full disk, read-only folder, few descriptors, little memory or address space",
    0.6,
    _make,
    prepare=pub.prepare,
    run=_run,
)

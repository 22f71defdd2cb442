"""A studio in a process or in a thread, and walks through its page in a browser."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from playwright.sync_api import expect

from reconpriv.studio.server.serve import make_server

# Generous, for a busy machine: on an idle one everything takes well under a second.
expect.set_options(timeout=30_000)
CURRENT = "#verdict .result:not(.stale)"


@dataclass(frozen=True)
class Running:
    """A studio in a process of its own."""

    address: str
    process: subprocess.Popen[bytes]
    scratch: Path

    @property
    def origin(self) -> str:
        """The address without its token."""
        return self.address.split("/?")[0]

    @property
    def homes(self) -> list[Path]:
        """The studios' folders in the scratch folder."""
        return sorted(self.scratch.glob("reconpriv-studio-*"))

    def stop(self, number: signal.Signals = signal.SIGINT) -> str:
        """Stop it and return the rest of its output."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        out, err = self.process.communicate(timeout=60)
        return (out + err).decode()


@contextlib.contextmanager
def studio(*args, browser=False):
    """Run `reconpriv studio` with its own temporary folder."""
    more = [] if browser else ["--no-browser"]
    with tempfile.TemporaryDirectory(prefix="studio-test-") as scratch:
        process = subprocess.Popen(
            [sys.executable, "-m", "reconpriv", "studio", *more, *args],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,  # what a buffer had read beyond the first line would be lost to stop()
            env={**os.environ, "TMPDIR": scratch},
        )
        line = process.stdout.readline().decode()
        found = re.search(r"http://127\.0\.0\.1:\d+/\?token=\S+", line)
        running = Running(found[0] if found else "", process, Path(scratch))
        try:
            assert found, line + running.stop()
            yield running
        finally:
            running.stop()


@cache
def event_loop():
    """The event loop of all servers of this process, in a thread: Shiny's lock knows one loop."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, daemon=True).start()
    return loop


@contextlib.contextmanager
def served(workspace):
    """The address of a workspace, served in this process."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server, address = make_server(workspace, listener.getsockname()[1])
        served = asyncio.run_coroutine_threadsafe(server.serve([listener]), event_loop())
        try:
            yield address
        finally:
            server.should_exit = True
            served.result(60)


def connected(page):
    page.wait_for_selector("body[data-connected=yes]")


def enter(page, address):
    """Open an address and wait for the session."""
    page.goto(address)
    connected(page)


def reload(page):
    page.reload()
    connected(page)


def on_step(page, number):
    """Wait until a step is shown."""
    expect(page.locator(f"section[data-step='{number}']")).to_be_visible()


def go_on(page, number):
    """Go on from a step, and wait for the next one."""
    page.click(f"#next_{number}")
    on_step(page, number + 1)


def role_of(page, column):
    """A column's role control."""
    return page.get_by_label(f"Role of {column}", exact=True)


def choose_roles(page, sensitive, public):
    """Give every column its role, and publish public ones as they are."""
    page.wait_for_selector("select.role")
    for bins in page.locator("input[aria-label^='Bins of ']").all():
        bins.fill("")
    for role in page.locator("select.role").all():
        name = str(role.get_attribute("aria-label")).removeprefix("Role of ")
        wanted = "sensitive" if name == sensitive else "public" if name in public else "drop"
        role.select_option(wanted)


def current_verdict(page):
    """Wait until the verdict is about the current settings."""
    expect(page.locator(f"{CURRENT} .before-after")).to_be_visible()


def publish(page, key=None):
    """Publish with the key that is offered, or with another kind of key."""
    if key is not None:
        page.check(f"input[name=key_kind][value={key}]")
    page.click("#publish")
    expect(page.locator("#publishing .notice.good")).to_be_visible()


def upload(page, file):
    """Upload a file and wait until it has been inspected."""
    page.set_input_files("#upload", file)
    expect(page.locator("#opened .card")).to_contain_text(file.name)


def show_more(page):
    """Open the controls that most people leave as they are."""
    page.locator("details.more").evaluate("(part) => { part.open = true; }")


def set_dial(page, id, value):
    """Move a slider."""
    show_more(page)
    page.locator(f"#{id}_range").fill(value)


def download(page, id, folder):
    """Click a download and keep the file under its own name."""
    with page.expect_download() as got:
        page.click(f"#{id}")
    target = folder / got.value.suggested_filename
    got.value.save_as(target)
    return target

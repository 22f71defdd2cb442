"""Starting the studio in a separate process, and walking through it in a browser."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import Browser, Page, Playwright, expect

CHROMIUM = "/usr/bin/chromium"
# Generous, for a busy machine: on an idle one everything takes well under a second.
expect.set_options(timeout=30_000)
PUBLIC = ("age", "race", "sex")


@dataclass(frozen=True)
class Running:
    """A running studio."""

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
def studio(*args: str, browser: bool = False) -> Iterator[Running]:
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
        assert process.stdout is not None
        line = process.stdout.readline().decode()
        found = re.search(r"http://127\.0\.0\.1:\d+/\?token=\S+", line)
        running = Running(found[0] if found else "", process, Path(scratch))
        try:
            assert found, line + running.stop()
            yield running
        finally:
            running.stop()


def launch(playwright: Playwright) -> Browser:
    """Debian's chromium; as root it must run without its sandbox."""
    return playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])


def enter(page: Page, running: Running) -> None:
    """Open the address and wait for the session."""
    page.goto(running.address)
    page.wait_for_selector("body[data-connected=yes]")


def on_step(page: Page, number: int) -> None:
    """Wait until a step is shown."""
    expect(page.locator(f"section[data-step='{number}']")).to_be_visible()


def choose_example(page: Page, name: str = "adult") -> None:
    """Choose a bundled table and go on to its roles."""
    page.click(f"#example_{name}")
    expect(page.locator("#opened .card")).to_be_visible()
    to_roles(page)


def to_roles(page: Page) -> None:
    """Go on from the table to its roles."""
    page.click("#next_1")
    on_step(page, 2)


def role_of(page: Page, column: str) -> str:
    """The id of a column's role control."""
    return str(page.get_by_label(f"Role of {column}", exact=True).get_attribute("id"))


def choose_roles(
    page: Page, sensitive: str = "occupation", public: tuple[str, ...] = PUBLIC
) -> None:
    """Give every column its role, and publish public ones as they are."""
    page.wait_for_selector("select.role")
    for bins in page.locator("input[aria-label^='Bins of ']").all():
        bins.fill("")
    for role in page.locator("select.role").all():
        name = str(role.get_attribute("aria-label")).removeprefix("Role of ")
        wanted = "sensitive" if name == sensitive else "public" if name in public else "drop"
        role.select_option(wanted)


def to_policy(page: Page) -> None:
    """Go on from the roles to the policy, and wait for its figures."""
    page.click("#next_2")
    on_step(page, 3)
    current_verdict(page)
    expect(page.locator("#picture svg")).to_be_visible()


def open_policy(
    page: Page,
    running: Running,
    sensitive: str = "occupation",
    public: tuple[str, ...] = PUBLIC,
    missing: str | None = None,
) -> None:
    """Enter a studio that was started with a table, and go on to the policy."""
    enter(page, running)
    choose_roles(page, sensitive, public)
    if missing is not None:
        page.select_option("#missing", missing)
    to_policy(page)


def current_verdict(page: Page) -> None:
    """Wait until the verdict is about the current settings."""
    expect(page.locator("#verdict .judged:not(.stale) .before-after")).to_be_visible()


def to_publish(page: Page) -> None:
    """Go on from the policy to publishing."""
    page.click("#next_3")
    on_step(page, 4)


def publish(page: Page, key: str | None = None) -> None:
    """Publish with the key that is offered, or with another kind of key."""
    if key is not None:
        page.check(f"input[name=key_kind][value={key}]")
    page.click("#publish")
    expect(page.locator("#publishing .notice.good")).to_be_visible()


def to_download(page: Page) -> None:
    """Go on from publishing to the downloads."""
    page.click("#next_4")
    on_step(page, 5)


def to_ask(page: Page) -> None:
    """Go on from the downloads to the questions."""
    page.click("#next_5")
    on_step(page, 6)


def upload(page: Page, file: Path) -> None:
    """Upload a file and wait until it has been inspected."""
    page.set_input_files("#upload", file)
    expect(page.locator("#opened .card")).to_contain_text(file.name)


def set_dial(page: Page, id: str, value: str) -> None:
    """Move a slider."""
    page.locator(f"#{id}_range").fill(value)


def download(page: Page, id: str, folder: Path) -> Path:
    """Click a download and keep the file under its own name."""
    with page.expect_download() as got:
        page.click(f"#{id}")
    target = folder / got.value.suggested_filename
    got.value.save_as(target)
    return target

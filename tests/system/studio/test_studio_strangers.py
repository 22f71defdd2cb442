"""What other programs and users of the machine do must not keep the owner out, or make noise."""

from __future__ import annotations

import http.client
import re
import resource
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser

from reconpriv.studio import serve
from reconpriv.studio.door import MOST_WAITING
from stopping import wait_for
from studio_walk import Running, studio

DESCRIPTORS = 256


@pytest.fixture(scope="module")
def running() -> Iterator[Running]:
    with studio() as started:
        resource.prlimit(started.process.pid, resource.RLIMIT_NOFILE, (DESCRIPTORS, DESCRIPTORS))
        yield started


@pytest.fixture(scope="module")
def cookie(running: Running) -> str:
    response = get(running, running.address.removeprefix(running.origin))
    return str(response.getheader("set-cookie")).split(";", maxsplit=1)[0]


def place_of(running: Running) -> tuple[str, int]:
    address = urlsplit(running.origin)
    return address.hostname or "", address.port or 0


def get(running: Running, path: str, cookie: str = "") -> http.client.HTTPResponse:
    connection = http.client.HTTPConnection(*place_of(running), timeout=20)
    connection.request("GET", path, headers={"Cookie": cookie.encode()} if cookie else {})
    response = connection.getresponse()
    response.read()
    connection.close()
    return response


@pytest.mark.parametrize(
    "other", ['prefs={"theme":"dark"}', "x[y]=1", "word", "a=b;;=", "é=1", 'q="unclosed']
)
def test_another_programs_cookie_does_not_lock_the_owner_out(
    running: Running, cookie: str, other: str
) -> None:
    """Browsers send the cookies of all ports of a host."""
    assert get(running, "/", f"{other}; {cookie}").status == 200
    assert get(running, "/", f"{cookie}; {other}").status == 200
    assert get(running, "/", other).status == 403


def test_slow_connections_of_a_stranger_do_not_keep_the_owner_out(
    running: Running, cookie: str
) -> None:
    slow = [socket.create_connection(place_of(running), timeout=20) for _ in range(300)]
    try:
        for one in slow:
            one.sendall(b"GET / HTTP/1.1\r\nHos")
        assert get(running, "/", cookie).status == 200
        opened = len(list(Path(f"/proc/{running.process.pid}/fd").iterdir()))
        assert opened < 2 * MOST_WAITING + 40
    finally:
        for one in slow:
            one.close()


def malformed(host: str, cookie: str) -> list[bytes]:
    head = f"Host: {host}\r\nCookie: {cookie}\r\n"
    socket_head = (
        f"{head}Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
        f"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nOrigin: http://{host}\r\n"
    )
    return [
        b"\x00\x01\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01",
        b"GET / HTTP/1.1\r\n" + b"A" * 100_000,
        f"GET / HTTP/1.1\r\n{head}Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n".encode(),
        f"POST /session/x/upload/y HTTP/1.1\r\n{head}Content-Length: 5\r\n\r\nab".encode(),
        f"POST / HTTP/1.1\r\n{head}Transfer-Encoding: chunked\r\n\r\nzz\r\n".encode(),
        *(
            f"GET /websocket/ HTTP/1.1\r\n{socket_head}\r\n".encode() + frame
            for frame in (b"\xff\xff\xff", b"\x81\x85\0\0\0\0hello", b"\x81\x82\0\0\0\0{}",
                          b"\x81\x82\0\0\0\0[]")
        ),
    ]  # fmt: skip


def test_malformed_requests_make_no_noise() -> None:
    with studio() as running:
        token = running.address.removeprefix(running.origin)
        cookie = str(get(running, token).getheader("set-cookie")).split(";", maxsplit=1)[0]
        host, port = place_of(running)
        for request in malformed(f"{host}:{port}", cookie):
            with socket.create_connection((host, port), timeout=20) as connection:
                connection.sendall(request)
                connection.recv(1000)
        assert get(running, "/", cookie).status == 200
        said = running.stop(signal.SIGTERM)
    assert said.splitlines()[-1:] == [
        "Studio closed; uploads and temporary files have been removed."
    ]
    assert "Traceback" not in said and "ERROR" not in said and "WARNING" not in said


def test_the_browsers_command_line_does_not_hold_the_token(tmp_path: Path) -> None:
    address = "http://127.0.0.1:1/?token=secret"
    url = serve._handover(tmp_path, address)
    assert "secret" not in url
    (page,) = tmp_path.iterdir()
    assert stat.S_IMODE(page.stat().st_mode) == 0o600
    assert url == page.as_uri() and address in page.read_text()


def test_the_browser_that_is_opened_gets_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    called, program = tmp_path / "called", tmp_path / "browser"
    program.write_text(f'#!/bin/sh\necho "$@" > {called}.part; mv {called}.part {called}\n')
    program.chmod(0o755)
    monkeypatch.setenv("BROWSER", f"{program} %s")
    with studio(browser=True) as running:
        wait_for(called.exists, 30, "the browser")
        given = called.read_text().strip()
        token = running.address.partition("token=")[2]
        assert given.startswith("file://") and token not in given
        assert token in Path(given.removeprefix("file://")).read_text()


def test_a_browser_finds_its_way_from_the_file(browser: Browser, tmp_path: Path) -> None:
    with studio() as running, closing(browser.new_context()) as context:
        page = context.new_page()
        page.goto(serve._handover(tmp_path, running.address))
        page.wait_for_selector("body[data-connected=yes]")
        assert page.url == f"{running.origin}/"


# A signal at a chosen moment of the start, which a library may swallow.
TOLD = """
import os, runpy, signal, sys
from reconpriv.studio import serve
from reconpriv.studio.desk import Desk
where, number = sys.argv.pop(1), int(sys.argv.pop(1))
plain = serve.make_app if where == "app" else Desk.look
def told(*args, **more):
    try:
        os.kill(os.getpid(), number)
        return plain(*args, **more)
    except KeyboardInterrupt:
        return plain(*args, **more)
if where == "app":
    serve.make_app = told
else:
    Desk.look = told
runpy.run_module("reconpriv", run_name="__main__")
"""


@pytest.mark.parametrize(
    ("where", "number"),
    [("look", signal.SIGINT), ("app", signal.SIGTERM), ("app", signal.SIGHUP)],
)
def test_a_signal_during_the_start_ends_it(
    scratch: Path, where: str, number: signal.Signals
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", TOLD, where, str(int(number)), "studio", "--no-browser",
         "example:census_workers"],
        capture_output=True, text=True, check=False, timeout=60, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert re.search(r"^Studio closed;", done.stdout, re.MULTILINE)
    assert done.stderr == ""
    assert list(scratch.iterdir()) == []

"""One browser on this machine gets in, and nobody else; the server starts and ends cleanly."""

from __future__ import annotations

import base64
import http.client
import importlib.util
import re
import resource
import signal
import socket
import stat
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from reconpriv.cli.commands import more as command
from reconpriv.studio.server import serve
from reconpriv.studio.server.waiting_connections import MOST_WAITING
from reconpriv.studio.work.workspace import Workspace
from stopping import wait_for
from studio_walk import connected, served, studio

PATHS = (
    "/",
    "/www/studio.css",
    "/www/studio.js",
    "/lib/shiny/shiny.js",
    "/session/x/upload/y",
    "/?token=wrong",
)
SOCKET = {
    "Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": base64.b64encode(bytes(16)).decode(),
}  # fmt: skip
CLOSED = "Studio closed; uploads and temporary files have been removed."


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """The address of a studio in this process, which nobody has used."""
    workspace = Workspace(tmp_path_factory.mktemp("home"))
    with served(workspace) as found:
        yield urlsplit(found)
    workspace.close()


def asking(address):
    def get(path, method="GET", host=address.hostname, **headers):
        with closing(http.client.HTTPConnection(host, address.port, timeout=20)) as connection:
            sent = {name.replace("_", "-"): value.encode() for name, value in headers.items()}
            connection.request(method, path, headers=sent)
            response = connection.getresponse()
            response.read()
            return response

    return get


@pytest.fixture(scope="module")
def ask(address):
    return asking(address)


def token_of(address):
    return f"{address.path}?{address.query}"


@pytest.fixture(scope="module")
def cookie(address, ask):
    """What the first request with the token gets."""
    assert ask(token_of(address), Host="studio.example").status == 403
    response = ask(token_of(address))
    assert response.status == 200
    whole = str(response.getheader("set-cookie"))
    assert "HttpOnly" in whole and "SameSite=strict" in whole
    return whole.split(";", maxsplit=1)[0]


@pytest.mark.parametrize("path", PATHS)
def test_without_the_cookie_every_request_is_refused(ask, path):
    for method in ("GET", "POST", "HEAD"):
        assert ask(path, method).status == 403


def test_a_websocket_without_the_cookie_is_refused(ask, address):
    origin = f"http://{address.netloc}"
    assert ask("/websocket/", **SOCKET, Origin=origin).status == 403


def test_with_the_cookie_the_page_and_its_files_are_served(ask, cookie, address):
    page = ask("/", Cookie=cookie)
    assert page.status == 200
    assert "default-src 'self'" in str(page.getheader("content-security-policy"))
    assert ask("/www/studio.css", Cookie=cookie).status == 200
    assert ask("/", Cookie=cookie, Host=f"localhost:{address.port}").status == 200


def test_the_token_works_once(ask, cookie, address):
    assert ask(token_of(address)).status == 403
    assert ask(token_of(address), Cookie=cookie).status == 200


@pytest.mark.parametrize("path", PATHS)
def test_another_host_is_refused_even_with_the_cookie(ask, cookie, path):
    for host in ("studio.example", "127.0.0.1", "localhost:1", "[::1]"):
        assert ask(path, Cookie=cookie, Host=host).status == 403


def test_another_cookie_is_refused(ask, cookie):
    name = cookie.split("=", maxsplit=1)[0]
    assert ask("/", Cookie=f"{name}=guess").status == 403
    assert ask("/", Cookie="\x01=;;").status == 403


@pytest.mark.parametrize(
    "other", ['prefs={"theme":"dark"}', "x[y]=1", "word", "a=b;;=", "é=1", 'q="unclosed']
)
def test_another_programs_cookie_does_not_lock_the_owner_out(ask, cookie, other):
    """Browsers send the cookies of all ports of a host."""
    assert ask("/", Cookie=f"{other}; {cookie}").status == 200
    assert ask("/", Cookie=f"{cookie}; {other}").status == 200
    assert ask("/", Cookie=other).status == 403


@pytest.mark.parametrize("origin", ["http://evil.example", "http://127.0.0.1:1", "null"])
def test_another_origin_is_refused(ask, cookie, origin):
    assert ask("/session/x/upload/y", "POST", Cookie=cookie, Origin=origin).status == 403
    assert ask("/websocket/", **SOCKET, Cookie=cookie, Origin=origin).status == 403


def test_a_websocket_must_name_its_origin(ask, cookie, address):
    assert ask("/websocket/", **SOCKET, Cookie=cookie).status == 403
    origin = f"http://{address.netloc}"
    assert ask("/websocket/", **SOCKET, Cookie=cookie, Origin=origin).status == 101


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_another_sites_request_is_refused(ask, cookie, site):
    """A page on another local port counts as the same site, so the cookie alone would let it in."""
    assert ask("/", Cookie=cookie, Sec_Fetch_Site=site).status == 403


def malformed(host, cookie):
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


def test_other_programs_neither_keep_the_owner_out_nor_make_noise():
    """It listens on this machine alone; slow and malformed requests do no harm."""
    with studio("example:adult") as running:
        address = urlsplit(running.address)
        place, ask = (address.hostname, address.port), asking(address)
        resource.prlimit(running.process.pid, resource.RLIMIT_NOFILE, (256, 256))
        (home,) = running.homes
        assert stat.S_IMODE(home.stat().st_mode) == 0o700
        listening = [
            line.split()[1]
            for table in ("/proc/net/tcp", "/proc/net/tcp6")
            for line in Path(table).read_text().splitlines()[1:]
            if line.split()[3] == "0A" and line.split()[1].endswith(f":{address.port:04X}")
        ]
        assert listening == [f"0100007F:{address.port:04X}"]
        with pytest.raises(ConnectionRefusedError):  # another address of this machine
            ask("/", host="127.0.0.2")
        cookie = str(ask(token_of(address)).getheader("set-cookie")).split(";", maxsplit=1)[0]
        slow = [socket.create_connection(place, timeout=20) for _ in range(300)]
        for one in slow:
            one.sendall(b"GET / HTTP/1.1\r\nHos")
        assert ask("/", Cookie=cookie).status == 200
        opened = len(list(Path(f"/proc/{running.process.pid}/fd").iterdir()))
        assert opened < 2 * MOST_WAITING + 40
        for one in slow:
            one.close()
        for request in malformed(address.netloc, cookie):
            with socket.create_connection(place, timeout=20) as connection:
                connection.sendall(request)
                connection.recv(1000)
        assert ask("/", Cookie=cookie).status == 200
        ends_cleanly(running, signal.SIGTERM)


def ends_cleanly(running, number):
    said = running.stop(number)
    assert running.process.returncode == 0
    assert said.splitlines()[-1:] == [CLOSED]
    assert "Traceback" not in said and "ERROR" not in said and "WARNING" not in said
    assert list(running.scratch.iterdir()) == []
    return said


def test_where_it_listens_by_request_it_lets_nobody_in_under_another_name():
    with studio("--listen", "0.0.0.0") as running:
        address = urlsplit(running.address)
        ask, path = asking(address), token_of(address)
        other, mine = f"127.0.0.2:{address.port}", address.netloc
        assert ask(path, host="127.0.0.2", Host=other).status == 403
        assert ask("/", host="127.0.0.2", Host=mine).status == 403
        assert ask(path, host="127.0.0.2", Host=mine).status == 200
        assert "Other machines may reach 0.0.0.0" in ends_cleanly(running, signal.SIGINT)


def test_the_browsers_command_line_does_not_hold_the_token(tmp_path):
    address = "http://127.0.0.1:1/?token=secret"
    url = serve._handover(tmp_path, address)
    assert "secret" not in url
    (page,) = tmp_path.iterdir()
    assert stat.S_IMODE(page.stat().st_mode) == 0o600
    assert url == page.as_uri() and address in page.read_text()


def test_the_browser_that_is_opened_gets_the_file(tmp_path, monkeypatch, browser):
    """And finds its way from there."""
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
        with closing(browser.new_context()) as context:
            page = context.new_page()
            page.goto(given)
            connected(page)
            assert page.url == f"{running.origin}/"
        ends_cleanly(running, signal.SIGHUP)


# A signal at a chosen moment of the start, which a library may swallow.
TOLD = """
import os, runpy, sys
from reconpriv.studio.server import serve
from reconpriv.studio.work.workspace import Workspace
where, number = sys.argv.pop(1), int(sys.argv.pop(1))
plain = serve.make_app if where == "app" else Workspace.look
def told(*args, **more):
    try:
        os.kill(os.getpid(), number)
        return plain(*args, **more)
    except KeyboardInterrupt:
        return plain(*args, **more)
if where == "app":
    serve.make_app = told
else:
    Workspace.look = told
runpy.run_module("reconpriv", run_name="__main__")
"""


@pytest.mark.parametrize(
    ("where", "number"), [("look", signal.SIGINT), ("app", signal.SIGTERM), ("app", signal.SIGHUP)]
)
def test_a_signal_during_the_start_ends_it(scratch, where, number):
    done = subprocess.run(
        [sys.executable, "-c", TOLD, where, str(int(number)), "studio", "--no-browser",
         "example:census_workers"],
        capture_output=True, text=True, check=False, timeout=60, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert re.search(r"^Studio closed;", done.stdout, re.MULTILINE)
    assert done.stderr == ""
    assert list(scratch.iterdir()) == []


def test_without_shiny_the_command_says_how_to_get_it(cli, monkeypatch):
    real = importlib.util.find_spec
    monkeypatch.setattr(command, "find_spec", lambda name: None if name == "shiny" else real(name))
    outcome = cli("studio")
    assert outcome.code == 2
    assert "-m pip install '" in outcome.err and "'shiny>=" in outcome.err
    assert len(outcome.err.strip().splitlines()) == 1


NO_ADDRESS = ("is not an IPv4 address", "127.0.0.1")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nowhere.csv"], ["nowhere.csv"]),
        (["example:adult", "-s", "wage"], ["'wage'"]),
        (["-"], []),
        *((["--no-browser", "--listen", one], NO_ADDRESS)
          for one in ("nowhere", "", "::1", "127.0.0.1:80", "1.2.3")),
    ],
)  # fmt: skip
def test_the_command_says_what_is_wrong_before_a_browser_opens(cli, arguments, words):
    outcome = cli("studio", *arguments)
    assert outcome.code == 2
    assert all(one in outcome.err for one in words)


def test_a_port_in_use_is_told(cli):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        outcome = cli("studio", "--no-browser", "--port", taken.getsockname()[1])
    assert outcome.code == 2
    assert "--port" in outcome.err

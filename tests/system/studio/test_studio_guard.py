"""One browser on this machine gets in; nobody else does."""

from __future__ import annotations

import base64
import http.client
import signal
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from studio_walk import Running, studio

Ask = Callable[..., http.client.HTTPResponse]
PATHS = (
    "/",
    "/www/studio.css",
    "/www/studio.js",
    "/lib/shiny/shiny.js",
    "/session/x/upload/y",
    "/?token=wrong",
)


@pytest.fixture(scope="module")
def running() -> Iterator[Running]:
    with studio("example:adult") as started:
        yield started


@pytest.fixture(scope="module")
def ask(running: Running) -> Ask:
    def get(path: str, method: str = "GET", **headers: str) -> http.client.HTTPResponse:
        address = urlsplit(running.origin)
        connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=10)
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, path, headers=sent)
        response = connection.getresponse()
        response.read()
        connection.close()
        return response

    return get


@pytest.fixture(scope="module")
def cookie(running: Running, ask: Ask) -> str:
    """What the first request with the token gets."""
    token = running.address.removeprefix(running.origin)
    refused = ask(token, Host="studio.example")
    assert refused.status == 403
    response = ask(token)
    assert response.status == 200
    whole = str(response.getheader("set-cookie"))
    assert "HttpOnly" in whole
    assert "SameSite=strict" in whole
    return whole.split(";", maxsplit=1)[0]


def socket_headers() -> dict[str, str]:
    return {
        "Connection": "Upgrade", "Upgrade": "websocket", "Sec_WebSocket_Version": "13",
        "Sec_WebSocket_Key": base64.b64encode(bytes(16)).decode(),
    }  # fmt: skip


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("method", ["GET", "POST", "HEAD"])
def test_without_the_cookie_every_request_is_refused(ask: Ask, path: str, method: str) -> None:
    assert ask(path, method).status == 403


def test_a_websocket_without_the_cookie_is_refused(ask: Ask, running: Running) -> None:
    assert ask("/websocket/", **socket_headers(), Origin=running.origin).status == 403


def test_with_the_cookie_the_page_and_its_files_are_served(ask: Ask, cookie: str) -> None:
    page = ask("/", Cookie=cookie)
    assert page.status == 200
    assert "default-src 'self'" in str(page.getheader("content-security-policy"))
    assert ask("/www/studio.css", Cookie=cookie).status == 200


def test_the_token_works_once(ask: Ask, cookie: str, running: Running) -> None:
    token = running.address.removeprefix(running.origin)
    assert ask(token).status == 403
    assert ask(token, Cookie=cookie).status == 200


@pytest.mark.parametrize("host", ["studio.example", "127.0.0.1", "localhost:1", "[::1]"])
@pytest.mark.parametrize("path", PATHS)
def test_another_host_is_refused_even_with_the_cookie(
    ask: Ask, cookie: str, host: str, path: str
) -> None:
    assert ask(path, Cookie=cookie, Host=host).status == 403


def test_localhost_is_this_machine_too(ask: Ask, cookie: str, running: Running) -> None:
    port = urlsplit(running.origin).port
    assert ask("/", Cookie=cookie, Host=f"localhost:{port}").status == 200


def test_another_cookie_is_refused(ask: Ask, cookie: str) -> None:
    name = cookie.split("=", maxsplit=1)[0]
    assert ask("/", Cookie=f"{name}=guess").status == 403
    assert ask("/", Cookie="\x01=;;").status == 403


@pytest.mark.parametrize("origin", ["http://evil.example", "http://127.0.0.1:1", "null"])
def test_another_origin_is_refused(ask: Ask, cookie: str, origin: str) -> None:
    assert ask("/session/x/upload/y", "POST", Cookie=cookie, Origin=origin).status == 403
    assert ask("/websocket/", **socket_headers(), Cookie=cookie, Origin=origin).status == 403


def test_a_websocket_must_name_its_origin(ask: Ask, cookie: str, running: Running) -> None:
    assert ask("/websocket/", **socket_headers(), Cookie=cookie).status == 403
    assert (
        ask("/websocket/", **socket_headers(), Cookie=cookie, Origin=running.origin).status == 101
    )


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_another_sites_request_is_refused(ask: Ask, cookie: str, site: str) -> None:
    """A page on another local port counts as the same site, so the cookie alone would let it in."""
    assert ask("/", Cookie=cookie, Sec_Fetch_Site=site).status == 403


def test_the_studio_listens_on_this_machine_alone(running: Running) -> None:
    port = urlsplit(running.origin).port or 0
    listening = [
        line.split()[1]
        for table in ("/proc/net/tcp", "/proc/net/tcp6")
        for line in Path(table).read_text().splitlines()[1:]
        if line.split()[3] == "0A" and line.split()[1].endswith(f":{port:04X}")
    ]
    assert listening == [f"0100007F:{port:04X}"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_the_folder_is_private_and_gone_at_the_end(number: signal.Signals) -> None:
    with studio("example:adult") as running:
        (home,) = running.homes
        assert stat.S_IMODE(home.stat().st_mode) == 0o700
        said = running.stop(number)
        assert running.process.returncode == 0
        assert "removed" in said
        assert "Traceback" not in said
        assert list(running.scratch.iterdir()) == []

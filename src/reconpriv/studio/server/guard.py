"""Who gets into the studio: one browser, this machine, nobody else.

The printed address carries a token. The first request with it gets a cookie and uses up the
token. Any request without the cookie, under another host name or from another origin is
refused, whether for a page, a file or a WebSocket.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs

from starlette.datastructures import Headers
from starlette.responses import HTMLResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_FORBIDDEN = 403
_POLICY_VIOLATION = 1008

_PAGE = (
    '<!doctype html><html lang="en"><head><meta charset="utf-8"><link rel="icon" href="data:,">'
    "{head}<title>reconpriv studio</title></head><body><p>{text}</p></body></html>"
)
# A page, not a redirect: if the link was clicked on another site, a browser would not send
# the new cookie with the redirected request.
_WELCOME = _PAGE.format(
    head='<meta http-equiv="refresh" content="0;url=/">',
    text='The studio is opening. <a href="/">Open it now</a>.',
)
_REFUSED = _PAGE.format(
    head="",
    text="This studio belongs to another browser window, or its address was used before. Start"
    " <code>reconpriv studio</code> again for a new address.",
)


class Guard:
    """ASGI middleware that lets one browser in."""

    def __init__(self, app: ASGIApp, port: int, known: Callable[[Any], None]) -> None:
        """Draw the token and the cookie's secret; ``known`` is told who the owner is."""
        self._app = app
        self._known = known
        self._token: str | None = secrets.token_urlsafe(32)
        self._secret = secrets.token_urlsafe(32)
        # Cookies ignore ports; two studios on one machine must not share one.
        self._cookie = f"reconpriv-studio-{port}"
        self._hosts = (f"127.0.0.1:{port}", f"localhost:{port}")
        self._headers = _security_headers(self._hosts)
        self.address = f"http://127.0.0.1:{port}/?token={self._token}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse, welcome or pass on a request."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        if headers.get("host") not in self._hosts:
            await _refuse(scope, receive, send)
        elif self._has_cookie(headers):
            self._known(scope.get("client"))
            if self._is_foreign(headers, websocket=scope["type"] == "websocket"):
                await _refuse(scope, receive, send)
            elif _token_of(scope):
                await self._welcome()(scope, receive, send)
            else:
                await self._app(scope, receive, self._with_headers(send))
        elif self._is_first(scope):
            self._token = None
            self._known(scope.get("client"))
            await self._welcome()(scope, receive, send)
        else:
            await _refuse(scope, receive, send)

    def _has_cookie(self, headers: Headers) -> bool:
        """Whether ours is among the cookies, which other programs on this machine add to."""
        cookies = (one for line in headers.getlist("cookie") for one in line.split(";"))
        named = (one.strip().partition("=") for one in cookies)
        return any(
            name == self._cookie and secrets.compare_digest(value.encode(), self._secret.encode())
            for name, _, value in named
        )

    def _is_foreign(self, headers: Headers, *, websocket: bool) -> bool:
        """Whether another site or another local port is using our cookie."""
        origin = headers.get("origin")
        own = {f"http://{host}" for host in self._hosts}
        if websocket or origin is not None:
            return origin not in own
        return headers.get("sec-fetch-site", "none") not in ("same-origin", "none")

    def _is_first(self, scope: Scope) -> bool:
        token = _token_of(scope)
        return (
            self._token is not None
            and token is not None
            and secrets.compare_digest(token.encode(), self._token.encode())
        )

    def _welcome(self) -> Response:
        response = HTMLResponse(_WELCOME, headers={"Cache-Control": "no-store"})
        response.set_cookie(self._cookie, self._secret, httponly=True, samesite="strict", path="/")
        return response

    def _with_headers(self, send: Send) -> Send:
        async def sender(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), *self._headers]
            await send(message)

        return sender


def _security_headers(hosts: tuple[str, ...]) -> list[tuple[bytes, bytes]]:
    """Nothing may be fetched from, or embedded in, any other place, and no inline script runs.

    Shiny's own inline script only turns on spinners, which this page does not use.
    """
    sockets = " ".join(f"ws://{host}" for host in hosts)
    policy = (
        f"default-src 'self'; connect-src 'self' {sockets}; img-src 'self' data:;"
        " style-src 'self' 'unsafe-inline'; object-src 'none'; base-uri 'none';"
        " form-action 'none'; frame-ancestors 'none'"
    )
    return [
        (b"content-security-policy", policy.encode()),
        (b"referrer-policy", b"no-referrer"),
        (b"x-content-type-options", b"nosniff"),
        (b"cache-control", b"no-store"),
    ]


def _token_of(scope: Scope) -> str | None:
    if scope["type"] != "http" or scope["method"] != "GET" or scope["path"] != "/":
        return None
    values = parse_qs(scope["query_string"].decode("latin-1")).get("token")
    return values[0] if values else None


async def _refuse(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.close", "code": _POLICY_VIOLATION})
        return
    await HTMLResponse(_REFUSED, status_code=_FORBIDDEN)(scope, receive, send)

"""Starting and stopping the studio: a socket on this machine, a private folder, a browser."""

from __future__ import annotations

import contextlib
import ipaddress
import logging
import os
import socket
import tempfile
import threading
import webbrowser
from collections.abc import Callable, Iterator
from html import escape
from pathlib import Path

import uvicorn

from reconpriv.errors import InputError, OutputError
from reconpriv.messages.remedies import Control, Remedy
from reconpriv.studio.app import make_app
from reconpriv.studio.server.guard import Guard
from reconpriv.studio.server.stopping import Stopping, stopping
from reconpriv.studio.server.waiting_connections import MOST_WAITING, WaitingConnections
from reconpriv.studio.work.workspace import Opened, Workspace
from reconpriv.writing.scratch import temporary

HOST = "127.0.0.1"
"""This machine, seen from itself: nobody else can connect."""
# The token is not in the browser's command line, which every user of the machine can read.
_HANDOVER = (
    '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>reconpriv studio</title>'
    '<meta name="referrer" content="no-referrer"><meta http-equiv="refresh"'
    ' content="0;url={address}"></head><body><p><a href="{address}">Open the studio</a>.</p>'
    "</body></html>"
)


def run_studio(
    table: str | None,
    *,
    sensitive: str | None = None,
    port: int = 0,
    listen: str = HOST,
    browser: bool = True,
    say: Callable[[str], None] = print,
) -> None:
    """Serve until Ctrl-C, SIGTERM or a closed terminal, then remove every upload.

    Wherever it listens, only a browser that calls it 127.0.0.1 or localhost is let in, once.
    """
    ended = True
    with stopping() as stop, _listening(port, _ipv4(listen)) as listener, own_folder() as home:
        workspace = Workspace(home)
        try:
            if table is not None:
                with stop.may_interrupt():
                    _check_column(workspace.look(table), sensitive)
                    workspace.step = 2
            workspace.draft["sensitive"] = sensitive
            if not stop.asked:
                _serve(workspace, listener, stop, browser=browser, say=say)
        finally:
            ended = workspace.close()
    with contextlib.suppress(OSError):  # the terminal may be closed
        say("Studio closed; uploads and temporary files have been removed.")
    if not ended:  # Python would wait for threads that nobody can stop
        os._exit(0)


def _check_column(opened: Opened, name: str | None) -> None:
    names = [column.name for column in opened.summary.columns]
    if name is not None and name not in names:
        raise InputError(f"The table has no column {name!r}.", hint=f"It has: {', '.join(names)}.")


def _serve(
    workspace: Workspace,
    listener: socket.socket,
    stop: Stopping,
    *,
    browser: bool,
    say: Callable[[str], None],
) -> None:
    where, port = listener.getsockname()
    server, address = make_server(workspace, port)

    def end() -> None:
        server.should_exit = True

    stop.then(end)
    say(f"Studio: {address}")
    if not ipaddress.IPv4Address(where).is_loopback:
        say(
            f"Other machines may reach {where}, and what they exchange with the studio is not"
            " encrypted."
        )
    say("The address works once, in one browser. Press Ctrl-C to stop the studio.")
    opening = threading.Timer(0.5, webbrowser.open, (_handover(workspace.home, address),))
    opening.daemon = True  # a browser may run in the terminal, and as long as it likes
    if browser:
        opening.start()
    server.run(sockets=[listener])
    opening.cancel()


def make_server(workspace: Workspace, port: int) -> tuple[uvicorn.Server, str]:
    """A server that lets one browser in, and the address that does."""
    waiting = WaitingConnections()
    guard = Guard(make_app(workspace), port, waiting.leave)
    debug = bool(os.environ.get("RECONPRIV_DEBUG"))
    if not debug:
        # A malformed request of another program is no news, and its traceback is no help.
        for name in ("asyncio", "websockets", "shiny"):
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    config = uvicorn.Config(
        guard,
        http=waiting.protocol(),
        log_level="warning" if debug else logging.CRITICAL + 1,
        access_log=False,
        server_header=False,
        backlog=MOST_WAITING,
        timeout_graceful_shutdown=2,
    )
    return uvicorn.Server(config), guard.address


def _handover(home: Path, address: str) -> str:
    """The URL of a page that only its owner can read, and that leads to the studio."""
    page = home / "open-studio.html"
    page.touch(mode=0o600)
    page.write_text(_HANDOVER.format(address=escape(address)), encoding="utf-8")
    return page.as_uri()


@contextlib.contextmanager
def own_folder() -> Iterator[Path]:
    """A folder with mode 0700 for uploads, spilled data and releases, removed at the end.

    It is the temporary folder of the whole process, so whatever libraries write is inside it.
    """
    before = tempfile.tempdir
    with temporary("studio") as home:
        tempfile.tempdir = str(home)
        try:
            yield home
        finally:
            tempfile.tempdir = before


def _ipv4(address: str) -> str:
    try:
        return str(ipaddress.IPv4Address(address))
    except ValueError:
        raise InputError(
            f"{address!r} is not an IPv4 address to listen on.",
            hint=f"Use {HOST} for this machine alone, or 0.0.0.0 for all its addresses.",
        ) from None


@contextlib.contextmanager
def _listening(port: int, address: str) -> Iterator[socket.socket]:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((address, port))
        # Before the address is printed: a browser may be faster than the server.
        listener.listen(MOST_WAITING)
    except OSError as error:
        listener.close()
        raise OutputError(
            f"Port {port} of {address} cannot be used: {error.strerror}.",
            hint=Remedy("choose another {}, or leave it out for any free port", Control.PORT),
        ) from None
    with listener:
        yield listener

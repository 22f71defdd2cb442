"""Starting and stopping the studio: a socket on this machine, a private folder, a browser."""

from __future__ import annotations

import contextlib
import ipaddress
import os
import shutil
import signal
import socket
import tempfile
import threading
import webbrowser
from collections.abc import Callable, Iterator
from pathlib import Path

import uvicorn

from reconpriv.errors import InputError, OutputError
from reconpriv.messages.remedies import Control, Remedy
from reconpriv.studio.app import make_app
from reconpriv.studio.desk import Desk, Opened
from reconpriv.studio.guard import Guard

HOST = "127.0.0.1"
"""This machine, seen from itself: nobody else can connect."""


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
    with _listening(port, _ipv4(listen)) as listener, own_folder() as home:
        desk = Desk(home)
        try:
            # A signal may arrive before the server has taken over handling them.
            with contextlib.suppress(KeyboardInterrupt):
                if table is not None:
                    _check_column(desk.look(table), sensitive)
                    desk.step = 2
                desk.draft["sensitive"] = sensitive
                _serve(desk, listener, browser=browser, say=say)
        finally:
            desk.close()
    say("Studio closed; uploads and temporary files have been removed.")


def _check_column(opened: Opened, name: str | None) -> None:
    names = [column.name for column in opened.summary.columns]
    if name is not None and name not in names:
        raise InputError(f"The table has no column {name!r}.", hint=f"It has: {', '.join(names)}.")


def _serve(
    desk: Desk, listener: socket.socket, *, browser: bool, say: Callable[[str], None]
) -> None:
    guard = Guard(make_app(desk), listener.getsockname()[1])
    config = uvicorn.Config(
        guard,
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=2,
    )
    server = uvicorn.Server(config)

    def stop(*_: object) -> None:
        server.should_exit = True

    # Until the server has its own handlers: raising an error during its start leaves a mess.
    signal.signal(signal.SIGINT, stop)
    signal.signal(signal.SIGTERM, stop)
    if hasattr(signal, "SIGHUP"):  # a closed terminal; Windows has no such signal
        signal.signal(signal.SIGHUP, lambda *_: os.kill(os.getpid(), signal.SIGTERM))
    say(f"Studio: {guard.address}")
    where = listener.getsockname()[0]
    if not ipaddress.IPv4Address(where).is_loopback:
        say(
            f"Other machines may reach {where}, and what they exchange with the studio is not"
            " encrypted."
        )
    say("The address works once, in one browser. Press Ctrl-C to stop the studio.")
    if browser:
        threading.Timer(0.5, webbrowser.open, (guard.address,)).start()
    server.run(sockets=[listener])


@contextlib.contextmanager
def own_folder() -> Iterator[Path]:
    """A folder with mode 0700 for uploads, spilled data and releases, removed at the end.

    It is the temporary folder of the whole process, so whatever libraries write is inside it.
    """
    home = Path(tempfile.mkdtemp(prefix="reconpriv-studio-"))
    before = tempfile.tempdir
    tempfile.tempdir = str(home)
    try:
        yield home
    finally:
        tempfile.tempdir = before
        shutil.rmtree(home, ignore_errors=True)


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
        listener.listen()
    except OSError as error:
        listener.close()
        raise OutputError(
            f"Port {port} of {address} cannot be used: {error.strerror}.",
            hint=Remedy("choose another {}, or leave it out for any free port", Control.PORT),
        ) from None
    with listener:
        yield listener

"""Connections that have not shown the cookie are few and short.

Anybody on this machine can open connections and say nothing. Each takes a file descriptor, so
they must not add up: when there are too many, the one that has waited longest is closed, and none
may wait for long. The owner's browser says at once who it is.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.auto import AutoHTTPProtocol

MOST_WAITING = 32
SECONDS_TO_WAIT = 10.0

Peer = tuple[str, int]


class WaitingConnections:
    """The connections that are still waiting, longest first."""

    def __init__(self) -> None:
        self._waiting: dict[Peer, tuple[asyncio.Transport, asyncio.TimerHandle]] = {}

    def arrive(self, transport: asyncio.Transport) -> None:
        """Let a connection wait; another one may have to leave for it."""
        peer = transport.get_extra_info("peername")
        if peer is None:  # gone already
            transport.abort()
            return
        self.leave(peer)
        loop = asyncio.get_running_loop()
        late = loop.call_later(SECONDS_TO_WAIT, self._turn_away, peer)
        self._waiting[peer] = transport, late
        if len(self._waiting) > MOST_WAITING:
            self._turn_away(next(iter(self._waiting)))

    def leave(self, peer: Peer | None) -> None:
        """It has closed, or has shown that it is the owner's."""
        found = None if peer is None else self._waiting.pop(peer, None)
        if found is not None:
            found[1].cancel()

    def _turn_away(self, peer: Peer) -> None:
        transport, _ = self._waiting[peer]
        self.leave(peer)
        transport.abort()

    def protocol(self) -> type[asyncio.Protocol]:
        """The server's protocol for one connection, which waits here at first."""
        waiting = self

        class Watched(AutoHTTPProtocol):  # type: ignore[misc, valid-type]
            """Reports that its connection was made, and lost."""

            def connection_made(self, transport: Any) -> None:
                """Let it wait."""
                super().connection_made(transport)
                waiting.arrive(transport)

            def connection_lost(self, exc: Exception | None) -> None:
                """Forget it."""
                waiting.leave(self.client)
                super().connection_lost(exc)

        return Watched

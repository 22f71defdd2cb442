"""The command says in one sentence what is wrong."""

from __future__ import annotations

import contextlib
import http.client
import importlib.util
import socket
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import pytest

from reconpriv.cli import studio as command
from studio_walk import studio


def test_without_shiny_the_command_says_how_to_get_it(
    cli: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    real = importlib.util.find_spec
    monkeypatch.setattr(command, "find_spec", lambda name: None if name == "shiny" else real(name))
    outcome = cli("studio")
    assert outcome.code == 2
    assert "-m pip install '" in outcome.err and "'shiny>=" in outcome.err
    assert len(outcome.err.strip().splitlines()) == 1


def test_a_table_that_is_not_there_is_told_before_a_browser_opens(cli: Callable[..., Any]) -> None:
    outcome = cli("studio", "nowhere.csv")
    assert outcome.code == 2
    assert "nowhere.csv" in outcome.err


def test_a_column_that_is_not_there_is_told(cli: Callable[..., Any]) -> None:
    outcome = cli("studio", "example:adult", "-s", "wage")
    assert outcome.code == 2
    assert "'wage'" in outcome.err


def test_standard_input_is_refused(cli: Callable[..., Any]) -> None:
    assert cli("studio", "-").code == 2


def test_a_port_in_use_is_told(cli: Callable[..., Any]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        outcome = cli("studio", "--no-browser", "--port", taken.getsockname()[1])
    assert outcome.code == 2
    assert "--port" in outcome.err


@pytest.mark.parametrize("address", ["nowhere", "", "::1", "127.0.0.1:80", "1.2.3"])
def test_an_address_that_is_none_is_told(cli: Callable[..., Any], address: str) -> None:
    outcome = cli("studio", "--no-browser", "--listen", address)
    assert outcome.code == 2
    assert "is not an IPv4 address" in outcome.err and "127.0.0.1" in outcome.err


def answer(host: str, port: int | None, named: str, path: str = "/") -> int:
    """The status of a request to a host under a name."""
    with contextlib.closing(http.client.HTTPConnection(host, port, timeout=20)) as connection:
        connection.request("GET", path, headers={"Host": f"{named}:{port}"})
        with connection.getresponse() as response:
            return response.status


def test_it_listens_on_loopback_unless_told() -> None:
    with studio() as running:
        port = urlsplit(running.address).port
        assert answer("127.0.0.1", port, "127.0.0.1") == 403
        with pytest.raises(ConnectionRefusedError):  # another address of this machine
            answer("127.0.0.2", port, "127.0.0.1")


def test_where_it_listens_by_request_it_lets_nobody_in_under_another_name() -> None:
    with studio("--listen", "0.0.0.0") as running:
        parts = urlsplit(running.address)
        path = f"{parts.path}?{parts.query}"
        assert answer("127.0.0.2", parts.port, "127.0.0.2", path) == 403
        assert answer("127.0.0.2", parts.port, "127.0.0.1") == 403
        assert answer("127.0.0.2", parts.port, "127.0.0.1", path) == 200
        assert "Other machines may reach 0.0.0.0" in running.stop()

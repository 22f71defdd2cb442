"""The command says in one sentence what is wrong."""

from __future__ import annotations

import importlib.util
import socket
from collections.abc import Callable
from typing import Any

import pytest

from reconpriv.cli import studio as command


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

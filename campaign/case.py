"""What a case is made of, and what came of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from campaign.place import Place

DONE = 0
NOT_PRIVATE = 1
REFUSED = 2


@dataclass(frozen=True)
class Step:
    """One command.

    ``writes`` are the names on the desk that it may leave there if it succeeds. ``stop`` is a
    signal and the number of seconds after which it is sent; ``codes`` are the exit statuses that
    are allowed.
    """

    args: tuple[str, ...]
    codes: tuple[int, ...] = (DONE, REFUSED)
    writes: tuple[str, ...] = ()
    stdin: bytes = b""
    stop: tuple[int, float] | None = None


@dataclass(frozen=True)
class Case:
    """Commands to run one after another until one is refused; ``facts`` are for the reference.

    ``facts`` must be plain values: they are made in one process and checked in another.
    """

    what: str
    steps: tuple[Step, ...]
    facts: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Outcome:
    """How a command ended: a negative code is a signal, None means that it had to be killed."""

    code: int | None
    out: bytes
    err: bytes
    seconds: float
    before: dict[str, str]
    after: dict[str, str]


@dataclass(frozen=True)
class Fault:
    """A rule that a case broke."""

    rule: str
    detail: str


Check = Callable[[Case, Place, list[Outcome]], list[str] | None]
"""Compares answers with a plain reference: what differs; None if nothing can be compared."""


@dataclass(frozen=True)
class Generator:
    """One kind of attack, a row of the table.

    ``prepare`` fills the shared folder once. ``make`` puts the inputs of a case in place and says
    what to run; ``run`` is given by a generator that does more than run its steps one by one.
    """

    name: str
    tries: str
    share: float
    make: Callable[[Random, Place], Case]
    prepare: Callable[[Path], None] | None = None
    check: Check | None = None
    run: Callable[[Case, Place], list[Outcome]] | None = None
    seconds: float = 20.0

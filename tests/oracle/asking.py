"""Asking a release, whatever the surface, and taking its answers apart."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import reconpriv as rp
from oracle.tables import MadeTable
from reconpriv.answers.figure import Figure
from reconpriv.estimate.counts import Estimate

Answer = Estimate | Figure
KEEPS_ALL = 1 - 1e-12
_LONGEST = 1_010


@contextmanager
def quietly() -> Iterator[None]:
    """Without warnings; with so large a p, limits divide by numbers that round to 0."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rp.ReconprivWarning)
        warnings.simplefilter("ignore", RuntimeWarning)
        yield


def published(table: MadeTable, folder: Path, policy: rp.Policy, key: int = 1) -> rp.Release:
    """A release of a made table, whatever its columns give away."""
    names = [one.name for one in table.public]
    with quietly(), rp.read(table.records, **table.reading()) as read:
        return read.publish(
            policy, folder, key=hashlib.sha256(b"oracle %d" % key).digest(),
            max_unique=1.0, keep_giveaway=names, keep_identifier=names,
        )  # fmt: skip


def raw_release(table: MadeTable, folder: Path) -> rp.Release:
    """A release that is the original table."""
    return published(
        table, folder, rp.Policy(retention=KEEPS_ALL, tolerance=0.5, doubt=0.3, sampling="none")
    )


class BareError(Exception):
    """A refusal that is no sentence."""


def asked(ask: Callable[[], Any]) -> Any:
    """The answer, or the refusal: a ReconprivError of one sentence. Anything else is a fault."""
    with quietly():
        try:
            return ask()
        except rp.ReconprivError as error:
            text = str(error)
            if (
                "\n" in text
                or len(text) > _LONGEST
                or not text.strip().endswith((".", "…", ")", "?"))
            ):
                raise BareError(f"not one sentence: {text!r}") from error
            return error
        except Exception as error:
            raise BareError(f"{type(error).__name__}: {error}") from error


def rows_of(answer: Any) -> list[tuple[tuple[Any, ...], list[Answer]]]:
    """The rows of any answer to a SELECT: labels, and what was asked for."""
    if isinstance(answer, Estimate | Figure):
        return [((), [answer])]
    return [
        (tuple(labels.values()), list(one) if isinstance(one, tuple) else [one])
        for labels, one in answer
    ]

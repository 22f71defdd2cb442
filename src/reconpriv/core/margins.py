"""What a policy says about margins: noisy tables published beside the records.

A margin table counts the sensitive values by one public attribute, or by a combination of a few.
Two tables are neighbours if they differ in the sensitive value of one record. That moves two
counts of each margin table by one, so A tables move by √(2A), and discrete Gaussian noise of
variance σ² on every count is ρ-zero-concentrated differential privacy with ρ = A/σ².
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from reconpriv.errors import PolicyError
from reconpriv.theory.concentrated import (
    check_delta,
    check_epsilon,
    check_rho,
    epsilon_of,
    rho_of,
)

DELTA = 1e-9
_DIGITS = 6  # of an ε that somebody wrote
NEIGHBOURS = "tables that differ in the sensitive value of one record"

TableNames = tuple[str, ...]


@dataclass(frozen=True, init=False)
class Margins:
    """How private all margins are together, and which tables they are.

    Give ``epsilon``, which holds together with ``delta``, or ``rho`` of zero-concentrated
    differential privacy. ``tables`` lists public attributes, or combinations of them as tuples;
    None stands for every single public attribute.
    """

    rho: float
    delta: float
    tables: tuple[TableNames, ...] | None

    def __init__(
        self,
        epsilon: float | None = None,
        delta: float = DELTA,
        *,
        rho: float | None = None,
        tables: Iterable[str | Sequence[str]] | str | None = None,
    ) -> None:
        """Check everything that can be checked without a table."""
        if (epsilon is None) == (rho is None):
            raise PolicyError(
                "Margins need one measure of privacy: ε or ρ.", hint="For example ε = 1."
            )
        for name, value in (("ε", epsilon), ("δ", delta), ("ρ", rho)):
            if value is not None and (
                isinstance(value, bool) or not isinstance(value, int | float)
            ):
                raise PolicyError(f"The {name} of margins must be a number; got {value!r}.")
        check_delta(delta)
        found = check_rho(rho) if rho is not None else rho_of(check_epsilon(epsilon or 0.0), delta)
        object.__setattr__(self, "rho", found)
        object.__setattr__(self, "delta", float(delta))
        object.__setattr__(self, "tables", None if tables is None else named_tables(tables))

    @property
    def epsilon(self) -> float:
        """The ε that ρ implies at this δ."""
        return epsilon_of(self.rho, self.delta)

    @property
    def round_epsilon(self) -> float | None:
        """The ε with the fewest digits that stands for exactly this ρ, if there is one."""
        return _round_epsilon(self.rho, self.delta)

    def variance(self, tables: int) -> float:
        """σ² of the noise on every count of so many tables."""
        return tables / self.rho

    def __repr__(self) -> str:
        """As you would write it."""
        tables = "" if self.tables is None else f", tables={list(self.tables)!r}"
        return f"Margins(rho={self.rho!r}, delta={self.delta!r}{tables})"

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "rho": self.rho,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "tables": None if self.tables is None else [list(names) for names in self.tables],
        }


@cache
def _round_epsilon(rho: float, delta: float) -> float | None:
    exact = epsilon_of(rho, delta)
    shorter = (float(f"{exact:.{digits}g}") for digits in range(1, _DIGITS + 1))
    return next((one for one in shorter if rho_of(one, delta) == rho), None)


def named_tables(tables: Iterable[str | Sequence[str]] | str) -> tuple[TableNames, ...]:
    """Margin tables as tuples of column names, each once; the order of names does not matter."""
    found: list[TableNames] = []
    for one in [tables] if isinstance(tables, str) else tables:
        names = (one,) if isinstance(one, str) else tuple(one)
        if not names or not all(isinstance(name, str) and name for name in names):
            raise PolicyError(f"A margin table is named by public columns; got {one!r}.")
        if len(set(names)) < len(names):
            raise PolicyError(f"A margin table names each column once; got {', '.join(names)}.")
        if set(names) in map(set, found):
            raise PolicyError(f"The margin table {' × '.join(names)} is named twice.")
        found.append(names)
    if not found:
        raise PolicyError(
            "There is no margin table to publish.", hint="Name one, or leave margins out."
        )
    return tuple(found)


def as_margins(margins: Margins | float | None) -> Margins | None:
    """Margins from whatever a policy was given: an object, an ε, or nothing."""
    if margins is None or isinstance(margins, Margins):
        return margins
    if isinstance(margins, bool) or not isinstance(margins, int | float):
        raise PolicyError(
            f"Margins are given by their ε, or as Margins(…); got {margins!r}.",
            hint="For example 1.0, or Margins(rho=0.015).",
        )
    return Margins(float(margins))

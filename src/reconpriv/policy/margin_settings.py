"""What a policy says about margins: noisy tables published beside the records.

A margin table counts the sensitive values by one public attribute, or by a combination of a few.
Two tables are neighbours if they differ in the sensitive value of one record. That moves two
counts of each margin table by one, so A tables move by √(2A), and discrete Gaussian noise of
variance σ² on every count is ρ-zero-concentrated differential privacy with ρ = A/σ².
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from reconpriv.errors import PolicyError
from reconpriv.messages.arguments import is_list
from reconpriv.messages.numbers import brief
from reconpriv.messages.shares import check_share, got
from reconpriv.theory.margins.concentrated import epsilon_of, rho_of

DELTA = 1e-9
# The odds of a guess grow by up to e^ε: 22,000 times at 10. Whoever wants less noise says so by ρ.
LARGEST_EPSILON = 10.0
LARGEST_RHO = 1e6
_FEW_DIGITS = 4
NEIGHBOURS = "tables that differ in the sensitive value of one record"

TableNames = tuple[str, ...]


_NONE = "No margins are published: every {}. Counts rest on the records alone."
NO_TABLE = _NONE.format("table of them has too many rows")
NO_ROW = _NONE.format("row of them would give a group away")


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
            given = value is not None or name == "δ"
            if given and (isinstance(value, bool) or not isinstance(value, int | float)):
                raise PolicyError(f"The {name} of margins must be a number; got {value!r}.")
        hint = "It should be far below one over the number of records; 1e-9 is the default."
        check_share(delta, "The δ of margins", hint=hint)
        if rho is not None:
            found = _check_budget("ρ", rho, LARGEST_RHO, "ρ = 0.015 is about ε = 1 at δ = 1e-9.")
        else:
            hint = "ε = 1 is usual, and smaller is stricter; ε = 100 would hide nothing."
            found = rho_of(_check_budget("ε", epsilon or 0.0, LARGEST_EPSILON, hint), delta)
        object.__setattr__(self, "rho", found)
        object.__setattr__(self, "delta", float(delta))
        object.__setattr__(self, "tables", None if tables is None else named_tables(tables))

    @classmethod
    def none(cls) -> Margins:
        """No margins: no table, so nothing is spent; false as a condition."""
        found = object.__new__(cls)
        for name, value in (("rho", 0.0), ("delta", DELTA), ("tables", ())):
            object.__setattr__(found, name, value)
        return found

    def __bool__(self) -> bool:
        """True if any table is to be published."""
        return self.tables != ()

    @property
    def epsilon(self) -> float:
        """The ε that ρ implies at this δ; 0 without margins."""
        return epsilon_of(self.rho, self.delta) if self else 0.0

    @property
    def round_epsilon(self) -> float | None:
        """An ε of few digits that stands for this ρ, if there is one: what was asked for."""
        if not self or self.epsilon > LARGEST_EPSILON:
            return None
        for digits in range(1, _FEW_DIGITS + 1):
            rounded = float(f"{self.epsilon:.{digits}g}")
            if rounded > 0 and rho_of(rounded, self.delta) == self.rho:
                return rounded
        return None

    @property
    def usual_delta(self) -> bool:
        """True if δ has its default value."""
        return self.delta == DELTA

    def variance(self, tables: int) -> float:
        """σ² of the noise on every count of so many tables."""
        return tables / self.rho if self else 0.0

    def __repr__(self) -> str:
        """As you would write it."""
        if not self:
            return "None"
        epsilon = self.round_epsilon
        level = f"rho={self.rho!r}" if epsilon is None else repr(epsilon)
        tables = "" if self.tables is None else f", tables={list(self.tables)!r}"
        delta = "" if self.usual_delta else f", delta={self.delta!r}"
        return f"Margins({level}{delta}{tables})"

    @property
    def words(self) -> str:
        """How private they are, and which tables they are."""
        if not self:
            return "none"
        tables = (
            "each public column"
            if self.tables is None
            else ", ".join(" × ".join(names) for names in self.tables)
        )
        return f"ε = {self.epsilon:.3g}, δ = {brief(self.delta)}, by {tables}"

    def as_dict(self) -> dict[str, Any]:
        """ρ, the (ε, δ) that it implies, and the tables; null stands for every public column."""
        return {
            "rho": self.rho,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "tables": None if self.tables is None else [list(names) for names in self.tables],
        }


NO_MARGINS = Margins.none()


def _check_budget(name: str, value: float, largest: float, hint: str) -> float:
    """Return the ε or ρ of margins, unless it hides next to nothing or is a percentage."""
    if not 0 < value <= largest:
        raise PolicyError(
            f"The {name} of margins must be above 0 and at most {largest:,.0f};"
            f" {got(value, one=True)}",
            hint=hint,
        )
    return float(value)


def named_tables(tables: Iterable[str | Sequence[str]] | str) -> tuple[TableNames, ...]:
    """Margin tables as tuples of column names, each once; the order of names does not matter."""
    found: list[TableNames] = []
    several: Iterable[Any] = tables if is_list(tables) and not isinstance(tables, str) else [tables]
    for one in several:
        names = tuple(one) if is_list(one) and not isinstance(one, str) else (one,)
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


def as_margins(margins: Margins | float | None) -> Margins:
    """Margins from whatever a policy was given: an object, an ε, or nothing."""
    match margins:
        case None:
            return NO_MARGINS
        case Margins():
            return margins
        case bool():
            pass
        case int() | float():
            return Margins(margins)
    raise PolicyError(
        f"Margins are given by their ε, or as Margins(…); got {margins!r}.",
        hint="For example 1.0, or Margins(rho=0.015).",
    )

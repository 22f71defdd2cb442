"""One result type for every attack: what was known, how often it worked, and a verdict."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from reconpriv.attacks.statistics import ConfidenceInterval, Rate
from reconpriv.messages.readable import Readable

Row = dict[str, Any]

KNEW = "every public value of a person, the release, its policy; not the key"
KNEW_MORE = f"{KNEW}; and, which nobody can know, the variance of every estimate"


@dataclass(frozen=True, repr=False)
class AttackResult(Readable):
    """What an attack showed. For the publisher only: ``worst`` has groups with their true figures.

    ``success`` is the attack's rate, ``baseline`` that of a guess from the whole table, and
    ``control`` that of the same attack where it must fail. All three are missing if a release
    was attacked without its table: ``table`` then holds the adversary's guesses, without the truth.
    """

    name: str
    knew: str
    verdict: str
    success: Rate | None = None
    baseline: Rate | None = None
    control: Rate | None = None
    figures: Row = field(default_factory=dict)
    table: tuple[Row, ...] = ()
    worst: tuple[Row, ...] = ()

    def __post_init__(self) -> None:
        """Turn the scalars of numpy into those of Python."""
        for name in ("figures", "table", "worst"):
            object.__setattr__(self, name, _python(getattr(self, name)))

    @property
    def rates(self) -> dict[str, Rate | None]:
        """The three rates by name."""
        return {"success": self.success, "baseline": self.baseline, "control": self.control}

    def as_dict(self) -> dict[str, Any]:
        """The result in JSON's types."""
        return {
            "attack": self.name,
            "knew": self.knew,
            "verdict": self.verdict,
            **{name: None if rate is None else rate.as_dict() for name, rate in self.rates.items()},
            "figures": _plain(self.figures),
            "table": _plain(self.table),
            "worst_groups_internal": _plain(self.worst),
        }


def as_rows(columns: Mapping[str, Iterable[Any]]) -> tuple[Row, ...]:
    """One row per entry of the columns."""
    lines = zip(*columns.values(), strict=True)
    return tuple(dict(zip(columns, line, strict=True)) for line in lines)


def _python(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _python(inner) for key, inner in value.items()}
    if isinstance(value, tuple):
        return tuple(_python(inner) for inner in value)
    return value.item() if isinstance(value, np.generic) else value


def _plain(value: Any) -> Any:
    """Numbers, texts, lists and dictionaries only; non-finite numbers become null."""
    if isinstance(value, ConfidenceInterval | Rate):
        return _plain(value.as_dict())
    if isinstance(value, dict):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    if isinstance(value, float):
        return value if abs(value) < float("inf") else None
    return value

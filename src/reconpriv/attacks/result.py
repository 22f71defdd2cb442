"""One result type for every attack: what was known, how often it worked, and a verdict."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from reconpriv.attacks.statistics import Interval, Rate
from reconpriv.messages.readable import Readable

Row = dict[str, Any]


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
    figures: dict[str, Any] = field(default_factory=dict)
    table: tuple[Row, ...] = ()
    worst: tuple[Row, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        rates = {"success": self.success, "baseline": self.baseline, "control": self.control}
        return {
            "attack": self.name,
            "knew": self.knew,
            "verdict": self.verdict,
            **{name: None if rate is None else rate.as_dict() for name, rate in rates.items()},
            "figures": _plain(self.figures),
            "table": _plain(list(self.table)),
            "worst_groups_internal": _plain(list(self.worst)),
        }


def _plain(value: Any) -> Any:
    """Numbers, texts, lists and dictionaries only; non-finite numbers become null."""
    if isinstance(value, Interval | Rate):
        return _plain(value.as_dict())
    if isinstance(value, dict):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    if isinstance(value, float):
        return value if abs(value) < float("inf") else None
    return value

"""The trials of every series, release by release, so that one that is withdrawn can be taken out.

The latest releases of a series are kept apart. Those before them are together: their trials can no
longer be told apart, and stay counted.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Self

from reconpriv.core.randomness import new_salt
from reconpriv.ledger.trials import Shown

KEPT_APART = 4


@dataclass(frozen=True)
class Parts:
    """Trials by series and part, oldest first; ``""`` is the part of releases kept together.

    ``last`` is the part that was added last.
    """

    shown: dict[tuple[str, str], Shown] = field(default_factory=dict)
    last: str = ""

    @property
    def series(self) -> tuple[str, ...]:
        """The series that have trials."""
        return tuple(dict.fromkeys(series for series, _ in self.shown))

    def of(self, series: str) -> Shown:
        """All trials of a series together."""
        found = Shown()
        for (name, _), one in self.shown.items():
            found = found.with_(one) if name == series else found
        return found

    def without(self, gone: set[tuple[str, str]]) -> Self:
        """These parts, but for some."""
        return type(self)({name: one for name, one in self.shown.items() if name not in gone})

    def with_(self, series: str, shown: Shown) -> Self:
        """The trials of one more release of a series, as a part of their own."""
        apart = [name for name in self.shown if name[0] == series and name[1]]
        old = apart[: max(len(apart) + 1 - KEPT_APART, 0)]
        found = dict(self.without(set(old)).shown)
        for name in old:
            found[series, ""] = found.get((series, ""), Shown()).with_(self.shown[name])
        part = new_salt()
        return type(self)(found | {(series, part): shown}, part)

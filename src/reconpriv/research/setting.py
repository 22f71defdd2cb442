"""The parameters of the study (Table 3), with its defaults, printed in bold there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from reconpriv.policy.policy import Policy

RETENTIONS = (0.1, 0.3, 0.5, 0.7, 0.9)
EPSILONS = (0.1, 0.3, 0.5, 0.7, 0.9)
DELTAS = (0.14, 0.22, 0.3, 0.38, 0.46)
SIZES = (100_000, 200_000, 300_000, 400_000, 500_000)

# The paper's two methods first, then the hardened sampling rules.
METHODS = {"UP": "none", "RP": "paper", "octave": "octave", "public": "public"}


@dataclass(frozen=True)
class StudyPoint:
    """One point of the study."""

    retention: float = 0.5
    epsilon: float = 0.5
    delta: float = 0.3
    records: int = 300_000

    def policy(self, sampling: str = "octave") -> Policy:
        """The policy at this point; groups that cannot be private keep one trial."""
        return Policy(
            retention=self.retention,
            tolerance=self.epsilon,
            doubt=self.delta,
            sampling=sampling,
            unattainable="one-trial",
        )


DEFAULT = StudyPoint()

SWEEPS: dict[str, tuple[float, ...]] = {
    "retention": RETENTIONS,
    "epsilon": EPSILONS,
    "delta": DELTAS,
    "records": SIZES,
}
SYMBOLS = {"retention": "p", "epsilon": "ε", "delta": "δ", "records": "|D|"}


def sweep(parameter: str) -> Iterator[tuple[float, StudyPoint]]:
    """The values of one parameter, all others at their defaults."""
    for value in SWEEPS[parameter]:
        exact = int(value) if parameter == "records" else value
        yield value, replace(DEFAULT, **{parameter: exact})  # type: ignore[arg-type]


@dataclass(frozen=True)
class StudySize:
    """How much of the study is run: all of it, or enough to see its shape in minutes."""

    keys: int
    queries: int
    trials: int

    @property
    def fast(self) -> bool:
        """True if this is the short version."""
        return self.keys < FULL.keys


FULL = StudySize(keys=10, queries=5_000, trials=10_000)
FAST = StudySize(keys=2, queries=1_000, trials=1_000)

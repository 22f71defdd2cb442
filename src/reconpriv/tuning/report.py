"""What a sweep found: every setting with its figures, which are efficient, which is recommended."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from reconpriv.policy import Policy

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True)
class Setting:
    """A policy and what it would do to the table.

    ``violating_groups`` and ``violating_records`` are an audit's: what perturbation alone would
    expose. ``error`` is the analyst's expected mean relative error on the workload, ``group_error``
    the adversary's expected relative error in the best told group. ``posterior`` is the largest
    belief in a value, held at most with ρ1 before, after seeing one published value.
    """

    retention: float
    epsilon: float
    delta: float
    bound: str
    sample_size: str
    violating_groups: int
    violating_records: int
    sampled_groups: int
    trials: int
    unattainable_groups: int
    error: float
    group_error: float
    posterior: float
    local_dp_epsilon: float
    efficient: bool = False

    @property
    def policy(self) -> Policy:
        """The policy, ready to publish with; a bound of one's own is not in it."""
        return Policy(
            self.retention,
            self.epsilon,
            self.delta,
            bound=self.bound,
            sample_size=self.sample_size,
        )

    @property
    def eligible(self) -> bool:
        """Whether it keeps its own promise and leaks no f: only such a setting is recommended."""
        if self.unattainable_groups or self.sample_size == "paper":
            return False
        return self.sample_size != "none" or not self.violating_groups

    @property
    def approximate(self) -> bool:
        """Whether ``error`` rests on an approximation of Algorithm 1's coins."""
        return self.sample_size == "paper"

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {**asdict(self), "eligible": self.eligible, "approximate": self.approximate}


@dataclass(frozen=True)
class Target:
    """What a publisher asks of a setting; None asks nothing."""

    max_error: float | None = None
    rho1: float | None = None
    rho2: float | None = None
    min_group_error: float | None = None

    @property
    def stated(self) -> bool:
        """Whether anything is asked."""
        return any(v is not None for v in (self.max_error, self.rho2, self.min_group_error))

    def as_dict(self) -> dict[str, float | None]:
        """Plain values, for JSON."""
        return asdict(self)


@dataclass(frozen=True)
class TuneReport:
    """A sweep over policies on one table: for the publisher, since it tells about raw counts.

    ``recommended`` reaches the target; where nothing does, ``nearest`` comes nearest to it.
    ``left_out`` counts settings past the range of the tail bounds.
    """

    sensitive: str
    public: tuple[str, ...]
    records: int
    groups: int
    domain_size: int
    queries: int
    rho1: float
    target: Target
    settings: tuple[Setting, ...]
    recommended: Setting | None
    nearest: Setting | None
    verdict: str
    left_out: int = 0
    warnings: tuple[str, ...] = ()

    @property
    def efficient(self) -> tuple[Setting, ...]:
        """The settings that no other beats, by expected error."""
        found = (setting for setting in self.settings if setting.efficient)
        return tuple(sorted(found, key=lambda setting: setting.error))

    def to_arrow(self) -> pa.Table:
        """A row a setting."""
        columns: dict[str, list[Any]] = {
            field.name: [getattr(setting, field.name) for setting in self.settings]
            for field in fields(Setting)
        }
        for name in ("eligible", "approximate"):
            columns[name] = [getattr(setting, name) for setting in self.settings]
        return pa.table(columns)

    def to_pandas(self) -> pandas.DataFrame:
        """A row a setting."""
        return self.to_arrow().to_pandas()

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "verdict": self.verdict,
            "target": self.target.as_dict(),
            "recommended": None if self.recommended is None else self.recommended.as_dict(),
            "nearest": None if self.nearest is None else self.nearest.as_dict(),
            "sensitive": self.sensitive,
            "public": list(self.public),
            "records": self.records,
            "groups": self.groups,
            "domain_size": self.domain_size,
            "queries": self.queries,
            "rho1": self.rho1,
            "left_out": self.left_out,
            "settings": [setting.as_dict() for setting in self.settings],
            "warnings": list(self.warnings),
        }

    def __str__(self) -> str:
        """The report as text."""
        from reconpriv.render_tune import tune_text  # noqa: PLC0415 - rich only where it is shown

        return tune_text(self)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        from reconpriv.render_tune import tune_html  # noqa: PLC0415

        return tune_html(self)

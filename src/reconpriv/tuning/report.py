"""What a sweep found: every setting with its figures, the efficient ones, the recommended one."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from reconpriv.auditing.column_risk import ColumnRisk
from reconpriv.columns.schema import Value, json_value
from reconpriv.messages.readable import Readable
from reconpriv.policy.margin_settings import NO_MARGINS, Margins
from reconpriv.policy.policy import Policy
from reconpriv.policy.sampling_rules import SAMPLING_RULES, SamplingRule
from reconpriv.tuning.risk import CLOSE

if TYPE_CHECKING:
    import pandas


def _plain_names() -> list[str]:
    """The parameters and figures of a setting."""
    return [field.name for field in fields(Setting) if field.name != "policy"]


@dataclass(frozen=True)
class Setting:
    """A policy and what it would do to the table.

    ``policy`` is ready to publish with; its parameters are also there by name, as in ``to_arrow``.
    ``violating_groups`` and ``violating_records`` are those of an audit: what perturbation alone
    would expose. ``error`` is the analyst's expected mean relative error on the workload,
    ``group_error`` the adversary's expected relative error in the most exposed group. ``posterior``
    is the largest belief in a value after seeing one published value, if it was at most ρ1 before.
    ``margins`` are published beside the records, if any: ``group_error`` counts the trials that
    they are worth, ``margin_trials`` in the most exposed group, and ``margin_rows_left_out`` would
    give a group away.

    ``reconstructed`` is the share of people whose group's most exposed value an adversary estimates
    closely from the group's own trials, by the exact tails; ``worst_group`` is the largest
    probability of such an estimate in one group, ``worst_share`` how much of that group holds the
    value. ``pooled`` is the share of people if the adversary also uses neighbouring groups; None
    where it was not measured. ``judged_tolerance`` is what counts as close: the same for every
    setting, whatever its tolerance, so that settings can be compared. In a sweep, what counts as
    exposed is up to the current policy (``judged_above``).
    """

    policy: Policy
    retention: float
    tolerance: float
    doubt: float
    bound: str
    sampling: str
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
    margins: Margins = NO_MARGINS
    margin_trials: float = 0.0
    margin_rows_left_out: int = 0
    exposed_above: float = 0.0
    harmless: tuple[Value, ...] = ()
    reconstructed: float = 0.0
    worst_group: float = 0.0
    worst_share: float = 0.0
    judged_tolerance: float = CLOSE
    judged_above: float = 0.0
    pooled: float | None = None

    @property
    def spent(self) -> float:
        """The ε that margins spend, at their own δ; 0 without margins."""
        return self.margins.round_epsilon or self.margins.epsilon

    @property
    def margins_epsilon(self) -> float | None:
        """The same; None without margins."""
        return self.spent or None

    @property
    def sampling_rule(self) -> SamplingRule:
        """The sampling rule as an object."""
        return SAMPLING_RULES.find(self.sampling)

    @property
    def eligible(self) -> bool:
        """True if it keeps its own promise and leaks no f; only such settings are recommended."""
        if self.unattainable_groups or self.sampling_rule.leaks:
            return False
        # Without sampling nothing limits what margins tell about a group.
        return self.sampling_rule.samples or not (self.violating_groups or self.spent)

    @property
    def exposes(self) -> bool:
        """True if any group has a value that the policy calls exposed."""
        return math.isfinite(self.group_error)

    @property
    def approximate(self) -> bool:
        """True if ``error`` rests on an approximation of Algorithm 1's coins."""
        return self.sampling_rule.coin_flips

    def as_dict(self) -> dict[str, Any]:
        """Parameters and figures by name; a figure that is not a finite number is null."""
        return {
            **{name: getattr(self, name) for name in _plain_names()},
            # Without an exposed value there is nothing to estimate; JSON has no infinity.
            "group_error": self.group_error if self.exposes else None,
            "margins": self.margins_epsilon,
            "harmless": [json_value(value) for value in self.harmless],
            "eligible": self.eligible,
            "approximate": self.approximate,
        }


@dataclass(frozen=True)
class Target:
    """What a publisher asks of a setting; None means no requirement.

    Without ``rho2``, a recommendation protects single records at least as well as the current
    policy does, unless ``weaker_records`` allows less.
    """

    max_error: float | None = None
    rho1: float | None = None
    rho2: float | None = None
    min_group_error: float | None = None
    weaker_records: bool = False
    max_reconstructed: float | None = None
    max_pooled: float | None = None

    @property
    def stated(self) -> bool:
        """True if there is any requirement."""
        stated = (
            self.max_error,
            self.rho2,
            self.min_group_error,
            self.max_reconstructed,
            self.max_pooled,
        )
        return any(value is not None for value in stated)

    def as_dict(self) -> dict[str, float | None]:
        """The limits by name; null where there is none."""
        return asdict(self)


@dataclass(frozen=True)
class BlockingGoal:
    """A part of a target without which a setting would reach the others.

    ``name`` is its field in :class:`Target`, ``best`` its best value with the others kept, and
    ``setting`` has that value.
    """

    name: str
    best: float
    setting: Setting

    def as_dict(self) -> dict[str, Any]:
        """The goal and its best value."""
        return {"name": self.name, "best": self.best}


class NextStep(StrEnum):
    """What would lead to a recommendation; each interface words it in its own way."""

    STATE_A_TARGET = "state-a-target"
    WEAKER_RECORDS = "weaker-records"
    LARGER_RHO2 = "larger-rho2"


# The fields of a report that are numbers and texts.
_PLAIN = ("records", "groups", "domain_size", "queries", "rho1", "left_out", "no_margins")


@dataclass(frozen=True, repr=False)
class TuneReport(Readable):
    """A sweep over policies on one table: for the publisher only, since it reveals raw counts.

    ``current`` are the figures of the policy in use, ``misses`` the parts of the target that it
    misses (``max_error``, ``rho2``, ``min_group_error``, …), and ``standing`` says both in words.
    ``recommended`` reaches the target with a posterior of at most ``posterior_allowed`` (None:
    any). If no setting does, ``nearest`` comes closest within that limit, ``needed`` is the
    setting with the smallest p that reaches the rest of the target beyond it, and ``remedy`` says
    what to ask for instead; ``obstacles`` are the parts of the target that are in the way, each on
    its own. ``with_margins`` is the current policy with margins, where they help.
    ``left_out`` counts settings that a publication would refuse, ``no_margins`` says why no margins
    can be published, and ``identifiers`` are nearly unique public columns, which a publication
    refuses.
    """

    sensitive: str
    public: tuple[str, ...]
    records: int
    groups: int
    domain_size: int
    queries: int
    rho1: float
    target: Target
    current: Setting
    misses: tuple[str, ...]
    standing: str
    posterior_allowed: float | None
    settings: tuple[Setting, ...]
    recommended: Setting | None
    nearest: Setting | None
    needed: Setting | None
    verdict: str
    obstacles: tuple[BlockingGoal, ...] = ()
    remedy: NextStep | None = None
    with_margins: Setting | None = None
    left_out: int = 0
    no_margins: str = ""
    warnings: tuple[str, ...] = ()
    identifiers: tuple[ColumnRisk, ...] = ()

    @property
    def current_meets_target(self) -> bool | None:
        """Whether the current policy keeps its promise and meets the target, if there is one."""
        return self.current.eligible and not self.misses if self.target.stated else None

    @property
    def efficient(self) -> tuple[Setting, ...]:
        """The settings that no other beats, by expected error."""
        found = (setting for setting in self.settings if setting.efficient)
        return tuple(sorted(found, key=lambda setting: setting.error))

    def noted(self, notes: Iterable[str]) -> TuneReport:
        """The report with more to say about the current policy."""
        return replace(self, standing=" ".join((self.standing, *notes)))

    def to_arrow(self) -> pa.Table:
        """One row per setting."""
        columns: dict[str, Any] = {
            name: [getattr(setting, name) for setting in self.settings] for name in _plain_names()
        }
        columns["margins"] = pa.array([s.margins_epsilon for s in self.settings], pa.float64())
        columns["pooled"] = pa.array([s.pooled for s in self.settings], pa.float64())
        # CSV has no lists.
        columns["harmless"] = [", ".join(map(str, s.harmless)) for s in self.settings]
        for name in ("eligible", "approximate"):
            columns[name] = [getattr(setting, name) for setting in self.settings]
        return pa.table(columns)

    def to_pandas(self) -> pandas.DataFrame:
        """One row per setting."""
        return self.to_arrow().to_pandas()

    def as_dict(self) -> dict[str, Any]:
        """The report as ``tune --json`` prints it."""
        names = ("recommended", "nearest", "needed", "with_margins")
        chosen = {name: getattr(self, name) for name in names}
        return {
            "current": {
                **self.current.as_dict(),
                "meets_target": self.current_meets_target,
                "misses": list(self.misses),
            },
            "verdict": self.verdict,
            "target": self.target.as_dict(),
            "posterior_allowed": self.posterior_allowed,
            **{name: None if one is None else one.as_dict() for name, one in chosen.items()},
            "obstacles": [one.as_dict() for one in self.obstacles],
            "remedy": self.remedy,
            "sensitive": self.sensitive,
            "public": list(self.public),
            **{name: getattr(self, name) for name in _PLAIN},
            "settings": [setting.as_dict() for setting in self.settings],
            "warnings": list(self.warnings),
        }

"""A policy: what a publication promises, as one frozen object."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

from reconpriv.columns.schema import Schema, Value, json_value, sections
from reconpriv.errors import PolicyError
from reconpriv.messages.arguments import is_list
from reconpriv.messages.phrases import listed
from reconpriv.messages.shares import check_relative_error, check_share
from reconpriv.policy.exposure import check_exposed_above, harmless_flags
from reconpriv.policy.margin_settings import Margins, as_margins
from reconpriv.policy.old_names import by_keyword
from reconpriv.policy.protection import Protection, as_protection
from reconpriv.policy.sampling_rules import PAPER, SAMPLING_RULES, SamplingRule
from reconpriv.theory.perturbation import check_retention
from reconpriv.theory.tails.bounds import BOUNDS, Bound, TailBound, resolve_bound
from reconpriv.theory.tails.privacy import Parameters

UNATTAINABLE = ("refuse", "one-trial")
_EXPOSURE = ("exposed_above", "harmless")
_OPTIONAL = ("margins", "protect", *_EXPOSURE)

__all__ = ["SAMPLING_RULES", "UNATTAINABLE", "Parameters", "Policy"]


@by_keyword
@dataclass(frozen=True, repr=False, kw_only=True)
class Policy:
    """What a publication promises, and how: every field is given by keyword.

    ``retention`` (the paper's p) is the probability that a value is kept. ``tolerance`` (ε) is how
    close to the truth an estimate of a group must come to count as a reconstruction: 0.5 is ±50 %.
    ``doubt`` (δ) is the smallest probability with which an adversary's estimate must miss by more
    than the tolerance, in each direction; ``bound`` says how that is shown.
    ``sampling`` says how the number of trials in a large group may depend on its largest
    frequency f: ``paper`` (Algorithm 1, which leaks f), ``octave`` (f rounded up to a power of
    1/2), ``public`` (not at all) or ``none`` (no sampling: plain uniform perturbation).
    ``sampling_rule`` is the same as an object.
    ``unattainable`` says what happens to a group in which not even one trial is private.
    ``margins`` adds noisy tables of aggregates to the release: an ε, or :class:`Margins`.
    ``protect`` extends the promise to whoever pools over public columns: how each of them is
    coarsened, such as {"age": 10, "race": "*"}.

    ``exposed_above`` and ``harmless`` say which values are protected: those that more than this
    share of a group hold, except values that nobody minds. ``harmless_flags`` says of each value
    of a table's domain whether it is one of them; :meth:`on` fills it in.
    """

    retention: float
    tolerance: float
    doubt: float
    bound: str | Bound | TailBound = "chernoff"
    sampling: str = "octave"
    unattainable: str = "refuse"
    margins: Margins | float | None = None
    protect: Protection | Mapping[str, Any] | None = None
    exposed_above: float = 0.0
    harmless: tuple[Value, ...] = ()
    harmless_flags: tuple[bool, ...] = field(default=(), repr=False)

    def __post_init__(self) -> None:
        """Check every field, and that the bound and the sampling rule go together."""
        for name in ("retention", "tolerance", "doubt"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise PolicyError(f"The {name} of a policy must be a number; got {value!r}.")
        check_retention(self.retention)
        doubted = "A doubt of 0.05 is usual; larger is stricter."
        check_share(self.doubt, "The doubt of a policy", hint=doubted)
        larger = "A tolerance of 0.5 (±50 %) is usual; larger is stricter."
        check_relative_error(self.tolerance, "The tolerance of a policy", hint=larger)
        object.__setattr__(self, "bound", resolve_bound(self.bound))
        SAMPLING_RULES.find(self.sampling)
        if not isinstance(self.unattainable, str) or self.unattainable not in UNATTAINABLE:
            raise PolicyError(
                f"There is no treatment of unattainable groups called {self.unattainable!r}.",
                hint=f"Choose one of: {', '.join(UNATTAINABLE)}.",
            )
        object.__setattr__(self, "margins", as_margins(self.margins) or None)
        object.__setattr__(self, "protect", as_protection(self.protect) or None)
        self._check_protection()
        object.__setattr__(self, "exposed_above", check_exposed_above(self.exposed_above))
        if isinstance(self.harmless, str) or not is_list(self.harmless):
            raise PolicyError(
                f"Harmless values are given as a list; got {self.harmless!r}.",
                hint=f"Write harmless=[{self.harmless!r}].",
            )
        object.__setattr__(self, "harmless", tuple(self.harmless))
        if not self.harmless:
            object.__setattr__(self, "harmless_flags", ())

    @classmethod
    def as_read(cls, schema: Schema, *, retention: float, tolerance: float, **others: Any) -> Self:
        """The policy of a release whose schema this is; others are fields by name."""
        # Earlier versions published with a smaller p and a larger tolerance than are accepted
        # today.
        if not 0 < retention < 1 or not tolerance > 0:
            raise PolicyError("A release has 0 < p < 1 and a tolerance above 0.")
        found = cls(retention=0.5, tolerance=0.5, **others).on(schema)
        object.__setattr__(found, "retention", retention)
        object.__setattr__(found, "tolerance", tolerance)
        return found

    def _check_protection(self) -> None:
        """Refuse what protection groups do not go together with."""
        if self.sampling_rule.coin_flips and self.wanted_protection.columns:
            others = [repr(one.name) for one in SAMPLING_RULES.values() if not one.coin_flips]
            raise PolicyError(
                "Protection beyond the micro group needs exact totals, which the coin flips of"
                f" sampling rule {self.sampling!r} do not keep.",
                hint=f"Choose sampling rule {listed(others, 'or')}.",
            )

    @property
    def wanted_protection(self) -> Protection:
        """The protection as an object; that of no column if there is none."""
        return as_protection(self.protect)

    def unprotected(self) -> Self:
        """The policy for protection groups: they are micro groups of the coarse table."""
        return replace(self, protect=None)

    @property
    def tests_everything(self) -> bool:
        """True if every value that occurs in a group is tested, as in the paper."""
        return self.exposed_above == 0.0 and not self.harmless

    @property
    def exposure(self) -> tuple[object, ...]:
        """What decides which values of a table are exposed; equal for policies that agree on it."""
        return self.exposed_above, self.harmless, self.harmless_flags

    @property
    def harmless_values(self) -> int:
        """How many values of the table's sensitive domain are harmless."""
        return sum(self.harmless_flags)

    def harmless_in(self, schema: Schema) -> tuple[Value, ...]:
        """The harmless values as the table has them, in the order of its domain."""
        flags = harmless_flags(self.harmless, schema)
        return tuple(v for v, flag in zip(schema.domain, flags, strict=True) if flag)

    def on(self, schema: Schema) -> Self:
        """The policy fitted to a table, whose values must include the harmless ones."""
        if not self.harmless:
            return self
        return replace(self, harmless_flags=harmless_flags(self.harmless, schema))

    @property
    def wanted_margins(self) -> Margins:
        """The margins as an object; those of no table if there are none."""
        return as_margins(self.margins)

    @property
    def tail_bound(self) -> Bound:
        """The bound as an object, however it was given."""
        return resolve_bound(self.bound)

    @property
    def sampling_rule(self) -> SamplingRule:
        """The sampling rule as an object."""
        return SAMPLING_RULES.find(self.sampling)

    def parameters(self, domain_size: int) -> Parameters:
        """The policy as the formulas of the theory take it."""
        return {
            "retention": self.retention,
            "domain_size": domain_size,
            "epsilon": self.tolerance,
            "delta": self.doubt,
            "bound": self.tail_bound,
        }

    def check_sampling(self) -> None:
        """Refuse a sampling rule that cannot keep its promise with this bound."""
        if self.can_sample:
            return
        others = [repr(one.name) for one in SAMPLING_RULES.values() if not one.rounds_up]
        raise PolicyError(
            f"Sampling rule {self.sampling!r} rounds the largest frequency up, which is safe"
            " only for a bound whose size falls as the frequency grows;"
            f" {self.tail_bound.name!r} is not known to be one.",
            hint=f"Choose sampling rule {listed(others, 'or')}, or a bound such as 'chernoff'.",
        )

    def publishable(self) -> Policy:
        """The policy itself, or Algorithm 1's if the bound allows no rounding in f.

        An audit may use any bound; this is the policy of a publication with it.
        """
        return self if self.can_sample else replace(self, sampling=PAPER.name)

    @property
    def can_sample(self) -> bool:
        """True if the bound and the sampling rule go together."""
        by_class = self.tail_bound.sizes_classes
        return not self.sampling_rule.rounds_up or by_class

    def __repr__(self) -> str:
        """The policy as you would write it; a bound, or a user's function, by its name."""
        bound = self.tail_bound
        name = repr(bound.name) if BOUNDS.get(bound.name) is bound else bound.name
        return (
            f"Policy(retention={self.retention!r}, tolerance={self.tolerance!r},"
            f" doubt={self.doubt!r}, bound={name}, sampling={self.sampling!r},"
            f" unattainable={self.unattainable!r}"
            f"{''.join(f', {name}={value!r}' for name, value in self._given(_OPTIONAL).items())})"
        )

    def as_dict(self) -> dict[str, Any]:
        """The fields by name, bound and values as texts and numbers; empty parts are left out."""
        return {
            "retention": self.retention,
            "tolerance": self.tolerance,
            "doubt": self.doubt,
            "bound": self.tail_bound.name,
            "sampling": self.sampling,
            "unattainable": self.unattainable,
            **sections(margins=self.wanted_margins, protect=self.wanted_protection),
            **self.exposure_as_dict(),
        }

    def exposure_as_dict(self) -> dict[str, Any]:
        """The fields that say what counts as exposed; empty if everything does."""
        plain = self._given(_EXPOSURE)
        if self.harmless:
            plain["harmless"] = [json_value(value) for value in self.harmless]
        return plain

    def _given(self, names: Sequence[str]) -> dict[str, Any]:
        """Those of some fields that are not at their defaults, which are empty."""
        return {name: getattr(self, name) for name in names if getattr(self, name)}

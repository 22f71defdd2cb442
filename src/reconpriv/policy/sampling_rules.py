"""Sampling rules: how many trials a group may rest on, one object each, in one registry.

A sampling rule puts a group into a class by its largest frequency f, and limits the trials by
class; the trials of a large group then reveal at most its class. Algorithm 1 (`paper`) has no
classes: its limit is s_g at the exact f, which it leaks. A new one is an entry of
:data:`SAMPLING_RULES`; nothing else needs to know about it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from reconpriv.policy.exposure import exposed_borders, exposed_cells, largest_exposed
from reconpriv.registry import Registry
from reconpriv.theory.arrays import Flags, Floats, Ints
from reconpriv.theory.tails.exact_classes import ExposedClass, exact_class_sizes
from reconpriv.theory.tails.exact_margins import rounded_up
from reconpriv.theory.tails.privacy import largest_private_size, private_group_sizes, private_groups

if TYPE_CHECKING:
    from reconpriv.cells.cell_batch import CellBatch
    from reconpriv.policy.policy import Policy


@dataclass(frozen=True)
class ClassedGroups:
    """What a limit may depend on besides the policy, one entry per group: |g| and its class.

    A class is named by a frequency: the one that its groups are limited by. 0 is the class of
    groups in which no value is exposed. ``above`` holds the frequency that each class starts after.
    ``told`` are the trials that margins are worth about each group.
    """

    sizes: Ints
    classes: Floats
    above: Floats
    domain_size: int
    told: Floats


# From the largest exposed frequency of each group (0 if nothing is exposed) to its class.
ClassFunction = Callable[[Floats, "Policy"], Floats]
# The most trials that each group may have.
Limit = Callable[[ClassedGroups, "Policy"], Floats]


def private_sizes(batch: CellBatch, policy: Policy, domain_size: int) -> Floats:
    """s_g of every group under a policy, over every exposed value: the smallest of them."""
    return private_group_sizes(
        batch.count,
        batch.starts,
        exposed=exposed_cells(batch, policy),
        **policy.parameters(domain_size),
    )


def private_as_they_are(batch: CellBatch, policy: Policy, domain_size: int) -> Flags:
    """Which groups are private if every record is a trial (Corollary 2)."""
    return private_groups(
        batch.count,
        batch.starts,
        exposed=exposed_cells(batch, policy),
        **policy.parameters(domain_size),
    )


def private_size(frequency: Floats, policy: Policy, domain_size: int) -> Floats:
    """s_g by largest exposed frequency under a policy (Theorems 4 and 5); no limit for 0."""
    exposed = frequency > 0.0
    found = largest_private_size(
        np.where(exposed, frequency, 1.0), **policy.parameters(domain_size)
    )
    return np.where(exposed, found, np.inf)


def one_class(frequency: Floats, _policy: Policy) -> Floats:
    """All groups alike, whatever is exposed in them."""
    return np.ones_like(frequency)


def octaves(frequency: Floats, policy: Policy) -> Floats:
    """f rounded up to 1, ½, ¼, …, or to 2φ, 4φ, … if only values above φ count as exposed."""
    borders = exposed_borders(policy.exposed_above)
    place = np.searchsorted(borders, frequency)
    return np.where(frequency > 0.0, borders[np.minimum(place, borders.size - 1)], 0.0)


def start_of_octave(classes: Floats, policy: Policy) -> Floats:
    """The frequency that each class starts after."""
    borders = exposed_borders(policy.exposed_above)
    return np.where(classes > 0.0, borders[np.searchsorted(borders, classes) - 1], 0.0)


def start_of_one_class(classes: Floats, policy: Policy) -> Floats:
    """Any exposed frequency is in it."""
    return np.full_like(classes, policy.exposed_above)


def round_up_to_octave(frequency: Floats) -> Floats:
    """f rounded up to 1, 1/2, 1/4, …; exact, since powers of two are exact in binary. 0 stays 0."""
    mantissa, exponent = np.frexp(frequency)
    rounded = np.ldexp(1.0, exponent - (mantissa == 0.5))
    return np.where(frequency > 0.0, rounded, 0.0)


def whole_size(groups: ClassedGroups, policy: Policy) -> Floats:
    """s_g of the class; whole, since it is published and must reveal no more."""
    if policy.tail_bound.exact:
        return _exact_size(groups, policy)
    limits = np.floor(private_size(groups.classes, policy, groups.domain_size))
    exceeded = groups.sizes + groups.told > limits
    return np.where(exceeded, np.floor(limits - groups.told), limits)


def _exact_size(groups: ClassedGroups, policy: Policy) -> Floats:
    """The most trials at which the exact tails of every group of its class and size pass."""
    limits = np.full(groups.sizes.shape, np.inf)
    told = rounded_up(groups.told)
    for upto in np.unique(groups.classes[groups.classes > 0.0]):
        inside = np.flatnonzero(groups.classes == upto)
        group_class = ExposedClass(
            float(groups.above[inside[0]]),
            float(upto),
            policy.exposed_above,
            groups.domain_size - policy.harmless_values,
            groups.domain_size,
            policy.retention,
            policy.tolerance,
            policy.doubt,
            fillers=policy.harmless_values > 0,
        )
        limits[inside] = exact_class_sizes(groups.sizes[inside], group_class, told[inside])
    return limits


def no_limit(groups: ClassedGroups, _policy: Policy) -> Floats:
    """Every record is a trial."""
    return np.full(groups.sizes.shape, np.inf)


@dataclass(frozen=True)
class SamplingRule:
    """How many trials a group may rest on, and what follows from it.

    ``explanation`` and ``tells`` are sentences for the publisher, the second about the adversary;
    ``for_analysts`` is the text in a release. ``method`` is what the manifest calls it. ``warning``
    is for a publisher who chooses it, ``class_name`` is what its classes are called.

    ``classes`` is None if the exact frequencies decide (Algorithm 1): ``limit`` is then unused.
    ``starts`` gives the frequency after which a class starts.
    ``samples`` is False if every record is a trial. ``trials_public``: the release says how many
    trials each group has. ``coin_flips``: Algorithm 1's coin flips make the sample and the copies;
    otherwise the sample is systematic and totals are exact. ``leaks``: the exact f can be read off.
    ``rounds_up``: it is safe only with a bound whose worst case is the largest frequency.
    """

    name: str
    label: str
    explanation: str
    tells: str
    for_analysts: str
    method: str
    classes: ClassFunction | None = one_class
    starts: ClassFunction = start_of_one_class
    limit: Limit = whole_size
    samples: bool = True
    trials_public: bool = True
    coin_flips: bool = False
    leaks: bool = False
    rounds_up: bool = True
    warning: str = ""
    class_name: str = ""

    @property
    def recommended(self) -> bool:
        """True if it protects groups and leaks nothing; such rules are offered first."""
        return self.samples and not self.leaks

    @property
    def trials_known(self) -> bool:
        """True if an interval may rely on the number of trials; otherwise it is estimated."""
        return self.trials_public or not self.samples

    @property
    def tells_excess(self) -> bool:
        """True if its trials hide neither classes nor what margins are worth by class."""
        return not self.counts_margins or bool(self.class_name)

    @property
    def counts_margins(self) -> bool:
        """True if its limit counts what margins tell: not if it has none, or is the paper's."""
        return self.samples and self.classes is not None

    def limits(self, batch: CellBatch, policy: Policy, domain_size: int) -> Floats:
        """The most trials that each group may have: a larger group is sampled."""
        if self.classes is None:
            return private_sizes(batch, policy, domain_size)
        return self.limits_at(batch.sizes, largest_exposed(batch, policy), policy, domain_size)

    def limits_at(self, sizes: Ints, frequency: Floats, policy: Policy, domain_size: int) -> Floats:
        """The same for groups known only by their size and largest frequency that may be exposed.

        What is not above φ counts as not exposed.
        """
        frequency = np.where(frequency > policy.exposed_above, frequency, 0.0)
        if self.classes is None:
            return private_size(frequency, policy, domain_size)
        classes = self.classes(frequency, policy)
        return self.limits_of_classes(sizes, classes, policy, domain_size, np.zeros(sizes.shape))

    def limits_of_classes(
        self, sizes: Ints, classes: Floats, policy: Policy, domain_size: int, told: Floats
    ) -> Floats:
        """The same for groups known by size and class, next to ``told`` trials from margins."""
        groups = ClassedGroups(sizes, classes, self.starts(classes, policy), domain_size, told)
        return self.limit(groups, policy)


_FEWER = "Large groups rest on fewer independent trials than they have records"

PAPER = SamplingRule(
    name="paper",
    label="Paper (leaks)",
    explanation="As many trials as the exact largest exposed frequency allows (Algorithm 1).",
    tells="The largest exposed frequency of a large group, which can be read off its counts.",
    for_analysts=f"{_FEWER}, by the paper's Algorithm 1. How many is not published, but can be"
    " read off the counts of large groups, and so can their largest exposed frequency.",
    method="sampling, perturbing, scaling (Algorithm 1)",
    classes=None,
    trials_public=False,
    coin_flips=True,
    leaks=True,
    rounds_up=False,
    warning="Sampling rule 'paper' reproduces Algorithm 1, which leaks: the trials of a large"
    " group, and so its largest exposed frequency, can be read off. Use 'octave' or 'public' for"
    " release.",
)
OCTAVE = SamplingRule(
    name="octave",
    label="Octave (default)",
    explanation="As many trials as the largest exposed frequency, rounded up to a power of ½ (or to"
    " φ doubled once or more), allows.",
    tells="Between which of these the largest exposed frequency of a large group lies; next to"
    " margins also how much more often than expected it holds a value: up to 2, 4, 8, … times.",
    for_analysts=f"{_FEWER}; the groups file says how many.",
    method="sampling, perturbing, scaling with trial counts by octave of the largest frequency",
    classes=octaves,
    starts=start_of_octave,
    class_name="octave",
)
PUBLIC = SamplingRule(
    name="public",
    label="Public",
    explanation="As many trials as are safe whatever the largest exposed frequency is.",
    tells="Nothing about the largest exposed frequency.",
    for_analysts=f"{_FEWER}, as many as their size alone allows; the groups file says how many.",
    method="sampling, perturbing, scaling with trial counts that depend on group size alone",
)
NONE = SamplingRule(
    name="none",
    label="None: perturb only",
    explanation="Every record is a trial: plain uniform perturbation.",
    tells="The distribution of a large group: nothing is promised about groups.",
    for_analysts="Every record was perturbed on its own; no group was sampled, and no promise is"
    " made about groups.",
    method="uniform perturbation",
    limit=no_limit,
    samples=False,
    trials_public=False,
    rounds_up=False,
    warning="Sampling rule 'none' only perturbs: it promises nothing about groups.",
)

SAMPLING_RULES = Registry("sampling rule", (PAPER, OCTAVE, PUBLIC, NONE))


def offered() -> tuple[SamplingRule, ...]:
    """All of them in the order of a menu: recommended ones first."""
    return tuple(sorted(SAMPLING_RULES.values(), key=lambda one: not one.recommended))


def recommended() -> tuple[str, ...]:
    """The names of those that a publisher may choose without giving anything up."""
    return tuple(one.name for one in offered() if one.recommended)


def sample_limits(batch: CellBatch, policy: Policy, domain_size: int) -> Floats:
    """s_g of every group: a group larger than this is sampled. A real number in `paper`."""
    policy.check_sampling()
    return policy.sampling_rule.limits(batch, policy, domain_size)


def own_trials(sizes: Ints, limits: Floats) -> Floats:
    """How many records of each group are drawn: all, or as many as its limit allows."""
    return np.maximum(np.minimum(limits, sizes), 1.0)

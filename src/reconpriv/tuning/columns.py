"""What the audit, and the analysts' error, would be without each public column."""

from __future__ import annotations

from dataclasses import dataclass, replace

from reconpriv.auditing import judge
from reconpriv.column_risk import Figures, WithoutColumn
from reconpriv.errors import InputError
from reconpriv.kernel import sample_limits
from reconpriv.policy import Policy
from reconpriv.queries.cube import Cube
from reconpriv.queries.workload import Workload, make_workload
from reconpriv.tuning.coarser import some_groups, wider_bins, with_bins, without_column
from reconpriv.tuning.tuner import Tuner, joined

# Fewer than tune asks: an audit should not take much longer for them.
QUERIES = 500
# Larger tables are not made coarser unless asked for: it takes memory and time.
CELLS_IN_MEMORY = 1 << 20


@dataclass(frozen=True)
class ColumnEffects:
    """The expected error of the workload as the table is, and each column's effect, by name."""

    error: float | None
    without: dict[str, WithoutColumn]


@dataclass(frozen=True)
class WiderBins:
    """A column of whole numbers in bins of a width, and the figures of the table then."""

    column: str
    width: int
    figures: Figures


def column_effects(cube: Cube, policy: Policy, *, k: int, queries: int = QUERIES) -> ColumnEffects:
    """Drop one public column after the other from the cells and judge what is left."""
    policy = _for_sampling(policy)
    workload = _workload(cube, queries)
    without = {}
    for i, column in enumerate(cube.schema.public):
        rest = without_column(cube, i)
        found = figures_of(rest, policy, k=k)
        asked = None if workload is None else _not_using(workload, column.name)
        if asked is None:
            without[column.name] = WithoutColumn(**vars(found))
        else:
            error, now = (_error(c, asked, policy) for c in (rest, cube))
            without[column.name] = WithoutColumn(**vars(found), error=error, error_now=now)
    error = None if workload is None else _error(cube, workload, policy)
    return ColumnEffects(error, without)


def distinct_in(cube: Cube) -> dict[str, int]:
    """How many values each public column has, a missing one not counted."""
    columns = zip(cube.schema.public, cube.values, strict=True)
    return {column.name: len(values) - values.null_count for column, values in columns}


def bin_effects(cube: Cube, policy: Policy, *, k: int) -> tuple[WiderBins, ...]:
    """Every column of whole numbers in wider bins."""
    return tuple(
        WiderBins(column.name, width, figures_of(with_bins(cube, i, width), policy, k=k))
        for i, column in enumerate(cube.schema.public)
        for width in wider_bins(cube, i)
    )


def figures_of(cube: Cube, policy: Policy, *, k: int) -> Figures:
    """What an audit would count on these cells."""
    _, private = judge(joined(cube), policy, cube.schema.domain_size)
    sizes = cube.records
    return Figures(
        groups=cube.groups,
        violating_groups=int((~private).sum()),
        violating_records=int(sizes[~private].sum()),
        unique=int((sizes == 1).sum()),
        below_k=int(sizes[sizes < k].sum()),
    )


def _for_sampling(policy: Policy) -> Policy:
    """An audit may use a bound with which only the paper's sample size can be published."""
    rounded = policy.sample_size in ("octave", "public")
    if rounded and not policy.tail_bound.worst_at_largest_frequency:
        return replace(policy, sample_size="paper")
    return policy


def _workload(cube: Cube, queries: int) -> Workload | None:
    """The standard workload; None where the table has no such queries."""
    try:
        return make_workload(cube, queries=queries)
    except InputError:
        return None


def _not_using(workload: Workload, column: str) -> Workload | None:
    kept = [i for i, query in enumerate(workload.queries) if column not in query]
    if not kept:
        return None
    return replace(
        workload,
        queries=tuple(workload.queries[i] for i in kept),
        answers=workload.answers[kept],
        selected=workload.selected[kept],
    )


def _error(cube: Cube, workload: Workload, policy: Policy) -> float:
    """The expected error of the workload, as tune has it.

    Only sampled groups add to what the answers themselves say, so the others are left out.
    """
    sampled = cube.records > sample_limits(joined(cube), policy, cube.schema.domain_size)
    sampled[0] = True  # one group at least
    return Tuner.on(some_groups(cube, sampled), workload).setting(policy).error

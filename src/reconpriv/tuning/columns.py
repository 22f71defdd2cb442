"""What the audit and the analysts' error would be without a public column, or with wider bins."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from reconpriv.ask.workload import Workload, make_workload
from reconpriv.auditing.column_risk import AuditFigures, ExpectedErrors, WithoutColumn
from reconpriv.cells.cube import Cube, combinations
from reconpriv.columns.schema import Kind
from reconpriv.errors import InputError
from reconpriv.policy.policy import Policy
from reconpriv.policy.protection import NO_COARSENING, Coarsening
from reconpriv.policy.sampling_rules import private_as_they_are, sample_limits
from reconpriv.protect.coarsening import pooled_cube
from reconpriv.theory.arrays import Flags, Floats
from reconpriv.tuning.query_variances import Questions
from reconpriv.tuning.tuner import Tuner

# As many as tune asks, so both show the same error.
QUERIES = 5_000
# Larger tables are made coarser only on request: it takes memory and time.
CELLS_IN_MEMORY = 1 << 20


@dataclass(frozen=True)
class ColumnEffects:
    """The expected errors of the workload on the whole table, and each column's effect, by name."""

    errors: ExpectedErrors | None
    without: dict[str, WithoutColumn]


def column_effects(
    cube: Cube,
    policy: Policy,
    *,
    k: int,
    coarsening: Coarsening = NO_COARSENING,
    progress: Callable[[str, float], None] = lambda *_: None,
) -> ColumnEffects:
    """Drop each public column in turn from the cells and judge what is left.

    Margins by a column that is left out would be other margins, so columns are judged without any.
    ``coarsening`` makes protection groups, with each column and without it.
    """
    asked_for = policy.unprotected().publishable()
    policy = replace(asked_for, margins=None)
    workload, groups = standard_workload(cube), pooled_cube(cube, coarsening)
    now = None
    if workload is not None:
        now = _Errors.of(groups, workload, policy)
    without = {}
    for i, column in enumerate(cube.schema.public):
        progress("comparing columns", i / len(cube.schema.public))
        rest = pooled_cube(without_column(cube, i), coarsening.without(column.name))
        error = error_now = None
        kept = workload and workload.without(i)
        if now is not None and kept is not None:
            error = _Errors.of(rest, kept, policy).mean()
            error_now = now.mean(without=i)
        found = figures_of(rest.whole, policy, k=k)
        without[column.name] = WithoutColumn(**vars(found), error=error, error_now=error_now)
    errors = None
    if workload is not None and now is not None:
        plain = replace(policy, sampling="none")
        published = alone = now.mean()
        if asked_for.margins:
            published = Tuner.on(groups, workload).setting(asked_for, risk=False).error
        unsampled = _Errors.of(cube, workload, plain).mean()
        errors = ExpectedErrors(published, alone, unsampled)
    return ColumnEffects(errors, without)


def distinct_in(cube: Cube) -> dict[str, int]:
    """How many values each public column has, not counting a missing one."""
    columns = zip(cube.schema.public, cube.values, strict=True)
    return {column.name: len(values) - values.null_count for column, values in columns}


def figures_of(cube: Cube, policy: Policy, *, k: int) -> AuditFigures:
    """What an audit would count on these cells."""
    private = private_as_they_are(cube.as_batch(), policy, cube.schema.domain_size)
    sizes = cube.records
    return AuditFigures(
        groups=cube.groups,
        violating_groups=int((~private).sum()),
        violating_records=int(sizes[~private].sum()),
        unique=int((sizes == 1).sum()),
        below_k=int(sizes[sizes < k].sum()),
    )


def expected_error(cube: Cube, policy: Policy) -> float | None:
    """The expected mean relative error of the standard workload; None if there is none."""
    workload = standard_workload(cube)
    return None if workload is None else _Errors.of(cube, workload, policy).mean()


def standard_workload(cube: Cube) -> Workload | None:
    """The standard workload; None if the table has no such queries."""
    try:
        return make_workload(cube, queries=QUERIES)
    except InputError:
        return None


@dataclass(frozen=True)
class _Errors:
    """The expected relative error of every question, and the columns it uses."""

    errors: Floats
    questions: Questions

    @classmethod
    def of(cls, cube: Cube, workload: Workload, policy: Policy) -> _Errors:
        """The same errors as in tune.

        Only sampled groups add to the variance of the answers, so the others are left out unless
        questions may cut them.
        """
        if cube.whole is cube:
            limits = sample_limits(cube.as_batch(), policy, cube.schema.domain_size)
            sampled = cube.records > limits
            sampled[0] = True  # at least one group
            cube = some_groups(cube, sampled)
        tuner = Tuner.on(cube, workload)
        return cls(tuner.question_errors(policy), tuner.queries.questions)

    def mean(self, *, without: int | None = None) -> float:
        """The mean over the workload, or over the questions that do not use a column."""
        weight = self.questions.weight
        if without is not None:
            weight = weight * [without not in used for used in self.questions.attributes]
        return float(np.dot(weight, self.errors) / weight.sum())


def without_column(cube: Cube, attribute: int) -> Cube:
    """The cells that are left when a public column is dropped."""
    kept = [i for i in range(len(cube.codes)) if i != attribute]
    schema = replace(cube.schema, public=tuple(cube.schema.public[i] for i in kept))
    smaller = replace(
        cube,
        schema=schema,
        codes=tuple(cube.codes[i] for i in kept),
        values=tuple(cube.values[i] for i in kept),
    )
    return merged(smaller)


def with_bins(cube: Cube, attribute: int, width: int) -> Cube:
    """The cells that are left when a whole number x becomes ⌊x / width⌋ · width."""
    numbers = [None if v is None else v // width * width for v in _numbers(cube, attribute)]
    bins = list(dict.fromkeys(numbers))  # sorted, because the values are
    place = {value: i for i, value in enumerate(bins)}
    codes = np.array([place[n] for n in numbers], dtype=np.int32)[cube.codes[attribute]]
    values = pa.array(bins, cube.values[attribute].type)
    changed = replace(
        cube,
        codes=(*cube.codes[:attribute], codes, *cube.codes[attribute + 1 :]),
        values=(*cube.values[:attribute], values, *cube.values[attribute + 1 :]),
    )
    return merged(changed)


def wider_bins(cube: Cube, attribute: int) -> tuple[int, ...]:
    """Bin widths to try for a column of whole numbers: 2, 5 and 10 times its current step."""
    if cube.schema.public[attribute].kind is not Kind.INTEGER:
        return ()
    numbers = [number for number in _numbers(cube, attribute) if number is not None]
    if len(numbers) < 3:
        return ()
    step = int(np.gcd.reduce(np.diff(np.array(numbers, dtype=object))))
    reach = numbers[-1] - numbers[0]
    return tuple(step * times for times in (2, 5, 10) if step * times <= reach)


def _numbers(cube: Cube, attribute: int) -> list[int | None]:
    return list(cube.values[attribute].to_pylist())


def some_groups(cube: Cube, chosen: Flags) -> Cube:
    """The chosen groups with their cells."""
    cells = chosen[cube.group]
    number = np.cumsum(chosen) - 1
    return replace(
        cube,
        codes=tuple(codes[chosen] for codes in cube.codes),
        records=cube.records[chosen],
        trials=cube.trials[chosen],
        group=number[cube.group[cells]],
        value=cube.value[cells],
        count=cube.count[cells],
    )


def merged(cube: Cube) -> Cube:
    """Join the groups that agree on all public codes, in canonical order."""
    every = np.ones(cube.groups, dtype=bool)
    keys, group_of = combinations(cube, range(len(cube.codes)), every)
    m = cube.schema.domain_size
    cells, place = np.unique(group_of[cube.group] * m + cube.value, return_inverse=True)
    records = np.bincount(group_of, weights=cube.records).astype(np.int64)
    return replace(
        cube,
        codes=tuple(keys.astype(np.int32)),
        records=records,
        trials=records.astype(np.float64),
        group=cells // m,
        value=cells % m,
        count=np.bincount(place, weights=cube.count).astype(np.int64),
    )

"""Pearson's test of independence of the sensitive attribute from public ones, corrected."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from reconpriv.core.cube import Cube, Sums
from reconpriv.errors import InputError
from reconpriv.learning.from_release import public_selection
from reconpriv.messages.readable import Readable
from reconpriv.queries.answer import Answerer, Selected, key_positions
from reconpriv.queries.estimate import approximate
from reconpriv.queries.grouping import check_distinct
from reconpriv.queries.sql import unknown_column
from reconpriv.schema import Value
from reconpriv.theory.arrays import Floats, Ints
from reconpriv.theory.independence import PublishedRows, corrected, pearson, rounding_variance
from reconpriv.theory.reconstruction import reconstruct_frequency

if TYPE_CHECKING:
    from reconpriv.release.release import Release


# Covariances are held for all rows at once: rows x values x values.
_MOST_ENTRIES = 1 << 26
_FEW = 5.0  # Cochran's rule: at most a fifth of the cells may expect fewer
_SHARE = 0.2

SPARSE = (
    "many cells rest on fewer than five effective trials, so the p-value is rough, mostly too large"
)


@dataclass(frozen=True, repr=False)
class IndependenceTest(Readable):
    """A test of independence in the population that the records of the table came from.

    ``naive_…`` is Pearson's test with published records taken for the original ones.
    ``design_effect`` is how many published records are worth one that was only perturbed.
    """

    columns: tuple[str, ...]
    sensitive: str
    condition: str
    statistic: float
    degrees_of_freedom: float
    p_value: float
    naive_statistic: float
    naive_degrees_of_freedom: float
    naive_p_value: float
    design_effect: float
    records: int
    groups: int
    trials: float
    remarks: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {**asdict(self), "columns": list(self.columns), "remarks": list(self.remarks)}

    @property
    def verdict(self) -> str:
        """One sentence, at the usual level of 5 %."""
        names = " and ".join(self.columns)
        found = "depends on" if self.p_value < 0.05 else "shows no dependence on"
        return f"{self.sensitive} {found} {names} ({shown_p(self.p_value)})."


def shown_p(p_value: float) -> str:
    """A p-value for display."""
    return "p < 0.0001" if p_value < 1e-4 else f"p = {p_value:.4f}"


def chi_square(
    release: Release, columns: str | Sequence[str], where: str | None = None, **equal: Value
) -> IndependenceTest:
    """Test whether the sensitive attribute is independent of public ones (jointly, if several).

    ``where`` and ``equal`` restrict the records by public attributes, as in ``release.count``.
    """
    names = [columns] if isinstance(columns, str) else list(columns)
    answerer = release.answerer
    schema = answerer.cells.schema
    known = [column.name for column in schema.public]
    for name in names:
        if name == schema.sensitive.name:
            raise InputError(f"Column {name!r} is the sensitive one; name public columns.")
        if name not in known:
            raise unknown_column(name, known)
    check_distinct(names)
    if not names:
        raise InputError("Name at least one public column.")
    return independence_of(answerer, names, public_selection(answerer, where, **equal))


def independence_of(answerer: Answerer, names: list[str], selected: Selected) -> IndependenceTest:
    """Both tests on the cells of a release."""
    keys, sums = answerer.sums_by_value(selected, names)
    _check_rows(names, keys, sums.observed)
    design = answerer.design
    rows = PublishedRows(
        sums.observed,
        sums.scaled_observed,
        sums.noise + _rounding(answerer, names, selected, keys, sums),
    )
    test, effects = corrected(rows, design.retention)
    naive = pearson(sums.observed)
    remarks = []
    if not design.sampling.trials_known:
        remarks.append(approximate(design.sampling, "correction"))
    expected = np.outer(sums.records / effects, rows.pooled)
    if (expected < _FEW).mean() > _SHARE:
        remarks.append(SPARSE)
    return IndependenceTest(
        columns=tuple(names),
        sensitive=answerer.cells.schema.sensitive.name,
        condition=selected.text,
        statistic=test.statistic,
        degrees_of_freedom=test.degrees_of_freedom,
        p_value=test.p_value,
        naive_statistic=naive.statistic,
        naive_degrees_of_freedom=naive.degrees_of_freedom,
        naive_p_value=naive.p_value,
        design_effect=float(sums.records.sum() / (sums.records / effects).sum()),
        records=int(sums.records.sum()),
        groups=int(sums.groups.sum()),
        trials=float(sums.trials.sum()),
        remarks=tuple(remarks),
    )


def _check_rows(names: list[str], keys: Ints, observed: Floats) -> None:
    rows, domain_size = keys.shape[1], observed.shape[1]
    if rows < 2:
        what = "no record satisfies the condition" if rows == 0 else "there is only one value"
        raise InputError(
            f"Nothing can be compared over {', '.join(names)}: {what}.",
            hint="Choose a column with two values or more.",
        )
    if (observed.sum(axis=0) > 0).sum() < 2:
        raise InputError(
            f"Nothing can be compared over {', '.join(names)}: only one sensitive value was"
            " published.",
            hint="Choose a condition that more records satisfy.",
        )
    if rows * domain_size**2 > _MOST_ENTRIES:
        raise InputError(
            f"{', '.join(names)} have {rows:,} combinations, too many to be tested at once.",
            hint="Choose fewer columns, or a coarser one.",
        )


def _rounding(
    answerer: Answerer, names: list[str], selected: Selected, keys: Ints, sums: Sums
) -> Floats:
    """What the rounded quotas of sampled groups add to the variance of each published count."""
    design = answerer.design
    shares = reconstruct_frequency(
        sums.observed.sum(axis=0), sums.observed.sum(),
        retention=design.retention, domain_size=design.domain_size,
    )  # fmt: skip
    public = [column.name for column in answerer.cells.schema.public]
    attributes = tuple(public.index(name) for name in names)
    total = np.zeros_like(sums.observed)
    for part in answerer.cells.parts():
        inside = np.flatnonzero(answerer.mask(selected, part) & part.sampled)
        row = _rows_of(part, attributes, keys)[inside]
        trials, scale = part.trials[inside], part.scale[inside]
        for value, share in enumerate(shares.tolist()):
            variance = scale**2 * rounding_variance(trials, scale, share)
            total[:, value] += np.bincount(row, weights=variance, minlength=keys.shape[1])
    return total * design.retention**2


def _rows_of(part: Cube, attributes: tuple[int, ...], keys: Ints) -> Ints:
    """The row of the cross table to which each group belongs."""
    return key_positions(part, attributes, [tuple(key) for key in keys.T.tolist()])

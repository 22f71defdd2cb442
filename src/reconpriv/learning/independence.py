"""Pearson's test of independence of the sensitive attribute from public ones, corrected."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from reconpriv.core.cube import Cube, Sums
from reconpriv.errors import InputError
from reconpriv.learning.from_release import public_selection
from reconpriv.messages.arguments import checked
from reconpriv.messages.readable import Readable
from reconpriv.queries.answer import Answerer, Selected, key_positions
from reconpriv.queries.estimate import approximate, mle_counts
from reconpriv.queries.grouping import check_distinct
from reconpriv.queries.sql import unknown_column
from reconpriv.schema import Value
from reconpriv.theory.arrays import Floats, Ints
from reconpriv.theory.independence import (
    CombinedRows,
    PublishedRows,
    corrected,
    corrected_with_margins,
    pearson,
    rounding_variance,
    trial_covariance,
)
from reconpriv.theory.reconstruction import reconstruct_frequency

if TYPE_CHECKING:
    from reconpriv.release.release import Release


# Covariances are held for all rows at once: rows x values x values.
_MOST_ENTRIES = 1 << 26
_MOST_PAIRS = 1 << 24  # with margins: (rows x values)²
_FEW = 5.0  # Cochran's rule: at most a fifth of the cells may expect fewer
_SHARE = 0.2

SPARSE = (
    "many cells rest on fewer than five effective trials, so the p-value is rough, mostly too large"
)
COARSE = (
    "{columns} is tested in the coarse values of protection groups: the release cannot tell whether"
    " {sensitive} depends on it within them"
)
TOO_MANY = "margins were left aside: there are too many combinations to be tested with them"


@dataclass(frozen=True, repr=False)
class IndependenceTest(Readable):
    """A test of independence in the population that the records of the table came from.

    ``naive_…`` is Pearson's test with published records taken for the original ones.
    ``design_effect`` is how many published records are worth one that was only perturbed; with
    margins it may be below 1. ``margins`` says whether the test used margins. ``coarse`` are the
    columns that were tested in the coarse values of protection groups.
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
    margins: bool = False
    coarse: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        listed = {name: list(getattr(self, name)) for name in ("columns", "remarks", "coarse")}
        return asdict(self) | listed

    @property
    def verdict(self) -> str:
        """One sentence, at the usual level of 5 %."""
        names = " and ".join(
            f"the coarse values of {name}" if name in self.coarse else name for name in self.columns
        )
        found = "depends on" if self.p_value < 0.05 else "shows no dependence on"
        return f"{self.sensitive} {found} {names} ({shown_p(self.p_value)})."


def shown_p(p_value: float) -> str:
    """A p-value for display."""
    return "p < 0.0001" if p_value < 1e-4 else f"p = {p_value:.4f}"


@checked
def chi_square(
    release: Release,
    columns: str | Sequence[str],
    where: str | None = None,
    *,
    margins: bool = True,
    **equal: Value,
) -> IndependenceTest:
    """Test whether the sensitive attribute is independent of public ones (jointly, if several).

    ``where`` and ``equal`` restrict the records by public attributes, as in ``release.count``.
    Margins are used if the release has any; ``margins=False`` tests the records alone.
    """
    names = [columns] if isinstance(columns, str) else list(columns)
    # Rows that share a protection group share its trials; its coarse values do not.
    answerer = release.group_answerer
    schema = answerer.cells.schema
    known = [column.name for column in schema.public]
    for name in names:
        if name not in known and name in release.column_names()[:-1]:
            raise InputError(
                f"The protection groups of this release ignore column {name!r}, so nothing about"
                " it can be tested.",
                hint="Ask for a release with coarser values of it, or without protection groups.",
            )
        if name == schema.sensitive.name:
            raise InputError(f"Column {name!r} is the sensitive one; name public columns.")
        if name not in known:
            raise unknown_column(name, known)
    check_distinct(names)
    if not names:
        raise InputError("Name at least one public column.")
    selected = public_selection(answerer, where, **equal)
    found = independence_of(answerer, names, selected, margins=margins)
    coarse = tuple(name for name in names if name in release.description.pooled)
    if not coarse:
        return found
    remark = COARSE.format(columns=" and ".join(coarse), sensitive=schema.sensitive.name)
    return replace(found, coarse=coarse, remarks=(remark, *found.remarks))


def independence_of(
    answerer: Answerer, names: list[str], selected: Selected, *, margins: bool = True
) -> IndependenceTest:
    """Both tests on the cells of a release."""
    keys, sums = answerer.sums_by_value(selected, names, margins=False)
    _check_rows(names, keys, sums.observed)
    design = answerer.design
    rows = PublishedRows(
        sums.observed,
        sums.scaled_observed,
        sums.noise + _rounding(answerer, names, selected, keys, sums),
    )
    remarks = []
    used = margins and answerer.margins is not None
    if used and sums.observed.size**2 > _MOST_PAIRS:
        used = False
        remarks.append(TOO_MANY)
    if used:
        together = combined_rows(answerer, names, selected, keys, sums, rows.extra_variance)
        test, effects = corrected_with_margins(together, design.retention)
    else:
        test, effects = corrected(rows, design.retention)
    naive = pearson(sums.observed)
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
        margins=used,
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
    attributes = _attributes(answerer, names)
    total = np.zeros_like(sums.observed)
    for part in answerer.cells.parts():
        inside = np.flatnonzero(answerer.mask(selected, part) & part.sampled)
        row = _rows_of(part, attributes, keys)[inside]
        trials, scale = part.trials[inside], part.scale[inside]
        for value, share in enumerate(shares.tolist()):
            variance = scale**2 * rounding_variance(trials, scale, share)
            total[:, value] += np.bincount(row, weights=variance, minlength=keys.shape[1])
    return total * design.retention**2


def combined_rows(
    answerer: Answerer,
    names: list[str],
    selected: Selected,
    keys: Ints,
    sums: Sums,
    extra_variance: Floats,
) -> CombinedRows:
    """The rows of the cross table from records and margins, with what their covariances need.

    Weights are those of queries.margins, but the same for all values: a row must add up.
    """
    margins, design = answerer.margins, answerer.design
    assert margins is not None
    records, observed = _shared_with_margins(answerer, names, selected, keys)
    one_trial, noise = margins.alike(np.eye(design.domain_size))
    weights = margins.spectrum.weights(records.T, np.full(records.shape[1], one_trial), noise)

    def between_rows(own: Floats, shared: Floats, of_margins: Floats) -> Floats:
        """Σ_g u_ag u_bg x_g, from the sums of x over rows, rows and margins, and margins."""
        both = weights @ shared
        return np.diag(own) - both - both.T + weights @ of_margins @ weights.T

    alone = trial_covariance(sums.scaled_observed, sums.scaled_records, design.retention)
    trials = np.trace(alone, axis1=1, axis2=2)
    return CombinedRows(
        counts=mle_counts(sums, 1, design) + weights @ margins.distance,
        records=sums.records,
        scaled_observed=np.stack(
            [
                between_rows(sums.scaled_observed[:, value], observed[value], of_margins)
                for value, of_margins in enumerate(margins.observed)
            ],
            axis=-1,
        ),
        scaled_records=between_rows(sums.scaled_records, records, margins.products),
        noise=margins.variance * weights @ weights.T,
        swollen=1.0 + extra_variance.sum(axis=1) / np.maximum(trials, np.finfo(float).tiny),
        exact_sizes=not design.sampling.coins,
    )


def _shared_with_margins(
    answerer: Answerer, names: list[str], selected: Selected, keys: Ints
) -> tuple[Floats, Floats]:
    """Σ w N and, for each value, Σ w O over the groups of a margin row and a tested row."""
    margins, m = answerer.margins, answerer.design.domain_size
    assert margins is not None
    attributes = _attributes(answerer, names)
    shape = (m, margins.rows, keys.shape[1])
    records, observed = np.zeros(shape[1:]).reshape(-1), np.zeros(shape).reshape(-1)
    for part in answerer.cells.parts():
        tested = np.where(answerer.mask(selected, part), _rows_of(part, attributes, keys), -1)
        for rows in margins.rows_of(part).T:
            slot = np.where((tested >= 0) & (rows >= 0), rows * shape[2] + tested, -1)
            inside = np.flatnonzero(slot >= 0)
            weight = (part.scale * part.records)[inside]
            records += np.bincount(slot[inside], weights=weight, minlength=records.size)
            cell = np.flatnonzero(slot[part.group] >= 0)
            group = part.group[cell]
            place = part.value[cell] * records.size + slot[group]
            weight = part.scale[group] * part.count[cell]
            observed += np.bincount(place, weights=weight, minlength=observed.size)
    return records.reshape(shape[1:]), observed.reshape(shape)


def _attributes(answerer: Answerer, names: list[str]) -> tuple[int, ...]:
    public = [column.name for column in answerer.cells.schema.public]
    return tuple(public.index(name) for name in names)


def _rows_of(part: Cube, attributes: tuple[int, ...], keys: Ints) -> Ints:
    """The row of the cross table to which each group belongs."""
    return key_positions(part, attributes, [tuple(key) for key in keys.T.tolist()])

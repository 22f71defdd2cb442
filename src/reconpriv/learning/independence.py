"""Pearson's test of independence of the sensitive attribute from public ones, corrected."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from reconpriv.answers.answerer import Answerer
from reconpriv.ask.comparisons import check_distinct, unknown_column
from reconpriv.ask.selections import Selected
from reconpriv.cells.sums import Sums
from reconpriv.columns.schema import Value
from reconpriv.errors import InputError
from reconpriv.estimate.counts import approximate
from reconpriv.estimate.public_rows import PublicRows
from reconpriv.estimate.set_counts import SetCounts
from reconpriv.learning.from_release import public_selection
from reconpriv.messages.readable import Readable
from reconpriv.theory.arrays import Floats
from reconpriv.theory.estimation.independence import (
    CombinedRows,
    PublishedRows,
    corrected,
    corrected_with_margins,
    pearson,
    rounding_variance,
    trial_covariance,
)

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
        """Its fields as JSON has them."""
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


def chi_square(
    release: Release,
    columns: str | Sequence[str],
    where: str | None,
    equal: Mapping[str, Value],
    *,
    margins: bool,
) -> IndependenceTest:
    """Test whether the sensitive attribute is independent of public ones (jointly, if several)."""
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
    table = answerer.rows_of(selected, names)
    sums = answerer.sums(table, None, margins=False)
    _check_rows(names, table.number, sums.observed)
    design = answerer.design
    rows = PublishedRows(
        sums.observed, sums.scaled_observed, sums.noise + _rounding(answerer, table, sums)
    )
    remarks = []
    used = answerer.told(margins=margins).rows > 0
    if used and sums.observed.size**2 > _MOST_PAIRS:
        used = False
        remarks.append(TOO_MANY)
    if used:
        together = combined_rows(answerer, table, sums, rows.extra_variance)
        test, effects = corrected_with_margins(together, design.retention)
    else:
        test, effects = corrected(rows, design.retention)
    naive = pearson(sums.observed)
    if not design.sampling_rule.trials_known:
        remarks.append(approximate(design.sampling_rule, "correction"))
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


def _check_rows(names: list[str], rows: int, observed: Floats) -> None:
    domain_size = observed.shape[1]
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


def _rounding(answerer: Answerer, table: PublicRows, sums: Sums) -> Floats:
    """What the rounded quotas of sampled groups add to the variance of each published count."""
    design = answerer.design
    shares = design.reconstructed(sums.observed.sum(axis=0) / sums.observed.sum(), 1.0)
    total = np.zeros_like(sums.observed)
    for part in answerer.cells.parts():
        row = table.of(part)
        inside = np.flatnonzero((row >= 0) & part.sampled)
        row = row[inside]
        trials, scale = part.trials[inside], part.scale[inside]
        for value, share in enumerate(shares.tolist()):
            variance = scale**2 * rounding_variance(trials, scale, share)
            total[:, value] += np.bincount(row, weights=variance, minlength=table.number)
    return total * design.retention**2


def combined_rows(
    answerer: Answerer, table: PublicRows, sums: Sums, extra_variance: Floats
) -> CombinedRows:
    """The rows of the cross table from records and margins, with what their covariances need.

    Weights are those of estimate.linear, but the same for all values: a row must add up.
    """
    margins, design = answerer.measurements, answerer.design
    records, observed = _shared_with_margins(answerer, table)
    one_trial, noise = margins.alike(np.eye(design.domain_size))
    weights = margins.spectrum.weights(records, np.full(table.number, one_trial), noise)

    def between_rows(own: Floats, shared: Floats, of_margins: Floats) -> Floats:
        """Σ_g u_ag u_bg x_g, from the sums of x over rows, rows and margins, and margins."""
        both = weights @ shared.T
        return np.diag(own) - both - both.T + weights @ of_margins @ weights.T

    alone = trial_covariance(sums.scaled_observed, sums.scaled_records, design.retention)
    trials = np.trace(alone, axis1=1, axis2=2)
    return CombinedRows(
        counts=SetCounts(sums, design).number + weights @ margins.distance,
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
        exact_sizes=not design.sampling_rule.coin_flips,
    )


def _shared_with_margins(answerer: Answerer, table: PublicRows) -> tuple[Floats, Floats]:
    """Σ w N and, for each value, Σ w O over the groups of a tested row and a margin row."""
    margins, rows, m = answerer.measurements, table.number, answerer.design.domain_size
    records = np.zeros((rows, margins.rows))
    observed = np.zeros((m * rows, margins.rows))
    for part in answerer.cells.parts():
        row, incidence = table.of(part), margins.incidence(part)
        records += incidence.sums_by(part.scale * part.records, row, rows)
        group = part.group
        line = np.where(row[group] >= 0, part.value * rows + row[group], -1)
        observed += incidence.sums_by(part.scale[group] * part.count, line, m * rows, group)
    return records, observed.reshape(m, rows, margins.rows)

"""What the publisher's report shows of the groups, from one pass over them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from reconpriv.auditing.audit_report import AuditReport
from reconpriv.auditing.verdicts import judge
from reconpriv.cells.cell_batch import CellBatch, python_values
from reconpriv.columns.schema import Schema, Value
from reconpriv.messages.numbers import label
from reconpriv.messages.phrases import group_words
from reconpriv.policy.policy import Policy
from reconpriv.policy.sampling_rules import own_trials, sample_limits
from reconpriv.protect.margins.planned import UNCOUNTED, TrialLimits
from reconpriv.reports import charts
from reconpriv.reports.page import Section
from reconpriv.show.charts.palette import EXPOSED
from reconpriv.show.document import Grid, Paragraph, Plot, Profiles, figure, number
from reconpriv.show.results.audit import worst_grid
from reconpriv.theory.arrays import Flags, Floats, Ints

_POINTS = 1_500  # that a chart can show
_VALUES = 6  # of each public column
_WORST = 20  # groups that the report lists
_LEAST_TAIL = 1e-6


@dataclass(frozen=True)
class Share:
    """A public value with its groups and records, and those that violate."""

    value: Value
    groups: int
    records: int
    violating_groups: int
    violating_records: int


class GroupTally:
    """Judges every group that passes, and counts by shape, by public value and by size."""

    def __init__(self, schema: Schema, policy: Policy, counted: TrialLimits = UNCOUNTED) -> None:
        """Start with nothing counted; ``counted`` are the limits of trials with margins."""
        self._schema, self._policy, self._counted = schema, policy, counted
        self._shapes: Counter[tuple[int, float]] = Counter()
        self._endless = 0
        self._shares: list[dict[Value, Ints]] = [{} for _ in schema.public]
        self._classes = np.zeros((64, 2), dtype=np.int64)
        self.sampled_groups = self.sampled_records = self.trials = 0

    def add(self, batch: CellBatch) -> None:
        """Take the next batch of whole groups."""
        limits, private = judge(batch, self._policy, self._schema.domain_size)
        self._add_shapes(batch.sizes, limits)
        self._add_shares(batch, private)
        limits = sample_limits(batch, self._policy, self._schema.domain_size)
        self._add_trials(batch, self._counted.lowered(batch, limits))

    def _add_shapes(self, sizes: Ints, limits: Floats) -> None:
        drawn = np.isfinite(limits) & (limits > 0)
        self._endless += int((~drawn).sum())
        pairs, counts = np.unique(
            np.stack([sizes[drawn], limits[drawn]]), axis=1, return_counts=True
        )
        for size, limit, count in zip(*pairs.tolist(), counts.tolist(), strict=True):
            self._shapes[int(size), limit] += count

    def _add_shares(self, batch: CellBatch, private: Flags) -> None:
        sizes = batch.sizes
        weights = (np.ones_like(sizes), sizes, ~private, np.where(private, 0, sizes))
        columns = zip(self._schema.public, batch.public, self._shares, strict=True)
        for column, encoded, found in columns:
            known = python_values(encoded.values, column.name)
            counts = [np.bincount(encoded.codes, weights=w, minlength=len(known)) for w in weights]
            for value, row in zip(known, np.stack(counts, axis=1).astype(np.int64), strict=True):
                if row[0]:
                    found[value] = found.get(value, 0) + row

    def _add_trials(self, batch: CellBatch, limits: Floats) -> None:
        sizes = batch.sizes
        sampled = sizes > limits
        trials = own_trials(sizes, limits)
        octave = np.frexp(sizes.astype(np.float64))[1] - 1
        for column, weights in enumerate((sizes, trials)):
            counts = np.bincount(octave, weights=weights, minlength=64)
            self._classes[:, column] += np.rint(counts).astype(np.int64)
        self.sampled_groups += int(sampled.sum())
        self.sampled_records += int(sizes[sampled].sum())
        self.trials += round(float(trials.sum()))

    @property
    def shapes(self) -> Sequence[tuple[int, float, int, bool]]:
        """Shapes of groups (|g|, s_g, groups, private), evenly thinned, violating ones first."""
        order = sorted(self._shapes.items(), key=lambda item: item[0][1] / item[0][0])
        step = max(len(order) / _POINTS, 1.0)
        kept = [order[int(i * step)] for i in range(min(len(order), _POINTS))]
        return [(size, limit, count, size <= limit) for (size, limit), count in kept]

    @property
    def shapes_left_out(self) -> int:
        """How many shapes are not drawn, and groups without a limit."""
        return max(len(self._shapes) - _POINTS, 0) + self._endless

    @property
    def shares(self) -> dict[str, tuple[Share, ...]]:
        """The values of each public column with the most records in violating groups."""
        return {
            column.name: tuple(
                Share(value, *row.tolist())
                for value, row in sorted(
                    found.items(), key=lambda item: (-item[1][3], -item[1][1], str(item[0]))
                )[:_VALUES]
            )
            for column, found in zip(self._schema.public, self._shares, strict=True)
        }

    @property
    def classes(self) -> list[tuple[str, int, int]]:
        """Sizes of groups, an octave each, with their records and trials."""
        return [
            (f"{1 << i:,} to {(2 << i) - 1:,}" if i else "1", records, trials)
            for i, (records, trials) in enumerate(self._classes.tolist())
            if records
        ]


def group_sections(audit: AuditReport, groups: GroupTally) -> list[Section]:
    """Sizes against their limit, where the violating groups are, their tails, and their trials."""
    return [_sizes(groups), _attributes(audit, groups), _tails(audit), _trials(audit, groups)]


def _sizes(groups: GroupTally) -> Section:
    title, shapes = "Group sizes against s_g", groups.shapes
    text = Paragraph(
        "Each point is one or more groups of a size |g| and a largest private size s_g. Below"
        " the dashed line a group has more records than may be perturbed independently: an"
        " adversary's estimate would be too accurate."
    )
    if not shapes:
        return Section("sizes", title, [text, Paragraph("No group has a limit.")])
    rows = [
        {
            "size": size,
            "limit": limit,
            "groups": count,
            "series": charts.PRIVATE if private else charts.NOT_PRIVATE,
        }
        for size, limit, count, private in shapes
    ]
    private = sum(count for *_, count, ok in shapes if ok)
    exposed = sum(count for *_, count, ok in shapes if not ok)
    caption = (
        f"{private:,} private and {exposed:,} violating groups; a larger mark stands for more."
        " Click the legend to single one out."
    )
    if groups.shapes_left_out:
        caption += f" {groups.shapes_left_out:,} points are not drawn."
    spec = charts.sizes_chart(rows, "Group sizes against the largest private size")
    return Section("sizes", title, [text, Plot("chart-sizes", spec, caption)])


def _attributes(audit: AuditReport, groups: GroupTally) -> Section:
    total = audit.violating_records
    text = Paragraph(
        "The public values with the most records in violating groups, and their share of all such"
        " records."
    )
    title = "Violating groups by attribute"
    if not total:
        return Section("attributes", title, [Paragraph("There are none.")])
    columns = [
        (
            name,
            [
                (label(one.value), one.violating_records / total,
                 f"{one.violating_groups:,} violating groups")
                for one in shares if one.violating_records
            ],
        )
        for name, shares in groups.shares.items()
    ]  # fmt: skip
    return Section("attributes", title, [text, Profiles(columns, EXPOSED.colour)])


def _tails(audit: AuditReport) -> Section:
    title = "Exact tails beside the bound"
    text = Paragraph(
        "The policy requires the bound on both tails to stay above the doubt. A bound is loose:"
        " the exact"
        " probability that the estimate is off by more than the tolerance is smaller still. Both"
        " are shown for"
        f" the {len(audit.worst):,} groups with the largest |g|/s_g, as if only perturbed; of"
        " the two tails, the smaller one decides."
    )
    if not audit.worst:
        return Section("tails", title, [text])
    series = ("bound", "exact tail")
    rows = [
        {
            "group": group_words(one.public),
            "size": one.size,
            "series": what,
            "probability": max(float(min(both)), _LEAST_TAIL),
        }
        for one in audit.worst
        for what, *both in (
            (series[0], one.bound_above, one.bound_below),
            (series[1], one.upper_tail, one.lower_tail),
        )
    ]
    spec = charts.tails_chart(rows, audit.policy.doubt, series, "Bound and exact tails by size")
    caption = "Values below one in a million are drawn at the bottom."
    return Section("tails", title, [text, Plot("chart-tails", spec, caption)])


def _trials(audit: AuditReport, groups: GroupTally) -> Section:
    text = Paragraph(
        f"With sampling rule {audit.policy.sampling!r}, {groups.sampled_groups:,} groups with"
        f" {groups.sampled_records:,} records are published from fewer independent trials than"
        f" they have records: {groups.trials:,} trials for {audit.records:,} records."
    )
    rows = [
        {"class": name, "kind": kind, "count": count}
        for name, records, trials in groups.classes
        for kind, count in (("records", records), ("trials", trials))
    ]
    names = [name for name, *_ in groups.classes]
    chart = Plot(
        "chart-trials",
        charts.trials_chart(rows, names, "Records and trials by group size"),
        "Records and the trials kept, by the size of the group.",
        Grid([figure("records in the group"), number("records"), number("trials")], groups.classes),
    )
    return Section("trials", "Trials kept", [text, chart])


def worst_section(audit: AuditReport) -> Section:
    """The groups farthest from private, with their true figures."""
    grid = replace(worst_grid(replace(audit, worst=audit.worst[:_WORST])), title="", closed=False)
    text = Paragraph(
        "The groups with the largest |g|/s_g, each with its largest exposed frequency and the value"
        " behind it. The exact tails are those of the most exposed value."
    )
    return Section("worst", "Worst groups", [text, *([grid] if audit.worst else [])])

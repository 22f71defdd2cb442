"""A record for the review board: the promise, then the figures of the table and of the release."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from reconpriv.messages.phrases import listed
from reconpriv.show.document import (
    Document,
    Facts,
    Field,
    Grid,
    Headline,
    Paragraph,
    any_figure,
    figure,
)
from reconpriv.show.results.release import PROMISED

if TYPE_CHECKING:
    from reconpriv.auditing.classes import EquivalenceClasses
    from reconpriv.release.record import ReviewRecord


def record_document(record: ReviewRecord) -> Document:
    """What the file says, in short."""
    said, columns = record.as_dict(), []
    promise, ledger = said["promise"], said["ledger"]
    roles = {
        role: [one["column"] for one in said["roles"] if one["role"] == role]
        for role in ("public", "sensitive", "person", "left out")
    }
    if record.table is not None and record.table.audit.classes is not None:
        columns.append(("raw table", record.table.audit.classes))
    columns.append(("release", record.released.classes))
    rows = [
        ("audience", record.audience),
        *((role, ", ".join(names)) for role, names in roles.items() if names),
        ("promised", promise["promised"]),
        ("not promised", promise["not_promised"]),
        *([] if record.table is None else _raw_rows(said["checks"]["raw_table"])),
        *(
            []
            if ledger is None
            else [("ledger", f"line {ledger['line']} of {ledger['date'][:10]}")]
        ),
    ]
    missing = said["checks"]["needs_the_table"]
    more = [Paragraph(f"Not checked, as it needs the table: {listed(missing)}.")] if missing else []
    title = f"Record of a release of {record.described.records:,} records"
    return [Headline(title), Facts(rows, quoted=PROMISED), classes_grid(columns), *more]


def _raw_rows(checks: dict[str, object]) -> list[tuple[str, str]]:
    """What a reviewer looks at first, of the raw table."""
    persons = checks["persons"]
    insisted = checks["insisted_on"]
    assert isinstance(insisted, list)
    rows = [("same as release", str(checks["same_as_release"]))]
    if isinstance(persons, dict):
        words = f"{persons['persons']:,}, {persons['with_several_rows']:,} with several rows"
        rows.append(("persons", words))
    return [*rows, ("insisted on", listed(insisted) if insisted else "nothing")]


def classes_grid(columns: Sequence[tuple[str, EquivalenceClasses]]) -> Grid:
    """The figures that a disclosure review asks for, side by side."""
    rows = zip(*(_figures(one) for _, one in columns), strict=True)
    names = _names(columns[0][1])
    return Grid(
        [Field("figure"), *(figure(name) for name, _ in columns)],
        [(name, *values) for name, values in zip(names, rows, strict=True)],
        "Groups that agree on all public columns, as others judge them",
        "Of l and t the worst of any group, then the mean over records; l is rounded down, t up."
        " t-closeness with equal distances (total variation). In a release, values are those"
        " published.",
    )


def _names(classes: EquivalenceClasses) -> list[str]:
    return [
        "records",
        "groups",
        "unique records",
        "smallest group (k-anonymity)",
        *(f"records in groups below {k}" for k, _ in classes.below),
        "records in groups of several with one value",
        "distinct l-diversity",
        "entropy l-diversity",
        "t-closeness",
    ]


def _figures(classes: EquivalenceClasses) -> list[str]:
    counts = [
        classes.records,
        classes.groups,
        classes.unique,
        classes.smallest,
        *(records for _, records in classes.below),
        classes.one_value_records,
    ]
    return [
        *map(any_figure, counts),
        f"{classes.distinct} (mean {classes.mean_distinct:.2f})",
        f"{classes.entropy_l:.2f} (mean {classes.mean_effective:.2f})",
        f"{classes.t:.2f} (mean {classes.mean_distance:.2f})",
    ]

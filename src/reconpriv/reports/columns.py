"""What the columns of a table do, before any policy: who stands out, and what would change it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from reconpriv.auditing.column_risk import AuditFigures
from reconpriv.auditing.single_records import K
from reconpriv.cells.cube import Cube, collect
from reconpriv.messages.numbers import label
from reconpriv.policy.presets import DEFAULT, policy_for
from reconpriv.reports.changes import Change, wider, without
from reconpriv.tuning.columns import figures_of, wider_bins, without_column

if TYPE_CHECKING:
    from reconpriv.table import Table

Step = Callable[[int, int], None]
# Each is left out in turn; of more columns, those with the most values.
_COMPARED = 24


@dataclass(frozen=True)
class ColumnsFound:
    """A table by its roles: its figures now and after each change, and what recoding makes.

    ``recoded`` has the labels of every recoded column with their records; ``left_out`` says how
    many columns were not compared.
    """

    records: int
    now: AuditFigures
    changes: tuple[Change, ...]
    recoded: dict[str, list[tuple[str, int]]]
    left_out: int


def count_columns(table: Table, step: Step) -> ColumnsFound:
    """Count the table by its roles, and by what they could be; ``step`` may cancel it."""
    cube = collect(table.batches(), table.schema)
    policy = policy_for(DEFAULT.name, cube.schema).policy.unprotected().publishable()
    many = sorted(range(len(cube.codes)), key=lambda i: -len(cube.values[i]))
    compared = sorted(many[:_COMPARED])
    widths = [(i, width) for i in compared for width in wider_bins(cube, i)]
    steps = len(compared) + len(widths) + 1
    now, found = figures_of(cube, policy, k=K), list[Change]()
    names = [column.name for column in cube.schema.public]
    for i, width in widths:
        step(len(found) + 1, steps)
        found.append(wider(cube, i, width, policy, k=K))
    for i in compared if len(names) > 1 else ():
        step(len(found) + 1, steps)
        found.append(without(names[i], figures_of(without_column(cube, i), policy, k=K)))
    left_out = len(names) - len(compared)
    return ColumnsFound(cube.schema.records, now, tuple(found), recoded_in(cube), left_out)


def recoded_in(cube: Cube) -> dict[str, list[tuple[str, int]]]:
    """The labels of every recoded column, with the records that hold them."""
    found = {}
    for column, codes, values in zip(cube.schema.public, cube.codes, cube.values, strict=True):
        if cube.schema.recoding(column.name) is not None:
            records = np.bincount(codes, weights=cube.records, minlength=len(values))
            shown = map(label, values.to_pylist())
            found[column.name] = [(one, int(n)) for one, n in zip(shown, records, strict=True)]
    return found

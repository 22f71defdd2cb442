"""B: which groups each margin row adds up, and sums over them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from reconpriv.theory.arrays import Floats, Ints

if TYPE_CHECKING:
    from scipy.sparse import csr_array


@dataclass(frozen=True)
class Incidence:
    """The rows of every group, a line per group and a column per table (-1: none).

    A group is in at most one row of a table. ``count`` is the number of rows of all tables.
    """

    rows: Ints
    count: int

    def sums(self, weights: Floats | Ints, group: Ints | slice = slice(None)) -> Floats:
        """B w of every row; ``group`` are the groups that the weights are of, if not all."""
        line = np.zeros(len(weights), dtype=np.int64)
        return np.asarray(self.sums_by(weights, line, 1, group)[0])

    def sums_by(
        self, weights: Floats | Ints, line: Ints, lines: int, group: Ints | slice = slice(None)
    ) -> Floats:
        """B w of the weights with the same number in ``line`` (-1: none), line by line."""
        total = np.zeros((lines, self.count))
        for column, (first, many) in zip(self.rows[group].T, self._spans, strict=True):
            inside = np.flatnonzero((line >= 0) & (column >= 0))
            slot = line[inside] * many + (column[inside] - first)
            sums = np.bincount(slot, weights=weights[inside], minlength=lines * many)
            total[:, first : first + many] += sums.reshape(lines, many)
        return total

    @cached_property
    def _spans(self) -> tuple[tuple[int, int], ...]:
        """The first row of each table, and how many rows it has."""
        tables = [column[column >= 0] for column in self.rows.T]
        first = [int(rows.min(initial=self.count)) for rows in tables]
        last = [int(rows.max(initial=-1)) for rows in tables]
        return tuple((one, max(end + 1 - one, 0)) for one, end in zip(first, last, strict=True))

    @cached_property
    def matrix(self) -> csr_array:
        """B itself, for sums of many weights at once."""
        from scipy.sparse import csr_array  # noqa: PLC0415 - slow import

        group, table = np.nonzero(self.rows >= 0)
        place = (self.rows[group, table], group)
        return csr_array((np.ones(group.size), place), shape=(self.count, self.rows.shape[0]))

    def spread(self, weights: Floats) -> Floats:
        """B'λ: what every group gets from the weights of its rows, for any number of lines."""
        padded = np.concatenate([weights, np.zeros((*weights.shape[:-1], 1))], axis=-1)
        total = np.zeros((*weights.shape[:-1], self.rows.shape[0]))
        for column in self.rows.T:
            total += padded[..., column]
        return total

    def pairs(self, weights: Floats, group: Ints | slice = slice(None)) -> Floats:
        """B diag(w) B'; a group may be named several times."""
        found = np.zeros((self.count, self.count))
        columns = self.rows[group].T
        for i, (one, (first, many)) in enumerate(zip(columns, self._spans, strict=True)):
            for other, (start, wide) in zip(columns[i:], self._spans[i:], strict=True):
                inside = np.flatnonzero((one >= 0) & (other >= 0))
                slot = (one[inside] - first) * wide + (other[inside] - start)
                total = np.bincount(slot, weights=weights[inside], minlength=many * wide)
                found[first : first + many, start : start + wide] += total.reshape(many, wide)
        # Rows of one table share no group, so only the diagonal is there twice.
        return found + np.triu(found, 1).T

"""Margin tables: the sensitive values counted by one public attribute, or by a few together.

A row is a combination of public values that occurs. Rows of all tables are numbered through, table
by table, each in the order of its values. Groups are counted part by part, on one machine or many,
and the parts are joined; nothing depends on their order.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from reconpriv.cells.cell_batch import CellBatch, Encoded, python_values, unify
from reconpriv.columns.schema import Schema, Value
from reconpriv.errors import PolicyError
from reconpriv.messages.remedies import Control, Remedy, either
from reconpriv.policy.margin_settings import Margins
from reconpriv.policy.policy import Policy
from reconpriv.policy.sampling_rules import own_trials
from reconpriv.protect.margins.candidates import (
    NO_CANDIDATES,
    Candidates,
    candidates_of,
    may_exceed,
)
from reconpriv.theory.arrays import Floats, Ints, T

# Estimates hold one matrix of rows x rows per sensitive value: at most this many numbers.
MOST_NUMBERS = 1 << 27
_BYTES = 4  # of each of them
_PACKED_BITS = 21  # of a value's code, so that three attributes fit into a word

Attributes = tuple[int, ...]


@dataclass(frozen=True)
class MarginTable:
    """The rows of one table, sorted, and their counts: a column per sensitive value.

    ``attributes`` are positions among the public columns. The counts are true ones, which stay with
    the publisher, or noisy ones, which are published.
    """

    attributes: Attributes
    columns: tuple[Encoded, ...]
    counts: Ints

    @property
    def rows(self) -> int:
        """How many combinations of values there are."""
        return int(self.counts.shape[0])

    def take(self, rows: Ints) -> MarginTable:
        """Some of the rows."""
        return MarginTable(
            self.attributes, tuple(column.take(rows) for column in self.columns), self.counts[rows]
        )


@dataclass(frozen=True)
class RowIndex:
    """Finds the row of one margin table that each group belongs to."""

    attributes: Attributes
    codes: tuple[dict[object, int], ...]
    packed: Ints
    numbers: Ints

    @classmethod
    def of(cls, table: MarginTable, first: int, schema: Schema) -> RowIndex:
        """An index of a table whose first row has this number."""
        names = [schema.public[a].name for a in table.attributes]
        codes = tuple(
            {_key(value): i for i, value in enumerate(python_values(column.values, name))}
            for column, name in zip(table.columns, names, strict=True)
        )
        packed = _pack([column.codes.astype(np.int64) for column in table.columns])
        order = np.argsort(packed)
        return cls(table.attributes, codes, packed[order], order + first)

    def rows(self, public: Sequence[Encoded], schema: Schema) -> Ints:
        """The number of each group's row; -1 if the table does not have it."""
        parts, known = [], np.ones(public[0].codes.size, dtype=bool)
        for attribute, codes in zip(self.attributes, self.codes, strict=True):
            column = public[attribute]
            values = python_values(column.values, schema.public[attribute].name)
            lookup = np.array([codes.get(_key(value), -1) for value in values], dtype=np.int64)
            found = lookup[column.codes]
            known &= found >= 0
            parts.append(found)
        wanted = _pack(parts)
        place = np.minimum(np.searchsorted(self.packed, wanted), self.packed.size - 1)
        return np.where(known & (self.packed[place] == wanted), self.numbers[place], -1)


def index_rows(tables: Sequence[MarginTable], schema: Schema) -> tuple[RowIndex, ...]:
    """An index of each table; rows are numbered through."""
    first = np.cumsum([0, *(table.rows for table in tables)])
    return tuple(
        RowIndex.of(table, int(start), schema)
        for table, start in zip(tables, first[:-1], strict=True)
    )


def rows_of(indexes: Sequence[RowIndex], public: Sequence[Encoded], schema: Schema) -> Ints:
    """The rows of every group: one line per group, one column per table."""
    return np.stack([index.rows(public, schema) for index in indexes], axis=1)


def _pack(codes: Sequence[Ints]) -> Ints:
    packed = np.zeros(codes[0].size, dtype=np.int64)
    for part in codes:
        packed = (packed << _PACKED_BITS) | part
    return packed


def _key(value: Value) -> object:
    """A key that distinguishes the values of a column: NaN is not equal to itself."""
    return "nan" if value != value else value  # noqa: PLR0124


def wanted_tables(margins: Margins, schema: Schema) -> tuple[Attributes, ...]:
    """The tables by position: those that are named, or one per public column."""
    names = [column.name for column in schema.public]
    if margins.tables is None:
        if not names:
            raise PolicyError("Margins need at least one public column.")
        return tuple((i,) for i in range(len(names)))
    found = []
    for table in margins.tables:
        for name in table:
            if name == schema.sensitive.name:
                raise PolicyError(
                    f"Column {name!r} is the sensitive one: every margin table counts it already.",
                    hint="Name public columns.",
                )
            if name not in names:
                raise PolicyError(
                    f"There can be no margin table by {name!r}, which is not a public column.",
                    hint=f"The public columns are: {', '.join(names)}.",
                )
        if len(table) > 3:
            raise PolicyError(
                f"A margin table has at most three public columns; got {', '.join(table)}.",
                hint="The records answer finer questions.",
            )
        found.append(tuple(sorted(names.index(name) for name in table)))
    return tuple(found)


def most_rows(domain_size: int) -> int:
    """How many rows all margin tables may have together."""
    return int((MOST_NUMBERS // domain_size) ** 0.5)


@dataclass(frozen=True)
class MarginPart:
    """The margins of some of the groups; a table that has too many rows is None.

    ``products`` sum N²/n over the groups of two rows, for every pair of tables: what is unknown
    about both, in units of one trial's variance. They are not summed (``compared`` is False) if the
    tables have too many rows together: the groups are then counted again, for fewer tables.
    """

    tables: tuple[MarginTable | None, ...]
    products: dict[tuple[int, int], Floats]
    candidates: Candidates
    compared: bool = True


@dataclass(frozen=True)
class MarginTotals:
    """The margins of the whole table: never to leave the publisher.

    ``products`` has a line and a column per row of all tables.
    """

    tables: tuple[MarginTable, ...]
    products: Floats
    candidates: Candidates
    too_large: tuple[Attributes, ...] = ()

    @property
    def rows(self) -> int:
        """The rows of all tables."""
        return sum(table.rows for table in self.tables)


NO_TOTALS = MarginTotals((), np.zeros((0, 0)), NO_CANDIDATES)


@dataclass
class _Counter:
    """One table while it is being counted: rows are numbered as they turn up."""

    attributes: Attributes
    domain_size: int
    places: dict[int, int] = field(default_factory=dict)
    codes: list[tuple[int, ...]] = field(default_factory=list)
    counts: Ints = field(default_factory=lambda: np.zeros((0, 0), dtype=np.int64))
    too_large: bool = False

    def rows(self, codes: Sequence[Ints]) -> Ints:
        """The row of every group, given the codes of all public columns."""
        packed = _pack([codes[a] for a in self.attributes])
        found, first, where = np.unique(packed, return_index=True, return_inverse=True)
        rows = np.empty(found.size, dtype=np.int64)
        for i, key in enumerate(found.tolist()):
            if key not in self.places:
                self.places[key] = len(self.places)
                self.codes.append(tuple(int(codes[a][first[i]]) for a in self.attributes))
            rows[i] = self.places[key]
        return rows[where.reshape(-1)]

    def count(self, rows: Ints, batch: CellBatch) -> None:
        """Add the cells of a batch."""
        m = self.domain_size
        self.counts = _grown(self.counts, (len(self.places), m))
        slot = rows[batch.group_of_cell] * m + batch.value
        # Counts are whole and far below 2^53, so the float sums of bincount are exact.
        added = np.bincount(slot, weights=batch.count, minlength=self.counts.size)
        self.counts += added.astype(np.int64).reshape(self.counts.shape)


@dataclass(frozen=True)
class CountMargins:
    """Counts the margins of some groups; picklable, so tasks can carry it."""

    schema: Schema
    policy: Policy
    tables: tuple[Attributes, ...]

    def __call__(self, batches: Iterable[CellBatch]) -> MarginPart:
        """One pass over whole groups."""
        m = self.schema.domain_size
        counters = [_Counter(attributes, m) for attributes in self.tables]
        known: list[dict[object, int]] = [{} for _ in self.schema.public]
        values: list[list[pa.Array]] = [[] for _ in self.schema.public]
        products: dict[tuple[int, int], Floats] = {}
        candidates = []
        used = sorted({a for attributes in self.tables for a in attributes})
        for batch in (batch.whole for batch in batches):
            codes = [np.empty(0, np.int64)] * len(known)
            for a in used:
                codes[a] = self._codes(batch.public[a], a, known[a], values[a])
            rows = np.zeros((batch.groups, len(counters)), dtype=np.int64)
            for i, counter in enumerate(counters):
                if not counter.too_large:
                    rows[:, i] = counter.rows(codes)
                    counter.too_large = len(counter.places) > most_rows(m)
                if not counter.too_large:
                    counter.count(rows[:, i], batch)
            candidates.append(self._compare(batch, rows, counters, products))
        return MarginPart(
            tuple(self._table(counter, values) for counter in counters),
            {
                (i, j): _grown(found, (len(counters[i].places), len(counters[j].places)))
                for (i, j), found in products.items()
                if not (counters[i].too_large or counters[j].too_large)
            },
            Candidates.joined(candidates),
            not self._too_many(counters),
        )

    def _too_many(self, counters: Sequence[_Counter]) -> bool:
        """True if the tables that are still counted have too many rows together."""
        rows = sum(len(one.places) for one in counters if not one.too_large)
        return rows > most_rows(self.schema.domain_size)

    def _codes(
        self, column: Encoded, attribute: int, known: dict[object, int], values: list[pa.Array]
    ) -> Ints:
        """A column of a batch in codes that all batches share."""
        present, where = np.unique(column.codes, return_inverse=True)
        some = column.values.take(pa.array(present))
        codes = np.empty(present.size, dtype=np.int64)
        new = []
        for i, value in enumerate(python_values(some, self.schema.public[attribute].name)):
            key = _key(value)
            if key not in known:
                known[key] = len(known)
                new.append(i)
            codes[i] = known[key]
        if new:
            values.append(some.take(pa.array(new)))
        return np.asarray(codes[where.reshape(-1)])

    def _table(self, counter: _Counter, values: list[list[pa.Array]]) -> MarginTable | None:
        if counter.too_large:
            return None
        codes = np.array(counter.codes, dtype=np.int32).reshape(len(counter.codes), -1)
        columns = tuple(
            Encoded(codes[:, i], pa.concat_arrays(values[a]))
            for i, a in enumerate(counter.attributes)
        )
        return MarginTable(counter.attributes, columns, counter.counts)

    def _compare(
        self,
        batch: CellBatch,
        rows: Ints,
        counters: Sequence[_Counter],
        products: dict[tuple[int, int], Floats],
    ) -> Candidates:
        """Sum what is unknown about pairs of rows, and keep the groups that margins may expose."""
        groups = candidates_of(batch, rows, self.policy, self.schema.domain_size)
        if not self.policy.sampling_rule.counts_margins:
            return groups.take(np.zeros(0, dtype=np.int64))
        unknown = groups.sizes**2 / own_trials(groups.sizes, groups.limits)
        if self._too_many(counters):
            products.clear()
        for i, one in enumerate([] if self._too_many(counters) else counters):
            for j, other in enumerate(counters[i:], start=i):
                if one.too_large or other.too_large:
                    continue
                shape = (len(one.places), len(other.places))
                slot = rows[:, i] * shape[1] + rows[:, j]
                added = np.bincount(slot, weights=unknown, minlength=shape[0] * shape[1])
                before = products.get((i, j), np.zeros((0, 0)))
                products[i, j] = _grown(before, shape) + added.reshape(shape)
        return groups.take(may_exceed(groups, self.policy, self.schema.domain_size))


def join_margins(
    parts: Sequence[MarginPart], tables: Sequence[Attributes], margins: Margins, schema: Schema
) -> MarginTotals:
    """The margins of all parts; a table of too many rows is left out, or refused if named."""
    m = schema.domain_size
    joined = [_join_table([part.tables[i] for part in parts]) for i in range(len(tables))]
    sizes = [most_rows(m) + 1 if found is None else found[0].rows for found in joined]
    kept = list(range(len(tables)))
    left_out: list[Attributes] = []
    while kept and sum(sizes[i] for i in kept) > most_rows(m):
        largest = max(kept, key=lambda i: sizes[i])
        if margins.tables is not None:
            raise _too_large(tables[largest], schema)
        kept.remove(largest)
        left_out.append(tables[largest])
    if not kept:
        return replace(NO_TOTALS, too_large=tuple(left_out))
    found = [one for one in (joined[i] for i in kept) if one is not None]
    first = np.cumsum([0, *(table.rows for table, _ in found)])
    products = np.zeros((int(first[-1]), int(first[-1])))
    candidates = []
    for number, part in enumerate(parts):
        place = [maps[number] + start for (_, maps), start in zip(found, first[:-1], strict=True)]
        for (i, j), sums in part.products.items():
            if i in kept and j in kept:
                rows, columns = place[kept.index(i)], place[kept.index(j)]
                products[np.ix_(rows, columns)] += sums
                if i != j:
                    products[np.ix_(columns, rows)] += sums.T
        one = part.candidates
        rows = np.stack(
            [where[one.rows[:, i]] for i, where in zip(kept, place, strict=True)], axis=1
        )
        candidates.append(replace(one, rows=rows))
    return MarginTotals(
        tuple(table for table, _ in found), products, Candidates.joined(candidates), tuple(left_out)
    )


def _join_table(parts: Sequence[MarginTable | None]) -> tuple[MarginTable, list[Ints]] | None:
    """One table of all parts, sorted, and where the rows of each part are in it."""
    some = [part for part in parts if part is not None]
    if len(some) < len(parts):
        return None
    columns = [unify([part.columns[i] for part in some]) for i in range(len(some[0].columns))]
    stacked = np.stack([codes for codes, _ in columns])
    rows, where = np.unique(stacked, axis=1, return_inverse=True)
    where = where.reshape(-1).astype(np.int64)
    counts = np.zeros((rows.shape[1], some[0].counts.shape[1]), dtype=np.int64)
    np.add.at(counts, where, np.concatenate([part.counts for part in some]))
    ends = np.cumsum([part.rows for part in some])
    table = MarginTable(
        some[0].attributes,
        tuple(Encoded(rows[i], values) for i, (_, values) in enumerate(columns)),
        counts,
    )
    return table, np.split(where, ends[:-1])


def table_name(attributes: Attributes, schema: Schema) -> str:
    """A margin table in words."""
    return " × ".join(schema.public[a].name for a in attributes)


def _too_large(attributes: Attributes, schema: Schema) -> PolicyError:
    most = most_rows(schema.domain_size)
    memory = schema.domain_size * most * most * _BYTES / 1e9
    return PolicyError(
        f"The margin table by {table_name(attributes, schema)} has too many rows: all tables"
        f" together may have {most:,} for {schema.domain_size} sensitive values, for which an"
        f" analyst needs {memory:.1f} GB of memory.",
        hint=either(
            Remedy("name other margin tables", Control.MARGIN_TABLES),
            Remedy("bin the column", Control.BIN),
        ),
    )


def _grown(array: NDArray[T], shape: tuple[int, int]) -> NDArray[T]:
    """The array with room for more rows and columns."""
    if array.shape == shape:
        return array
    larger = np.zeros(shape, dtype=array.dtype)
    larger[: array.shape[0], : array.shape[1]] = array
    return larger

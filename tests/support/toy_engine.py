"""An engine over a list of rows, in plain Python: what CONTRIBUTING asks of an engine, no more."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pyarrow.parquet as pq

from reconpriv.cells.cell_batch import whole_groups
from reconpriv.engines.base import Engine, no_progress
from reconpriv.engines.duckdb.dialect import DIALECT
from reconpriv.engines.writer import write_release_files


def in_order(row):
    """Ascending, missing values last."""
    return [(value is None, value) for value in row]


class Toy(Engine):
    """Counts in a Counter, sorts with sorted, and knows whole numbers and texts."""

    name, dialect, table = "toy", DIALECT, "rows"

    def __init__(self, source):
        read = pq.read_table(source)
        self.rows = read.to_pylist()
        kinds = {pa.int64(): "BIGINT", pa.string(): "VARCHAR"}
        self._describe({field.name: kinds[field.type] for field in read.schema})
        self.types = {field.name: field.type for field in read.schema}

    def records(self):
        return len(self.rows)

    def value_counts(self, column, at_most=None):
        return dict(Counter(row[column.name] for row in self.rows).most_common(at_most))

    def distinct(self, columns, *, present=None, rough=False):
        return [len(self.value_counts(column)) for column in columns]

    def batches(self, grouping, progress=no_progress):
        columns = grouping.schema.columns
        names = [column.name for column in columns]
        counts = Counter(tuple(row[name] for name in names) for row in self.rows)
        cells = sorted(counts, key=in_order)
        arrays = [
            pa.array(values, self.types[name])
            for name, values in zip(names, zip(*cells, strict=True), strict=True)
        ]
        count = pa.array([counts[cell] for cell in cells])
        table = pa.table([*arrays, count], names=[*names, "their count"])
        yield from whole_groups(table.to_batches(max_chunksize=7), grouping.schema)

    def write(self, grouping, publish, folder, layout, progress=no_progress):
        batches = self.batches(grouping)
        return write_release_files(batches, grouping, publish, folder, layout, progress)

    def expect_columns(self, names):
        assert set(names) <= set(self.types)

    def close(self):
        self.rows.clear()

    def interrupt(self):
        """Nothing takes long."""

    def beyond(self, *_, **__):
        raise NotImplementedError("the toy reads no SQL")

    _rows = _known_codes = _distinct_values = one_row_each = beyond

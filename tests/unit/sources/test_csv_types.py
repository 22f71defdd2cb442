"""The types of a CSV's columns, however it is read, against the rule applied value by value."""

from __future__ import annotations

import gzip
import math
import random
from collections import Counter
from contextlib import closing
from typing import Any

import duckdb
import pytest

from reconpriv.columns.schema import Column, Kind
from reconpriv.engines.duckdb.engine import DuckDBEngine
from reconpriv.errors import InputError

_KINDS = {
    "BIGINT": Kind.INTEGER,
    "DOUBLE": Kind.NUMBER,
    "BOOLEAN": Kind.BOOLEAN,
    "DATE": Kind.DATE,
    "TIMESTAMP": Kind.DATETIME,
}
_FAMILIES = (
    ["0", "7", "-3", "9223372036854775807", "42"],
    ["0.5", "-0.0", "1.0", "inf", "1e+300", "nan"],
    ["true", "false"],
    ["2020-02-29", "1999-12-31"],
    ["2020-02-29 00:00:00", "1999-12-31 23:59:59.5"],
)
_ODD = [
    "", "01", "1e3", "+5", "TRUE", "NULL", " 7", "9223372036854775808", 'a "b", c', "é\nü", "-0",
]  # fmt: skip


def _written(file, rows):
    """A CSV in which None is an unquoted empty field and every text is quoted."""
    lines = [",".join(f"c{i}" for i in range(len(rows[0])))]
    lines += [
        ",".join("" if v is None else '"' + v.replace('"', '""') + '"' for v in row) for row in rows
    ]
    opener: Any = gzip.open if file.suffix == ".gz" else open
    with opener(file, "wt", encoding="utf-8", newline="") as stream:
        stream.write("\n".join(lines) + "\n")
    return file


def _rule(texts):
    """The first type that spells every text as it is; None if there is none, or no text."""
    present = {text for text in texts if text is not None}
    for kind in _KINDS if present else ():
        spelled = f"SELECT TRY_CAST($1 AS {kind})::VARCHAR"
        if all(duckdb.execute(spelled, [text]).fetchall()[0][0] == text for text in present):
            return kind
    return None


def _expected(name, texts):
    kind = _rule(texts)
    values: Counter[Any] = Counter()
    for text, n in Counter(texts).items():
        value: Any = text
        if kind is not None and text is not None:
            value = duckdb.execute(f"SELECT $1::{kind}", [text]).fetchall()[0][0]
        # What is not a number is missing.
        missing = isinstance(value, float) and math.isnan(value)
        values[None if missing else value] += n
    return Column(name, _KINDS[kind] if kind else Kind.STRING), values


def _random_rows(seed):
    draw = random.Random(seed)
    columns: list[list[str | None]] = []
    n = draw.choice([1, 5, 60])
    for _ in range(draw.randint(2, 6)):
        pool: list[str | None] = [*draw.choice(_FAMILIES)]
        if draw.random() < 0.3:
            pool.append(draw.choice(_ODD))
        if draw.random() < 0.3:
            pool.append(draw.choice(draw.choice(_FAMILIES)))
        if draw.random() < 0.4:
            pool.append(None)
        if draw.random() < 0.1:
            pool = [None]
        columns.append([draw.choice(pool) for _ in range(n)])
    # A line without any text is not a record of a CSV with one column; two columns keep a comma.
    return [list(row) for row in zip(*columns, strict=True)]


@pytest.mark.parametrize("seed", range(25))
def test_types_and_counts_are_those_of_the_rule(tmp_path, seed):
    rows = _random_rows(seed)
    file = _written(tmp_path / ("t.csv.gz" if seed % 5 == 0 else "t.csv"), rows)
    names = [f"c{i}" for i in range(len(rows[0]))]
    texts = {name: [row[i] for row in rows] for i, name in enumerate(names)}
    expected = {name: _expected(name, texts[name]) for name in names}
    some = names[1:]
    for sql, wanted in ((None, names), (None, some), ("SELECT * FROM input", names)):
        with closing(DuckDBEngine(str(file), sql=sql)) as engine:
            engine.expect_columns(wanted)
            assert [c for c in engine.columns() if c.name in wanted] == [
                expected[name][0] for name in wanted
            ]
            for name in wanted:
                column, values = expected[name]
                assert engine.value_counts(column) == values
    with closing(DuckDBEngine(str(file))) as engine:
        records, found = engine.summaries()
        assert records == len(rows)
        assert found == [_summarised(*expected[name]) for name in names]


def _summarised(column, counts):
    """What a summary says about a column with these counts."""
    filled = {value: count for value, count in counts.items() if value is not None}
    common = sorted(filled, key=lambda value: (-filled[value], value))[:60]
    return column, {
        "filled": sum(filled.values()),
        "distinct": len(filled),
        "low": min(filled, default=None),
        "high": max(filled, default=None),
        "common": common or None,
    }


def test_a_summary_has_no_reserved_names_and_no_limit_of_columns(tmp_path):
    names = ["v", "n", "count", "counted", "reconpriv_cells", *(f"c{i}" for i in range(300))]
    file = tmp_path / "t.csv"
    rows = [[str((row + i) % 3) for i in range(len(names))] for row in range(4)]
    file.write_text("".join(f"{','.join(row)}\n" for row in [names, *rows]))
    with closing(DuckDBEngine(str(file))) as engine:
        records, found = engine.summaries()
    assert records == len(rows)
    for i, (column, facts) in enumerate(found):
        counts = Counter(int(row[i]) for row in rows)
        assert (column, facts) == _summarised(Column(names[i], Kind.INTEGER), counts)


def test_a_late_text_decides_the_type_of_a_column(tmp_path):
    rows: list[list[str | None]] = [[str(i), None, str(i % 2)] for i in range(10_000)]
    rows[9_990][0], rows[9_991][1] = "007", "2020-01-01"
    file = _written(tmp_path / "t.csv", rows)
    with closing(DuckDBEngine(str(file))) as engine:
        engine.expect_columns(["c0", "c1", "c2"])
        assert [c.kind for c in engine.columns()] == [Kind.STRING, Kind.DATE, Kind.INTEGER]


def test_a_ragged_row_is_refused_though_its_column_is_not_used(tmp_path):
    for bad in ("1,2\n", "1,2,3,4\n", '1,"2"x,3\n'):
        file = tmp_path / "t.csv"
        file.write_text("a,b,c\n" + "1,2,3\n" * 5000 + bad + "1,2,3\n" * 5000)
        with closing(DuckDBEngine(str(file))) as engine, pytest.raises(InputError):
            engine.expect_columns(["a"])


def test_a_column_may_be_called_count(tmp_path):
    file = tmp_path / "t.csv"
    file.write_text("count,Count_\n" + "x,1\n" * 3 + "y,2\n")
    with closing(DuckDBEngine(str(file))) as engine:
        engine.expect_columns(["count", "Count_"])
        count, other = engine.columns()
        assert engine.value_counts(count) == {"x": 3, "y": 1}
        assert engine.value_counts(other) == {1: 3, 2: 1}

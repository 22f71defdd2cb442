"""Made tables: every kind of column, with bins, groups and missing values; one seed, one table."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from random import Random
from typing import Any

import pyarrow as pa

ROW = "#row"
"""A column of the referee's table: NULL in the rows that only stand for a combination."""


@dataclass(frozen=True)
class Recoded:
    """Bins or groups: how they are declared, and the label of every value in their order.

    ``borders`` are literals at which a comparison cuts no bin. ``middles`` are what the values of
    each bin count as in an average; None where there is no average.
    """

    option: str
    declared: Any
    label_of: Mapping[Any, str]
    labels: tuple[str, ...]
    borders: tuple[str, ...] = ()
    middles: Mapping[str, float] | None = None


@dataclass(frozen=True)
class Made:
    """A column: its kind, its distinct values (a missing one is None), and its recoding."""

    name: str
    kind: str
    type: pa.DataType
    values: tuple[Any, ...]
    recoded: Recoded | None = None

    @property
    def sql(self) -> str:
        """The name of the column in SQL."""
        return '"' + self.name.replace('"', '""') + '"'

    @property
    def present(self) -> list[Any]:
        """The values that are not missing."""
        return [one for one in self.values if one is not None]

    def beside(self, what: str) -> str:
        """The name, in SQL, of the referee's column beside this one: label, place or middle."""
        return f'"{self.name} #{what}"'


@dataclass(frozen=True)
class MadeTable:
    """The records, and what is known of each column."""

    records: pa.Table
    public: tuple[Made, ...]
    sensitive: Made

    @property
    def columns(self) -> tuple[Made, ...]:
        """All of them, the sensitive one last."""
        return (*self.public, self.sensitive)

    def reading(self) -> dict[str, Any]:
        """What ``reconpriv.read`` is to be told."""
        told: dict[str, Any] = {"sensitive": self.sensitive.name, "missing": "value"}
        told["public"] = [one.name for one in self.public]
        for one in self.columns:
            if one.recoded is not None:
                told.setdefault(one.recoded.option, {})[one.name] = one.recoded.declared
        return told

    def raw(self) -> pa.Table:
        """The records as the referee has them: with labels, places and middles of bins."""
        table = self.records.append_column(ROW, pa.array(range(self.records.num_rows)))
        for one in self.columns:
            recoded = one.recoded
            if recoded is None:
                continue
            values = table[one.name].to_pylist()
            labels = [None if v is None else recoded.label_of[v] for v in values]
            places = [None if x is None else recoded.labels.index(x) for x in labels]
            table = table.append_column(f"{one.name} #label", pa.array(labels, pa.string()))
            table = table.append_column(f"{one.name} #place", pa.array(places, pa.int64()))
            if recoded.middles is not None:
                middles = [None if x is None else recoded.middles[x] for x in labels]
                table = table.append_column(f"{one.name} #middle", pa.array(middles, pa.float64()))
        return table


def _some(rng: Random, pool: list[Any], most: int = 5) -> tuple[Any, ...]:
    """A few values of a pool, sometimes with a missing one."""
    found = rng.sample(pool, rng.randint(2, min(most, len(pool))))
    return (*found, *([None] if rng.random() < 0.5 else []))


def _integers(rng: Random) -> Made:
    pool = [-7, 0, 1, 2, 3, 10, 40, 99, 1_000_000]
    return Made("n", "integer", pa.int64(), _some(rng, pool))


def _small(rng: Random) -> Made:
    return Made("Low", "integer", pa.int16(), _some(rng, [-3, -1, 0, 2, 5, 9]))


def _huge(rng: Random) -> Made:
    big = 2**53
    pool = [big + 1, big + 2, big + 3, -big - 1, 2**62 + 1, 2**62 + 2, 5]
    return Made("huge", "integer", pa.int64(), _some(rng, pool))


FINE = "fine"
"""The name of a column with more values than a quantile is looked up among."""


def _fine(rng: Random) -> Made:
    return Made(FINE, "integer", pa.int64(), tuple(rng.sample(range(5_000), 400)))


def _floats(rng: Random) -> Made:
    pool = [0.1, -0.0, 2.5, 1e300, -3.25, 1e-9, 7.0, float(2**53)]
    return Made("x", "float", pa.float64(), _some(rng, pool))


def _plain_floats(rng: Random) -> Made:
    return Made("ratio", "float", pa.float64(), _some(rng, [0.0, 0.1, 0.2, 0.3, -1.5, 12.0]))


def _decimals(rng: Random) -> Made:
    pool = [Decimal(one) for one in ("0.10", "2.50", "-1.05", "100.00", "0.00", "33.33")]
    return Made("two words", "decimal", pa.decimal128(10, 2), _some(rng, pool))


def _texts(rng: Random) -> Made:
    pool = ["", "Ä", "ä", "a'b", "50%", "x_y", "日本", " b", "NULL", "true", "a", "B", 'q"t', "😀"]
    return Made("group", "text", pa.string(), _some(rng, pool))


def _codes(rng: Random) -> Made:
    return Made("code", "code", pa.string(), _some(rng, ["01", "2", "10", "9", "-5", "003"]))


def _booleans(rng: Random) -> Made:
    values = (True, False, *([None] if rng.random() < 0.6 else []))
    return Made("Größe", "boolean", pa.bool_(), values)


def _days(first: int = 2019) -> list[dt.date]:
    return [dt.date(first, 12, 31), *(dt.date(first + 1, m, d) for m in (1, 2, 6) for d in (1, 29))]


def _dates(rng: Random) -> Made:
    pool = [*_days(), dt.date(1899, 5, 5), dt.date(2262, 4, 12)]
    return Made("day", "date", pa.date32(), _some(rng, pool))


_MOMENTS = [
    dt.datetime(2020, 1, 1),
    dt.datetime(2020, 1, 1, 12, 30),
    dt.datetime(2020, 3, 29, 1, 59, 59),
    dt.datetime(2021, 12, 31, 23, 59, 59, 999999),
    dt.datetime(1969, 7, 20, 20, 17),
]


def _timestamps(rng: Random) -> Made:
    return Made("at", "timestamp", pa.timestamp("us"), _some(rng, _MOMENTS))


def _zoned(rng: Random) -> Made:
    pool = [one.replace(tzinfo=dt.UTC) for one in _MOMENTS]
    return Made("zoned", "zoned", pa.timestamp("us", tz="UTC"), _some(rng, pool))


def _times(rng: Random) -> Made:
    pool = [dt.time(0), dt.time(1, 2), dt.time(23, 59, 59), dt.time(12, 30, 0, 5)]
    return Made("clock", "time", pa.time64("us"), _some(rng, pool))


def _widths(rng: Random) -> Made:
    values = _some(rng, [-4, 0, 3, 9, 10, 27, 101, 105])
    return _binned("age", values, 10, rng)


def _binned(name: str, values: tuple[Any, ...], width: int, _rng: Random) -> Made:
    """Bins of a width, from the lowest to the highest that occurs."""
    numbers = [one for one in values if one is not None]
    starts = range(min(numbers) // width * width, max(numbers) + 1, width)
    label = {start: f"{start} to {start + width - 1}" for start in starts}
    return Made(
        name, "bins", pa.int64(), values,
        Recoded(
            "bin", width, {one: label[one // width * width] for one in numbers},
            tuple(label.values()), tuple(map(str, starts)),
            {text: start + (width - 1) / 2 for start, text in label.items()},
        ),
    )  # fmt: skip


def _borders(rng: Random) -> Made:
    """Bins between borders with a top, of numbers that are not whole."""
    values = _some(rng, [0.0, 0.4, 0.5, 2.25, 3.5, 9.0, 10.0])
    labels = ("0 to under 0.5", "0.5 to under 3.5", "3.5 to 10")
    ends = [(0.0, 0.5), (0.5, 3.5), (3.5, 10.0)]
    place = {one: (one >= 0.5) + (one >= 3.5) for one in values if one is not None}
    return Made(
        "dose", "bins", pa.float64(), values,
        Recoded(
            "bin", [0, 0.5, 3.5, "top:10"], {one: labels[i] for one, i in place.items()},
            labels, ("0", "0.5", "3.5"),
            {label: (low + high) / 2 for label, (low, high) in zip(labels, ends, strict=True)},
        ),
    )  # fmt: skip


def _open(rng: Random) -> Made:
    """Bins between borders, the last one open: they have quantiles, but no average."""
    values = _some(rng, [0, 17, 18, 64, 65, 90])
    labels = ("0 to 17", "18 to 64", "65 or more")
    place = {one: (one >= 18) + (one >= 65) for one in values if one is not None}
    recoded = Recoded(
        "bin", [0, 18, 65], {one: labels[i] for one, i in place.items()}, labels, ("0", "18", "65")
    )
    return Made("years", "open bins", pa.int64(), values, recoded)


def _months(rng: Random) -> Made:
    values = _some(rng, _days())
    present = sorted(one for one in values if one is not None)
    (first, last), months = (present[0], present[-1]), {}
    year, month = first.year, first.month
    while (year, month) <= (last.year, last.month):
        months[year, month] = f"{year}-{month:02d}"
        year, month = (year, month + 1) if month < 12 else (year + 1, 1)
    return Made(
        "visit", "periods", pa.date32(), values,
        Recoded(
            "bin", "month", {one: months[one.year, one.month] for one in present},
            tuple(months.values()), tuple(f"DATE '{text}-01'" for text in months.values()),
        ),
    )  # fmt: skip


def _groups(rng: Random) -> Made:
    group_of = {"a": "Z first", "b": "Z first", "ü": "A second", "": "A second", "d'": "last"}
    values = _some(rng, list(group_of))
    recoded = Recoded("group", group_of, group_of, ("Z first", "A second", "last"))
    return Made("part", "groups", pa.string(), values, recoded)


_PUBLIC: tuple[Callable[[Random], Made], ...] = (
    _integers, _small, _huge, _floats, _plain_floats, _decimals, _texts, _codes, _booleans, _dates,
    _timestamps, _zoned, _times, _widths, _borders, _open, _months, _groups,
)  # fmt: skip


def _sensitive(rng: Random) -> Made:
    kind = rng.choice(("text", "text", "integer", "date", "bins", "boolean", "groups"))
    if kind == "bins":
        return _binned("income", (5, 18, 27, 31, 44), 10, rng)
    missing = (None,) if rng.random() < 0.4 else ()
    if kind == "groups":
        group_of = {"flu": "mild", "cold": "mild", "HIV": "grave", "TB": "grave", "": "none"}
        recoded = Recoded("group", group_of, group_of, ("mild", "grave", "none"))
        return Made("job", "groups", pa.string(), (*group_of, *missing), recoded)
    values: tuple[Any, ...] = {
        "text": ("x", "y", "", "Öl", "it's"),
        "integer": (1, 2, 5, 10),
        "date": (dt.date(2020, 1, 1), dt.date(2020, 2, 29), dt.date(2021, 1, 1)),
        "boolean": (True, False),
    }[kind]
    types = {"text": pa.string(), "integer": pa.int64(), "date": pa.date32()}
    return Made("job", kind, types.get(kind, pa.bool_()), (*values, *missing))


def made_table(seed: int, records: int = 160, most: int = 6, *, fine: bool = False) -> MadeTable:
    """The table of a seed: a few public columns, values skewed, some combinations absent.

    If ``fine``, one of the columns has hundreds of values.
    """
    rng = Random(f"table {seed}")
    # In turns, so that a few seeds have every kind.
    turn = [_PUBLIC[(seed * 3 + i) % len(_PUBLIC)] for i in range(min(3, most))]
    others = [one for one in _PUBLIC if one not in turn]
    more = rng.randint(min(1, most - len(turn)), most - len(turn))
    public = [make(rng) for make in [*turn, *rng.sample(others, more)]]
    public = [_fine(rng), *public[1:]] if fine else public
    rng.shuffle(public)
    sensitive = _sensitive(rng)
    columns = [*public, sensitive]
    weights = {one.name: [rng.random() ** 2 + 0.05 for _ in one.values] for one in columns}
    # Every value occurs at least once, so that it is in the domain.
    least = max(len(one.values) for one in columns)
    data = {
        one.name: [one.values[i % len(one.values)] for i in range(least)]
        + rng.choices(one.values, weights[one.name], k=max(records, 2 * least) - least)
        for one in columns
    }
    schema = pa.schema([(one.name, one.type) for one in columns])
    return MadeTable(pa.table(data, schema), tuple(public), sensitive)

"""Files that a library decodes: a good one is made once in every format, and damaged in each case."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

from campaign.case import Case, Generator
from campaign.generators.damage import damaged
from campaign.generators.tables import NAMES, Pair, columns, reading, rows, same_groups
from campaign.place import Place

_SEED = 7


def _arrow_table() -> Any:
    import pyarrow as pa  # noqa: PLC0415 - only in processes of their own

    return pa.table(columns(rows(Random(_SEED), 200)))


def _parquet(folder: Path) -> None:
    import pyarrow.parquet as pq  # noqa: PLC0415

    table = _arrow_table()
    pq.write_table(table, folder / "plain.parquet", compression="none", use_dictionary=False)
    pq.write_table(table, folder / "zstd.parquet", compression="zstd", row_group_size=50)
    pq.write_table(table, folder / "snappy.parquet", data_page_version="2.0", write_page_index=True)


def _arrow(folder: Path) -> None:
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.feather as feather  # noqa: PLC0415

    table = _arrow_table()
    feather.write_feather(table, folder / "lz4.feather")
    feather.write_feather(table, folder / "plain.feather", compression="uncompressed")
    coded = table.set_column(0, "region", table["region"].dictionary_encode())
    with pa.ipc.new_file(folder / "coded.arrow", coded.schema) as writer:
        writer.write_table(coded, max_chunksize=60)
    with pa.ipc.new_file(folder / "views.arrow", table.schema) as writer:
        writer.write_table(table, max_chunksize=1)


def _excel(folder: Path) -> None:
    import openpyxl  # noqa: PLC0415

    book = openpyxl.Workbook()
    sheet = book.active
    sheet.append(list(NAMES))
    for row in rows(Random(_SEED), 200):
        sheet.append(list(row))
    book.save(folder / "table.xlsx")


def _statistical(folder: Path) -> None:
    import polars as pl  # noqa: PLC0415
    import pyreadstat  # noqa: PLC0415

    frame = pl.DataFrame(columns(rows(Random(_SEED), 200)))
    labels = {"variable_value_labels": {"income": {"a": "low", "b": "middle"}}}
    pyreadstat.write_sav(frame, folder / "table.sav", **labels)
    pyreadstat.write_sav(frame, folder / "packed.zsav", compress=True)
    pyreadstat.write_dta(frame, folder / "table.dta")
    pyreadstat.write_xport(frame, folder / "table.xpt")
    known = Path(__file__).parents[2] / "tests" / "data" / "iris.sas7bdat"
    (folder / "iris.sas7bdat").write_bytes(known.read_bytes())


def _databases(folder: Path) -> None:
    import duckdb  # noqa: PLC0415

    records = rows(Random(_SEED), 200)
    with sqlite3.connect(folder / "table.sqlite") as base:
        base.execute("CREATE TABLE t (region TEXT, age INTEGER, note TEXT, income TEXT)")
        base.executemany("INSERT INTO t VALUES (?, ?, ?, ?)", records)
    base.close()
    with duckdb.connect(str(folder / "table.duckdb")) as other:
        other.execute("CREATE TABLE t (region TEXT, age INTEGER, note TEXT, income TEXT)")
        other.executemany("INSERT INTO t VALUES (?, ?, ?, ?)", records)


def _make(*more: str) -> Callable[[Random, Place], Case]:
    def make(rng: Random, place: Place) -> Case:
        file = rng.choice(sorted(one for one in place.shared.iterdir() if one.is_file()))
        what, content = damaged(rng, file.read_bytes())
        if rng.random() < 0.03:
            what, content = "the name of another format", b"region,age,income\nnorth,20,a\n"
        return Case(f"{file.suffix}: {what}", reading(rng, place.source(file.name, content), *more))

    return make


def _read(place: Place) -> list[Pair] | None:
    """Parquet and Arrow by their own library, SQLite by Python's."""
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.feather as feather  # noqa: PLC0415
    import pyarrow.parquet as pq  # noqa: PLC0415

    file = next(place.vault.iterdir())
    if file.suffix == ".sqlite":
        base = sqlite3.connect(file)
        base.text_factory = lambda content: content.decode(errors="replace")
        found = base.execute("SELECT region, age FROM t").fetchall()
        base.close()
        return found
    if file.suffix not in (".parquet", ".feather", ".arrow"):
        return None
    try:
        read = pq.read_table if file.suffix == ".parquet" else feather.read_table
        table = read(str(file))
        table.validate(full=True)
    except (pa.ArrowException, OSError):
        return None
    return list(zip(table["region"].to_pylist(), table["age"].to_pylist(), strict=True))


def _of(
    name: str, tries: str, share: float, prepare: Callable[[Path], None], *more: str
) -> Generator:
    return Generator(name, tries, share, _make(*more), prepare, same_groups(_read))


_TRIES = "flipped, lost, doubled and extreme bytes"
PARQUET = _of("Parquet", f"{_TRIES}, with and without compression", 1.5, _parquet)
ARROW = _of("Arrow", f"{_TRIES}, dictionaries, many batches", 2.0, _arrow)
EXCEL = _of("Excel", _TRIES, 0.7, _excel)
STATISTICAL = _of("SPSS, Stata, SAS", _TRIES, 1.5, _statistical)
DATABASES = _of(
    "databases", f"{_TRIES} of SQLite and DuckDB files", 1.0, _databases, "--table", "t"
)

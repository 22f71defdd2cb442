"""Files that a library decodes: a good one of every format, damaged anew in each case."""

from __future__ import annotations

import io
import sqlite3
import zipfile
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

from campaign.case import Case, Generator
from campaign.generators.damage import damaged
from campaign.generators.references import read_plainly
from campaign.generators.tables import NAMES, columns, reading, rows, same_groups
from campaign.place import Place

_SEED = 7
_WITHIN = 0.5
_PARTS = ("xl/worksheets/sheet1.xml", "xl/sharedStrings.xml", "xl/workbook.xml")


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
    from pyarrow import feather  # noqa: PLC0415

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
    labels: Any = {"income": {"a": "low", "b": "middle"}}  # the stubs allow numbers only
    pyreadstat.write_sav(frame, folder / "table.sav", variable_value_labels=labels)
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


def _damaged_within(rng: Random, content: bytes) -> tuple[str, bytes]:
    """A spreadsheet with one damaged part and good checksums."""
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(made, "w") as new:
        chosen = rng.choice([name for name in old.namelist() if name in _PARTS])
        what = ""
        for name in old.namelist():
            part = old.read(name)
            if name == chosen:
                what, part = damaged(rng, part)
            new.writestr(zipfile.ZipInfo(name), part)
    return f"{what} in {chosen}", made.getvalue()


def _make(*more: str) -> Callable[[Random, Place], Case]:
    def make(rng: Random, place: Place) -> Case:
        file = rng.choice(sorted(one for one in place.shared.iterdir() if one.is_file()))
        within = file.suffix == ".xlsx" and rng.random() < _WITHIN
        what, content = (_damaged_within if within else damaged)(rng, file.read_bytes())
        if rng.random() < 0.03:
            what, content = "the name of another format", b"region,age,income\nnorth,20,a\n"
        return Case(f"{file.suffix}: {what}", reading(rng, place.source(file.name, content), *more))

    return make


def _of(
    name: str, tries: str, share: float, prepare: Callable[[Path], None], *more: str
) -> Generator:
    return Generator(name, tries, share, _make(*more), prepare, same_groups(read_plainly))


_TRIES = "flipped, lost, doubled and extreme bytes"
PARQUET = _of("Parquet", f"{_TRIES}, with and without compression", 1.5, _parquet)
ARROW = _of("Arrow", f"{_TRIES}, dictionaries, many batches", 2.0, _arrow)
EXCEL = _of("Excel", f"{_TRIES} of the file and of its parts", 0.7, _excel)
STATISTICAL = _of("SPSS, Stata, SAS", _TRIES, 1.5, _statistical)
DATABASES = _of(
    "databases", f"{_TRIES} of SQLite and DuckDB files", 1.0, _databases, "--table", "t"
)

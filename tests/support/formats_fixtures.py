"""Small files in the formats of statistical programs, written by pyreadstat."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import openpyxl
import polars as pl
import pyarrow as pa
import pyreadstat

from reconpriv.engines.duckdb.engine import DuckDBEngine

WRITERS = {
    ".sav": pyreadstat.write_sav,
    ".zsav": lambda frame, path, **more: pyreadstat.write_sav(frame, path, compress=True, **more),
    ".dta": pyreadstat.write_dta,
    ".xpt": pyreadstat.write_xport,
}

SURVEY = pl.DataFrame(
    {
        "sex": pl.Series([1, 2, 1, 2, 1, 2, 9, 1] * 20, dtype=pl.Int32),
        "region": ["north", "south", "north", "south", "north", "", "south", "north"] * 20,
        "income": pl.Series([1, 2, 3, 1, 2, 1, 1, 3] * 20, dtype=pl.Int32),
    }
)
TITLES = {"sex": "Sex of the person", "income": "Income class"}
VALUES = {
    "sex": {1: "male", 2: "female", 3: "other"},
    "income": {1: "low", 2: "middle", 3: "high", 4: "very high"},
}


def write(frame: pl.DataFrame, path: Path, **more: Any) -> Path:
    """Write a frame in the format of the file extension."""
    WRITERS[path.suffix](frame, path, **more)
    return path


def write_survey(path: Path, **more: Any) -> Path:
    """Write the survey with its labels, as far as the format supports them."""
    if path.suffix != ".xpt":
        more = {"variable_value_labels": VALUES, **more}
    return write(SURVEY, path, column_labels=TITLES, **more)


def read_all(path: Path, **settings: Any) -> pa.Table:
    """A whole file, with its types resolved."""
    engine = DuckDBEngine(path, **settings)
    try:
        return engine.to_arrow()
    finally:
        engine.close()


def book(path: Path, **sheets: list[list[Any]]) -> Path:
    """A workbook; a text that starts with # becomes an error cell."""
    made = openpyxl.Workbook()
    made.remove(made.active)
    for name, rows in sheets.items():
        sheet = made.create_sheet(name)
        for row in rows:
            sheet.append(row)
        for cell in (cell for row in sheet.iter_rows() for cell in row):
            if isinstance(cell.value, str) and cell.value.startswith("#"):
                cell.data_type = "e"
    made.save(path)
    return path


PEOPLE = [["sex", "region", "income"]] + [
    ["mf"[i % 2], ["north", "south", None][i % 3], 1 + i % 4] for i in range(120)
]

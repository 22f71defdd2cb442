"""The groups of a damaged file as a plain reader of its format finds them.

A reader of damaged files may crash, so each file is read in a process of its own; a file that the
reader refuses, or does not survive, has no reference.
"""

from __future__ import annotations

import math
import re
import sqlite3
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from campaign.generators.tables import PUBLIC, Pair
from campaign.place import Place
from campaign.run import in_fork


def read_plainly(place: Place) -> list[Pair] | None:
    """The public values of every record; None if a plain reader cannot have them."""
    file = next(place.vault.iterdir())
    if file.suffix == ".sqlite":  # Python's own reader neither crashes nor refuses more than ours
        return list(_sqlite(file))
    try:
        found: list[Pair] | None = in_fork(_tried, _READERS[file.suffix], file)
    except RuntimeError:
        return None
    return found


def _tried(read: Callable[[Path], Iterable[Pair]], file: Path) -> list[Pair] | None:
    try:
        return list(read(file))
    except Exception:
        return None


def _parquet(file: Path) -> Iterable[Pair]:
    import pyarrow.parquet as pq  # noqa: PLC0415 - only in processes of their own

    described = pq.ParquetFile(file)
    for number in range(described.num_row_groups):
        group = described.read_row_group(number, columns=[*PUBLIC])
        for place in range(described.metadata.num_columns):
            part = described.metadata.row_group(number).column(place)
            if part.path_in_schema in PUBLIC and part.is_stats_set and part.statistics.has_min_max:
                low, high = part.statistics.min, part.statistics.max
                if not all(low <= one <= high for one in group[part.path_in_schema].to_pylist()):
                    # DuckDB relies on what a file states; nobody can say who is right.
                    raise ValueError("the file contradicts itself")
    return _of_arrow(pq.read_table(str(file)))


def _arrow(file: Path) -> Iterable[Pair]:
    from pyarrow import feather  # noqa: PLC0415

    return _of_arrow(feather.read_table(str(file)))


def _of_arrow(table: Any) -> Iterable[Pair]:
    table.validate(full=True)
    return zip(*(table[name].to_pylist() for name in PUBLIC), strict=True)


# A cell as its writer writes it: one place, one value.
_CELL = re.compile(rb'<c r="([A-Z]+[0-9]+)" t="\w+">(?:<v>[^<]*</v>|<is><t>[^<]*</t></is>)</c>')


def _excel(file: Path) -> Iterable[Pair]:
    import openpyxl  # noqa: PLC0415

    with zipfile.ZipFile(file) as parts:
        text = parts.read("xl/worksheets/sheet1.xml")
    if len(set(_CELL.findall(text))) < text.count(b"<c "):
        raise ValueError  # what two values in one cell mean is for each reader to say
    (sheet,) = openpyxl.load_workbook(file, data_only=True).worksheets
    names, *records = sheet.iter_rows(values_only=True)
    places = [names.index(name) for name in PUBLIC]
    return [tuple(record[at] for at in places) for record in records if any(record)]


def _statistical(file: Path) -> Iterable[Pair]:
    import pyreadstat  # noqa: PLC0415

    readers: dict[str, Any] = {
        ".sav": pyreadstat.read_sav,
        ".zsav": pyreadstat.read_sav,
        ".dta": pyreadstat.read_dta,
        ".xpt": pyreadstat.read_xport,
        ".sas7bdat": pyreadstat.read_sas7bdat,
    }
    found, _ = readers[file.suffix](str(file), output_format="dict")
    return zip(*([_present(value) for value in found[name]] for name in PUBLIC), strict=True)


def _present(value: Any) -> Any:
    """These formats have no missing value but a number that is none."""
    return None if isinstance(value, float) and math.isnan(value) else value


def _sqlite(file: Path) -> Iterable[Pair]:
    base = sqlite3.connect(file)
    base.text_factory = lambda content: content.decode(errors="replace")
    found: list[Pair] = base.execute("SELECT region, age FROM t").fetchall()
    base.close()
    return found


def _duckdb(file: Path) -> Iterable[Pair]:
    import duckdb  # noqa: PLC0415

    with duckdb.connect(str(file), read_only=True) as base:
        found: list[Any] = base.execute("SELECT region, age FROM t").fetchall()
    return found


_READERS: dict[str, Callable[[Path], Iterable[Pair]]] = {
    ".parquet": _parquet,
    ".feather": _arrow,
    ".arrow": _arrow,
    ".xlsx": _excel,
    ".duckdb": _duckdb,
    **dict.fromkeys((".sav", ".zsav", ".dta", ".xpt", ".sas7bdat"), _statistical),
}

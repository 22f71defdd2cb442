"""Shared by the benchmarks: generated tables, the machine, sections of the results."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from pathlib import Path

CACHE = Path(os.environ.get("RECONPRIV_BENCH_DIR", Path(__file__).parent / ".cache"))
# Commands find their modules compiled, as they do after an installation.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
COLUMNS = ("Age", "Gender", "Education", "Marital", "Race", "Workclass", "Occupation")


def census_rows(rows: int, *, spread: bool = False) -> Path:
    """Records drawn with replacement from the census table, all seven columns as text.

    With ``spread``, Age is shifted by up to two years, which doubles the number of cells.
    """
    CACHE.mkdir(parents=True, exist_ok=True)
    path = CACHE / f"census-{rows}{'-spread' if spread else ''}.parquet"
    if not path.exists():
        part = Path(f"{path}.part")
        draw_census([part], rows, spread=spread)
        part.rename(path)
    return path


def draw_census(paths: Sequence[Path], rows: int, *, spread: bool = False) -> None:
    """Write such records, the same ones each time, as Parquet files of about equal size."""
    import duckdb

    from reconpriv import dataset_path

    source = f"'{dataset_path('census_workers')}'"
    connection = duckdb.connect(config={"memory_limit": "1GB"})
    connection.execute("SET enable_progress_bar = false")
    connection.execute("SET preserve_insertion_order = false")
    # As codes the texts need not be hashed again for every row that is written.
    for name in COLUMNS:
        values = f"SELECT DISTINCT {name}::VARCHAR FROM {source} ORDER BY 1"
        connection.execute(f"CREATE TYPE {name}_code AS ENUM ({values})")
    columns = ", ".join(f"{name}::VARCHAR::{name}_code AS {name}" for name in COLUMNS)
    connection.execute(
        f"CREATE TABLE w AS SELECT row_number() OVER () - 1 AS id, {columns} FROM {source}"
    )
    people = connection.execute("SELECT count(*) FROM w").fetchall()[0][0]
    moved = "REPLACE ((Age::VARCHAR::INT + (hash(i * 7 + 1) % 5)::INT - 2)::VARCHAR AS Age)"
    borders = [rows * number // len(paths) for number in range(len(paths) + 1)]
    for path, first, last in zip(paths, borders[:-1], borders[1:], strict=True):
        drawn = f"SELECT range AS i, (hash(range) % {people})::BIGINT AS id"
        connection.execute(
            f"COPY (SELECT * EXCLUDE (i, id) {moved if spread else ''}"
            f" FROM ({drawn} FROM range({first}, {last})) JOIN w USING (id))"
            f" TO '{path}' (FORMAT parquet)"
        )


def machine() -> str:
    """The machine, its load and the versions, on one line."""
    import duckdb
    import numpy
    import pyarrow

    from reconpriv import __version__

    load = os.getloadavg()[0]
    return (
        f"{os.cpu_count()} cores, load {load:.1f}, Python {platform.python_version()},"
        f" reconpriv {__version__}, DuckDB {duckdb.__version__}, PyArrow {pyarrow.__version__},"
        f" numpy {numpy.__version__}"
    )


def write_section(title: str, text: str) -> None:
    """Replace one section of RESULTS.md, leaving the others."""
    path = Path(__file__).parent / "RESULTS.md"
    old = path.read_text(encoding="utf-8") if path.exists() else "# Benchmark results\n"
    head, *sections = old.split("\n## ")
    kept = [section for section in sections if not section.startswith(f"{title}\n")]
    body = "\n## ".join([head.rstrip() + "\n", *(s.rstrip() + "\n" for s in kept)])
    path.write_text(f"{body}\n## {title}\n\n{text.rstrip()}\n", encoding="utf-8")
    print(text)


def met(figure: float, bar: float) -> str:
    return "met" if figure <= bar else "NOT met"

"""Spark says the same as DuckDB about a CSV or groups that were given wrongly."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import reconpriv as rp
from spark_fixtures import PANDAS

pytestmark = [pytest.mark.filterwarnings(PANDAS)]

TABLE = "city,sex,ill\n" + "".join(
    f"{['Zürich', 'Bern'][i % 2]},{'fm'[i % 3 % 2]},{'abc'[i % 5 % 3]}\n" for i in range(60)
)


def refusals(file: Path, **roles: Any) -> set[str]:
    found = set()
    for engine in ("duckdb", "spark"):
        with pytest.raises(rp.ReconprivError) as caught:
            rp.read(file, sensitive="ill", public="all", engine=engine, **roles)
        found.add(str(caught.value))
    return found


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (TABLE.encode("latin-1"), "iconv -f ISO-8859-1 -t UTF-8 t.csv > t-utf8.csv"),
        (b"sep=,\n" + TABLE.encode(), "tail -n +2 t.csv > t-table.csv"),
        (b"People\n\n" + TABLE.encode(), "tail -n +3 t.csv > t-table.csv"),
    ],
)
def test_a_csv_gets_the_same_advice(spark: Any, tmp_path: Path, content: bytes, words: str) -> None:
    file = tmp_path / "t.csv"
    file.write_bytes(content)
    (message,) = refusals(file)
    assert message.endswith(words)


def test_values_of_groups_that_do_not_occur_are_named(spark: Any, tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    file.write_text(TABLE, encoding="utf-8")
    (message,) = refusals(file, group={"city": {"bern": "capital", "*": "other"}})
    assert message.startswith("No value that the groups of 'city' list occurs")
    notes = set()
    for engine in ("duckdb", "spark"):
        group = {"city": {"Bern": "capital", "Zurich": "east", "*": "other"}}
        with (
            pytest.warns(rp.ReconprivWarning),
            rp.read(file, sensitive="ill", public="all", group=group, engine=engine) as table,
        ):
            notes.add(table.warnings)
    ((note,),) = notes
    assert "'Zurich'" in note and "'Bern'" not in note

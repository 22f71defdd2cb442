"""CSV files that threads read in pieces: no record is lost, whatever the texts look like."""

import csv
from collections import Counter
from random import Random

import pytest

import reconpriv as rp
from reconpriv.engines.duckdb import csv_texts
from reconpriv.engines.duckdb.csv_texts import on_lines_of_their_own

TEXTS = ("x", "q1,3,a\n" * 20, "q1,3,a\n" * 7, 'say "hi"\n', '"\n",",\n"', "1,2\n3,4,5\n", "é\n\n")


def records_of(seed, number, texts=TEXTS):
    rng = Random(seed)
    return [(rng.choice(texts), str(i % 7), "abc"[i % 3]) for i in range(number)]


def write(path, records, **how):
    with path.open("w", newline="", encoding="utf-8") as stream:
        csv.writer(stream, **how).writerows([("pub", "b", "sens"), *records])


@pytest.fixture
def small_pieces(monkeypatch):
    """As if the file were a thousand times as large."""
    pieces = "parallel=true, buffer_size=20000, max_line_size=10000"
    monkeypatch.setattr(csv_texts, "_IN_PIECES", pieces)


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("quoting", [csv.QUOTE_MINIMAL, csv.QUOTE_ALL])
# With seed 10, DuckDB's threads lose 247 of the 1,000 records and say nothing.
@pytest.mark.parametrize("seed", [10, 11])
def test_texts_of_several_lines_that_look_like_records(tmp_path, small_pieces, seed, quoting, end):
    records = records_of(seed, 1_000)
    write(tmp_path / "a.csv", records, lineterminator=end, quoting=quoting)
    with rp.read(tmp_path / "a.csv", sensitive="sens", public="all") as table:
        assert table.schema.records == 1_000
        for (text, number, value), count in Counter(records).items():
            assert table.count(pub=text, b=int(number), sens=value) == count


@pytest.mark.parametrize("texts", [("x", "y"), ("x,y", "z")], ids=["plain", "quoted"])
def test_other_files_are_read_in_pieces(tmp_path, monkeypatch, small_pieces, texts):
    monkeypatch.setattr(csv_texts, "_IN_ONE", "parallel=nonsense")
    records = records_of(1, 5_000, texts)
    write(tmp_path / "a.csv", records, lineterminator="\n")
    with rp.read(tmp_path / "a.csv", sensitive="sens", public="all") as table:
        assert table.count(pub=texts[0]) == sum(text == texts[0] for text, *_ in records)


@pytest.mark.parametrize(
    ("text", "records", "sure"),
    [
        ("a,s\n1,x\n2,y\n", 2, True),
        ("a,s\n1,x\n2,y", 2, True),
        ("a,s\n1,x\n2,y\n", 1, True),  # without quotes there is nothing to doubt
        ('a,s\n"1",x\n2,y\n', 2, True),
        ('a,s\n"1",x\r\n2,y', 2, True),
        ('a,s\n"1\n",x\n2,y\n', 2, False),
        ('a,s\n"1\n",x\n2,y\n', 3, True),
        ('a,s\n"1",x\n\n2,y\n', 2, False),
        ('a,s\r"1",x\r2,y\r', 2, False),
    ],
)
def test_lines_and_records(tmp_path, text, records, sure):
    files = [tmp_path / "a.csv", tmp_path / "b.csv"]
    for file in files:
        file.write_bytes(text.encode())
    assert on_lines_of_their_own(list(map(str, files[:1])), records) is sure
    assert on_lines_of_their_own(list(map(str, files)), 2 * records) is sure

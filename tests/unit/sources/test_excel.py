"""Spreadsheets as inputs: the first row names the columns, and all cells determine their types."""

import datetime as dt
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import reconpriv as rp
from formats_fixtures import PEOPLE, book, read_all


def test_a_sheet_gives_the_same_release_as_parquet(tmp_path, key, policy, files_of):
    columns = zip(*PEOPLE[1:], strict=True)
    table = pa.table(dict(zip(PEOPLE[0], map(list, columns), strict=True)))
    pq.write_table(table, tmp_path / "a.parquet")
    sheet = book(tmp_path / "a.xlsx", People=PEOPLE)
    for source, out in ((tmp_path / "a.parquet", "one"), (sheet, "two")):
        with rp.read(source, sensitive="income", public="all") as opened:
            opened.publish(policy, tmp_path / out, key=key)
    assert files_of(tmp_path / "one") == files_of(tmp_path / "two")


def test_types_come_from_all_cells(tmp_path):
    rows = [
        ["whole", "part", "text", "mixed", "day", "moment", "clock", "length", "flag", "none"],
        [1, 1, "02139", 7, dt.date(2024, 2, 29), dt.datetime(2024, 1, 1, 5), dt.time(9, 30),
         dt.timedelta(hours=30), True, None],
        [2, 2.5, " x", "A7", dt.date(1999, 1, 1), dt.datetime(2024, 1, 2), dt.time(0, 0, 1),
         dt.timedelta(minutes=5), False, None],
    ]  # fmt: skip
    found = read_all(book(tmp_path / "a.xlsx", s=rows))
    assert found.to_pylist()[0] == {
        "whole": 1, "part": 1.0, "text": "02139", "mixed": "7", "day": dt.date(2024, 2, 29),
        "moment": dt.datetime(2024, 1, 1, 5), "clock": dt.time(9, 30), "length": 108000.0,
        "flag": True, "none": None,
    }  # fmt: skip
    assert found["text"].to_pylist() == ["02139", " x"]


def test_a_type_is_not_guessed_from_the_first_rows(tmp_path):
    rows = [["a", "b"], *([i, i] for i in range(1500)), ["x", 0.5]]
    found = read_all(book(tmp_path / "a.xlsx", s=rows))
    assert (found["a"][0].as_py(), found["b"][0].as_py()) == ("0", 0.0)
    assert found["a"][-1].as_py() == "x"


def test_a_sheet_is_chosen_by_its_name(tmp_path, cli):
    path = book(tmp_path / "a.xlsx", Notes=[["x"], [1]], People=PEOPLE)
    done = cli("audit", path, "-s", "income", "--public=all", "--table", "People", "--json")
    assert done.code in (0, 1), done.err
    done = cli("audit", path, "-s", "income", "--public=all")
    assert (done.code, "Choose one with --table. It has: Notes, People." in done.err) == (2, True)
    with pytest.raises(rp.errors.InputError, match="has no sheet 'people'"):
        rp.read(path, sensitive="income", public="all", table="people")
    assert rp.describe(path, table="People").records == 120


def test_an_error_in_a_cell_is_refused_where_its_column_is_asked_for(tmp_path):
    rows = [["a", "b", "c"], [1, 2, "x"], [2, "#DIV/0!", "y"], [1, 3, "#N/A"]]
    path = book(tmp_path / "a.xlsx", s=rows)
    for column, row in (("b", 3), ("c", 4)):
        with pytest.raises(rp.errors.InputError, match=f"'{column}'.* an error in row {row}"):
            rp.read(path, sensitive="a", public=[column])
    rp.read(path, sensitive="a", public=[]).close()


def test_a_formula_without_a_stored_result_is_warned_of(tmp_path, cli):
    rows = [["a", "b", "y"], *([f"=1+{i}", i % 2, i % 3] for i in range(60))]
    path = book(tmp_path / "a.xlsx", s=rows)
    with pytest.warns(rp.ReconprivWarning, match="'a' has no value in any record. If it holds for"):
        rp.read(path, sensitive="y", public="all").close()
    done = cli("audit", path, "-s", "y", "--public=all")
    assert done.err.count("'a' has no value") == 1
    rp.read(path, sensitive="y", public="all", drop="a").close()  # nothing to warn of


def test_truth_is_no_number(tmp_path):
    rows = [["a", "b", "c"], [True, 1, True], [1, 2.5, False], [0, None, None], [False, 3, True]]
    found = read_all(book(tmp_path / "a.xlsx", s=rows))
    assert found["a"].to_pylist() == ["true", "1", "0", "false"]
    assert found["b"].to_pylist() == [1.0, 2.5, None, 3.0]
    assert found["c"].to_pylist() == [True, False, None, True]
    moved = read_all(book(tmp_path / "b.xlsx", s=[[], *([None, *row] for row in rows)]))
    assert moved.equals(found)


def test_a_table_that_begins_too_far_down(tmp_path):
    path = book(tmp_path / "a.xlsx", s=[[] for _ in range(60)] + PEOPLE)
    with pytest.raises(rp.errors.InputError, match="first 50 rows of sheet 's'"):
        rp.read(path, sensitive="income", public="all")


def test_names_must_be_there_and_differ(tmp_path):
    for rows, words in (
        ([["a", "a"], [1, 2]], "two columns called 'a'"),
        ([["a", None], [1, 2]], "Column 2 of sheet 's' has no name"),
        ([], "is empty"),
        ([["a", "b"]], "empty"),
    ):
        with pytest.raises(rp.errors.InputError, match=words):
            rp.read(book(tmp_path / "a.xlsx", s=rows), sensitive="a", public="all")


def test_what_was_formatted_but_never_filled_is_no_column(tmp_path):
    path = book(tmp_path / "a.xlsx", s=[["a", None, "b"], [1, None, 2], [None] * 3, [3, None, 4]])
    assert read_all(path).to_pylist() == [
        {"a": 1, "b": 2}, {"a": None, "b": None}, {"a": 3, "b": 4},
    ]  # fmt: skip


def test_a_table_may_begin_further_down_and_to_the_right(tmp_path):
    rows = [[], [], [None, "a", "b"], [None, 1, 2], [None, 3, 4], [None, 5, "#N/A"]]
    path = book(tmp_path / "a.xlsx", s=rows)
    with pytest.raises(rp.errors.InputError, match=r"'b'.* an error in row 6"):
        read_all(path)
    assert read_all(book(path, s=rows[:-1])).to_pylist() == [{"a": 1, "b": 2}, {"a": 3, "b": 4}]


def test_only_one_spreadsheet_at_a_time_and_no_labels(tmp_path):
    path = book(tmp_path / "a.xlsx", s=PEOPLE)
    with pytest.raises(rp.errors.InputError, match="one at a time"):
        rp.read([path, path], sensitive="income", public="all")
    with pytest.raises(rp.errors.InputError, match="value labels"):
        rp.read(path, sensitive="income", public="all", labels="apply")


def test_nothing_is_said_of_empty_columns(tmp_path, process):
    rows = [["a", "b", "none"], *([i % 3, i % 2, None] for i in range(60))]
    done = process("audit", book(tmp_path / "a.xlsx", s=rows), "-s", "a", "--public=all", "--json")
    assert done.code in (0, 1)
    assert "dtype" not in done.err


def test_without_the_extra_one_sentence_names_it(tmp_path, monkeypatch):
    path = book(tmp_path / "a.xlsx", s=PEOPLE)
    monkeypatch.setitem(sys.modules, "fastexcel", None)
    with pytest.raises(rp.errors.InputError, match=r"-m pip install '.*pyreadstat>="):
        rp.read(path, sensitive="income", public="all")

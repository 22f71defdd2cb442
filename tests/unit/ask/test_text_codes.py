"""Text codes that look like numbers: sorted by number, never compared letter by letter."""

import numpy as np
import pyarrow as pa
import pytest

import reconpriv as rp
from reconpriv.ask.ordering import first_for_display, sorted_for_display
from reconpriv.ask.text_codes import looks_numeric
from reconpriv.ask.values import Values
from reconpriv.errors import InputError

CODES = ["1", "2", "3", "9", "10", "11", "21", "-3", "4.5", None]
ORDERED = ["-3", "1", "2", "3", "4.5", "9", "10", "11", "21", None]
DIAGNOSES = ["1", "2", "10", "11", "100"]


def records():
    rng = np.random.default_rng(5)
    n = 2_000
    return pa.table(
        {
            "code": pa.array([CODES[i] for i in rng.integers(0, len(CODES), n)]),
            "padded": pa.array([["021", "21", "7"][i] for i in rng.integers(0, 3, n)]),
            "name": pa.array([["Ann", "Bob", "7up"][i] for i in rng.integers(0, 3, n)]),
            "ward": pa.array([["3", "21", "100", "unknown"][i] for i in rng.integers(0, 4, n)]),
            "diagnosis": pa.array([DIAGNOSES[i] for i in rng.integers(0, len(DIAGNOSES), n)]),
        }
    )


@pytest.fixture(scope="module")
def table():
    with rp.read(records(), sensitive="diagnosis", public="all") as opened:
        yield opened


@pytest.fixture(scope="module")
def release(table, tmp_path_factory):
    folder = tmp_path_factory.mktemp("codes") / "release"
    policy = rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3, unattainable="one-trial")
    with pytest.warns(rp.ReconprivWarning):
        table.publish(policy, folder, key=rp.Key.test())
        return rp.open(folder)


def true_count(keep):
    return sum(keep(row) for row in records().to_pylist())


@pytest.mark.parametrize(
    ("values", "numeric"),
    [
        (["1", "10", "2"], True), (["021", "-3", "4.5", None], True), (["+7"], True),
        (["1", "x"], False), ([""], False), ([None], False), ([], False), ([1, 2], False),
        (["1e3"], False), (["1,5"], False), ([" 1"], False), (["1."], False), (["1\n"], False),
        (["٣"], False), (["nan"], False),
    ],
)  # fmt: skip
def test_what_looks_like_a_number(values, numeric):
    assert looks_numeric(values) is numeric
    if all(value is None or isinstance(value, str) for value in values):
        assert Values(pa.array(values, pa.string())).numeric_text is numeric


def test_lists_are_sorted_by_number_and_other_text_is_not():
    assert sorted_for_display(CODES) == ORDERED
    assert sorted_for_display(["b", None, "10", "9"]) == ["10", "9", "b", None]
    assert sorted_for_display([3, None, 1.5, float("nan")])[:2] == [1.5, 3]
    ordered = Values(pa.array(sorted(c for c in CODES if c)))
    assert first_for_display(ordered, 3) == ["-3", "1", "2"]


def test_tables_are_sorted_by_number(release):
    by_code = release.sql("SELECT code, count(*) FROM release GROUP BY code")
    assert [labels["code"] for labels, _ in by_code] == ORDERED
    assert [labels["code"] for labels, _ in release.crosstab(["code"])] == ORDERED
    assert [labels["diagnosis"] for labels, _ in release.frequencies()] == DIAGNOSES
    both = release.crosstab(["diagnosis", "name"])
    assert [tuple(labels.values()) for labels, _ in both][:4] == [
        ("1", "7up"), ("2", "7up"), ("10", "7up"), ("11", "7up"),
    ]  # fmt: skip
    exact = {labels["code"]: e.count for labels, e in by_code}
    assert exact["10"] == true_count(lambda row: row["code"] == "10")


def test_info_and_report_list_codes_by_number(release, cli, tmp_path):
    assert release.info()["domain"] == DIAGNOSES == release.domain
    shown = cli("info", release.path)
    assert "1, 2, 10, 11, 100" in " ".join(shown.out.split())
    release.report(tmp_path / "r.html")
    assert "-3, 1, 2, 3, 4.5, 9, 10, 11, …" in (tmp_path / "r.html").read_text()


def test_the_files_keep_the_order_of_the_text(release):
    assert release.manifest["reconpriv"]["domain"] == sorted(DIAGNOSES)


RANGES = [
    "code >= '21'", "code > 3", "code < 5", "'21' <= code", "code BETWEEN '2' AND '21'",
    "code NOT BETWEEN 2 AND 21", "name = 'Ann' OR code >= '21'", "NOT (code < '3')",
    "(code) > '1'", "CASE WHEN code > '2' THEN true ELSE false END", "diagnosis >= '2'",
    "(code, name) > ('2', 'Ann')", "code > padded",
]  # fmt: skip


@pytest.mark.parametrize("condition", RANGES)
def test_a_range_over_codes_is_refused_with_two_ways_out(release, table, condition):
    for ask in (release.count, table.count):
        with pytest.raises(InputError, match="holds numbers as text") as caught:
            ask(condition)
        assert " IN (" in caught.value.hint and "CAST(" in caught.value.hint


@pytest.mark.parametrize(
    "condition", ["ward >= '21'", "ward > 21", "ward BETWEEN '3' AND '100'", "NOT '21' < ward"]
)
def test_a_range_over_codes_with_a_word_among_them_is_refused(release, table, condition):
    for ask in (release.count, table.count):
        with pytest.raises(InputError, match="holds numbers and other text, so a range") as caught:
            ask(condition)
        assert "ward IN ('3', '21', …)" in caught.value.hint
        assert "TRY_CAST(ward AS BIGINT)" in caught.value.hint


@pytest.mark.parametrize(
    ("condition", "keep"),
    [
        ("ward >= 'a'", lambda row: row["ward"] == "unknown"),
        ("ward = '21'", lambda row: row["ward"] == "21"),
        ("TRY_CAST(ward AS BIGINT) >= 21", lambda row: row["ward"] in ("21", "100")),
        ("name >= '7'", lambda row: True),
        ("name >= 'Ann'", lambda row: row["name"] >= "Ann"),
        ("name BETWEEN 'A' AND 'B'", lambda row: "A" <= row["name"] <= "B"),
        ("CAST(code AS DOUBLE) >= 4", lambda row: row["code"] and float(row["code"]) >= 4),
        ("code = 21", lambda row: row["code"] == "21"),
        ("21 = code", lambda row: row["code"] == "21"),
        ("code = -3", lambda row: row["code"] == "-3"),
        ("code = 4.50", lambda row: row["code"] == "4.5"),
        ("code <> 21", lambda row: row["code"] not in (None, "21")),
        ("code IS DISTINCT FROM 21", lambda row: row["code"] != "21"),
        ("code IN (21, 10, '9')", lambda row: row["code"] in ("21", "10", "9")),
        ("code NOT IN (21, 10)", lambda row: row["code"] not in (None, "21", "10")),
        ("NOT (code = 21 OR code = '1')", lambda row: row["code"] not in (None, "21", "1")),
        ("padded = 7", lambda row: row["padded"] == "7"),
        ("padded = '021'", lambda row: row["padded"] == "021"),
        ("diagnosis = 100", lambda row: row["diagnosis"] == "100"),
        ("diagnosis IN (1, 10) AND code = 9",
         lambda row: row["diagnosis"] in ("1", "10") and row["code"] == "9"),
    ],
)  # fmt: skip
def test_a_number_means_the_code_that_spells_it(release, table, condition, keep):
    assert table.count(condition) == true_count(lambda row: bool(keep(row)))
    answer = release.count(condition)
    if "diagnosis" not in condition:
        assert answer.exact and answer.count == table.count(condition)


def test_numbers_are_understood_as_keywords(release, table):
    assert table.count(code=21) == table.count(code="21") == table.count("code = 21")
    assert table.count(code=[21, 4.5]) == table.count("code IN ('21', '4.5')")
    assert release.count(padded=7).count == table.count(padded="7")
    with pytest.raises(InputError, match="may mean '021', '21'"):
        release.count(padded=21)
    with pytest.raises(InputError, match="has no value 99"):
        release.count(code=99)


@pytest.mark.parametrize("condition", ["padded = 21", "padded IN (7, 21)", "padded <> 21"])
def test_a_number_that_two_codes_spell_is_refused(release, condition):
    with pytest.raises(InputError, match="21 may mean '021', '21'") as caught:
        release.count(condition)
    assert "in quotes" in caught.value.hint


def test_an_unknown_code_is_refused_with_codes_in_order(release):
    known = r"Known: -3, 1, 2, 3, 4\.5, 9, 10, 11"
    with pytest.raises(InputError, match=rf"has no value '99'\. {known}"):
        release.count("code = 99")
    with pytest.raises(InputError, match=r"has no value '010'\. Did you mean '10'\?"):
        release.count("code = '010'")


@pytest.mark.parametrize("condition", ["name = 7", "name > 7", "name IN ('Ann', 7)"])
def test_a_number_for_other_text_is_refused(release, condition):
    with pytest.raises(InputError, match=r"Column 'name' holds text; 7 is a number\. Write '7'"):
        release.count(condition)

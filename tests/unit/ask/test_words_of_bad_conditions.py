"""Bad conditions and bad --sql texts: one sentence each, never in another program's words."""

import datetime as dt
import re

import pyarrow as pa
import pytest

import reconpriv as rp
from reconpriv.errors import InputError, ReconprivError

FOREIGN = re.compile(
    r"Binder|Parser Error|Catalog|LINE \d|Candidate|\^|Conversion|Error:|exception|INTEGER|VARCHAR"
    r"|BIGINT|_LITERAL|sqlglot|<class|explicit cast|\{|\\n|\n|row_position|reconpriv_table|None"
)


def clean(message, quoted):
    """No foreign word, but for what the user wrote."""
    words = message.replace(repr(quoted), "")
    # An expression that is shown has its columns quoted; CAST is a hint of ours.
    words = re.sub(r"The (condition|expression) (['\"]).*?\2 cannot", "", words)
    words = words.replace("CAST(… AS VARCHAR)", "").replace("AS BIGINT)", "")
    assert not FOREIGN.search(words), message
    assert message.endswith((".", "?", "…")), message


@pytest.fixture(scope="module")
def table():
    records = pa.table(
        {
            "age": [20, 30, 40, 50] * 20,
            "name": ["Ann", "Bob"] * 40,
            "code": ["1", "10", "2", "3"] * 20,
            "day": [dt.date(2020, 1, 1), dt.date(2021, 1, 1)] * 40,
            "fit": [True, False] * 40,
            "ill": ["flu", "none", "none", "flu", "flu"] * 16,
        }
    )
    with rp.read(records, sensitive="ill", public="all") as opened:
        yield opened


CONDITIONS = [
    "age >", "age > > 'x'", "age = = 3", "AND age = 3", "(age = 3", "age = 3)", "age IN (",
    "age BETWEEN 3", "name = 'Ann", '"name = 1', "age = 3 /* x", "$$abc", "CASE WHEN",
    "cast(age as)",
    "agee = 3", "zzzzzz = 3", "release.agee = 3", "other.age = 3", "nosuch(age) = 3",
    "cast(age AS foo) = 3", "age = 'old'", "age > 'old'", "name > 3", "name = 3", "day > 3",
    "day = 'someday'", "day > 'someday'", "fit > 3 AND day > 4", "age + name = 3", "name + 1 = 2",
    "name", "age LIKE 'x'", "name LIKE 3", "substr(age) = 'x'", "upper(name, name) = 'x'",
    "day + name = day", "sum(age) > 3", "random() > 0.5", "age IN (SELECT 3)", "age = ?",
    "age = $1",
    "CAST(name AS INTEGER) = 3", "CAST(name AS DATE) = day", "regexp_matches(name, '(')",
    "CASE WHEN age > 3 THEN 'a' ELSE 3 END = name", "sqrt(-age) > 1", "age = 3; DROP TABLE x",
    "name = 'Anne' OR", "code > '3'", "ill = 'flue'", "((((((((((", "age IN (1, 'x')", "",
    "age = 20 ORDER BY age", "age << 100 = 1", "strptime(name, '%Y') = day", "fit = 'perhaps'",
    "list_value(age) = 3", "(age, name) > 3", "age::DATE > day", "interval '1 day' > age",
]  # fmt: skip


@pytest.mark.parametrize("condition", CONDITIONS)
def test_a_bad_condition_is_refused_in_our_words(table, condition):
    try:
        table.count(condition)
    except ReconprivError as error:
        clean(str(error), condition)
    else:
        # Odd, but with a meaning: shifts, and booleans that numbers stand for.
        assert condition in ("age << 100 = 1", "sqrt(-age) > 1", "age > > 'x'"), condition


@pytest.mark.parametrize(
    ("condition", "shown"),
    [
        ("age LIKE '1%'", "The condition age LIKE '1%' cannot"),
        ('"age" LIKE \'"x"\'', "The condition age LIKE '\"x\"' cannot"),
        ("name + 1 = 2", "The condition name + 1 = 2 cannot"),
    ],
)
def test_a_condition_is_shown_as_a_user_writes_it(table, condition, shown):
    with pytest.raises(ReconprivError) as caught:
        table.count(condition)
    assert shown in str(caught.value)


QUERIES = [
    "SELEC * FROM input", "SELECT * FORM input", "SELECT agee, ill FROM input",
    "SELECT * FROM inputt", "SELECT *, nosuch(age) FROM input", "SELECT *, age + name FROM input",
    "SELECT * FROM input WHERE name > 3", "SELECT *, substr(age) FROM input",
    "SELECT ill, count(*) FROM input", "SELECT *, 'abc FROM input",
    "SELECT ill, sum(name) FROM input",
    "SELECT * EXCLUDE (agee) FROM input", "SELECT * REPLACE (1 AS agee) FROM input",
    "SELECT * REPLACE (name::INT AS name) FROM input", "SELECT ill, x.age FROM input",
    "SELECT ill, cast(age AS foo) FROM input", "SELECT * FROM input WHERE name",
    "SELECT * FROM input ORDER BY zz", "SELECT * FROM input JOIN other USING (age)",
    "SELECT ill FROM input UNION SELECT 1, 2", "SELECT *, (SELECT 1, 2) FROM input",
    "SELECT * FROM input WHERE count(*) > 3", "SELECT ?, ill FROM input", "SELECT", "",
    "SELECT * FROM read_csv('nofile.csv')", "SELECT *, regexp_matches(name, '(') FROM input",
    "SELECT * FROM input LIMIT -1", "SELECT *, unnest(age) FROM input",
    "SELECT *, age LIKE 'x' FROM input",
    "SELECT * REPLACE (strptime(name, '%Y') AS name) FROM input", "DROP TABLE input",
]  # fmt: skip


@pytest.mark.parametrize("query", QUERIES)
def test_a_bad_sql_text_is_refused_in_our_words(query, tmp_path, cli):
    file = tmp_path / "t.csv"
    file.write_text("age,name,ill\n" + "20,Ann-secret,flu\n30,Bob,none\n" * 10)
    done = cli("audit", file, "-s", "ill", "--public=all", "--sql", query)
    assert done.code == 2, done.out
    assert done.err.startswith("error: ") and done.err.count("\n") == 1
    assert "secret" not in done.err and str(tmp_path) not in done.err
    clean(done.err.removeprefix("error: ").strip(), query)


@pytest.mark.parametrize(
    ("condition", "place"),
    [
        ("age = = 3", "near character 7"),
        ("age = 3)", "near character 8"),
        ("name = 'Ann", "near character 8: a quotation is never closed"),
        ("name = 'Ann' AND\n  age = = 3", "near line 2, character 9"),
        (
            "name = 'Ann'\nAND age IN (3\nAND (code = 'x",
            "near line 3, character 13: a quotation is never closed",
        ),
        ("  age = = 3", "near character 9"),
        ("\nage = = 3", "near character 7"),
    ],
)  # fmt: skip
def test_a_place_counts_in_what_was_typed(table, condition, place):
    with pytest.raises(InputError, match=rf"The SQL cannot be parsed {place}\. Supported"):
        table.count(condition)


@pytest.mark.parametrize(
    ("query", "place"),
    [
        ("SELECT agee, ill FROM input", "near character 8: there is no column 'agee'. Did you mean"
         " 'age'?"),
        ("  SELECT agee, ill FROM input", "near character 10: "),
        ("SELECT age, ill\nFROM input\nWHERE nname = 'x'", "near line 3, character 7: "),
        ("SELECT 'äöü' AS a, agee, ill FROM input", "near character 20: "),
        ("SELECT * FORM input", "near character 15: it cannot be parsed"),
        ("SELECT *, nosuch(age) FROM input", "near character 11: there is no function 'nosuch'."),
        ("SELECT * FROM imput", "near character 15: there is no table 'imput'. The table is called"
         " input."),
        ("SELECT * FROM input WHERE name > 3",
         "near character 27: text cannot be compared with a whole number."),
    ],
)  # fmt: skip
def test_a_place_in_sql_counts_in_what_was_typed(query, place, tmp_path, cli):
    file = tmp_path / "t.csv"
    file.write_text("age,name,ill\n" + "20,Ann,flu\n30,Bob,none\n" * 10)
    done = cli("audit", file, "-s", "ill", "--public=all", "--sql", query)
    assert f"The SQL query does not work {place}" in done.err


def test_a_name_with_blanks_goes_in_double_quotes():
    people = pa.table({"place of birth": ["Aa", "Bb"] * 30, "ill": ["flu", "none", "flu"] * 20})
    with rp.read(people, sensitive="ill", public="all") as table:
        with pytest.raises(InputError, match="blanks or signs in it goes in double quotes"):
            table.count("place of birth = 'Aa'")
        assert table.count("\"place of birth\" = 'Aa'") == 30


def test_a_place_in_a_query_and_in_a_batch_file(tmp_path, table, cli):
    folder = tmp_path / "release"
    policy = rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3, unattainable="one-trial")
    table.publish(policy, folder, key=rp.Key.test())
    bad = "SELECT count(*) FROM release WHERE age = = 3"
    place = "The SQL cannot be parsed near character 42."
    assert place in cli("query", folder, bad).err
    batch = tmp_path / "batch.csv"
    batch.write_text(f"sql\nSELECT count(*) FROM release\n{bad}\n")
    assert f"Line 3 of 'batch.csv': {place}" in cli("query", folder, "--batch", batch).err

"""Files that anyone may have made: refused in one sentence, or read like any other."""

import io
import json
import os
import random
import zipfile

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.ipc
import pyarrow.parquet as pq
import pytest
from pyarrow import feather

import reconpriv as rp
from formats_fixtures import PEOPLE, WRITERS, book, write_survey
from reconpriv.errors import InputError
from reconpriv.sources import arrow_files
from refusals import check_sentence
from repository import DATA

LINES = [f"north,{20 + i // 20},{'abc'[i % 3]}" for i in range(60)]
TABLE = "\n".join(["region,age,income", *LINES]) + "\n"
VALUES = {"region": ["north", "south"] * 30, "age": [1, 2] * 30, "income": ["good", "poor"] * 30}
PLAIN = pa.table(VALUES)
CODED = pa.table(
    {name: pa.array(VALUES[name]).dictionary_encode() for name in ("region", "income")}
)


def last(content, old, new):
    """The footer, at the end, repeats the schema."""
    at = content.rindex(old)
    return content[:at] + new + content[at + len(old) :]


def number(value, size):
    return value.to_bytes(size, "little")


# What is damaged, how, and what Arrow says of it.
ARROW = {
    "an unknown dictionary": (
        CODED,
        lambda content: last(content, number(1, 8), number(9, 8)),
        pa.ArrowKeyError,
    ),
    "a code without a value": (
        CODED,
        lambda content: last(content, number(0, 4) + number(1, 4), number(0, 4) + number(7, 4)),
        pa.ArrowInvalid,
    ),
    "integers of 128 bits": (
        PLAIN,
        lambda content: last(content, number(64, 4), number(128, 4)),
        pa.ArrowNotImplementedError,
    ),
    "a name that is not UTF-8": (
        PLAIN,
        lambda content: content.replace(b"region", b"reg\xffon"),
        UnicodeDecodeError,
    ),
    "a text that is not UTF-8": (
        PLAIN,
        lambda content: content.replace(b"northsouth", b"n\xffrthsouth", 1),
        pa.ArrowInvalid,
    ),
    "a text in a dictionary that is not UTF-8": (
        CODED,
        lambda content: content.replace(b"northsouth", b"n\xffrthsouth", 1),
        pa.ArrowInvalid,
    ),
    "offsets that leave the buffer": (
        PLAIN,
        lambda content: content.replace(
            number(5, 4) + number(10, 4), number(5, 4) + b"\xff\xff\xff\x7f", 1
        ),
        pa.ArrowInvalid,
    ),
}


def ipc(table):
    """The bytes of an Arrow file."""
    file = io.BytesIO()
    with pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)
    return file.getvalue()


def read_plainly(file):
    table = pa.ipc.open_file(file).read_all()
    table.validate(full=True)
    assert table.schema.names
    table.to_pylist()


@pytest.mark.parametrize("name", ARROW)
def test_arrow_itself_stumbles_over_a_damaged_file(name):
    table, damage, says = ARROW[name]
    content = ipc(table)
    read_plainly(pa.BufferReader(content))
    assert damage(content) != content
    with pytest.raises(says):
        read_plainly(pa.BufferReader(damage(content)))


def sheet(folder, change=lambda content: content):
    """A workbook, uncompressed, with its sheet changed."""
    with zipfile.ZipFile(book(folder / "good.xlsx", People=PEOPLE)) as old:
        parts = {name: old.read(name) for name in old.namelist()}
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as new:
        for name, content in parts.items():
            new.writestr(name, change(content) if name.endswith("sheet1.xml") else content)
    return file.getvalue()


def moved(folder):
    """A flipped bit puts a value into another column; the reader looks at no checksum."""
    content = sheet(folder)
    assert content.count(b'r="C5"') == 1
    return content.replace(b'r="C5"', b'r="B5"')


def cut(ending):
    def made(folder):
        whole = DATA / "iris.sas7bdat"
        if ending in WRITERS:
            whole = write_survey(folder / f"good{ending}")
        content = whole.read_bytes()
        return content[: len(content) * 2 // 3]

    return made


# The name of a file, what it holds or what makes that, and words of the refusal.
XLSX = "is truncated, protected by a password, or not a spreadsheet. Open it and save it again."
HOSTILE = {
    "a very long name": ("t.csv", TABLE.replace("region", "x" * 140_000), "header"),
    "a long name": ("t.csv", TABLE.replace("region", "x" * 20_000), "Rename it."),
    "a NUL in a name": ("t.csv", TABLE.replace("region", "re\0gion"), "Rename it."),
    "an open quote": ("t.csv", '"' + TABLE, "header"),
    "an open quote, many lines": ("t.csv", '"' + TABLE + "n,1,a\n" * 3_000, "header"),
    **{
        name: ("t.arrow", damage(ipc(table)), "t.arrow is damaged, or is not an Arrow file. Fetch")
        for name, (table, damage, _) in ARROW.items()
    },
    "an empty sheet": ("t.xlsx", b"", XLSX),
    "the mark of a sheet": ("t.xlsx", b"PK\3\4", XLSX),
    "half a sheet": ("t.xlsx", lambda folder: sheet(folder)[:3000], XLSX),
    "broken XML": (
        "t.xlsx", lambda folder: sheet(folder, lambda text: text.replace(b"</row>", b"</rxw>", 1)),
        XLSX,
    ),
    "a value in another column": ("t.xlsx", moved, XLSX),
    **{
        f"{damage} {ending}": (f"t{ending}", content, f"t{ending} ")
        for ending in (*WRITERS, ".sas7bdat")
        for damage, content in (
            ("cut", cut(ending)), ("junk", b"sex,income\n1,2\n" * 99), ("empty", b""),
        )
    },
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file_is_refused_in_one_sentence(name, cli, tmp_path, scratch):
    called, content, words = HOSTILE[name]
    file = tmp_path / called
    content = content(tmp_path) if callable(content) else content
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    for command in (["audit", file, "--no-columns"], ["publish", file, tmp_path / "out"]):
        done = cli(*command, "-s", "income", "--public=all")
        assert done.code == 2, done
        check_sentence(done.err)
        assert len(done.err) < 600 and words in done.err and str(tmp_path) not in done.err
    assert list(scratch.iterdir()) == [] and not (tmp_path / "out").exists()


@pytest.fixture
def refused(cli, tmp_path):
    def run(content, *more, sensitive="income"):
        file = tmp_path / "table.csv"
        file.write_text(content)
        outcome = cli("audit", file, "-s", sensitive, "--public=all", "--no-columns", *more)
        assert outcome.code == 2, outcome
        check_sentence(outcome.err)
        return outcome.err

    return run


def test_a_header_without_values_does_not_read_the_whole_file(refused, monkeypatch):
    monkeypatch.setattr("reconpriv.engines.duckdb.csv_texts._LONGEST_HEADER", 1_000)
    assert "never closed" in refused('"' + TABLE * 10)


def test_control_characters_do_not_reach_a_message(refused, cli, tmp_path):
    odd = TABLE.replace("region", "re\x1b[31mgion")
    assert "\x1b" not in refused(odd, sensitive="nothing")
    file = tmp_path / "values.csv"
    file.write_text(TABLE.replace("north", "no\x1b[31mrth"))
    outcome = cli("audit", file, "-s", "income", "--public=all")
    assert "no\\x1b[31mrth" in outcome.out
    assert "\x1b" not in outcome.out


@pytest.mark.parametrize("form", ["parquet", "csv", "cells"])
def test_a_nul_in_a_name_is_refused_before_anything_is_published(cli, tmp_path, form):
    """It was published, and then the release could not be asked."""
    file = tmp_path / "table.csv"
    for damaged in ("\0region", "re\0gion", "region\0"):
        file.write_text(TABLE.replace("region", damaged))
        made = cli(
            "publish", file, tmp_path / "out", "-s", "income", "--public=all", "--test-key",
            "--format", form,
        )  # fmt: skip
        assert made.code == 2, made
        check_sentence(made.err)
        assert "\0" not in made.err and not (tmp_path / "out").exists()


@pytest.mark.parametrize("form", ["parquet", "csv", "cells"])
def test_a_nul_in_a_value_is_published_and_answered(cli, tmp_path, form):
    file, out = tmp_path / "table.csv", tmp_path / "out"
    file.write_text(TABLE.replace("north", "no\0rth").replace(",a\n", ",a\0\n"))
    made = cli("publish", file, out, "-s", "income", "--public=all", "--test-key", "--format", form)
    assert made.code == 0, made
    asked = cli("query", out, "SELECT region, count(*) FROM release GROUP BY region", "--json")
    assert asked.code == 0, asked
    (row,) = json.loads(asked.out)["rows"]
    assert (row["labels"], row["count"]) == ({"region": "no\0rth"}, 60)


@pytest.mark.parametrize("where", ["north", ",a\n"])
def test_very_long_values_are_read_from_csv_as_from_parquet(tmp_path, where):
    long = where[:1] + "x" * 3_000_000 + where[1:]
    file = tmp_path / "long.csv"
    file.write_text(TABLE.replace(where, long, 1))
    rows = [line.split(",") for line in file.read_text().splitlines()[1:]]
    columns = list(zip(*rows, strict=True))
    same = pa.table(
        {"region": columns[0], "age": [int(age) for age in columns[1]], "income": columns[2]}
    )
    pq.write_table(same, tmp_path / "long.parquet")
    found = []
    for name in ("long.csv", "long.parquet"):
        with rp.read(tmp_path / name, sensitive="income", public="all") as table:
            report = table.audit(rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3), columns=False)
            found.append((report.groups, table.schema.domain))
    assert found[0] == found[1]


def test_wide_tables_get_the_types_of_narrow_ones(tmp_path):
    kinds = ["1", "1.5", "true", "2024-01-31", "2024-01-31 10:00:00", "02139", ""]
    wide = 140
    names = [f"c{i}" for i in range(wide)]
    line = ",".join(kinds[i % len(kinds)] for i in range(wide))
    (tmp_path / "wide.csv").write_text(f"{','.join(names)},s\n{line},a\n{line},b\n")
    narrow = ",".join(kinds)
    (tmp_path / "narrow.csv").write_text(f"{','.join(names[:7])},s\n{narrow},a\n{narrow},b\n")
    with rp.read(tmp_path / "wide.csv", sensitive="s", public="all") as table:
        found = [column.kind for column in table.schema.public]
    with rp.read(tmp_path / "narrow.csv", sensitive="s", public="all") as table:
        wanted = [column.kind for column in table.schema.public]
    assert found == (wanted * 20)[:wide]
    assert len(set(wanted)) > 4


def test_damaged_arrow_files_do_not_end_the_process(tmp_path):
    """Each is refused or read; before, a fifth of them ended the process."""
    rng = random.Random(5)
    good = tmp_path / "good.feather"
    feather.write_feather(
        pa.table({"a": ["x", "yy"] * 99, "s": ["u", "v"] * 99}), good, "uncompressed"
    )
    content = good.read_bytes()
    ends = {"refused": 0, "read": 0}
    for number in range(6):
        file = tmp_path / f"{number}.feather"
        damaged = bytearray(content)
        for _ in range(20):
            damaged[rng.randrange(len(damaged))] ^= 1 << rng.randrange(8)
        file.write_bytes(damaged)
        try:
            arrow_files.open_arrow([str(file)], file.name)
            ends["read"] += 1
        except InputError as error:
            assert "damaged" in str(error)
            ends["refused"] += 1
    assert ends["refused"] > 2
    assert arrow_files.open_arrow([str(good)], "good").count_rows() == 198


@pytest.mark.parametrize(
    "text", ["[" * 100_000, f"[{'9' * 5_000}]", '["a", "b", "c", "\\ud800"]', '["a", ["b"]]']
)
def test_domains_in_json(refused, tmp_path, text):
    (tmp_path / "domain.json").write_text(text)
    assert "domain" in refused(TABLE, "--domain", tmp_path / "domain.json")


def no_constants(text):
    """JSON as its standard has it: without Infinity and NaN."""

    def refuse(name):
        raise AssertionError(name)

    return json.loads(text, parse_constant=refuse)


@pytest.mark.parametrize("number", ["1e999", "-1e999", "Infinity"])
def test_infinite_numbers_in_json(cli, tmp_path, number):
    """They were read, and then no answer that named one could be written as JSON."""
    file, out = tmp_path / "t.jsonl", tmp_path / "out"
    lines = [f'{{"a": {a}, "s": "{s}"}}\n' for a in (number, 1.5) for s in "xxy"]
    file.write_text("".join(lines) * 10)
    outcome = cli("audit", file, "-s", "s", "--public=all", "--json", "--no-columns")
    assert outcome.code == 1, outcome
    assert no_constants(outcome.out)["groups"] == 2
    made = cli("publish", file, out, "-s", "s", "--public=all", "--test-key")
    assert made.code == 0, made
    asked = cli("query", out, "SELECT a, count(*) FROM release GROUP BY a", "--json")
    assert asked.code == 0, asked
    rows = no_constants(asked.out)["rows"]
    infinite = "-inf" if number.startswith("-") else "inf"
    assert {str(row["labels"]["a"]): row["count"] for row in rows} == {infinite: 30, "1.5": 30}


def test_a_pipe_is_refused_instead_of_waited_for(cli, tmp_path):
    pipe = tmp_path / "table.csv"
    os.mkfifo(pipe)
    outcome = cli("audit", pipe, "-s", "income", "--public=all")
    assert outcome.code == 2
    check_sentence(outcome.err)
    assert "pipe" in outcome.err


def test_a_release_inside_the_folder_of_a_table_is_not_read(cli, tmp_path):
    folder = tmp_path / "table"
    folder.mkdir()
    (tmp_path / "t.csv").write_text(TABLE)
    pq.write_table(pacsv.read_csv(tmp_path / "t.csv"), folder / "part.parquet")
    roles = ("-s", "income", "--public=all", "--test-key")
    assert cli("publish", folder, folder / "out", *roles).code == 0
    outcome = cli("publish", folder, tmp_path / "again", *roles)
    assert outcome.code == 2
    check_sentence(outcome.err)
    assert "also the release 'out'" in outcome.err


def test_a_table_of_many_columns_is_audited(cli, tmp_path):
    """1,000 counts in one statement took DuckDB minutes, and 3,000 all of its stack."""
    columns = 400
    rng = random.Random(16)
    lines = [[f"c{i}" for i in range(columns)]]
    lines += [[str(rng.randrange(3)) for _ in range(columns)] for _ in range(20)]
    last = ["s", *"ab" * 10]
    text = "\n".join(",".join([*line, end]) for line, end in zip(lines, last, strict=True))
    (tmp_path / "wide.csv").write_text(text)
    outcome = cli(
        "audit", tmp_path / "wide.csv", "-s", "s", "--public=all", "--no-columns", "--json",
        "--max-unique", "1",
    )  # fmt: skip
    assert outcome.code == 0, outcome.err
    assert json.loads(outcome.out)["groups"] == 20

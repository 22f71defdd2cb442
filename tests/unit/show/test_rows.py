"""Tables in a narrow terminal: no line is too long, and no word or figure is broken."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from itertools import pairwise
from typing import Any

import pytest
from rich.cells import cell_len

import reconpriv as rp
from reconpriv.attacks import ATTACKS, Effort, attack
from reconpriv.show.document import Facts, Field, Grid
from reconpriv.show.results.lessons import attack_document
from reconpriv.show.text import as_text

ADULT = {
    "sensitive": "occupation", "public": ["age", "sex", "race"], "missing": "value",
    "sql": "SELECT * FROM input WHERE age >= 45",  # the largest groups take the most time
}  # fmt: skip
CENSUS = {
    "sensitive": "Occupation", "public": "all", "drop": ["Weight"],
    "sql": "SELECT * FROM input WHERE Age % 24 = 0",  # every long label, few groups
}  # fmt: skip
# Enough to fill every table of an attack.
EFFORT = Effort(releases=4, draws=100)
LONG = "a-value-of-exactly-thirty-char"


def check(grid, width):
    """No line is wider than the console and no word is broken; the text, for more."""
    text = as_text([grid], width)
    assert max(cell_len(line) for line in text.splitlines()) <= width, text
    heads = [field.name for field in grid.fields if not field.picture] if grid.headed else []
    cells = [cell for row in grid.texts for cell in row]
    missing = {word for one in (*heads, *cells) for word in one.split()} - set(text.split())
    assert not missing, f"{missing} not in\n{text}"
    return text


def made(heads, rows, title=""):
    fields = [
        Field(head, str if isinstance(rows[0][i], int | float) else None)
        for i, head in enumerate(heads)
    ]
    return Grid(fields, rows, title)


@pytest.fixture(scope="module", params=["adult", "census_workers"])
def attacked(request):
    roles: dict[str, Any] = {"adult": ADULT, "census_workers": CENSUS}[request.param]
    numbered = roles["sql"].replace("*", "*, row_number() OVER () // 3 AS pid", 1)
    policy = rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3, unattainable="one-trial")
    with rp.read(
        f"example:{request.param}", **(roles | {"sql": numbered, "person": "pid"})
    ) as table:
        return [attack(name, table, policy, EFFORT) for name in ATTACKS]


@pytest.mark.parametrize("width", [80, 60])
def test_every_attack_fits(attacked, width):
    assert {result.name for result in attacked} == set(ATTACKS)
    for result in attacked:
        document = attack_document(result)
        for part in document:
            if isinstance(part, Grid):
                check(part, width)
        text = as_text(document, width)
        assert max(map(cell_len, text.splitlines())) <= width


def test_a_table_with_room_is_left_alone():
    table = made(["group", "size"], [("Female, White", 251), ("Male, Black", 3)], title="Worst")
    expected = ["Worst", "group          size", "Female, White   251", "Male, Black       3"]
    assert check(table, 80).splitlines() == expected


def test_headings_wrap_between_words_before_anything_else():
    table = made(["sampling", *["mean relative error"] * 6], [("octave", *[0.123] * 6)])
    lines = check(table, 80).splitlines()
    assert lines[-1].split() == ["octave", *["0.123"] * 6]
    assert 2 <= len(lines) <= 4


def test_a_heading_gives_way_before_a_text_does():
    group = "a group that takes fifty characters, all told: 123"
    table = made(["group", "mean relative error", "largest f"], [(group, 0.1, 0.25)])
    assert len(check(table, 90).splitlines()) == 2
    lines = check(table, 72).splitlines()
    assert len(lines) > 2
    assert lines[-1].startswith(group)


def test_too_many_columns_are_split_and_each_part_names_its_rows():
    heads = ["size", "from", *(f"figure{i:02}" for i in range(12))]
    rows = [("octave", 1, *range(100, 112)), ("octave", 200, *range(200, 212))]
    text = check(made(heads, rows), 80)
    parts = [part.splitlines() for part in text.split("\n\n")]
    assert len(parts) == 2
    for part in parts:
        assert [line.split()[:2] for line in part] == [
            ["size", "from"], ["octave", "1"], ["octave", "200"],
        ]  # fmt: skip
    assert [head for part in parts for head in part[0].split()[2:]] == heads[2:]
    assert [n for part in parts for n in part[1].split()[2:]] == [str(n) for n in range(100, 112)]


@pytest.mark.parametrize("labels", [[], ["sex"]])
def test_an_estimate_stays_beside_its_interval(labels):
    names = [f"figure{i}" for i in range(7)]
    heads = [*labels, *(head for name in names for head in (name, "interval"))]
    row = (*("F" for _ in labels), *range(100, 114))
    parts = [part.splitlines() for part in check(made(heads, [row]), 80).split("\n\n")]
    assert len(parts) > 1
    shown = []
    for heading, values in parts:
        assert heading.split()[: len(labels)] == labels
        found = heading.split()[len(labels) :]
        assert found[1::2] == ["interval"] * (len(found) // 2)
        shown += [*zip(found[::2], values.split()[len(labels) :: 2], strict=True)]
    assert shown == [(name, str(100 + 2 * i)) for i, name in enumerate(names)]


def test_wide_names_and_values_become_blocks():
    heads = [f"{LONG[:28]}{i:02}" for i in range(4)]
    rows = [tuple(f"{LONG[:27]}{r}{i:02}" for i in range(4)) for r in range(2)]
    text = check(made(heads, rows), 80)
    blocks = [block.splitlines() for block in text.split("\n\n")]
    assert [[line.split() for line in block] for block in blocks] == [
        [[head, value] for head, value in zip(heads, row, strict=True)] for row in rows
    ]


def test_wide_group_values_and_a_wide_column_name_stay_whole():
    rows = [(f"{LONG}, {LONG}, {LONG}", 1_234_567, 0.123, 12.5)]
    check(made(["group", LONG, "largest f", "private up to"], rows), 80)


def test_names_and_values_wrap_between_words_and_a_long_value_is_folded():
    rows = [("groups violated as the paper says (a tail under the doubt)", "1,234 of 5,678 " * 4)]
    check(Grid([Field(""), Field("")], rows, headed=False), 60)
    lines = as_text([Facts([*rows, ("file", "x" * 100)])], 60).splitlines()
    assert max(map(len, lines)) <= 60
    assert sum(line.count("x") for line in lines) == 100


def test_wide_characters_count_twice():
    table = made(["質問", "answer"], [("東京都の人口" * 4, 1), ("大阪", 22)])
    for width in (80, 60):
        check(table, width)


def on_a_terminal(*words):
    """What a command shows on a terminal of 80 columns."""
    master, slave = pty.openpty()
    env = {**os.environ, "COLUMNS": "80", "TERM": "dumb", "NO_COLOR": "1"}
    command = [sys.executable, "-m", "reconpriv", *words]
    with subprocess.Popen(command, stdout=slave, stderr=subprocess.PIPE, env=env):
        os.close(slave)
        shown = b""
        while True:
            try:
                piece = os.read(master, 4096)
            except OSError:  # the other end is closed
                break
            if not piece:
                break
            shown += piece
    os.close(master)
    return shown.decode().replace("\r\n", "\n")


def test_a_terminal_of_80_columns_shows_an_attack_unbroken():
    text = on_a_terminal("attack", "micro", "example:adult", "-s", "occupation", "--public",
                         "age,sex,race", "--missing", "value")  # fmt: skip
    assert "persons" in text.split()
    assert max(map(len, text.splitlines())) <= 80
    # Nothing was left over at the end of a line by a terminal that breaks it.
    assert not [pair for pair in pairwise(text.splitlines()) if pair[1].strip() == "s"]

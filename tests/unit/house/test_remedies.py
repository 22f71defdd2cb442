"""Remedies are data: each interface words them, and none uses the words of another."""

from __future__ import annotations

import ast
import inspect
import json
import pickle
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import typer.main

import reconpriv as rp
from reconpriv.cli.app import app
from reconpriv.cli.process.remedy_words import option_words
from reconpriv.errors import InputError
from reconpriv.messages.remedies import (
    Advice,
    Control,
    Remedy,
    either,
    plain_words,
    python_words,
    worded,
)
from reconpriv.studio.pieces.remedy_words import page_words

ROOT = Path(rp.__file__).parent
POLICY = rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3)
OPTION = re.compile(r"(?<![\w{-])--[a-z]")  # {--name: is a colour of a style
ARGUMENT = re.compile(r"`|\w+=(True|False|\"|\[|\{)")
# These hold commands to paste, or the option of another program.
COMMANDS = {"messages/commands.py", "studio/work/plan.py", "doctor.py"}
EXAMPLES: dict[Control, Any] = {
    Control.BIN: ("age", "0", "18"),
    Control.DROP: ("age", "id"),
    Control.ENGINE: "duckdb",
    Control.KEEP_IDENTIFIER: ("id",),
    Control.KEY: "FILE",
    Control.LABELS: "apply",
    Control.LEDGER: "FILE",
    Control.MAX_ERROR: 0.1,
    Control.MISSING: "drop",
    Control.RHO2: 0.5,
    Control.UNATTAINABLE: "one-trial",
    Control.WITHDRAW: ("FILE", "1"),
} | dict.fromkeys(
    (Control.COLUMNS, Control.OVERWRITE, Control.PLAIN, Control.ROLE_CHANGE,
     Control.SECOND_SAMPLE, Control.TEST_KEY, Control.WEAKER_RECORDS, Control.WHOLE_BINS),
    True,
)  # fmt: skip
# These are commands about a file, not options, and always name the file.
WITH_COMMANDS = {
    Control.KEY: "reconpriv keygen",
    Control.LEDGER: "reconpriv ledger verify",
    Control.WITHDRAW: "reconpriv ledger withdraw",
}


def examples():
    return [
        Remedy(do, control, value)
        for control in Control
        for do in ("change it", "use {} here")
        for value in dict.fromkeys((None, EXAMPLES.get(control)))
        if value is not None or control not in WITH_COMMANDS
    ]


@pytest.mark.parametrize("remedy", examples(), ids=str)
def test_every_surface_has_words_of_its_own_for_every_remedy(remedy):
    python, line, page = (f(remedy) for f in (python_words, option_words, page_words))
    assert not OPTION.search(python) and re.search(r"`\w+`|\w+=|\w+\(", python), python
    assert not ARGUMENT.search(line), line
    assert WITH_COMMANDS.get(remedy.control, "--") in line, line
    assert not OPTION.search(page) and not ARGUMENT.search(page) and "{" not in page
    assert plain_words(remedy) == ("change it" if remedy.do == "change it" else "")


def options():
    found, commands = set(), [typer.main.get_command(app)]
    while commands:
        command = commands.pop()
        found |= {name for param in command.params for name in param.opts}
        commands += getattr(command, "commands", {}).values()
    return found


@pytest.mark.parametrize("control", [c for c in Control if c not in WITH_COMMANDS])
def test_the_command_line_has_the_option_that_it_names(control):
    assert option_words(Remedy("{}", control)) in options()


# The studio is started from the command line alone; a key, a ledger and a table are methods, margin
# tables belong to Margins, and the test key is a key.
NOT_ARGUMENTS = {
    *WITH_COMMANDS, Control.MARGIN_TABLES, Control.PORT, Control.TEST_KEY, Control.TO_TABLE,
}  # fmt: skip


@pytest.mark.parametrize("control", [c for c in Control if c not in NOT_ARGUMENTS])
def test_python_has_the_argument_that_it_names(control):
    calls = (rp.read, rp.Table.audit, rp.Table.publish, rp.Table.tune, rp.Release.count,
             rp.Release.export, rp.Release.to_table, rp.Policy)  # fmt: skip
    assert any(control in inspect.signature(call).parameters for call in calls)
    assert hasattr(rp.Release, "to_table") and hasattr(rp.Key.generate(), "write")


def test_alternatives_make_one_sentence_and_those_out_of_reach_are_left_out():
    advice = either("wait", Remedy("use {}", Control.ENGINE, "duckdb"), Remedy("go", Control.SQL))
    assert advice == 'Wait, use engine="duckdb", or go with `sql`.'
    assert worded(advice, option_words) == "Wait, use --engine duckdb, or go with --sql."
    assert worded(advice, page_words) == "Wait, or go first."
    assert worded(either(Remedy("use {}", Control.ENGINE, "spark")), page_words) == ""
    assert worded("as it is", page_words) == "as it is"


def test_an_advice_takes_over_the_sentences_of_another():
    advice = Advice("First.", "", Advice("Second.", Remedy("third", Control.DROP, ("a b",))))
    assert advice == 'First. Second. Third with drop=["a b"].'
    assert worded(advice, option_words) == "First. Second. Third with --drop 'a b'."


def test_bins_are_written_as_each_surface_takes_them():
    remedy = Remedy("bin it", Control.BIN, ('a="b', "0", "5"))
    assert python_words(remedy) == r'bin it with bin={"a=\"b": [0, 5]}'
    assert option_words(remedy) == """bin it with --bin '"a=""b"=0,5'"""


def test_an_error_keeps_its_remedies_on_the_way_to_another_process():
    error = InputError("No.", hint=either(Remedy("go", Control.MISSING, "drop")))
    again = pickle.loads(pickle.dumps(error))
    assert str(again) == 'No. Go with missing="drop".' == f"{again.what} {again.hint}"
    assert again.worded(option_words) == "No. Go with --missing drop."


def test_no_login_is_repeated_on_any_surface():
    remedy = Remedy("try {}", Control.TABLE, "postgresql://me:secret@host/db")
    error = InputError("No.", hint=remedy)
    for said in (str(error), error.hint, error.worded(option_words), error.worded(page_words)):
        assert "secret" not in said


def texts(file):
    """Every text in a file that is not a docstring."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    statements = {id(n.value) for n in ast.walk(tree) if isinstance(n, ast.Expr)}
    for node in ast.walk(tree):
        text = isinstance(node, ast.Constant) and isinstance(node.value, str)
        if text and id(node) not in statements:
            yield node


def test_only_the_command_line_names_options_and_it_names_no_arguments():
    found = []
    for file in ROOT.rglob("*.py"):
        name = file.relative_to(ROOT).as_posix()
        strange = re.compile(r"\w=(True|False)") if name.startswith("cli/") else OPTION
        found += [(name, t.value) for t in texts(file) if strange.search(t.value)]
    assert {name for name, _ in found} == COMMANDS, found


def test_what_to_do_is_an_imperative_that_can_be_joined_to_others():
    found = []
    for file in ROOT.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("Remedy", "either"):
                found += [arg.value for arg in node.args if isinstance(arg, ast.Constant)]
    said = [text for text in found if isinstance(text, str) and " " in text]
    assert len(said) > 30
    assert [text for text in said if text[0].isupper() or text.endswith(".")] == []


def table(**columns):
    return pa.table({"x": ["u", "v"] * 20, "a": ["p", "q"] * 20, **columns})


def read(source=None, **more):
    return rp.read(source or table(), **({"sensitive": "x", "public": "all"} | more))


NUMBERS = pa.array([i + 0.5 for i in range(40)])
STRUCTS = pa.array([{"k": 1}] * 40)
MANY = pa.table({"x": [f"v{i}" for i in range(2000)], "a": ["p", "q"] * 1000})
TOWNS = pa.table({"x": ["u", "v", "v"] * 9000, "a": ["p", "q"] * 13500})
GIVING = rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3, margins=rp.Margins(1.0, tables=["a"]))
ADULT, WHOLE = "example:adult", list(range(40))
BAD_INPUTS = {
    "missing": lambda: read(table(x=["u", None] * 20)),
    "float sensitive": lambda: read(table(n=NUMBERS), sensitive="n"),
    "too many values": lambda: read(MANY),
    "one value": lambda: read(table(x=["u"] * 40)),
    "a struct": lambda: read(table(s=STRUCTS)),
    "a sensitive struct": lambda: read(table(s=STRUCTS), sensitive="s"),
    "stranger to the domain": lambda: read(domain=["u"]),
    "bins of text": lambda: read(bin={"a": 10}),
    "infinite": lambda: read(table(n=[float("inf")] * 40), bin={"n": 10}),
    "below the border": lambda: read(table(n=WHOLE), bin={"n": [5, 50]}),
    "groups of numbers": lambda: read(table(n=NUMBERS), group={"n": {"1": "x"}}),
    "a table of a file": lambda: read(ADULT, sensitive="sex", table="x"),
    "labels of a file": lambda: read(ADULT, sensitive="sex", labels="apply"),
    "a master": lambda: read(ADULT, sensitive="sex", engine="duckdb", master="x"),
    "two selects": lambda: read(ADULT, sensitive="sex", sql="SELECT 1; SELECT 2"),
    "an identifier": lambda: read(table(i=WHOLE)).publish(POLICY, "nowhere", key=rp.Key.test()),
    "unattainable": lambda: read().publish(
        rp.Policy(retention=0.9, tolerance=0.9, doubt=0.9), "nowhere", key=rp.Key.test()
    ),
    "a cut bin": lambda: read(table(n=WHOLE), bin={"n": 10}).count("n < 15"),
    "a group given away": lambda: read(TOWNS).audit(GIVING),
    "a key": lambda: rp.Key.from_file("no-such.key"),
    "a short key": lambda: rp.Key.from_hex("00"),
}


@pytest.mark.filterwarnings("ignore::reconpriv.ReconprivWarning")
@pytest.mark.parametrize("name", BAD_INPUTS)
def test_a_bad_input_is_explained_in_the_words_of_each_surface(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(rp.ReconprivError) as caught:
        BAD_INPUTS[name]()
    error = caught.value
    assert not OPTION.search(str(error)), error
    line, page = error.worded(option_words), error.worded(page_words)
    assert not ARGUMENT.search(line), line
    assert not OPTION.search(page) and not ARGUMENT.search(page), page
    for said in (str(error), line, page):
        assert said.startswith(error.what) and said.endswith("."), said
    assert list(tmp_path.iterdir()) == []


def test_warnings_and_json_are_worded_for_whom_they_reach(tmp_path, cli):
    file = tmp_path / "people.csv"
    file.write_text("id,x\n" + "".join(f"i{i},{'uv'[i % 2]}\n" for i in range(400)))
    with (
        rp.read(file, sensitive="x", public="all") as opened,
        pytest.warns(rp.ReconprivWarning, match="drop="),
    ):
        report = opened.audit(POLICY)
    for said in (*report.warnings, report.sentence, report.columns_sentence, str(report)):
        assert not OPTION.search(said)
    assert 'drop=["id"]' in str(report)
    outcome = cli("audit", file, "-s", "x", "--public=all")
    assert "--drop id" in outcome.err and "--keep-identifier id" in outcome.out
    found = json.loads(cli("audit", file, "-s", "x", "--public=all", "--json").out)
    assert "--drop id" in found["warnings"][0] and "--drop id" in found["verdict"]["sentence"]
    for said in (outcome.err, outcome.out, json.dumps(found, ensure_ascii=False)):
        assert not re.search(r"=True|drop=|`", said)

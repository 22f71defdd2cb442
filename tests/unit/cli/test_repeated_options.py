"""Every option of every command: a list adds up when it is repeated, one value is refused."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.parquet as pq
import pytest
import typer
from typer.core import TyperOption

import reconpriv as rp
from reconpriv.cli.app import app
from reconpriv.cli.options.table import TableOptions


class Found(NamedTuple):
    """An option, and the words that name its command."""

    path: tuple[str, ...]
    command: Any
    option: Any

    @property
    def name(self):
        return max(self.option.opts, key=len)


def walk(command, path=()):
    yield from (Found(path, command, one) for one in command.params if isinstance(one, TyperOption))
    for name, inner in getattr(command, "commands", {}).items():
        yield from walk(inner, (*path, name))


ROOT: Any = typer.main.get_command(app)
EVERY = list(walk(ROOT))
ONE_VALUE = [o for o in EVERY if not o.option.is_flag and not o.option.multiple]
LISTS = [o for o in EVERY if o.option.multiple]
COMMAS = [o for o in LISTS if ",…" in (o.option.metavar or "") and "=VALUE" not in o.option.metavar]


@pytest.fixture
def typed(capsys):
    """Run a command of the commands that were built once."""

    def run(*words):
        capsys.readouterr()
        with warnings.catch_warnings(), pytest.raises(SystemExit) as ended:
            warnings.simplefilter("ignore", rp.ReconprivWarning)
            ROOT.main([str(word) for word in words], prog_name="reconpriv")
        done = capsys.readouterr()
        return int(str(ended.value.code or 0)), done.out, done.err

    return run


def test_the_walk_finds_the_options():
    assert len({one.path for one in EVERY}) > 15
    assert len(ONE_VALUE) > 100 and len(LISTS) > 40 and len(COMMAS) > 25


def test_one_value_is_refused_when_it_is_given_twice(typed):
    for one in ONE_VALUE:
        words = [*one.path, one.option.opts[0], "1", f"{one.name}=2"]
        said = f"error: {one.name} is given twice: '1' and '2'. It takes one value.\n"
        assert typed(*words) == (2, "", said), words


def test_a_switch_and_its_opposite_are_refused(typed):
    both = [one for one in EVERY if one.option.secondary_opts]
    assert len(both) >= 4
    for one in both:
        yes, no = one.name, one.option.secondary_opts[0]
        said = f"error: Give either {yes} or {no}, not both.\n"
        assert typed(*one.path, no, yes, no) == (2, "", said)


def test_a_switch_may_be_repeated(typed):
    words = ("retention", "--rho1", ".1", "--rho2", ".5", "-m", "10", "--json")
    once = typed(*words)
    assert once[0] == 0 and typed(*words, "--json") == once


def test_an_option_that_takes_a_list_keeps_all_of_it():
    for one in LISTS:
        words = [one.option.opts[0], "x", one.option.opts[-1], "y"]
        context = one.command.make_context(one.path[-1], words, resilient_parsing=True)
        assert list(context.params[one.option.name]) == ["x", "y"], (*one.path, one.name)


def test_what_is_separated_by_commas_is_a_list_and_says_that_it_may_be_repeated():
    for one in EVERY:
        if "," in (one.option.metavar or ""):
            assert one.option.multiple, (*one.path, one.name)
        if one.option.multiple:
            assert "repeat" in one.option.help.lower(), (*one.path, one.name)


# What to type for a list, by option: two parts, which together say something else than the second.
PARTS = {
    "--public": ("sex", "age"),
    "--drop": ("age", "town"),
    "--keep-identifier": ("id", "pid"),
    "--keep-giveaway": ("code", "kind"),
    "--harmless": ("flu", "cold"),
    "--margin-tables": ("sex", "age"),
    "--features": ("sex", "age"),
    "--retention": ("0.3", "0.5"),
    "--epsilon": ("0.3", "0.5"),
    "--delta": ("0.2", "0.3"),
    "--sample-size": ("octave", "public"),
    "--margins": ("0", "1"),
    "--exposed-above": ("0", "0.25"),
    "--current": ("p=0.4", "e=0.4"),
}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Tables, one with two nearly unique columns, one with two that tell all; and a release."""
    folder = tmp_path_factory.mktemp("lists")
    ills = ("flu", "cold", "ulcer", "flu", "none")
    rows = [(i % 2, i % 3, "ab"[i % 7 % 2], ills[i % 5]) for i in range(3000)]
    lines = [f"{sex},{age},{town},{ill}\n" for sex, age, town, ill in rows]
    (folder / "t.csv").write_text("sex,age,town,ill\n" + "".join(lines))
    lines = [f"{i},x{i},{line}" for i, line in enumerate(lines[:300])]
    (folder / "ids.csv").write_text("id,pid,sex,age,town,ill\n" + "".join(lines))
    lines = [f"c{ill},k{ill},{sex},{ill}\n" for sex, _, _, ill in rows]
    (folder / "told.csv").write_text("code,kind,sex,ill\n" + "".join(lines))
    with rp.read(folder / "t.csv", sensitive="ill", public=["sex", "age", "town"]) as table:
        table.publish(rp.Policy(0.5, 0.5, 0.3), folder / "release", key=rp.Key.test())
    return folder


def base_words(one):
    """A command that works without the option, or needs nothing but it."""
    file = {"--keep-identifier": "ids.csv", "--keep-giveaway": "told.csv"}.get(one.name, "t.csv")
    roles = [file, "-s", "ill", *([] if one.name == "--public" else ["--public=all"])]
    words = {
        "audit": ["audit", *roles],
        "publish": ["publish", *roles, "out", "--test-key", "--overwrite"],
        "workload": ["workload", *roles, "--queries", "20", "-o", "pool.csv", "--overwrite"],
        "attack": ["attack", "micro", *roles, "--preset", "paper"],
        "tune": ["tune", *roles, "--queries", "20"],
        "learn": ["learn", "release"],
        "logistic": ["logistic", "release", "--target", "flu"],
        "linear": ["linear", "release", "--outcome", "age"],
    }[one.path[0]]
    if one.name == "--margin-tables":
        words += ["--margins", "0.1"]
    if one.path == ("tune",):
        for sweep, value in (("-p", "0.5"), ("-e", "0.5"), ("-d", "0.3"), ("--margins", "0")):
            if sweep not in one.option.opts:
                words += [sweep, value]
    return [*words, "--json"]


@pytest.mark.parametrize("one", COMMAS, ids=lambda one: " ".join((*one.path, one.name)))
def test_a_list_is_the_same_in_one_piece_and_in_several(one, place, typed, monkeypatch):
    monkeypatch.chdir(place)
    first, second = ("sex", "town") if one.path == ("linear",) else PARTS[one.name]
    words = base_words(one)
    short, long = one.option.opts[0], one.option.opts[-1]

    def seen(*list_words):
        """What the command says, and the queries that workload writes."""
        code, out, err = typed(*words, *list_words)
        assert code in (0, 1, 2) and "Traceback" not in err
        return code, out, err, Path("pool.csv").read_text() if one.path == ("workload",) else ""

    several = seen(short, first, long, second)
    assert several[0] in (0, 1), several
    assert several == seen(long, f"{first},{second}")
    assert several != seen(long, second)


def test_dropped_columns_are_not_published_however_they_are_named(cli, place):
    for number, drop in enumerate((["--drop", "id", "--drop", "pid"], ["--drop=id,pid"])):
        out = place / f"dropped{number}"
        done = cli(
            "publish", place / "ids.csv", out, "-s", "ill", "--public=all", *drop, "--test-key"
        )
        assert done.code == 0, done.err
        header = pq.read_schema(next(out.glob("*.parquet"))).names
        assert set(header) == {"sex", "age", "town", "ill"}


def test_a_second_sensitive_column_leaves_nothing_behind(cli, place):
    out = place / "two"
    done = cli(
        "publish", place / "t.csv", out, "-s", "ill", "--public=all", "-s", "town", "--test-key"
    )
    assert (done.code, done.out, out.exists()) == (2, "", False)
    assert done.err == "error: --sensitive is given twice: 'ill' and 'town'. It takes one value.\n"


def test_three_times(cli):
    said = cli("audit", "t.csv", "-p.1", "-p", ".2", "--retention=.3").err
    assert "--retention is given 3 times: '.1', '.2' and '.3'." in said


def test_secrets_are_not_quoted(cli):
    key, url = "ab" * 32, "postgresql://me:hush@host/db"
    done = cli("publish", "t.csv", "out", "--key", key, "--key", "/home/me/my.key")
    assert (done.code, key in done.err, "/home" in done.err) == (2, False, False)
    assert "'my.key'" in done.err
    done = cli("publish", "t.csv", "out", "--to", url, "--to", "x.db")
    assert (done.code, "hush" in done.err) == (2, False)


@pytest.mark.parametrize(
    "option", ["--drop", "--public", "--harmless", "--keep-identifier", "--keep-giveaway"]
)
def test_a_list_that_is_empty_is_refused(cli, place, option):
    roles = ("-s", "ill", *(() if option == "--public" else ("--public=all",)))
    done = cli("audit", place / "t.csv", *roles, option, "sex", option, "")
    assert done.code == 2 and f"{option} is empty" in done.err


def test_a_score_that_is_given_twice_is_refused(cli, place):
    asked = "SELECT avg(ill) FROM release"
    done = cli("query", place / "release", asked, "--score", "flu=1", "--score", "flu=2")
    assert done.code == 2 and "--score is given twice for the value 'flu'" in done.err


def test_a_command_is_made_again_from_its_options():
    options = TableOptions("t.csv", "ill", public=["sex", '"a,b",age'], drop=["id", "pid"])
    assert options.parts() == [
        ("-s", "ill"), ("--public", "sex"), ("--public", '"a,b",age'),
        ("--drop", "id"), ("--drop", "pid"),
    ]  # fmt: skip

"""Every option of every command: a list adds up when it is repeated, one value is refused."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import pytest
import typer
from typer.core import TyperOption

import reconpriv as rp
from reconpriv.cli.app import app
from reconpriv.cli.commands.analyst import RegressionOptions
from reconpriv.cli.commands.tune import SweepOptions, policy_in_use
from reconpriv.cli.options.declared import arguments
from reconpriv.cli.options.policy import AcceptOptions, PolicyOptions
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


SWEPT = [one for one in vars(SweepOptions()) if one != "bound"]


@pytest.mark.parametrize(
    ("made", "parts"),
    [
        *((lambda texts, one=one: arguments(SweepOptions(**{one: texts})), ("0.3", "0.5"))
          for one in SWEPT),
        *((lambda texts, one=one: arguments(AcceptOptions(**{one: texts})), ("id", "pid"))
          for one in ("keep_identifier", "keep_giveaway")),
        *((lambda texts, one=one: PolicyOptions(**{one: texts}).chosen(), ("sex", "age"))
          for one in ("harmless", "margin_tables")),
        (lambda texts: arguments(RegressionOptions(features=texts)), ("sex", "age")),
        (lambda texts: arguments(TableOptions("t.csv", "s", public=texts)), ("sex", "age")),
        (lambda texts: arguments(TableOptions("t.csv", "s", drop=texts)), ("sex", "age")),
        (lambda texts: policy_in_use(None, texts), ("p=0.4", "e=0.4")),
    ],
)  # fmt: skip
def test_a_list_is_the_same_in_one_piece_and_in_several(made, parts):
    assert made([*parts]) == made([",".join(parts)]) != made([parts[1]])
    with pytest.raises(rp.ReconprivError):
        made([*parts, ""])


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


def test_a_command_is_made_again_from_its_options():
    options = TableOptions("t.csv", "ill", public=["sex", '"a,b",age'], drop=["id", "pid"])
    assert options.parts() == [
        ("-s", "ill"), ("--public", "sex"), ("--public", '"a,b",age'),
        ("--drop", "id"), ("--drop", "pid"),
    ]  # fmt: skip

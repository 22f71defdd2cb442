"""Options by the names that they had before: accepted, announced, and not in the help."""

import json

import pytest

from reconpriv.cli.options.old_names import OLD_OPTIONS

TABLE = ["example:adult", "-s", "occupation", "--public", "age,sex,race", "--missing", "value"]
AUDIT = ["audit", *TABLE, "--no-columns", "--json"]
NEW = ["-p", "0.4", "--tolerance", "0.6", "--doubt", "0.04", "--sampling", "public"]
OLD = ["-p", "0.4", "--epsilon", "0.6", "--delta=0.04", "--sample-size", "public"]


def test_old_options_mean_the_new_ones_and_each_is_announced_on_standard_error(cli):
    new, old = cli(*AUDIT, *NEW), cli(*AUDIT, *OLD)
    assert (old.code, old.out) == (new.code, new.out) and "is now called" not in new.err
    policy = json.loads(old.out)["policy"]
    assert (policy["tolerance"], policy["doubt"], policy["sampling"]) == (0.6, 0.04, "public")
    for now, before in OLD_OPTIONS.items():
        assert f"note: {before} is now called {now}; the old name is accepted for now.\n" in old.err
    assert old.err.count("is now called") == 3


@pytest.mark.parametrize(
    "options",
    [("--tolerance", "0.5", "--epsilon", "0.5"), ("--epsilon=0.5", "-e", "0.4"),
     ("--sample-size", "octave", "--sampling", "octave"), ("-d", "0.1", "--delta", "0.1")],
)  # fmt: skip
@pytest.mark.parametrize("command", ["audit", "tune"])
def test_both_names_together_are_refused(cli, command, options):
    done = cli(command, *TABLE, *options)
    assert done.code == 2 and "is the old name of" in done.err and "both are given" in done.err
    assert done.out == ""


def test_an_old_option_given_twice_is_refused_where_the_new_one_would_be(cli):
    done = cli(*AUDIT, "--epsilon", "0.5", "--epsilon", "0.6")
    assert done.code == 2 and "--tolerance is given twice: '0.5' and '0.6'." in done.err
    assert cli(*AUDIT, "--epsilon").code == 2


def test_the_sweeps_of_tune_and_its_current_policy_take_old_names(cli):
    few = [
        "tune",
        *TABLE,
        "-p",
        "0.5",
        "--margins",
        "0",
        "--queries",
        "20",
        "--no-pooled",
        "--json",
    ]
    new = cli(*few, "-e", "0.5", "-d", "0.05", "--sampling", "public",
              "--current", "p=0.4,sampling=public")  # fmt: skip
    old = cli(*few, "--epsilon", "0.5", "--delta", "0.05", "--sample-size", "public",
              "--current", "p=0.4,sample-size=public")  # fmt: skip
    assert new.code == old.code == 0 and new.out == old.out
    assert "note: sample-size is now called sampling; the old name is accepted for now." in old.err
    current = json.loads(old.out)["current"]
    assert (current["retention"], current["sampling"]) == (0.4, "public")
    settings = json.loads(old.out)["settings"]
    assert {(one["tolerance"], one["doubt"], one["sampling"]) for one in settings} == {
        (0.5, 0.05, "public")
    }


@pytest.mark.parametrize("command", ["audit", "publish", "attack", "tune"])
def test_the_help_names_the_new_options_alone(cli, command):
    said = cli(command, "--help").out
    for now, before in OLD_OPTIONS.items():
        assert now in said and before not in said


def test_a_command_without_the_new_option_has_no_old_one(cli):
    done = cli("info", "release/", "--epsilon", "1")
    assert done.code == 2 and "No such option" in done.err

"""The R package: built with its vignette, checked, and its tests run against the command."""

import json
import os
import re
import subprocess
import tarfile

import pytest
import typer.main

import reconpriv
from programs import need_r_packages, write_command
from reconpriv.cli.app import app
from repository import ROOT

COMMANDS = ("columns", "audit", "publish", "keygen", "query", "crosstab", "info")
# What R calls otherwise: two places on the command line, and a file that a data frame replaces.
OTHER_NAMES = {"source": "data", "columns": "column", "--batch": "questions"}
# Help and JSON are the package's business; answers to questions are its result, not a file.
NOT_IN_R = {("query", "--out")} | {
    (name, word) for name in COMMANDS for word in ("--help", "--json")
}


def run_r(*words, cwd):
    return subprocess.run(
        ["R", "CMD", *words], cwd=cwd, capture_output=True, text=True, timeout=600, check=False
    )


@pytest.fixture(scope="module")
def checked(tmp_path_factory):
    """The folder in which the package was built and checked, and what the check printed."""
    need_r_packages("jsonlite", "knitr", "markdown")
    folder = tmp_path_factory.mktemp("package")
    write_command(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
        patch.delenv("RECONPRIV_COMMAND", raising=False)
        patch.setenv("LC_ALL", "C.UTF-8")
        patch.setenv("R_DEFAULT_INTERNET_TIMEOUT", "1")  # it looks for other packages
        built = run_r("build", str(ROOT / "r"), cwd=folder)
        assert built.returncode == 0, built.stdout + built.stderr
        (archive,) = folder.glob("*.tar.gz")
        # The build has just run the vignette.
        done = run_r("check", "--no-manual", "--no-vignettes", archive.name, cwd=folder)
    outputs = folder.glob("reconpriv.Rcheck/tests/*.Rout.fail")
    failed = "".join(file.read_text(encoding="utf-8", errors="replace") for file in outputs)
    return folder, done.stdout + done.stderr + failed


def test_the_check_finds_no_error_no_warning_and_no_note(checked):
    _, printed = checked
    assert "Status: OK" in printed, printed


def test_the_tests_of_the_package_had_the_command(checked):
    folder, _ = checked
    ran = folder / "reconpriv.Rcheck" / "tests"
    names = {file.stem for file in (ROOT / "r" / "tests").glob("*.R")}
    assert {file.stem for file in ran.glob("*.Rout")} == names
    # Without the command it would have ended before its last line.
    last = (ROOT / "r" / "tests" / "release.R").read_text(encoding="utf-8").splitlines()[-1]
    assert f"\n> {last}\n" in (ran / "release.Rout").read_text(encoding="utf-8")


def test_the_vignette_shows_answers(checked):
    folder, _ = checked
    (archive,) = folder.glob("*.tar.gz")
    with tarfile.open(archive) as opened:
        page = opened.extractfile("reconpriv/inst/doc/reconpriv.html").read().decode()
    shown = dict(re.findall(r"\d +(Female|Male) +\S+ +\S+ +\S+ +(\d+)", page))
    assert shown == {"Female": "1947", "Male": "3557"}
    assert "reconpriv_error" in page and "data:image/png" in page


def test_no_key_is_left_behind(checked):
    folder, _ = checked
    assert [file.name for file in folder.rglob("*key*") if file.suffix != ".Rd"] == []


def test_every_option_of_the_commands_is_an_argument_in_r(checked):
    folder, _ = checked
    ask = (
        'd <- lapply(Filter(is.function, as.list(asNamespace("reconpriv"))), formalArgs);'
        "cat(jsonlite::toJSON(d[grepl('^rp_', names(d))]))"
    )
    library = os.environ | {"R_LIBS": str(folder / "reconpriv.Rcheck")}
    done = subprocess.run(["Rscript", "-e", ask], env=library, capture_output=True, check=True)
    in_r = json.loads(done.stdout)
    commands = typer.main.get_command(app).commands
    for name in COMMANDS:
        shown = [one for one in commands[name].params if not getattr(one, "hidden", False)]
        words = {max(one.opts, key=len) for one in shown}
        words = {word for word in words if (name, word) not in NOT_IN_R}
        ours = {OTHER_NAMES.get(word, word.strip("-").replace("-", "_")) for word in words}
        assert set(in_r[f"rp_{name}"]) == ours, name


def test_its_version_is_that_of_the_command():
    described = (ROOT / "r" / "DESCRIPTION").read_text(encoding="utf-8")
    assert f"Version: {reconpriv.__version__}\n" in described
    news = (ROOT / "r" / "NEWS.md").read_text(encoding="utf-8")
    assert news.startswith(f"# reconpriv {reconpriv.__version__}\n")

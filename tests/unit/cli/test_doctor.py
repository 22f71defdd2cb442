"""The doctor says what is missing and how to add it, and believes only what it has seen."""

import importlib.metadata
import json
import re
import stat

import pytest
from typer.testing import CliRunner

from reconpriv import doctor
from reconpriv.attacks.run import ATTACKS
from reconpriv.cli.app import app
from reconpriv.show.results.tables import doctor_document
from reconpriv.show.text import as_text
from shell import offers


def check(name):
    return next(found for found in doctor.examine().checks if found.name == name)


def program(folder, name, says):
    file = folder / name
    file.write_text(f"#!/bin/sh\ncat >&2 <<'END'\n{says}\nEND\n")
    file.chmod(file.stat().st_mode | stat.S_IXUSR)
    return file


def test_everything_that_is_needed_is_here():
    examination = doctor.examine()
    assert examination.healthy
    core = {found.name: found.found for found in examination.checks if found.part == "core"}
    assert core["duckdb"] == importlib.metadata.version("duckdb")
    assert set(core) == {
        "numpy", "scipy", "pyarrow", "duckdb", "cryptography", "typer", "rich",
    }  # fmt: skip


def test_every_extra_of_the_package_is_looked_for_and_said_to_be_for_something():
    extras = set(importlib.metadata.metadata("reconpriv").get_all("Provides-Extra") or [])
    found = {one.name: one for one in doctor.examine().checks if one.part == "extra"}
    assert set(found) == extras
    assert all(one.use for one in found.values())


def test_an_extra_that_is_missing_comes_with_the_command_that_adds_it(monkeypatch):
    real = importlib.metadata.version

    def without_sqlglot(name):
        if name == "sqlglot":
            raise importlib.metadata.PackageNotFoundError(name)
        return real(name)

    monkeypatch.setattr(importlib.metadata, "version", without_sqlglot)
    missing = check("query")
    assert not missing.ok
    assert missing.found == "sqlglot missing"
    assert re.search(r"-m pip install 'sqlglot>=[\d.]+'$", missing.add)
    assert doctor.examine().healthy  # it is an extra
    text = as_text(doctor_document(doctor.examine()), width=300)
    assert f"query: {missing.add}" in text


def test_a_core_package_that_is_too_old_is_an_illness(monkeypatch):
    real = importlib.metadata.version
    monkeypatch.setattr(
        importlib.metadata, "version", lambda name: "1.26.4" if name == "numpy" else real(name)
    )
    examination = doctor.examine()
    assert not examination.healthy
    assert check("numpy").found == "1.26.4, too old"
    assert CliRunner().invoke(app, ["doctor"]).exit_code == 1


@pytest.mark.parametrize(
    ("says", "ok", "found"),
    [
        ('openjdk version "17.0.15" 2025-04-15', True, "17.0.15"),
        ('openjdk version "21" 2023-09-19', True, "21"),
        ('java version "1.8.0_402"', False, "1.8.0_402, too old"),
        ("nonsense", False, "of unknown version"),
    ],
)
def test_java_is_asked_for_its_version(says, ok, found, tmp_path, monkeypatch):
    (tmp_path / "bin").mkdir()
    program(tmp_path / "bin", "java", says)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    java = check("Java")
    assert (java.ok, java.found) == (ok, found)
    assert bool(java.add) is not ok


def test_an_empty_machine_is_told_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    assert check("Java").add == "install openjdk-17-jre-headless"
    assert check("browser").add == "install chromium"
    program(tmp_path, "apt-get", "")
    assert check("Java").add.endswith("apt-get install openjdk-17-jre-headless")
    (tmp_path / "apt-get").unlink()
    program(tmp_path, "brew", "")
    assert check("Java").add == "brew install openjdk@17"


def test_it_speaks_json():
    done = CliRunner().invoke(app, ["doctor", "--json"])
    assert done.exit_code == 0
    said = json.loads(done.stdout)
    assert said["healthy"] is True
    assert {one["name"] for one in said["checks"]} >= {"Java", "browser", "example:adult", "query"}


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("reconpriv audit x --bound cheb", ["chebyshev"]),
        ("reconpriv audit x --missing ", ["refuse", "drop", "value"]),
        ("reconpriv publish x y --sampling o", ["octave"]),
        ("reconpriv publish x y --format c", ["csv", "cells"]),
        ("reconpriv audit x --labels a", ["apply"]),
        ("reconpriv doc", ["doctor"]),
        ("reconpriv attack g", ["granularity"]),
        ("reconpriv attack ", [*ATTACKS]),
        ("reconpriv audit exampl", ["example:adult", "example:census_workers"]),
        ("reconpriv publish example:c", ["example:census_workers"]),
        ("reconpriv attack micro example:a", ["example:adult"]),
        ("reconpriv tune example:a", ["example:adult"]),
        ("reconpriv audit nosuchfile", []),
    ],
)
def test_a_shell_is_offered_what_fits(words, offered):
    assert offers(words) == offered


def test_the_help_of_the_whole_tells_exit_status_and_environment():
    text = CliRunner().invoke(app, ["--help"]).stdout
    for part in ("Exit status", "Environment", "TMPDIR", "For the publisher", "For the analyst"):
        assert part in text

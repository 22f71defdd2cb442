"""Where tests belong: unit tests are fast and need nothing that has to be started."""

from __future__ import annotations

import ast

import pytest

from repository import ROOT

TESTS = ROOT / "tests"
FILES = sorted(TESTS.rglob("test_*.py"))
UNITS = sorted((TESTS / "unit").rglob("test_*.py"))
# Fixtures and modules of tests/support that start a JVM, a browser, a server or a studio.
STARTED = {
    "spark", "browser", "spark_fixtures", "spark_processes", "postgres_server", "studio_walk",
    "pyspark", "playwright", "nbclient",
}  # fmt: skip


def started_by(text):
    """What a file asks for that has to be started: fixtures as parameters, and imports."""
    found = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef):
            found |= {argument.arg for argument in node.args.args}
        elif isinstance(node, ast.Import):
            found |= {name.name.partition(".")[0] for name in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add((node.module or "").partition(".")[0])
    return found & STARTED


def place(path):
    return path.relative_to(TESTS).as_posix()


def test_every_test_is_a_unit_or_a_test_of_the_system_or_of_the_oracle():
    assert len(FILES) > 80
    folders = [file.parts[-3] for file in FILES if file.parent != TESTS / "oracle"]
    assert set(folders) == {"unit", "system"}


def test_no_two_files_of_tests_have_one_name():
    """Without packages pytest tells the files apart by their names alone."""
    assert len({file.name for file in FILES}) == len(FILES)


def test_the_folders_of_units_are_those_of_the_package():
    package = {path.name for path in (ROOT / "src" / "reconpriv").iterdir() if path.is_dir()}
    folders = {file.parent.name for file in UNITS}
    # The modules in the root of the package, and the repository itself.
    assert folders - package == {"api", "house"}


@pytest.mark.parametrize("file", UNITS, ids=place)
def test_a_unit_starts_no_jvm_browser_or_server(file):
    assert started_by(file.read_text(encoding="utf-8")) == set()


def test_every_file_that_is_scheduled_first_is_there():
    groups = pytest.importorskip("scheduling").GROUPS
    missing = [one for one in groups if not any(file.match(one) for file in FILES)]
    assert groups and missing == []


def test_what_is_started_would_be_found():
    assert started_by("def test_x(spark, tmp_path): ...") == {"spark"}
    assert started_by("from postgres_server import running_server") == {"postgres_server"}
    assert started_by("import playwright.sync_api\ndef test_y(cli): ...") == {"playwright"}
    assert started_by("def test_z(adult): ...") == set()

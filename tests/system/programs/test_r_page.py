"""The page for R users: its code runs and prints what it shows."""

from example_runner import matches
from programs import run_program
from r_page import r_page
from repository import ROOT

PAGE = r_page(ROOT / "docs" / "how-to" / "r.md")


def test_the_code_of_the_page_runs_and_prints_what_it_shows(command, r_library, tmp_path):
    file = tmp_path / "page.R"
    file.write_text(PAGE.script(), encoding="utf-8")
    done = run_program("Rscript", file)
    assert done.returncode == 0, done.stderr
    assert len(PAGE.code) == 7
    assert matches(PAGE.printed, done.stdout), done.stdout

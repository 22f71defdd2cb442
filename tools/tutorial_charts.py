"""Draw the charts of docs/tutorials/ten-questions.md, by running the page."""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests" / "support"))

from example_runner import Runner  # noqa: E402 - it lies with the tests

PAGE = ROOT / "docs" / "tutorials" / "ten-questions.md"


def main() -> None:
    """Run the page in a folder of its own and keep what it draws."""
    kept = PAGE.with_suffix("")
    kept.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        Runner(PAGE, Path(folder)).run_page()
        for drawn in Path(folder).glob("*.svg"):
            shutil.copy(drawn, kept / drawn.name)


if __name__ == "__main__":
    main()

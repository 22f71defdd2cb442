"""What keeps the package small: short modules, one meaning per class name, few special cases."""

import re
from collections import Counter

from repository import ROOT

SOURCES = {
    path.relative_to(ROOT / "src" / "reconpriv").as_posix(): path.read_text(encoding="utf-8")
    for path in sorted((ROOT / "src" / "reconpriv").rglob("*.py"))
}
LONGEST = 450
# Each list may only become shorter, and the number only smaller.
LONGER = {"engines/duckdb/engine.py"}
SHARED = {"Cells"}
SPECIAL_CASES = 20
SPECIAL = re.compile(r"margins is (not )?None|protect(ion|ed)? is (not )?None|ProtectedCube\)")


def test_no_module_is_long():
    long = {name for name, text in SOURCES.items() if len(text.splitlines()) > LONGEST}
    assert long <= LONGER


def test_a_class_name_means_one_thing():
    names = Counter(
        name for text in SOURCES.values() for name in re.findall(r"^class (\w+)", text, re.M)
    )
    assert {name for name, times in names.items() if times > 1} <= SHARED


def test_few_lines_ask_whether_there_are_margins_or_protection():
    """A policy without them has those of no table and of no column, which need no question."""
    found = [
        f"{name}: {line.strip()}"
        for name, text in SOURCES.items()
        for line in text.splitlines()
        if SPECIAL.search(line)
    ]
    assert len(found) <= SPECIAL_CASES, "\n".join(found)

"""The documents name things that exist: functions, tests, files; and every result has its row."""

import ast
import functools
import importlib
import re
from pathlib import Path

import pytest

from repository import ROOT

PAPER = ROOT / "docs" / "paper.md"
DOCUMENTS = sorted(
    [
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")),
    ]
)
NUMBERED = [
    *(f"Equation {i}" for i in range(1, 11)),
    *(f"Definition {i}" for i in range(1, 6)),
    *(f"Lemma {i}" for i in (1, 2)),
    *(f"Theorem {i}" for i in range(1, 8)),
    *(f"Corollary {i}" for i in (1, 2)),
    "Algorithm 1",
]
NAME = re.compile(r"`(reconpriv(?:\.\w+)+)`")
TEST = re.compile(r"`(tests/[\w/]+\.py)::([\w:]+)`")
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
OUTSIDE = "../" + "shared"


def resolves(name):
    """Whether a dotted name is a module, or an attribute reached from one."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        try:
            thing = importlib.import_module(".".join(parts[:length]))
        except ModuleNotFoundError:
            continue
        for part in parts[length:]:
            fields = getattr(thing, "__dataclass_fields__", {})
            if not hasattr(thing, part) and part not in fields:
                return False
            thing = getattr(thing, part, None)
        return True
    return False


def unresolved_names(text):
    return [name for name in NAME.findall(text) if not resolves(name)]


@functools.cache
def names_of_tests(path):
    """The tests of a file, those in classes as Class::name; one expected to fail shows nothing."""
    if not path.is_file():
        return frozenset()
    found = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        members = node.body if isinstance(node, ast.ClassDef) else [node]
        prefix = f"{node.name}::" if isinstance(node, ast.ClassDef) else ""
        for member in members:
            if isinstance(member, ast.FunctionDef) and member.name.startswith("test_"):
                marks = " ".join(ast.unparse(decorator) for decorator in member.decorator_list)
                if "mark.xfail" not in marks:
                    found.add(prefix + member.name)
    return frozenset(found)


def missing_tests(text):
    return [
        f"{file}::{name}"
        for file, name in TEST.findall(text)
        if name not in names_of_tests(ROOT / file)
    ]


def rows(text):
    """Table rows by their first cell."""
    lines = [line.strip() for line in text.splitlines() if line.startswith("|")]
    return {line.strip("|").split("|")[0].strip(): line for line in lines}


def results_without_row(text):
    """Numbered results that have no row naming at least one function and one test."""
    table = rows(text)
    return [
        label
        for label in NUMBERED
        if label not in table or not NAME.search(table[label]) or not TEST.search(table[label])
    ]


def anchors(text):
    """What the headings of a text are called in a link."""
    headings = re.findall(r"^#+ (.+)$", text, flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def broken_links(text, folder):
    """Relative links to a file that is not there, or to a heading that its text does not have."""
    broken = []
    for target in LINK.findall(text):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        file = folder / name
        if name and not file.exists():
            broken.append(target)
        elif anchor:
            there = file.read_text(encoding="utf-8") if name else text
            if anchor not in anchors(there):
                broken.append(target)
    return broken


def shown(path):
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", DOCUMENTS, ids=shown)
def test_every_name_in_a_document_resolves(path):
    assert unresolved_names(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("path", DOCUMENTS, ids=shown)
def test_every_test_that_a_document_names_exists(path):
    assert missing_tests(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("path", DOCUMENTS, ids=shown)
def test_relative_links_lead_somewhere(path):
    assert broken_links(path.read_text(encoding="utf-8"), path.parent) == []


def test_every_numbered_result_of_the_paper_has_a_row_with_a_function_and_a_test():
    assert results_without_row(PAPER.read_text(encoding="utf-8")) == []


def test_every_decision_is_in_the_index():
    folder = ROOT / "docs" / "decisions"
    index = (folder / "README.md").read_text(encoding="utf-8")
    linked = set(LINK.findall(index))
    assert {path.name for path in folder.glob("[0-9]*.md")} == linked


def test_nothing_refers_to_files_outside_the_repository():
    files = [ROOT / "README.md", *(ROOT / "docs").rglob("*"), *(ROOT / "src").rglob("*")]
    kinds = {".md", ".py", ".toml", ".txt", ".json"}
    texts = {f: f.read_text(encoding="utf-8") for f in files if f.suffix in kinds}
    assert len(texts) > 20
    assert [shown(f) for f, text in texts.items() if OUTSIDE in text] == []


MADE_UP = """
# A `b`: C
| Paper | Says | Function | Test |
|---|---|---|---|
| Equation 1 | ok | `reconpriv.table.Table` | `tests/unit/house/test_docs.py::test_made_up_text` |
| Equation 2 | no test | `reconpriv.theory.tails.bounds.chernoff_full` | |
| Lemma 1 | no function | | `tests/unit/house/test_docs.py::test_no_such_test` |
| Theorem 1 | no | `reconpriv.policy.policy.Nobody` `reconpriv.nowhere.x` | `tests/no.py::test_x` |

See [this](test_docs.py), [that](nowhere.md#part), [web](https://example.org/x),
[up](#a-b-c), [up](#top),
`reconpriv.policy.policy.Policy.retention`, `reconpriv.policy.policy.Policy.no_such_field`.
"""


def test_made_up_text():
    assert unresolved_names(MADE_UP) == [
        "reconpriv.policy.policy.Nobody",
        "reconpriv.nowhere.x",
        "reconpriv.policy.policy.Policy.no_such_field",
    ]
    assert missing_tests(MADE_UP) == [
        "tests/unit/house/test_docs.py::test_no_such_test",
        "tests/no.py::test_x",
    ]
    assert broken_links(MADE_UP, Path(__file__).parent) == ["nowhere.md#part", "#top"]
    without = results_without_row(MADE_UP)
    assert "Equation 1" not in without
    assert {"Equation 2", "Equation 3", "Lemma 1", "Algorithm 1"} <= set(without)
    assert "Theorem 1" not in without  # it has a row; that its names are wrong is found above


def test_the_first_page_compares_with_the_alternatives_as_measured():
    root = ROOT
    page = (root / "docs" / "index.md").read_text(encoding="utf-8")
    section = page.split("## When to use something else")[1].split("\n## ")[0]
    section = " ".join(section.split())
    results = (root / "benchmarks" / "RESULTS.md").read_text(encoding="utf-8")
    rows = re.findall(r"\| sex, region.*?\| ([\d,]+) \| ([\d.]+) \| ([\d,]+) \|", results)
    assert [groups for groups, _, _ in rows] == ["20", "1,400"]
    for groups, noisy, released in rows:
        assert f"{groups} groups" in section and released in section
        assert f"{float(noisy):.1f} per count" in section
    assert "docs/index.md#when-to-use-something-else" in (root / "README.md").read_text("utf-8")


def test_the_readme_is_short():
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 150
    assert max(map(len, lines)) <= 120

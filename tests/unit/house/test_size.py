"""What keeps the package small: short modules, one meaning per class name, few special cases."""

import ast
import re
from collections import Counter
from collections.abc import Iterator

from repository import ROOT

SOURCES = {
    path.relative_to(ROOT / "src" / "reconpriv").as_posix(): path.read_text(encoding="utf-8")
    for path in sorted((ROOT / "src" / "reconpriv").rglob("*.py"))
}
LONGEST = 450
SPECIAL_CASES = 20
# Whatever has one of these words in its name, but for a property of sample sizes and a sentence.
SPECIAL = {"margins", "protect", "protection", "protected", "coarsening"}
OTHERS = {"counts_margins", "no_margins"}


def test_no_module_is_long():
    assert not [name for name, text in SOURCES.items() if len(text.splitlines()) > LONGEST]


def test_a_class_name_means_one_thing():
    names = Counter(
        name for text in SOURCES.values() for name in re.findall(r"^class (\w+)", text, re.M)
    )
    assert not [name for name, times in names.items() if times > 1]
    others = {
        name for text in SOURCES.values() for name in re.findall(r"^([A-Z][a-z]\w*) = ", text, re.M)
    }
    assert not names.keys() & others


def named(node: ast.AST) -> str:
    """A name, or the last part of an attribute."""
    return getattr(node, "attr", getattr(node, "id", ""))


def conditions(node: ast.AST) -> Iterator[ast.AST]:
    """What is taken for true or false in an expression or a statement."""
    match node:
        case ast.If() | ast.IfExp() | ast.While() | ast.Assert():
            yield node.test
        case ast.comprehension():
            yield from node.ifs
        case ast.BoolOp():
            yield from node.values
        case ast.UnaryOp(op=ast.Not()):
            yield node.operand
        case ast.Compare():
            yield node
        case ast.Call(func=ast.Name("bool")):
            yield from node.args


def special(node: ast.AST) -> bool:
    """True for margins or protection as a truth value, or compared with their absence."""
    if isinstance(node, ast.NamedExpr):
        return special(node.value)
    if not isinstance(node, ast.Compare):
        return named(node) not in OTHERS and bool(SPECIAL & set(named(node).split("_")))
    parts = [node.left, *node.comparators]
    absent = [one for one in parts if ast.unparse(one) == "None" or named(one).startswith("NO_")]
    return bool(absent) and any(map(special, parts))


def lines_that_ask(tree: ast.AST, wishes: frozenset[str] = frozenset()) -> set[int]:
    """The lines with such a condition; ``wishes`` are arguments by which a caller wants some."""
    found = set()
    if isinstance(tree, ast.FunctionDef):
        every = [*tree.args.args, *tree.args.kwonlyargs]
        wishes |= {a.arg for a in every if a.annotation and "bool" in ast.unparse(a.annotation)}
    for one in conditions(tree):
        if special(one) and not (isinstance(one, ast.Name) and one.id in wishes):
            found.add(one.lineno)
    return found.union(*(lines_that_ask(child, wishes) for child in ast.iter_child_nodes(tree)))


def test_few_lines_ask_whether_there_are_margins_or_protection():
    """A policy without them has those of no table and of no column, which need no question."""
    found = [
        f"{name}: {text.splitlines()[line - 1].strip()}"
        for name, text in SOURCES.items()
        for line in sorted(lines_that_ask(ast.parse(text)))
    ]
    assert len(found) <= SPECIAL_CASES, "\n".join(found)


def test_a_question_is_found_however_it_is_asked():
    asked = [
        "if margins is None: pass", "if not report.margins: pass", "x = 1 if a.protect else 2",
        "[s for s in every if s.margins]", "y = policy.wanted_margins or 3", "bool(coarsening)",
        "while b and c.protection: pass", "if found := b.margins: pass",
        "if found.margins != NO_MARGINS: pass",
    ]  # fmt: skip
    assert all(lines_that_ask(ast.parse(one)) == {1} for one in asked)
    free = [
        "def f(*, margins: bool): return 1 if margins else 2", "if tables: pass",
        "x = margins.rho", "if policy.sampling.counts_margins: pass", "if a.margins == b: pass",
    ]  # fmt: skip
    assert not any(lines_that_ask(ast.parse(one)) for one in free)

"""What the files of the package import, read from their source."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import reconpriv

ROOT = Path(reconpriv.__file__).parent


@dataclass(frozen=True)
class Import:
    """One imported module: ``late`` if inside a function, ``typing`` if only for a type checker."""

    importer: str
    imported: str
    late: bool = False
    typing: bool = False


@cache
def modules() -> dict[str, Path]:
    """Every module of the package, by name without ``reconpriv.``."""
    return {name_of(file): file for file in sorted(ROOT.rglob("*.py"))}


def name_of(file: Path) -> str:
    parts = file.relative_to(ROOT).with_suffix("").parts
    name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
    return name or "reconpriv"


@cache
def all_imports() -> tuple[Import, ...]:
    """Every import of the package."""
    return tuple(
        one for name, file in modules().items() for one in imports_of(name, file.read_text())
    )


def imports_of(name: str, text: str) -> Iterator[Import]:
    """The imports of one file, our own modules without ``reconpriv.``."""
    tree = ast.parse(text)
    late = set(_inside(tree, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda))
    typing = {
        node
        for one in ast.walk(tree)
        if isinstance(one, ast.If) and ast.unparse(one.test) == "TYPE_CHECKING"
        for statement in one.body
        for node in ast.walk(statement)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name}: imports are absolute here"
            found = [_module(str(node.module), alias.name) for alias in node.names]
        else:
            continue
        for imported in found:
            yield Import(name, _ours(imported), node in late, node in typing)


def _inside(tree: ast.AST, kind: type) -> Iterator[ast.AST]:
    for one in ast.walk(tree):
        if isinstance(one, kind):
            yield from ast.walk(one)


def _module(package: str, name: str) -> str:
    """The module that ``from package import name`` means: the name itself, or what defines it."""
    if package.split(".", maxsplit=1)[0] != "reconpriv":
        return f"{package}.{name}"
    place = ROOT.joinpath(*package.split(".")[1:], name)
    is_module = place.with_suffix(".py").is_file() or (place / "__init__.py").is_file()
    return f"{package}.{name}" if is_module else package


def _ours(module: str) -> str:
    """Our own modules without the package name; the package itself keeps it."""
    return module.removeprefix("reconpriv.")


def within(module: str, package: str) -> bool:
    return module == package or module.startswith(package + ".")

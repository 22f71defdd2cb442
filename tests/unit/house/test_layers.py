"""The borders of the layers, read off the imports."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import reconpriv

ROOT = Path(reconpriv.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))
KERNEL = ("kernel.py", "cells.py", "randomness.py", "policy.py", "schema.py", "recoding.py",
          "auditing.py", "single_records.py", "column_risk.py", "phrases.py")  # fmt: skip


def name_of(file: Path) -> str:
    return file.relative_to(ROOT).as_posix()


def imports(file: Path, *, typing_too: bool = True) -> Iterator[str]:
    """Every module that a file imports anywhere, with the names taken from it."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    skipped = set() if typing_too else set(_typing_only(tree))
    for node in ast.walk(tree):
        if node in skipped:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name_of(file)}: imports are absolute here"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _typing_only(tree: ast.AST) -> Iterator[ast.AST]:
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.If)
            and isinstance(node.test, ast.Name)
            and node.test.id == "TYPE_CHECKING"
        ):
            for statement in node.body:
                yield from ast.walk(statement)


def top_imports(file: Path) -> list[str]:
    """What is imported when the file is, and not only when something in it is called."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    inside = {
        node
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        for node in ast.walk(function)
    } | set(_typing_only(tree))
    found: list[str] = []
    for node in ast.walk(tree):
        if node in inside:
            continue
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            found += [f"{node.module}.{alias.name}" for alias in node.names]
    return found


def files_behind(module: str) -> set[str]:
    """The files of this package that the import of a module, or of a name in it, runs."""
    parts = module.split(".")
    if parts[0] != "reconpriv":
        return set()
    paths = [Path(*parts[1:i]) for i in range(1, len(parts) + 1)]
    candidates = [p.with_suffix(".py") for p in paths if p.name] + [
        p / "__init__.py" for p in paths
    ]
    return {path.as_posix() for path in candidates if (ROOT / path).is_file()}


def within(module: str, package: str) -> bool:
    return module == package or module.startswith(package + ".")


def users_of(package: str, *, typing_too: bool = True) -> set[str]:
    return {
        name_of(file)
        for file in FILES
        if any(within(module, package) for module in imports(file, typing_too=typing_too))
    }


def test_the_import_reader_sees_the_forms_it_must_see(tmp_path: Path) -> None:
    file = tmp_path / "x.py"
    file.write_text("import a.b as c\nfrom d import e\ndef f():\n    from g.h import i, j\n")
    assert set(imports(file)) == {"a.b", "d.e", "g.h.i", "g.h.j"}


def test_the_import_reader_can_leave_type_checking_out(tmp_path: Path) -> None:
    file = tmp_path / "x.py"
    file.write_text("if TYPE_CHECKING:\n    import a\nimport b\n")
    assert set(imports(file, typing_too=False)) == {"b"}


def test_the_import_reader_can_leave_functions_out(tmp_path: Path) -> None:
    file = tmp_path / "x.py"
    file.write_text("import a\nif True:\n    from b import c\ndef f():\n    import d\n")
    assert set(top_imports(file)) == {"a", "b.c"}


@pytest.mark.parametrize("file", sorted((ROOT / "theory").rglob("*.py")), ids=name_of)
def test_theory_imports_only_numpy_scipy_and_itself(file: Path) -> None:
    allowed = ("numpy", "scipy", "reconpriv.errors", "reconpriv.theory", *sys.stdlib_module_names)
    strangers = [m for m in imports(file) if not any(within(m, package) for package in allowed)]
    assert strangers == []


@pytest.mark.parametrize("file", sorted((ROOT / "theory").rglob("*.py")), ids=name_of)
def test_theory_does_no_input_or_output_and_draws_nothing(file: Path) -> None:
    banned = ("os", "io", "pathlib", "tempfile", "subprocess", "random", "secrets", "numpy.random")
    assert [m for m in imports(file) if any(within(m, package) for package in banned)] == []


@pytest.mark.parametrize("name", KERNEL)
def test_the_kernel_imports_no_engine_and_no_command_line(name: str) -> None:
    banned = ("duckdb", "reconpriv.engines", "reconpriv.cli", "reconpriv.table", "typer", "pyspark")
    modules = list(imports(ROOT / name))
    assert [m for m in modules if any(within(m, package) for package in banned)] == []


@pytest.mark.parametrize("name", [name for name in KERNEL if name != "auditing.py"])
def test_the_kernel_does_not_print(name: str) -> None:
    assert not [m for m in imports(ROOT / name) if within(m, "rich") or "render" in m]


def test_duckdb_is_imported_only_under_engines() -> None:
    users = users_of("duckdb")
    assert users
    assert all(user.startswith("engines/") for user in users)


@pytest.mark.parametrize("package", ["adbc_driver_postgresql", "adbc_driver_manager", "sqlite3"])
def test_databases_are_known_to_engines_alone(package: str) -> None:
    users = users_of(package)
    assert users or package == "adbc_driver_manager"
    assert all(user.startswith("engines/") for user in users)


def test_the_driver_of_postgresql_is_imported_only_once_it_is_needed() -> None:
    """It is an extra, and brings pandas and Polars with it where they are installed."""
    assert users_of("adbc_driver_postgresql") == {"engines/postgresql_connection.py"}
    top = top_imports(ROOT / "engines" / "postgresql_connection.py")
    assert not [module for module in top if module.startswith("adbc")]


def test_pyspark_is_imported_only_by_the_spark_engine() -> None:
    users = users_of("pyspark")
    assert "engines/spark_session.py" in users
    assert all(user.startswith("engines/spark") for user in users)


@pytest.mark.parametrize("name", sorted(name_of(f) for f in ROOT.glob("engines/spark*.py")))
def test_pyspark_is_imported_only_once_it_is_needed(name: str) -> None:
    """It is an extra, and takes seconds to import."""
    assert not [m for m in top_imports(ROOT / name) if within(m, "pyspark")]


def test_what_runs_on_sparks_workers_needs_neither_engine() -> None:
    """Not even by way of what it imports: a worker has pyarrow and numpy, but no DuckDB."""
    reached, left = set(), {"engines/spark_tasks.py"}
    while left:
        name = left.pop()
        reached.add(name)
        for module in top_imports(ROOT / name):
            assert not within(module, "duckdb") and not within(module, "pyspark"), (name, module)
            left |= files_behind(module) - reached
    assert {"kernel.py", "randomness.py", "cells.py"} <= reached
    assert not reached & {"engines/duckdb.py", "engines/spark.py", "table.py"}


def test_the_duckdb_engine_is_imported_only_where_an_engine_is_chosen() -> None:
    users = {user for user in users_of("reconpriv.engines.duckdb.engine") if "engines/" not in user}
    assert "reading.py" in users
    assert not users & {*KERNEL, "release.py", "manifest.py", "render.py"}


def test_typer_is_imported_only_by_the_command_line() -> None:
    users = users_of("typer")
    assert users
    assert all(user.startswith("cli/") for user in users)


def test_rich_is_imported_only_where_things_are_shown() -> None:
    users = users_of("rich")
    assert "render.py" in users
    shown = ("render.py", "render_audit.py", "render_html.py", "render_rows.py", "render_tune.py",
             "render_learning.py", "demo.py")  # fmt: skip
    assert all(user.startswith("cli/") or user in shown for user in users)


def test_scikit_learn_is_imported_only_by_the_classifier() -> None:
    """It is an extra, and takes seconds to import."""
    assert users_of("sklearn") == {"learning/naive_bayes.py"}
    users = {
        name_of(file)
        for file in FILES
        if any(within(m, "reconpriv.learning.naive_bayes") for m in top_imports(file))
    }
    assert users == {"learning/evaluate.py"}


@pytest.mark.parametrize("package", ["altair", "vl_convert"])
def test_charts_for_the_browser_are_made_only_for_reports_and_studio(package: str) -> None:
    users = users_of(package)
    assert users
    assert all(user.startswith(("reports/", "studio/")) for user in users)


@pytest.mark.parametrize(
    ("package", "users"),
    [("pyreadstat", {"engines/statistical.py", "export.py"}), ("fastexcel", {"engines/excel.py"})],
)
def test_libraries_of_file_formats_are_imported_where_files_are_read_and_written(
    package: str, users: set[str]
) -> None:
    """They are extras, so only once they are needed."""
    assert users_of(package) == users
    for name in users:
        assert not [m for m in top_imports(ROOT / name) if within(m, package)]


def test_the_analysts_report_knows_nothing_of_the_raw_table() -> None:
    raw = ("reconpriv.table", "reconpriv.core.audit", "reconpriv.attacks", "reconpriv.tuning",
           "reconpriv.reports.internal", "reconpriv.reports.groups",
           "reconpriv.reports.lab")  # fmt: skip
    for name in ("reports/analyst.py", "reports/accuracy.py"):
        modules = list(imports(ROOT / name))
        assert [m for m in modules if any(within(m, package) for package in raw)] == []


@pytest.mark.parametrize("file", sorted((ROOT / "tuning").rglob("*.py")), ids=name_of)
def test_tuning_needs_no_engine_and_shows_nothing_itself(file: Path) -> None:
    banned = ("duckdb", "reconpriv.engines", "reconpriv.table", "reconpriv.cli", "rich")
    assert [m for m in imports(file) if any(within(m, package) for package in banned)] == []


def test_the_library_does_not_import_the_command_line() -> None:
    users = users_of("reconpriv.cli")
    assert users
    assert all(user.startswith("cli/") or user == "__main__.py" for user in users)


@pytest.mark.parametrize("package", ["random", "numpy.random", "scipy.stats.sampling", "uuid"])
def test_no_other_generator_is_imported_anywhere(package: str) -> None:
    assert users_of(package) == set()


def test_numpys_generator_is_not_reached_through_an_attribute_either() -> None:
    """``np.random.…`` needs no import of its own."""
    users = {
        name_of(file)
        for file in FILES
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute)
        and node.attr == "random"
        and isinstance(node.value, ast.Name)
        and node.value.id in ("np", "numpy")
    }
    assert users == set()


def test_secrets_are_made_and_used_in_one_file() -> None:
    """The studio's door draws a token, which has nothing to do with a release."""
    assert users_of("cryptography") == {"randomness.py"}
    assert users_of("secrets") == {"randomness.py", "studio/guard.py"}


@pytest.mark.parametrize("package", ["shiny", "htmltools", "starlette", "uvicorn"])
def test_the_web_is_known_to_the_studio_alone(package: str) -> None:
    users = users_of(package)
    assert users
    assert all(user.startswith("studio/") for user in users)


def test_the_studio_calls_the_public_api_and_holds_no_formula() -> None:
    """Beside the public names it may use errors, commands, what a sweep or an audit returns, and
    the words that all reports share.
    """
    import reconpriv as rp

    audits = (
        "reconpriv.core.column_risk",
        "reconpriv.core.single_records",
        "reconpriv.messages.phrases",
    )
    allowed = (
        "reconpriv.messages.commands",
        "reconpriv.messages.remedies",
        "reconpriv.errors",
        "reconpriv.studio",
        "reconpriv.tuning",
    )
    allowed += audits
    for file in sorted((ROOT / "studio").rglob("*.py")):
        for module in imports(file):
            assert not within(module, "numpy")
            assert not within(module, "scipy")
            if within(module, "reconpriv") and module != "reconpriv":
                public = module.removeprefix("reconpriv.") in rp.__all__
                assert public or any(within(module, package) for package in allowed), module


def test_the_library_does_not_import_the_studio() -> None:
    users = {user for user in users_of("reconpriv.studio") if not user.startswith("studio/")}
    assert users == {"cli/studio.py"}


def test_the_package_itself_imports_nothing_heavy_at_the_top() -> None:
    modules = set(imports(ROOT / "__init__.py", typing_too=False))
    assert modules <= {
        "__future__.annotations", "typing.TYPE_CHECKING", "typing.Any", "importlib.import_module",
        "reconpriv._version.__version__",
    }  # fmt: skip


def test_every_file_was_looked_at() -> None:
    assert {"kernel.py", "engines/duckdb.py", "cli/app.py", "theory/bounds.py"} <= {
        name_of(file) for file in FILES
    }

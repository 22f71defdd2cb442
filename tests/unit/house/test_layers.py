"""The layers of layers.toml against every import of the package."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from graphlib import CycleError, TopologicalSorter

import pytest

import reconpriv as rp
from imports import Import, all_imports, imports_of, modules, within
from repository import ROOT

LAYERS = tomllib.loads((ROOT / "layers.toml").read_text(encoding="utf-8"))
LIBRARIES = LAYERS["libraries"] | LAYERS["optional_libraries"]
OPEN_TO_ALL = ("numpy", "pyarrow")


def layer_of(module):
    """The layer that names the module, or the closest package around it."""
    named = [
        (len(entry), number)
        for number, layer in enumerate(LAYERS["layer"])
        for entry in layer["modules"]
        if within(module, entry)
    ]
    return max(named)[1] if named else None


def is_ours(one):
    return one.imported in modules()


def points_up(one):
    return (layer_of(one.imported) or 0) > (layer_of(one.importer) or 0)


def library(one):
    return one.imported.split(".")[0]


def is_foreign(one):
    return not is_ours(one) and library(one) not in sys.stdlib_module_names


def test_the_import_reader_sees_the_forms_it_must_see():
    text = (
        "import a.b as c\nfrom d import e\ndef f():\n    from g.h import i, j\n"
        "if TYPE_CHECKING:\n    import k\nfrom reconpriv.cells import cube\n"
        "from reconpriv.policy.policy import Policy\nfrom reconpriv import Table\n"
    )
    assert set(imports_of("x", text)) == {
        Import("x", "a.b"),
        Import("x", "d.e"),
        Import("x", "g.h.i", late=True),
        Import("x", "g.h.j", late=True),
        Import("x", "k", typing=True),
        Import("x", "cells.cube"),
        Import("x", "policy.policy"),
        Import("x", "reconpriv"),
    }


def test_every_module_has_a_layer():
    assert len(modules()) > 200
    packages = {"release"}  # their own __init__ files hold a docstring and nothing else
    assert [name for name in modules() if layer_of(name) is None and name not in packages] == []


def test_every_entry_of_the_list_names_something():
    known = set(modules())
    entries = [entry for layer in LAYERS["layer"] for entry in layer["modules"]]
    users = [user for allowed in LIBRARIES.values() for user in allowed]
    assert [entry for entry in entries + users if entry not in known] == []


def test_no_module_imports_a_higher_layer():
    up = [one for one in all_imports() if is_ours(one) and points_up(one)]
    assert [one for one in up if not one.late and not one.typing] == []


def test_function_level_imports_hide_no_cycle():
    """Those that point upwards are listed, with a reason."""
    up = {
        f"{one.importer} -> {one.imported}"
        for one in all_imports()
        if is_ours(one) and points_up(one) and one.late
    }
    assert up == set(LAYERS["late"])


def test_no_modules_import_each_other_in_a_circle():
    """Not within a layer either, and not by way of functions."""
    graph: dict[str, set[str]] = {name: set() for name in modules()}
    for one in all_imports():
        edge = f"{one.importer} -> {one.imported}"
        if is_ours(one) and not one.typing and edge not in LAYERS["late"]:
            graph[one.importer] |= {one.imported} - {one.importer, "reconpriv"}
    try:
        list(TopologicalSorter(graph).static_order())
    except CycleError as error:
        pytest.fail(f"a circle: {' -> '.join(error.args[1])}")


def test_a_module_that_climbs_would_be_noticed():
    (climbing,) = imports_of("theory.bounds", "from reconpriv.cli import app")
    assert points_up(climbing)
    (falling,) = imports_of("cli.app", "from reconpriv.theory import bounds")
    assert not points_up(falling)


def test_libraries_are_imported_where_the_list_says():
    strangers = [
        one
        for one in all_imports()
        if is_foreign(one)
        and not one.typing
        and library(one) not in OPEN_TO_ALL
        and not any(within(one.importer, user) for user in LIBRARIES.get(library(one), ()))
    ]
    assert strangers == []


def test_optional_libraries_are_imported_once_they_are_needed():
    early = [
        one
        for one in all_imports()
        if library(one) in LAYERS["optional_libraries"] and not one.late and not one.typing
    ]
    assert early == []
    # Trees of SQL are sqlglot's, so what reads them comes late.
    plain = ("ask.sql", "ask.sql.text", "ask.sql.computed")
    readers = {
        one.importer
        for one in all_imports()
        if within(one.imported, "ask.sql") and one.imported not in plain
        if not one.late and not one.typing
    }
    assert {name for name in readers if not within(name, "ask.sql")} == set()
    # The classifier is a class of scikit-learn's, so its own module is what comes late.
    users = {
        one.importer
        for one in all_imports()
        if one.imported == "learning.naive_bayes" and not one.late and not one.typing
    }
    assert users == {"learning.evaluate"}


def test_no_library_of_the_list_is_unused():
    assert set(LIBRARIES) == {library(one) for one in all_imports() if is_foreign(one)} - set(
        OPEN_TO_ALL
    )


@pytest.mark.parametrize("package", ["engines.duckdb", "engines.spark"])
def test_no_engine_is_imported_outside_engines(package):
    users = {one.importer for one in all_imports() if within(one.imported, package)}
    assert users
    assert [user for user in users if not within(user, "engines")] == []


def test_theory_does_no_input_or_output_and_draws_nothing():
    banned = ("os", "io", "pathlib", "tempfile", "subprocess", "random", "secrets", "numpy.random")
    found = [one for one in all_imports() if within(one.importer, "theory")]
    assert found
    assert [o for o in found if any(within(o.imported, package) for package in banned)] == []


def test_what_runs_on_sparks_workers_needs_neither_engine():
    """Not even by way of what it imports: a worker has pyarrow and numpy, but no DuckDB."""
    reached: set[str] = set()
    left = {"engines.spark.tasks"}
    while left:
        name = left.pop()
        reached.add(name)
        for one in all_imports():
            if one.importer == name and not one.late and not one.typing:
                assert library(one) not in ("duckdb", "pyspark"), one
                left |= {one.imported} & set(modules()) - reached
    assert {"protect.kernel", "cells.randomness", "cells.cell_batch"} <= reached
    assert not reached & {"engines.duckdb.engine", "engines.spark.engine", "table"}


def test_the_analysts_report_knows_nothing_of_the_raw_table():
    raw = ("table", "auditing.audit_groups", "auditing.verdicts", "attacks", "tuning",
           "reports.internal", "reports.groups", "reports.lab")  # fmt: skip
    for name in ("reports.analyst", "reports.accuracy"):
        found = [one for one in all_imports() if one.importer == name]
        assert found
        assert [o for o in found if any(within(o.imported, package) for package in raw)] == []


@pytest.mark.parametrize("package", ["random", "numpy.random", "scipy.stats.sampling_rule", "uuid"])
def test_no_other_generator_is_imported_anywhere(package):
    assert [one for one in all_imports() if within(one.imported, package)] == []


def test_numpys_generator_is_not_reached_through_an_attribute_either():
    """``np.random.…`` needs no import of its own."""
    users = {
        name
        for name, file in modules().items()
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute)
        and node.attr == "random"
        and isinstance(node.value, ast.Name)
        and node.value.id in ("np", "numpy")
    }
    assert users == set()


def test_secrets_are_made_and_used_in_one_file():
    """The studio's guard draws a token, which has nothing to do with a release."""
    users = {one.importer for one in all_imports() if library(one) == "secrets"}
    assert users == {"cells.randomness", "studio.server.guard"}


def test_the_studio_calls_the_public_api_and_holds_no_formula():
    """Beside the public names it may use errors, commands, what a sweep or an audit returns, the
    tables, charts and words that all reports share, scratch folders, the registries of what can be
    chosen, questions that are asked of a release and of the table alike, ledgers, and the share of
    people whom pooling exposes.
    """
    allowed = ("reconpriv", "auditing",
               "errors", "messages",
               "studio", "tuning", "policy", "theory.tails.bounds", "estimate.counts",
               "sources.formats", "show", "reports.charts", "reports.risk_sections",
               "reports.changes", "reports.columns",
               "columns.schema", "ask.form", "answers.beside_truth", "answers.figure",
                   "attacks.pool", "proposals",
               "writing.scratch", "ledger")  # fmt: skip
    for one in all_imports():
        if within(one.importer, "studio"):
            assert library(one) not in ("numpy", "scipy")
            if is_ours(one):
                public = one.imported in rp.__all__
                assert public or any(within(one.imported, package) for package in allowed), one


def test_the_package_itself_imports_nothing_heavy_at_the_top():
    found = {
        one.imported
        for one in all_imports()
        if one.importer == "reconpriv" and not one.late and not one.typing
    }
    assert found <= {"__future__.annotations", "typing.TYPE_CHECKING", "typing.Any",
                     "importlib.import_module", "_version"}  # fmt: skip


def test_contributing_shows_the_same_list():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\w+) \| (`[^|]+) \| ([^|]+) \|$", text, re.M)
    shown = [(name, re.findall(r"`([\w.]+)`", names), holds) for name, names, holds in rows]
    assert shown == [(layer["name"], layer["modules"], layer["holds"]) for layer in LAYERS["layer"]]

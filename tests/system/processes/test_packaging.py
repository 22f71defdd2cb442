"""The wheel and the sdist: complete, clean, and usable without a checkout."""

import os
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path

import pytest

import reconpriv
from repository import ROOT


def run(*command, cwd, **env):
    clean = {name: os.environ[name] for name in os.environ if not name.startswith("PYTHON")}
    done = subprocess.run(
        command, cwd=cwd, env=clean | env, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    out = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", str(out), str(ROOT), cwd=out)
    return out


@pytest.fixture(scope="module")
def wheel(built):
    (found,) = built.glob("*.whl")
    return found


def test_the_wheel_holds_the_package_with_its_data_and_nothing_else(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    assert {"reconpriv/py.typed", "reconpriv/data/adult.parquet", "reconpriv/data/README.md",
            "reconpriv/data/census_workers.parquet", "reconpriv/reports/style.css",
            "reconpriv/studio/www/studio.js"} <= set(names)  # fmt: skip
    inside = {
        f"reconpriv/{file.relative_to(ROOT / 'src' / 'reconpriv').as_posix()}"
        for file in (ROOT / "src" / "reconpriv").rglob("*")
        if file.is_file() and "__pycache__" not in file.parts
    }
    assert {name for name in names if not name.split("/")[0].endswith(".dist-info")} == inside


def test_the_sdist_holds_what_is_needed_to_test_and_to_build(built):
    (archive,) = built.glob("*.tar.gz")
    with tarfile.open(archive) as opened:
        names = {name.split("/", 1)[1] for name in opened.getnames() if "/" in name}
    assert {"pyproject.toml", "Makefile", "README.md", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE",
            "tests/conftest.py", "docs/paper.md", "r/DESCRIPTION",
            "tools/system-packages.sh"} <= names  # fmt: skip
    assert not [name for name in names if ".venv" in name or "__pycache__" in name]


@pytest.fixture(scope="module")
def command(wheel, tmp_path_factory):
    """The wheel in an environment of its own; only its dependencies are borrowed from ours."""
    place = tmp_path_factory.mktemp("elsewhere") / "venv"
    run(sys.executable, "-m", "venv", "--without-pip", str(place), cwd=wheel.parent)
    python = place / "bin" / "python"
    scheme = {"base": str(place), "platbase": str(place)}
    site = Path(sysconfig.get_path("purelib", "venv", vars=scheme))
    run(
        sys.executable, "-m", "pip", "--python", str(python), "install", "--no-deps", "--no-index",
        "--quiet", str(wheel), cwd=wheel.parent,
    )  # fmt: skip
    # Only directories that stand in a .pth file: those of ours, and so the checkout, do not count.
    (site / "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return place / "bin" / "reconpriv"


def test_the_wheel_works_without_a_checkout(command, tmp_path):
    assert run(str(command), "--version", cwd=tmp_path) == f"reconpriv {reconpriv.__version__}\n"
    where = run(
        str(command.with_name("python")), "-c", "import reconpriv; print(reconpriv.__file__)",
        cwd=tmp_path,
    )  # fmt: skip
    assert Path(where.strip()).is_relative_to(command.parents[1])
    assert "48,842" in run(str(command), "demo", cwd=tmp_path)
    assert "example:census_workers" in run(str(command), "doctor", cwd=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_the_oldest_versions_are_those_of_pyproject():
    lines = run(sys.executable, str(ROOT / "tools" / "oldest_versions.py"), cwd=ROOT).split()
    assert "numpy==2.0.*" in lines
    assert len(lines) == len({line.split("==")[0] for line in lines})
    assert {line.split("==")[0] for line in lines} >= {"duckdb", "pyarrow", "scipy", "sqlglot"}

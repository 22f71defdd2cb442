"""How to install what an optional part needs."""

import re
from pathlib import Path

import pytest

import reconpriv as rp
from reconpriv.extras import install_hint


@pytest.mark.parametrize("extra", ["query", "report", "studio", "spark", "formats", "databases"])
def test_an_installation_hint_names_packages_not_reconpriv(extra):
    hint = install_hint(extra)
    assert re.search(r"-m pip install '[a-z-]+>=[\d.]+'", hint), hint
    assert "reconpriv[" not in hint


def test_run_from_its_sources_the_hint_names_the_source_folder(monkeypatch):
    import importlib.metadata

    def missing(name):
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "requires", missing)
    assert "pip install '.[query]'" in install_hint("query")


def test_no_message_names_an_installation_from_an_index():
    root = Path(rp.__file__).parent
    found = [
        file.name for file in root.rglob("*.py") if "pip install 'reconpriv[" in file.read_text()
    ]
    assert found == []

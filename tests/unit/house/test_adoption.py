"""What newcomers and forges read: citation, addresses, workflows, templates, hooks."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib

import pytest

import reconpriv as rp
from repository import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
CITATION = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
FORMS = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))
FORMS = [form for form in FORMS if form.name != "config.yml"]
TIDY = ROOT / "tools" / "tidy_text.py"


def top_level(text):
    """The keys at the margin of a YAML text, with what stands on their line."""
    return dict(re.findall(r"^([a-z-]+):[ \t]*(.*)$", text, flags=re.MULTILINE))


def unpinned(text):
    """Actions that follow a branch: neither a major version nor a commit."""
    used = re.findall(r"uses:\s*(\S+)", text)
    return [u for u in used if not re.search(r"@(v\d+(\.\d+)*|[0-9a-f]{40})$", u)]


def name_of(path):
    return path.name


def test_the_citation_has_what_its_schema_requires_and_the_version_of_the_package():
    found = top_level(CITATION)
    assert {"cff-version", "message", "title", "authors"} <= set(found)
    assert found["cff-version"] == "1.2.0"
    assert found["version"] == rp.__version__
    assert found["license"] == PROJECT["license"]
    assert found["repository-code"] == PROJECT["urls"]["Source"]


def test_the_citation_names_the_paper_and_its_authors():
    paper = CITATION.split("references:")[1]
    assert "title: Randomization Resilient To Sensitive Reconstruction\n" in paper
    assert re.findall(r"family-names: (\w+)", paper) == ["Wang", "Han", "Fu"]


def test_no_newer_python_is_excluded():
    assert PROJECT["requires-python"] == ">=3.11"
    workflow = (ROOT / ".github" / "workflows" / "test.yml").read_text(encoding="utf-8")
    tried = re.findall(r'"(3\.\d+)"', workflow.split("matrix:")[1].split("steps:")[0])
    named = [c.rpartition(" ")[2] for c in PROJECT["classifiers"] if ":: Python :: 3." in c]
    assert tried == named == ["3.11", "3.12", "3.13", "3.14"]


def test_all_addresses_are_below_one():
    home = PROJECT["urls"]["Homepage"]
    assert set(PROJECT["urls"]) == {"Homepage", "Documentation", "Source", "Issues", "Changelog"}
    assert all(url.startswith(home) for url in PROJECT["urls"].values())
    for url in PROJECT["urls"].values():
        _, _, path = url.partition("/blob/main/")
        assert (ROOT / path).exists()


def test_there_is_a_workflow_for_each_purpose():
    assert [w.stem for w in WORKFLOWS] == ["docs", "newest", "oldest", "release", "test"]


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=name_of)
def test_a_workflow_reads_only_pins_its_actions_and_runs_what_exists(workflow):
    text = workflow.read_text(encoding="utf-8")
    assert "\npermissions:\n  contents: read\n" in text
    assert unpinned(text) == []
    assert text.count("actions/checkout@") == text.count("persist-credentials: false")
    targets = re.findall(r"run: make ([\w-]+)", text)
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert targets
    assert [t for t in targets if not re.search(rf"^{t}:", makefile, re.MULTILINE)] == []


def test_an_action_that_follows_a_branch_is_noticed():
    assert unpinned("- uses: a/b@main\n- uses: a/c@v4\n- uses: d/e") == ["a/b@main", "d/e"]


def test_only_the_draft_of_a_release_may_write():
    writing = [w.name for w in WORKFLOWS if ": write" in w.read_text(encoding="utf-8")]
    assert writing == ["release.yml"]


@pytest.mark.parametrize("form", FORMS, ids=name_of)
def test_every_form_warns_of_raw_data_and_keys_and_asks_for_a_promise(form):
    text = form.read_text(encoding="utf-8")
    assert "Never paste raw data, a release of real data, or a key" in text
    assert text.rstrip().endswith("required: true")
    assert {"name", "description", "body"} <= set(top_level(text))


def test_there_are_three_forms():
    assert [form.stem for form in FORMS] == ["bug", "feature", "question"]


def test_every_hook_uses_the_tools_of_the_repository():
    text = (ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8")
    assert re.findall(r"repo: (\S+)", text) == ["local"]
    assert set(re.findall(r"language: (\w+)", text)) == {"system", "fail"}
    assert {"ruff", "ruff-format", "mypy"} <= set(re.findall(r"id: ([\w-]+)", text))


@pytest.mark.parametrize(
    ("before", "after", "code"),
    [
        (b"a\nb\n", b"a\nb\n", 0),
        (b"a  \nb\t\n\n\n", b"a\nb\n", 1),
        (b"a", b"a\n", 1),
        (b"", b"", 0),
        (b"<<<<<<< here\n", b"<<<<<<< here\n", 1),
    ],
)
def test_text_is_tidied(before, after, code, tmp_path):
    file = tmp_path / "a.txt"
    file.write_bytes(before)
    done = subprocess.run([sys.executable, TIDY, file], capture_output=True, check=False)
    assert (file.read_bytes(), done.returncode) == (after, code)

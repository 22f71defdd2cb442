"""No page for stewards or analysts uses a term of the glossary before it links or explains it."""

import pytest

import terms

KNOWN = terms.terms(terms.GLOSSARY.read_text(encoding="utf-8"))


@pytest.mark.parametrize("page", terms.pages(), ids=lambda page: page.name)
def test_every_term_is_explained_where_it_is_first_used(page):
    unexplained = list(terms.unexplained(page.read_text(encoding="utf-8"), KNOWN))
    assert unexplained == [], "link each to the glossary there; python tools/terms.py lists them"


def test_every_term_of_the_glossary_is_looked_for():
    assert len(KNOWN) > 20
    assert set(map(terms.anchor, terms.WORDS)) <= set(KNOWN)
    assert len(terms.pages()) > 30


def found(text):
    return [(line, name) for line, name, _ in terms.unexplained(text, KNOWN)]


def test_a_term_that_nothing_explains_is_found():
    assert found("# Page\n\nOne.\n\nAsk the release.\n") == [(5, "release")]
    assert found("Its octaves.\n\n[Octaves](g.md#octave) are that.\n") == [(1, "octave")]


@pytest.mark.parametrize(
    "text",
    [
        "Ask the [release](../glossary.md#release).",
        "A **release** is what you publish.",
        "The *release* is a folder.",
        "# The release\n\nIt is a folder.",
        "Ask the release ([glossary](glossary.md#release)).",
        "[One](a.md)\n\n| release |\n|---|\n",
        "Type `release`.\n\n```sh\nls release\n```\n\n<!-- a release -->",
        "![A release](release.svg)",
        "The database has a row policy.",
        "NOT FOR RELEASE",
    ],
)
def test_an_explained_term_is_not(text):
    assert found(text) == []

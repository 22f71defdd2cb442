"""Markdown is wrapped at one width, and wrapping changes nothing but white space."""

import re

import pytest

from repository import ROOT
from wrap_markdown import WIDTH, pages, wrapped

# What stays as it is, however long.
KEPT = """\
# A heading of more words than there is room for

| a table | with a row that is longer than the width |
|---|---|
| 1 | 2 |

```console
$ a command   with   blanks in it, and longer than the width
```

<!-- a comment that is
     longer than the width and has   blanks -->

<picture>
  <img src="one.svg" alt="words that are longer than the width">
</picture>

    code that is indented   and longer than the width

::: reconpriv.a_name_of_the_reference
    options:
      members: [one]

[target]: https://example.org/longer/than/the/width/of/a/line
"""

CASES = {
    "a badge": ("[![one two](a) b", "[![one two](a)\nb"),
    "a paragraph": ("one two three four five", "one two three\nfour five"),
    "a short line is filled": ("one\ntwo", "one two"),
    "a list": ("- one two three four\n- five", "- one two\n  three four\n- five"),
    "a paragraph in a list": (
        "1. one\n\n   two three four five",
        "1. one\n\n   two three\n   four five",
    ),
    "a list in a list": ("- one\n  - two three four", "- one\n  - two three\n    four"),
    "a quotation": ("> one two three four\n>\n> - five", "> one two\n> three four\n>\n> - five"),
    "code with blanks": ("one two `three four`", "one two\n`three four`"),
    "the target of a link": (
        "see [one two](a/long/target) three",
        "see [one\ntwo](a/long/target)\nthree",
    ),
    "no line begins a list": ("one two three - four", "one two\nthree - four"),
    "nor a heading, nor a number": ("one two abcde # 1. three", "one two\nabcde # 1.\nthree"),
    "nor a table": ("one two three |g| is", "one two\nthree |g| is"),
    "a break that is meant": ("one\\\ntwo three four five", "one\\\ntwo three four\nfive"),
}


@pytest.mark.parametrize(("text", "expected"), CASES.values(), ids=CASES)
def test_text_is_wrapped(text, expected):
    assert wrapped(text, 14) == f"{expected}\n"
    assert wrapped(expected, 14) == f"{expected}\n"


def test_everything_else_stays_as_it_is():
    assert wrapped(KEPT, 14) == KEPT


def test_a_fence_is_closed_by_its_own_kind():
    text = "~~~\n```\na b c d e f g h\n~~~\none two three four\n"
    assert wrapped(text, 14) == "~~~\n```\na b c d e f g h\n~~~\none two three\nfour\n"


def test_a_table_ends_a_paragraph():
    assert wrapped("one two three four\n| a | b |\n", 14) == "one two three\nfour\n| a | b |\n"


def said(text):
    """The words of a page, without the marks of quotations."""
    return re.sub(r"^>", "", text, flags=re.MULTILINE).split()


def test_wrapping_keeps_every_word_of_every_page():
    texts = [page.read_text(encoding="utf-8") for page in pages()]
    assert len(texts) > 80
    assert [said(wrapped(text, 60)) for text in texts] == [said(text) for text in texts]


def test_wrapping_twice_is_wrapping_once():
    texts = [page.read_text(encoding="utf-8") for page in pages()]
    assert [wrapped(wrapped(text)) for text in texts] == [wrapped(text) for text in texts]


def too_long(text):
    """Lines of prose that are longer than the width, without counting code and addresses."""
    prose = re.sub(r"^ *(```|~~~).*?^ *\1 *$|<!--.*?-->", "", text, flags=re.DOTALL | re.MULTILINE)
    lines = [line for line in prose.splitlines() if not line.lstrip().startswith("|")]
    return [line for line in lines if len(re.sub(r"`[^`]*`|\]\([^)]*\)", "", line)) > WIDTH]


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.relative_to(ROOT).as_posix())
def test_no_line_is_longer_than_the_width(page):
    """Outside tables, code and addresses."""
    long = too_long(page.read_text(encoding="utf-8"))
    assert long == [], "run python tools/wrap_markdown.py"


def test_a_long_line_is_found_where_it_is_prose():
    words = "word " * 30
    assert too_long(f"{words}\n\n- {words}\n> {words}") == [words, f"- {words}", f"> {words}"]
    assert too_long(f"| {words} |\n```sh\n{words}\n```\n<!-- {words} -->\n`{words}`") == []
    assert WIDTH == 120

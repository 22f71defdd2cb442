"""Every code block in the documents runs and prints what is shown below it."""

import warnings

import pytest

import reconpriv as rp
from example_runner import KNOWN, RUN, Runner, blocks, commands, matches
from repository import ROOT

PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])

# Blocks that are not run, with the reason that stands above them.
NOT_RUN = {
    "README.md": [
        "it would run these tests again",
        "it would install into the environment of the tests",
    ],
    "docs/scale.md": ["it needs a cluster", "it needs a cluster"],
    "docs/how-to/databases.md": ["needs a PostgreSQL server"],
    "docs/how-to/r.md": ["it installs"],
    "docs/studio.md": ["it waits for a browser"],
    "docs/how-to/install.md": ["it installs"],
    "docs/reliability.md": ["it takes minutes"],
    "docs/how-to/container.md": ["it needs docker or podman"] * 3,
}


def shown(path):
    return path.relative_to(ROOT).as_posix()


def blocks_of(path):
    return list(blocks(path.read_text(encoding="utf-8")))


WITH_CODE = [page for page in PAGES if any(b.language in RUN for b in blocks_of(page))]


@pytest.mark.parametrize("page", WITH_CODE, ids=shown)
def test_every_block_of_a_page_runs(page, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rp.ReconprivWarning)  # a reader sees it and goes on
        done = Runner(page, tmp_path).run_page()
    expected = [b for b in blocks_of(page) if b.language in RUN and not b.skipped]
    assert done == len(expected)


def test_every_block_says_what_it_is():
    unknown = [
        f"{shown(page)}:{block.line} {block.language!r}"
        for page in PAGES
        for block in blocks_of(page)
        if block.language not in KNOWN
    ]
    assert unknown == []


def test_blocks_that_are_not_run_are_these():
    reasons = {page: [b.note for b in blocks_of(page) if "not run: " in b.note] for page in PAGES}
    left_out = {shown(page): [one.removeprefix("not run: ") for one in found]
                for page, found in reasons.items() if found}  # fmt: skip
    assert left_out == NOT_RUN


def test_every_command_of_the_readme_is_run_in_order_in_one_folder():
    """Whoever pastes one block after the other must not meet an error."""
    left_out = [b.text for b in blocks_of(ROOT / "README.md") if b.skipped]
    assert not any(line.startswith("reconpriv") for text in left_out for line in text.splitlines())


def page_with(text, folder):
    page = folder / "page.md"
    page.write_text(text, encoding="utf-8")
    return Runner(page, folder)


GOOD = """
```python
x = 1
print("a  b", x)
```

```text
a b 1
```

```console
$ echo one two
one …
$ cat <<'END'
> x
> END
x
$ false
$ echo $?
1
```

```python
assert x == 1
```

<!-- not run: it would fail -->
```sh
false
```

<!-- needs no_such_program -->
```sh
false
```

<!-- needs bash -->
```sh
true
```

<!-- exits 3 -->
```sh
exit 3
```
"""


def test_a_page_that_tells_the_truth_passes(tmp_path, monkeypatch):
    monkeypatch.delenv("CI", raising=False)
    assert page_with(GOOD, tmp_path).run_page() == 5


def test_in_ci_every_program_that_a_page_needs_must_be_there(tmp_path, monkeypatch):
    monkeypatch.setenv("CI", "true")
    with pytest.raises(AssertionError):
        page_with(GOOD, tmp_path).run_page()


@pytest.mark.parametrize(
    ("true", "wrong"),
    [
        ("a b 1", "a b 2"),
        ("one …", "two …"),
        ("assert x == 1", "assert x == 2"),
        ("$ echo one two\none …", "$ false"),
        ("$ echo $?\n1", "$ echo $?\n2"),
        ("<!-- not run: it would fail -->", ""),
        ("<!-- needs no_such_program -->", "<!-- needs bash -->"),
        ("<!-- exits 3 -->", ""),
        ("> x", "> y"),
    ],
)
def test_a_page_that_does_not_fails(true, wrong, tmp_path, monkeypatch):
    monkeypatch.delenv("CI", raising=False)
    assert GOOD.count(true) == 1
    runner = page_with(GOOD.replace(true, wrong), tmp_path)
    with pytest.raises(AssertionError):
        runner.run_page()


def test_a_traceback_names_the_line_of_the_page(tmp_path):
    runner = page_with("# Title\n\n```python\n1 / 0\n```\n", tmp_path)
    with pytest.raises(ZeroDivisionError) as caught:
        runner.run_page()
    assert caught.traceback[-1].lineno + 1 == 4


def test_outputs_match_but_for_white_space_and_dots():
    assert matches("a\n  b … d", "a b c d\n")
    assert matches("...b", "a b")
    assert not matches("a b", "a b c")
    assert list(commands("$ a\n> b\nout\n> c\n$ d\n")) == [("a\nb", "out\n> c"), ("d", "")]

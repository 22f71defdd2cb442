"""How bash splits a word with a colon, and what completion then offers."""

import os
import shutil
import subprocess
import sys

import pytest

from reconpriv.cli.process.completion import mend_split_word, tables

SCRIPT = """
code="import sys; sys.argv[0] = 'reconpriv'; from reconpriv.cli import main; main()"
words=(%s)
IFS=$'\\n'
env COMP_WORDS="${words[*]}" COMP_CWORD=%d _RECONPRIV_COMPLETE=complete_bash "$PYTHON" -c "$code"
"""


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
@pytest.mark.parametrize(
    ("words", "current", "offered"),
    [
        # bash takes example:ad apart into three words, and replaces the last one alone.
        ("reconpriv audit example : ad", 4, ["adult"]),
        ("reconpriv audit example :", 3, ["adult", "census_workers"]),
        ("reconpriv attack micro example : c", 5, ["census_workers"]),
        ("reconpriv audit exam", 2, ["example:adult", "example:census_workers"]),
    ],
)
def test_bash_is_offered_bundled_tables(words, current, offered, tmp_path):
    done = subprocess.run(
        ["bash", "-c", SCRIPT % (words, current)],
        env={**os.environ, "PYTHON": sys.executable},
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stdout.split() == offered, done.stderr


def test_words_without_a_bundled_table_are_left_alone():
    environ = {
        "_RECONPRIV_COMPLETE": "complete_bash",
        "COMP_WORDS": "reconpriv\naudit\nfile\n:\nx",
        "COMP_CWORD": "4",
    }
    before = dict(environ)
    mend_split_word(environ)
    assert environ == before
    other = {**environ, "_RECONPRIV_COMPLETE": "complete_zsh"}
    mend_split_word(other)
    assert other["COMP_WORDS"] == before["COMP_WORDS"]


def test_files_stay_on_offer_beside_the_bundled_tables(tmp_path, monkeypatch):
    (tmp_path / "export.csv").write_text("")
    (tmp_path / "people.csv").write_text("")
    monkeypatch.chdir(tmp_path)
    assert tables("ex") == ["example:adult", "example:census_workers", "export.csv"]
    assert tables("peo") == []  # the shell knows files better

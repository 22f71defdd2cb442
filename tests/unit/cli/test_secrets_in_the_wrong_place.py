"""A key on the command line is not repeated; what describes the raw table is its owner's."""

import stat
from shlex import split

import pytest

KEY = "5e1fb00c" + "9a7d3c" * 4 + "0123456789abcdef" * 2
TABLE = "g,s\n" + "a,x\na,y\nb,x\nb,z\n" * 20


@pytest.mark.parametrize(
    "words",
    [
        ("publish", "t.csv", "out", "-s", "s", "--public=all", KEY),
        ("publish", "t.csv", "out", "-s", "s", "--public=all", "--key", KEY),
        ("publish", KEY, "out", "-s", "s", "--public=all"),
        ("audit", "t.csv", "-s", KEY, "--public=all"),
        ("audit", "t.csv", "-s", "s", "--public=all", "-p", KEY),
        ("audit", "t.csv", "-s", "s", "--public=all", f"--{KEY}"),
        ("audit", "t.csv", "-s", "s", "--public=all", f"--keyy={KEY}"),
        ("audit", "t.csv", "-s", "s", "--public=all", "--bin", f"g={KEY}"),
        (
            *split("publish t.csv out -s s --public=all --key"),
            " ".join(KEY[i : i + 4] for i in range(0, 64, 4)),
        ),
        (KEY,),
        ("query", KEY, "SELECT count(*) FROM release"),
    ],
)
def test_a_key_is_not_repeated(cli, tmp_path, monkeypatch, words):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.csv").write_text(TABLE)
    outcome = cli(*words)
    assert outcome.code == 2
    # A box folds long words and puts borders between the parts.
    shown = "".join(one for one in outcome.out + outcome.err if one.isalnum())
    assert KEY[:20] not in shown


def test_only_its_owner_can_read_a_workload(cli, tmp_path):
    (tmp_path / "t.csv").write_text(TABLE)
    file = tmp_path / "w.csv"
    assert cli("workload", tmp_path / "t.csv", "-s", "s", "--public=all", "-o", file).code == 0
    assert stat.S_IMODE(file.stat().st_mode) == 0o600

"""The scripts beside an export, run by R and by PSPP, which reads SPSS syntax."""

import re

import pytest

import reconpriv as rp
from export_fixtures import KINDS, published
from programs import run_program


def answers(release):
    """What a script should find, asked of the release."""
    value = "Grippe à l'ancienne"
    asked = release.count(ill=value, estimator="records")
    return [asked.count, asked.standard_error]


@pytest.mark.parametrize("kind", KINDS)
def test_r_counts_as_the_release_does(kind, tmp_path):
    release = published(kind, tmp_path / "release", rp.Key.test())
    release.export(tmp_path / "a.csv")
    done = run_program("Rscript", tmp_path / "a.R")
    assert done.returncode == 0, done.stderr
    first, second, third = done.stdout.splitlines()
    found = [float(x) for x in re.findall(r"[\d.]+(?=, standard|$)", second)]
    assert found == pytest.approx(answers(release), rel=1e-6)
    expected = "all records: 1500" if kind == "all protected" else "town = L'Aquila: "
    assert first.startswith(expected)
    assert "standard error" in third


@pytest.mark.parametrize("sensitive", ["integer", "date"])
def test_r_finds_codes_and_dates(sensitive, tmp_path):
    release = published("octave", tmp_path / "release", rp.Key.test(), sensitive)
    release.export(tmp_path / "a.csv")
    done = run_program("Rscript", tmp_path / "a.R", locale="C")
    assert done.returncode == 0, done.stderr


def test_r_notices_records_that_were_changed(tmp_path):
    release = published("octave", tmp_path / "release", rp.Key.test())
    release.export(tmp_path / "a.csv")
    lines = (tmp_path / "a.csv").read_text(encoding="utf-8").splitlines()
    (tmp_path / "a.csv").write_text("\n".join(lines[:-20]) + "\n", encoding="utf-8")
    done = run_program("Rscript", tmp_path / "a.R")
    assert done.returncode != 0
    assert "compared(" in done.stderr


@pytest.mark.parametrize("kind", KINDS)
def test_spss_syntax_counts_as_the_release_does(kind, tmp_path):
    release = published(kind, tmp_path / "release", rp.Key.test())
    release.export(tmp_path / "a.sav")
    done = run_program("pspp", tmp_path / "a.sps")
    assert done.returncode == 0, done.stdout + done.stderr
    rows = [
        [float(cell) for cell in line.strip("|").split("|")]
        for line in done.stdout.splitlines()
        if re.fullmatch(r"[|\s\d.]+", line) and "|" in line
    ]
    assert [len(row) for row in rows] == [2, 4, 4]
    for row in rows:
        assert row[::2] == pytest.approx(row[1::2], abs=1e-3)
    assert rows[1][::2] == pytest.approx(answers(release), abs=1e-3)


@pytest.mark.parametrize("sensitive", ["integer", "date"])
def test_spss_syntax_finds_codes_and_dates(sensitive, tmp_path):
    release = published("public", tmp_path / "release", rp.Key.test(), sensitive)
    release.export(tmp_path / "a.zsav")
    done = run_program("pspp", tmp_path / "a.sps")
    assert done.returncode == 0, done.stdout + done.stderr
    found = [re.findall(r"[\d.]+", line) for line in done.stdout.splitlines()]
    rows = [row for row in found if len(row) == 4]
    assert len(rows) == 2
    for row in rows:
        assert row[0] == row[1] and row[2] == row[3]

"""An estimate below 0, or above what is possible, is never shown without a word."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import reconpriv as rp
from query_fixtures import numbered_key
from reconpriv.answers.beside_truth import ask
from reconpriv.answers.figure import ABOVE, BELOW, BELOW_ZERO, impossible
from reconpriv.ask.form import FormQuestion

POLICY = rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3)


def people() -> pa.Table:
    """Nobody holds c; only women of the highest age hold b."""
    draw = np.random.default_rng(2)
    sex = draw.choice(["f", "m"], 3_000)
    age = draw.integers(20, 30, 3_000)
    return pa.table({"sex": sex, "age": age, "s": np.where((sex == "f") & (age == 29), "b", "a")})


TOLD = {"keep_giveaway": ("sex", "age")}
ROLES = {"sensitive": "s", "public": "all", "domain": ["a", "b", "c"]}


def published(folder: Path, number: int = 1, policy: rp.Policy = POLICY) -> rp.Release:
    with rp.read(people(), **ROLES) as table:
        return table.publish(policy, folder / f"{number}", key=numbered_key(number), **TOLD)


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> rp.Release:
    return published(tmp_path_factory.mktemp("impossible"))


def test_the_remark_says_on_which_side() -> None:
    assert impossible(-0.1, 0.0, 1.0) == (BELOW_ZERO,)
    assert impossible(1.1, 0.0, 1.0) == (ABOVE,)
    assert impossible(1.0, 2.0, 3.0) == (BELOW,)
    assert impossible(0.5, 0.0, 1.0) == impossible(0.0, 0.0, 1.0) == ()
    assert impossible(-1e-13, 0.0, 1.0) == impossible(None, 0.0, 1.0) == ()


def test_every_negative_share_is_remarked_on(release: rp.Release) -> None:
    table = release.sql("SELECT age, sex, s, share(*) FROM release GROUP BY age, sex, s")
    figures = [figure for _, (figure,) in table]
    assert any(one.value < 0 for one in figures)
    assert any(one.value > 1 for one in figures)
    for one in figures:
        assert (BELOW_ZERO in one.remarks) == (one.value < 0)
        assert (ABOVE in one.remarks) == (one.value > 1)
        assert 0 <= one.low <= one.high <= 1


def test_a_share_among_holders_above_100_percent_is_remarked_on(tmp_path: Path) -> None:
    """All counts that it is made of may be possible, and the ratio not."""
    seen = 0
    for number in range(6):
        release = published(tmp_path, number)
        for where in ("sex = 'f'", "age > 24", "sex = 'm'"):
            one = release.share(where, among={"s": "b"})
            if one.value is None:
                continue
            assert (ABOVE in one.remarks) == (one.value > 1)
            assert (BELOW_ZERO in one.remarks) == (one.value < 0)
            seen += ABOVE in one.remarks
    assert seen


def test_an_average_beyond_what_occurs_is_moved_and_remarked_on(tmp_path: Path) -> None:
    seen, policy = 0, rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3, sampling="none")
    for number in range(12):
        release = published(tmp_path, number, policy)
        one = release.average("age", s="b")
        if one.value is not None:
            assert 20 <= one.low <= one.value <= one.high <= 29
            seen += any("ratio of the estimates" in remark for remark in one.remarks)
    assert seen


def test_every_surface_shows_the_remark(release: rp.Release, cli) -> None:
    words = "the estimate is below 0 by chance"
    one = release.count(s="c")
    if one.count >= 0:  # one that surely is below
        one = min((found for _, found in release.crosstab(["age", "s"])), key=lambda x: x.count)
    assert words in str(one)
    folder = str(release.path)
    query = "SELECT age, share(s = 'c') FROM release GROUP BY age"
    for arguments in (
        ["query", folder, query],
        ["crosstab", folder, "age", "s", "--shares", "row"],
    ):
        assert words in " ".join(cli(*arguments).out.split())
        shown = cli(*arguments, "--json").out
        assert words in json.dumps(json.loads(shown))
    with rp.read(people(), **ROLES) as table:
        asked = ask(release.answerer, table.truth, FormQuestion("share", by="age", where="s = 'c'"))
    assert any(words in remark for remark in asked.remarks)


def test_reports_and_columns_say_it_too(tmp_path: Path) -> None:
    for number in range(20):
        release = published(tmp_path, number)
        negative = min(one.count for _, one in release.frequencies()) < 0
        release.report(tmp_path / "report.html", overwrite=True)
        page = (tmp_path / "report.html").read_text()
        assert ("the estimate is below 0 by chance" in page) == negative
        if negative:
            break
    assert negative
    column = rp.perturb(["a"] * 300, ["a", "b", "c"], retention=0.5, key=numbered_key(3))
    found = rp.reconstruct(column, ["a", "b", "c"], retention=0.5)
    assert found.frequencies.min() < 0
    assert any("below 0 by chance" in remark for remark in found.remarks)

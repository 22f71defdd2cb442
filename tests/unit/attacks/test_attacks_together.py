"""Every attack works on every kind of publication: margins and protection, together or not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import reconpriv as rp
from reconpriv.attacks import ATTACKS, Effort, attack, attack_release
from reconpriv.attacks.run import on_releases

PLAIN = rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3, unattainable="one-trial")
PROTECT = {"age": 10}
POLICIES = {
    "plain": PLAIN,
    "margins": replace(PLAIN, margins=1.0),
    "protected": replace(PLAIN, protect=PROTECT),
    "both": replace(PLAIN, margins=1.0, protect=PROTECT),
}
EFFORT = Effort(releases=4, updates=1, draws=20)


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(5)
    columns = {"age": rng.integers(20, 40, 6_000), "town": rng.integers(0, 4, 6_000)}
    shares = rng.dirichlet([0.6] * 4, 80)[columns["age"] % 20 * 4 + columns["town"]]
    columns["s"] = (rng.random(6_000)[:, None] > shares.cumsum(axis=1)[:, :-1]).sum(axis=1)
    columns["person"] = np.arange(6_000) // 2
    with rp.read(pa.table(columns), sensitive="s", public=["age", "town"]) as table:
        yield table


@pytest.mark.parametrize("kind", POLICIES)
@pytest.mark.parametrize("name", [name for name in ATTACKS if name != "persons"])
def test_every_attack_on_a_table(people, name, kind):
    found = attack(name, people, POLICIES[kind], EFFORT)
    assert found.success.trials and found.control.trials and found.verdict


@pytest.mark.parametrize("kind", POLICIES)
def test_every_attack_on_a_release(people, kind, key, tmp_path):
    people.publish(POLICIES[kind], tmp_path / "r", key=key, keep_giveaway=["age", "town"])
    for name in on_releases():
        assert attack_release(name, tmp_path / "r", show=3).table, name

"""Words are bound to what a perturbation is; lattice bounds get the size they ask for."""

from __future__ import annotations

import hashlib

import numpy as np
import pyarrow as pa
import pytest

import reconpriv as rp
from reconpriv.core.kernel import Kernel
from reconpriv.schema import Column, Kind, Schema

KEY = rp.Key(hashlib.blake2b(b"binding", digest_size=32).digest())
SICK = Column("sick", Kind.STRING)
DOMAIN = tuple(f"x{i}" for i in range(10))


def words(retention=0.5, sensitive=SICK, domain=DOMAIN, **policy):
    kernel = Kernel(Schema((), sensitive, domain), rp.Policy(retention, 0.5, 0.3, **policy), KEY)
    return kernel.randomness().words(np.zeros(4, np.uint64), np.arange(4, dtype=np.uint64)).tolist()


def test_another_p_domain_or_column_has_other_words():
    assert words() == words()
    assert words() != words(retention=0.3)
    assert words() != words(domain=DOMAIN[:-1])
    assert words() != words(sensitive=Column("job", Kind.STRING))


@pytest.mark.parametrize("change", [{"sample_size": "public"}, {"bound": "hoeffding"}])
def test_another_sample_size_or_bound_has_the_same_words(change):
    assert words() == words(**change)


def published(retention, records=4_000):
    """One record a group: the published value of each, in order."""
    values = [DOMAIN[i % 10] for i in range(records)]
    table = pa.table({"who": list(range(records)), "sick": values})
    with rp.read(table, sensitive="sick") as opened:
        kernel = Kernel(opened.schema, rp.Policy(retention, 0.5, 0.3, sample_size="none"), KEY)
        found = [piece.value for batch in opened.groups() for piece in kernel(batch)]
    return np.concatenate(found), np.array([i % 10 for i in range(records)])


def test_two_retentions_with_one_key_do_not_give_values_away():
    """Were the words shared, a pair that differs would hold the truth for certain in places."""
    first, truth = published(0.5)
    second, _ = published(0.3)
    for a in range(10):
        for b in range(10):
            pair = (first == a) & (second == b)
            if a != b and pair.sum() >= 20:
                share = max((truth[pair] == a).mean(), (truth[pair] == b).mean())
                assert share < 0.95
    # Independent: both keep the truth as often as r1 r2 says.
    both = ((first == truth) & (second == truth)).mean()
    expected = (0.5 + 0.05) * (0.3 + 0.07)
    assert abs(both - expected) < 5 * np.sqrt(expected * (1 - expected) / truth.size)


def test_exact_with_paper_draws_exactly_its_size():
    table = pa.table({"g": ["a"] * 100, "sick": ["x0"] * 80 + ["x1"] * 20})
    policy = rp.Policy(0.5, 0.5, 0.1, bound="exact", sample_size="paper")
    domain = [f"x{i}" for i in range(14)]
    drawn = set()
    with rp.read(table, sensitive="sick", domain=domain) as opened:
        for number in range(30):
            secret = hashlib.blake2b(b"%d" % number, digest_size=32).digest()
            kernel = Kernel(opened.schema, policy, rp.Key(secret))
            drawn |= {int(p.trials[0]) for batch in opened.groups() for p in kernel(batch)}
    assert drawn == {9}

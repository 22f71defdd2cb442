"""A vote over perturbed copies: the formula against plain enumeration and against simulation."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from reconpriv.errors import PolicyError
from reconpriv.theory.votes import MOST_VOTES, vote_success


def enumerated(votes, p, m):
    """Every outcome of every copy, one by one."""
    t = (1 - p) / m
    total = 0.0
    for shown in product(range(m), repeat=votes):
        counts = np.bincount(shown, minlength=m)
        if counts[0] == counts.max():
            chance = (p + t) ** counts[0] * t ** (votes - counts[0])
            total += chance / np.count_nonzero(counts == counts.max())
    return total


@pytest.mark.parametrize("p", [0.2, 0.5, 0.9])
@pytest.mark.parametrize(("votes", "m"), [(1, 2), (2, 2), (5, 2), (5, 4), (6, 3), (4, 7)])
def test_it_is_what_enumeration_gives(votes, m, p):
    assert vote_success(votes, p, m) == pytest.approx(enumerated(votes, p, m), rel=1e-12)


def test_five_rows_of_four_values_at_one_half():
    assert vote_success(1, 0.5, 4) == 0.625
    assert vote_success(5, 0.5, 4) == pytest.approx(0.8392333984375)


def test_many_copies_and_many_values():
    rng, p, m, votes = np.random.default_rng(2), 0.05, 5, 60
    shares = np.full(m, (1 - p) / m)
    shares[0] += p
    counts = rng.multinomial(votes, shares, size=20_000)
    best = counts.max(axis=1)
    won = ((counts[:, 0] == best) / (counts == best[:, None]).sum(axis=1)).mean()
    near = 4 * np.sqrt(0.25 / 20_000)
    assert abs(vote_success(votes, p, m) - won) < near
    for wrong in (0.7, 1.3):
        assert abs(vote_success(votes, wrong * p, m) - won) > near
    # With so many values no wrong one is shown twice: two votes win, one may win a tie.
    assert vote_success(3, 0.5, 10**9) == pytest.approx(0.5 + 3 / 8 / 3, abs=1e-6)
    assert vote_success(MOST_VOTES, 0.5, 46) == pytest.approx(1)


@pytest.mark.parametrize("votes", [0, MOST_VOTES + 1])
def test_other_numbers_of_copies_are_refused(votes):
    with pytest.raises(PolicyError, match="for 1 to 100 copies"):
        vote_success(votes, 0.5, 4)

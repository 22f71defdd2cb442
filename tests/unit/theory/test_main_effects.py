"""The main-effects model against full contingency tables, small enough to fit by hand."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from reconpriv.theory.margins.incidence import Incidence
from reconpriv.theory.margins.main_effects import main_effects, positive_counts

LEVELS = (4, 3, 2)
VALUES = 5


def _groups():
    """Every combination of three attributes, with rows numbered through, and a size for each."""
    first = np.cumsum([0, *LEVELS])[:-1]
    codes = np.array(list(itertools.product(*(range(k) for k in LEVELS))))
    sizes = np.random.default_rng(1).integers(5, 60, size=codes.shape[0])
    return codes + first, np.asarray(sizes)


ROWS, SIZES = _groups()
SHARES = np.tile([0.4, 0.3, 0.15, 0.1, 0.05], (SIZES.size, 1))
FACTORS = np.random.default_rng(3).uniform(0.2, 2.0, size=(ROWS.max() + 1, VALUES))
WITHOUT_INTERACTIONS = FACTORS[ROWS].prod(axis=1)
WITHOUT_INTERACTIONS /= WITHOUT_INTERACTIONS.sum(axis=1, keepdims=True)


def _truth(groups, seed=2):
    return np.random.default_rng(seed).dirichlet(np.ones(VALUES), size=groups)


def _margins(rows, sizes, frequency):
    total = np.zeros((rows.max() + 1, frequency.shape[1]))
    for table in rows.T:
        np.add.at(total, table[table >= 0], (frequency * sizes[:, None])[table >= 0])
    return total


def test_the_margins_are_reproduced():
    wanted = _margins(ROWS, SIZES, _truth(SIZES.size))
    found = main_effects(ROWS, SIZES, wanted, tolerance=1e-12, most_rounds=2000)
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    np.testing.assert_allclose(_margins(ROWS, SIZES, found), wanted, rtol=1e-7)


def test_a_table_without_interactions_is_found_exactly():
    truth = WITHOUT_INTERACTIONS
    margins = _margins(ROWS, SIZES, truth)
    found = main_effects(ROWS, SIZES, margins)
    np.testing.assert_allclose(found, truth, atol=1e-4)
    # The same test notices margins of somebody else.
    other = main_effects(ROWS, SIZES, _margins(ROWS, SIZES, _truth(SIZES.size)))
    assert np.abs(other - truth).max() > 0.05


def test_it_equals_proportional_fitting_of_the_whole_contingency_table():
    truth = _truth(SIZES.size, seed=4) * SIZES[:, None]
    cube = truth.reshape(*LEVELS, VALUES)
    fitted = np.ones_like(cube)
    for _ in range(2000):
        for kept in ((0, 3), (1, 3), (2, 3), (0, 1, 2)):
            over = tuple(i for i in range(4) if i not in kept)
            fitted *= cube.sum(over, keepdims=True) / fitted.sum(over, keepdims=True)
    fitted = fitted.reshape(-1, VALUES) / SIZES[:, None]
    margins = _margins(ROWS, SIZES, truth / SIZES[:, None])
    found = main_effects(ROWS, SIZES, margins, tolerance=1e-12, most_rounds=2000)
    np.testing.assert_allclose(found, fitted, atol=1e-8)
    np.testing.assert_allclose(main_effects(ROWS, SIZES, margins), fitted, atol=1e-4)


def test_a_group_of_nobody_is_told_by_the_others():
    truth = WITHOUT_INTERACTIONS
    without = np.where(np.arange(SIZES.size) == 7, 0, SIZES)
    found = main_effects(ROWS, without, _margins(ROWS, without, truth))
    np.testing.assert_allclose(found[7], truth[7], atol=1e-4)


def test_independent_columns_give_everybody_the_shares_of_the_whole_table():
    margins = _margins(ROWS, SIZES, SHARES)
    np.testing.assert_allclose(main_effects(ROWS, SIZES, margins), SHARES)


def test_a_row_that_is_not_published_has_no_effect():
    margins = _margins(ROWS, SIZES, SHARES)
    some = ROWS.copy()
    some[some == 2] = -1
    some[:3] = -1
    found = main_effects(some, SIZES, _margins(some, SIZES, SHARES))
    np.testing.assert_allclose(found, SHARES)
    assert np.isfinite(main_effects(np.full_like(ROWS, -1), SIZES, margins)).all()


def test_a_group_that_margins_exclude_still_has_a_distribution():
    rows, sizes = np.array([[0, 2], [0, 3], [1, 2]]), np.array([5, 5, 5])
    margins = np.array([[10.0, 0.0], [0.0, 5.0], [0.0, 10.0], [5.0, 0.0]])
    found = main_effects(rows, sizes, margins)
    np.testing.assert_allclose(found.sum(axis=1), 1.0)


@pytest.mark.parametrize("seed", [5, 6])
def test_noisy_counts_become_positive_and_keep_the_sizes_of_their_rows(seed):
    true = _margins(ROWS, SIZES, _truth(SIZES.size))
    noisy = true + np.random.default_rng(seed).normal(0.0, 20.0, size=true.shape)
    of_rows = Incidence(ROWS, true.shape[0]).sums(SIZES)
    counts = positive_counts(noisy, of_rows)
    assert (counts > 0).all()
    np.testing.assert_allclose(counts.sum(axis=1), of_rows)
    found = main_effects(ROWS, SIZES, counts)
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    assert (main_effects(ROWS, SIZES, counts) == found).all()


def test_sums_over_groups_are_products_with_the_matrix_of_rows():
    """A group may be in no row of a table, and may be named several times."""
    rng = np.random.default_rng(5)
    rows = np.where(rng.random(ROWS.shape) < 0.2, -1, ROWS)
    incidence = Incidence(rows, int(ROWS.max()) + 1)
    group = rng.integers(0, SIZES.size, 40)
    weights, line = rng.random(40), rng.integers(-1, 3, 40)
    matrix = incidence.matrix.toarray()[:, group]
    assert incidence.pairs(weights, group) == pytest.approx(matrix * weights @ matrix.T)
    for i, sums in enumerate(incidence.sums_by(weights, line, 3, group)):
        assert sums == pytest.approx(matrix[:, line == i] @ weights[line == i])

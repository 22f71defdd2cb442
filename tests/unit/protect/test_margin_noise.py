"""The noise of margins: keyed, bound to each count, and as private as is claimed."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
from scipy import stats

from margin_fixtures import margin_key, schema_of
from reconpriv.cells.cell_batch import Encoded
from reconpriv.policy.margin_settings import Margins
from reconpriv.protect.margins.noise import adjusted, digest, noisy_tables
from reconpriv.protect.margins.tables import MarginTable

SCHEMA = schema_of(2, 3)
ROWS, KEYS = 200, 120
DELTA = 0.01


def tables(counts: list[int], number: int = 2) -> list[MarginTable]:
    """Tables whose rows all have these counts; noise is drawn for each row by itself."""
    values = Encoded(np.arange(ROWS, dtype=np.int32), pa.array(np.arange(ROWS)))
    every = np.tile(np.array(counts, dtype=np.int64), (ROWS, 1))
    return [MarginTable((a,), (values,), every) for a in range(number)]


def noise(counts: list[int], variance: float, key: int, number: int = 2) -> np.ndarray:
    found = noisy_tables(tables(counts, number), variance, SCHEMA, margin_key(key))
    return np.stack([table.counts - np.array(counts) for table in found])


def test_the_same_counts_keep_their_noise_and_any_change_redraws_all_of_it() -> None:
    before = noise([50, 30, 20], 40.0, 1)
    assert np.array_equal(before, noise([50, 30, 20], 40.0, 1))
    changed = tables([50, 30, 20])
    changed[0].counts[0] += [0, -1, 1]  # one record of one row
    found = noisy_tables(changed, 40.0, SCHEMA, margin_key(1))
    after = np.stack([noisy.counts - one.counts for noisy, one in zip(found, changed, strict=True)])
    for value in range(3):
        one, other = before[:, :, value].reshape(-1), after[:, :, value].reshape(-1)
        assert abs(stats.spearmanr(one, other).statistic) < 0.25
        assert (one != other).mean() > 0.8


def test_other_names_of_rows_redraw_all_noise_too() -> None:
    one, other = tables([50, 30, 20]), tables([50, 30, 20])
    values = np.arange(ROWS)
    values[-1] = ROWS + 7
    other[0] = MarginTable(
        (0,), (Encoded(np.arange(ROWS, dtype=np.int32), pa.array(values)),), other[0].counts
    )
    assert digest(one, SCHEMA) != digest(other, SCHEMA)
    assert digest(one, SCHEMA) == digest(tables([50, 30, 20]), SCHEMA)


def test_another_sigma_another_key_and_another_table_give_independent_noise() -> None:
    one = noise([50, 30, 20], 40.0, 1).astype(float)
    for other in (noise([50, 30, 20], 40.0001, 1), noise([50, 30, 20], 40.0, 2), one[::-1]):
        assert abs(stats.spearmanr(one.reshape(-1), other.reshape(-1)).statistic) < 0.15


def test_adjusted_rows_add_up_to_their_sizes_and_vary_less() -> None:
    counts = [50, 30, 20]
    found = np.concatenate([noise(counts, 40.0, k).reshape(-1, 3) for k in range(20)])
    moved = adjusted(found + np.array(counts), np.full(found.shape[0], 100))
    assert np.allclose(moved.sum(axis=1), 100)
    spread = (moved - np.array(counts)).var(axis=0)
    assert np.allclose(spread, 40.0 * (1 - 1 / 3), rtol=0.1)


# --- an audit of differential privacy -------------------------------------------------------------


def lower_bound(margins: Margins, sigmas: float) -> float:
    """What ε is at least, at δ, with a confidence of all but one in a million.

    Two tables that differ in the sensitive value of one record are published many times, with
    ``sigmas`` times the noise that is due; the best of a few tests tells them apart. Rows and keys
    are independent, so every row is a table of its own.
    """
    variance = margins.variance(2) * sigmas**2
    loss = []
    for counts in ([50, 30, 20], [50, 29, 21]):
        found = [noise(counts, variance, key) for key in range(KEYS)]
        # All that tells them apart: two counts of each table that moved by one.
        moved = np.array(counts) - np.array([50, 30, 20])
        score = [(x + moved)[:, :, 1] - (x + moved)[:, :, 2] for x in found]
        loss.append(np.concatenate([one.sum(axis=0) for one in score]))
    here, there = loss
    n, tests = here.size, 12
    confidence = 1 - 1e-6 / (2 * tests)
    best = 0.0
    for threshold in np.quantile(here, np.linspace(0.5, 0.995, tests)):
        k, j = int((here >= threshold).sum()), int((there >= threshold).sum())
        low = stats.beta.ppf(1 - confidence, k, n - k + 1)
        high = stats.beta.ppf(confidence, j + 1, n - j)
        if low > margins.delta:
            best = max(best, math.log((low - margins.delta) / high))
    return best


def test_an_audit_finds_no_more_than_the_claimed_epsilon() -> None:
    margins = Margins(1.0, DELTA)
    assert 0 < lower_bound(margins, 1.0) < 1.0


def test_the_audit_catches_half_the_noise() -> None:
    assert lower_bound(Margins(1.0, DELTA), 0.5) > 1.0


def test_rho_is_the_number_of_tables_over_the_variance() -> None:
    margins = Margins(rho=0.02)
    assert [margins.variance(a) for a in (1, 2, 6)] == [50.0, 100.0, 300.0]

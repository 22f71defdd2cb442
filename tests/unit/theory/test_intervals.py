"""Limits of a count, checked by exact enumeration of every published count."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from reconpriv.theory.estimation import intervals
from reconpriv.theory.estimation.intervals import Pooled, count_limits

SLACK = 1e-9


def one_group(observed, records, trials):
    """What is published about one group, for several published counts."""
    z = np.ones(np.size(observed))
    scale = records / trials
    part = scale - np.floor(scale)
    uneven = part * (1 - part) * trials**2 / max(trials - 1, 1)
    sampled = trials < records
    return Pooled(
        observed=np.asarray(observed, dtype=np.float64),
        records=records * z,
        scaled_records=scale * records * z,
        scaled_squares=scale**2 * records * z,
        holder_scale=scale * z,
        unsampled=(0 if sampled else records) * z,
        uneven=uneven * z,
        rounded=(scale**2 if sampled else 0.0) * z,
    )


def published(records, trials, count, keep, stray):
    """The exact distribution of the published count: sampled, perturbed, scaled."""
    quota = count * trials / records
    whole = int(np.floor(quota + SLACK))
    chance = max(quota - whole, 0.0) if quota - whole > SLACK else 0.0
    seen = np.zeros(trials + 1)
    for holders, weight in ((whole, 1 - chance), (whole + 1, chance)):
        if weight > 0:
            kept = stats.binom.pmf(np.arange(holders + 1), holders, keep)
            rest = trials - holders
            seen += weight * np.convolve(kept, stats.binom.pmf(np.arange(rest + 1), rest, stray))
    copies, left_over = divmod(records, trials)
    result = np.zeros(records + 1)
    if not left_over:
        result[copies * np.arange(trials + 1)] = seen
        return result
    for trial, weight in enumerate(seen):
        more = np.arange(min(left_over, trial) + 1)
        result[copies * trial + more] += weight * stats.hypergeom.pmf(
            more, trials, trial, left_over
        )
    return result


def coverage(records, trials, *, p, m, k=1, miss=0.05, assumed=None, counts=None):
    """How often the limits hold, for each true count; ``assumed`` is the p the analyst believes."""
    believed = p if assumed is None else assumed
    low, high = count_limits(
        one_group(np.arange(records + 1), records, trials),
        retention=believed,
        stray=k * (1 - believed) / m,
        miss=miss,
    )
    t = k * (1 - p) / m
    counts = range(records + 1) if counts is None else counts
    return np.array(
        [
            published(records, trials, c, p + t, t)[(low - SLACK <= c) & (c <= high + SLACK)].sum()
            for c in counts
        ]
    )


@pytest.mark.parametrize("m", [2, 14, 46])
@pytest.mark.parametrize("p", [0.2, 0.5, 0.8])
@pytest.mark.parametrize("miss", [0.05, 1e-3, 1e-5])
def test_no_count_of_a_group_is_missed_more_often_than_allowed(p, m, miss):
    for records in (1, 2, 3, 4, 6, 8, 14, 18, 27, 40, 100):
        missed = 1 - coverage(records, records, p=p, m=m, miss=miss)
        assert missed.max() <= miss, (records, int(missed.argmax()))


@pytest.mark.parametrize("m", [2, 14, 46])
@pytest.mark.parametrize("p", [0.2, 0.5, 0.8])
def test_nor_of_a_sampled_group_with_uneven_copies(p, m):
    for trials, records in ((1, 3), (2, 5), (5, 150), (8, 12), (13, 14), (20, 22), (20, 80)):
        missed = 1 - coverage(records, trials, p=p, m=m)
        assert missed.max() <= 0.05, (trials, records, int(missed.argmax()))


@pytest.mark.parametrize("k", [2, 7, 12])
@pytest.mark.parametrize("p", [0.2, 0.5, 0.8])
def test_nor_of_a_set_of_values(p, k):
    for records in (1, 5, 12, 30):
        assert coverage(records, records, p=p, m=14, k=k).min() >= 0.95


@pytest.mark.parametrize("p", [0.2, 0.5, 0.8])
def test_with_many_trials_the_limits_are_not_wider_than_need_be(p):
    got = coverage(2_000, 2_000, p=p, m=14, counts=[300, 1_000, 1_700])
    assert got.max() < 0.965


@pytest.mark.parametrize("factor", [0.7, 1.3])
def test_a_p_that_is_off_by_30_percent_is_found_out(factor):
    got = coverage(400, 400, p=0.5, m=14, assumed=0.5 * factor, counts=[300])
    assert got.max() < 0.5


def test_the_variance_at_the_estimate_would_miss_half_of_the_groups_of_one():
    # One record that holds the value: O is 0 or 1; the usual interval is estimate ± 1.96 errors.
    p, m = 0.5, 46
    t = (1 - p) / m
    observed = np.array([0.0, 1.0])
    estimate = (observed - t) / p
    # At the estimate the variance of O = 1 counts a holder too many.
    holders = estimate * ((p + t) * (1 - p - t)) + (1 - estimate) * t * (1 - t)
    inside = np.abs(estimate - 1) <= 1.96 * np.sqrt(np.maximum(holders, 0)) / p
    assert inside @ np.array([1 - p - t, p + t]) < 0.6
    assert coverage(1, 1, p=p, m=m).min() == pytest.approx(1)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    records=st.integers(1, 5_000),
    share=st.floats(0.01, 1),
    p=st.floats(0.05, 0.95),
    m=st.integers(2, 60),
    miss=st.sampled_from([0.5, 0.05, 1e-4, 1e-7]),
)
def test_limits_are_possible_ordered_and_grow_with_the_published_count(records, share, p, m, miss):
    trials = max(1, round(share * records))
    observed = np.unique(np.linspace(0, records, 60).round())
    low, high = count_limits(
        one_group(observed, records, trials), retention=p, stray=(1 - p) / m, miss=miss
    )
    assert (low >= 0).all() and (low <= high).all() and (high <= records).all()
    assert (np.diff(low) >= -1e-3).all() and (np.diff(high) >= -1e-3).all()
    # A published count that no holder at all would give is bad luck, not certainty.
    assert (high > low).all()


def test_equal_cases_are_solved_once_and_different_ones_apart():
    observed = np.array([3.0, 7.0, 3.0, 0.0, 7.0])
    low, high = count_limits(one_group(observed, 20, 20), retention=0.5, stray=0.1, miss=0.05)
    for i, one in enumerate(observed):
        alone = count_limits(one_group([one], 20, 20), retention=0.5, stray=0.1, miss=0.05)
        assert (low[i], high[i]) == (alone[0][0], alone[1][0])
    assert len(set(high.tolist())) == 3


def test_a_tail_far_from_the_mean_in_tiny_steps_overflows_quietly():
    """With margins, the steps of a count may be tiny beside one record."""
    one = np.array([1.0])
    found = intervals._saddlepoint_tail(1e3 * one, 10 * one, 1e6 * one, 1e4 * one, 0.5, 0.01)
    assert 0.0 <= found[0] <= 1.0

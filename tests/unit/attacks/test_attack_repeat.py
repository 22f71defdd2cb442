"""Repeated releases: fresh keys are fresh samples, one key is one sample."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import reconpriv as rp
from reconpriv.attacks.attacked_table import attack_key, count_of, frequency_in, largest_values
from reconpriv.attacks.repeat import (
    attack_repeat,
    error_slope,
    independence,
    inserted_records,
    published_difference,
    with_one_more,
)
from reconpriv.attacks.statistics import correlation


def estimates(target, published):
    return frequency_in(published, target.values, target.policy.retention)


@pytest.fixture(scope="module")
def fresh(exposed):
    return np.array([estimates(exposed, exposed.publish(i)) for i in range(32)])


def test_with_fresh_keys_the_error_falls_like_one_over_the_root_of_k(exposed, fresh):
    slope = error_slope(fresh, exposed.frequency)
    assert slope.contains(-0.5)
    assert not slope.contains(-0.35)
    assert not slope.contains(-0.65)


def test_with_one_key_nothing_falls(exposed):
    """The control: the average of the same release is that release."""
    same = np.array([estimates(exposed, exposed.publish(0)) for _ in range(4)])
    assert (same == same[0]).all()
    slope = error_slope(np.repeat(same[:1], 16, axis=0), exposed.frequency)
    assert slope.value == pytest.approx(0.0, abs=1e-9)


def test_the_result(target):
    result = attack_repeat(target, releases=16)
    assert result.success is not None and result.control is not None
    assert result.baseline is not None
    assert result.success.low > result.control.high
    assert result.success.low > result.baseline.high
    assert result.control == replace(result.figures["one release"], what=result.control.what)
    assert result.figures["releases with one key differ"] is False
    assert result.figures["slope of ln error over ln k"].contains(-0.5)
    assert abs(result.figures["correlation of errors, one key and another p"].value) < 0.06


def test_one_key_and_another_p_are_independent_samples(exposed):
    """Of 11,360 pairs of errors; shared words would correlate them by far more than this."""
    assert abs(independence(exposed).value) < 0.05


def test_one_key_and_another_domain_are_independent_samples(exposed):
    """Whereas the same domain gives the same publication."""
    wider = replace(exposed.schema, domain=(*exposed.schema.domain, "~ nobody"))
    other = replace(exposed, schema=wider)
    policy = replace(exposed.policy, sampling="none")
    root = np.sqrt(exposed.batch.sizes)
    errors = [
        (estimates(t, t.publication_as(policy, attack_key(5)).cube) - exposed.frequency) * root
        for t in (exposed, other, exposed)
    ]
    assert abs(correlation(errors[0], errors[1]).value) < 0.2
    assert (errors[0] == errors[2]).all()


def test_an_inserted_record_shows_one_randomised_response(target):
    """In a group that is not sampled exactly one record is added; r of them show the truth."""
    small = target.only(np.flatnonzero(target.batch.sizes == 3)[:200])
    grown = replace(small, batch=with_one_more(small.batch))
    changed, value = published_difference(small.publish(0, "octave"), grown.publish(0, "octave"))
    assert (changed == 1).all()
    assert 0.35 < (value == small.batch.value[small.batch.starts]).mean() < 0.72
    shown, expected = inserted_records(target)
    assert shown.contains(expected)
    assert not shown.contains(1.0)


def test_an_inserted_record_with_a_fresh_key_changes_everything(target):
    """The control: without the common key there is no difference to read."""
    small = target.only(np.flatnonzero(target.batch.sizes == 3)[:200])
    grown = replace(small, batch=with_one_more(small.batch))
    changed, _ = published_difference(small.publish(0, "octave"), grown.publish(1, "octave"))
    assert (changed > 1).mean() > 0.8


def test_on_a_shuffled_column_averages_do_not_tell_the_true_groups(target, exposed):
    shuffled = target.shuffled()
    top = largest_values(exposed.raw)
    some = shuffled.only(target.violating())
    found = []
    for i in range(16):
        published = some.publish(i, "none")
        share = (count_of(published, top) / published.records - 0.5 / 16) / 0.5
        found.append(share)
    error = np.abs(np.mean(found, axis=0) - exposed.frequency) / exposed.frequency
    assert np.median(error) > 0.3


def test_too_few_releases_are_refused(target):
    with pytest.raises(rp.ReconprivError, match="at least 4"):
        attack_repeat(target, releases=2)

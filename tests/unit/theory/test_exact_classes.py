"""Sizes by exact tails for a class of groups, against every group of that class."""

import itertools
from fractions import Fraction
from functools import cache

import numpy as np
import pyarrow as pa
import pytest

import reconpriv as rp
from reconpriv.cells.cell_batch import CellBatch, Encoded
from reconpriv.columns.schema import Column, Kind, Schema
from reconpriv.policy.policy import Policy
from reconpriv.protect.kernel import Kernel
from reconpriv.theory.tails.exact import exact_tails
from reconpriv.theory.tails.exact_classes import ExposedClass, exact_class_sizes
from reconpriv.theory.tails.exact_published import published_tails
from tail_referee import tails_as_published, tails_of_trials

HALF = Fraction(1, 2)


def exact_size(group_class, size, told=0.0):
    """The largest n for a single group."""
    return int(exact_class_sizes(np.array([size]), group_class, np.array([told]))[0])


def a_class(above, upto, *, phi=0.0, m=14, values=None, p=0.5, epsilon=0.5, delta=0.05):
    values = m if values is None else values
    return ExposedClass(above, upto, phi, values, m, p, epsilon, delta, fillers=values < m)


# --- the referee: every group, every trial, in fractions -----------------------------------------


@cache
def smallest_tail(size, n, held, p, m, epsilon):
    trials = tails_of_trials(n, Fraction(held, size), p, m, epsilon)
    return min(*trials, *tails_as_published(size, n, held, p, m, epsilon))


def histograms(size, m):
    """Every group of this size: the counts of m values, some of them 0."""
    for cuts in itertools.combinations(range(size + m - 1), m - 1):
        edges = (-1, *cuts, size + m - 1)
        yield tuple(b - a - 1 for a, b in itertools.pairwise(edges))


def referee_size(group_class, size):
    """The largest n at which every exposed value of every group of the class passes."""
    c = group_class
    p, epsilon, delta = (Fraction(str(x)) for x in (c.retention, c.epsilon, c.delta))
    held = set()
    for counts in histograms(size, c.domain_size):
        exposed = [k for k in counts[: c.values] if k and k / size > c.exposed_above]
        if exposed and c.above < max(exposed) / size <= c.upto:
            held |= set(exposed)
    passing = [
        n
        for n in range(1, size + 1)
        if all(smallest_tail(size, n, k, p, c.domain_size, epsilon) >= delta for k in held)
    ]
    return max(passing, default=0)


@pytest.mark.parametrize(("p", "epsilon", "delta"), [(0.5, 0.5, 0.05), (0.3, 0.8, 0.2)])
@pytest.mark.parametrize(("m", "values"), [(2, 2), (3, 3), (4, 4), (3, 2), (4, 1)])
def test_sizes_are_those_of_exhaustive_enumeration(m, values, p, epsilon, delta):
    borders = [(0.5, 1.0, 0.0), (0.25, 0.5, 0.0), (0.0, 1.0, 0.0), (0.25, 0.5, 0.25), (0.6, 1, 0.3)]
    different = 0
    for above, upto, phi in borders:
        one = a_class(above, upto, phi=phi, m=m, values=values, p=p, epsilon=epsilon, delta=delta)
        for size in range(1, 13):
            found = exact_size(one, size)
            assert found == referee_size(one, size), (above, upto, phi, size)
            different += found != size
    assert different > 5  # the test is about groups that are sampled


# --- all frequencies at once ----------------------------------------------------------------------


@pytest.mark.parametrize("trials", [1, 2, 3, 6, 9, 17, 48])
@pytest.mark.parametrize(("above", "upto", "phi"), [(0.5, 1, 0), (0.25, 0.5, 0), (0.3, 0.6, 0.3)])
def test_no_frequency_has_smaller_tails_than_the_deciding_ones(trials, above, upto, phi):
    one = a_class(above, upto, phi=phi)
    deciding = one.deciding_frequencies(trials)
    grid = np.linspace(max(phi, 1e-6), upto, 4001)[1:]

    def tails(frequency):
        count = one._count(np.full(frequency.size, trials), frequency)
        return exact_tails(count)

    for dense, few in zip(tails(grid), tails(deciding), strict=True):
        assert dense.min() >= few.min() - 1e-12
        assert few.min() >= dense.min() - 0.02  # they are attained, or nearly so


def test_golden_sizes_of_octaves():
    """Trials by class at p = .5, ε = .5, m = 14; the last class is too rare for any limit."""
    found = {
        delta: [
            exact_size(a_class(top / 2, top, delta=delta), 10_000)
            for top in (1.0, 0.5, 0.25, 0.125)
        ]
        for delta in (0.05, 0.1)
    }
    assert found == {0.05: [6, 17, 48, 145], 0.1: [0, 0, 26, 84]}
    assert exact_size(a_class(0.5, 1.0, phi=0.25, delta=0.1), 10_000) == 1


def test_a_size_depends_on_nothing_but_class_and_size():
    one = a_class(0.25, 0.5)
    sizes = np.array([5, 40, 5, 1000, 40])
    told = np.array([0.0, 0.0, 0.0, 8.0, 12.0])
    assert exact_class_sizes(sizes, one, told).tolist() == [
        exact_size(one, int(size), float(e)) for size, e in zip(sizes, told, strict=True)
    ]


@pytest.mark.parametrize(("size", "trials"), [(9, 8), (33, 6), (40, 17), (12, 12), (30, 10)])
def test_published_tails_equal_the_referee(size, trials):
    held = np.arange(1, size + 1)
    upper, lower = published_tails(size, trials, held, retention=0.5, domain_size=14, epsilon=0.5)
    for k, *found in zip(held.tolist(), upper, lower, strict=True):
        above, below = tails_as_published(size, trials, k, HALF, 14, HALF)
        assert found == pytest.approx([float(above), float(below)], abs=1e-12)


# --- real publications ----------------------------------------------------------------------------

COPIES = 8_000
M = 14
SCHEMA = Schema((Column("g", Kind.INTEGER),), Column("s", Kind.INTEGER), tuple(range(M)))


def shapes(size):
    """Groups of one size, from one value for all to a value each for as many as possible."""
    shares = (0, 1 / 8, 1 / 4, 1 / 3, 1 / 2, 2 / 3, 6 / 7, 0.955, 1)
    for top in sorted({max(int(share * size), 1) for share in shares}):
        rest, counts = size - top, [top]
        while rest and len(counts) < M:
            left = M - len(counts)
            counts.append(min(top, max(rest - (left - 1) * top, -(-rest // left))))
            rest -= counts[-1]
        if not rest:
            yield tuple(counts)


def published_shares(counts, policy, factor=1.0):
    """How often F' of the most frequent value is more than ε too high, and too low."""
    groups = COPIES
    starts = np.arange(groups) * len(counts)
    batch = CellBatch(
        (Encoded(np.arange(groups, dtype=np.int32), pa.array(range(groups), pa.int64())),),
        starts,
        np.tile(np.arange(len(counts)), groups),
        np.tile(np.array(counts), groups),
    )
    kernel = Kernel(SCHEMA, policy, rp.Key(bytes(range(32))))
    if factor != 1.0:
        limits = np.ceil(kernel.limits(batch) * factor)
        kernel = OtherLimits(SCHEMA, policy, kernel.key, limits=limits)
    found = np.zeros(groups)
    first = 0
    for part in kernel(batch):
        hit = part.value == 0
        found[first + part.group[hit]] = part.count[hit]
        first += part.sizes.size
    size, f, p = sum(counts), counts[0] / sum(counts), policy.retention
    estimate = (found / size - (1 - p) / M) / p
    error = estimate / f - 1.0
    slack = 1e-9
    return (error > policy.tolerance + slack).mean(), (error < -policy.tolerance - slack).mean()


class OtherLimits(Kernel):
    """A kernel that takes its limits from outside."""

    def __init__(self, *given, limits):
        super().__init__(*given)
        object.__setattr__(self, "_limits", limits)

    def limits(self, batch):
        return self._limits[: batch.groups]


def lowest(policy, factor=1.0):
    """The smallest share of large errors over all shapes, in standard errors from δ."""
    spread = np.sqrt(policy.doubt * (1 - policy.doubt) / COPIES)
    found = []
    for size in (3, 9, 22, 40, 128):
        for counts in shapes(size):
            if counts[0] / size > policy.exposed_above:
                shares = published_shares(counts, policy, factor)
                found.append((min(shares) - policy.doubt) / spread)
    return min(found)


@pytest.mark.parametrize("sample_size", ["octave", "public"])
@pytest.mark.parametrize("phi", [0.0, 0.25])
def test_no_group_is_estimated_better_than_promised(sample_size, phi):
    policy = Policy(
        retention=0.5,
        tolerance=0.5,
        doubt=0.05,
        bound="exact",
        sampling=sample_size,
        exposed_above=phi,
    )
    assert lowest(policy) > -3.0
    assert lowest(policy, 1.3) < -3.0


def test_harmless_values_may_outnumber_those_of_the_class():
    # 240 of 1,000 hold an exposed value; the other 760 a harmless one.
    some = ExposedClass(0.125, 0.25, 0.0, 2, 2, 0.5, 0.5, 0.05, fillers=True)
    trials = exact_size(some, 1000)
    assert 0 < trials < 200

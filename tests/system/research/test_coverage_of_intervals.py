"""Do 95 % intervals cover the true count 95 % of the time? Keys are fixed, so the answer is too.

The queries are the paper's pool on the census table (answers of 0.1 % of the records or more).
"""

import numpy as np
import pytest

import reconpriv as rp
from query_fixtures import numbered_key, published_cube
from reconpriv.answers.answerer import Answerer
from reconpriv.ask.workload import make_workload
from reconpriv.cells.cube import Cube, collect
from reconpriv.estimate.counts import Design, Settings

P, EPSILON, DELTA = 0.5, 0.5, 0.3
QUERIES = 300
# Releases that each figure rests on; what is far off shows with fewer.
KEYS = {"honest": 7, "naive": 3, "p * 0.7": 1, "p * 1.3": 1}
SENSITIVE = ("Education", "Occupation")


@pytest.fixture(scope="module")
def raw(census_tables):
    """The raw cells and a pool of queries, settled once: codes are the same in every release."""
    found = {}
    for sensitive in SENSITIVE:
        table = census_tables(sensitive)
        batches = list(table.batches())
        cube = collect(batches, table.schema)
        pool = make_workload(cube, queries=QUERIES, seed=3)
        truth = Answerer(cube, Design(P, table.schema.domain_size, "none"))
        selected = [truth.select(None, query) for query in pool.queries]
        found[sensitive] = (table, batches, pool, selected)
    return found


def covered(answers, truths):
    return np.array([a.low <= t <= a.high for a, t in zip(answers, truths, strict=True)])


def ask(cube, design, selected):
    return Answerer(cube, design).count_many(selected, Settings(confidence=0.95))


def with_trials(cube, trials):
    return Cube(cube.schema, cube.codes, cube.values, cube.records, trials, cube.group, cube.value,
                cube.count)  # fmt: skip


@pytest.fixture(scope="module")
def coverage(raw):
    """Coverage of each design under: the true p, rows taken for trials, p too low, p too high."""
    figures = {}
    for sensitive, (table, batches, pool, selected) in raw.items():
        assert pool.answers.min() >= 0.001 * pool.records
        m = table.schema.domain_size
        for size in ("none", "octave", "public"):
            policy = rp.Policy(retention=P, tolerance=EPSILON, doubt=DELTA, sampling=size)
            hits = {name: [] for name in KEYS}
            for number in range(KEYS["honest"]):
                cube = published_cube(batches, table.schema, policy, numbered_key(number))
                naive = with_trials(cube, cube.records.astype(np.float64))
                for name, cells, p in (
                    ("honest", cube, P), ("naive", naive, P),
                    ("p * 0.7", cube, 0.7 * P), ("p * 1.3", cube, 1.3 * P),
                ):  # fmt: skip
                    if number < KEYS[name]:
                        answers = ask(cells, Design(p, m, size), selected)
                        hits[name].append(covered(answers, pool.answers))
            figures[sensitive, size] = {name: np.concatenate(h) for name, h in hits.items()}
    return figures


CASES = [(sensitive, size) for sensitive in SENSITIVE for size in ("none", "octave", "public")]


@pytest.mark.parametrize(("sensitive", "size"), CASES)
def test_95_percent_intervals_cover_93_to_97_percent(coverage, sensitive, size):
    hits = coverage[sensitive, size]["honest"]
    naive = coverage[sensitive, size]["naive"].mean()
    print(f"{sensitive} {size}: {hits.mean():.1%} of {hits.size} (naive {naive:.1%})")
    assert hits.size >= 2_000
    assert 0.93 <= hits.mean() <= 0.97


@pytest.mark.parametrize("size", ["octave", "public"])
@pytest.mark.parametrize("sensitive", SENSITIVE)
def test_counting_published_rows_as_trials_covers_less_under_every_key(coverage, sensitive, size):
    figures = coverage[sensitive, size]
    naive = figures["naive"]
    honest = figures["honest"][: naive.size]
    lost = (honest & ~naive).reshape(KEYS["naive"], QUERIES).mean(axis=1)
    print(f"{sensitive} {size}: the naive interval loses {lost.min():.1%} to {lost.max():.1%}")
    assert not (naive & ~honest).any()
    assert lost.min() > 0
    assert lost.mean() > 0.02


@pytest.mark.parametrize(("size", "most"), [("octave", 0.93), ("public", 0.8)])
def test_counting_published_rows_as_trials_fails_on_occupation(coverage, size, most):
    # Few, large groups: here the sample is much smaller than the group.
    assert coverage["Occupation", size]["naive"].mean() < most


@pytest.mark.parametrize("sensitive", SENSITIVE)
def test_without_sampling_rows_are_trials(coverage, sensitive):
    figures = coverage[sensitive, "none"]
    assert np.array_equal(figures["naive"], figures["honest"][: figures["naive"].size])


@pytest.mark.parametrize("wrong", ["p * 0.7", "p * 1.3"])
@pytest.mark.parametrize(("sensitive", "size"), CASES)
def test_a_p_that_is_off_by_30_percent_is_found_out(coverage, sensitive, size, wrong):
    assert coverage[sensitive, size][wrong].mean() < 0.8


@pytest.mark.parametrize("sensitive", SENSITIVE)
def test_approximate_intervals_of_paper_cover_at_least_93_percent(raw, sensitive, tmp_path):
    table, _, pool, _ = raw[sensitive]
    policy = rp.Policy(retention=P, tolerance=EPSILON, doubt=DELTA, sampling="paper")
    hits = []
    for number in range(KEYS["honest"]):
        release = table.publish(policy, tmp_path / str(number), key=numbered_key(number))
        hits.append(covered(release.count_many(pool.queries), pool.answers))
    share = np.concatenate(hits).mean()
    print(f"{sensitive} paper: {share:.1%} of {KEYS['honest'] * len(pool)}")
    assert 0.93 <= share <= 0.995

"""What is published has the distribution that the mathematics predicts, and no other.

Keys are fixed, so nothing here is random from run to run. Every statistic is computed under an
assumed p: under the true one it must pass, and under one that is off by 30 % in either direction
it must be rejected.
"""

import hashlib
import math
from functools import cache

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import stats

import reconpriv as rp
from reconpriv.cells.cell_batch import CellBatch, Encoded
from reconpriv.cells.randomness import Key
from reconpriv.columns.schema import Column, Kind, Schema
from reconpriv.policy.policy import Policy
from reconpriv.protect.kernel import Kernel
from reconpriv.theory.estimation.reconstruction import count_variance, reconstruct_count

P = 0.5
WRONG = (0.7 * P, 1.3 * P)
Z_LIMIT = 5.0
TINY = 1e-6
MODES = ["paper", "octave", "public", "none"]
SAMPLING = ["paper", "octave", "public"]
M = 6
GROUPS = 4000
EPSILON, DELTA = 0.5, 0.3


def key(number):
    return Key(hashlib.blake2b(b"statistics%d" % number, digest_size=32).digest())


def policy_of(mode):
    return Policy(retention=P, tolerance=EPSILON, doubt=DELTA, sampling=mode)


def size_of(f, p):
    """Eq. 10 for an assumed p."""
    w = f * p + (1 - p) / M
    return -2 * math.log(DELTA) * w / (EPSILON * p * f) ** 2


def limit_of(counts, mode, p):
    f = max(counts) / sum(counts)
    if mode == "paper":
        return size_of(f, p)
    rounded = 1.0
    while mode == "octave" and rounded / 2 >= f:
        rounded /= 2
    return math.floor(size_of(rounded, p))


def same_groups(counts, groups=GROUPS):
    """Many groups with the same counts, told apart by one public attribute."""
    occurring = [v for v, c in enumerate(counts) if c]
    return CellBatch(
        (Encoded(np.arange(groups, dtype=np.int32), pa.array(np.arange(groups))),),
        np.arange(groups) * len(occurring),
        np.tile(np.array(occurring), groups),
        np.tile(np.array([counts[v] for v in occurring]), groups),
    )


SCHEMA = Schema((Column("g", Kind.INTEGER),), Column("s", Kind.INTEGER), tuple(range(M)))


def publish_many(counts, mode, number, groups=GROUPS):
    """Published counts (a row a group, a column a value) and trials of each group."""
    table, trials, first = np.zeros((groups, M)), [], 0
    for piece in Kernel(SCHEMA, policy_of(mode), key(number))(same_groups(counts, groups)):
        table[first + piece.group, piece.value] = piece.count
        trials.append(piece.trials)
        first += piece.sizes.size
    return table, np.concatenate(trials)


def smooth_counts(mode, copies=8):
    """Counts of which every quota and the scaling factor are whole: nothing is left to rounding.

    Their largest frequency lies between 1/4 and 1/2, where octave and public differ.
    """
    trials = limit_of([1, 1, 0], "octave" if mode == "octave" else "public", P)
    shares = [trials // 2, trials // 3, 0, 2, 0]
    shares.append(trials - sum(shares))
    return [share * copies for share in shares]


def counts_of(mode):
    return smooth_counts(mode) if mode in ("octave", "public") else [48, 27, 0, 18, 0, 7]


def largest(z):
    return float(np.abs(np.asarray(z)).max())


def passes_only_for_the_true_p(statistic):
    """The statistic is small under p and large under each p that is off by 30 %."""
    assert statistic(P) < Z_LIMIT
    for wrong in WRONG:
        assert statistic(wrong) > 2 * Z_LIMIT


def mean_z(samples, expected):
    """How many standard errors the means of the columns are from what was expected."""
    error = samples.std(axis=0, ddof=1) / math.sqrt(len(samples))
    return (samples.mean(axis=0) - expected) / error


# --- Reconstruction -----------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
def test_reconstructed_counts_are_unbiased(mode):
    counts = counts_of(mode)
    table, trials = publish_many(counts, mode, 1)
    assert (trials < sum(counts)).all() == (mode != "none")

    def statistic(p):
        estimates = reconstruct_count(table, sum(counts), retention=p, domain_size=M)
        return largest(mean_z(estimates, counts))

    passes_only_for_the_true_p(statistic)


@pytest.mark.parametrize("mode", ["octave", "public"])
def test_reconstructed_counts_are_unbiased_where_quotas_and_copies_are_not_whole(mode):
    counts = [61, 23, 0, 11, 0, 8]
    table, trials = publish_many(counts, mode, 2)
    assert sum(counts) % trials[0]

    def statistic(p):
        estimates = reconstruct_count(table, sum(counts), retention=p, domain_size=M)
        return largest(mean_z(estimates, counts))

    passes_only_for_the_true_p(statistic)


def variance_z(samples, variance):
    """How far sample variances are from the one predicted, by the spread of their squares."""
    squares = (samples - samples.mean(axis=0)) ** 2
    error = squares.std(axis=0, ddof=1) / math.sqrt(len(samples))
    return (squares.mean(axis=0) - variance) / error


def paper_variance(counts, p):
    """The variance of Algorithm 1's estimate: trials, coins of the sampling, coins of the scaling.

    ``b`` copies of each trial on average; a coin of variance v in the quota of a value moves its
    frequency in the sample, and those of all others, to first order.
    """
    size = sum(counts)
    c = np.array(counts, dtype=float)
    s = limit_of(counts, "paper", P)
    b = size / s
    quota = c / b
    coin = (quota - np.floor(quota)) * (1 - (quota - np.floor(quota)))
    f = c / size
    sampling = (1 - f) ** 2 * coin + f**2 * (coin.sum() - coin)
    share = b - math.floor(b)
    copies = s * (f * p + (1 - p) / M) * share * (1 - share)
    perturbing = count_variance(quota, s, retention=p, domain_size=M)
    return b**2 * (perturbing + sampling) + copies / p**2


@pytest.mark.parametrize("mode", MODES)
def test_reconstructed_counts_have_the_variance_predicted(mode):
    counts = counts_of(mode)
    size = sum(counts)
    table, trials = publish_many(counts, mode, 3)

    def statistic(p):
        estimates = reconstruct_count(table, size, retention=p, domain_size=M)
        if mode == "paper":
            predicted = paper_variance(counts, p)
        else:
            n = int(trials[0])
            share = np.array(counts) * n / size
            predicted = (size / n) ** 2 * count_variance(share, n, retention=p, domain_size=M)
        return largest(variance_z(estimates, predicted))

    assert statistic(P) < Z_LIMIT
    for wrong in WRONG:
        assert statistic(wrong) > Z_LIMIT


@pytest.mark.parametrize("mode", ["octave", "public"])
def test_variance_without_the_scale_of_the_sample_is_rejected(mode):
    counts = counts_of(mode)
    table, _ = publish_many(counts, mode, 3)
    estimates = reconstruct_count(table, sum(counts), retention=P, domain_size=M)
    unscaled = count_variance(counts, sum(counts), retention=P, domain_size=M)
    assert largest(variance_z(estimates, unscaled)) > 2 * Z_LIMIT


# --- Perturbing ---------------------------------------------------------------------------------


def single_value_counts(mode):
    """All records of a group hold value 2; octave and public publish whole copies of trials."""
    size = 60 if mode in ("paper", "none") else 5 * limit_of([1], mode, P)
    return [0, 0, size, 0, 0, 0]


def trial_counts(mode, number, copies=5):
    """How many trials fell on each value, over all groups."""
    table, trials = publish_many(single_value_counts(mode), mode, number)
    if mode == "none":
        copies = 1
    assert (table % copies == 0).all()
    assert table.sum() == copies * trials.sum()
    return table.sum(axis=0) / copies


@pytest.mark.parametrize("mode", ["octave", "public", "none"])
def test_values_are_kept_with_probability_r(mode):
    observed = trial_counts(mode, 4)

    def statistic(p):
        r = p + (1 - p) / M
        n = observed.sum()
        return abs(observed[2] - n * r) / math.sqrt(n * r * (1 - r))

    passes_only_for_the_true_p(statistic)


@pytest.mark.parametrize("mode", ["octave", "public", "none"])
def test_replacements_are_uniform_over_the_domain(mode):
    observed = trial_counts(mode, 5)

    def p_value(p):
        expected = np.full(M, (1 - p) / M)
        expected[2] += p
        return stats.chisquare(observed, expected * observed.sum()).pvalue

    assert p_value(P) > TINY
    assert all(p_value(wrong) < TINY for wrong in WRONG)
    others = np.delete(observed, 2)
    assert stats.chisquare(others).pvalue > TINY
    skewed = others * [1.05, 1, 1, 1, 0.95]
    assert stats.chisquare(skewed, np.full(5, skewed.mean())).pvalue < TINY


def test_paper_keeps_with_probability_r_and_replaces_uniformly():
    counts = single_value_counts("paper")
    table, trials = publish_many(counts, "paper", 6)
    assert (trials < sum(counts)).all()

    def statistic(p):
        expected = np.full(M, (1 - p) / M)
        expected[2] += p
        return largest(mean_z(table, expected * sum(counts)))

    passes_only_for_the_true_p(statistic)


def test_trials_of_one_group_are_independent():
    # Then the count of every value, kept or drawn, spreads like a binomial.
    table, _ = publish_many(single_value_counts("none"), "none", 7)

    def statistic(p):
        share = np.full(M, (1 - p) / M)
        share[2] += p
        return largest(variance_z(table, 60 * share * (1 - share)))

    assert statistic(P) < Z_LIMIT
    for wrong in WRONG:
        assert statistic(wrong) > Z_LIMIT


# --- Sampling and scaling -----------------------------------------------------------------------

UNEVEN = [61, 23, 0, 11, 0, 8]


def drawn_samples(counts, mode, number):
    """How many records of each occurring value are drawn, a row a group."""
    drawn = Kernel(SCHEMA, policy_of(mode), key(number)).draw(same_groups(counts)).trials
    return drawn.reshape(GROUPS, -1)


@pytest.mark.parametrize("mode", SAMPLING)
def test_samples_have_their_quotas_on_average(mode):
    drawn = drawn_samples(UNEVEN, mode, 8)
    occurring = np.array([c for c in UNEVEN if c])

    def statistic(p):
        quota = occurring * limit_of(UNEVEN, mode, p) / sum(UNEVEN)
        # A quota is rounded down or up, so half a record is the most its deviation can be.
        return largest((drawn.mean(axis=0) - quota) / (0.5 / math.sqrt(len(drawn))))

    passes_only_for_the_true_p(statistic)


@pytest.mark.parametrize("mode", SAMPLING)
def test_quotas_are_rounded_up_as_often_as_their_fraction_says(mode):
    drawn = drawn_samples(UNEVEN, mode, 9)
    occurring = np.array([c for c in UNEVEN if c])
    quota = occurring * limit_of(UNEVEN, mode, P) / sum(UNEVEN)
    below = np.floor(quota)
    assert set(np.unique(drawn - below)) <= {0, 1}
    fraction = quota - below
    assert ((fraction > 0.05) & (fraction < 0.95)).sum() >= 3
    error = np.sqrt(fraction * (1 - fraction) / len(drawn))
    assert largest((drawn.mean(axis=0) - quota) / error) < Z_LIMIT


@pytest.mark.parametrize("mode", ["octave", "public"])
@pytest.mark.parametrize("counts", [UNEVEN, [40, 30, 20, 10, 0, 0], [20, 20, 20, 20, 20, 20]])
def test_trials_are_the_size_of_the_rounded_frequency_exactly(mode, counts):
    scaled = [10 * c for c in counts]
    _, trials = publish_many(scaled, mode, 10, groups=50)
    assert set(trials.tolist()) == {limit_of(scaled, mode, P)}
    assert all(limit_of(scaled, mode, wrong) != trials[0] for wrong in WRONG)


def test_trials_of_paper_are_s_on_average():
    _, trials = publish_many(UNEVEN, "paper", 11)
    assert trials.std() > 0

    def statistic(p):
        return largest(mean_z(trials[:, None].astype(float), limit_of(UNEVEN, "paper", p)))

    passes_only_for_the_true_p(statistic)


def test_totals_of_paper_are_the_group_size_on_average():
    table, trials = publish_many(UNEVEN, "paper", 12)
    totals = table.sum(axis=1, keepdims=True)
    assert totals.std() > 0
    assert largest(mean_z(totals, sum(UNEVEN))) < Z_LIMIT
    for wrong in (0.7, 1.3):
        assert largest(mean_z(totals, wrong * sum(UNEVEN))) > 2 * Z_LIMIT
    # Whole copies alone would fall short of it.
    assert ((sum(UNEVEN) // trials) * trials).mean() < 0.95 * sum(UNEVEN)


def test_the_copies_left_over_go_to_any_value_alike():
    # 1.5 copies a trial: were the remainder dealt in the order of the trials, the first would win.
    n = limit_of([1], "public", P)
    counts = [3 * n // 4, 0, 0, 0, 0, 3 * n // 2 - 3 * n // 4]
    table, trials = publish_many(counts, "public", 13)
    assert set(trials.tolist()) == {n}
    expected = np.array(counts) * P + sum(counts) * (1 - P) / M
    assert largest(mean_z(table, expected)) < Z_LIMIT
    for wrong in WRONG:
        expected = np.array(counts) * wrong + sum(counts) * (1 - wrong) / M
        assert largest(mean_z(table, expected)) > 2 * Z_LIMIT


# --- A plain column -------------------------------------------------------------------------------

DOMAIN = ["often", "rare", "never", "some"]
COLUMN = ["often"] * 240 + ["some"] * 120 + ["rare"] * 40
SHARES = np.array([0.6, 0.1, 0.0, 0.3])


@pytest.fixture(scope="module")
def reconstructed():
    """The column perturbed under 5000 keys, then reconstructed with an assumed p.

    So many keys are enough for a p that is off by 30 % to show in a variance.
    """
    answers = [rp.perturb(COLUMN, DOMAIN, retention=P, key=key(1000 + i)) for i in range(5000)]
    return cache(lambda p: [rp.reconstruct(a, DOMAIN, retention=p) for a in answers])


def test_a_reconstructed_column_is_unbiased(reconstructed):
    def statistic(p):
        estimates = [result.frequencies for result in reconstructed(p)]
        return largest(mean_z(np.array(estimates), SHARES))

    passes_only_for_the_true_p(statistic)


def test_standard_errors_of_a_column_match_the_spread_over_keys(reconstructed):
    def statistic(p):
        results = reconstructed(p)
        estimates = np.array([result.frequencies for result in results])
        predicted = np.mean([result.standard_errors**2 for result in results], axis=0)
        return largest(variance_z(estimates, predicted))

    assert statistic(P) < Z_LIMIT
    for wrong in WRONG:
        assert statistic(wrong) > Z_LIMIT


def test_values_of_a_column_are_kept_with_probability_r_and_replaced_uniformly():
    same = rp.perturb(["some"] * 200_000, DOMAIN, retention=P, key=key(14))
    observed = np.array([same.count(value) for value in DOMAIN])

    def p_value(p):
        expected = np.full(4, (1 - p) / 4)
        expected[3] += p
        return stats.chisquare(observed, expected * 200_000).pvalue

    assert p_value(P) > TINY
    assert all(p_value(wrong) < TINY for wrong in WRONG)


def test_a_column_longer_than_a_chunk_is_perturbed_position_by_position():
    column = COLUMN * 200
    result = rp.perturb(column, DOMAIN, retention=P, key=key(1))
    assert result[:70] == rp.perturb(column[:70], DOMAIN, retention=P, key=key(1))
    assert len(result) == len(column) > 1 << 16
    # The second chunk does not repeat the words of the first.
    same = rp.perturb(["some"] * (1 << 17), DOMAIN, retention=P, key=key(1))
    assert same[: 1 << 16] != same[1 << 16 :]


def test_the_same_key_perturbs_alike_and_another_key_differently():
    one, again, other = (
        rp.perturb(COLUMN, DOMAIN, retention=P, key=k) for k in (key(1), key(1), key(2))
    )
    assert one == again != other


def test_without_a_key_every_perturbation_is_new():
    one, other = (rp.perturb(COLUMN, DOMAIN, retention=P) for _ in range(2))
    assert one != other


def test_the_order_of_the_domain_changes_no_value_and_orders_frequencies():
    perturbed = rp.perturb(COLUMN, DOMAIN, retention=P, key=key(1))
    assert perturbed == rp.perturb(COLUMN, DOMAIN[::-1], retention=P, key=key(1))
    one, other = (rp.reconstruct(perturbed, d, retention=P) for d in (DOMAIN, DOMAIN[::-1]))
    assert (one.values, other.values) == (tuple(DOMAIN), tuple(DOMAIN[::-1]))
    assert one.as_dict() == other.as_dict()
    assert one.standard_errors.tolist() == other.standard_errors.tolist()[::-1]


def test_a_reconstructed_column_by_hand():
    # p = .5, m = 2, t = .25: (3/4 - 1/4) / .5 and (1/4 - 1/4) / .5.
    result = rp.reconstruct(["y", "y", "y", "n"], ["y", "n"], retention=0.5)
    assert result.as_dict() == {"y": 1.0, "n": 0.0}
    assert result.records == 4
    # 4 trials of variance 3/16, over p and n: sqrt(.75) / .5 / 4.
    assert result.standard_errors.tolist() == pytest.approx([math.sqrt(0.75) / 2] * 2)


TEXTS = rp.perturb(COLUMN, DOMAIN, retention=P, key=key(1))
KINDS = {
    "list": (COLUMN, list),
    "numpy": (np.array(COLUMN), np.ndarray),
    "numpy objects": (np.array(COLUMN, dtype=object), np.ndarray),
    "pandas": (pd.Series(COLUMN, index=range(7, 407), name="x"), pd.Series),
    "polars": (pl.Series("x", COLUMN), pl.Series),
    "arrow": (pa.array(COLUMN), pa.Array),
    "arrow in chunks": (pa.chunked_array([COLUMN[:100], COLUMN[100:]]), pa.Array | pa.ChunkedArray),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_column_comes_back_as_the_kind_it_was_with_the_same_values(kind):
    column, expected = KINDS[kind]
    result = rp.perturb(column, DOMAIN, retention=P, key=key(1))
    assert isinstance(result, expected)
    values = result.to_pylist() if hasattr(result, "to_pylist") else list(result)
    assert values == TEXTS
    assert (
        rp.reconstruct(result, DOMAIN, retention=P).as_dict()
        == rp.reconstruct(TEXTS, DOMAIN, retention=P).as_dict()
    )


NUMBERS = {
    "pandas": pd.Series([1, 2] * 50, index=range(7, 107), name="x", dtype="int16"),
    "polars": pl.Series("x", [1, 2] * 50, dtype=pl.Int16),
    "arrow": pa.array([1, 2] * 50, pa.int16()),
    "dictionary": pa.array([1, 2] * 50).dictionary_encode(),
    "chunked": pa.chunked_array([[1, 2] * 25] * 2),
}


@pytest.mark.parametrize("kind", NUMBERS)
def test_a_column_keeps_its_type_name_and_index(kind):
    column = NUMBERS[kind]
    result = rp.perturb(column, [1, 2, 3], retention=P, key=key(1))
    assert type(result) is type(column)
    for name in ("type", "dtype", "name"):
        assert getattr(result, name, None) == getattr(column, name, None)
    if kind == "pandas":
        assert result.index.equals(column.index)
    assert set(result.to_pylist() if hasattr(result, "to_pylist") else result) == {1, 2, 3}


TEXTS_OF_ONE_LETTER = {
    "numpy": np.array(["a", "b"] * 50),
    "pandas categories": pd.Series(["a", "b"] * 50, dtype="category"),
    "polars categories": pl.Series("x", ["a", "b"] * 50, dtype=pl.Categorical),
    "polars enum": pl.Series("x", ["a", "b"] * 50, dtype=pl.Enum(["a", "b", "longer"])),
}


@pytest.mark.parametrize("kind", TEXTS_OF_ONE_LETTER)
def test_a_text_type_takes_in_the_whole_domain(kind):
    column = TEXTS_OF_ONE_LETTER[kind]
    result = rp.perturb(column, ["a", "b", "longer"], retention=0.1, key=key(1))
    assert set(result.tolist() if kind == "numpy" else result) == {"a", "b", "longer"}


def test_a_domain_written_as_text_serves_for_reconstruction_too():
    result = rp.reconstruct([1, 2, 1, 1], ["1", "2"], retention=P)
    assert sum(result.frequencies) == pytest.approx(1)


def test_an_empty_column_is_perturbed_to_an_empty_one_and_not_reconstructed():
    assert rp.perturb([], DOMAIN, retention=P, key=key(1)) == []
    with pytest.raises(rp.ReconprivError, match="no values"):
        rp.reconstruct([], DOMAIN, retention=P)

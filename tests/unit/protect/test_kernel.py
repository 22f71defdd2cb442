"""The publication kernel against a slow reference that handles one trial at a time."""

import hashlib
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import reconpriv as rp
from reconpriv.cells import randomness
from reconpriv.cells.cell_batch import CellBatch, Encoded
from reconpriv.cells.randomness import (
    GROUP_OFFSET,
    SAMPLING_COIN,
    Key,
    Randomness,
    perturb_words,
    unit_interval,
)
from reconpriv.columns.schema import Column, Kind, Schema
from reconpriv.policy.policy import Policy
from reconpriv.policy.sampling_rules import round_up_to_octave, sample_limits
from reconpriv.protect import kernel
from reconpriv.protect.kernel import Kernel

FIXED = settings(deadline=None, derandomize=True, max_examples=60)
MODES = ["paper", "octave", "public", "none"]
SAMPLING = ["paper", "octave", "public"]
EXACT_TOTALS = ["octave", "public", "none"]
CITY, AGE = Column("city", Kind.STRING), Column("age", Kind.INTEGER)
SICK = Column("illness", Kind.STRING)
# The domain is larger than what occurs in the small tables below.
DOMAIN = ("asthma", "cold", "flu", "gout", "hives", "mumps", "ulcer")


def key(number):
    return Key(hashlib.blake2b(number.to_bytes(8, "little"), digest_size=32).digest())


def schema_of(domain=DOMAIN):
    return Schema((CITY, AGE), SICK, domain)


def batch_of(table):
    """{(city, age): {value index: count}} as a batch in canonical order, a missing city last."""
    groups = sorted(table, key=lambda g: (g[0] is None, g[0] or "", g[1]))
    columns = []
    for position, kind in enumerate((pa.string(), pa.int64())):
        values = list(dict.fromkeys(group[position] for group in groups))
        codes = np.array([values.index(group[position]) for group in groups], dtype=np.int32)
        columns.append(Encoded(codes, pa.array(values, kind)))
    cells = [(v, c) for group in groups for v, c in sorted(table[group].items())]
    starts = np.cumsum([0, *(len(table[group]) for group in groups[:-1])])
    value, count = (np.array(column, dtype=np.int64) for column in zip(*cells, strict=True))
    return CellBatch(tuple(columns), starts, value, count)


def published(table, policy, secret, domain=DOMAIN):
    """What the kernel publishes: {group: {value index: count}} and {group: trials}."""
    cells, trials = {}, {}
    for piece in Kernel(schema_of(domain), policy, secret)(batch_of(table)):
        part = CellBatch(piece.public, np.arange(piece.sizes.size), piece.sizes, piece.sizes)
        named = [part.public_values(i, schema_of(domain)) for i in range(piece.sizes.size)]
        names = [tuple(values.values()) for values in named]
        for name, n in zip(names, piece.trials.tolist(), strict=True):
            trials[name] = n
            cells[name] = {}
        for g, v, c in zip(piece.group, piece.value, piece.count, strict=True):
            assert int(v) not in cells[names[g]]
            cells[names[g]][int(v)] = int(c)
        assert piece.records.tolist() == [sum(cells[name].values()) for name in names]
    return cells, trials


# --- The reference: plain Python, one trial at a time -----------------------------------------


def private_size(f, policy, m):
    """Eq. 10."""
    p = policy.retention
    w = f * p + (1 - p) / m
    theta = policy.tolerance * p * f / w
    return -2 * math.log(policy.doubt) / (w * theta**2)


def reference_limit(counts, policy, m):
    f = max(counts.values()) / sum(counts.values())
    if policy.sampling == "none":
        return math.inf
    if policy.sampling == "paper":
        return private_size(f, policy, m)
    rounded = 1.0
    if policy.sampling == "octave":
        while rounded / 2 >= f:
            rounded /= 2
    return math.floor(private_size(rounded, policy, m))


def one_word(words, cell_id, index, which):
    ids = np.array([cell_id], dtype=np.uint64)
    return int(words.words(ids, np.uint64(index))[0, which])


def as_unit(word):
    return Fraction(word >> 11, 2**53)


def reference_systematic(counts, wanted, offset):
    drawn, size, reached, before = {}, sum(counts.values()), 0, 0
    for value, count in sorted(counts.items()):
        reached += count
        upto = math.floor(Fraction(reached * wanted, size) + offset)
        drawn[value], before = upto - before, upto
    return drawn


def reference_group(group, counts, policy, secret, domain):
    """(published counts, trials, what happened) of one group, following Algorithm 1 literally."""
    m, size = len(domain), sum(counts.values())
    words = Kernel(Schema((CITY, AGE), SICK, tuple(domain)), policy, secret).randomness()
    hashes = [int(words.hash_values(c, [v])[0]) for c, v in zip((CITY, AGE), group, strict=True)]
    group_id = sum(hashes) % 2**64
    cell_id = {
        v: (group_id + int(words.hash_sensitive(SICK, [domain[v]])[0])) % 2**64 for v in counts
    }
    limit = reference_limit(counts, policy, m)
    offset = as_unit(one_word(words, group_id, GROUP_OFFSET, 0))
    happened = "whole"
    drawn = dict(counts)
    if size > limit:
        happened = "sampled"
        if limit < 1:
            happened = "unattainable"
            drawn = reference_systematic(counts, 1, offset)
        elif policy.sampling == "paper":
            for v, count in counts.items():
                quota = count * limit / size
                coin = as_unit(one_word(words, cell_id[v], SAMPLING_COIN, 0))
                drawn[v] = math.floor(quota) + (1 if coin < quota - math.floor(quota) else 0)
            if not sum(drawn.values()):
                happened = "all tails"
                drawn = reference_systematic(counts, 1, offset)
        else:
            drawn = reference_systematic(counts, int(limit), offset)
    trials = []
    p = Fraction(policy.retention)
    for v, n in drawn.items():
        for index in range(n):
            u = as_unit(one_word(words, cell_id[v], index, 0))
            new = v if u < p else math.floor((u - p) / (1 - p) * m)
            trials.append((one_word(words, cell_id[v], index, 1), new))
    result = Counter()
    copies, rest = divmod(size, len(trials))
    if size <= limit:
        copies, rest = 1, 0
    for rank, (word, new) in enumerate(sorted(trials)):
        if policy.sampling == "paper":
            extra = as_unit(word) < Fraction(rest, len(trials))
        else:
            extra = rank < rest
        result[new] += copies + (1 if extra else 0)
    return dict(result), len(trials), happened


def check_against_reference(table, policy, secret, domain=DOMAIN):
    cells, trials = published(table, policy, secret, domain)
    assert set(cells) == set(table)
    seen = Counter()
    for group, counts in table.items():
        expected, n, happened = reference_group(group, counts, policy, secret, domain)
        assert cells[group] == expected, (group, happened)
        assert trials[group] == n
        seen[happened] += 1
    return seen


# --- Equality with the reference --------------------------------------------------------------

COUNTS = st.dictionaries(st.integers(0, 4), st.integers(1, 30), min_size=1, max_size=5)
GROUPS = st.tuples(st.sampled_from(["Bonn", "Köln", "", None]), st.integers(-2, 3))
TABLE = st.dictionaries(GROUPS, COUNTS, min_size=1, max_size=5)


@FIXED
@given(
    TABLE,
    st.sampled_from([0.2, 0.5, 0.9]),
    st.sampled_from([0.3, 0.6, 0.9]),
    st.sampled_from([0.1, 0.3, 0.7]),
    st.integers(0, 9),
)
@example({("Bonn", 1): {0: 21, 3: 9}, (None, 2): {1: 1}, ("", 0): {2: 40}}, 0.5, 0.5, 0.3, 1)
@pytest.mark.parametrize("mode", MODES)
def test_small_tables_are_published_as_the_reference_says(mode, table, p, epsilon, delta, secret):
    policy = Policy(
        retention=p, tolerance=epsilon, doubt=delta, sampling=mode, unattainable="one-trial"
    )
    check_against_reference(table, policy, key(secret))


@pytest.mark.parametrize("mode", SAMPLING)
def test_groups_below_and_above_their_size_are_published_as_the_reference_says(mode):
    table = {("Bonn", n): {0: n, 2: n // 3 + 1, 4: 1} for n in range(1, 60, 4)}
    policy = Policy(retention=0.5, tolerance=0.5, doubt=0.3, sampling=mode)
    seen = check_against_reference(table, policy, key(1))
    assert seen["whole"] >= 2
    assert seen["sampled"] >= 2
    assert set(seen) == {"whole", "sampled"}


@pytest.mark.parametrize("mode", SAMPLING)
def test_a_group_in_which_no_trial_is_private_gets_one_trial(mode):
    table = {("Bonn", n): {0: n, 2: 1} for n in range(3, 20)} | {("Ulm", 1): {5: 1}}
    policy = Policy(
        retention=0.9, tolerance=0.9, doubt=0.9, sampling=mode, unattainable="one-trial"
    )
    seen = check_against_reference(table, policy, key(2))
    assert seen == {"unattainable": len(table)}
    _, trials = published(table, policy, key(2))
    assert set(trials.values()) == {1}
    pieces = list(Kernel(schema_of(), policy, key(2))(batch_of(table)))
    assert all(piece.unattainable.all() for piece in pieces)


def test_paper_draws_one_record_where_every_coin_falls_on_tails():
    domain = tuple(f"v{i:02}" for i in range(50))
    table = {("Bonn", n): dict.fromkeys(range(40), 1) for n in range(30)}
    policy = Policy(retention=0.9, tolerance=0.9, doubt=0.99, sampling="paper")
    seen = check_against_reference(table, policy, key(3), domain)
    assert seen["all tails"] >= 3
    assert seen["sampled"] >= 3
    _, trials = published(table, policy, key(3), domain)
    assert min(trials.values()) == 1


def test_paper_tells_apart_groups_that_are_sampled_and_attainable():
    pieces = list(
        Kernel(
            schema_of(), Policy(retention=0.5, tolerance=0.5, doubt=0.3, sampling="paper"), key(1)
        )(batch_of({("Bonn", 1): {0: 5, 1: 5}, ("Bonn", 2): {0: 400}}))
    )
    assert [flag for piece in pieces for flag in piece.sampled.tolist()] == [False, True]
    assert not any(piece.unattainable.any() for piece in pieces)


def test_a_table_without_public_attributes_is_one_group():
    batch = CellBatch((), np.array([0]), np.array([0, 3]), np.array([20, 60]))
    for mode in EXACT_TOTALS:
        schema = Schema((), SICK, DOMAIN)
        (piece,) = Kernel(
            schema, Policy(retention=0.5, tolerance=0.5, doubt=0.3, sampling=mode), key(1)
        )(batch)
        assert piece.records.tolist() == [80]


def test_paper_with_a_bound_of_endless_and_empty_sizes_warns_of_nothing():
    # Markov's size is 0 for the one group and endless for the other.
    table = {("Bonn", 1): {0: 30}, ("Bonn", 2): dict.fromkeys(range(7), 2)}
    policy = Policy(
        retention=0.5,
        tolerance=0.5,
        doubt=0.75,
        bound="markov",
        sampling="paper",
        unattainable="one-trial",
    )
    limits = sample_limits(batch_of(table), policy, len(DOMAIN)).tolist()
    assert limits == [0.0, math.inf]
    _, trials = published(table, policy, key(1))
    assert trials == {("Bonn", 1): 1, ("Bonn", 2): 14}


# --- Pieces and chunks --------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("tiny", [1, 7, 64])
def test_splitting_the_work_changes_nothing(mode, tiny, monkeypatch):
    table = {
        (city, n): {0: 7 * n + 1, n % 4 + 1: 3, 6: n + 1}
        for city in ("Bonn", "Ulm", None)
        for n in range(8)
    }
    policy = Policy(retention=0.5, tolerance=0.5, doubt=0.3, sampling=mode)
    schema, batch = schema_of(), batch_of(table)
    whole = published(table, policy, key(4))
    assert len(list(Kernel(schema, policy, key(4))(batch))) == 1
    monkeypatch.setattr(kernel, "_TRIALS_AT_ONCE", tiny)
    monkeypatch.setattr(kernel, "_COUNTS_AT_ONCE", tiny)
    monkeypatch.setattr(randomness, "CHUNK", tiny)
    assert len(list(Kernel(schema, policy, key(4))(batch))) > 1
    assert published(table, policy, key(4)) == whole


def test_pieces_keep_within_the_number_of_trials_and_counts_held(monkeypatch):
    table = {("Bonn", n): {0: 60, 1: 40} for n in range(20)}
    policy = Policy(retention=0.5, tolerance=0.5, doubt=0.3, sampling="octave")
    monkeypatch.setattr(kernel, "_TRIALS_AT_ONCE", 100)
    pieces = list(Kernel(schema_of(), policy, key(1))(batch_of(table)))
    assert len(pieces) > 1
    assert max(int(piece.trials.sum()) for piece in pieces) <= 100
    monkeypatch.undo()
    monkeypatch.setattr(kernel, "_COUNTS_AT_ONCE", 3 * len(DOMAIN))
    pieces = list(Kernel(schema_of(), policy, key(1))(batch_of(table)))
    assert max(piece.sizes.size for piece in pieces) == 3


# --- Properties ---------------------------------------------------------------------------------


@FIXED
@given(TABLE, st.sampled_from([0.3, 0.5, 0.9]), st.integers(0, 9))
@pytest.mark.parametrize("mode", EXACT_TOTALS)
def test_totals_are_exactly_the_group_sizes(mode, table, p, secret):
    policy = Policy(retention=p, tolerance=0.7, doubt=0.3, sampling=mode, unattainable="one-trial")
    cells, trials = published(table, policy, key(secret))
    for group, counts in table.items():
        assert sum(cells[group].values()) == sum(counts.values())
        assert 1 <= trials[group] <= sum(counts.values())


@FIXED
@given(TABLE, st.integers(0, 99))
@pytest.mark.parametrize("mode", ["octave", "public"])
def test_each_values_sample_is_its_quota_rounded_down_or_up(mode, table, secret):
    batch = batch_of(table)
    limits = sample_limits(
        batch, Policy(retention=0.5, tolerance=0.5, doubt=0.3, sampling=mode), len(DOMAIN)
    )
    ids = np.arange(batch.groups, dtype=np.uint64)
    drawn = kernel._systematic_sample(batch, limits, Randomness(key(secret)), ids)
    group = batch.group_of_cell
    quota = [
        Fraction(int(c) * int(limits[g]), int(batch.sizes[g]))
        for c, g in zip(batch.count, group, strict=True)
    ]
    for got, share in zip(drawn.tolist(), quota, strict=True):
        assert math.floor(share) <= got <= math.ceil(share)
    assert np.add.reduceat(drawn, batch.starts).tolist() == limits.tolist()


def test_systematic_sample_is_exact_for_the_largest_offset(monkeypatch):
    monkeypatch.setattr(kernel, "unit_interval", lambda words: np.full(words.size, 1 - 2**-53))
    batch = batch_of({("Bonn", 1): {0: 70, 1: 30}})
    ids = np.zeros(1, dtype=np.uint64)
    drawn = kernel._systematic_sample(batch, np.array([20.0]), Randomness(key(1)), ids)
    assert drawn.sum() == 20


def test_octave_sizes_depend_on_the_octave_of_f_alone():
    table = {("Bonn", n): {0: 51 + n, 1: 49 - n} for n in range(0, 40, 5)}
    limits = sample_limits(
        batch_of(table), Policy(retention=0.5, tolerance=0.5, doubt=0.3), len(DOMAIN)
    )
    assert len(set(limits.tolist())) == 1
    assert limits[0] == math.floor(
        private_size(1.0, Policy(retention=0.5, tolerance=0.5, doubt=0.3), len(DOMAIN))
    )


def test_public_sizes_do_not_depend_on_f():
    table = {("Bonn", n): {0: 100, **dict.fromkeys(range(1, n + 1), 90)} for n in range(6)}
    policy = Policy(retention=0.5, tolerance=0.5, doubt=0.3, sampling="public")
    limits = sample_limits(batch_of(table), policy, len(DOMAIN))
    assert set(limits.tolist()) == {math.floor(private_size(1.0, policy, len(DOMAIN)))}


def test_a_frequency_is_rounded_up_to_the_next_power_of_a_half():
    powers = 2.0 ** -np.arange(0, 30)
    assert round_up_to_octave(powers).tolist() == powers.tolist()
    below = np.nextafter(powers, 0)
    assert round_up_to_octave(below).tolist() == powers.tolist()
    above = np.nextafter(powers[1:], 1)
    assert round_up_to_octave(above).tolist() == powers[:-1].tolist()


@pytest.mark.parametrize("mode", MODES)
def test_an_added_record_leaves_all_other_groups_unchanged(mode):
    policy = Policy(retention=0.5, tolerance=0.5, doubt=0.3, sampling=mode)
    table = {(city, n): {0: 20 * n + 1, 3: n + 2} for city in ("Bonn", "Ulm") for n in range(4)}
    before, _ = published(table, policy, key(5))
    changed = {**table, ("Bonn", 2): {0: 41, 2: 1, 3: 4}, ("Aachen", 9): {1: 4}}
    after, _ = published(changed, policy, key(5))
    if mode != "paper":
        assert sum(after[("Bonn", 2)].values()) == sum(before[("Bonn", 2)].values()) + 1
    for group in table:
        if group != ("Bonn", 2):
            assert after[group] == before[group]


def test_an_added_record_adds_one_trial_and_changes_none_where_nothing_is_sampled():
    policy = Policy(retention=0.5, tolerance=0.5, doubt=0.3, sampling="none")
    for n in range(1, 40):
        before, _ = published({("Bonn", 1): {0: n, 3: 2}}, policy, key(6))
        after, _ = published({("Bonn", 1): {0: n + 1, 3: 2}}, policy, key(6))
        gained = Counter(after[("Bonn", 1)])
        gained.subtract(before[("Bonn", 1)])
        assert sorted(c for c in gained.values() if c) == [1]


@pytest.mark.parametrize("mode", MODES)
def test_another_key_gives_another_publication_and_the_same_key_the_same(mode):
    policy = Policy(retention=0.5, tolerance=0.5, doubt=0.3, sampling=mode)
    table = {("Bonn", n): {0: 50, 1: 30, 2: 20} for n in range(10)}
    outputs = [published(table, policy, key(number))[0] for number in range(5)]
    assert all(a != b for i, a in enumerate(outputs) for b in outputs[:i])
    assert published(table, policy, key(0))[0] == outputs[0]


@pytest.mark.parametrize("mode", MODES)
def test_groups_with_the_same_counts_are_published_independently(mode):
    policy = Policy(retention=0.5, tolerance=0.5, doubt=0.3, sampling=mode)
    table = {("Bonn", n): {0: 50, 1: 30, 2: 20} for n in range(10)}
    cells, _ = published(table, policy, key(1))
    assert len({tuple(sorted(c.items())) for c in cells.values()}) > 7


# --- One word perturbs ------------------------------------------------------------------------


def word_of(unit):
    """The smallest word whose unit-interval number is the fraction given."""
    scaled = Fraction(unit) * 2**53
    return math.ceil(scaled) << 11


def perturbed(words, own, p, m):
    return perturb_words(
        np.array(words, dtype=np.uint64), np.array(own), retention=p, domain_size=m
    ).tolist()


def test_words_become_numbers_from_zero_to_just_below_one():
    words = np.array([0, 2**11 - 1, 2**11, 2**63, 2**64 - 1], dtype=np.uint64)
    assert unit_interval(words).tolist() == [0.0, 0.0, 2.0**-53, 0.5, 1 - 2.0**-53]


@pytest.mark.parametrize("p", [0.25, 0.5, 0.3, 0.9])
def test_a_word_just_below_p_keeps_and_one_at_p_draws_the_first_value(p):
    at = word_of(Fraction(p))
    assert perturbed([0, at - 1, at, at + 2**11 - 1], [4, 4, 4, 4], p, 5) == [4, 4, 0, 0]


@pytest.mark.parametrize("p", [0.001, 0.3, 0.5, 0.999, 1 - 2**-40])
@pytest.mark.parametrize("m", [2, 7, 1000])
def test_the_largest_word_draws_the_last_value(p, m):
    assert perturbed([2**64 - 1], [0], p, m) == [m - 1]


def test_the_replacement_range_is_cut_into_equal_parts():
    # p = 1/2, m = 4: the parts are [1/2, 5/8), [5/8, 3/4), [3/4, 7/8), [7/8, 1).
    edges = [word_of(Fraction(k, 8)) for k in (4, 5, 6, 7)]
    assert perturbed(edges, [0] * 4, 0.5, 4) == [0, 1, 2, 3]
    assert perturbed([edge - 1 for edge in edges], [3] * 4, 0.5, 4) == [3, 0, 1, 2]


def test_perturbing_leaves_its_input_alone():
    own = np.array([1, 1, 1])
    perturb_words(np.array([2**64 - 1] * 3, dtype=np.uint64), own, retention=0.5, domain_size=4)
    assert own.tolist() == [1, 1, 1]


def test_a_smaller_sample_consists_of_trials_of_a_larger_one_up_to_rounding(adult):
    """The same key with a stricter ε: at most one trial a value is not in the larger sample."""
    drawn = []
    for epsilon in (0.5, 0.7):
        made = Kernel(adult.schema, Policy(retention=0.5, tolerance=epsilon, doubt=0.3), Key.test())
        drawn.append(np.concatenate([made.draw(batch).trials for batch in adult.batches()]))
    assert (drawn[1] - drawn[0]).max() <= 1
    assert drawn[1].sum() < drawn[0].sum()


def test_plain_perturbation_does_not_depend_on_epsilon_and_delta(tiny):
    found = []
    with rp.read(tiny, sensitive="s", public="all") as opened:
        for epsilon, delta in ((0.1, 0.14), (0.9, 0.46)):
            policy = Policy(retention=0.5, tolerance=epsilon, doubt=delta, sampling="none")
            made = Kernel(opened.schema, policy, Key.test())
            pieces = [piece for batch in opened.batches() for piece in made(batch)]
            found.append([piece.count.tolist() for piece in pieces])
    assert found[0] == found[1]


def test_exact_with_paper_draws_exactly_its_size():
    table = pa.table({"g": ["a"] * 100, "sick": ["x0"] * 80 + ["x1"] * 20})
    policy = Policy(retention=0.5, tolerance=0.5, doubt=0.1, bound="exact", sampling="paper")
    domain = [f"x{i}" for i in range(14)]
    drawn = set()
    with rp.read(table, sensitive="sick", public="all", domain=domain) as opened:
        for number in range(30):
            made = Kernel(opened.schema, policy, key(number))
            drawn |= {int(p.trials[0]) for batch in opened.batches() for p in made(batch)}
    assert drawn == {9}

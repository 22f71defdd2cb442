"""Keys, keyed hashes and keyed words."""

import hashlib
import itertools
import os
import pickle
import traceback

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import stats

import reconpriv as rp
from reconpriv.cells import randomness
from reconpriv.cells.randomness import (
    GROUP_OFFSET,
    SAMPLING_COIN,
    Key,
    Randomness,
    as_key,
    unit_interval,
)
from reconpriv.columns.schema import Column, Kind, Schema
from reconpriv.errors import KeyFileError
from reconpriv.protect.kernel import Kernel

FIXED = settings(deadline=None, derandomize=True, max_examples=80)


def secret(number):
    return hashlib.blake2b(number.to_bytes(8, "little"), digest_size=32).digest()


WORDS = Randomness(Key(secret(1)))


def hash_of(name, kind, value, words=WORDS):
    return int(words.hash_values(Column(name, kind), [value])[0])


# --- Hashes -----------------------------------------------------------------------------------

LABELLED = st.tuples(st.text(max_size=4), st.text(max_size=4))


@FIXED
@given(LABELLED, LABELLED)
@example(("ab", "c"), ("a", "bc"))
@example(("", "ab"), ("ab", ""))
@example(("a", "xstring:y"), ("astring:x", "y"))
@example(("", "string:y"), ("string:", "y"))
@example(("a\x00", "b"), ("a", "\x00b"))
def test_no_other_split_into_name_and_value_has_the_same_hash(one, other):
    same = hash_of(one[0], Kind.STRING, one[1]) == hash_of(other[0], Kind.STRING, other[1])
    assert same == (one == other)


def test_equal_text_of_different_kinds_has_different_hashes():
    values = [
        (Kind.STRING, "1"),
        (Kind.INTEGER, 1),
        (Kind.NUMBER, 1.0),
        (Kind.BOOLEAN, True),
        (Kind.STRING, "true"),
        (Kind.STRING, "1.0"),
        (Kind.STRING, "integer:1"),
    ]
    assert len({hash_of("x", kind, value) for kind, value in values}) == len(values)


def test_a_missing_value_is_not_the_text_null():
    texts = ["", "null", "None", "string:null"]
    hashes = {hash_of("x", Kind.STRING, value) for value in [None, *texts]}
    assert len(hashes) == 1 + len(texts)


def test_a_value_hashes_alike_wherever_it_stands_and_whatever_stands_beside_it():
    column = Column("city", Kind.STRING)
    together = WORDS.hash_values(column, ["a", "b", None, "a"]).tolist()
    assert together == [hash_of("city", Kind.STRING, value) for value in ("a", "b", None, "a")]


def test_a_public_and_the_sensitive_column_hash_a_value_differently():
    column = Column("illness", Kind.STRING)
    assert WORDS.hash_sensitive(column, ["flu"])[0] != WORDS.hash_values(column, ["flu"])[0]
    other = Column("another name", Kind.STRING)
    assert WORDS.hash_sensitive(column, ["flu"])[0] == WORDS.hash_sensitive(other, ["flu"])[0]


def test_a_public_column_without_a_name_is_not_mistaken_for_the_sensitive_one():
    nameless = WORDS.hash_values(Column("", Kind.STRING), ["flu"])
    assert nameless[0] != WORDS.hash_sensitive(Column("illness", Kind.STRING), ["flu"])[0]


def test_hashes_are_keyed():
    other = Randomness(Key(secret(2)))
    values = [str(i) for i in range(50)]
    column = Column("x", Kind.STRING)
    ours, theirs = WORDS.hash_values(column, values), other.hash_values(column, values)
    assert not np.intersect1d(ours, theirs).size


def test_hashes_use_all_64_bits():
    hashes = WORDS.hash_values(Column("x", Kind.INTEGER), list(range(4000)))
    check_bits(hashes)


# --- Words ------------------------------------------------------------------------------------


def check_bits(words):
    """Every bit is set in half of the words, within five standard deviations."""
    bits = (words[:, None] >> np.arange(64, dtype=np.uint64)) & np.uint64(1)
    z = (bits.mean(axis=0) - 0.5) * 2 * np.sqrt(words.size)
    assert np.abs(z).max() < 5


def test_the_check_of_bits_rejects_a_bit_that_is_set_too_often():
    words = WORDS.words(np.arange(20_000, dtype=np.uint64), np.uint64(0))[:, 0]
    stuck = np.where(np.arange(words.size) % 8 == 0, words | np.uint64(1 << 40), words)
    with pytest.raises(AssertionError):
        check_bits(stuck)


@pytest.mark.parametrize("which", [0, 1])
def test_words_of_consecutive_ids_and_of_consecutive_indices_are_uniform(which):
    many = np.arange(20_000, dtype=np.uint64)
    same = np.full(20_000, 12345, dtype=np.uint64)
    for words in (WORDS.words(many, np.uint64(0)), WORDS.words(same, many)):
        check_bits(words[:, which])
        bytes_seen = np.bincount(np.ascontiguousarray(words[:, which]).view(np.uint8))
        assert stats.chisquare(bytes_seen).pvalue > 1e-6


def test_the_two_words_of_a_trial_are_independent_of_each_other_and_of_the_next_trial():
    words = WORDS.words(np.full(20_000, 7, dtype=np.uint64), np.arange(20_000, dtype=np.uint64))
    check_bits(words[:, 0] ^ words[:, 1])
    check_bits(words[1:, 0] ^ words[:-1, 0])
    check_bits(words[1:, 0] ^ words[:-1, 1])


def test_the_unit_interval_is_covered_evenly():
    words = WORDS.words(np.arange(50_000, dtype=np.uint64), np.uint64(3))[:, 0]
    counts = np.bincount((unit_interval(words) * 100).astype(int), minlength=100)
    assert stats.chisquare(counts).pvalue > 1e-6


def test_words_depend_on_id_index_and_key_and_on_nothing_else():
    ids = np.array([5, 5, 6, 5], dtype=np.uint64)
    indices = np.array([0, 1, 0, 0], dtype=np.uint64)
    words = WORDS.words(ids, indices)
    assert words[0].tolist() == words[3].tolist()
    assert len({tuple(row) for row in words.tolist()}) == 3
    assert WORDS.words(ids[2:3], np.uint64(0))[0].tolist() == words[2].tolist()
    assert Randomness(Key(secret(2))).words(ids, indices).tolist() != words.tolist()


def test_words_of_nothing_are_nothing():
    assert WORDS.words(np.array([], dtype=np.uint64), np.uint64(0)).shape == (0, 2)


def test_reserved_indices_are_apart_from_each_other_and_beyond_any_trial():
    assert SAMPLING_COIN != GROUP_OFFSET
    assert min(int(SAMPLING_COIN), int(GROUP_OFFSET)) > 2**63


@FIXED
@given(st.lists(st.integers(0, 9), max_size=12), st.sampled_from([1, 2, 3, 5, 1000]))
@example([], 3)
@example([0, 0, 0], 3)
@example([0, 3, 0, 0, 3, 0], 3)
@example([9], 3)
def test_trials_go_through_every_cells_indices_from_zero(counts, chunk):
    ids = WORDS.words(np.arange(len(counts), dtype=np.uint64), np.uint64(9))[:, 0]
    before = randomness.CHUNK
    randomness.CHUNK = chunk
    try:
        parts = list(WORDS.trials(ids, np.array(counts, dtype=np.int64)))
    finally:
        randomness.CHUNK = before
    assert all(0 < cell.size <= chunk for cell, _ in parts)
    got = [
        (int(c), row) for cell, words in parts for c, row in zip(cell, words.tolist(), strict=True)
    ]
    expected = [
        (cell, WORDS.words(ids[cell : cell + 1], np.uint64(index))[0].tolist())
        for cell, n in enumerate(counts)
        for index in range(n)
    ]
    assert got == expected


# --- Keys -------------------------------------------------------------------------------------


def test_the_secret_is_neither_in_the_repr_nor_in_the_text_of_a_key():
    key = Key(secret(3))
    shown = repr(key) + str(key) + f"{key}" + repr(Randomness(key)) + repr([key])
    assert secret(3).hex() not in shown
    assert repr(secret(3)) not in shown


def test_a_key_survives_hexadecimal_bytes_and_pickling():
    key = Key(secret(3))
    assert Key.from_hex(secret(3).hex()) == key
    assert Key.from_hex(secret(3).hex().upper() + "\n") == key
    assert as_key(secret(3)) == as_key(secret(3).hex()) == as_key(key) == key
    assert pickle.loads(pickle.dumps(key)) == key


def test_no_key_means_a_fresh_one_that_says_it_is_forgotten():
    assert len({Key.generate().secret for _ in range(20)} | {as_key(None).secret}) == 21
    assert (as_key(None).ephemeral, Key.generate().ephemeral) == (True, False)
    assert not as_key(None).is_test


def test_the_test_key_is_always_the_same_and_says_so():
    assert Key.test() == Key.test()
    assert Key.test().is_test
    assert Key(Key.test().secret).is_test
    assert not Key(secret(3)).is_test


@pytest.mark.parametrize("wrong", [b"", secret(3).hex(), None])
def test_anything_but_32_bytes_is_refused(wrong):
    with pytest.raises(KeyFileError, match="exactly 32 bytes"):
        Key(wrong)


@pytest.mark.parametrize("weak", [bytes(32), b"ab" * 16, bytes(range(7)) * 4 + bytes(4)])
def test_a_key_that_repeats_a_few_bytes_is_refused(weak):
    with pytest.raises(KeyFileError, match="not random"):
        Key(weak)


def everything_said(error):
    return "".join(traceback.format_exception(error)) + repr(error) + repr(error.args)


def leaks(text, written):
    """Whether any 12 digits in a row of what was written stand in the text."""
    low = text.lower()
    return any(written[i : i + 12] in low for i in range(0, len(written) - 11))


HEX = secret(4).hex()
MISWRITTEN = {
    "one wrong digit": HEX[:-1] + "x",
    "no digit": "zz" + HEX[2:],
    "a digit short": HEX[:-1],
    "a digit long": HEX + "a",
}


@pytest.mark.parametrize("how", MISWRITTEN)
def test_an_error_about_hexadecimal_digits_never_contains_them(how):
    with pytest.raises(KeyFileError) as caught:
        Key.from_hex(MISWRITTEN[how])
    assert not leaks(everything_said(caught.value), HEX)


@pytest.mark.parametrize("how", MISWRITTEN)
def test_an_error_about_a_key_file_never_contains_its_content(how, tmp_path):
    file = tmp_path / "a.key"
    file.write_text(MISWRITTEN[how])
    file.chmod(0o600)
    with pytest.raises(KeyFileError) as caught:
        Key.from_file(file)
    assert not leaks(everything_said(caught.value), HEX)


@pytest.mark.parametrize("wrong", [secret(4)[:31], secret(4) + b"x", bytearray(secret(4))])
def test_an_error_about_bytes_never_contains_them(wrong):
    with pytest.raises(KeyFileError, match="exactly 32 bytes") as caught:
        Key(wrong)
    said = everything_said(caught.value)
    assert repr(bytes(wrong))[2:20] not in said and not leaks(said, bytes(wrong).hex())


@pytest.mark.parametrize("typed", [HEX[:-1], HEX + "a", "0x" + HEX, HEX + " x"])
def test_mistyped_digits_are_not_quoted_as_a_missing_file(typed):
    with pytest.raises(KeyFileError) as caught:
        as_key(typed)
    assert not leaks(str(caught.value), HEX)


@pytest.mark.skipif(os.name != "posix", reason="modes are a matter of POSIX")
def test_a_written_key_is_its_owners_alone_and_reads_back(tmp_path):
    before = os.umask(0)
    try:
        Key(secret(5)).write(tmp_path / "a.key")
    finally:
        os.umask(before)
    assert (tmp_path / "a.key").stat().st_mode & 0o777 == 0o600
    assert Key.from_file(tmp_path / "a.key") == Key(secret(5))
    assert as_key(str(tmp_path / "a.key")) == as_key(tmp_path / "a.key") == Key(secret(5))


def test_a_key_is_never_written_over_a_file(tmp_path):
    file = tmp_path / "a.key"
    file.write_text("precious")
    with pytest.raises(KeyFileError, match="never overwritten"):
        Key(secret(5)).write(file)
    assert file.read_text() == "precious"


def test_a_key_that_cannot_be_written_is_an_error_that_keeps_it_secret(tmp_path):
    with pytest.raises(KeyFileError, match="cannot be written") as caught:
        Key(secret(5)).write(tmp_path / "no" / "such" / "folder.key")
    assert not leaks(everything_said(caught.value), secret(5).hex())


@pytest.mark.skipif(os.name != "posix", reason="modes are a matter of POSIX")
@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o610, 0o601])
def test_a_key_file_that_others_may_use_is_refused(mode, tmp_path):
    file = tmp_path / "a.key"
    Key(secret(5)).write(file)
    file.chmod(mode)
    with pytest.raises(KeyFileError, match=f"{mode:04o}") as caught:
        Key.from_file(file)
    assert "chmod 600" in caught.value.hint
    assert not leaks(everything_said(caught.value), secret(5).hex())


@pytest.mark.parametrize(("digits", "word"), [(63, "short"), (65, "too long"), (0, "short")])
def test_a_key_file_of_the_wrong_length_is_refused(digits, word, tmp_path):
    file = tmp_path / "a.key"
    file.write_text("".join(itertools.islice(itertools.cycle(HEX), digits)))
    file.chmod(0o600)
    with pytest.raises(KeyFileError, match=word):
        Key.from_file(file)


def test_a_missing_key_file_is_refused_with_a_hint(tmp_path):
    with pytest.raises(KeyFileError, match="no key file") as caught:
        as_key(tmp_path / "gone.key")
    assert "Key.generate()" in caught.value.hint


def test_a_folder_is_not_a_key_file(tmp_path):
    with pytest.raises(KeyFileError, match="not a regular file"):
        Key.from_file(tmp_path)


@pytest.mark.parametrize("text", ["0123456789abcdef" * 4, "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVo="])
def test_a_key_given_for_a_file_is_not_echoed(text):
    with pytest.raises(KeyFileError) as caught:
        rp.Key.from_file(text)
    assert text not in str(caught.value)
    assert "not as its text" in str(caught.value)


KEY = rp.Key(hashlib.blake2b(b"binding", digest_size=32).digest())


SICK = Column("sick", Kind.STRING)


DOMAIN = tuple(f"x{i}" for i in range(10))


def words_under(retention=0.5, sensitive=SICK, domain=DOMAIN, **policy):
    kernel = Kernel(
        Schema((), sensitive, domain),
        rp.Policy(retention=retention, tolerance=0.5, doubt=0.3, **policy),
        KEY,
    )
    return kernel.randomness().words(np.zeros(4, np.uint64), np.arange(4, dtype=np.uint64)).tolist()


def test_another_p_domain_or_column_has_other_words():
    assert words_under() == words_under()
    assert words_under() != words_under(retention=0.3)
    assert words_under() != words_under(domain=DOMAIN[:-1])
    assert words_under() != words_under(sensitive=Column("job", Kind.STRING))


@pytest.mark.parametrize("change", [{"sampling": "public"}, {"bound": "hoeffding"}])
def test_another_sampling_or_bound_has_the_same_words(change):
    assert words_under() == words_under(**change)


def one_by_one(retention, records=4_000):
    """One record a group: the published value of each, in order."""
    values = [DOMAIN[i % 10] for i in range(records)]
    table = pa.table({"who": list(range(records)), "sick": values})
    with rp.read(table, sensitive="sick", public="all") as opened:
        kernel = Kernel(
            opened.schema,
            rp.Policy(retention=retention, tolerance=0.5, doubt=0.3, sampling="none"),
            KEY,
        )
        found = [piece.value for batch in opened.batches() for piece in kernel(batch)]
    return np.concatenate(found), np.array([i % 10 for i in range(records)])


def test_two_retentions_with_one_key_do_not_give_values_away():
    """Were the words shared, a pair that differs would hold the truth for certain in places."""
    first, truth = one_by_one(0.5)
    second, _ = one_by_one(0.3)
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

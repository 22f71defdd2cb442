"""The trials of a series, counted beside the ledger: as many as a plain count, and said if many."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import reconpriv as rp
from reconpriv.core.kernel import Kernel
from reconpriv.errors import LedgerError
from reconpriv.ledger import trials
from reconpriv.ledger.trials import Shown, TrialFile, excess_words

POLICY = rp.Policy(0.5, 0.5, 0.3)
KEY = rp.Key(bytes((37 * i + 5) % 256 for i in range(32)))
ROLES = {"sensitive": "ill", "public": ["town"]}


def table(seed, towns=6, records=3_000):
    rng = np.random.default_rng(seed)
    town = rng.integers(0, towns, records)
    ill = np.where(rng.random(records) < 0.55, "a", rng.choice(list("abcd"), records))
    return pa.table({"town": town, "ill": ill})


@pytest.fixture
def desk(tmp_path):
    KEY.write(tmp_path / "my.key")
    return tmp_path


def publish(desk, out, source, policy=POLICY, **more):
    with rp.read(source, **ROLES) as opened:
        return opened.publish(policy, desk / out, key=desk / "my.key", **more)


def by_hand(*sources, policy=POLICY):
    """Every trial of every release as a set; and the limits in the last release."""
    shown = {}
    for source in sources:
        limits = {}
        with rp.read(source, **ROLES) as opened:
            for batch in opened.batches():
                kernel = Kernel(opened.schema, policy, KEY)
                ids, cells, drawn = kernel.trials(batch)
                limits |= dict(zip(ids.tolist(), kernel.limits(batch), strict=True))
                for g, c, n in zip(batch.group_of_cell, cells.tolist(), drawn, strict=True):
                    shown.setdefault(int(ids[g]), set()).update((c, i) for i in range(n))
    return {g: len(found) for g, found in shown.items()}, limits


def stored(desk):
    (shown,) = TrialFile(KEY, desk / "my.key.ledger").read().values()
    return shown


def test_the_file_counts_what_a_plain_count_finds(desk):
    sources = [table(seed) for seed in (1, 2, 3)]
    made = [publish(desk, str(i), source) for i, source in enumerate(sources)]
    expected, limits = by_hand(*sources)
    shown = stored(desk)
    found = {int(g): int(shown.trials[shown.group == g].sum()) for g in np.unique(shown.group)}
    assert found == expected
    over = [expected[g] / limits[g] for g in expected if expected[g] > limits[g]]
    assert over, "this table must outgrow its limits, or the test shows nothing"
    assert made[0].warnings == ()
    (said,) = [note for note in made[2].warnings if "different trials" in note]
    assert said.startswith(f"{len(over)} of 6 groups")
    assert f"{np.mean(over):.2f} times as many on average, {max(over):.2f} times at most" in said
    assert (desk / "my.key.trials").stat().st_mode & 0o777 == 0o600
    assert not [file for file in desk.iterdir() if file.name.startswith(".")]


def test_the_same_table_again_shows_nothing_new(desk):
    publish(desk, "a", table(1))
    before = stored(desk)
    assert publish(desk, "b", table(1)).warnings == ()
    assert (stored(desk).trials == before.trials).all()


def test_a_release_without_sampling_counts_for_those_with(desk):
    publish(desk, "a", table(1), replace(POLICY, sample_size="none"))
    made = publish(desk, "b", table(1))
    assert any(note.startswith("6 of 6 groups") for note in made.warnings)


def test_protection_groups_are_counted(desk):
    policy = replace(POLICY, sample_size="public", protect={"town": 3})
    publish(desk, "a", table(1), policy)
    assert np.unique(stored(desk).group).size == 2
    assert any("of 2 groups" in note for note in publish(desk, "b", table(2), policy).warnings)


def test_series_are_counted_apart(desk):
    publish(desk, "a", table(1))
    made = publish(desk, "b", table(2), replace(POLICY, retention=0.4), second_sample=True)
    assert not any("different trials" in note for note in made.warnings)
    assert len(TrialFile(KEY, desk / "my.key.ledger").read()) == 2


def test_of_many_groups_some_are_kept(desk, monkeypatch):
    monkeypatch.setattr(trials, "MOST_CELLS", 400)
    sources = [table(seed, towns=400, records=16_000) for seed in (1, 2)]
    policy = replace(POLICY, epsilon=0.9, delta=0.9, unattainable="one-trial")
    publish(desk, "a", sources[0], policy)
    made = publish(desk, "b", sources[1], policy)
    shown = stored(desk)
    assert shown.cell.size <= 400 and shown.level == 2
    expected, limits = by_hand(*sources, policy=policy)
    share = sum(expected[g] > max(np.ceil(limits.get(g, np.inf)), 1) for g in expected) / 400
    (said,) = [note for note in made.warnings if "different trials" in note]
    estimate = int(said.split()[1]) / 400
    assert said.startswith("About ") and abs(estimate - share) < 4 * np.sqrt(0.25 / 100)


def test_what_spark_published_is_said_not_to_be_counted(desk):
    with rp.read(table(1), **ROLES) as opened:
        opened.engine.name = "an engine on other machines"
        opened.publish(POLICY, desk / "a", key=desk / "my.key")
        made = opened.publish(POLICY, desk / "b", key=desk / "my.key")
        assert any("2 of the 2 releases" in note for note in made.notes)
    made = publish(desk, "c", table(1))
    assert any("2 of the 3 releases" in note for note in made.notes)
    assert [one.counted for one in rp.Ledger(desk / "my.key").entries] == [False, False, True]


def test_a_file_that_was_changed_is_refused(desk):
    publish(desk, "a", table(1))
    file = desk / "my.key.trials"
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    with pytest.raises(LedgerError, match="not as it was written"):
        publish(desk, "b", table(1))
    assert not (desk / "b").exists()
    for short in (b"", b"x" * 5):
        file.write_bytes(short)
        with pytest.raises(LedgerError, match="not as it was written"):
            publish(desk, "b", table(1))
    file.unlink()
    assert "release 2" in publish(desk, "b", table(1)).notes[0]


def test_without_the_key_the_file_tells_nothing(desk):
    publish(desk, "a", table(1))
    sealed = (desk / "my.key.trials").read_bytes()
    assert stored(desk).cell.tobytes()[:64] not in sealed
    other = rp.Key(bytes((37 * i + 6) % 256 for i in range(32)))
    with pytest.raises(LedgerError):
        TrialFile(other, desk / "my.key.ledger").read()


def test_two_shown_together():
    words = np.array([1, 1, 2], np.uint64)
    one = Shown(words, np.array([10, 11, 12], np.uint64), np.array([5, 1, 3]))
    two = Shown(words[1:], np.array([11, 13], np.uint64), np.array([4, 2]))
    both = one.with_(two)
    assert both.cell.tolist() == [10, 11, 12, 13] and both.trials.tolist() == [5, 4, 3, 2]
    assert both.group.tolist() == [1, 1, 2, 2]


def test_nothing_is_said_where_nothing_is_over():
    assert excess_words(np.array([1.0, 0.5]), 2, 0) == ""
    assert excess_words(np.zeros(0), 0, 0) == ""

"""The trials of a series, counted beside the ledger: as many as a plain count, and said if many."""

import itertools
import json
import os
import pickle
import signal
from dataclasses import replace

import numpy as np
import pytest

import reconpriv as rp
from ledger_desk import KEY, POLICY
from ledger_desk import YEAR_ROLES as ROLES
from ledger_desk import year as table
from open_tables import opened
from reconpriv.cells.cube import collect
from reconpriv.errors import LedgerError, SecondSampleError
from reconpriv.ledger import trials
from reconpriv.ledger.account import Account
from reconpriv.ledger.file import LedgerFile
from reconpriv.ledger.trials import Shown, TrialFile, excess_words
from reconpriv.protect.group_by import GroupBy
from reconpriv.protect.kernel import Kernel


def publish(desk, out, source, policy=POLICY, **more):
    return opened(source, **ROLES).publish(policy, desk / out, key=desk / "my.key", **more)


def by_hand(*sources, policy=POLICY):
    """Every trial of every release as a set; and the limits in the last release."""
    shown = {}
    for source in sources:
        limits = {}
        with rp.read(source, **ROLES) as opened:
            for batch in opened.batches():
                kernel = Kernel(opened.schema, policy, KEY)
                draw = kernel.draw(batch)
                ids, cells, drawn = draw.groups, draw.cells, draw.trials
                limits |= dict(zip(ids.tolist(), kernel.limits(batch), strict=True))
                for g, c, n in zip(batch.group_of_cell, cells.tolist(), drawn, strict=True):
                    shown.setdefault(int(ids[g]), set()).update((c, i) for i in range(n))
    return {g: len(found) for g, found in shown.items()}, limits


def trials_by_series(file, bodies):
    parts = file.parts(bodies)
    return {series: parts.of(series) for series in parts.series}


def every_series(desk, key=KEY):
    lines = rp.Ledger(desk / "my.key").file.whole()
    return trials_by_series(TrialFile(key, desk / "my.key"), lines.bodies)


def stored(desk):
    (shown,) = every_series(desk).values()
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
    publish(desk, "a", table(1), replace(POLICY, sampling="none"))
    made = publish(desk, "b", table(1))
    assert any(note.startswith("6 of 6 groups") for note in made.warnings)


def test_protection_groups_are_counted(desk):
    policy = replace(POLICY, sampling="public", protect={"town": 3})
    publish(desk, "a", table(1), policy)
    assert np.unique(stored(desk).group).size == 2
    assert any("of 2 groups" in note for note in publish(desk, "b", table(2), policy).warnings)


def test_series_are_counted_apart(desk):
    publish(desk, "a", table(1))
    made = publish(desk, "b", table(2), replace(POLICY, retention=0.4), second_sample=True)
    assert not any("different trials" in note for note in made.warnings)
    assert len(every_series(desk)) == 2


def test_of_many_groups_some_are_kept(desk, monkeypatch):
    monkeypatch.setattr(trials, "MOST_CELLS", 400)
    sources = [table(seed, towns=400, records=16_000) for seed in (1, 2)]
    policy = replace(POLICY, tolerance=0.9, doubt=0.9, unattainable="one-trial")
    publish(desk, "a", sources[0], policy)
    made = publish(desk, "b", sources[1], policy)
    shown = stored(desk)
    assert shown.cell.size <= 400 and shown.level == 2
    expected, limits = by_hand(*sources, policy=policy)
    share = sum(expected[g] > max(np.ceil(limits.get(g, np.inf)), 1) for g in expected) / 400
    (said,) = [note for note in made.warnings if "different trials" in note]
    estimate = int(said.split()[1]) / 400
    assert said.startswith("About ") and abs(estimate - share) < 4 * np.sqrt(0.25 / 100)


def on_other_machines(desk, out, source, policy=POLICY, parts=5):
    """Publish as an engine does that has the groups on several machines."""
    with rp.read(source, **ROLES) as opened:
        engine, schema = opened.engine, opened.schema
        plain, batches = engine.write, engine.batches

        def parted(*_, **__):
            whole = collect(batches(GroupBy(schema)), schema).as_batch()
            borders = np.linspace(0, whole.groups, parts + 1).astype(int)
            return (whole.slice(low, high) for low, high in itertools.pairwise(borders))

        def write(grouping, publish, folder, *settings):
            sent = pickle.dumps(publish)

            def elsewhere(batch):
                own = pickle.loads(sent)
                yield from own(batch)
                publish.join(own.told())

            return plain(grouping, elsewhere, folder, *settings)

        engine.batches, engine.write = parted, write
        return opened.publish(policy, desk / out, key=desk / "my.key")


def test_the_trials_of_other_machines_are_counted(desk, tmp_path_factory):
    here = tmp_path_factory.mktemp("here")
    KEY.write(here / "my.key")
    sources = [table(seed) for seed in (1, 2)]
    for i, source in enumerate(sources):
        publish(here, str(i), source)
        made = on_other_machines(desk, str(i), source)
    mine, its = stored(here), stored(desk)
    for name in ("group", "cell", "trials", "level"):
        assert np.array_equal(getattr(mine, name), getattr(its, name))
    assert [one.counted for one in rp.Ledger(desk / "my.key").entries] == [True, True]
    last = publish(here, "again", sources[1])
    (said,) = [note for note in made.warnings if "different trials" in note]
    assert said in last.warnings
    # A later publication on this machine goes on from there.
    assert said in publish(desk, "here", sources[1]).warnings


def test_each_of_the_other_machines_sends_little(desk, monkeypatch):
    monkeypatch.setattr(trials, "MOST_CELLS_OF_A_PART", 100)
    policy = replace(POLICY, tolerance=0.9, doubt=0.9, unattainable="one-trial")
    source = table(1, towns=400, records=16_000)
    on_other_machines(desk, "a", source, policy)
    few = stored(desk)
    assert 100 < few.cell.size <= 500 and few.level == 2
    (desk / "b.key").write_text((desk / "my.key").read_text())
    with rp.read(source, **ROLES) as opened:
        (desk / "b.key").chmod(0o600)
        opened.publish(policy, desk / "b", key=desk / "b.key")
    lines = rp.Ledger(desk / "b.key").file.whole()
    (every,) = trials_by_series(TrialFile(KEY, desk / "b.key"), lines.bodies).values()
    kept = trials.begins_with_zeros(every.group, 2)
    assert np.array_equal(every.cell[kept], few.cell)
    assert np.array_equal(every.trials[kept], few.trials)


def uncounted(desk, monkeypatch, out, source):
    """A publication as one on Spark was recorded before its trials were counted."""
    body = Account._body
    with monkeypatch.context() as patch:
        patch.setattr(Account, "_body", lambda *a, **k: body(*a, **k) | {"counted": False})
        patch.setattr(Account, "_count", lambda *_: {})
        publish(desk, out, source)


def test_trials_that_were_not_counted_are_said_not_to_be(desk, cli, monkeypatch):
    uncounted(desk, monkeypatch, "a", table(1))
    made = publish(desk, "b", table(1))
    assert any("1 of the 2 releases of the series were not counted" in note for note in made.notes)
    assert [one.counted for one in rp.Ledger(desk / "my.key").entries] == [False, True]
    assert cli("ledger", "show", desk / "my.key").out.count("uncounted") == 1


def edit(file):
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)


UNSOUND = {
    "edited": (edit, "is not as it was written"),
    "empty": (lambda file: file.write_bytes(b""), "is not as it was written"),
    "short": (lambda file: file.write_bytes(b"x" * 5), "is not as it was written"),
    "missing": (lambda file: file.unlink(), "is missing"),
    "older": (lambda file: file.write_bytes(file.with_name("old").read_bytes()), "older copy"),
    "ledger cut": (
        lambda file: file.with_suffix(".ledger").write_bytes(file.with_name("cut").read_bytes()),
        "the ledger lost its last lines",
    ),
    "ledger gone": (lambda file: file.with_suffix(".ledger").unlink(), "does not go with"),
}


@pytest.fixture(scope="module")
def twice(tmp_path_factory):
    """The files beside a key after two publications, and as they were after the first."""
    desk = tmp_path_factory.mktemp("twice")
    KEY.write(desk / "my.key")
    publish(desk, "a", table(1, records=300))
    older = {"old": desk / "my.key.trials", "cut": desk / "my.key.ledger"}
    found = {name: file.read_bytes() for name, file in older.items()}
    publish(desk, "b", table(1, records=300))
    return found | {file.name: file.read_bytes() for file in desk.glob("my.key.*")}


@pytest.mark.parametrize("name", UNSOUND)
def test_a_count_that_does_not_go_with_the_ledger_is_refused(desk, cli, twice, name):
    change, words = UNSOUND[name]
    file, source = desk / "my.key.trials", table(1, records=300)
    for other, content in twice.items():
        (desk / other).write_bytes(content)
        (desk / other).chmod(0o600)
    assert rp.Ledger(desk / "my.key").check().sound
    change(file)
    for left in (file, desk / "my.key.ledger"):
        if left.exists():
            left.chmod(0o600)
    with pytest.raises(LedgerError, match=words):
        publish(desk, "c", source)
    assert not (desk / "c").exists()
    done = cli("ledger", "verify", desk / "my.key")
    assert done.code == 1 and words in " ".join(done.out.split()) and "ledger repair" in done.out
    assert not json.loads(cli("ledger", "verify", desk / "my.key", "--json").out)["sound"]
    done = cli("ledger", "repair", desk / "my.key")
    opens = name in ("older", "ledger cut", "ledger gone")
    assert done.code == 0 and ("goes on" if opens else "starts again") in done.out
    assert ("no line" in done.out) == (name == "ledger gone")
    assert "may be missing" in " ".join(cli("ledger", "show", desk / "my.key").out.split())
    lines = len(rp.Ledger(desk / "my.key").entries)
    made = publish(desk, "c", source)
    assert any("has lost lines" in note for note in made.notes) == (name == "ledger gone")
    if lines:
        assert f"{lines} of the {lines + 1} releases" in " ".join(made.notes)
    assert rp.Ledger(desk / "my.key").check().sound
    again = publish(desk, "d", source)
    assert not lines or f"{lines} of the {lines + 2} releases" in " ".join(again.notes)


def test_a_series_that_only_the_count_knows_is_not_forgotten(desk, cli):
    """After a repair without the ledger, another p must not pass for the first sample."""
    source = table(1, records=300)
    publish(desk, "a", source)
    before = int(stored(desk).trials.sum())
    (desk / "my.key.ledger").unlink()
    assert cli("ledger", "repair", desk / "my.key").code == 0
    assert int(stored(desk).trials.sum()) == before
    other = rp.Policy(retention=0.3, tolerance=0.5, doubt=0.3)
    for _ in range(2):
        with pytest.raises(SecondSampleError, match="may be a second, independent sample"):
            publish(desk, "b", source, policy=other)
    made = publish(desk, "b", source, policy=other, second_sample=True)
    assert any("may be a second, independent sample" in said for said in made.warnings)
    shown = json.loads(cli("ledger", "show", desk / "my.key", "--json").out)
    assert shown["publications"][0]["second_sample"] and "no line" in shown["doubts"][0]
    assert not any("second" in said for said in publish(desk, "c", source).warnings)


def test_a_count_that_others_can_read_is_refused(desk, cli):
    source = table(1, records=300)
    publish(desk, "a", source)
    (desk / "my.key.trials").chmod(0o640)
    with pytest.raises(LedgerError, match=r"my\.key\.trials is open to others \(mode 0640\)"):
        publish(desk, "b", source)
    for action in ("verify", "repair"):  # a repair must not throw it away
        assert cli("ledger", action, desk / "my.key").code == 2
    (desk / "my.key.trials").chmod(0o600)
    assert "release 2" in publish(desk, "b", source).notes[0]


class KilledError(BaseException):
    """The process ends here."""


@pytest.mark.parametrize("when", ["before the line", "after the line"])
def test_a_process_killed_between_both_files_leaves_them_sound(desk, monkeypatch, when):
    def killed(*_):
        raise KilledError

    sources = [table(seed, records=300) for seed in (1, 2, 3)]
    publish(desk, "a", sources[0])
    with monkeypatch.context() as patch:
        if when == "before the line":
            patch.setattr(LedgerFile, "_write", killed)
            patch.setattr(TrialFile, "abandon", lambda _: None)  # a dead process tidies nothing
        else:
            patch.setattr(TrialFile, "commit", killed)
        with pytest.raises(KilledError):
            publish(desk, "b", sources[1])
    assert (desk / ".my.key.trials.new").exists() and rp.Ledger(desk / "my.key").check().sound
    expected, _ = by_hand(*(sources if when == "after the line" else sources[::2]))
    publish(desk, "c", sources[2])
    assert int(stored(desk).trials.sum()) == sum(expected.values())
    assert not (desk / ".my.key.trials.new").exists()


def test_a_refusal_leaves_the_count_of_a_killed_process(desk, monkeypatch):
    """It goes with the last line, and the next publication puts it in its place."""

    def refused(*_):
        raise LedgerError("Another publisher was faster.")

    def killed(*_):
        raise KilledError

    with monkeypatch.context() as patch:
        patch.setattr(TrialFile, "commit", killed)
        with pytest.raises(KilledError):
            publish(desk, "a", table(1, records=300))
    ledger = rp.Ledger(desk / "my.key")
    with pytest.raises(LedgerError, match="faster"):
        ledger.file.append(refused, ledger.trial_file)
    assert (desk / ".my.key.trials.new").exists() and ledger.check().sound


def test_a_full_disk_leaves_no_passing_count(desk, monkeypatch):
    publish(desk, "a", table(1, records=300))
    before, write = (desk / "my.key.trials").read_bytes(), os.write
    monkeypatch.setattr(os, "write", lambda handle, data: write(handle, data[:30]))
    with pytest.raises(LedgerError, match="cannot be written"):
        publish(desk, "b", table(2, records=300))
    assert (desk / "my.key.trials").read_bytes() == before
    assert not [file for file in desk.iterdir() if file.name.startswith(".")]


def test_a_ledger_from_before_digests_takes_any_count_of_its_key(desk, monkeypatch):
    count = Account._count
    with monkeypatch.context() as patch:
        patch.setattr(Account, "_count", lambda *a: (count(*a), {})[1])
        publish(desk, "a", table(1, records=300))
    assert rp.Ledger(desk / "my.key").check().sound
    made = publish(desk, "b", table(1, records=300))
    assert made.warnings == () and not any("not counted" in note for note in made.notes)


def test_without_the_key_the_file_tells_nothing(desk):
    publish(desk, "a", table(1))
    sealed = (desk / "my.key.trials").read_bytes()
    assert stored(desk).cell.tobytes()[:64] not in sealed
    other = rp.Key(bytes((37 * i + 6) % 256 for i in range(32)))
    with pytest.raises(LedgerError):
        every_series(desk, other)


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


def test_an_interrupt_between_both_files_leaves_no_half(desk, monkeypatch):
    """The signal comes as the next file is ready, and acts when the line is written, too."""
    real = TrialFile.prepare

    def prepare(self, parts):
        digest = real(self, parts)
        signal.raise_signal(signal.SIGINT)
        return digest

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with monkeypatch.context() as patched:
            patched.setattr(TrialFile, "prepare", prepare)
            with pytest.raises(KeyboardInterrupt):
                publish(desk, "a", table(1))
    finally:
        signal.signal(signal.SIGINT, before)
    assert not (desk / "a").exists()
    assert not list(desk.glob(".my.key*"))
    assert rp.Ledger(desk / "my.key").check().sound

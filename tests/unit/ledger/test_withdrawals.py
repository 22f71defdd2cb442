"""A release that was never handed out can be withdrawn, and then counts for nothing."""

import json
from dataclasses import replace

import numpy as np
import pytest

import reconpriv as rp
from ledger_desk import FIRST, KEY, POLICY, REVERSE, YEAR_ROLES, older, year
from ledger_desk import publish as publish_roles
from open_tables import opened
from reconpriv.errors import InputError, LedgerError, SecondSampleError
from reconpriv.ledger import trials as counting
from reconpriv.ledger.trials import CountedTrials, Shown

OTHER = replace(POLICY, retention=0.4)
WHY = "a draft; the folder was deleted"


def publish(desk, out, seed=1, policy=POLICY, **more):
    source = opened(year(seed), **YEAR_ROLES)
    return source.publish(policy, desk / out, key=desk / "my.key", **more)


def ledger(desk):
    return rp.Ledger(desk / "my.key")


def trials(desk):
    """How many trials are counted, by series."""
    parts = ledger(desk).trial_file.parts(ledger(desk).file.whole().bodies)
    return [int(parts.of(series).trials.sum()) for series in parts.series]


def test_it_no_longer_counts_for_a_second_sample(desk):
    publish(desk, "a")
    with pytest.raises(SecondSampleError):
        publish(desk, "b", policy=OTHER)
    (said,) = ledger(desk).withdraw(1, why=WHY)
    assert said.startswith("The publication of 20") and "no longer counts" in said
    made = publish(desk, "b", policy=OTHER)
    assert made.notes == () and made.warnings == ()
    first, second = ledger(desk).entries
    assert first.withdrawn.why == WHY and (first.series, first.release) == (None, None)
    assert (second.series, second.release, second.second_sample) == (1, 1, False)
    with pytest.raises(SecondSampleError):  # the one that counts now is the other
        publish(desk, "c")


def test_it_no_longer_counts_for_its_series(desk):
    for out in "abc":
        publish(desk, out)
    ledger(desk).withdraw(2, why=WHY)
    assert [one.release for one in ledger(desk).entries] == [1, None, 2]
    assert "release 3 of a series" in publish(desk, "d").notes[0]
    ledger(desk).withdraw(1, why=WHY)
    began = ledger(desk).entries[2].date[:10]
    assert f"release 3 of a series that began on {began}" in publish(desk, "e").notes[0]


def test_it_no_longer_counts_for_roles(desk):
    publish_roles(desk, "a", FIRST)
    ledger(desk).withdraw(1, why=WHY)
    assert publish_roles(desk, "b", REVERSE).warnings == ()


def test_its_margins_no_longer_add_up(desk):
    policy = replace(POLICY, margins=rp.Margins(rho=0.125, tables=["sex"]))
    roles = ("result", ["sex", "age", "payor"])
    for out in "ab":
        publish_roles(desk, out, roles, policy=policy)
    ledger(desk).withdraw(1, why=WHY)
    made = publish_roles(desk, "c", roles, policy=policy)
    assert any("as much as 0.25" in one for one in made.warnings)


def test_its_trials_are_taken_out_of_the_count(desk, tmp_path_factory):
    for number, seed in enumerate((1, 2, 3)):
        publish(desk, str(number), seed)
    count = (desk / "my.key.trials").read_bytes()
    every = trials(desk)
    assert len(ledger(desk).withdraw(2, why=WHY)) == 1
    # The file is the same, and goes with the ledger; the lines say what of it counts.
    assert (desk / "my.key.trials").read_bytes() == count and ledger(desk).check().sound
    other = tmp_path_factory.mktemp("without")
    KEY.write(other / "my.key")
    for number, seed in enumerate((1, 3)):
        publish(other, str(number), seed)
    assert trials(desk) == trials(other) < every
    made, its = publish(desk, "last", 4), publish(other, "last", 4)
    assert made.warnings == its.warnings and "different trials" in made.warnings[0]
    assert trials(desk) == trials(other)


def test_the_count_of_a_withdrawn_series_starts_again(desk):
    publish(desk, "a", 2)
    ledger(desk).withdraw(1, why=WHY)
    assert trials(desk) == []
    made = publish(desk, "b", 1)
    assert made.warnings == () and made.notes == ()
    alone = trials(desk)
    publish(desk, "c", 2)
    assert trials(desk) > alone


def test_trials_of_long_ago_stay_counted_and_that_is_said(desk, monkeypatch):
    monkeypatch.setattr(counting, "KEPT_APART", 2)
    for number, seed in enumerate((1, 2, 3)):
        publish(desk, str(number), seed)
    every = trials(desk)
    _, more = ledger(desk).withdraw(1, why=WHY)
    assert "stay in the count" in more and trials(desk) == every
    assert len(ledger(desk).withdraw(3, why=WHY)) == 1 and trials(desk) < every
    ledger(desk).withdraw(2, why=WHY)
    assert trials(desk) == [], "nothing of the series counts"


def test_an_older_count_stays_as_long_as_its_series_does(desk):
    older(desk)
    every = trials(desk)
    assert "stay in the count" in ledger(desk).withdraw(1, why=WHY)[1] and trials(desk) == every
    assert len(ledger(desk).withdraw(2, why=WHY)) == 1 and trials(desk) == []


def test_the_latest_releases_are_kept_apart():
    def shown(trials):
        return Shown(np.array([1], np.uint64), np.array([9], np.uint64), np.array([trials]))

    parts = CountedTrials().with_("other", shown(99))
    for number in (5, 1, 2, 3, 4, 2):
        parts = parts.with_("s", shown(number))
    kept = [int(one.trials[0]) for (name, _), one in parts.shown.items() if name == "s"]
    assert sorted(kept) == [2, 2, 3, 4, 5] and parts.series == ("other", "s")
    assert int(parts.shown["s", ""].trials[0]) == 5 == int(parts.of("s").trials[0])


def test_a_lost_line_is_not_mixed_up_with_a_later_one(desk):
    """Line numbers come again after lines were lost; what the count knows of them must stay."""
    publish(desk, "a", 1)
    first = (desk / "my.key.ledger").read_bytes()
    publish(desk, "b", 2)
    publish(desk, "c", 3)
    (desk / "my.key.ledger").write_bytes(first)
    ledger(desk).repair()
    every = trials(desk)
    publish(desk, "d", 1)
    assert [one.line for one in ledger(desk).entries] == [1, 3] and trials(desk) == every
    ledger(desk).withdraw(3, why=WHY)
    assert trials(desk) == every


def test_a_release_that_failed_can_be_withdrawn(desk):
    def fail(_):
        raise ValueError("the database is gone")

    with pytest.raises(ValueError, match="database"):
        publish(desk, "a", also=fail)
    with pytest.raises(SecondSampleError):
        publish(desk, "b", policy=OTHER)
    ledger(desk).withdraw(1, why=WHY)
    publish(desk, "b", policy=OTHER)


@pytest.mark.parametrize("line", [0, 2, 4, -1, 99])
def test_a_line_without_a_publication_is_refused(desk, line):
    publish(desk, "a")
    ledger(desk).withdraw(1, why=WHY)
    publish(desk, "b")
    before = (desk / "my.key.ledger").read_bytes()
    with pytest.raises(LedgerError, match="no publication in line") as refused:
        ledger(desk).withdraw(line, why=WHY)
    assert "There is one in 3." in str(refused.value)
    assert (desk / "my.key.ledger").read_bytes() == before


@pytest.mark.parametrize(
    ("line", "why"), [(True, WHY), ("1", WHY), (None, WHY), (1.0, WHY), (1, None), (1, 3)]
)
def test_a_line_and_a_reason_of_another_type_are_refused(desk, line, why):
    publish(desk, "a")
    before = (desk / "my.key.ledger").read_bytes()
    with pytest.raises(InputError, match=r"(line|why) must be (a whole number|text)"):
        ledger(desk).withdraw(line, why=why)
    assert (desk / "my.key.ledger").read_bytes() == before


def test_it_is_withdrawn_only_once(desk):
    publish(desk, "a")
    ledger(desk).withdraw(1, why=WHY)
    with pytest.raises(LedgerError, match="was withdrawn on 20"):
        ledger(desk).withdraw(1, why=WHY)
    assert len(ledger(desk).file.whole().bodies) == 2


@pytest.mark.parametrize("why", ["", "  ", "a\nb", "\x1b[2J", "x" * 201])
def test_a_reason_is_needed(desk, why):
    publish(desk, "a")
    with pytest.raises(LedgerError, match="needs its reason"):
        ledger(desk).withdraw(1, why=why)
    assert ledger(desk).entries[0].withdrawn is None


def test_a_withdrawal_is_authenticated(desk):
    publish(desk, "a")
    ledger(desk).withdraw(1, why=WHY)
    file = desk / "my.key.ledger"
    content = file.read_bytes()
    file.write_bytes(content.replace(b"a draft;", b"a graft;"))
    assert not ledger(desk).check().sound
    with pytest.raises(LedgerError, match="Line 2"):
        publish(desk, "b", policy=OTHER)
    # A withdrawal that was cut off makes the release count again: that errs towards refusing.
    file.write_bytes(content.splitlines(keepends=True)[0])
    assert ledger(desk).check().sound
    with pytest.raises(SecondSampleError):
        publish(desk, "b", policy=OTHER)


def test_a_torn_withdrawal_is_repaired(desk):
    publish(desk, "a")
    ledger(desk).withdraw(1, why=WHY)
    file = desk / "my.key.ledger"
    file.write_bytes(file.read_bytes()[:-20])
    assert ledger(desk).check().repairable and ledger(desk).repair()
    assert ledger(desk).entries[0].withdrawn is None and ledger(desk).check().sound


def test_the_count_must_be_sound(desk):
    publish(desk, "a")
    (desk / "my.key.trials").unlink()
    with pytest.raises(LedgerError, match="is missing"):
        ledger(desk).withdraw(1, why=WHY)
    ledger(desk).repair()
    assert len(ledger(desk).withdraw(1, why=WHY)) == 1


def test_the_command_line(desk, cli):
    key = desk / "my.key"
    publish(desk, "a")
    for given in ((), ("1",), ("--why", "x")):
        done = cli("ledger", "withdraw", key, *given)
        assert done.code == 2 and "--why REASON" in done.err
    assert cli("ledger", "show", key, "1").code == cli("ledger", "verify", key, "--why", "x").code
    done = cli("ledger", "show", key, "1")
    assert done.code == 2 and "Only withdraw takes a line" in done.err
    assert cli("ledger", "withdraw", key, "9", "--why", "x").code == 2
    assert cli("ledger", "withdraw", key, "1", "--why", " ").code == 2
    assert len(ledger(desk).file.whole().bodies) == 1
    done = cli("ledger", "withdraw", key, "1", "--why", WHY)
    assert done.code == 0 and "in line 1 no longer counts" in done.out
    assert cli("ledger", "withdraw", key, "1", "--why", WHY).code == 2
    shown = cli("ledger", "show", key).out
    assert "withdrawn" in shown and f": {WHY}" in shown
    plain = json.loads(cli("ledger", "show", key, "--json").out)["publications"][0]
    assert plain["withdrawn"]["why"] == WHY and plain["series"] is None
    assert cli("ledger", "verify", key).code == 0
    assert "nothing to repair" in cli("ledger", "repair", key).out
    publish(desk, "b", policy=OTHER)
    done = json.loads(cli("ledger", "withdraw", key, "3", "--why", "x", "--json").out)
    assert done["withdrawn"] == 3 and "no longer counts" in done["done"][0]

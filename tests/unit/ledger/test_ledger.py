"""The ledger beside a key: what it refuses, what it says, and that nobody edits it unnoticed."""

import json
import multiprocessing
import os
from dataclasses import replace

import pyarrow as pa
import pyarrow.csv
import pytest

import reconpriv as rp
from ledger_desk import POLICY
from open_tables import opened
from reconpriv.errors import LedgerError, ReconprivError
from reconpriv.ledger.account import Account
from reconpriv.ledger.file import LedgerFile

TABLE = pa.table(
    {
        "sex": ["f", "m"] * 60,
        "age": [30, 31, 40, 41] * 30,
        "town": ["here", "here", "there"] * 40,
        "ill": ["gout", "flu", "flu", "none", "flu"] * 24,
    }
)
PUBLIC = ("sex", "age")
OF_PUBLISH = ("second_sample", "also")


@pytest.fixture(scope="module")
def three(tmp_path_factory):
    """The files beside a key after one, two and three publications."""
    desk, found = tmp_path_factory.mktemp("three"), []
    numbered_key(1).write(desk / "my.key")
    for out in "abc":
        publish(desk, out)
        found.append({file.name: file.read_bytes() for file in desk.glob("my.key.*")})
    return found


def after(desk, publications):
    """Put files beside a key as publications left them."""
    for name, content in publications.items():
        (desk / name).write_bytes(content)
        (desk / name).chmod(0o600)


def numbered_key(number):
    return rp.Key(bytes((37 * i + number) % 256 for i in range(32)))


def publish(desk, out, *, policy=POLICY, table=TABLE, key="my.key", public=PUBLIC, **more):
    options = {name: more.pop(name) for name in OF_PUBLISH if name in more}
    source = opened(table, sensitive=more.pop("sensitive", "ill"), public=public, **more)
    return source.publish(policy, desk / out, key=desk / key, **options)


def ledger(desk, key="my.key"):
    return rp.Ledger(desk / key)


def lines(desk):
    return (desk / "my.key.ledger").read_bytes().splitlines(keepends=True)


def test_the_same_settings_are_a_series(desk):
    assert publish(desk, "a").notes == ()
    again = publish(desk, "b", table=TABLE.slice(0, 100))
    assert "release 2 of a series" in again.notes[0] and again.as_dict()["notes"]
    turned = publish(desk, "c", public=PUBLIC[::-1])
    assert "release 3 of a series" in turned.notes[0]
    assert [(e.series, e.release, e.records) for e in ledger(desk).entries] == [
        (1, 1, 120), (1, 2, 100), (1, 3, 120),
    ]  # fmt: skip
    assert (desk / "my.key.ledger").stat().st_mode & 0o777 == 0o600


SECOND = {
    "p": ({"policy": replace(POLICY, retention=0.4)}, "another p "),
    "domain": ({"domain": ["flu", "gout", "mumps", "none"]}, "domain"),
    "fewer columns": ({"public": ["sex"]}, "set of public columns"),
    "other columns": ({"public": ["town"]}, "set of public columns"),
    "bins": ({"bin": {"age": 10}}, "binning"),
    "renamed": (
        {
            "table": TABLE.rename_columns(["sex", "age", "town", "disease"]),
            "sensitive": "disease",
            "public": "all",
        },
        "sensitive column",
    ),
    "protection": (
        {
            "policy": rp.Policy(
                retention=0.5, tolerance=0.5, doubt=0.3, sampling="public", protect={"age": 10}
            )
        },
        "protection",
    ),
}


@pytest.mark.parametrize("name", SECOND)
def test_a_second_sample_is_refused_unless_it_is_asked_for(desk, three, name):
    changed, word = SECOND[name]
    after(desk, three[0])
    with pytest.raises(LedgerError, match=word) as refused:
        publish(desk, "b", **changed)
    assert "second_sample=True" in refused.value.hint and "key=Key.test()" in refused.value.hint
    assert f'Ledger("{desk / "my.key"}").withdraw(1, why=…)' in refused.value.hint
    assert not (desk / "b").exists() and len(ledger(desk).entries) == 1
    made = publish(desk, "b", **changed, second_sample=True)
    assert any("second, independent sample" in note for note in made.warnings)
    assert [e.second_sample for e in ledger(desk).entries] == [False, True]
    # Both are known now: a further release of either is none the less of its own series.
    assert "release 2 of a series" in publish(desk, "c", **changed).notes[0]
    assert "release 2 of a series" in publish(desk, "d").notes[0]


def test_another_table_is_no_second_sample(desk):
    publish(desk, "a")
    other = pa.table({"firm": ["x", "y"] * 40, "pay": ["low", "high", "high", "low", "low"] * 16})
    assert publish(desk, "b", table=other, sensitive="pay", public=["firm"]).notes == ()


def test_another_promise_is_told(desk):
    publish(desk, "a")
    made = publish(desk, "b", policy=replace(POLICY, tolerance=0.4))
    assert any("weakest" in note for note in made.warnings) and made.notes


def test_the_margins_of_a_series_add_up(desk):
    policy = replace(POLICY, margins=rp.Margins(rho=0.125, tables=["sex"]))
    public = ("sex", "age", "town")
    publish(desk, "a", policy=policy, public=public)
    made = publish(desk, "b", policy=policy, public=public)
    assert any("0.25" in note for note in made.warnings)
    assert [e.rho for e in ledger(desk).entries] == [0.125, 0.125]


def test_a_ledger_holds_no_names_and_no_values(desk):
    publish(desk, "a", policy=replace(POLICY, harmless=("none",)))
    text = (desk / "my.key.ledger").read_text()
    secret = (desk / "my.key").read_text().strip()
    for word in ("ill", "gout", "sex", "age", "town", "none", secret, str(desk)):
        assert f'"{word}"' not in text and secret not in text


@pytest.mark.parametrize("key", [None, rp.Key.test(), bytes(range(32))])
def test_a_key_without_a_file_has_no_ledger(desk, key):
    with rp.read(TABLE, sensitive="ill", public=PUBLIC) as table:
        for p in (0.5, 0.4):
            table.publish(replace(POLICY, retention=p), desk / str(p), key=key)
    assert [file.name for file in desk.glob("*.ledger")] == []
    with pytest.raises(LedgerError, match="kept in a file"):
        rp.Ledger(rp.Key.test())


def test_a_test_key_in_a_file_has_no_ledger(desk):
    rp.Key.test().write(desk / "test.key")
    publish(desk, "a", key="test.key")
    assert not (desk / "test.key.ledger").exists()


def test_a_key_read_by_the_caller_has_its_ledger(desk):
    with rp.read(TABLE, sensitive="ill", public=PUBLIC) as table:
        table.publish(POLICY, desk / "a", key=rp.Key.from_file(desk / "my.key"))
    (desk / "link.key").symlink_to(desk / "my.key")
    assert "release 2" in publish(desk, "b", key="link.key").notes[0]
    assert not (desk / "link.key.ledger").exists()


def test_a_new_key_for_a_known_table_is_warned_of(desk):
    publish(desk, "a")
    numbered_key(2).write(desk / "new.key")
    (desk / "my.key").unlink()  # lost: that is why there is a new one
    made = publish(desk, "b", key="new.key")
    assert any("my.key.ledger" in note for note in made.warnings)
    assert publish(desk, "c", key="new.key").warnings == ()
    numbered_key(3).write(desk / "third.key")
    other = pa.table({"firm": ["x", "y"] * 40, "pay": ["low", "high", "high", "low", "low"] * 16})
    found = publish(desk, "d", key="third.key", table=other, sensitive="pay", public=["firm"])
    assert found.warnings == ()


def test_other_files_that_look_like_ledgers_do_no_harm(desk):
    deep = b"x" * 65 + b"[" * 100_000
    odd = b'{"known": {"salt": "zz", "hash": 1}}\n{"known": {"salt": 3}}\n[1]\n'
    (desk / "odd.ledger").write_bytes(b"\xff\x00\n" + deep + b"\n" + b"x" * 65 + odd)
    (desk / "folder.ledger").mkdir()
    assert publish(desk, "a").warnings == ()


def edited(found):
    return [found[0].replace(b'"records":120', b'"records":121'), *found[1:]]


TAMPERED = {
    "edited": (edited, 1),
    "removed": (lambda found: found[1:], 1),
    "inner removed": (lambda found: [found[0], found[2]], 2),
    "moved": (lambda found: [found[0], found[2], found[1]], 2),
    "repeated": (lambda found: [*found, found[2]], 4),
    "space": (lambda found: [found[0].replace(b":", b": ", 1), *found[1:]], 1),
    "carriage return": (lambda found: [found[0][:-1] + b"\r\n", *found[1:]], 1),
    "empty line": (lambda found: [*found, b"\n"], 4),
}


@pytest.mark.parametrize("name", TAMPERED)
def test_an_edited_ledger_is_noticed(desk, cli, three, name):
    change, line = TAMPERED[name]
    after(desk, three[2])
    assert ledger(desk).check().sound
    (desk / "my.key.ledger").write_bytes(b"".join(change(lines(desk))))
    with pytest.raises(LedgerError, match=f"Line {line} of the ledger my.key.ledger"):
        publish(desk, "d")
    assert not (desk / "d").exists()
    done = cli("ledger", "verify", desk / "my.key")
    assert done.code == 1 and f"Line {line}" in done.out and "backup" in done.out
    with pytest.raises(LedgerError):
        ledger(desk).repair()
    assert not ledger(desk).check().sound
    assert cli("ledger", "show", desk / "my.key").code == 2


def test_the_ledger_of_another_key_is_noticed(desk):
    publish(desk, "a")
    numbered_key(2).write(desk / "new.key")
    (desk / "my.key.ledger").rename(desk / "new.key.ledger")
    with pytest.raises(LedgerError, match="not as it was written"):
        publish(desk, "b", key="new.key")


def test_a_cut_end_is_not_noticed(desk):
    """If the count is as old as the ledger: both as they once were are sound."""
    publish(desk, "a")
    count = (desk / "my.key.trials").read_bytes()
    publish(desk, "b")
    (desk / "my.key.ledger").write_bytes(lines(desk)[0])
    assert not ledger(desk).check().sound
    (desk / "my.key.trials").write_bytes(count)
    assert ledger(desk).check().sound and len(ledger(desk).entries) == 1


@pytest.mark.parametrize("left", [1, 40, 64, 65, 200, -1])
def test_a_torn_last_line_can_be_repaired(desk, cli, three, left):
    # As a killed process leaves it: the count waits for the line to be complete.
    count = ".my.key.trials.new"
    after(desk, three[0] | {count: three[1]["my.key.trials"]})
    after(desk, {"my.key.ledger": three[1]["my.key.ledger"]})
    first, last = lines(desk)
    (desk / "my.key.ledger").write_bytes(first + last[:left])
    with pytest.raises(LedgerError, match="lacks its end") as refused:
        publish(desk, "c")
    assert "check()" in refused.value.hint
    done = cli("ledger", "verify", desk / "my.key")
    assert done.code == 1 and "reconpriv ledger repair" in done.out
    done = cli("ledger", "repair", desk / "my.key", "--json")
    assert done.code == 0 and json.loads(done.out)["repaired"]
    # A line that lacks nothing but its newline is complete.
    expected = 3 if left == -1 else 2
    assert f"release {expected} of" in publish(desk, "c").notes[0]
    assert "nothing to repair" in cli("ledger", "repair", desk / "my.key").out


def test_an_exposed_ledger_is_refused(desk):
    publish(desk, "a")
    (desk / "my.key.ledger").chmod(0o644)
    with pytest.raises(LedgerError, match="0644"):
        publish(desk, "b")
    assert not (desk / "b").exists()


@pytest.mark.parametrize(("make", "words"), [
    (lambda path: path.symlink_to("elsewhere"), "it is a link"),
    (os.mkfifo, "not a regular file"),
])  # fmt: skip
def test_a_ledger_that_is_no_file_is_refused_at_once(desk, cli, make, words):
    make(desk / "my.key.ledger")
    with pytest.raises(LedgerError, match=words):
        publish(desk, "a")
    assert not (desk / "a").exists()
    outcome = cli("ledger", "verify", desk / "my.key")
    assert outcome.code == 2
    assert words in outcome.err


def test_a_folder_that_cannot_be_written_is_refused_before_the_work(desk, monkeypatch):
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(LedgerError, match="cannot be written"):
        publish(desk, "a")
    assert sorted(file.name for file in desk.iterdir()) == ["my.key"]


def test_a_full_disk_leaves_neither_a_release_nor_half_a_line(desk, monkeypatch):
    publish(desk, "a")
    before, write = (desk / "my.key.ledger").read_bytes(), os.write
    monkeypatch.setattr(os, "write", lambda handle, data: write(handle, data[:30]))
    with pytest.raises(LedgerError, match="cannot be written"):
        publish(desk, "b")
    assert (desk / "my.key.ledger").read_bytes() == before and not (desk / "b").exists()


def test_a_publication_that_fails_after_its_line_is_marked(desk):
    def fail(_):
        raise ValueError("the database is gone")

    with pytest.raises(ValueError, match="database"):
        publish(desk, "a", also=fail)
    assert [e.finished for e in ledger(desk).entries] == [False]
    assert publish(desk, "b").notes == ()
    with pytest.raises(LedgerError):
        publish(desk, "c", public=["sex"])


def test_a_publication_that_fails_before_leaves_no_line(desk):
    with pytest.raises(ReconprivError):
        publish(desk, "a", policy=replace(POLICY, retention=0.99, tolerance=1.99, doubt=0.99))
    assert not (desk / "my.key.ledger").exists()


def test_of_two_publishers_with_different_settings_one_is_refused(desk):
    """Both are judged before the work, when the ledger is empty, and again at its end."""
    key = rp.Key.from_file(desk / "my.key")
    with rp.read(TABLE, sensitive="ill", public=PUBLIC) as table:
        other = replace(POLICY, retention=0.4)
        slow = Account.open(key, table.schema, other, second_sample=False)
        publish(desk, "a")
        with pytest.raises(LedgerError, match="another p "):
            slow.record(120, 4)
    assert len(ledger(desk).entries) == 1


def append_many(file, name):
    book = LedgerFile(rp.Key.from_file(file), file)
    for i in range(25):
        book.append(lambda lines, i=i: {"what": "test", "by": name, "i": i, "n": len(lines.bodies)})


def test_publishers_at_once_lose_no_line(desk):
    context = multiprocessing.get_context("fork")
    workers = [context.Process(target=append_many, args=(desk / "my.key", n)) for n in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    found = LedgerFile(rp.Key.from_file(desk / "my.key"), desk / "my.key").whole().bodies
    assert len(found) == 100 and [body["n"] for body in found] == list(range(100))
    assert {(body["by"], body["i"]) for body in found} == {
        (n, i) for n in range(4) for i in range(25)
    }


def test_the_command_line(desk, cli):
    file = desk / "t.csv"
    pa.csv.write_csv(TABLE, file)
    key = ("--key", desk / "my.key")
    given = ("publish", file, desk / "a", "-s", "ill", "--public", "sex,age", *key)
    done = cli("ledger", "show", desk / "my.key")
    assert done.code == 0 and "nothing was published" in done.out
    assert cli(*given).code == 0
    done = cli("publish", file, desk / "b", "-s", "ill", "--public", "sex", *key)
    assert done.code == 2 and "--second-sample" in done.err and not (desk / "b").exists()
    assert "--test-key" in done.err and "ledger withdraw" in done.err
    done = cli("publish", file, desk / "b", "-s", "ill", "--public", "sex", *key, "--second-sample")
    assert done.code == 0 and "second, independent sample" in done.err
    done = cli(*given, "--overwrite")
    assert done.code == 0 and "note: This is release 2 of a series" in done.err
    shown = cli("ledger", "show", desk / "my.key").out
    assert shown.count("octave") == 3 and "second sample" in shown
    plain = json.loads(cli("ledger", "show", desk / "my.key", "--json").out)
    assert [one["series"] for one in plain["publications"]] == [1, 2, 1]
    plain = json.loads(cli("ledger", "verify", desk / "my.key", "--json").out)
    assert plain["sound"] and plain["lines"] == 3
    done = cli("ledger", "burn", desk / "my.key")
    assert done.code == 2 and "show, verify, repair, withdraw" in done.err
    assert cli("ledger", "show", desk / "no.key").code == 2


def test_a_frame_is_published_by_the_same_rules(desk):
    options = {"sensitive": "ill", "key": desk / "my.key"}
    rp.publish(TABLE, POLICY, public=list(PUBLIC), **options)
    with pytest.raises(LedgerError):
        rp.publish(TABLE, POLICY, public=["sex"], **options)
    with pytest.warns(rp.ReconprivWarning, match="second, independent"):
        rp.publish(TABLE, POLICY, public=["sex"], second_sample=True, **options)

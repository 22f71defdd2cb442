"""A column keeps its role under a key: what one release hides, another must not tell."""

import json
from dataclasses import replace

import pyarrow as pa
import pyarrow.csv
import pytest

import reconpriv as rp
from ledger_desk import FIRST, POLICY, REVERSE, TABLE, older, publish
from reconpriv.cli.process.remedy_words import option_words
from reconpriv.errors import LedgerError, RoleChangeError, SecondSampleError
from reconpriv.ledger.account import Account
from reconpriv.ledger.roles import Role, clashes, folded, role_marks
from reconpriv.studio.pieces.remedy_words import page_words

OTHER_KEY = rp.Key(bytes((37 * i + 2) % 256 for i in range(32)))


def refused(desk, roles, *, lines=1, **more):
    with pytest.raises(RoleChangeError) as error:
        publish(desk, "refused", roles, **more)
    assert not (desk / "refused").exists()
    assert len(rp.Ledger(desk / "my.key").entries) == lines
    return error.value


def test_two_columns_that_swap_their_roles_are_refused(desk):
    publish(desk, "a", FIRST)
    error = refused(desk, REVERSE)
    assert error.what.startswith("With this key 'result' was sensitive (20")
    assert "and 'payor' was public (20" in error.what
    assert "would make 'result' public and 'payor' sensitive" in error.what
    assert "another key" in error.hint and "role_change=True" in error.hint
    said = error.worded(option_words)
    assert "reconpriv keygen other.key" in said and "--role-change" in said
    assert "tick “Publish although a column changes its role” below" in error.worded(page_words)


def test_a_change_that_is_meant_is_published_and_said(desk, cli):
    publish(desk, "a", FIRST)
    made = publish(desk, "b", REVERSE, role_change=True)
    assert any("makes 'result' public and 'payor' sensitive" in one for one in made.warnings)
    assert [one.role_change for one in rp.Ledger(desk / "my.key").entries] == [False, True]
    assert "roles changed" in cli("ledger", "show", desk / "my.key").out
    # Both are out: a further release of either gives nothing more away, but it is told again.
    for out, roles in (("c", FIRST), ("d", REVERSE)):
        again = publish(desk, out, roles)
        assert "release 2 of a series" in again.notes[0]
        assert any("one tells what the other hides" in one for one in again.warnings)
    assert [one.role_change for one in rp.Ledger(desk / "my.key").entries][2:] == [False, False]


@pytest.mark.parametrize(
    ("roles", "words"),
    [
        (("age", ["sex", "result"]), "'result' was sensitive"),
        (("payor", ["sex", "age"]), "'payor' was public"),
    ],
)
def test_one_column_is_enough(desk, roles, words):
    publish(desk, "a", FIRST)
    assert words in refused(desk, roles).what


def test_roles_count_across_all_tables_of_the_key(desk):
    publish(desk, "a", FIRST)
    other = pa.table({"firm": ["x", "y"] * 40, "pay": ["low", "high", "high", "low"] * 20})
    assert publish(desk, "b", ("pay", ["firm"]), table=other).warnings == ()
    third = pa.table({"firm": ["x", "y"] * 60, "payor": ["own", "own", "state"] * 40})
    error = refused(desk, ("firm", ["payor"]), table=third, lines=2)
    assert "'firm' was public" in error.what and "payor" not in error.what
    # A column that is left out has no role.
    assert publish(desk, "c", ("result", ["sex", "payor"])).warnings == ()


@pytest.mark.parametrize("name", ["RESULT", "Result", " result ", "ｒｅｓｕｌｔ"])
def test_a_name_in_other_letters_is_the_same_column(desk, name):
    publish(desk, "a", FIRST)
    renamed = TABLE.rename_columns(["sex", "age", name, "payor"])
    assert "was sensitive" in refused(desk, ("age", ["sex", name]), table=renamed).what


def test_a_renamed_column_is_not_noticed(desk):
    """The documents say so: the ledger knows columns by their names."""
    publish(desk, "a", FIRST)
    renamed = TABLE.rename_columns(["sex", "age", "outcome", "payor"])
    assert publish(desk, "b", ("age", ["sex", "outcome"]), table=renamed).warnings == ()


def test_two_names_that_differ_in_blanks_only_are_no_change(desk):
    both = TABLE.append_column("result ", TABLE["sex"])
    roles = ("result", ["sex", "result "])
    policy = replace(POLICY, retention=0.4)
    publish(desk, "a", roles, table=both)
    with pytest.raises(SecondSampleError):
        publish(desk, "b", roles, table=both, policy=policy)
    publish(desk, "b", roles, table=both, policy=policy, second_sample=True)


def test_bins_do_not_hide_a_role(desk):
    publish(desk, "a", ("result", ["sex", "age"]), read={"bin": {"age": 10}})
    assert "'age' was public" in refused(desk, ("age", ["sex"])).what


def test_a_second_sample_and_a_change_of_roles_need_both_words(desk):
    publish(desk, "a", FIRST)
    publish(desk, "b", REVERSE, role_change=True)
    roles = ("result", ["sex"])  # a second sample of the first, and result was public in the second
    refused(desk, roles, lines=2, second_sample=True)
    with pytest.raises(SecondSampleError):
        publish(desk, "c", roles, role_change=True)
    publish(desk, "c", roles, role_change=True, second_sample=True)


def test_of_two_publishers_who_swap_roles_one_is_refused(desk):
    key = rp.Key.from_file(desk / "my.key")
    with rp.read(TABLE, sensitive="payor", public=["sex", "result"]) as table:
        slow = Account.open(key, table.schema, POLICY, second_sample=False)
        publish(desk, "a", FIRST)
        with pytest.raises(RoleChangeError):
            slow.record(120, 4)
    assert len(rp.Ledger(desk / "my.key").entries) == 1


def test_a_frame_is_published_by_the_same_rules(desk):
    rp.publish(TABLE, POLICY, sensitive="result", public=["sex", "payor"], key=desk / "my.key")
    options = {"sensitive": "payor", "public": ["sex", "result"], "key": desk / "my.key"}
    with pytest.raises(RoleChangeError):
        rp.publish(TABLE, POLICY, **options)
    with pytest.warns(rp.ReconprivWarning, match="one tells what the other hides"):
        rp.publish(TABLE, POLICY, role_change=True, **options)


def test_the_command_line(desk, cli):
    file, key = desk / "t.csv", ("--key", desk / "my.key")
    pa.csv.write_csv(TABLE, file)
    assert cli("publish", file, desk / "a", "-s", "result", "--public", "sex,payor", *key).code == 0
    swapped = ("publish", file, desk / "b", "-s", "payor", "--public", "sex,result", *key)
    before = sorted(one.name for one in desk.iterdir())
    done = cli(*swapped)
    assert done.code == 2 and "'result' was sensitive" in done.err and "--role-change" in done.err
    assert sorted(one.name for one in desk.iterdir()) == before
    assert cli(*swapped, "--second-sample").code == 2, "another word for another thing"
    done = cli(*swapped, "--role-change")
    assert done.code == 0 and "warning: With this key" in done.err
    shown = json.loads(cli("ledger", "show", desk / "my.key", "--json").out)
    assert [one["role_change"] for one in shown["publications"]] == [False, True]


def test_another_key_in_the_folder_is_warned_of(desk):
    publish(desk, "a", FIRST)
    OTHER_KEY.write(desk / "new.key")
    (desk / "my.key").unlink()  # its ledger says so without it
    made = publish(desk, "b", REVERSE, key="new.key")
    for words in ("'result' was sensitive", "'payor' was public"):
        assert any(words in one and "my.key.ledger" in one for one in made.warnings)
    assert len(made.warnings) == 2
    assert publish(desk, "c", REVERSE, key="new.key").warnings == ()


def test_another_key_that_withdrew_is_not_warned_of(desk):
    publish(desk, "a", FIRST)
    rp.Ledger(desk / "my.key").withdraw(1, why="a draft")
    OTHER_KEY.write(desk / "new.key")
    assert publish(desk, "b", REVERSE, key="new.key").warnings == ()
    assert publish(desk, "c", FIRST, key="new.key", role_change=True).warnings != ()


def test_a_line_holds_no_names(desk):
    publish(desk, "a", FIRST)
    text = (desk / "my.key.ledger").read_text()
    assert not any(f'"{name}"' in text for name in ("sex", "result", "payor"))
    body = json.loads(text[65:])
    # The salted hashes are all that can be guessed without the key, and the manifest has the names.
    shown = json.loads((desk / "a" / "datapackage.json").read_text())
    fields = {one["name"] for one in shown["resources"][0]["schema"]["fields"]}
    assert {"sex", "result", "payor"} <= fields
    assert {*body["known"]} == {"salt", "hash", "sensitive", "public"}
    assert len(body["roles"]) == 3 and not {*body["roles"]} & {*body["known"]["public"]}


def test_an_older_ledger_is_sound_and_its_names_tell_the_roles(desk):
    table = older(desk)
    ledger = rp.Ledger(desk / "my.key")
    assert ledger.check().sound and [one.release for one in ledger.entries] == [1, 2]
    assert "'ill' was sensitive" in refused(desk, ("payor", ["ill"]), table=table, lines=2).what
    assert "'age' was public" in refused(desk, ("age", ["payor"]), table=table, lines=2).what
    renamed = table.rename_columns(["sex", "age", "ILL", "payor"])
    assert "was sensitive" in refused(desk, ("payor", ["ILL"]), table=renamed, lines=2).what
    assert "release 3" in publish(desk, "b", ("ill", ["sex", "age"]), table=table).notes[0]
    assert ledger.check().sound


def test_an_older_ledger_of_another_key_is_warned_of(desk):
    table = older(desk)
    OTHER_KEY.write(desk / "new.key")
    made = publish(desk, "a", ("payor", ["ill"]), table=table, key="new.key")
    assert len(made.warnings) == 1 and "'ill' was sensitive" in made.warnings[0]


def test_a_wrong_open_hash_does_no_harm(desk):
    for number, known in enumerate(
        ({"salt": "00", "hash": 1}, {"salt": "00" * 8, "hash": "x", "public": 3}, {"hash": "x"}, 7)
    ):
        body = json.dumps({"what": "publication", "known": known, "line": []})
        (desk / f"{number}.ledger").write_text("x" * 65 + body + "\n")
    assert publish(desk, "a", FIRST).warnings == ()


def test_every_pair_of_roles_clashes():
    """A role that is added to the list takes part by itself."""

    def mark(role, name):
        return f"{role}:{name}"

    for now in Role:
        for once in Role:
            known = role_marks({"Number": once}, mark)
            found = clashes({"number": now}, mark, known)
            assert [(one.now, one.once) for one in found] == ([] if now is once else [(now, once)])
    assert folded("É\u00a0") == folded("e\u0301") == "é"


def test_a_role_change_is_a_ledger_error():
    assert issubclass(RoleChangeError, LedgerError)

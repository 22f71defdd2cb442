"""What the studio publishes is in the ledger of its key, wherever that is."""

from __future__ import annotations

import stat
import zipfile

import pytest

import reconpriv as rp
from reconpriv.errors import LedgerError, RoleChangeError, SecondSampleError
from reconpriv.studio.pieces.key_choice import key_notice, unused_key_box
from reconpriv.studio.work.keys import UnknownLedgerError, chosen_key
from reconpriv.studio.work.ledgers import ARCHIVE, LEDGER, TRIALS
from reconpriv.studio.work.plan import KEY_FILE, DeclaredRoles
from reconpriv.studio.work.workspace import Workspace, explain
from studio_workspace import OTHER, POLICY, form, publish, write

SECRET = bytes((37 * i + 5) % 256 for i in range(32))


@pytest.fixture
def opened(workspace, tmp_path):
    return workspace.look(str(write(tmp_path / "t.csv")))


@pytest.fixture
def saved(workspace, opened):
    """Download the key and its ledger, and give them back as a browser does."""

    def save():
        known = workspace.key_of(opened)
        folder = workspace.folder("zip")
        with zipfile.ZipFile(workspace.ledgers.archive(known.key, folder)) as archive:
            archive.extractall(folder)
        (folder / KEY_FILE).write_text(known.key.secret.hex() + "\n")
        return folder

    return save


def uploads(folder, *names):
    return form("own", files=[{"name": name, "datapath": str(folder / name)} for name in names])


def lines(file):
    return file.read_bytes().count(b"\n")


def test_a_second_sample_is_refused_on_the_page(workspace, opened):
    first = publish(workspace, opened, "generate")
    assert first.release.notes == ()
    with pytest.raises(SecondSampleError) as refused:
        publish(workspace, opened, "table", OTHER)
    said = explain(refused.value)
    assert "another p on" in said and "tick “Publish a second sample” below" in said
    assert "choose “Use the test key”" in said and "on the command line" in said
    assert "--" not in said and "second_sample" not in said
    assert workspace.published is first
    made = publish(workspace, opened, "table", OTHER, second_sample=True)
    assert any("second, independent sample" in text for text in made.release.warnings)
    again = publish(workspace, opened, "table")
    assert any("release 2 of a series" in text for text in again.release.notes)


def test_the_ledger_of_a_key_in_memory_is_downloaded(workspace, opened, tmp_path):
    made = publish(workspace, opened, "generate")
    assert workspace.ledgers.keeps(made.key)
    archive = workspace.ledgers.archive(made.key, tmp_path)
    assert archive.name == ARCHIVE
    with zipfile.ZipFile(archive) as found:
        assert found.namelist() == [LEDGER, TRIALS]
        assert {stat.S_IMODE(one.external_attr >> 16) for one in found.infolist()} == {0o600}
        found.extractall(tmp_path)
    # Beside the key, it is what the command line goes on with.
    made.key.write(tmp_path / KEY_FILE)
    for name in (LEDGER, TRIALS):
        (tmp_path / name).chmod(0o600)
    ledger = rp.Ledger(tmp_path / KEY_FILE)
    assert ledger.check().sound and len(ledger.entries) == 1
    with (
        pytest.raises(LedgerError),
        rp.read(tmp_path / "t.csv", sensitive="job", public="all") as table,
    ):
        table.publish(OTHER, tmp_path / "out", key=tmp_path / KEY_FILE)
    # The key itself is in no file of the studio.
    assert not list(workspace.home.rglob(KEY_FILE))
    known = workspace.key_of(opened)
    assert "Download its ledger" in str(key_notice(known, fresh=True))


def test_a_key_given_by_its_path_has_its_ledger_beside_it(workspace, opened, tmp_path):
    rp.Key(SECRET).write(tmp_path / "my.key")
    given = form("own", path=str(tmp_path / "my.key"))
    made = publish(workspace, opened, "own", given=given)
    assert lines(tmp_path / "my.key.ledger") == 1 and not workspace.ledgers.keeps(made.key)
    with rp.read(tmp_path / "t.csv", sensitive="job", public="all") as table:
        table.publish(made.plan.policy, tmp_path / "out", key=tmp_path / "my.key")
    with pytest.raises(SecondSampleError):
        publish(workspace, opened, "own", OTHER, given=given)
    again = publish(workspace, opened, "table")
    assert any("release 3 of a series" in text for text in again.release.notes)
    assert lines(tmp_path / "my.key.ledger") == 3
    known = workspace.key_of(opened)
    notice = str(key_notice(known, fresh=False, kept=False))
    assert "my.key.ledger, beside the key" in notice


def test_an_uploaded_ledger_is_gone_on_with(workspace, opened, tmp_path, saved):
    publish(workspace, opened, "generate")
    folder = saved()
    home = tmp_path / "later"
    home.mkdir()
    later = Workspace(home)
    try:
        table = later.look(opened.source)
        # The next day: without the count the ledger is refused, and says so.
        (folder / "copy").write_bytes((folder / LEDGER).read_bytes())
        (folder / "copy.key").write_bytes((folder / KEY_FILE).read_bytes())
        (folder / "copy").rename(folder / "copy.key.ledger")
        with pytest.raises(LedgerError, match="is missing") as refused:
            publish(later, table, "own", given=uploads(folder, "copy.key", "copy.key.ledger"))
        assert "together with its .trials file" in explain(refused.value)
        given = uploads(folder, KEY_FILE, LEDGER, TRIALS)
        made = publish(later, table, "own", given=given)
        assert any("release 2 of a series" in text for text in made.release.notes)
        assert not (folder / KEY_FILE).exists(), "an upload is removed as soon as it is read"
        with pytest.raises(SecondSampleError):
            publish(later, table, "table", OTHER)
    finally:
        later.close()


def test_an_older_or_another_ledger_does_not_replace_the_studios(workspace, opened, saved):
    made = publish(workspace, opened, "generate")
    assert made.key.file is not None
    mine = made.key.file.with_name(LEDGER)
    older = saved()
    publish(workspace, opened, "table")
    again = publish(workspace, opened, "own", given=uploads(older, KEY_FILE, LEDGER, TRIALS))
    assert any("release 3 of a series" in text for text in again.release.notes)
    parted = saved()
    (parted / LEDGER).write_bytes(b"another\n")
    with pytest.raises(LedgerError, match="not the one that the studio keeps"):
        publish(workspace, opened, "own", given=uploads(parted, KEY_FILE, LEDGER, TRIALS))
    assert lines(mine) == 3


def test_a_wrong_ledger_can_be_replaced(workspace, opened, tmp_path):
    for name, content in {"k": SECRET.hex(), "k.ledger": "wrong\n"}.items():
        (tmp_path / name).write_text(content)
    with pytest.raises(LedgerError, match="not as it was written"):
        publish(workspace, opened, "own", given=uploads(tmp_path, "k", "k.ledger"))
    for name, content in {"k": SECRET.hex(), "k.ledger": ""}.items():
        (tmp_path / name).write_text(content)
    publish(workspace, opened, "own", given=uploads(tmp_path, "k", "k.ledger"))


def test_an_upload_is_not_asked_for_again(workspace, opened, tmp_path):
    (tmp_path / "k").write_text(SECRET.hex())
    read = {}
    given = uploads(tmp_path, "k")
    with pytest.raises(UnknownLedgerError):
        chosen_key(given, workspace, opened, read)
    for _ in range(2):  # the first publication may be refused
        assert chosen_key(given, workspace, opened, read, rp.Key(SECRET)).secret == SECRET


def test_a_key_without_its_ledger_is_asked_for_it(workspace, opened, tmp_path):
    """A ledger that starts anew would know of no earlier release, and let a second sample pass."""
    (tmp_path / "k").write_text(SECRET.hex())
    typed = form("own", SECRET.hex())
    for given in (uploads(tmp_path, "k"), typed):
        with pytest.raises(UnknownLedgerError) as refused:
            publish(workspace, opened, "own", given=given)
        said = explain(refused.value)
        assert "came without its ledger" in said and "tick “This key was never used” below" in said
        assert ".ledger and .trials files together with the key" in said
        assert refused.value.key == rp.Key(SECRET) and SECRET.hex() not in said
    assert workspace.published is None and not list(workspace.home.rglob("*.ledger"))
    assert "This key was never used" in str(unused_key_box())
    with pytest.raises(UnknownLedgerError):  # the tick was for another key
        publish(workspace, opened, "own", given=typed, unused=rp.Key(SECRET[::-1]))
    publish(workspace, opened, "own", given=typed, unused=rp.Key(SECRET))
    # From now on the studio has its ledger.
    again = publish(workspace, opened, "own", given=typed)
    assert any("release 2 of a series" in text for text in again.release.notes)


def test_nobody_is_advised_to_replace_a_ledger(workspace, opened):
    publish(workspace, opened, "generate")
    known = workspace.key_of(opened)
    for fresh in (True, False):
        notice = str(key_notice(known, fresh=fresh))
        assert "in place of" not in notice and "replace" not in notice
        assert "any other ledger of this key turns up, keep it" in notice


def test_a_change_of_roles_is_refused_on_the_page(workspace, opened):
    publish(workspace, opened, "generate")
    swapped = DeclaredRoles("age", ("job",))
    with pytest.raises(RoleChangeError) as refused:
        publish(workspace, opened, "table", roles=swapped)
    said = explain(refused.value)
    assert "'job' was sensitive" in said and "'age' was public" in said
    assert "tick “Publish although a column changes its role” below" in said
    assert "--" not in said and "role_change" not in said
    made = publish(workspace, opened, "table", roles=swapped, role_change=True)
    assert any("one tells what the other hides" in text for text in made.release.warnings)


def test_the_test_key_has_no_ledger(workspace, opened):
    for policy in (POLICY, OTHER):
        made = publish(workspace, opened, "test", policy)
        assert made.key.file is None and not workspace.ledgers.keeps(made.key)
    assert not list(workspace.home.rglob("*.ledger"))

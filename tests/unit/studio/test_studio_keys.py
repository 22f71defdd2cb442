"""One table, one key: whatever else changes, only an explicit choice makes a second one."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import reconpriv as rp
from reconpriv.studio.pieces.changes import policy_changes, same_key_means, since_release
from reconpriv.studio.pieces.key_choice import key_notice, key_options
from reconpriv.studio.work.keys import chosen_key
from reconpriv.studio.work.plan import DeclaredRoles, PublicationPlan
from studio_workspace import OTHER, POLICY, ROLES, form, publish, write


@pytest.fixture
def opened(workspace, tmp_path):
    return workspace.look(str(write(tmp_path / "t.csv")))


def secret_of(workspace, opened):
    known = workspace.key_of(opened)
    return None if known is None else known.key.secret


def test_a_second_publication_uses_the_key_of_the_first(workspace, opened, files_of):
    first = publish(workspace, opened, "generate")
    made = files_of(first.release.path)
    # The form as it was drawn before the first release must not draw a second key, either.
    for kind in ("table", "generate"):
        again = publish(workspace, opened, kind)
        assert again.key.secret == first.key.secret
        assert files_of(again.release.path) == made
    second = publish(workspace, opened, "table", OTHER, second_sample=True)
    assert second.key.secret == first.key.secret


def test_the_same_release_again_is_known_by_its_bytes(workspace, opened):
    """A ledger fears that another release of a series tells more; the same one cannot."""
    policy = replace(POLICY, margins=1.0)
    first = publish(workspace, opened, "generate", policy)
    second = publish(workspace, opened, "table", policy)
    assert second.again and not first.again
    assert second.release.warnings and not second.warnings
    other = publish(workspace, opened, "table", replace(policy, exposed_above=0.5))
    assert not other.again and other.warnings == tuple(other.release.warnings)


def test_only_a_wish_makes_another_key_and_that_is_the_tables_from_then_on(workspace, opened):
    first = publish(workspace, opened, "generate")
    second = publish(workspace, opened, "another")
    assert second.key.secret != first.key.secret
    assert publish(workspace, opened, "table").key.secret == second.key.secret


def test_a_table_keeps_its_key_while_another_is_open(workspace, opened, tmp_path):
    key = publish(workspace, opened, "generate").key
    other = workspace.look(str(write(tmp_path / "u.csv")))
    assert workspace.key_of(other) is None
    assert publish(workspace, other, "generate").key.secret != key.secret
    write(tmp_path / "t.csv", rows=50)  # a table that has grown is the same table
    grown = workspace.look(str(tmp_path / "t.csv"))
    assert publish(workspace, grown, "table").key.secret == key.secret


def test_an_own_key_is_remembered_and_the_test_key_is_not(workspace, opened):
    publish(workspace, opened, "test")
    assert workspace.key_of(opened) is None
    own = rp.Key(bytes(range(32)))
    publish(workspace, opened, given=form("own", own.secret.hex()), unused=own)
    assert secret_of(workspace, opened) == own.secret
    assert workspace.key_of(opened).origin.startswith("given at")


def test_uploads_are_known_by_their_content(workspace, tmp_path):
    first = workspace.take_upload(str(write(tmp_path / "a")), "t.csv")
    key = publish(workspace, first, "generate").key
    same = workspace.take_upload(str(write(tmp_path / "b")), "renamed.csv")
    newer = workspace.take_upload(str(write(tmp_path / "c", rows=50)), "t.csv")
    assert secret_of(workspace, same) == secret_of(workspace, newer) == key.secret
    title, _ = key_options(workspace.key_of(newer), newer=True)["table"]
    assert "earlier t.csv" in title
    other = workspace.take_upload(str(write(tmp_path / "d", rows=60)), "other.csv")
    assert workspace.key_of(other) is None


def test_the_choice_reads_naturally_before_and_after(workspace, opened):
    before = key_options(workspace.key_of(opened))
    assert next(iter(before.values()))[0] == "Generate a new key"
    publish(workspace, opened, "generate")
    known = workspace.key_of(opened)
    after = key_options(known)
    assert next(iter(after)) == "table"
    assert after["table"][0].startswith("Use this table’s key (made at ")
    assert all("second sample" in after[kind][1] for kind in ("another", "own"))
    notice = str(key_notice(known, fresh=True))
    assert "until it closes" in notice
    assert known.key.secret.hex() not in notice + repr(known) + repr(workspace.keys)


@pytest.fixture(scope="module")
def persons(tmp_path_factory):
    """Two rows each of 300 people."""
    rows = range(600)
    data = {"who": [i // 2 for i in rows], "name": [f"n{i // 2}" for i in rows],
            "age": [i % 5 for i in rows], "sex": [i % 2 for i in rows],
            "job": ["baker" if i % 3 else "clerk" for i in rows]}  # fmt: skip
    file = tmp_path_factory.mktemp("persons") / "p.parquet"
    pq.write_table(pa.table(data), file)
    return file


ONE = replace(ROLES, person="who", rows_per_person="one")
FIRST, MORE = (replace(POLICY, margins=epsilon) for epsilon in (1.0, 2.0))


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ((ROLES, POLICY), (ROLES, POLICY), ""),
        ((ROLES, POLICY), (ROLES, replace(POLICY, tolerance=0.4)), "no second sample"),
        ((ROLES, POLICY), (ROLES, replace(POLICY, exposed_above=0.5)), "shares its trials"),
        ((ROLES, POLICY), (ROLES, replace(POLICY, harmless=("baker",))), "shares its trials"),
        ((ROLES, POLICY), (ROLES, OTHER), "another p makes an independent second sample"),
        ((ROLES, POLICY), (ROLES, replace(OTHER, exposed_above=0.1)), "second sample"),
        ((ROLES, POLICY), (replace(ROLES, public=("age", "sex")), POLICY),
         "set of public columns makes an independent"),
        ((ROLES, POLICY), (replace(ROLES, bins={"age": "2"}), POLICY), "binning of a public"),
        ((ROLES, POLICY), (ROLES, replace(POLICY, protect={"age": "*"})), "another protection"),
        ((ROLES, POLICY), (ROLES, FIRST), "shares its trials"),
        ((ROLES, FIRST), (ROLES, MORE), "their ρ add up"),
        ((ROLES, POLICY), (replace(ROLES, person="who"), POLICY), ""),
        ((ROLES, POLICY), (ONE, POLICY), "other rows of the same people"),
        ((ONE, POLICY), (replace(ROLES, person="who"), POLICY), "other rows of the same people"),
        ((ONE, POLICY), (replace(ONE, person="name"), POLICY), "other rows of the same people"),
        ((ONE, POLICY), (ONE, POLICY), ""),
    ],
)  # fmt: skip
def test_what_the_same_key_means_for_other_settings(workspace, persons, before, after, words):
    opened = workspace.look(str(persons))
    (roles, policy), (next_roles, next_policy) = before, after
    # What is published does not matter here, and several rows of a person are refused.
    made = publish(workspace, opened, "generate", policy, roles=replace(roles, person="",
                   rows_per_person="refuse"))  # fmt: skip
    known = workspace.key_of(opened)
    known = replace(known, plan=replace(made.plan, roles=roles))
    schema = workspace.load(opened, next_roles).table.schema
    plan = PublicationPlan(opened.source, next_roles, next_policy)
    means = same_key_means(known, plan, schema)
    assert words in means
    assert bool(means) is bool(words)


def test_changed_policies_are_named():
    assert policy_changes(POLICY, FIRST) == ["margins: none → ε = 1"]
    assert policy_changes(FIRST, MORE) == ["margins: ε = 1 → ε = 2"]
    assert policy_changes(FIRST, replace(FIRST, bound="exact")) == ["tail bound: chernoff → exact"]
    harmless = replace(POLICY, harmless=("a", None))
    assert policy_changes(POLICY, harmless) == ["harmless values: none → a, (missing)"]
    protected = replace(POLICY, protect={"age": "10"})
    assert policy_changes(POLICY, protected) == ["protection: none → {'age': 10}"]


def test_a_release_knows_which_settings_are_newer(workspace, opened, tmp_path):
    made = publish(workspace, opened, "test")
    loaded = made.loaded
    assert since_release(made, opened, loaded, POLICY) == []
    newer = replace(POLICY, doubt=0.2, retention=0.6)
    assert since_release(made, opened, loaded, newer) == ["p: 0.5 → 0.6", "doubt: 0.3 → 0.2"]
    assert since_release(made, opened, loaded, None) == ["a policy that cannot be used"]
    other = workspace.look(str(write(tmp_path / "u.csv")))
    (change,) = since_release(made, other, loaded, POLICY)
    assert change.startswith("table: ") and change.endswith("u.csv")
    again = workspace.look(str(write(tmp_path / "t.csv", rows=42)))
    (change,) = since_release(made, again, loaded, POLICY)
    assert change.endswith("was opened again")
    (change,) = since_release(made, again, workspace.load(again, made.loaded.roles), POLICY)
    assert change.startswith("the content of ")


def test_a_page_that_missed_a_change_cannot_publish_the_old_table(workspace, opened):
    before = workspace.load(opened, ROLES)
    workspace.load(opened, DeclaredRoles("age", ("job",)))
    plan = PublicationPlan("t", ROLES, POLICY)
    with pytest.raises(rp.ReconprivError, match="another tab"):
        workspace.publish(before, plan, rp.Key.test(), generated=False)


@pytest.mark.parametrize("name", ["open.key", "none.key"])
def test_a_bad_path_of_a_key_is_explained(workspace, opened, tmp_path, name):
    (tmp_path / "open.key").write_text(bytes(range(32)).hex())
    (tmp_path / "open.key").chmod(0o644)
    with pytest.raises(rp.ReconprivError):
        chosen_key(form("own", path=str(tmp_path / name)), workspace, opened, {})

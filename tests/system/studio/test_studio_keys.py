"""One table, one key: whatever else changes, only an explicit choice makes a second one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

import reconpriv as rp
from reconpriv.queries.beside_truth import ask
from reconpriv.queries.questions import Question
from reconpriv.studio.changes import same_key_means, since_release
from reconpriv.studio.desk import Desk, Settled, explain
from reconpriv.studio.plan import Plan, Roles
from reconpriv.studio.step_publish import chosen_key, key_notice, key_options
from studio_desk import OTHER, POLICY, form, publish, write


def test_a_second_publication_uses_the_key_of_the_first(
    desk: Desk, tmp_path: Path, files_of: Callable[[Path], dict[str, bytes]]
) -> None:
    opened = desk.look(str(write(tmp_path / "t.csv")))
    first = publish(desk, opened, "generate")
    made = files_of(first.release.path)
    # The form as it was drawn before the first release must not draw a second key, either.
    for kind in ("table", "generate"):
        again = publish(desk, opened, kind)
        assert again.key.secret == first.key.secret
        assert files_of(again.release.path) == made
    second = publish(desk, opened, "table", OTHER, second_sample=True)
    assert second.key.secret == first.key.secret


def test_only_a_wish_makes_another_key_and_that_is_the_tables_from_then_on(
    desk: Desk, tmp_path: Path
) -> None:
    opened = desk.look(str(write(tmp_path / "t.csv")))
    first = publish(desk, opened, "generate")
    second = publish(desk, opened, "another")
    assert second.key.secret != first.key.secret
    assert publish(desk, opened, "table").key.secret == second.key.secret


def test_a_table_keeps_its_key_while_another_is_on_the_desk(desk: Desk, tmp_path: Path) -> None:
    file = write(tmp_path / "t.csv")
    key = publish(desk, desk.look(str(file)), "generate").key
    other = desk.look(str(write(tmp_path / "u.csv")))
    assert desk.key_of(other) is None
    assert publish(desk, other, "generate").key.secret != key.secret
    write(file, rows=50)  # a table that has grown is the same table
    assert publish(desk, desk.look(str(file)), "table").key.secret == key.secret


def test_an_own_key_is_remembered_and_the_test_key_is_not(desk: Desk, tmp_path: Path) -> None:
    opened = desk.look(str(write(tmp_path / "t.csv")))
    publish(desk, opened, "test")
    assert desk.key_of(opened) is None
    own = bytes(range(32))
    settled = desk.settle(opened, Roles("job", ("age",)))
    key = chosen_key(form("own", own.hex()), desk, opened, unused=rp.Key(own))
    desk.publish(settled, Plan(opened.source, settled.roles, POLICY), key, generated=False)
    known = desk.key_of(opened)
    assert known is not None
    assert known.key.secret == own
    assert known.origin.startswith("given at")


def test_uploads_are_known_by_their_content(desk: Desk, tmp_path: Path) -> None:
    first = desk.take_upload(str(write(tmp_path / "a")), "t.csv")
    key = publish(desk, first, "generate").key
    same = desk.take_upload(str(write(tmp_path / "b")), "renamed.csv")
    assert desk.key_of(same) is not None
    newer = desk.take_upload(str(write(tmp_path / "c", rows=50)), "t.csv")
    known = desk.key_of(newer)
    assert known is not None
    assert known.key.secret == key.secret
    title, _ = key_options(known, newer=True)["table"]
    assert "earlier t.csv" in title
    other = desk.take_upload(str(write(tmp_path / "d", rows=60)), "other.csv")
    assert desk.key_of(other) is None


def test_the_choice_reads_naturally_before_and_after(desk: Desk, tmp_path: Path) -> None:
    opened = desk.look(str(write(tmp_path / "t.csv")))
    before = key_options(desk.key_of(opened))
    assert next(iter(before.values()))[0] == "Generate a new key"
    publish(desk, opened, "generate")
    known = desk.key_of(opened)
    assert known is not None
    after = key_options(known)
    assert next(iter(after)) == "table"
    assert after["table"][0].startswith("Use this table’s key (made at ")
    assert "second sample" in after["another"][1]
    assert "second sample" in after["own"][1]
    notice = str(key_notice(known, fresh=True))
    assert "until it closes" in notice
    assert known.key.secret.hex() not in notice + repr(known) + repr(desk.keys)


@pytest.mark.parametrize(
    ("roles", "policy", "words"),
    [
        (Roles("job", ("age",)), POLICY, ""),
        (Roles("job", ("age",)), replace(POLICY, epsilon=0.4), "no second sample"),
        (Roles("job", ("age",)), OTHER, "a different p makes an independent second sample"),
        (Roles("job", ("age", "sex")), POLICY, "public columns makes an independent"),
        (Roles("job", ("age",), bins={"age": "10"}), POLICY, "a different binning makes"),
    ],
)
def test_what_the_same_key_means_for_other_settings(
    roles: Roles, policy: rp.Policy, words: str
) -> None:
    means = same_key_means(
        Plan("t", Roles("job", ("age",)), POLICY, uploaded=False), Plan("t", roles, policy)
    )
    assert words in means
    assert bool(means) is bool(words)


def test_a_release_knows_which_settings_are_newer(desk: Desk, tmp_path: Path) -> None:
    opened = desk.look(str(write(tmp_path / "t.csv")))
    made = publish(desk, opened, "test")
    settled: Settled | None = made.settled
    assert since_release(made, opened, settled, POLICY) == []
    assert since_release(made, opened, settled, replace(POLICY, delta=0.2, retention=0.6)) == [
        "p: 0.5 → 0.6",
        "δ: 0.3 → 0.2",
    ]
    assert since_release(made, opened, settled, None) == ["a policy that cannot be used"]
    other = desk.look(str(write(tmp_path / "u.csv")))
    (change,) = since_release(made, other, settled, POLICY)
    assert change.startswith("table: ")
    assert change.endswith("u.csv")
    again = desk.look(str(write(tmp_path / "t.csv", rows=42)))
    (change,) = since_release(made, again, desk.settle(again, made.settled.roles), POLICY)
    assert change.startswith("the content of ")


def test_the_truth_beside_a_binned_column_is_that_of_the_question(desk: Desk) -> None:
    """A condition that cuts a bin is refused, in the words of the page, or taken whole."""
    opened = desk.look("example:adult")
    settled = desk.settle(opened, Roles("income", ("age",), bins={"age": "10"}))
    plan = Plan(opened.source, settled.roles, POLICY, test_key=True)
    made = desk.publish(settled, plan, rp.Key.test(), generated=False)
    both = made.release.answerer, made.settled.table.truth
    with pytest.raises(rp.ReconprivError) as caught:
        ask(*both, Question(where="age < 65"))
    assert "60 or 70" in explain(caught.value)
    assert "--" not in explain(caught.value)
    with rp.read("example:adult", sensitive="income", public=["age"]) as table:
        truth = {age: table.count(f"age < {age}") for age in (60, 70)}
    (line,) = ask(
        made.release.answerer, made.settled.table.truth, Question(where="age < 65", whole_bins=True)
    ).lines
    assert line.truth == truth[70]
    found = ask(
        made.release.answerer,
        made.settled.table.truth,
        Question(where="age < 60", value="1", estimator="constrained"),
    )
    assert found.estimators == ("constrained",)
    (line,) = found.lines
    assert line.value is not None and 0 <= line.value <= truth[60]


def test_a_page_that_missed_a_change_cannot_publish_the_old_table(
    desk: Desk, tmp_path: Path
) -> None:
    opened = desk.look(str(write(tmp_path / "t.csv")))
    before = desk.settle(opened, Roles("job", ("age",)))
    desk.settle(opened, Roles("age", ("job",)))
    with pytest.raises(rp.ReconprivError, match="another tab"):
        desk.publish(before, Plan("t", before.roles, POLICY), rp.Key.test(), generated=False)

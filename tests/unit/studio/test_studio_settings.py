"""Settings of a session as a file: what is in it, what it brings back, and what is refused."""

from __future__ import annotations

import json
from dataclasses import asdict

import pytest

import reconpriv as rp
from reconpriv.answers.beside_truth import ask
from reconpriv.ask.form import FormQuestion
from reconpriv.studio.steps.ask import answers_csv, answers_json
from reconpriv.studio.work.plan import DeclaredRoles
from reconpriv.studio.work.settings import open_settings, question_in, roles_place, settings_text
from reconpriv.studio.work.workspace import Workspace
from studio_workspace import prepared, publish, write

ROLES = DeclaredRoles("job", ("age",), bins={"age": "5"})


@pytest.fixture
def other(tmp_path):
    (tmp_path / "other").mkdir()
    made = Workspace(tmp_path / "other")
    yield made
    made.close()


def test_saved_settings_bring_everything_back_but_the_key(workspace, other, tmp_path):
    file = write(tmp_path / "t.csv")
    prepared(workspace, file, ROLES, key_path="/secret/my.key", key_kind="own")
    workspace.draft |= {"question": asdict(FormQuestion("share", "age > 30", scores=(1.0, None)))}
    text = settings_text(workspace)
    assert "secret" not in text and "cook" not in text
    open_settings(other, text)
    assert other.opened.source == str(file) and other.step == 2
    keys = {"key_path": "/secret/my.key", "key_kind": "own"}
    assert json.dumps({**other.draft, **keys}, sort_keys=True) == json.dumps(
        workspace.draft, sort_keys=True
    )
    assert other.draft[roles_place(other.opened)]["bins"]["age"] == "5"
    assert question_in(other.draft) == FormQuestion("share", "age > 30", scores=(1.0, None))


def test_an_upload_is_not_in_the_settings_but_its_roles_are(workspace, other, tmp_path):
    first = workspace.take_upload(str(write(tmp_path / "a.csv")), "a.csv")
    workspace.draft[roles_place(first)] = {"roles": {"age": "drop"}}
    open_settings(other, settings_text(workspace))
    assert other.opened is None and other.step == 1
    again = other.take_upload(str(write(tmp_path / "b.csv")), "a.csv")
    assert other.draft[roles_place(again)] == {"roles": {"age": "drop"}}
    assert again.same_content(first) and not again.same_content(workspace.look("example:adult"))


KIND = {"kind": "reconpriv studio", "version": 1, "table": None}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "holds no settings"),
        ("[]", "holds no settings"),
        ('{"kind": "x", "version": 1, "table": null, "draft": {}}', "holds no settings"),
        (json.dumps({**KIND, "version": 9, "draft": {}}), "another version"),
        *(
            (json.dumps({**KIND, "draft": draft}), "damaged")
            for draft in (
                [], {"retention": [1]}, {"roles of x": {"roles": {"a": 1}}}, {"roles of x": "a"},
                {"harmless in x": "a"}, {"question": {"kind": "theft"}}, {"question": {"a_": 1}},
            )
        ),
        (json.dumps({**KIND, "table": "/no/where.csv", "draft": {}}), "no file"),
    ],
)  # fmt: skip
def test_what_holds_no_settings_is_refused_and_changes_nothing(workspace, text, words):
    with pytest.raises(rp.ReconprivError, match=words):
        open_settings(workspace, text)
    assert workspace.draft == {} and workspace.step == 1


def test_saved_answers_have_intervals_and_no_truth(workspace, tmp_path):
    opened = workspace.look(str(write(tmp_path / "t.csv")))
    made = publish(workspace, opened)
    asked = FormQuestion("count", by="age")
    answer = ask(made.release.answerer, made.loaded.table.truth, asked)
    head, *lines = answers_csv([answer]).splitlines()
    assert head == "question,row,estimate,low,high,unit,exact,remarks"
    assert [line.split(",")[-7] for line in lines] == ["30", "31"]
    assert [float(line.split(",")[-6]) for line in lines] == [
        one.value for one in answer.table.answers
    ]
    assert "truth" not in answers_json([answer]).lower()
    assert json.loads(answers_json([answer]))[0]["by"] == ["age"]

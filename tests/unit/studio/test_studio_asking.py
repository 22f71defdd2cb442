"""What the studio asks a release and its publisher's table, without a page."""

from __future__ import annotations

import statistics
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import reconpriv as rp
from reconpriv.answers import beside_truth
from reconpriv.answers.beside_truth import ask as ask_both
from reconpriv.ask.form import QUESTION_KINDS, FormQuestion, measurable, scored_kinds
from reconpriv.estimate.counts import ESTIMATORS, Estimator
from reconpriv.show.charts import palette
from reconpriv.studio.pieces.ask_form import question_form
from reconpriv.studio.steps.ask import answer_card
from reconpriv.studio.work.plan import DeclaredRoles, PublicationPlan
from reconpriv.studio.work.workspace import Workspace, explain
from studio_workspace import lines_of

JOBS = ("baker", "clerk", "nurse", "pilot")
LEVELS = {"baker": 1.0, "clerk": 2.0, "nurse": 3.0, "pilot": 4.0}


def people():
    """900 people: women are nurses more often; nurses are older."""
    rng = np.random.default_rng(3)
    sex = rng.choice(["F", "M"], 900)
    nurse = rng.random(900) < np.where(sex == "F", 0.5, 0.2)
    job = np.where(nurse, "nurse", rng.choice(["baker", "clerk", "pilot"], 900))
    age = 20 + rng.integers(0, 4, 900) + np.where(nurse, 4, 0)
    town = rng.integers(0, 60, 900)
    return pa.table({"sex": sex, "age": age, "town": town, "job": job})


ROWS = people().to_pylist()


@pytest.fixture(scope="module")
def make(tmp_path_factory):
    """Publish the people in a studio, as its page does."""
    folder = tmp_path_factory.mktemp("people")
    pq.write_table(people(), folder / "people.parquet")
    workspaces = []

    def made(sensitive="job", public=("sex", "age"), **roles):
        workspace = Workspace(tmp_path_factory.mktemp("home"))
        workspaces.append(workspace)
        opened = workspace.look(str(folder / "people.parquet"))
        loaded = workspace.load(opened, DeclaredRoles(sensitive, public, **roles))
        policy = rp.Policy(retention=0.6, tolerance=0.5, doubt=0.3, sampling="none")
        plan = PublicationPlan(opened.source, loaded.roles, policy, test_key=True)
        return workspace.publish(loaded, plan, rp.Key.test(), generated=False)

    yield made
    for workspace in workspaces:
        workspace.close()


@pytest.fixture(scope="module")
def published(make):
    return make()


def ask(published, question):
    table = published.loaded.table
    return ask_both(published.release.answerer, table.truth, question)


def place(job):
    return str(JOBS.index(job))


NURSES = FormQuestion(value=place("nurse"))


def truths(found):
    return [line.truth for line in lines_of(found)]


def test_a_count_and_a_split_count(published):
    found = ask(published, NURSES)
    women = [row for row in ROWS if row["sex"] == "F"]
    assert truths(found) == [sum(row["job"] == "nurse" for row in ROWS)]
    assert found.title == "Count of job = 'nurse'"
    found = ask(published, replace(NURSES, by="sex"))
    assert [line.label for line in lines_of(found)] == ["F", "M"]
    assert lines_of(found)[0].truth == sum(row["job"] == "nurse" for row in women)
    found = ask(published, FormQuestion(where="sex = 'F'"))
    assert lines_of(found)[0].exact and lines_of(found)[0].value == len(women)
    assert lines_of(found)[0].inside


@pytest.mark.parametrize("name", [one.name for one in QUESTION_KINDS["share"].estimators])
def test_a_share(published, name):
    """Among women, with any estimator that a share can use."""
    asked = replace(NURSES, kind="share", where="sex = 'F'", estimator=name)
    found = ask(published, asked)
    women = [row for row in ROWS if row["sex"] == "F"]
    assert truths(found) == [pytest.approx(statistics.mean(r["job"] == "nurse" for r in women))]
    assert found.title == "Share of job = 'nurse' among sex = 'F'"
    assert lines_of(found)[0].shown_truth.rstrip().endswith("%")


def test_a_share_among_holders_and_that_of_every_value(published):
    nurses = [row for row in ROWS if row["job"] == "nurse"]
    found = ask(published, FormQuestion("share", "sex = 'F'", among="job = 'nurse'"))
    assert truths(found) == [pytest.approx(statistics.mean(r["sex"] == "F" for r in nurses))]
    assert found.title == "Share of sex = 'F' among job = 'nurse'"
    found = ask(published, FormQuestion("share", by="job"))
    assert sum(line.truth or 0.0 for line in lines_of(found)) == pytest.approx(1)
    assert [line.label for line in lines_of(found)] == list(JOBS)


@pytest.mark.parametrize("of", ["share", "count"])
def test_a_comparison(published, of):
    asked = replace(NURSES, kind="compare", a="sex = 'F'", b="sex = 'M'", of=of)
    found = ask(published, asked)
    sides = []
    for sex in "FM":
        nurses = [row["job"] == "nurse" for row in ROWS if row["sex"] == sex]
        sides.append(statistics.mean(nurses) if of == "share" else sum(nurses))
    a, b = sides
    assert truths(found) == pytest.approx([a, b, a - b, a / b])
    assert f"The two {of}s differ in the original table" in found.verdict
    card = str(answer_card(found))
    for words in ("a / b", "ratio of the", "difference of the"):
        assert words in card


def test_averages_medians_and_sums_of_a_public_number(published):
    ages = [row["age"] for row in ROWS if row["job"] == "nurse"]
    for kind, truth in (
        ("average", statistics.mean(ages)),
        ("median", statistics.median_low(ages)),
        ("sum", sum(ages)),
    ):
        found = ask(published, replace(NURSES, kind=kind, column="age"))
        assert truths(found) == [pytest.approx(truth)]
        (line,) = lines_of(found)
        assert line.value is not None and abs(line.value / truth - 1) < 0.2
        assert found.title.startswith(f"{QUESTION_KINDS[kind].label} of age among job = 'nurse'")


def test_averages_and_medians_of_scored_values(published):
    scores = tuple(LEVELS[job] for job in JOBS)
    found = ask(published, FormQuestion("average", column="job", scores=scores, by="sex"))
    for line in lines_of(found):
        own = [LEVELS[row["job"]] for row in ROWS if row["sex"] == line.label]
        assert line.truth == pytest.approx(statistics.mean(own))
    found = ask(published, FormQuestion("median", column="job", scores=scores))
    (line,) = lines_of(found)
    middle = statistics.median_low(LEVELS[row["job"]] for row in ROWS)
    assert line.shown_truth == JOBS[int(middle) - 1]
    assert line.inside
    assert all(word in (*JOBS, "to") for word in line.interval.split())
    assert line.shown_truth in str(answer_card(found))


def test_the_bins_of_a_median_and_the_middles_of_an_average(make):
    published = make(bins={"age": "4"})
    found = ask(published, replace(NURSES, kind="median", column="age"))
    (line,) = lines_of(found)
    ages = sorted(row["age"] for row in ROWS if row["job"] == "nurse")
    low = ages[(len(ages) - 1) // 2] // 4 * 4
    assert line.shown_truth == f"{low} to {low + 3}"
    assert line.inside
    found = ask(published, replace(NURSES, kind="average", column="age"))
    middles = [age // 4 * 4 + 1.5 for age in ages]
    assert truths(found) == [pytest.approx(statistics.mean(middles))]
    assert any("the same middles" in remark for remark in found.remarks)


def test_the_last_bin_of_a_median_may_be_open(make):
    published = make(bins={"age": "20, 22, 24"})
    (line,) = lines_of(ask(published, replace(NURSES, kind="median", column="age")))
    assert line.shown_truth == "24 or more"
    assert line.inside and line.interval.endswith(" or more")


def test_a_sensitive_number_needs_no_scores(make):
    published = make("age", ("sex", "job"))
    schema = published.loaded.table.schema
    assert scored_kinds(schema) == []
    assert measurable(schema) == ["age"]
    found = ask(published, FormQuestion("average", column="age"))
    assert truths(found) == [pytest.approx(statistics.mean(row["age"] for row in ROWS))]


def test_a_long_split_says_what_is_left_out(make, monkeypatch):
    published = make(public=("town",))
    assert len(lines_of(ask(published, replace(NURSES, by="town")))) == 60
    monkeypatch.setattr(beside_truth, "MOST_ROWS", 40)
    found = ask(published, replace(NURSES, by="town"))
    assert len(lines_of(found)) == 40
    assert found.remarks[0] == "only the first 40 of 60 rows are shown"


REFUSED = {
    "count": (FormQuestion(where="height > 3"), "no column 'height'"),
    "split": (FormQuestion(where="age > 99", by="sex"), "No record satisfies this condition"),
    "share": (FormQuestion("share", "sex = 'F'"), "A share needs a value of 'job'"),
    "empty share": (replace(NURSES, kind="share", where="age > 99"), "No record is in this"),
    "biased": (
        FormQuestion("share", "sex = 'F'", among="job = 'nurse'", estimator="constrained"),
        "Choose “Unbiased”",
    ),
    "split of holders": (
        FormQuestion("share", "sex = 'F'", among="job = 'nurse'", by="job"),
        "cannot be split by 'job'",
    ),
    "one side": (replace(NURSES, kind="compare", a="sex = 'F'"), "needs two conditions"),
    "no value": (FormQuestion("compare", a="age < 22", b="age > 22"), "needs a value of 'job'"),
    "empty side": (
        replace(NURSES, kind="compare", a="sex = 'F'", b="age > 99"),
        "nothing to compare with",
    ),
    "text": (FormQuestion("average", column="sex"), "'sex' holds text"),
    "no scores": (FormQuestion("average", column="job"), "The scores leave out 'baker' and 3 more"),
    "half": (FormQuestion("sum", column="job", scores=(1.0, None, 2.0, 3.0)), "leave out 'clerk'."),
    "itself": (
        FormQuestion("median", column="job", scores=(1.0, 2.0, 3.0, 4.0), by="job"),
        "cannot be split by 'job' itself",
    ),
    "empty": (FormQuestion("average", "age > 99", column="age"), "No record"),
}


@pytest.mark.parametrize("name", list(REFUSED))
def test_a_bad_question_is_refused_in_the_words_of_the_page(published, name):
    question, words = REFUSED[name]
    with pytest.raises(rp.ReconprivError) as caught:
        ask(published, question)
    said = explain(caught.value)
    assert words in said
    assert not {"release.", "scores={", "GROUP BY", "of=", "'mle'"} & set(said.split())
    assert "\n" not in said and "scores={" not in said


def test_no_truth_among_holders_whom_nobody_is(published):
    """The release cannot tell 0 holders from a few; the table can, and has no share."""
    nobody = "job = 'nurse' AND age = 20"
    assert not [row for row in ROWS if row["job"] == "nurse" and row["age"] == 20]
    found = ask(published, FormQuestion("share", "sex = 'F'", among=nobody))
    (line,) = lines_of(found)
    assert line.truth is None and line.inside is None
    assert "–" in str(answer_card(found))


def test_only_unbiased_estimators_are_offered_where_no_other_is_taken():
    def even(observed, records, design):
        return observed

    toy = Estimator("toy", "Even", "A biased toy.", even)
    with ESTIMATORS.including(toy):
        offered = {
            name: [one.name for one in kind.estimators] for name, kind in QUESTION_KINDS.items()
        }
        assert str(question_form(FormQuestion())).count(">Even</option>") == 1
    assert "toy" in offered["count"] and "toy" in offered["share"]
    assert all("toy" not in offered[name] for name in ("compare", "average", "median", "sum"))
    assert "mle" in offered["sum"]


def test_a_picture_has_a_mark_for_every_figure_and_for_the_truth(published):
    found = ask(published, replace(NURSES, by="sex"))
    card = str(answer_card(found))
    for words in ("count", "iamonds are the truth", "95 % interval", ">yes<"):
        assert words in card, words
    assert card.count(palette.VERMILION) >= 2 <= card.count(palette.BLUE)


def test_answers_belong_to_their_release_and_to_no_file(make):
    first, second = make(), make()
    found = ask(first, NURSES)
    first.answers.append(found)
    assert second.answers == []
    files = b"".join(file.read_bytes() for file in sorted(first.release.path.iterdir()))
    assert found.title.encode() not in files
    assert "truth" not in repr(first)

"""What the studio asks a release and its publisher's table, without a page."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import reconpriv as rp
from reconpriv.queries.beside_truth import MOST_ROWS, Answered
from reconpriv.queries.beside_truth import ask as ask_both
from reconpriv.queries.estimate import ESTIMATORS, Estimator
from reconpriv.queries.questions import KINDS, Question, measurable, scored_kinds
from reconpriv.studio.answer_pictures import panels, picture
from reconpriv.studio.answers import answer_card, interval, shown
from reconpriv.studio.ask_form import question_form
from reconpriv.studio.desk import Desk, Published, explain
from reconpriv.studio.plan import Plan, Roles

JOBS = ("baker", "clerk", "nurse", "pilot")
LEVELS = {"baker": 1.0, "clerk": 2.0, "nurse": 3.0, "pilot": 4.0}
Make = Callable[..., Published]


def people() -> pa.Table:
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
def make(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Make]:
    """Publish the people in a studio, as its page does."""
    folder = tmp_path_factory.mktemp("people")
    pq.write_table(people(), folder / "people.parquet")
    desks = []

    def made(sensitive: str = "job", public: Any = ("sex", "age"), **roles: Any) -> Published:
        desk = Desk(tmp_path_factory.mktemp("home"))
        desks.append(desk)
        opened = desk.look(str(folder / "people.parquet"))
        settled = desk.settle(opened, Roles(sensitive, public, **roles))
        policy = rp.Policy(0.6, 0.5, 0.3, sample_size="none")
        plan = Plan(opened.source, settled.roles, policy, test_key=True)
        return desk.publish(settled, plan, rp.Key.test(), generated=False)

    yield made
    for desk in desks:
        desk.close()


@pytest.fixture(scope="module")
def published(make: Make) -> Published:
    return make()


def ask(published: Published, question: Question) -> Answered:
    table = published.settled.table
    return ask_both(published.release.answerer, table.truth, question)


def place(job: str) -> str:
    return str(JOBS.index(job))


NURSES = Question(value=place("nurse"))


def truths(found: Answered) -> list[float | None]:
    return [line.truth for line in found.lines]


def test_a_count_and_a_split_count(published: Published) -> None:
    found = ask(published, NURSES)
    women = [row for row in ROWS if row["sex"] == "F"]
    assert truths(found) == [sum(row["job"] == "nurse" for row in ROWS)]
    assert found.title == "Count of job = 'nurse'"
    found = ask(published, replace(NURSES, by="sex"))
    assert [line.label for line in found.lines] == ["F", "M"]
    assert found.lines[0].truth == sum(row["job"] == "nurse" for row in women)
    found = ask(published, Question(where="sex = 'F'"))
    assert found.lines[0].exact and found.lines[0].value == len(women)
    assert found.lines[0].inside


@pytest.mark.parametrize("name", [one.name for one in KINDS["share"].estimators])
def test_a_share(published: Published, name: str) -> None:
    """Among women, with any estimator that a share can use."""
    asked = replace(NURSES, kind="share", where="sex = 'F'", estimator=name)
    found = ask(published, asked)
    women = [row for row in ROWS if row["sex"] == "F"]
    assert truths(found) == [pytest.approx(statistics.mean(r["job"] == "nurse" for r in women))]
    assert found.title == "Share of job = 'nurse' among sex = 'F'"
    assert shown(found.lines[0], found.lines[0].truth).endswith(" %")


def test_a_share_among_holders_and_that_of_every_value(published: Published) -> None:
    nurses = [row for row in ROWS if row["job"] == "nurse"]
    found = ask(published, Question("share", "sex = 'F'", among="job = 'nurse'"))
    assert truths(found) == [pytest.approx(statistics.mean(r["sex"] == "F" for r in nurses))]
    assert found.title == "Share of sex = 'F' among job = 'nurse'"
    found = ask(published, Question("share", by="job"))
    assert sum(line.truth or 0.0 for line in found.lines) == pytest.approx(1)
    assert [line.label for line in found.lines] == list(JOBS)


@pytest.mark.parametrize("of", ["share", "count"])
def test_a_comparison(published: Published, of: str) -> None:
    asked = replace(NURSES, kind="compare", a="sex = 'F'", b="sex = 'M'", of=of)
    found = ask(published, asked)
    sides = []
    for sex in "FM":
        nurses = [row["job"] == "nurse" for row in ROWS if row["sex"] == sex]
        sides.append(statistics.mean(nurses) if of == "share" else sum(nurses))
    a, b = sides
    assert truths(found) == pytest.approx([a, b, a - b, a / b])
    assert f"The two {of}s differ in the original table" in found.verdict
    assert [panel.kind for panel in panels(found.lines)] == [
        of,
        "points" if of == "share" else "difference",
    ]


def test_averages_medians_and_sums_of_a_public_number(published: Published) -> None:
    ages = [row["age"] for row in ROWS if row["job"] == "nurse"]
    for kind, truth in (
        ("average", statistics.mean(ages)),
        ("median", statistics.median_low(ages)),
        ("sum", sum(ages)),
    ):
        found = ask(published, replace(NURSES, kind=kind, column="age"))
        assert truths(found) == [pytest.approx(truth)]
        (line,) = found.lines
        assert line.value is not None and abs(line.value / truth - 1) < 0.2
        assert found.title.startswith(f"{KINDS[kind].label} of age among job = 'nurse'")


def test_averages_and_medians_of_scored_values(published: Published) -> None:
    scores = tuple(LEVELS[job] for job in JOBS)
    found = ask(published, Question("average", column="job", scores=scores, by="sex"))
    for line in found.lines:
        own = [LEVELS[row["job"]] for row in ROWS if row["sex"] == line.label]
        assert line.truth == pytest.approx(statistics.mean(own))
    found = ask(published, Question("median", column="job", scores=scores))
    (line,) = found.lines
    middle = statistics.median_low(LEVELS[row["job"]] for row in ROWS)
    assert shown(line, line.truth) == JOBS[int(middle) - 1]
    assert line.inside
    assert all(word in (*JOBS, "to") for word in interval(line).split())
    assert "<svg" in str(picture(found.lines, found.title))


def test_the_bins_of_a_median_and_the_middles_of_an_average(make: Make) -> None:
    published = make(bins={"age": "4"})
    found = ask(published, replace(NURSES, kind="median", column="age"))
    (line,) = found.lines
    ages = sorted(row["age"] for row in ROWS if row["job"] == "nurse")
    low = ages[(len(ages) - 1) // 2] // 4 * 4
    assert shown(line, line.truth) == f"{low} to {low + 3}"
    assert line.inside
    found = ask(published, replace(NURSES, kind="average", column="age"))
    middles = [age // 4 * 4 + 1.5 for age in ages]
    assert truths(found) == [pytest.approx(statistics.mean(middles))]
    assert any("the same middles" in remark for remark in found.remarks)


def test_the_last_bin_of_a_median_may_be_open(make: Make) -> None:
    published = make(bins={"age": "20, 22, 24"})
    (line,) = ask(published, replace(NURSES, kind="median", column="age")).lines
    assert shown(line, line.truth) == "24 or more"
    assert line.inside and interval(line).endswith(" or more")


def test_a_sensitive_number_needs_no_scores(make: Make) -> None:
    published = make("age", ("sex", "job"))
    schema = published.settled.table.schema
    assert scored_kinds(schema) == []
    assert measurable(schema) == ["age"]
    found = ask(published, Question("average", column="age"))
    assert truths(found) == [pytest.approx(statistics.mean(row["age"] for row in ROWS))]


def test_a_long_split_says_what_is_left_out(make: Make) -> None:
    found = ask(make(public=("town",)), replace(NURSES, by="town"))
    assert len(found.lines) == MOST_ROWS
    assert found.remarks[0] == "only the first 40 of 60 rows are shown"


REFUSED = {
    "count": (Question(where="height > 3"), "no column 'height'"),
    "split": (Question(where="age > 99", by="sex"), "No record satisfies this condition"),
    "share": (Question("share", "sex = 'F'"), "A share needs a value of 'job'"),
    "empty share": (replace(NURSES, kind="share", where="age > 99"), "No record is in this"),
    "biased": (
        Question("share", "sex = 'F'", among="job = 'nurse'", estimator="constrained"),
        "Choose “Unbiased”",
    ),
    "split of holders": (
        Question("share", "sex = 'F'", among="job = 'nurse'", by="job"),
        "cannot be split by 'job'",
    ),
    "one side": (replace(NURSES, kind="compare", a="sex = 'F'"), "needs two conditions"),
    "no value": (Question("compare", a="age < 22", b="age > 22"), "needs a value of 'job'"),
    "empty side": (
        replace(NURSES, kind="compare", a="sex = 'F'", b="age > 99"),
        "nothing to compare with",
    ),
    "text": (Question("average", column="sex"), "'sex' holds text"),
    "no scores": (Question("average", column="job"), "The scores leave out 'baker' and 3 more"),
    "half": (Question("sum", column="job", scores=(1.0, None, 2.0, 3.0)), "leave out 'clerk'."),
    "itself": (
        Question("median", column="job", scores=(1.0, 2.0, 3.0, 4.0), by="job"),
        "cannot be split by 'job' itself",
    ),
    "empty": (Question("average", "age > 99", column="age"), "No record"),
}


@pytest.mark.parametrize("name", list(REFUSED))
def test_a_bad_question_is_refused_in_the_words_of_the_page(
    published: Published, name: str
) -> None:
    question, words = REFUSED[name]
    with pytest.raises(rp.ReconprivError) as caught:
        ask(published, question)
    said = explain(caught.value)
    assert words in said
    assert not {"release.", "scores={", "GROUP BY", "of=", "'mle'"} & set(said.split())
    assert "\n" not in said and "scores={" not in said


def test_no_truth_among_holders_whom_nobody_is(published: Published) -> None:
    """The release cannot tell 0 holders from a few; the table can, and has no share."""
    nobody = "job = 'nurse' AND age = 20"
    assert not [row for row in ROWS if row["job"] == "nurse" and row["age"] == 20]
    found = ask(published, Question("share", "sex = 'F'", among=nobody))
    (line,) = found.lines
    assert line.truth is None and line.inside is None
    assert "–" in str(answer_card(found))


def test_only_unbiased_estimators_are_offered_where_no_other_is_taken() -> None:
    def even(observed: Any, records: Any, design: Any) -> Any:
        return observed

    toy = Estimator("toy", "Even", "A biased toy.", even)
    with ESTIMATORS.including(toy):
        offered = {name: [one.name for one in kind.estimators] for name, kind in KINDS.items()}
        assert str(question_form(Question())).count(">Even</option>") == 1
    assert "toy" in offered["count"] and "toy" in offered["share"]
    assert all("toy" not in offered[name] for name in ("compare", "average", "median", "sum"))
    assert "mle" in offered["sum"]


def test_a_picture_has_a_mark_for_every_figure(published: Published) -> None:
    found = ask(published, replace(NURSES, by="sex"))
    drawn = str(picture(found.lines, found.title))
    assert drawn.count('class="truth"') == len(found.lines) + 1  # and in the legend
    assert drawn.count('class="estimate"') == len(found.lines) + 1
    (panel,) = panels(found.lines)
    for line in found.lines:
        assert line.low is not None and line.high is not None and line.value is not None
        places = [panel.axis(end) for end in (line.low, line.value, line.high)]
        assert places == sorted(places)
        assert places[0] < places[-1]


def test_answers_belong_to_their_release_and_to_no_file(make: Make) -> None:
    first, second = make(), make()
    found = ask(first, NURSES)
    first.answers.append(found)
    assert second.answers == []
    files = b"".join(file.read_bytes() for file in sorted(first.release.path.iterdir()))
    assert found.title.encode() not in files
    assert "truth" not in repr(first)

"""The estimator model: what it gains, that its error is honest, and where it stands back."""

import csv
import json
import math
from functools import cache

import numpy as np
import pyarrow as pa
import pytest

import reconpriv as rp
from margin_fixtures import publish_in_memory
from query_fixtures import numbered_key, people_release
from reconpriv.answers.answerer import Answerer
from reconpriv.cells.cube import collect
from reconpriv.errors import InputError, PolicyError
from reconpriv.estimate.counts import Design, Settings
from reconpriv.estimate.model import LEANS
from reconpriv.protect.publish_cube import published_cube

MODEL = Settings("model")
HOMES, WORK = [f"h{i:02}" for i in range(14)], [f"w{i:02}" for i in range(12)]
ASKED = {"home": "h03", "work": "w05", "job": "nurse"}
BORDERS = [15, 30, 60]  # of expected counts: four classes


@cache
def town(interacts: bool = False) -> pa.Table:
    """20,000 records; home and work act on the job separately, or only jointly."""
    rng = np.random.default_rng(4)
    n = 20_000
    home, work, sex = rng.integers(0, 14, n), rng.integers(0, 12, n), rng.integers(0, 2, n)
    effects = rng.normal(0, 0.5, 14)[home] + rng.normal(0, 0.5, 12)[work]
    nurse = rng.random(n) < 1 / (1 + np.exp(1.2 - effects))
    if interacts:
        nurse = rng.random(n) < np.where((home + work) % 2 == 0, 0.85, 0.05)
    other = rng.choice(["baker", "clerk", "pilot"], n, p=[0.6, 0.3, 0.1])
    return pa.table(
        {
            "home": [HOMES[i] for i in home],
            "work": [WORK[i] for i in work],
            "sex": np.where(sex == 0, "F", "M"),
            "job": np.where(nurse, "nurse", other),
        }
    )


@cache
def answerers(sampling: str, margins: float | None, interacts: bool = False, keys: int = 6):
    """Releases in memory, and the original table."""
    with rp.read(town(interacts), sensitive="job", public="all") as table:
        raw = collect(table.batches(), table.schema)
    policy = rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3, sampling=sampling, margins=margins)
    truth = Answerer(raw, Design(1.0, 4, "none"))
    if margins is not None:
        made = [publish_in_memory(raw, policy, numbered_key(i)).answerer for i in range(keys)]
        return made, truth
    cubes = [published_cube(raw, policy, numbered_key(i)) for i in range(keys)]
    return [Answerer(cube, Design(0.5, 4, sampling)) for cube in cubes], truth


@cache
def errors(sampling, margins, interacts=False):
    """Of all rows and keys: squared errors of both estimators, the stated one, and the count."""
    found, truth = answerers(sampling, margins, interacts)
    every, by = truth.select(None, {}), ["home", "work", "job"]
    real = {tuple(k.values()): e.count for k, e in truth.table(every, by, Settings())}
    rows = []
    for one in found:
        for (key, a), (_, b) in zip(
            one.table(every, by, Settings()), one.table(every, by, MODEL), strict=True
        ):
            c = real[tuple(key.values())]
            stated = b.mean_squared_error or a.standard_error**2
            rows.append(((a.count - c) ** 2, (b.count - c) ** 2, stated, b.count))
    return np.array(rows, dtype=float)


def honesty(sampling, margins, stated=1.0, interacts=False):
    """Mean squared error over what is stated, in each class of counts as they are answered."""
    rows = errors(sampling, margins, interacts)
    place = np.digitize(rows[:, 3], BORDERS)
    return [
        rows[place == i, 1].mean() / (stated * rows[place == i, 2].mean())
        for i in range(len(BORDERS) + 1)
    ]


@pytest.fixture(scope="module")
def release(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model") / "release"
    with rp.read(town(), sensitive="job", public="all") as table:
        policy = rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3, sampling="octave", margins=1.0)
        return table.publish(policy, folder, key=numbered_key(1))


# --- what it is worth ----------------------------------------------------------------------------

KINDS = [("none", 1.0), ("octave", 1.0), ("none", None), ("octave", None)]
FEW_TRIALS = [("public", 1.0), ("public", None)]


@pytest.mark.parametrize(("sampling", "margins"), KINDS + FEW_TRIALS)
def test_it_gains_and_its_error_is_honest_in_every_class_of_counts(sampling, margins):
    """An error that is 30 % off is noticed; with few trials it is rather too large."""
    rows = errors(sampling, margins)
    assert len(rows) == 6 * 14 * 12 * 4
    assert rows[:, 1].mean() < 0.6 * rows[:, 0].mean()
    low, high = (0.6, 1.1) if (sampling, margins) in FEW_TRIALS else (0.77, 1.23)
    assert all(low < one < high for one in honesty(sampling, margins))
    for wrong in (0.7, 1.3) if (sampling, margins) in KINDS else ():
        assert not all(low < one < high for one in honesty(sampling, margins, wrong))


def test_columns_that_act_only_jointly_are_answered_without_it():
    found, truth = answerers("octave", 1.0, interacts=True)
    for one in found:
        got = one.count(truth.select(None, ASKED), MODEL)
        assert got.estimator == "mle" and "jointly" in got.remarks[-1]
        assert got.low <= got.high
        assert one.count(
            truth.select(None, {"home": "h03", "sex": "F", "job": "nurse"}), MODEL
        ).leans


# --- how it is asked -----------------------------------------------------------------------------


def test_a_leaning_count_carries_its_error_and_no_interval(release):
    unbiased, found = release.count(**ASKED), release.count(**ASKED, estimator="model")
    assert unbiased.mean_squared_error is None and unbiased.estimator == "mle"
    assert found.leans and found.estimator == "model"
    assert found.mean_squared_error == pytest.approx(found.standard_error**2)
    assert found.standard_error < unbiased.standard_error
    assert 0 < found.from_model < 1
    assert np.isnan(found.low) and np.isnan(found.high)
    assert found.as_dict()["low"] is None and found.as_dict()["high"] is None
    words = f"root mean squared error {found.standard_error:,.1f}"
    assert words in str(found) and words in found._repr_html_()
    assert "interval" not in str(found) and "nan" not in (str(found) + found._repr_html_()).lower()
    assert "root mean squared error" not in str(unbiased) + unbiased._repr_html_()
    assert found.remarks[-1] == LEANS


def test_every_way_of_asking_gives_the_same_answer(release):
    one = release.count(**ASKED, estimator="model")
    rows = release.crosstab(["home", "work"], job="nurse", estimator="model")
    by_value = release.crosstab(["home", "work", "job"], estimator="model")
    sql = "SELECT count(*) FROM release WHERE home = 'h03' AND work = 'w05' AND job = 'nurse'"
    written = "SELECT count(*) FROM release WHERE home LIKE 'h03%' AND work = 'w05' AND job='nurse'"
    many = release.count_many([ASKED, sql, written, {"sex": "F"}], estimator="model")
    found = [rows["h03", "w05"], by_value["h03", "w05", "nurse"], *many[:3],
             release.sql(sql, estimator="model")]  # fmt: skip
    for other in found:
        assert other.count == pytest.approx(one.count)
        assert other.mean_squared_error == pytest.approx(one.mean_squared_error)
    assert many[3].exact
    table = rows.to_arrow()
    assert "mean_squared_error" in table.column_names and table["low"].null_count == len(rows)
    assert "root mean squared error" in str(rows) and "root mean" in rows._repr_html_()
    assert "nan" not in (str(rows) + rows._repr_html_()).lower()


def test_rows_that_add_up_cells_lean_less_than_cells(release):
    sets = {"home": HOMES[:3], "work": WORK[:2], "job": ["nurse", "baker"]}
    found = release.count(**sets, estimator="model")
    cell = release.count(home="h00", work="w00", job="nurse", estimator="model")
    assert found.mean_squared_error is not None
    assert 0 < found.from_model < cell.from_model


def test_totals_beside_leaning_counts_are_unbiased(release):
    asked = {"by": ["home", "work"], "job": "nurse", "estimator": "model"}
    table = release.crosstab(**asked, totals=True)
    assert [one.count for _, one in table] == [one.count for _, one in release.crosstab(**asked)]
    total, unbiased = table.total(home="h03"), release.count(home="h03", job="nurse")
    assert (total.count, total.low, total.high) == (unbiased.count, unbiased.low, unbiased.high)
    assert any("it is a total" in remark for remark in total.remarks)
    assert "root mean squared error" in str(table) and "nan" not in str(table).lower()


def test_what_asks_about_public_columns_alone_stays_exact(release):
    got = release.count(home="h03", work="w05", estimator="model")
    assert got.exact and got.estimator == "exact" and got.mean_squared_error is None
    nobody = release.count("home = 'h03' AND home = 'h04' AND work = 'w01'", job="nurse",
                           estimator="model")  # fmt: skip
    assert nobody.count == 0 and nobody.exact


@pytest.mark.parametrize("asked", [{"home": "h03", "job": "nurse"}, {"job": "nurse"}])
def test_over_one_column_it_is_the_unbiased_count(release, asked):
    found, unbiased = release.count(**asked, estimator="model"), release.count(**asked)
    assert (found.count, found.low, found.high) == (unbiased.count, unbiased.low, unbiased.high)
    assert found.estimator == "mle" and "two public columns" in found.remarks[-1]


def test_the_command_line(cli, release, tmp_path):
    sql = "SELECT count(*) FROM release WHERE home = 'h03' AND work = 'w05' AND job = 'nurse'"
    done = cli("query", release.path, sql, "--estimator", "model", "--json")
    want, got = release.sql(sql, estimator="model"), json.loads(done.out)
    assert got["mean_squared_error"] == pytest.approx(want.mean_squared_error)
    assert got["low"] is None
    batch = tmp_path / "batch.csv"
    batch.write_text("home,work,job\nh03,w05,nurse\nh03,,nurse\n")
    answers = tmp_path / "answers.csv"
    done = cli("query", release.path, "--batch", batch, "--out", answers, "--estimator", "model")
    assert done.code == 0
    first, second = csv.DictReader(answers.read_text().splitlines())
    assert float(first["mean_squared_error"]) == pytest.approx(want.mean_squared_error)
    assert (first["estimator"], second["estimator"]) == ("model", "mle")
    assert first["low"] == "" and float(second["low"]) > 0
    assert second["mean_squared_error"] == "" and "two public columns" in second["remarks"]


def test_the_former_name_is_refused_with_the_new_one(cli, release):
    with pytest.raises(PolicyError, match="Use 'model', which has replaced it"):
        release.count(**ASKED, estimator="smooth")
    done = cli("query", release.path, "SELECT count(*) FROM release", "--estimator", "smooth")
    assert done.code == 2 and "Use 'model'" in done.err


# --- where it is refused -------------------------------------------------------------------------


def test_a_release_with_secret_trials_is_refused():
    with pytest.raises(InputError, match="'paper' keeps secret"):
        people_release("paper").count(age=20, Sex="F", job="nurse", estimator="model")


def test_a_release_with_protection_groups_is_refused(tmp_path):
    policy = rp.Policy(
        retention=0.5, tolerance=0.5, doubt=0.3, sampling="public", protect={"home": 2}
    )
    codes = town().to_pandas().assign(home=lambda t: t["home"].str[1:].astype(int))
    table = pa.Table.from_pandas(codes, preserve_index=False)
    with rp.read(table, sensitive="job", public="all") as opened:
        release = opened.publish(policy, tmp_path / "release", key=numbered_key(1))
    with pytest.raises(InputError, match="protection groups"):
        release.count(home=3, work="w05", job="nurse", estimator="model")


@pytest.mark.parametrize(
    "ask",
    [
        lambda r: r.share(home="h03", work="w05", job="nurse", estimator="model"),
        lambda r: r.compare("home = 'h03'", "home = 'h04'", job="nurse", estimator="model"),
        lambda r: r.sql("SELECT share(*) FROM release WHERE job = 'nurse'", estimator="model"),
        lambda r: r.crosstab(["home", "work"], job="nurse", estimator="model", shares="row"),
    ],
)
def test_figures_other_than_counts_are_refused(release, ask):
    with pytest.raises(InputError, match="made of unbiased counts"):
        ask(release)


def test_a_limit_on_intervals_is_refused(release):
    with pytest.raises(InputError, match="no intervals to be wide"):
        release.crosstab(["home", "work"], job="nurse", estimator="model", widest=10)


def test_the_studio_shows_the_error():
    from reconpriv.answers.beside_truth import BesideTruth
    from reconpriv.answers.tables import FigureTable
    from reconpriv.estimate.counts import Estimate
    from reconpriv.studio.steps.ask import answer_card

    shared = {"query": "", "kind": "count", "name": "count", "confidence": 0.95, "exact": False,
              "records": 100, "groups": 9, "trials": 80.0}  # fmt: skip
    leaning = Estimate(value=41.0, low=math.nan, high=math.nan, standard_error=math.sqrt(31.4),
                       estimator="model", mean_squared_error=31.4, **shared)  # fmt: skip
    unbiased = Estimate(value=43.0, low=20.0, high=60.0, standard_error=10.0, estimator="mle",
                        **shared)  # fmt: skip

    def card(*answers):
        rows = tuple(({"row": str(i)}, (one,)) for i, one in enumerate(answers))
        table = FigureTable(("row",), ("count",), rows)
        found = BesideTruth("Count", table, (40,) * len(rows), ())
        return str(answer_card(found)), found.inside

    page, inside = card(leaning, unbiased)
    assert "Root mean squared error" in page and "5.6" in page and "leaning on a model" in page
    assert inside == (None, True)
    assert "mean squared error" not in card(unbiased)[0]

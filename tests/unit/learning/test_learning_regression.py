"""Regression on releases: what it finds, how often its intervals hold, what it refuses."""

import hashlib
import json

import numpy as np
import pyarrow as pa
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression

import reconpriv as rp
from margin_fixtures import publish_in_memory
from query_fixtures import numbered_key, people, people_release, published_cube
from reconpriv.answers.answerer import Answerer
from reconpriv.cells.cube import collect
from reconpriv.errors import InputError, PolicyError
from reconpriv.estimate.counts import Design
from reconpriv.estimate.measurements import prepare_margins
from reconpriv.learning.fits import linear_of, logistic_of
from reconpriv.learning.fitting import Options, gather

P = 0.5
KEYS = 50
WRONG = 12  # of these also with a wrong p
FEW = {"few": ["baker", "clerk", "pilot", None]}
SIZES = ("none", "octave", "public")


@pytest.fixture(scope="module")
def town():
    """6,000 records whose model is only roughly right, as a cube of true counts."""
    rng = np.random.default_rng(5)
    n = 8_000
    age, place = rng.integers(0, 8, n), rng.integers(0, 20, n)
    sex = rng.choice(["F", "M"], n, p=[0.7, 0.3])
    score = np.stack([0.1 * age, 0.6 * (sex == "F") + 0.03 * age**2, np.full(n, 0.3)], axis=1)
    chance = np.exp(score) / np.exp(score).sum(axis=1, keepdims=True)
    job = np.array(["a", "b", "c"])[(rng.random(n)[:, None] > chance.cumsum(axis=1)).sum(axis=1)]
    table = pa.table({"age": age, "sex": sex, "place": place, "job": job})
    with rp.read(table, sensitive="job", public="all") as opened:
        return collect(opened.batches(), opened.schema), table.to_pandas()


def publications(raw, size):
    policy = rp.Policy(retention=P, tolerance=0.5, doubt=0.3, sampling=size)
    for number in range(KEYS):
        key = rp.Key(hashlib.sha256(f"regression {number}".encode()).digest())
        yield published_cube([raw.as_batch()], raw.schema, policy, key)


def answerer_of(cube, retention=P):
    return Answerer(cube, Design(retention, cube.schema.domain_size, "octave"))


def fitted(fit, answerer, outcome, *features, **chosen):
    return fit(answerer, answerer.select(None, {}), outcome, features, Options(**chosen))


def fits(answerer):
    """A logistic, a multinomial and a linear fit, as one list of coefficients."""
    fixed = {"job": "c"}
    return (
        *fitted(logistic_of, answerer, "b", "age", "sex").coefficients,
        *fitted(logistic_of, answerer, "job", "age", "sex", reference=fixed).coefficients,
        *fitted(linear_of, answerer, "age", "sex", "job", reference=fixed).coefficients,
    )


def test_raw_records_give_the_fits_of_scikit_learn(town):
    raw, records = town
    answerer = answerer_of(raw, 1.0)
    found = fitted(logistic_of, answerer, ["b", "c"], "age", "sex")
    x = np.column_stack([records["age"], records["sex"] == "M"])
    theirs = LogisticRegression(C=np.inf, tol=1e-10, max_iter=1_000).fit(x, records["job"] != "a")
    assert list(found.params) == ["Intercept", "age", "sex[M]"]
    assert list(found.params.values()) == pytest.approx(
        [*theirs.intercept_, *theirs.coef_[0]], abs=1e-4
    )
    line = fitted(linear_of, answerer, "age", "sex", "job", reference={"job": "a"})
    dummies = np.column_stack([records["sex"] == "M", records["job"] == "b", records["job"] == "c"])
    ordinary = LinearRegression().fit(dummies, records["age"])
    assert list(line.params.values()) == pytest.approx([ordinary.intercept_, *ordinary.coef_])


@pytest.mark.parametrize("size", SIZES)
def test_intervals_cover_the_raw_fit_and_fail_for_a_wrong_retention(town, size):
    raw, _ = town
    true = [one.estimate for one in fits(answerer_of(raw, 1.0))]
    covered = {P: [], 0.7 * P: [], 1.3 * P: []}
    for number, cube in enumerate(publications(raw, size)):
        for retention, held in covered.items():
            if retention != P and number >= WRONG:
                continue
            try:
                found = fits(answerer_of(cube, retention))
            except InputError:  # a separation, which a p that is too small brings about
                assert retention < P
                continue
            held += [one.low <= value <= one.high for one, value in zip(found, true, strict=True)]
    assert len(covered[P]) == KEYS * 13
    assert 0.92 < np.mean(covered[P]) < 0.98
    assert np.mean(covered[0.7 * P]) < 0.9
    assert np.mean(covered[1.3 * P]) < 0.9


@pytest.mark.parametrize("size", ["none", "paper", "octave", "public"])
def test_a_release_is_answered_whatever_its_sampling(size):
    release = people_release(size)
    found = release.logistic("nurse", ["age", "Sex"])
    assert found.conf_int()["Sex[M]"][1] < 0  # fewer men are nurses
    assert found.pvalues["Sex[M]"] < 0.001
    assert found.records == release.records
    assert found.reference == {"Sex": "F"}
    assert any("approximate" in remark for remark in found.remarks) == (size == "paper")
    linear = release.linear("age", ["Sex", "job"], merge=FEW)
    assert set(linear.reference) == {"Sex", "job"}
    assert list(linear.bse) == list(linear.params)


def test_a_model_of_public_columns_alone_is_exact():
    found = people_release("octave").linear("age", ["Sex"])
    frame = people().to_pandas()
    means = frame.groupby("Sex")["age"].mean()
    assert found.params["Intercept"] == pytest.approx(means["F"])
    assert found.params["Sex[M]"] == pytest.approx(means["M"] - means["F"])
    assert found.bse["Sex[M]"] == 0.0 and found.pvalues["Sex[M]"] is None
    assert found.remarks == ("exact: the model uses public columns alone",)
    assert "coin flips" in people_release("paper").linear("age", ["Sex"]).remarks[0]


def test_numbers_can_be_categories_and_references_chosen():
    release = people_release("none")
    found = release.logistic("nurse", "C(age)", "age < 23", reference={"age": 21})
    assert list(found.params) == ["Intercept", "age[20]", "age[22]"]
    other = release.logistic("nurse", "C(age)", "age < 23", reference={"age": "20"})
    assert other.params["age[21]"] == pytest.approx(-found.params["age[20]"], abs=1e-4)
    assert found.features == ("C(age)",)


def test_merged_values_are_a_class():
    release = people_release("none")
    two = {"rest": ["baker", "clerk", "pilot", None]}
    merged = release.logistic("job", ["Sex"], merge=two, reference={"job": "rest"})
    single = release.logistic("nurse", ["Sex"])
    assert list(merged.params) == [("nurse", "Intercept"), ("nurse", "Sex[M]")]
    assert list(merged.params.values()) == pytest.approx(list(single.params.values()))
    assert list(merged.bse.values()) == pytest.approx(list(single.bse.values()))


def test_a_condition_restricts_the_records():
    found = people_release("octave").logistic("nurse", ["age"], Sex="F")
    assert found.condition == "Sex = 'F'"
    assert found.records == sum(sex == "F" for sex in people()["Sex"].to_pylist())


def test_a_wider_confidence_makes_wider_intervals_of_the_same_estimates():
    release = people_release("public")
    usual, wide = (release.logistic("pilot", ["Sex"], confidence=c) for c in (0.95, 0.99))
    assert usual.params == wide.params and usual.pvalues == pytest.approx(wide.pvalues)
    for name, (low, high) in usual.conf_int().items():
        assert wide.conf_int()[name][0] < low < high < wide.conf_int()[name][1]


def test_an_infinite_limit_is_said_and_is_null_in_json(town):
    """A count that is not clearly above 0 has a log-odds without a lower limit."""
    raw, _ = town
    for cube in publications(raw, "public"):
        answerer = answerer_of(cube, 0.3)  # so that estimates come close to 0
        try:
            found = fitted(logistic_of, answerer, "a", "C(age)", "sex")
        except InputError:
            continue
        if any(np.isinf(one.low) for one in found.coefficients):
            break
    assert any("infinite limit" in remark for remark in found.remarks)
    assert None in [one["low"] for one in json.loads(json.dumps(found.as_dict()))["coefficients"]]


def test_the_table_reads_like_that_of_statsmodels():
    found = people_release("octave").logistic("nurse", ["age", "Sex"])
    text = str(found)
    assert text.startswith("Logistic regression of job = nurse on age, Sex")
    assert "coef  std err" in text and "P>|z|" in text and "[0.025" in text and "0.975]" in text
    assert "note: intervals and p-values are about the fit on the original table" in text
    assert "<table" in found._repr_html_() and "Sex[M]" in found._repr_html_()
    several = people_release("none").logistic("job", ["Sex"])
    assert "job = (missing)" in str(several)
    assert json.loads(json.dumps(several.as_dict()))["reference"]["job"] == "nurse"


@pytest.mark.parametrize(
    ("method", "arguments", "words"),
    [
        ("logistic", ("nurse", ["agee"]), "no column 'agee'"),
        ("logistic", ("nurze", ["age"]), "Did you mean 'nurse'"),
        ("logistic", ("nurse", []), "no feature"),
        ("logistic", ("nurse", ["age", "C(age)"]), "named twice"),
        ("logistic", ("nurse", ["job"]), "both the target and a feature"),
        ("logistic", ("Sex", ["age"]), "is a public column"),
        ("logistic", (["baker", "clerk", "nurse", "pilot", None], ["age"]), "every value"),
        ("logistic", ([], ["age"]), "no value"),
        ("logistic", ("nurse", ["age"], "age > 99"), "No record satisfies"),
        ("logistic", ("nurse", ["age", "Sex"], "age = 20"), "explains nothing"),
        ("logistic", ("nurse", ["age"], "job = 'nurse'"), "randomised"),
        (
            "logistic",
            ("nurse", ["age"], "job <> 'pilot'"),
            "ask for shares and averages by GROUP BY",
        ),
        ("linear", ("age", ["Sex"], "job <> 'pilot'"), "ask for shares and averages by GROUP BY"),
        ("logistic", ("baker", ["C(age)", "Sex", "region"]), "no finite fit (separation)"),
        ("linear", ("Sex", ["age"]), "holds string values"),
        ("linear", ("job", ["age"]), "Fit a logistic regression with it as the target."),
        ("linear", ("agee", ["Sex"]), "no column 'agee'"),
        ("linear", ("age", ["age", "job"]), "both the outcome and a feature"),
        ("linear", ("age", ["Sex"], "age = 20"), "nothing to explain"),
        ("linear", ("age", ["job"], "age < 22 AND Sex = 'M'"), "too rare for this release"),
    ],
)
def test_what_cannot_be_fitted_is_refused_in_a_sentence(method, arguments, words):
    with pytest.raises(InputError) as refused:
        getattr(people_release("octave"), method)(*arguments)
    assert words in str(refused.value)
    assert str(refused.value).count(". ") <= 1  # a sentence and a hint


def test_a_sensitive_number_is_averaged_where_it_cannot_be_the_outcome(tmp_path):
    """The refusal names questions that are answered."""
    with rp.read(people(), sensitive="age", public=["Sex", "region"]) as table:
        release = table.publish(
            rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3), tmp_path / "r", key=numbered_key(1)
        )
    with pytest.raises(InputError) as refused:
        release.linear("age", ["Sex"])
    assert "Ask for avg(age) GROUP BY Sex, or fit a logistic regression" in str(refused.value)
    assert len(release.sql("SELECT Sex, avg(age) FROM release GROUP BY Sex")) == 2
    assert release.logistic([20, 21], ["Sex"]).kind == "logistic"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"merge": {"nurse": ["pilot"]}}, "a name of their own"),
        ({"merge": {"x": ["pilot"], "y": ["pilot"]}}, "merged twice"),
        ({"merge": {"x": ["baker", "clerk", "nurse", "pilot", None]}}, "nothing to model"),
        ({"reference": {"age": 20}}, "not a category"),
        ({"reference": {"Sex": "X"}}, "no value 'X'"),
    ],
)
def test_bad_options_are_refused_in_a_sentence(options, words):
    with pytest.raises(InputError, match=words):
        people_release("octave").logistic("job", ["age", "Sex"], **options)
    with pytest.raises(PolicyError, match="confidence"):
        people_release("octave").linear("age", ["Sex", "job"], confidence=95)
    with pytest.raises(InputError, match="merged only if"):
        people_release("octave").logistic("nurse", ["Sex"], merge={"x": ["pilot"]})


def test_columns_that_follow_from_others_are_refused(tmp_path):
    frame = people().to_pandas()
    frame["older"] = 2 * frame["age"] + 1
    frame["one"] = np.where(frame["region"].isna(), np.nan, 1.0)
    with rp.read(frame, sensitive="job", public="all", missing="value") as table:
        release = table.publish(
            rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3), tmp_path / "r", key=rp.Key.test()
        )
    with pytest.raises(InputError, match="collinear: older follows"):
        release.logistic("nurse", ["age", "older"])
    with pytest.raises(InputError, match="missing values"):
        release.logistic("nurse", ["one"])
    with pytest.raises(InputError, match="explains nothing"):
        release.logistic("nurse", ["age", "one"], "one IS NOT NULL")


def test_too_many_parameters_are_refused(monkeypatch):
    monkeypatch.setattr("reconpriv.learning.fitting._MOST_PARAMETERS", 10)
    with pytest.raises(InputError, match="too many parameters: 12"):
        people_release("octave").logistic("job", ["Sex", "age"])


def test_protection_groups_are_used_as_they_are(tmp_path):
    policy = rp.Policy(
        retention=0.5, tolerance=0.5, doubt=0.3, sampling="none", protect={"age": 5, "region": "*"}
    )
    with rp.read(people(), sensitive="job", public="all", missing="value") as table:
        release = table.publish(policy, tmp_path / "r", key=rp.Key.test())
    found = release.logistic("nurse", ["age", "Sex"])
    assert {name.split("[")[0] for name in found.params} == {"Intercept", "age", "Sex"}
    assert len(found.params) == 1 + 2 + 1  # bands of five years, the most frequent left out
    assert any("coarse values" in remark for remark in found.remarks)
    assert found.trials == sum(release.group_answerer.cube.trials)
    with pytest.raises(InputError, match="ignore column 'region'"):
        release.logistic("nurse", ["region"])
    with pytest.raises(InputError, match="holds bins"):
        release.linear("age", ["Sex", "job"])


def with_margins(raw, policy, number, noise=1.0):
    """A release in memory that is read as if the noise of its margins were so many times larger."""
    key = rp.Key(hashlib.sha256(f"regression with margins {number}".encode()).digest())
    made = publish_in_memory(raw, policy, key)
    variance = made.plan.variance * noise**2
    prepared = prepare_margins(made.cube, made.plan.published, variance, made.design)
    return Answerer(made.cube, made.design, prepared)


@pytest.mark.parametrize(
    "policy",
    [rp.Policy(retention=P, tolerance=0.5, doubt=0.3, margins=1.0), rp.preset("recommended")],
    ids=["octave", "recommended"],
)
def test_margins_narrow_intervals_that_still_cover_and_wrong_noise_does_not(town, policy):
    raw, _ = town
    true = np.array([one.estimate for one in fits(answerer_of(raw, 1.0))])
    held, narrower, squares = [], [], {0.7: [], 1.0: [], 1.3: []}
    for number in range(2 * KEYS):
        for noise, found in squares.items():
            if noise != 1.0 and number >= KEYS:
                continue
            both = fits(with_margins(raw, policy, number, noise))
            error = (np.array([one.estimate for one in both]) - true) ** 2
            found.append(error / np.array([one.standard_error for one in both]) ** 2)
            if noise == 1.0:
                alone = fits(answerer_of(with_margins(raw, policy, number).cells))
                held += [a.low <= t <= a.high for a, t in zip(both, true, strict=True)]
                pairs = zip(both, alone, strict=True)
                narrower.append([a.standard_error / b.standard_error for a, b in pairs])
    assert 0.92 < np.mean(held) < 0.98
    assert np.median(narrower, axis=0).max() < 0.5
    assert 0.8 < np.mean(squares[1.0]) < 1.2
    assert np.mean(squares[0.7]) > 1.4
    assert np.mean(squares[1.3]) < 0.85


def test_weights_are_those_of_dense_generalised_least_squares(town):
    raw, _ = town
    answerer = with_margins(raw, rp.preset("recommended"), 0)
    cube, margins = answerer.cube, answerer.measurements
    selected = answerer.select("age < 6", {})
    rows = gather(answerer, selected, ["sex", "age"])
    members = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 1.0]])
    q = np.random.default_rng(3).normal(size=(rows.sums.records.size, 4))
    inside = (rows.group_row >= 0)[:, None]
    asked = np.where(inside, q[rows.group_row], 0.0)
    holds = np.zeros((margins.rows, cube.groups))
    for table in margins.incidence(cube).rows.T:
        some = np.flatnonzero(table >= 0)
        holds[table[some], some] = 1.0
    one_trial, noise = margins.alike(members)
    unknown = np.diag(one_trial * cube.scale * cube.records)
    covariance = holds @ unknown @ holds.T + noise * np.eye(margins.rows)
    taken = np.linalg.solve(covariance, holds @ unknown @ asked)
    found = rows.evidence(members)
    assert found.weights(q) == pytest.approx(np.concatenate([asked - holds.T @ taken, taken]))
    # Classes add up to the records of a row, which are known.
    assert found.totals(q).sum(axis=1) == pytest.approx(q.T @ rows.sums.records)
    # Of two classes, the weights are the best ones for either.
    assert noise == pytest.approx(margins.noise(1))
    assert one_trial == pytest.approx(margins.one_trial(1, margins.shares[0]))


def test_a_fit_says_whether_it_used_margins(tmp_path, monkeypatch):
    with rp.read(people(), sensitive="job", public="all", missing="value") as table:
        release = table.publish("recommended", tmp_path / "r", key=rp.Key.test())
    found = release.logistic("nurse", ["age", "Sex"])
    alone = release.logistic("nurse", ["age", "Sex"], margins=False)
    assert found.margins and found.as_dict()["margins"] and "records and margins" in str(found)
    assert not alone.margins and "margins" not in str(alone)
    assert found.bse["Sex[M]"] < alone.bse["Sex[M]"]
    assert release.linear("age", ["job"], merge=FEW).margins
    assert not release.linear("age", ["Sex"]).margins  # exact as it is
    monkeypatch.setattr("reconpriv.learning.fitting.MOST_CELLS", 10)
    many = release.logistic("nurse", ["age", "Sex"])
    assert many.params == alone.params
    assert any("margins are not used: " in remark for remark in many.remarks)

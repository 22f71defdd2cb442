"""Naive Bayes on reconstructed distributions: the contract of scikit-learn, and the mathematics."""

import json
import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.metrics import log_loss
from sklearn.naive_bayes import CategoricalNB
from sklearn.utils.estimator_checks import check_estimator

import reconpriv as rp
from query_fixtures import JOBS, SAMPLING_RULES, people, people_release
from reconpriv.errors import InputError, PolicyError
from reconpriv.learning import ReconstructedNaiveBayes
from reconpriv.learning.distributions import (
    CrossTable,
    reconstructed_table,
    sensitive_counts,
    shrink_to_independence,
)
from reconpriv.learning.from_release import learn_tables

P = 0.4
DOMAIN = list("ABCDEF")


@pytest.mark.parametrize(
    "estimator",
    [
        ReconstructedNaiveBayes(),
        ReconstructedNaiveBayes(retention=0.6),
        ReconstructedNaiveBayes(retention=0.9, sensitive=0),
    ],
    ids=["raw", "target randomised", "feature randomised"],
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
def test_it_passes_every_check_of_scikit_learn(estimator):
    # The one check that is not run wants the array API switched on in scipy before its import.
    results = check_estimator(estimator, on_skip=None)
    assert len(results) > 50
    left = {r["check_name"] for r in results if r["status"] != "passed"}
    assert left <= {"check_array_api_input"}


records = st.integers(1, 3).flatmap(
    lambda columns: st.lists(
        st.tuples(*[st.integers(0, 3)] * columns, st.integers(0, 2)), min_size=4, max_size=30
    )
)


@given(records, st.sampled_from([0.5, 1.0, 3.0]))
@settings(max_examples=60, deadline=None)
def test_on_raw_records_it_is_scikit_learns_categorical_naive_bayes(rows, alpha):
    table = np.array(rows)
    # CategoricalNB numbers categories from 0 without a gap, so give it those that occur.
    X = np.column_stack([np.unique(c, return_inverse=True)[1] for c in table[:, :-1].T])
    y = table[:, -1]
    # A class with fewer records than alpha is floored here, and not there.
    if np.unique(y, return_counts=True)[1].min() < alpha:
        alpha = 1.0
    theirs = CategoricalNB(alpha=alpha).fit(X, y)
    mine = ReconstructedNaiveBayes(alpha=alpha).fit(X, y)
    assert mine.classes_.tolist() == theirs.classes_.tolist()
    assert mine.class_log_prior_ == pytest.approx(theirs.class_log_prior_)
    for a, b in zip(mine.feature_log_prob_, theirs.feature_log_prob_, strict=True):
        assert a == pytest.approx(b)
    assert mine.predict_proba(X) == pytest.approx(theirs.predict_proba(X))
    assert mine.predict_joint_log_proba(X) == pytest.approx(theirs.predict_joint_log_proba(X))
    # Two classes may be equally probable but for rounding; which comes first is then open.
    best = theirs.predict_proba(X).max(axis=1, keepdims=True)
    clear = (theirs.predict_proba(X) > best - 1e-9).sum(axis=1) == 1
    assert (mine.predict(X) == theirs.predict(X))[clear].all()
    assert mine.score(X, y) == np.mean(mine.predict(X) == y)


@given(st.lists(st.lists(st.integers(0, 50), min_size=3, max_size=3), min_size=2, max_size=4),
       st.floats(0.2, 1.0))  # fmt: skip
@settings(max_examples=60, deadline=None)
def test_reconstruction_solves_the_perturbation_along_the_sensitive_axis(table, retention):
    observed = np.array(table, dtype=float)
    matrix = retention * np.eye(3) + (1 - retention) / 3
    solved = np.linalg.solve(matrix, observed.T).T
    by_class = reconstructed_table(observed, retention, along_classes=True)
    by_value = reconstructed_table(observed.T, retention, along_classes=False)
    assert by_class.counts == pytest.approx(solved, abs=1e-9)
    assert by_value.counts == pytest.approx(solved.T, abs=1e-9)
    assert by_value.variances == pytest.approx(by_class.variances.T)


def randomised(values, p, rng, domain=DOMAIN):
    kept = rng.random(len(values)) < p
    return np.where(kept, values, rng.choice(np.array(domain), len(values)))


def test_what_is_only_noise_is_shrunk_away_and_what_is_not_is_kept():
    rng = np.random.default_rng(1)
    expected = np.outer([400.0, 300.0, 200.0, 100.0] * 5, [0.5, 0.3, 0.2])
    variances = np.full(expected.shape, 25.0)
    noise = rng.normal(0.0, 5.0, expected.shape)
    classes = expected.sum(axis=0)
    _, kept = shrink_to_independence(CrossTable(expected + noise, variances), classes)
    assert kept.max() < 0.5
    signal = 60.0 * np.cos(np.arange(20))[:, None] * np.array([1.0, -1.0, 0.0])
    shrunk, kept = shrink_to_independence(CrossTable(expected + signal + noise, variances), classes)
    assert kept[:2].min() > 0.95
    assert kept[2] < 0.5
    # Nearer to the truth than the counts as they came.
    wrong = np.square(shrunk - expected - signal).sum(axis=0)
    assert wrong[2] < 0.5 * np.square(noise[:, 2]).sum()
    assert wrong.sum() < np.square(noise).sum()


@pytest.mark.parametrize("sensitive_target", [True, False])
def test_noise_alone_is_nearer_to_independence_than_shrinking_allows_for(sensitive_target):
    """E rests on the same counts, so the mean distance is k - 1 or k(1 - N_c/N), and never k."""
    rng = np.random.default_rng(8)
    rows, m = np.array([0.75, 0.2, 0.05]), 6
    truth = np.outer(60_000 * rows, [0.4, 0.2, 0.1, 0.1, 0.1, 0.1]).round().astype(int)
    matrix = 0.3 * np.eye(m) + 0.7 / m
    predicted = np.full(m, 2.0) if sensitive_target else m * (1 - rows)
    distances, kept = [], []
    for _ in range(1_500):
        observed = sum(rng.multinomial(truth[:, v], matrix[v]) for v in range(m)).astype(float)
        if sensitive_target:
            classes = sensitive_counts(observed.sum(axis=0), 0.3)
        else:
            observed, classes = observed.T, observed.sum(axis=1)
        table = reconstructed_table(observed, 0.3, along_classes=sensitive_target)
        expected = np.outer(table.counts.sum(axis=1), classes) / classes.sum()
        distances.append(((table.counts - expected) ** 2 / table.variances).sum(axis=0))
        kept.append(shrink_to_independence(table, classes)[1])
    mean = np.mean(distances, axis=0)
    print(mean, predicted, np.mean(kept, axis=0))
    # A mean of 1,500 has a standard error of 4 % at most.
    assert mean == pytest.approx(predicted, rel=0.16)
    for wrong in (0.7, 1.3):
        assert mean != pytest.approx(wrong * predicted, rel=0.16)
    # So less is kept than 1 - d/Σ would keep.
    exact = np.clip(1 - predicted / np.array(distances), 0, 1).mean(axis=0)
    assert (np.mean(kept, axis=0) < exact).all()


@pytest.fixture(scope="module")
def town():
    """20,000 records: what the sensitive value tells about colour and size, and true test rows."""
    rng = np.random.default_rng(3)
    value = rng.choice(6, 25_000, p=[0.4, 0.25, 0.15, 0.1, 0.06, 0.04])
    colour = np.where(rng.random(25_000) < 0.6, value % 3, rng.integers(0, 3, 25_000))
    size = np.where(rng.random(25_000) < 0.5, value, rng.integers(0, 8, 25_000))
    frame = pd.DataFrame(
        {"colour": np.array(["red", "green", "blue"])[colour], "size": size,
         "value": np.array(DOMAIN)[value]}
    )  # fmt: skip
    published = frame[:20_000].assign(value=randomised(frame["value"][:20_000], P, rng))
    return frame[:20_000], published, frame[20_000:]


def loss(model, test, target):
    names = [name for name in test.columns if name != target]
    return log_loss(test[target], model.predict_proba(test[names]), labels=model.classes_)


def distance(model, other):
    """The mean difference of all learned probabilities."""
    pairs = zip(
        [model.class_log_prior_, *model.feature_log_prob_],
        [other.class_log_prior_, *other.feature_log_prob_],
        strict=True,
    )
    return np.mean([np.abs(np.exp(a) - np.exp(b)).mean() for a, b in pairs])


@pytest.mark.parametrize("target", ["value", "colour"])
def test_reconstruction_comes_near_the_raw_records_where_naive_use_does_not(town, target):
    raw, published, test = town
    names = [name for name in raw.columns if name != target]
    sensitive = None if target == "value" else "value"

    def learned(p, frame):
        model = ReconstructedNaiveBayes(retention=p, sensitive=sensitive, domain=DOMAIN)
        return model.fit(frame[names], frame[target])

    best, naive, honest = learned(1.0, raw), learned(1.0, published), learned(P, published)
    losses = [loss(model, test, target) for model in (best, honest, naive)]
    print(target, losses, distance(honest, best))
    assert losses[1] < losses[0] + 0.2 * (losses[2] - losses[0])
    # A retention that is off by 30 % is found out, in either direction.
    for wrong in (0.7 * P, 1.3 * P):
        print(wrong, distance(learned(wrong, published), best))
        assert distance(learned(wrong, published), best) > 1.3 * distance(honest, best)


@pytest.mark.parametrize("size", SAMPLING_RULES)
def test_tables_of_a_release_are_its_cross_tables(size):
    release = people_release(size)
    jobs = release.naive_bayes()
    assert jobs.classes_.tolist() == list(JOBS)
    assert jobs.feature_names_in_.tolist() == ["age", "Sex", "region"]
    constrained = release.frequencies(estimator="constrained")
    assert jobs.class_count_ == pytest.approx([e.count for _, e in constrained])
    learned = learn_tables(release, None, ["Sex"], None)
    cross = release.crosstab(["Sex", "job"])
    assert learned.tables[0].counts.ravel() == pytest.approx([e.count for _, e in cross])
    errors = np.sqrt(learned.tables[0].variances).ravel()
    assert errors == pytest.approx([e.standard_error for _, e in cross])


def test_public_attributes_given_the_sensitive_one():
    release = people_release("octave")
    model = release.naive_bayes("Sex", ["region", "job"])
    assert model.classes_.tolist() == ["F", "M"]
    assert model.sensitive == "job"
    raw = people().to_pandas()
    assert model.class_count_.tolist() == raw["Sex"].value_counts().sort_index().tolist()
    counts = pd.crosstab(raw["region"].fillna("~"), raw["Sex"]).to_numpy() + 1.0
    assert np.exp(model.feature_log_prob_[0].T) == pytest.approx(counts / counts.sum(axis=0))
    nurse = model.categories_[1].tolist().index("nurse")
    by_sex = pd.crosstab(raw["Sex"], raw["job"].fillna("~"), normalize="index")["nurse"]
    assert np.exp(model.feature_log_prob_[1][:, nurse]) == pytest.approx(by_sex, abs=0.15)
    assert model.kept_[0].tolist() == [1.0, 1.0]
    assert (model.kept_[1] < 1.0).all()


def test_a_release_that_is_only_perturbed_is_learned_like_its_rows():
    release = people_release("none")
    rows = release.to_pandas()
    model = release.naive_bayes("Sex")
    again = clone(model).fit(rows[["age", "region", "job"]], rows["Sex"])
    assert again.retention == 0.5
    for a, b in zip(model.feature_log_prob_, again.feature_log_prob_, strict=True):
        assert a == pytest.approx(b)


def test_a_missing_value_may_be_a_class():
    model, raw = people_release("octave").naive_bayes(), people()
    X = raw.select(["age", "Sex", "region"])
    share = np.mean(model.predict(X) == np.array(raw["job"].to_pylist(), dtype=object))
    assert model.score(X, raw["job"].to_pylist()) == pytest.approx(share)
    assert model.score(X, raw["job"]) == model.score(X, raw.to_pandas()["job"]) > 0.3
    only_nurses = np.array([job == "nurse" for job in raw["job"].to_pylist()])
    weighted = model.score(X, raw["job"], sample_weight=only_nurses)
    assert weighted == pytest.approx(
        model.score(X.filter(only_nurses), ["nurse"] * sum(only_nurses))
    )


def test_cells_on_disk_teach_the_same(monkeypatch):
    release = people_release("octave")
    monkeypatch.setattr("reconpriv.release.load._IN_MEMORY", 1_000)
    stored = rp.open(release.path)
    assert not hasattr(stored.answerer.cells, "codes")  # not held in memory
    for target in (None, "Sex"):
        here, there = release.naive_bayes(target), stored.naive_bayes(target)
        for a, b in zip(here.feature_log_prob_, there.feature_log_prob_, strict=True):
            assert a == pytest.approx(b)
    columns = ["Sex", "region"]
    assert stored.chi_square(columns).p_value == pytest.approx(release.chi_square(columns).p_value)
    few = {"few": ["baker", "clerk", "pilot", None]}
    for run in (
        lambda one: one.logistic("nurse", ["age", "Sex"]),
        lambda one: one.linear("age", ["Sex", "job"], merge=few),
    ):
        here, there = run(release), run(stored)
        assert here.params == pytest.approx(there.params)
        assert here.bse == pytest.approx(there.bse)


def test_a_sampled_release_keeps_less_than_its_rows_pretend():
    release = people_release("public")
    rows = release.to_pandas()
    model = release.naive_bayes("Sex", ["job"])
    rows_as_trials = clone(model).fit(rows[["job"]], rows["Sex"])
    assert (model.kept_[0] < rows_as_trials.kept_[0]).all()


def test_where_the_randomised_column_takes_no_part_nothing_is_reconstructed():
    model = people_release("octave").naive_bayes("Sex", ["region"])
    assert (model.retention, model.sensitive, model.domain) == (1.0, None, None)
    raw = people().to_pandas()
    again = clone(model).fit(raw[["region"]], raw["Sex"])
    assert model.feature_log_prob_[0] == pytest.approx(again.feature_log_prob_[0])


def test_a_condition_restricts_what_is_learned():
    release = people_release("octave")
    model = release.naive_bayes("Sex", ["job", "age"], where="region = 'North'")
    assert model.class_count_.sum() == release.count(region="North").count
    with pytest.raises(InputError, match="No record"):
        release.naive_bayes("Sex", where="age = 99")
    with pytest.raises(InputError, match="randomised"):
        release.naive_bayes("Sex", where="job = 'nurse'")


def test_unseen_and_missing_values():
    X = np.array([["x", 1.0], ["x", np.nan], ["y", 1.0], ["y", 2.0]], dtype=object)
    model = ReconstructedNaiveBayes().fit(X, [0, 0, 1, 1])
    assert model.categories_[1].tolist() == [1.0, 2.0, None]
    prior = np.exp(model.class_log_prior_)
    # Neither value was seen: what remains is the prior. Missing was seen in the second column only.
    assert model.predict_proba([["z", 7.0]])[0] == pytest.approx(prior)
    assert model.predict_proba(np.array([[None, 7.0]], dtype=object))[0] == pytest.approx(prior)
    assert model.predict_proba(np.array([["z", None]], dtype=object))[0, 0] > 0.5


@pytest.fixture(scope="module")
def told_by_a_number(tmp_path_factory):
    """A release in which colour follows the number b, and the days d and times t do too."""
    rng = np.random.default_rng(0)
    b = rng.integers(0, 3, 3_000)
    day = pd.Timestamp("2024-05-01") + pd.to_timedelta(b, unit="D")
    frame = pd.DataFrame(
        {"b": b, "d": day.date, "t": day.astype("datetime64[us]"),
         "colour": np.where(b == 0, "red", "blue"), "s": rng.choice(["u", "v"], 3_000)}
    )  # fmt: skip
    with rp.read(frame, sensitive="s", public="all") as table:
        folder = tmp_path_factory.mktemp("numbers") / "r"
        policy = rp.Policy(retention=0.8, tolerance=0.5, doubt=0.3, sampling="none")
        return table.publish(policy, folder, key=rp.Key.test()), frame


@pytest.mark.parametrize(
    "convert",
    [list, tuple, pd.DataFrame, lambda rows: np.array(rows, dtype=object)],
    ids=["list", "tuple", "frame", "array of objects"],
)
def test_numbers_beside_text_are_numbers(told_by_a_number, convert):
    release, _ = told_by_a_number
    model = release.naive_bayes("colour", ["b", "s"])
    rows = convert([[0, "u"], [1, "v"]])
    if isinstance(rows, pd.DataFrame):
        rows.columns = ["b", "s"]
        assert model.predict(rows).tolist() == ["red", "blue"]
        return
    with pytest.warns(UserWarning, match="feature names"):
        assert model.predict(rows).tolist() == ["red", "blue"]
    again = ReconstructedNaiveBayes().fit(rows, ["red", "blue"])
    assert again.categories_[0].tolist() == [0, 1]


def test_a_column_that_cannot_match_is_refused(told_by_a_number):
    release, frame = told_by_a_number
    model = release.naive_bayes("colour", ["b", "s"])
    with pytest.raises(InputError, match="'b' holds text, where numbers were learned"):
        model.predict(pd.DataFrame({"b": ["0"], "s": ["u"]}))
    # A value that was not seen, and one that is missing, are no such thing.
    assert model.predict(pd.DataFrame({"b": [9], "s": ["u"]})).size == 1
    assert model.predict(pd.DataFrame({"b": [None], "s": ["u"]})).size == 1
    days = release.naive_bayes("colour", ["d"])
    with pytest.raises(InputError, match="'d' holds times, where dates were learned"):
        days.predict(frame[["t"]].rename(columns={"t": "d"}))


@pytest.mark.parametrize("unit", ["s", "us", "ns"])
@pytest.mark.parametrize("names", [["t"], ["d"], ["d", "t"], ["t", "s"]], ids="-".join)
@pytest.mark.parametrize("convert", [pa.Table.from_pandas, pl.from_pandas, lambda frame: frame])
def test_days_and_times_are_what_they_were(told_by_a_number, convert, names, unit):
    release, frame = told_by_a_number
    model = release.naive_bayes("colour", names)
    rows = frame.head(200).assign(t=frame["t"].astype(f"datetime64[{unit}]"))
    assert model.score(convert(rows[names]), rows["colour"].tolist()) == 1.0
    again = ReconstructedNaiveBayes().fit(convert(rows[names]), rows["colour"].tolist())
    assert all((a == b).all() for a, b in zip(again.categories_, model.categories_, strict=True))
    assert again.feature_names_in_.tolist() == names


@pytest.mark.parametrize("convert", [pa.array, pl.Series, pd.Series, list, np.array])
@pytest.mark.parametrize("missing_first", [True, False])
def test_a_missing_target_is_a_class(convert, missing_first):
    labels = ["a", "a", "b", "b", None, None]
    X = [["x"], ["x"], ["y"], ["y"], ["z"], ["z"]]
    if missing_first:
        labels, X = labels[::-1], X[::-1]
    model = ReconstructedNaiveBayes().fit(X, convert(labels))
    assert model.classes_.tolist() == ["a", "b", None]
    assert model.class_count_.tolist() == [2, 2, 2]
    assert model.predict([["z"], ["x"]]).tolist() == [None, "a"]
    assert model.score(X, convert(labels)) == 1.0
    numbers = ReconstructedNaiveBayes().fit(X[:4], np.array([1.0, 1.0, 2.0, np.nan]))
    assert numbers.classes_.tolist() == [1.0, 2.0, None]
    with pytest.raises(InputError, match="missing in every record"):
        ReconstructedNaiveBayes().fit(X[:2], convert([None, None]))
    with pytest.raises(ValueError, match="infinity"):
        ReconstructedNaiveBayes().fit(X[:2], convert([float("inf"), float("nan")]))
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        ReconstructedNaiveBayes().fit(X[:3], convert(labels))


def test_a_weight_stands_for_so_many_records():
    X, y = np.array([["a"], ["b"], ["a"], ["c"]]), np.array([0, 1, 1, 1])
    weight = np.array([3, 2, 1, 0])
    model = ReconstructedNaiveBayes(retention=0.5).fit(X, y, sample_weight=weight)
    again = ReconstructedNaiveBayes(retention=0.5).fit(
        np.repeat(X, weight, 0), np.repeat(y, weight)
    )
    assert model.feature_log_prob_[0] == pytest.approx(again.feature_log_prob_[0])
    assert model.categories_[0].tolist() == ["a", "b"]


@pytest.mark.parametrize(
    ("parameters", "words", "error"),
    [
        ({"retention": 0.0}, "retention p", PolicyError),
        ({"retention": 1.2}, "retention p", PolicyError),
        ({"retention": "0.5"}, "retention p must be a number; got '0.5'", PolicyError),
        ({"alpha": None}, "smoothing α must be a number", PolicyError),
        ({"alpha": 0.0}, "smoothing", PolicyError),
        ({"sensitive": "job"}, "no column called 'job'", InputError),
        ({"sensitive": 4}, "no column 4", InputError),
        ({"domain": [1, "a"]}, "do not compare", InputError),
        ({"domain": ["a"]}, "'b', which is not in the domain", InputError),
        ({"sensitive": 0, "domain": ["x"]}, "'y', which is not in the domain", InputError),
    ],
)
def test_what_cannot_be_learned_is_refused_in_a_sentence(parameters, words, error):
    with pytest.raises(error, match=words):
        ReconstructedNaiveBayes(**parameters).fit(np.array([["x"], ["y"]]), ["a", "b"])


@pytest.mark.parametrize(
    ("target", "features", "words"),
    [
        ("Jobs", None, "no column 'Jobs'"),
        (None, ["height"], "no column 'height'"),
        ("Sex", ["Sex", "job"], "both the target and a feature"),
        ("Sex", [], "no feature"),
        ("Sex", ["job", "job"], "twice"),
    ],
)
def test_columns_of_a_release_are_checked(target, features, words):
    with pytest.raises(InputError, match=words):
        people_release("octave").naive_bayes(target, features)


def test_without_scikit_learn_the_message_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.base", None)
    monkeypatch.delitem(sys.modules, "reconpriv.learning.naive_bayes")
    with pytest.raises(InputError, match=r"-m pip install 'scikit-learn>="):
        people_release("octave").naive_bayes()
    assert people_release("octave").chi_square("Sex").p_value < 0.05  # needs none


def test_scikit_learn_is_imported_for_the_classifier_alone():
    code = (
        "import sys, reconpriv, reconpriv.release.release, reconpriv.learning;"
        "assert 'sklearn' not in sys.modules;"
        "reconpriv.learning.ReconstructedNaiveBayes; assert 'sklearn' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.fixture(scope="module")
def with_margins(tmp_path_factory):
    """A release of census workers, and other workers."""
    workers = pq.read_table(rp.dataset_path("census_workers")).select(
        ["Age", "Gender", "Education", "Marital", "Workclass", "Occupation"]
    )
    order = np.random.default_rng(1).permutation(workers.num_rows)
    train, test = workers.take(order[:30_000]), workers.take(order[30_000:40_000])
    policy = rp.Policy(retention=0.3, tolerance=0.5, doubt=0.3, margins=1.0)
    folder = tmp_path_factory.mktemp("margins") / "release"
    with rp.read(train, sensitive="Occupation", public="all") as table:
        return table.publish(policy, folder, key=rp.Key.test()), test


@pytest.mark.parametrize("estimator", ["mle", "records"])
def test_its_tables_are_the_counts_of_the_release(with_margins, estimator):
    release, _ = with_margins
    learned = learn_tables(release, None, None, None, margins=estimator == "mle")
    for name, table in zip(learned.features, learned.tables, strict=True):
        shown = release.crosstab([name, "Occupation"], estimator=estimator)
        counts = np.array([row.count for _, row in shown]).reshape(table.counts.shape)
        errors = np.array([row.standard_error for _, row in shown])
        assert table.counts == pytest.approx(counts)
        assert np.sqrt(table.variances).ravel() == pytest.approx(errors)
    given = learn_tables(release, "Gender", ["Occupation"], None, margins=estimator == "mle")
    gender = learned.tables[learned.features.index("Gender")]
    assert given.tables[0].counts == pytest.approx(gender.counts.T)


@pytest.mark.parametrize("target", ["Occupation", "Gender"])
def test_margins_make_it_no_worse(with_margins, target, cli, tmp_path):
    release, test = with_margins
    loss = {}
    for margins in (True, False):
        model = release.naive_bayes(target, margins=margins)
        rows = test.select([str(name) for name in model.feature_names_in_])
        found = model.predict_log_proba(rows)
        place = {value: i for i, value in enumerate(model.classes_.tolist())}
        truth = [place[value] for value in test[target].to_pylist()]
        loss[margins] = -found[np.arange(len(truth)), truth].mean()
    print(target, loss)
    assert loss[True] < loss[False]
    pq.write_table(test, tmp_path / "test.parquet")
    for option, margins in (("--margins", True), ("--no-margins", False)):
        done = cli("learn", release.path, "--target", target, "--test", tmp_path / "test.parquet",
                   option, "--json")  # fmt: skip
        assert json.loads(done.out)["test"]["log_loss"] == pytest.approx(loss[margins])

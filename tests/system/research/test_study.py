"""The study: committed results, a run, samples, a user's own extract, the command.

The run is on 20,000 people, which takes seconds; `make study` runs the whole census.
"""

from __future__ import annotations

import itertools
import json
import math
import os

import numpy as np
import pyarrow.parquet as pq
import pytest

import reconpriv as rp
from reconpriv.errors import InputError
from reconpriv.research import run as study
from reconpriv.research.data import ATTRIBUTES, census_population, own_population
from reconpriv.research.findings import errors, ratio_at_default, ratio_with_margins
from reconpriv.research.results import Result, read_result
from reconpriv.research.run import NAMES, judge, run_study
from reconpriv.research.setting import DEFAULT, METHODS, SWEEPS, sweep
from repository import ROOT

COMMITTED = ROOT / "docs" / "experiments"
BASES = ("EDU", "OCC")


WHOLE = bool(os.environ.get("RECONPRIV_STUDY"))


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        if not WHOLE:
            patch.setattr(study, "census_population", lambda: census_population(20_000))
        yield run_study(["all"], tmp_path_factory.mktemp("study") / "out", fast=True)


def committed_or(run, request):
    if request.param == "committed":
        return {name: read_result(COMMITTED / f"{name}.csv") for name in NAMES}
    return request.getfixturevalue(run).results


@pytest.fixture(scope="module", params=["committed", "ran"])
def results(request):
    return committed_or("ran", request)


@pytest.fixture(scope="module", params=["committed", *["ran"] * WHOLE])
def census(request):
    """What holds for the whole census alone."""
    return committed_or("ran", request)


def rises(values):
    return all(b >= a for a, b in itertools.pairwise(values)) and values[-1] > values[0]


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("parameter", SWEEPS)
def test_violations_rise_with_every_parameter(census, base, parameter):
    rows = census["violations"].select(base=base, parameter=parameter)
    assert [row["value"] for row in rows] == list(SWEEPS[parameter])
    assert rises([row["percent_groups"] for row in rows])


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("parameter", ["retention", "records"])
@pytest.mark.parametrize("method", ["UP", "RP"])
def test_error_falls_with_p_and_the_number_of_records(census, base, parameter, method):
    found = errors(census["error"], base, parameter, method)
    assert len(found) == 5
    # Neighbours may be level within the spread over keys; the ends may not.
    assert all(b <= a * 1.05 for a, b in itertools.pairwise(found))
    assert found[-1] < 0.85 * found[0]


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("parameter", ["epsilon", "delta"])
def test_up_does_not_depend_on_epsilon_and_delta(results, base, parameter):
    assert len(set(errors(results["error"], base, parameter, "UP"))) == 1


@pytest.mark.parametrize("base", BASES)
def test_the_paper_error_stays_within_1_6_of_up_at_the_defaults(census, base):
    assert 1.0 < ratio_at_default(census["error"], base, "RP") < 1.6


@pytest.mark.parametrize("base", BASES)
def test_not_leaking_costs_more_than_leaking(census, base):
    ratios = [ratio_at_default(census["error"], base, method) for method in METHODS]
    assert ratios[0] == 1 and ratios[1] < ratios[2] < ratios[3]


def test_the_committed_run_is_a_full_one():
    error = read_result(COMMITTED / "error.csv")
    assert {row["keys"] for row in error.rows} == {10}
    assert {row["queries"] for row in error.rows} == {5000}
    assert all(row["spread"] > 0 for row in error.rows)
    margins = read_result(COMMITTED / "margins.csv")
    assert {row["keys"] for row in margins.select(retention=0.5)} == {10}
    assert {row["queries"] for row in margins.rows} == {5000}


def test_simulated_tails_agree_with_exact_ones(results):
    rows = results["dp-tables"].rows
    assert len(rows) in (14 * 8, 2 * 14 * 8)  # 20,000 people have no groups of their own
    scores = [
        (row["simulated"] - row["exact"])
        / math.sqrt(row["exact"] * (1 - row["exact"]) / row["trials"])
        for row in rows
    ]
    assert np.abs(scores).max() < 5.5
    assert np.sqrt(np.mean(np.square(scores))) < 1.5


def test_our_groups_are_chosen_as_the_paper_chose_them(census):
    for base, least in (("EDU", 70), ("OCC", 100)):
        rows = census["dp-tables"].select(base=base, source="ours")
        frequencies = [row["frequency"] for row in rows]
        assert min(row["size"] for row in rows) > least
        assert frequencies == sorted(frequencies, reverse=True)
        assert all(row["frequency"] > row["frequency_in_table"] for row in rows)


def test_every_statement_gets_a_verdict_with_its_figures(results):
    findings = judge(results)
    assert {f.experiment for f in findings} == set(NAMES)
    assert all(f.verdict in ("holds", "holds in part", "does not hold", "measured")
               and f.evidence for f in findings)  # fmt: skip


def test_a_finding_that_does_not_hold_is_said_to_fail(ran):
    """The judge must be able to say no: turn the violations upside down."""
    rows = ran.results["violations"].rows
    flipped = tuple({**row, "percent_groups": -row["percent_groups"]} for row in rows)
    verdicts = [f.verdict for f in judge({"violations": Result("violations", flipped)})]
    assert "does not hold" in verdicts[:4]


@pytest.mark.parametrize(
    ("base", "method", "bar"),
    [("EDU", "octave", 0.6), ("OCC", "octave", 0.6), ("EDU", "public", 0.9)],
)
def test_with_margins_the_census_meets_the_bars(census, base, method, bar):
    assert ratio_with_margins(census["margins"], base, method) <= bar


def test_occupation_with_public_does_not_and_the_page_says_so(census):
    """Trials by size alone must be safe whatever a group holds, which costs most of the gain."""
    assert ratio_with_margins(census["margins"], "OCC", "public") > 0.9
    page = (ROOT / "docs" / "experiments.md").read_text(encoding="utf-8")
    page = " ".join(page.split())
    assert "OCC misses its bar with `public`" in page


def test_adult_does_not_and_the_page_says_so(results):
    assert ratio_with_margins(results["margins"], "ADULT", "octave") > 0.6
    verdicts = {f.statement: f.verdict for f in judge({"margins": results["margins"]})}
    assert [v for s, v in verdicts.items() if "Adult" in s] == ["does not hold"] * 2
    page = (ROOT / "docs" / "experiments.md").read_text(encoding="utf-8")
    page = " ".join(page.split())
    assert "Adult misses both bars" in page


def test_margins_do_not_help_the_adversary_and_normal_tails_predict_that(results):
    for row in results["margins"].select(retention=0.5):
        groups = row["keys"] * row["violating_groups"]
        if groups < 50:  # as of 20,000 people
            continue
        share = row["adversary"]
        # A few trials are not quite normal.
        slack = 0.02 + 3 * math.sqrt(share * (1 - share) / groups)
        assert abs(row["adversary_measured"] - share) < slack, row
        if row["margins"] == "published" and row["method"] != "none":
            (without,) = results["margins"].select(
                base=row["base"], retention=0.5, method=row["method"], margins="none"
            )
            assert share <= without["adversary"]
        if row["margins"] == "every row":
            assert row["over_limit"] == 1


def test_the_page_shows_the_committed_findings():
    committed = {name: read_result(COMMITTED / f"{name}.csv") for name in NAMES}
    page = (ROOT / "docs" / "experiments.md").read_text(encoding="utf-8")
    for finding in judge(committed):
        line = f"**{finding.verdict}** | {finding.evidence} |".replace("|D|", "\\|D\\|")
        assert line in page, finding


def test_a_run_writes_results_figures_and_pages(ran):
    names = {path.name for path in ran.files}
    assert {f"{name}.csv" for name in NAMES} <= names
    for figure in (
        "figure-1-distribution", "figure-2-violations-edu", "figure-3-error-edu",
        "figure-4-violations-occ", "figure-5-error-occ", "tables-4-5-ratio", "figure-6-margins",
    ):  # fmt: skip
        assert {f"{figure}.svg", f"{figure}.png"} <= names
    assert {"index.html", "experiments.md"} <= names
    page = (ran.folder / "index.html").read_text()
    assert "bootstrap of the census workers" in page
    assert page.count("<svg") == 7
    assert "http://" not in page.replace("http://www.w3.org", "").replace(
        "http://purl.org", "").replace("http://creativecommons.org", "")  # fmt: skip
    assert "bootstrap" in (ran.folder / "experiments.md").read_text()


def test_samples_are_nested_and_follow_the_weights():
    people = pq.read_table(rp.dataset_path("census_workers"))
    population = census_population(50_000)
    with population.sample("EDU", 20_000) as table:
        assert table.schema.records == 20_000
        assert [c.name for c in table.schema.columns] == [
            *(name for name in ATTRIBUTES if name != "Education"), "Education"]  # fmt: skip
    weight = people["Weight"].to_numpy()
    female = people["Gender"].to_numpy() == "Female"
    share = (weight * female).sum() / weight.sum()
    drawn = female[population.order].mean()
    assert abs(drawn - share) < 5 * math.sqrt(share * (1 - share) / 50_000)
    assert np.array_equal(census_population(1_000).order, population.order[:1_000])
    assert not np.array_equal(census_population(1_000, seed=1).order, population.order[:1_000])


def test_the_sweeps_leave_all_but_one_parameter_at_its_default():
    for parameter in SWEEPS:
        values = [(value, setting) for value, setting in sweep(parameter)]
        assert len(values) == 5 and DEFAULT in [setting for _, setting in values]


HEADER = "Occupation,Age,Gender,Education,Marital,Race,Workclass,Weight\n"


def own_extract(folder):
    lines = [
        f"{i % 5},{20 + i % 40},{'MF'[i % 2]},{(i * i) % 7},{i % 3},{i % 2},{i % 4},1.5\n"
        for i in range(3_000)
    ]
    path = folder / "extract.csv"
    path.write_text(HEADER + "".join(lines))
    return path


def test_a_users_own_extract_is_sampled_without_replacement(tmp_path):
    population = own_population(own_extract(tmp_path))
    assert population.largest == 3_000
    assert sorted(population.order.tolist()) == list(range(3_000))
    with population.sample("OCC", 3_000) as table:
        assert table.schema.domain == (0, 1, 2, 3, 4)
    with pytest.raises(InputError, match="3,000"):
        population.sample("EDU", 5_000)


def test_an_extract_that_lacks_a_column_is_refused(tmp_path):
    path = tmp_path / "short.csv"
    path.write_text("Age,Gender\n1,M\n2,F\n")
    with pytest.raises(InputError, match="Education"):
        own_population(path)


def test_the_command_runs_on_a_users_extract(cli, tmp_path):
    done = cli("experiment", "distribution", "violations", "--data", own_extract(tmp_path),
               "--out", tmp_path / "out", "--json")  # fmt: skip
    assert done.code == 0, done.err
    assert json.loads(done.out)["findings"]
    page = (tmp_path / "out" / "index.html").read_text()
    assert "given extract" in page and "bootstrap" not in page


@pytest.mark.parametrize("arguments", [["everything"], ["all", "--data", "nowhere.csv"]])
def test_a_wrong_experiment_or_file_is_one_sentence(cli, tmp_path, arguments):
    done = cli("experiment", *arguments, "--out", tmp_path / "out")
    assert done.code == 2
    assert done.err.startswith("error: ") and done.err.count("\n") == 1


def test_a_failed_study_leaves_no_folder(cli, tmp_path):
    bad = tmp_path / "bad.csv"
    bad.write_text("Age,Gender,Education,Marital,Race,Workclass,Occupation\n1,M,1,1,1,1,1\n" * 1)
    done = cli("experiment", "all", "--data", bad, "--out", tmp_path / "out")
    assert done.code == 2 and not (tmp_path / "out").exists()


def test_a_study_does_not_replace_what_it_did_not_make(cli, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "letter.txt").write_text("mine")
    for extra in ([], ["--overwrite"]):
        done = cli("experiment", "distribution", "--out", tmp_path / "out", *extra)
        assert done.code == 2
    assert (tmp_path / "out" / "letter.txt").read_text() == "mine"

"""Audits of the bundled census table against section 3 of the design and against pandas."""

from __future__ import annotations

import json
import stat
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from scipy.stats import binom

import reconpriv as rp

CENSUS = ["Age", "Gender", "Education", "Marital", "Race", "Workclass", "Occupation"]
GROUPS = {"Education": 39_376, "Occupation": 24_858}

GOLDEN = [
    ("Education", 0.5, 0.5, 0.30, "chernoff", 355, 25_813),
    ("Education", 0.9, 0.5, 0.30, "chernoff", 1_137, 49_506),
    ("Education", 0.5, 0.5, 0.14, "chernoff", 119, 12_678),
    ("Occupation", 0.5, 0.5, 0.30, "chernoff", 238, 40_614),
    ("Occupation", 0.1, 0.5, 0.30, "chernoff", 1, 362),
    ("Occupation", 0.5, 0.9, 0.30, "chernoff", 953, 73_659),
    ("Education", 0.5, 0.5, 0.30, "chernoff-full", 489, 31_249),
    ("Education", 0.9, 0.5, 0.30, "chernoff-full", 1_536, 57_517),
    ("Education", 0.5, 0.5, 0.14, "chernoff-full", 183, 16_889),
    ("Occupation", 0.5, 0.5, 0.30, "chernoff-full", 287, 45_301),
    ("Occupation", 0.1, 0.5, 0.30, "chernoff-full", 1, 362),
    ("Occupation", 0.5, 0.9, 0.30, "chernoff-full", 1_795, 87_910),
]


@pytest.mark.parametrize(("sensitive", "p", "eps", "delta", "bound", "groups", "records"), GOLDEN)
def test_golden_audit(census_tables, sensitive, p, eps, delta, bound, groups, records):
    report = census_tables(sensitive).audit(
        rp.Policy(retention=p, tolerance=eps, doubt=delta, bound=bound), worst=1, columns=False
    )
    assert report.groups == GROUPS[sensitive]
    assert report.records == 148_318
    assert (report.violating_groups, report.violating_records) == (groups, records)


def by_pandas(table, sensitive, p, eps, delta):
    """Every group with its size, largest f and s_g (Eq. 10), written down from the paper alone."""
    frame = table.to_pandas()
    public = [name for name in frame.columns if name != sensitive]
    cells = frame.groupby([*public, sensitive], observed=True).size().rename("count").reset_index()
    cells["size"] = cells.groupby(public)["count"].transform("sum")
    t = (1 - p) / frame[sensitive].nunique()
    f = cells["count"] / cells["size"]
    w = f * p + t
    cells["f"] = f
    cells["limit"] = -2 * np.log(delta) / (w * (eps * p * f / w) ** 2)
    return (
        cells.groupby(public)
        .agg(size=("size", "first"), f=("f", "max"), limit=("limit", "min"))
        .reset_index()
    )


def exact_tails(counts, m):
    """The tails of the most exposed value for p = ε = 1/2, by convolution of two binomials."""
    n, p, t = sum(counts), Fraction(1, 2), Fraction(1, 2 * m)
    tails = []
    for c in counts:
        kept = binom.pmf(np.arange(c + 1), c, float(p + t))
        drawn = binom.pmf(np.arange(n - c + 1), n - c, float(t))
        law = np.convolve(kept, drawn)
        high, low = c * p * Fraction(3, 2) + n * t, c * p * Fraction(1, 2) + n * t
        observed = [Fraction(k) for k in range(n + 1)]
        upper = law[[k > high for k in observed]].sum()
        lower = law[[k < low for k in observed]].sum()
        tails.append((upper, lower))
    return min(tails, key=min)


@pytest.fixture(scope="module")
def education(census):
    return by_pandas(census, "Education", 0.5, 0.5, 0.3)


@pytest.fixture(scope="module")
def report(census_tables, policy):
    return census_tables("Education").audit(policy, worst=25)


def test_pandas_agrees_on_the_golden_audit(education):
    violating = education[education["size"] > education["limit"]]
    assert (len(violating), violating["size"].sum()) == (355, 25_813)


def test_worst_groups_are_the_worst(report, education):
    excess = (education["size"] / education["limit"]).sort_values(ascending=False)
    shown = [verdict.size / verdict.largest_private_size for verdict in report.worst]
    assert shown == pytest.approx(excess.head(25).tolist(), rel=1e-12)


def test_worst_groups_carry_their_own_figures(report, education):
    public = [name for name in CENSUS if name != "Education"]
    known = education.set_index(public)
    assert len(report.worst) == 25
    for verdict in report.worst:
        row = known.loc[tuple(verdict.public[name] for name in public)]
        assert verdict.size == row["size"]
        assert verdict.largest_frequency == pytest.approx(row["f"], rel=1e-12)
        assert verdict.largest_private_size == pytest.approx(row["limit"], rel=1e-12)
        assert verdict.private is bool(row["size"] <= row["limit"])


def test_worst_groups_show_their_exact_tails(report, census):
    frame = census.to_pandas()
    for verdict in report.worst[::5]:
        chosen = np.logical_and.reduce([frame[k] == v for k, v in verdict.public.items()])
        counts = frame.loc[chosen, "Education"].value_counts().tolist()
        upper, lower = exact_tails(counts, m=frame["Education"].nunique())
        assert (verdict.upper_tail, verdict.lower_tail) == pytest.approx((upper, lower), rel=1e-6)


@pytest.mark.parametrize("shown", [0, 3])
def test_worst_shows_as_many_as_asked_for(census_tables, policy, report, shown):
    fewer = census_tables("Education").audit(policy, worst=shown, columns=False)
    assert fewer.worst == report.worst[:shown]
    assert fewer.violating_groups == 355


def test_more_worst_groups_than_groups(small, policy):
    with rp.read(small, sensitive="Education", public=["Gender"]) as table:
        assert len(table.audit(policy, worst=10).worst) == 2


def test_ties_among_the_worst_are_broken_by_canonical_order(policy):
    rows = [{"g": g, "s": s} for g in "dacb" for s in "xxxy" for _ in range(10)]
    with rp.read(pa.Table.from_pylist(rows), sensitive="s", public="all") as table:
        assert [v.public["g"] for v in table.audit(policy, worst=3).worst] == ["a", "b", "c"]


def test_size_distribution_is_that_of_pandas(report, education):
    sizes = education["size"].to_numpy()
    for low, high, groups, records in report.size_distribution:
        inside = sizes[(sizes >= low) & (sizes <= high)]
        assert (groups, records) == (inside.size, inside.sum())
    assert sum(row[3] for row in report.size_distribution) == sizes.sum()


def test_every_value_of_a_group_is_tested_for_exact():
    """With the exact tails the most frequent value need not be the one that fails."""
    counts = {"a": 6, "b": 5, "c": 5}
    table = pa.table({"g": ["g"] * 16, "s": [v for v, c in counts.items() for _ in range(c)]})
    with rp.read(table, sensitive="s", public="all", domain=list("abcde")) as opened:
        verdict = opened.audit(
            rp.Policy(retention=0.5, tolerance=0.5, doubt=0.2, bound="exact")
        ).worst[0]
    assert (verdict.upper_tail, verdict.lower_tail) == pytest.approx(
        exact_tails([6, 5, 5], m=5), rel=1e-9
    )
    assert verdict.private is (min(verdict.upper_tail, verdict.lower_tail) >= 0.2)


ISSUE_FIELDS = {
    "records", "groups", "domain_size", "violating_groups", "violating_records", "private",
    "policy", "worst",
}  # fmt: skip


def audit_census(cli, sensitive, *more, p=0.5, delta=0.3):
    public = ",".join(name for name in CENSUS if name != sensitive)
    outcome = cli(
        "audit", "example:census_workers", "-s", sensitive, "--public", public, "-p", p,
        "--preset", "paper", "-d", delta, "--json", *more,
    )  # fmt: skip
    return outcome.code, json.loads(outcome.out)


def test_audit_json_has_the_fields_of_the_issue(cli, census):
    code, report = audit_census(cli, "Education")
    assert code == 1
    assert report.keys() >= ISSUE_FIELDS
    assert (report["records"], report["groups"]) == (148_318, 39_376)
    assert (report["violating_groups"], report["violating_records"]) == (355, 25_813)
    assert report["private"] is False
    assert sum(row["records"] for row in report["size_distribution"]) == 148_318
    assert report["domain_size"] == len(census["Education"].unique())
    assert (report["policy"]["retention"], report["policy"]["tolerance"]) == (0.5, 0.5)
    assert (report["policy"]["doubt"], report["policy"]["bound"]) == (0.3, "chernoff")


def test_audit_json_shows_the_worst_groups_with_their_tails(cli):
    _, report = audit_census(cli, "Occupation", "--worst", 4, "--no-columns")
    assert len(report["worst"]) == 4
    for group in report["worst"]:
        assert set(group["public"]) == set(CENSUS) - {"Occupation"}
        assert group["size"] > group["largest_private_size"]
        assert group["private"] is False
        assert 0 <= group["exact_tails"]["above"] < 0.3
        assert 0 <= group["exact_tails"]["below"] < 0.3


def test_audit_exits_0_where_every_group_is_private(cli, small,
                                                    tmp_path):  # fmt: skip
    pq.write_table(small.slice(0, 20), tmp_path / "few.parquet")
    outcome = cli("audit", tmp_path / "few.parquet", "-s", "Education", "--public=all", "--json")
    assert outcome.code == 0
    assert json.loads(outcome.out)["private"] is True
    assert json.loads(outcome.out)["violating_groups"] == 0


def test_exit_codes_reach_the_shell(process, small, tmp_path):
    pq.write_table(small, tmp_path / "some.parquet")
    pq.write_table(small.slice(0, 20), tmp_path / "few.parquet")
    codes = [
        process("audit", tmp_path / name, "-s", sensitive, "--public=all", "--no-columns").code
        for name, sensitive in [
            ("few.parquet", "Education"), ("some.parquet", "Education"), ("some.parquet", "x"),
        ]
    ]  # fmt: skip
    assert codes == [0, 1, 2]


def test_an_unbounded_limit_is_null_in_json(cli, small, tmp_path):
    """Markov's bound does not depend on n: JSON knows no infinity."""
    pq.write_table(small, tmp_path / "t.parquet")
    outcome = cli(
        "audit",
        tmp_path / "t.parquet",
        "-s",
        "Education",
        "--public=all",
        "--bound",
        "markov",
        "--json",
    )
    assert outcome.code == 0
    report = json.loads(outcome.out, parse_constant=pytest.fail)
    assert {group["largest_private_size"] for group in report["worst"]} == {None}


@pytest.fixture(scope="module")
def group_file(census, cli, tmp_path_factory):
    folder = tmp_path_factory.mktemp("groups")
    columns = census.select(["Gender", "Race", "Workclass", "Marital", "Education"])
    pq.write_table(columns, folder / "t.parquet")
    for ending in ("parquet", "csv"):
        outcome = cli(
            "audit", folder / "t.parquet", "-s", "Education", "--public=all",
            "--groups", folder / f"groups.{ending}", "--exact-tails",
            "--no-columns", "--preset", "paper",
        )  # fmt: skip
        assert outcome.code == 1, outcome.err
    return folder / "groups.parquet"


FACTS = [
    "size", "largest_frequency", "largest_value", "largest_private_size", "private", "bound_above",
    "bound_below", "upper_tail", "lower_tail",
]  # fmt: skip
FOUR = ["Gender", "Race", "Workclass", "Marital"]


def test_group_file_has_every_group_with_its_verdict(group_file, census):
    written = pq.read_table(group_file)
    assert written.column_names == FOUR + FACTS
    expected = by_pandas(census.select([*FOUR, "Education"]), "Education", 0.5, 0.5, 0.3)
    merged = written.to_pandas().merge(expected, on=FOUR, suffixes=("", "_pandas"))
    assert len(merged) == len(expected) == written.num_rows
    assert (merged["size"] == merged["size_pandas"]).all()
    assert np.allclose(merged["largest_frequency"], merged["f"], rtol=1e-12)
    assert np.allclose(merged["largest_private_size"], merged["limit"], rtol=1e-12)
    assert (merged["private"] == (merged["size"] <= merged["limit"])).all()


def test_group_file_has_exact_tails_of_every_group(group_file, census):
    written = pq.read_table(group_file).to_pandas()
    cells = census.to_pandas().groupby([*FOUR, "Education"]).size()
    m = len(census["Education"].unique())
    middling = written[(written["size"] <= 400)].iloc[::7]
    assert len(middling) > 20
    for row in middling.itertuples():
        counts = cells.loc[row.Gender, row.Race, row.Workclass, row.Marital].tolist()
        expected = exact_tails(counts, m)
        assert (row.upper_tail, row.lower_tail) == pytest.approx(expected, rel=1e-6, abs=1e-12)


def test_group_file_as_csv_says_the_same(group_file):
    as_csv = pyarrow.csv.read_csv(group_file.with_suffix(".csv"))
    written = pq.read_table(group_file)
    assert as_csv.column_names == written.column_names
    assert as_csv["largest_value"].to_pylist() == written["largest_value"].to_pylist()
    for name in (name for name in FACTS if name != "largest_value"):
        ours, theirs = written[name].to_numpy(), as_csv[name].to_numpy()
        assert np.allclose(ours.astype(float), theirs.astype(float), rtol=1e-9)


def test_group_file_is_whole_and_its_owners_alone(group_file):
    assert stat.S_IMODE(group_file.stat().st_mode) == 0o600
    names = {file.name for file in group_file.parent.iterdir()}
    assert names == {"t.parquet", "groups.parquet", "groups.csv"}


def test_group_file_without_exact_tails_has_none(cli, small, tmp_path):
    pq.write_table(small, tmp_path / "t.parquet")
    cli(
        "audit",
        tmp_path / "t.parquet",
        "-s",
        "Education",
        "--public=all",
        "--groups",
        tmp_path / "g.parquet",
        "--margins",
        "0",
    )
    names = pq.read_table(tmp_path / "g.parquet").column_names
    assert names == ["Gender", "Race", "Workclass", *FACTS[:7]]


@pytest.mark.parametrize(
    "taken", [["size"], ["size", "reconpriv_size"], ["largest_value", "upper_tail"]]
)
def test_group_file_keeps_public_columns_named_like_its_own(small, policy, taken):
    renamed = small.rename_columns([*taken, *small.column_names[len(taken) :]])
    with rp.read(renamed, sensitive="Education", public="all") as table:
        groups = pa.concat_tables(table.audit_groups(policy, exact=True))
    assert groups.num_columns == 3 + len(FACTS)
    for ours, original in zip(taken, small.column_names, strict=False):
        assert set(groups[ours].to_pylist()) == set(small[original].to_pylist())


def test_audit_prints_well_and_for_a_notebook(report):
    assert "355" in str(report)
    assert "25,813" in str(report)
    assert "exact tail" in str(report)
    assert "<table>" in report._repr_html_()
    assert "355" in report._repr_html_()

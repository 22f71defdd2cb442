"""The three parts of an audit: groups, single records, columns."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reconpriv as rp
from reconpriv.ask.workload import make_workload
from reconpriv.auditing.audit_groups import audit_part, join_parts
from reconpriv.auditing.single_records import unique_without
from reconpriv.auditing.verdicts import judge
from reconpriv.cells.cube import collect
from reconpriv.errors import InputError
from reconpriv.reports.changes import Change, advice, bin_changes
from reconpriv.reports.internal import find, internal_html
from reconpriv.tuning.columns import wider_bins, with_bins, without_column
from reconpriv.tuning.tuner import Tuner

POLICY = rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3)
ALL = ("-s", "ill", "--public=all")


def people(n=600, seed=1):
    rng = np.random.default_rng(seed)
    return pa.table(
        {
            "age": rng.integers(18, 40, n),
            "sex": rng.choice(["f", "m"], n),
            "town": pa.array(rng.choice(["Aa", "Bb", None], n), pa.string()),
            "ill": rng.choice(list("abcde"), n, p=[0.6, 0.1, 0.1, 0.1, 0.1]),
        }
    )


def with_serial(n=600):
    return people(n).append_column("serial", pa.array(range(n)))


def quiet_audit(table, policy=POLICY, **how):
    with rp.read(table, sensitive="ill", public="all") as opened:
        return opened.audit(policy, **how)


# --- single records ---------------------------------------------------------------------------


def test_unique_records_without_each_column_are_counted_in_one_pass():
    with rp.read(people(60), sensitive="ill", public="all") as table:
        cube = table.tuner().cube
        counted = table.checks.unique_without
    each = [without_column(cube, i).records for i in range(len(cube.codes))]
    assert unique_without(cube) == [int((sizes == 1).sum()) for sizes in each]
    assert list(counted.values()) == unique_without(cube)


@pytest.mark.parametrize("k", [2, 5, 9])
def test_single_records_are_counted_as_pandas_counts_them(k):
    table = people()
    sizes = table.to_pandas().groupby(["age", "sex", "town"], dropna=False).size()
    single = quiet_audit(table, k=k).single_records
    assert (single.unique, single.k) == (int((sizes == 1).sum()), k)
    assert single.below_k == int(sizes[sizes < k].sum())
    assert 0 < single.unique < single.below_k or k == 2
    assert single.records == 600


def test_what_a_value_tells_is_what_the_theory_says():
    """By Bayes with m = 5 and p = 0.5: r = 0.6, t = 0.1, and the worst prior puts 10 % on it."""
    single = quiet_audit(people()).single_records
    assert single.retention_probability == pytest.approx(0.6)
    assert single.prior == 0.1
    assert single.posterior == pytest.approx(0.6 * 0.1 / (0.6 * 0.1 + 0.1 * 0.9))
    # Two beliefs, each with where it starts: 20 % for each of five values, and 10 %.
    assert single.retention_probability == pytest.approx(0.6 * 0.2 / (0.6 * 0.2 + 0.1 * 0.8))
    assert single.sentence.endswith(
        "How likely the value published about such a person is to be the true one depends on what"
        " was known before: 60.0% if all 5 values seemed equally likely, at most 40.0% if that"
        " value seemed 10% likely."
    )


@pytest.mark.filterwarnings("ignore::reconpriv.errors.ReconprivWarning")
def test_the_published_value_of_a_unique_person_is_true_as_often_as_said(tmp_path):
    n = 20_000
    table = pa.table({"who": range(n), "ill": [i % 5 for i in range(n)]})
    with rp.read(table, sensitive="ill", public="all") as opened:
        said = opened.audit(POLICY, keep_identifier=["who"], columns=False).single_records
        release = opened.publish(POLICY, tmp_path / "r", key=rp.Key.test(), keep_identifier=["who"])
    found = release.to_arrow().to_pydict()
    share = np.mean([ill == who % 5 for who, ill in zip(found["who"], found["ill"], strict=True)])
    r, tolerance = said.retention_probability, 5 * np.sqrt(0.24 / n)
    assert said.unique == n
    assert abs(share - r) < tolerance
    assert abs(share - 1.3 * r) > tolerance and abs(share - 0.7 * r) > tolerance


def test_a_k_below_two_is_refused():
    with pytest.raises(rp.ReconprivError, match="at least 2"):
        quiet_audit(people(), k=1)


# --- the verdict ------------------------------------------------------------------------------


def test_unique_people_come_before_private_groups():
    table = people(120).append_column("weight", pa.array([i % 50 + 0.25 for i in range(120)]))
    report = quiet_audit(table)
    assert report.private and report.single_records.unique > 60
    said = f"{report.single_records.unique} of 120 records"
    assert report.sentence.startswith(f"Not ready to publish: {said}")
    assert "Every group meets this policy" in report.sentence and not report.passes
    accepted = quiet_audit(table, max_unique=1.0)
    assert accepted.sentence.startswith(said)
    assert "Every group meets this policy" in accepted.sentence
    assert accepted.standing == "fair" and accepted.passes


def test_a_serial_number_is_not_ready_to_publish():
    with pytest.warns(rp.ReconprivWarning, match="'serial' is nearly unique"):
        report = quiet_audit(with_serial())
    assert report.private and not report.passes
    assert report.sentence.startswith("Not ready to publish: 600 of 600 records")
    assert "Not ready to publish: public column 'serial'" in report.sentence
    assert report.columns_sentence.startswith("Public column 'serial' (600 values)")
    verdict = report.as_dict()["verdict"]
    assert verdict["passes"] is False and verdict["groups"]["private"] is True
    assert verdict["columns"]["identifiers"] == ["serial"]
    assert verdict["single_records"]["unique"] == 600
    json.dumps(report.as_dict(), allow_nan=False)


def test_a_kept_identifier_passes_but_is_still_mentioned():
    with pytest.warns(rp.ReconprivWarning):
        report = quiet_audit(with_serial(), keep_identifier=["serial"])
    assert report.passes and report.standing == "fair"
    assert "'serial' (600 values) is nearly unique in 600 records, kept on request" in (
        report.sentence
    )
    assert report.sentence.startswith("600 of 600 records (100%) are unique")


def test_floats_that_all_differ_are_identifiers_too():
    table = people(60).append_column("weight", pa.array([i + 0.5 for i in range(60)]))
    with pytest.warns(rp.ReconprivWarning, match="'weight'"):
        assert not quiet_audit(table).passes


@settings(max_examples=60, deadline=None)
@given(
    sizes=st.lists(st.integers(1, 400), min_size=1, max_size=12),
    serial=st.booleans(),
    p=st.sampled_from([0.05, 0.5, 0.9]),
)
@pytest.mark.filterwarnings("ignore::reconpriv.errors.ReconprivWarning")
def test_the_sentence_is_never_more_comforting_than_its_worst_part(sizes, serial, p):
    group = np.repeat(np.arange(len(sizes)), sizes)
    columns: dict[str, Any] = {"g": group, "ill": [i % 7 % 3 for i in range(group.size)]}
    if serial:
        columns["serial"] = range(group.size)
    with rp.read(pa.table(columns), sensitive="ill", public="all", domain=[0, 1, 2]) as opened:
        report = opened.audit(rp.Policy(retention=p, tolerance=0.5, doubt=0.3), columns=False)
    first = report.sentences[0]
    alone = report.single_records
    if not report.ready:
        assert first.startswith("Not ready to publish")
    elif report.private:
        assert first.startswith("Every group meets this policy") is (alone.below_k == 0)
    elif alone.unique > report.violating_records:
        assert first == alone.sentence
    else:
        assert first.startswith("Not private")
    assert report.groups_sentence in report.sentence and alone.what_it_tells in report.sentence
    assert (report.standing == "good") == (report.passes and alone.below_k == 0)


def test_shares_are_never_rounded_to_none_or_all():
    from reconpriv.messages.phrases import share_words

    assert share_words(1, 48_842).endswith("(under 0.1%)")
    assert share_words(48_841, 48_842).endswith("(over 99%)")
    assert share_words(0, 10).endswith("(0%)") and share_words(10, 10).endswith("(100%)")


# --- columns ----------------------------------------------------------------------------------


def by_hand(table, k=5):
    """The figures of an audit by counting records in plain Python."""
    rows = list(zip(*(table[name].to_pylist() for name in table.column_names), strict=True))
    sizes = Counter(row[:-1] for row in rows)
    with rp.read(table, sensitive="ill", public="all", domain=list("abcde")) as opened:
        verdicts = pa.concat_tables(opened.audit_groups(POLICY)).to_pylist()
    bad = [row["size"] for row in verdicts if not row["private"]]
    small = sum(size for size in sizes.values() if size < k)
    return len(sizes), len(bad), sum(bad), sum(s == 1 for s in sizes.values()), small


@pytest.mark.filterwarnings("ignore::reconpriv.errors.ReconprivWarning")
@pytest.mark.parametrize(("rows", "seed"), [(40, 2), (600, 3), (3_000, 4)])
def test_without_a_column_is_the_audit_of_the_table_without_it(rows, seed):
    table = people(rows, seed)
    report = quiet_audit(table)
    assert [column.name for column in report.columns] == ["age", "sex", "town"]
    for column in report.columns:
        found = column.without
        assert found is not None
        expected = by_hand(table.drop_columns([column.name]))
        assert (
            found.groups, found.violating_groups, found.violating_records, found.unique,
            found.below_k,
        ) == expected  # fmt: skip
    assert by_hand(table) == tuple(vars(report.figures).values())


def test_the_error_without_a_column_is_that_of_the_same_questions():
    """Questions that do not use the column, on the table with it and on the table without it."""
    table = people(3_000, 4)
    with rp.read(table, sensitive="ill", public="all") as opened:
        report = opened.audit(POLICY)
        cube = collect(opened.batches(), opened.schema)
    workload = make_workload(cube)
    assert report.errors is not None
    assert report.errors.published == pytest.approx(Tuner.on(cube, workload).setting(POLICY).error)
    for place, column in enumerate(report.columns):
        kept = [column.name not in query for query in workload.queries]
        asked = replace(
            workload, codes=workload.codes[:, kept], value=workload.value[kept],
            answers=workload.answers[kept], selected=workload.selected[kept],
        )  # fmt: skip
        left = workload.without(place)
        assert left is not None and left.queries == asked.queries
        rest = without_column(cube, place)
        assert column.without is not None
        assert column.without.error_now == pytest.approx(
            Tuner.on(cube, asked).setting(POLICY).error
        )
        assert column.without.error == pytest.approx(Tuner.on(rest, left).setting(POLICY).error)


def test_a_workload_knows_the_records_of_its_public_half():
    table = people()
    frame = table.to_pandas()
    with rp.read(table, sensitive="ill", public="all") as opened:
        workload = opened.workload(queries=40)
    for query, selected, answer in zip(
        workload.queries, workload.selected, workload.answers, strict=True
    ):
        mask = np.ones(len(frame), dtype=bool)
        for name, value in query.items():
            if name != "ill":
                mask &= frame[name].isna() if value is None else frame[name] == value
        assert selected == mask.sum()
        assert answer == (mask & (frame["ill"] == query["ill"])).sum()


def test_one_public_column_leaves_the_whole_table_as_one_group():
    report = quiet_audit(people().select(["age", "ill"]))
    found = report.columns[0].without
    assert found is not None
    assert (found.groups, found.unique, found.error) == (1, 0, None)


def test_columns_can_be_skipped_and_asked_for(monkeypatch):
    skipped = quiet_audit(people(), columns=False)
    assert all(column.without is None for column in skipped.columns)
    assert [column.distinct for column in skipped.columns] == [22, 2, 2]
    assert "was not computed." in skipped.columns_sentence
    monkeypatch.setattr("reconpriv.tables.audited.CELLS_IN_MEMORY", 10)
    large = quiet_audit(people())
    assert all(column.without is None for column in large.columns) and large.errors is None
    assert "columns=True" in large.columns_sentence
    asked = quiet_audit(people(), columns=True)
    assert all(column.without is not None for column in asked.columns)
    assert [column.distinct for column in asked.columns] == [22, 2, 2]


def test_distinct_values_are_those_of_the_records_that_are_kept():
    """A serial number that only dropped records have is no identifier."""
    ill = [None] * 60 + list("abcde") * 8
    table = pa.table({"no": [*range(60), *([7] * 40)], "sex": ["f", "m"] * 50, "ill": ill})
    with rp.read(table, sensitive="ill", public="all", missing="drop") as opened:
        for columns in (True, False):
            report = opened.audit(POLICY, columns=columns)
            assert [column.distinct for column in report.columns] == [1, 2]


# --- coarser bins -----------------------------------------------------------------------------


def test_bins_merge_groups_as_binning_the_records_does():
    table = people(3_000, 5)
    with rp.read(table, sensitive="ill", public="all") as opened:
        cube = collect(opened.batches(), opened.schema)
    assert wider_bins(cube, 0) == (2, 5, 10) and wider_bins(cube, 1) == ()
    for width in (2, 5, 10):
        binned = table.set_column(0, "age", pa.array(table["age"].to_numpy() // width * width))
        with rp.read(binned, sensitive="ill", public="all") as opened:
            expected = collect(opened.batches(), opened.schema)
        found = with_bins(cube, 0, width)
        assert found.values[0].equals(expected.values[0])
        for name in ("records", "group", "value", "count"):
            assert np.array_equal(getattr(found, name), getattr(expected, name)), name
        assert all(map(np.array_equal, found.codes, expected.codes))
        _, private = judge(expected.as_batch(), POLICY, 5)
        changes = {one.name: one.figures for one in bin_changes(cube, POLICY, k=5)}
        assert changes[f"age in bins of {width:,}"].violating_groups == int((~private).sum())


def test_packed_codes_do_not_overflow_with_many_columns():
    rng = np.random.default_rng(3)
    columns = {f"c{i}": rng.integers(0, 300, 400) for i in range(12)}
    table = pa.table({**columns, "ill": rng.choice(list("ab"), 400)})
    with rp.read(table, sensitive="ill", public="all") as opened:
        cube = collect(opened.batches(), opened.schema)
    assert without_column(cube, 3).groups == 400


def test_the_report_recommends_only_what_helps(adult):
    found = find(adult, POLICY)
    now, text = found.audit.figures, internal_html(found)
    worse = {e.name: e.figures for e in found.bins if e.name.startswith("age in bins of ")}
    assert worse
    assert all(f.violating_records > now.violating_records for f in worse.values())
    assert "candidate for coarser bins" not in text and "Recommended" not in text
    assert "would put more records at risk" in text
    ten = worse["age in bins of 10"]
    assert f"{ten.violating_records:,}" in text and f"{ten.unique:,}" in text


def test_what_helps_is_recommended_with_its_figures():
    with (
        pytest.warns(rp.ReconprivWarning),
        rp.read(with_serial(), sensitive="ill", public="all") as table,
    ):
        found = find(table, POLICY)
    text = internal_html(found)
    without = found.audit.columns[-1].without
    assert without is not None
    assert "What would help most: leave out serial." in text
    assert f"{without.unique} instead of 600 records would be unique" in text
    assert "Not ready to publish" in text


def test_a_change_that_trades_one_risk_for_another_is_not_recommended():
    from reconpriv.auditing.column_risk import AuditFigures

    now = AuditFigures(10, 2, 100, 5, 20)
    trade = Change("a", "leave out a", AuditFigures(5, 3, 150, 1, 3))
    better = Change("b", "leave out b", AuditFigures(5, 2, 100, 4, 9))
    assert not trade.helps(now) and better.helps(now)
    assert advice([trade, better], now)[0].startswith("What would help most: leave out b.")
    assert "150 instead of 100" in advice([trade], now)[0]
    assert not any("Recommended" in line for line in advice([trade], now))


# --- group lists ------------------------------------------------------------------------------


def test_a_group_names_its_columns_and_the_value_behind_f():
    report = quiet_audit(people(3_000, 4), worst=50)
    frame = people(3_000, 4).to_pandas()
    for verdict in report.worst:
        mask = np.ones(len(frame), dtype=bool)
        for name, value in verdict.public.items():
            mask &= frame[name].isna() if value is None else frame[name] == value
        counts = frame[mask]["ill"].value_counts()
        assert verdict.value == min(counts[counts == counts.max()].index)
        assert verdict.as_dict()["value"] == verdict.value
    text = " ".join(str(report).split())
    worst = report.worst[0]
    town = worst.public["town"] or "(missing)"
    assert f"age={worst.public['age']}, sex={worst.public['sex']}, town={town}" in text
    assert f"f = {worst.largest_frequency:.2f} ({worst.value})" in text


def test_of_several_largest_values_the_first_of_the_domain_is_named():
    table = pa.table({"g": ["x"] * 4 + ["y"] * 3, "ill": list("cbcb") + list("aec")})
    with rp.read(table, sensitive="ill", public="all") as opened:
        groups = pa.concat_tables(opened.audit_groups(POLICY))
    assert groups["largest_value"].to_pylist() == ["b", "a"]


def test_an_audit_fits_into_80_columns(adult):
    from reconpriv.show.results.audit import audit_document
    from reconpriv.show.text import as_text

    report = adult.audit(POLICY)
    lines = as_text(audit_document(report), width=80).splitlines()
    assert max(map(len, lines)) <= 80
    assert any(line.endswith("783   95.1  < 0.01%  < 0.01% / < 0.01%") for line in lines)
    assert not any("…" in line for line in lines)


# --- the command line -------------------------------------------------------------------------


@pytest.fixture
def serial_file(tmp_path):
    pq.write_table(with_serial(), tmp_path / "t.parquet")
    return tmp_path / "t.parquet"


def test_an_audit_of_a_serial_number_exits_1_and_says_why(cli, serial_file):
    outcome = cli("audit", serial_file, *ALL)
    assert outcome.code == 1
    assert outcome.out.startswith("Not ready to publish: 600 of 600 records")
    assert "Not ready to publish: public column 'serial'" in " ".join(outcome.out.split())
    assert "--keep-identifier serial" in outcome.out
    kept = cli("audit", serial_file, *ALL, "--keep-identifier", "serial", "--json")
    assert kept.code == 0
    assert "'serial'" in json.loads(kept.out)["verdict"]["sentence"]


@pytest.mark.parametrize("key", [["--test-key"], []])
def test_publish_refuses_a_serial_number_and_writes_nothing(cli, serial_file, key):
    out = serial_file.parent / "release"
    outcome = cli("publish", serial_file, out, *ALL, *key)
    assert outcome.code == 2 and outcome.out == ""
    assert "'serial' (600 values) is nearly unique" in outcome.err
    assert "--drop serial" in outcome.err and "--keep-identifier serial" in outcome.err
    assert [file.name for file in serial_file.parent.iterdir()] == ["t.parquet"]


def test_what_to_do_about_an_identifier_can_be_pasted(cli, tmp_path):
    names = ["serial no", 'a, "b"', "sex", "ill"]
    pq.write_table(
        pa.table([range(60), [f"x{i}" for i in range(60)], ["f", "m"] * 30,
                  ["flu", "none", "flu"] * 20], names=names),
        tmp_path / "t.parquet",
    )  # fmt: skip
    refused = cli("publish", tmp_path / "t.parquet", tmp_path / "r", *ALL, "--test-key")
    audited = cli("audit", tmp_path / "t.parquet", *ALL)
    pasted = """'serial no,"a, ""b\"""'"""
    assert f"with --drop {pasted}," in refused.err and f"--keep-identifier {pasted}." in refused.err
    assert f"with --keep-identifier {pasted}." in " ".join(audited.out.split())
    assert "--drop 'serial no'." in audited.err
    kept = cli("audit", tmp_path / "t.parquet", *ALL, "--keep-identifier", pasted[1:-1])
    assert kept.code == 0


@pytest.mark.parametrize("name", ["ill", "nobody"])
def test_only_a_public_column_can_be_kept(cli, serial_file, name):
    for command in (["audit"], ["publish", serial_file.parent / "r", "--test-key"]):
        outcome = cli(command[0], serial_file, *command[1:], *ALL, "--keep-identifier", name)
        assert outcome.code == 2
        assert f"{name!r} is to be kept although it is nearly unique, but it is not" in outcome.err


def test_frames_are_refused_alike():
    with pytest.raises(InputError, match="nearly unique in 600 records"):
        rp.publish(with_serial(), POLICY, sensitive="ill", public="all", key=rp.Key.test())
    with pytest.warns(rp.ReconprivWarning, match="kept on request"):
        made = rp.publish(
            with_serial(),
            POLICY,
            sensitive="ill",
            public="all",
            key=bytes(range(32)),
            keep_identifier=["serial"],
        )
    assert made.num_rows == 600
    with pytest.warns(rp.ReconprivWarning):
        assert not rp.audit(
            with_serial(), POLICY, sensitive="ill", public="all", k=7, columns=False
        ).passes


def test_k_and_columns_reach_the_audit(cli, tmp_path):
    pq.write_table(people(), tmp_path / "t.parquet")
    found = json.loads(
        cli("audit", tmp_path / "t.parquet", *ALL, "--k", 3, "--no-columns", "--json").out
    )["verdict"]
    assert found["single_records"]["k"] == 3
    assert {column["without"] for column in found["columns"]["each"]} == {None}


def test_a_group_shows_its_bound_beside_its_tails(tiny):
    with rp.read(tiny, sensitive="s", public="all") as opened:
        report = opened.audit(POLICY)
        groups = pa.concat_tables(opened.audit_groups(POLICY, exact=True))
    for verdict in report.worst:
        smallest = min(verdict.bound_above, verdict.bound_below)
        assert verdict.private == (smallest >= POLICY.doubt)
        assert verdict.upper_tail <= verdict.bound_above
        assert verdict.lower_tail <= verdict.bound_below
        assert set(verdict.as_dict()["bound"]) == {"above", "below"}
    assert {"bound_above", "bound_below", "upper_tail", "lower_tail"} <= set(groups.column_names)
    assert " bound " in str(report)


def test_an_audit_in_parts_is_the_audit(adult):
    """Any cut at group borders, joined in any order, ties among the worst included."""
    batch = max(adult.batches(), key=lambda batch: batch.groups)
    whole = join_parts(
        [audit_part([batch], adult.schema, POLICY, 40)], adult.schema, POLICY, worst=40
    )
    cuts = [0, 1, 100, 101, 300, batch.groups]
    parts = [
        audit_part([batch.slice(a, b)], adult.schema, POLICY, 40)
        for a, b in itertools.pairwise(cuts)
    ]
    joined = join_parts(parts[::-1], adult.schema, POLICY, worst=40)
    assert joined.as_dict() == whole.as_dict()
    fewer = join_parts(parts[1:], adult.schema, POLICY, worst=40)
    assert fewer.as_dict() != whole.as_dict()

"""Everything that can be wrong with an input: one sentence, exit code 2, nothing left behind."""

from __future__ import annotations

import gzip
import json
import os
import shlex
from collections.abc import Callable
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

import reconpriv as rp
from refusals import Desk, check_sentence


@pytest.fixture
def desk(tmp_path: Path, scratch: Path, cli: Callable) -> Desk:
    return Desk(tmp_path, scratch, cli)


@pytest.fixture
def good(desk: Desk, small: pa.Table) -> Path:
    return desk.source("good.parquet", small)


NO_ROLES = ("-s", "Education")
EDU = (*NO_ROLES, "--public=all")


# --- no such file or column -------------------------------------------------------------------


@pytest.mark.parametrize("name", ["nope.parquet", "nope.csv", "no/such/folder.parquet", "nope"])
def test_no_such_file(desk: Desk, name: str) -> None:
    message = desk.both(desk.vault / name, *EDU)
    assert Path(name).name in message
    assert "no file" in message


def test_no_file_matches_a_glob(desk: Desk) -> None:
    assert "'*.parquet'" in desk.both(desk.vault / "*.parquet", *EDU)


def test_a_glob_over_different_kinds_of_file(desk: Desk, small: pa.Table) -> None:
    desk.source("t1.parquet", small)
    desk.source("t2.csv", "Education\nx\n")
    assert "different kinds" in desk.both(desk.vault / "t*", *EDU)


def test_a_folder_without_parquet(desk: Desk) -> None:
    (desk.vault / "empty").mkdir()
    assert "'empty' holds no Parquet" in desk.both(desk.vault / "empty", *EDU)


def test_an_unknown_kind_of_file(desk: Desk) -> None:
    message = desk.both(desk.source("t.docx", "abc"), *EDU)
    assert "t.docx" in message
    assert ".parquet" in message


def test_an_unknown_example(desk: Desk) -> None:
    message = desk.both("example:nope", *EDU)
    assert "'nope'" in message
    assert "adult" in message


@pytest.mark.parametrize(
    ("asked", "hint"),
    [("Eduction", "'Education'"), ("education", "'Education'"), ("EDUCATION", "'Education'")],
)
def test_no_such_sensitive_column_and_the_nearest_name(
    desk: Desk, good: Path, asked: str, hint: str
) -> None:
    message = desk.both(good, "-s", asked, "--public=all")
    assert f"'{asked}'" in message
    assert f"Did you mean {hint}?" in message


def test_no_such_public_column(desk: Desk, good: Path) -> None:
    message = desk.both(good, *NO_ROLES, "--public", "Gender,Rase")
    assert "'Rase'" in message
    assert "'Race'" in message


def test_no_such_dropped_column(desk: Desk, good: Path) -> None:
    assert "'Gendre'" in desk.both(good, *EDU, "--drop", "Gendre")


def test_a_name_like_no_other_gets_the_list(desk: Desk, good: Path) -> None:
    message = desk.both(good, "-s", "zzzzzz", "--public=all")
    assert "Gender, Race, Workclass, Education" in message


# --- empty tables -----------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["a,s\n", "a,s", "a,s\r\n"])
def test_a_csv_of_a_header_only_is_empty(desk: Desk, text: str) -> None:
    assert "empty" in desk.both(desk.source("t.csv", text), "-s", "s", "--public=all")


def test_a_parquet_of_no_rows_is_empty(desk: Desk, small: pa.Table) -> None:
    assert "empty" in desk.both(desk.source("t.parquet", small.slice(0, 0)), *EDU)


@pytest.mark.parametrize("name", ["t.csv", "t.jsonl", "t.csv.gz"])
def test_a_file_of_no_bytes_is_empty(desk: Desk, name: str) -> None:
    content = gzip.compress(b"") if name.endswith("gz") else b""
    assert "empty" in desk.both(desk.source(name, content), "-s", "s", "--public=all")


def test_standard_input_of_no_bytes_is_empty(desk: Desk) -> None:
    assert "standard input is empty" in desk.both("-", "-s", "s", "--public=all", stdin="")


def test_a_query_that_leaves_nothing_is_empty(desk: Desk, good: Path) -> None:
    assert "empty" in desk.both(good, *EDU, "--sql", "FROM input WHERE Race = 'Martian'")


def test_an_empty_data_frame_is_empty(small: pa.Table) -> None:
    with pytest.raises(rp.ReconprivError, match="empty"):
        rp.read(small.slice(0, 0).to_pandas(), sensitive="Education", public="all")


# --- roles ------------------------------------------------------------------------------------


def test_the_sensitive_column_is_also_public(desk: Desk, good: Path) -> None:
    message = desk.both(good, *NO_ROLES, "--public", "Gender,Education")
    assert "'Education'" in message
    assert "public" in message


def test_the_sensitive_column_is_also_dropped(desk: Desk, good: Path) -> None:
    assert "dropped" in desk.both(good, *EDU, "--drop", "Education")


def test_a_column_is_both_public_and_dropped(desk: Desk, good: Path) -> None:
    assert "'Race'" in desk.both(good, *NO_ROLES, "--public", "Gender,Race", "--drop", "Race")


def test_a_public_column_is_listed_twice(desk: Desk, good: Path) -> None:
    assert "twice" in desk.both(good, *NO_ROLES, "--public", "Gender,Gender")


def test_nested_and_binary_columns_are_refused_with_a_hint_to_drop(desk: Desk) -> None:
    for column in ([[1], [2]] * 10, [b"\x00", b"\x01"] * 10, [{"x": 1}] * 20):
        table = pa.table({"odd": column, "s": ["x", "y"] * 10})
        message = desk.both(desk.source("t.parquet", table), "-s", "s", "--public=all")
        assert "'odd'" in message
        assert "--drop odd" in message


def test_a_nested_column_that_is_dropped_does_no_harm(cli: Callable, desk: Desk) -> None:
    table = pa.table({"odd": [[1], [2]] * 10, "s": ["x", "y"] * 10})
    assert (
        cli(
            "audit", desk.source("t.parquet", table), "-s", "s", "--public=all", "--drop", "odd"
        ).code
        == 0
    )


# --- the domain -------------------------------------------------------------------------------


def test_a_domain_of_one_value(desk: Desk) -> None:
    message = desk.both(desk.source("t.csv", "a,s\n1,x\n2,x\n"), "-s", "s", "--public=all")
    assert "one value" in message
    assert "--domain" in message


def test_a_declared_domain_of_one_value(desk: Desk) -> None:
    domain = desk.file("domain.txt", "x\nx\n")
    message = desk.both(
        desk.source("t.csv", "a,s\n1,x\n2,x\n"), "-s", "s", "--public=all", "--domain", domain
    )
    assert "one value" in message


def test_one_occurring_value_is_fine_in_a_larger_declared_domain(cli: Callable, desk: Desk) -> None:
    source, domain = desk.source("t.csv", "a,s\n1,x\n2,x\n"), desk.file("domain.txt", "x\ny\n")
    outcome = cli("audit", source, "-s", "s", "--public=all", "--domain", domain, "--json")
    assert outcome.code == 0
    assert json.loads(outcome.out)["domain_size"] == 2


def test_a_value_outside_the_declared_domain(desk: Desk) -> None:
    source, domain = desk.source("t.csv", "a,s\n1,x\n2,y\n"), desk.file("domain.txt", "x\nz\n")
    message = desk.both(source, "-s", "s", "--public=all", "--domain", domain)
    assert "outside the declared domain" in message
    assert "for example 'y'" in message


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("domain.txt", "", "empty"),
        ("domain.txt", "\n \n", "empty"),
        ("domain.json", "[]", "empty"),
        ("domain.json", "{'x'", "not valid JSON"),
        ("domain.json", '{"x": 1}', "JSON array"),
        ("domain.json", '"x"', "JSON array"),
        ("domain.json", '[["x"], {"y": 1}, "x", "y"]', "array of values"),
        ("domain.txt", b"\xff\xfe\x00x", "UTF-8"),
    ],
)
def test_bad_domain_files(desk: Desk, name: str, content: bytes | str, words: str) -> None:
    source, domain = desk.source("t.csv", "a,s\n1,x\n2,y\n"), desk.file(name, content)
    message = desk.both(source, "-s", "s", "--public=all", "--domain", domain)
    assert words in message


def test_a_missing_domain_file(desk: Desk, good: Path) -> None:
    message = desk.both(good, *EDU, "--domain", desk.desk / "nope.txt")
    assert "nope.txt" in message


def test_a_folder_as_domain_file(desk: Desk, good: Path) -> None:
    (desk.desk / "folder").mkdir()
    assert "cannot be read" in desk.both(good, *EDU, "--domain", desk.desk / "folder")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("d.txt", "1\n2\nthree\n"),
        ("d.json", "[1, 2, 3.7]"),
        ("d.json", "[1, 2, true]"),
        ("d.json", '[1, 2, "2.5"]'),
    ],
)
def test_a_declared_value_of_the_wrong_type(desk: Desk, name: str, content: str) -> None:
    """3.7 is not 3, and true is not 1."""
    source, domain = desk.source("t.csv", "a,s\nu,1\nv,2\n"), desk.file(name, content)
    message = desk.both(source, "-s", "s", "--public=all", "--domain", domain)
    assert "does not fit" in message
    assert "integer" in message


# --- p, ε, δ ----------------------------------------------------------------------------------


@pytest.mark.parametrize("value", ["0", "1", "-0.5", "1.5", "nan", "inf", "-inf"])
def test_retention_out_of_range(desk: Desk, good: Path, value: str) -> None:
    message = desk.both(good, *EDU, f"--retention={value}")
    assert "between 0 and 1" in message
    assert f"got {float(value):g}" in message


@pytest.mark.parametrize("value", ["0", "1", "-0.5", "1.5", "nan", "inf"])
def test_delta_out_of_range(desk: Desk, good: Path, value: str) -> None:
    message = desk.both(good, *EDU, f"--delta={value}")
    assert "δ" in message
    assert f"got {float(value):g}" in message


@pytest.mark.parametrize("value", ["0", "-1", "nan", "-inf", "2", "inf"])
def test_epsilon_out_of_range(desk: Desk, good: Path, value: str) -> None:
    message = desk.both(good, *EDU, f"--epsilon={value}")
    assert "ε" in message
    assert f"got {float(value):g}" in message


@pytest.mark.parametrize("value", ["1.21", "1.99"])
def test_epsilon_past_the_range_of_the_bound_names_the_limit(desk: Desk, value: str) -> None:
    """With p = 1/2 and m = 5 the limit is 1 + (1-p)/(mp) = 1.2."""
    rows = "".join(f"g,{v}\n" for v in "aaaaaaaaaaaabcde") + "h,a\n" * 9
    source = desk.source("t.csv", "x,s\n" + rows)
    message = desk.both(source, "-s", "s", "--public=all", f"--epsilon={value}", "--preset=paper")
    assert "= 1.2." in message
    assert f"ε = {float(value):g}" in message


def test_epsilon_at_its_limit_is_allowed(cli: Callable, desk: Desk) -> None:
    rows = "".join(f"g,{v}\n" for v in "aaaaaaaaaaaabcde") + "h,a\n" * 9
    source = desk.source("t.csv", "x,s\n" + rows)
    words = ("audit", source, "-s", "s", "--public=all", "--preset=paper", "-e")
    assert cli(*words, "1.2").code in (0, 1)
    assert cli(*words, "1.2001").code == 2


def test_unknown_bound(desk: Desk, good: Path) -> None:
    message = desk.both(good, *EDU, "--bound", "chernof")
    assert "'chernof'" in message
    assert "chernoff-full" in message


def test_unknown_sample_size(desk: Desk, good: Path) -> None:
    message = desk.publish(good, *EDU, "--sample-size", "octaves")
    assert "'octaves'" in message
    assert "octave, public" in message


def test_unknown_format(desk: Desk, good: Path) -> None:
    message = desk.publish(good, *EDU, "--format", "xlsx")
    assert "'xlsx'" in message
    assert "parquet, csv" in message


def test_unknown_treatment_of_unattainable_groups(desk: Desk, good: Path) -> None:
    assert "one-trial" in desk.publish(good, *EDU, "--unattainable", "ignore")


def test_unknown_treatment_of_missing_values(desk: Desk, good: Path) -> None:
    assert "refuse, drop, value" in desk.both(good, *EDU, "--missing", "impute")


@pytest.mark.parametrize("sample_size", ["octave", "public"])
def test_exact_tails_that_cannot_be_had_are_refused_with_what_to_change(
    desk: Desk, good: Path, sample_size: str
) -> None:
    exact = ("--exposed-above", "0", "--sample-size", sample_size)
    message = desk.publish(good, *EDU, *exact, "-d", "0.45")
    assert "no number of trials is private" in message
    assert "--exposed-above 0.25" in message


def test_threads_and_memory_that_make_no_sense(desk: Desk, good: Path) -> None:
    assert "got 0" in desk.both(good, *EDU, "--threads", "0")
    assert "'lots'" in desk.both(good, *EDU, "--memory", "lots")
    assert "memory as" not in desk.both(good, *EDU, "--threads", "9" * 20)


UNATTAINABLE = ("--preset", "paper", "-p", "0.9", "-e", "0.9", "-d", "0.9")


@pytest.mark.parametrize("sample_size", ["octave", "public", "paper"])
def test_a_policy_that_no_trial_keeps_is_refused_with_counts(
    desk: Desk, good: Path, small: pa.Table, sample_size: str
) -> None:
    message = desk.publish(good, *EDU, *UNATTAINABLE, "--sample-size", sample_size)
    groups = len(set(zip(*(c.to_pylist() for c in small.columns[:-1]), strict=True)))
    if sample_size == "public":
        assert f"{groups:,} group" in message
        assert f"{small.num_rows:,} record" in message
    assert "not even one trial" in message
    assert "Lower p" in message
    assert "one-trial" in message


@pytest.mark.parametrize("sample_size", ["octave", "public", "paper"])
def test_a_policy_that_no_trial_keeps_is_allowed_with_one_trial(
    desk: Desk, good: Path, cli: Callable, sample_size: str
) -> None:
    outcome = cli(
        "publish", good, desk.out, *EDU, *UNATTAINABLE, "--sample-size", sample_size,
        "--unattainable", "one-trial", "--test-key", "--json",
    )  # fmt: skip
    assert outcome.code == 0, outcome.err
    summary = json.loads(outcome.out)
    assert summary["unattainable_groups"] > 0
    if sample_size == "public":
        assert summary["trials"] == summary["groups"] == summary["unattainable_groups"]
        groups = pq.read_table(desk.out / "groups.parquet")
        assert set(groups["trials"].to_pylist()) == {1}


# --- missing values ---------------------------------------------------------------------------

HOLES = "a,s\n" + "1,x\n1,y\n2,x\n2,\n,y\n" * 10


def test_a_missing_sensitive_value_is_refused_and_both_ways_out_are_offered(desk: Desk) -> None:
    message = desk.both(desk.source("t.csv", HOLES), "-s", "s", "--public=all")
    assert "--missing drop" in message
    assert "--missing value" in message


def test_missing_drop_leaves_those_records_out(cli: Callable, desk: Desk) -> None:
    source = desk.source("t.csv", HOLES)
    outcome = cli(
        "publish", source, desk.out, "-s", "s", "--public=all", "--missing", "drop", "--test-key"
    )
    assert outcome.code == 0, outcome.err
    data = pq.read_table(desk.out / "data.parquet")
    assert data.num_rows == 40
    assert set(data["s"].to_pylist()) == {"x", "y"}


def test_missing_value_makes_it_a_value_of_the_domain(cli: Callable, desk: Desk) -> None:
    source = desk.source("t.csv", HOLES)
    outcome = cli(
        "publish", source, desk.out, "-s", "s", "--public=all", "--missing", "value", "--test-key"
    )
    assert outcome.code == 0, outcome.err
    data = pq.read_table(desk.out / "data.parquet")
    assert data.num_rows == 50
    assert set(data["s"].to_pylist()) == {"x", "y", None}
    manifest = json.loads((desk.out / "datapackage.json").read_text())
    assert manifest["reconpriv"]["domain"] == ["x", "y", None]


def test_a_sensitive_column_missing_in_every_record(desk: Desk) -> None:
    source = desk.source("t.csv", "a,s\n1,\n2,\n")
    assert "every record" in desk.both(source, "-s", "s", "--public=all", "--missing", "drop")
    assert "one value" in desk.both(source, "-s", "s", "--public=all", "--missing", "value")


def test_missing_is_a_public_value_of_its_own(cli: Callable, desk: Desk) -> None:
    source = desk.source("t.csv", HOLES)
    outcome = cli(
        "publish", source, desk.out, "-s", "s", "--public=all", "--missing", "value", "--test-key"
    )
    assert outcome.code == 0, outcome.err
    groups = pq.read_table(desk.out / "groups.parquet")
    sizes = dict(zip(groups["a"].to_pylist(), groups["records"].to_pylist(), strict=True))
    assert sizes == {1: 20, 2: 20, None: 10}


# --- identifiers, floats, many values ---------------------------------------------------------


@pytest.mark.parametrize("command", ["audit", "publish"])
def test_a_nearly_unique_public_column_is_named_loudly(
    command: str, small: pa.Table, process: Callable, desk: Desk
) -> None:
    table = small.append_column("person no", pa.array([f"id-{i}" for i in range(4_000)]))
    source = desk.source("t.parquet", table)
    more = [desk.out, "--test-key"] if command == "publish" else []
    outcome = process(command, source, *more, *EDU, "--keep-identifier", "person no")
    assert outcome.code == 0, outcome.err
    warnings = [line for line in outcome.err.splitlines() if "an identifier" in line]
    assert len(warnings) == 1
    assert warnings[0].startswith("warning: Public column 'person no'")
    assert "kept on request" in warnings[0]


def test_a_dropped_identifier_is_not_warned_of(small: pa.Table, cli: Callable, desk: Desk) -> None:
    table = small.append_column("id", pa.array(np.arange(4_000)))
    outcome = cli("audit", desk.source("t.parquet", table), *EDU, "--drop", "id")
    assert (outcome.code, outcome.err) == (1, "")


def test_an_identifier_is_a_warning_in_python_too(small: pa.Table) -> None:
    table = small.append_column("id", pa.array(np.arange(4_000)))
    opened = rp.read(table, sensitive="Education", public="all")
    with pytest.warns(rp.ReconprivWarning, match="'id' is nearly unique"):
        opened.audit(rp.Policy(0.5, 0.5, 0.3))
    opened.close()
    assert any("'id'" in note for note in opened.warnings)


def test_an_identifier_is_seen_whatever_the_first_rows_look_like(small: pa.Table) -> None:
    """The first 2,000 records lack it; the other 2,000 all differ."""
    ids = [None] * 1_900 + list(range(2_100))
    with rp.read(
        small.append_column("id", pa.array(ids)), sensitive="Education", public="all"
    ) as table:
        with pytest.warns(rp.ReconprivWarning, match="'id' is nearly unique"):
            report = table.audit(rp.Policy(0.5, 0.5, 0.3))
        assert any("'id'" in note for note in report.warnings)


def test_an_ordinary_column_is_not_warned_of(small: pa.Table) -> None:
    with rp.read(small, sensitive="Education", public="all") as table:
        assert table.warnings == ()


@pytest.mark.parametrize(
    "values",
    [
        pa.array([0.5, 1.5] * 10),
        pa.array([1.0, 2.0] * 10, pa.float32()),
        pa.array(np.arange(20) * 86_400_000_000, pa.timestamp("us")),
    ],
)
def test_a_sensitive_column_of_floats_or_times_is_refused_with_a_hint_to_bin(
    desk: Desk, values: pa.Array
) -> None:
    source = desk.source("t.parquet", pa.table({"a": [1, 2] * 10, "wage": values}))
    message = desk.both(source, "-s", "wage", "--public=all")
    assert "'wage'" in message
    assert "Bin it" in message
    assert ("--sql" if pa.types.is_timestamp(values.type) else "--bin wage=") in message


def test_the_hint_to_bin_works_as_it_stands(desk: Desk, cli: Callable) -> None:
    table = pa.table({"a": [1, 2] * 500, 'net "wage"': np.arange(1000) * 5.5})
    source = desk.source("t.parquet", table)
    message = desk.both(source, "-s", 'net "wage"', "--public=all")
    option = shlex.split(message.rstrip().removesuffix(".").split("of your choice with ", 1)[1])
    outcome = cli("audit", source, "-s", 'net "wage"', "--public=all", *option, "--json")
    assert outcome.code in (0, 1), outcome.err
    assert json.loads(outcome.out)["domain_size"] == 3


def test_more_than_1000_sensitive_values_are_refused(desk: Desk, cli: Callable) -> None:
    def source(values: int) -> Path:
        table = pa.table({"a": [1, 2] * 1001, "s": [i % values for i in range(2002)]})
        return desk.source("t.parquet", table)

    message = desk.both(source(1001), "-s", "s", "--public=all")
    assert "more than 1,000 distinct" in message
    assert "Bin it" in message
    assert cli("audit", source(1000), "-s", "s", "--public=all").code in (0, 1)


def test_more_than_1000_declared_values_are_allowed(desk: Desk, cli: Callable) -> None:
    source = desk.source("t.parquet", pa.table({"a": [1, 2] * 1001, "s": range(2002)}))
    domain = desk.file("domain.txt", "".join(f"{i}\n" for i in range(2002)))
    outcome = cli("audit", source, "-s", "s", "--public=all", "--domain", domain, "--json")
    assert outcome.code == 0
    assert json.loads(outcome.out)["domain_size"] == 2002


# --- OUT exists -------------------------------------------------------------------------------


def test_out_is_a_file(desk: Desk, good: Path) -> None:
    desk.file("out", "precious")
    assert "exists" in desk.publish(good, *EDU)
    assert "not a release" in desk.publish(good, *EDU, "--overwrite")


def test_out_is_a_folder_of_something_else(desk: Desk, good: Path) -> None:
    desk.out.mkdir()
    (desk.out / "precious.txt").write_text("keep")
    assert "--overwrite" in desk.publish(good, *EDU)
    assert "not a release" in desk.publish(good, *EDU, "--overwrite")


def test_out_holds_a_data_package_of_somebody_else(desk: Desk, good: Path) -> None:
    desk.out.mkdir()
    (desk.out / "datapackage.json").write_text('{"name": "reconpriv-like"}')
    assert "not a release" in desk.publish(good, *EDU, "--overwrite")


@pytest.mark.parametrize("text", ['"reconpriv"', '["reconpriv"]', "[1", "null", "7"])
def test_out_holds_an_odd_manifest(desk: Desk, good: Path, text: str) -> None:
    desk.out.mkdir()
    (desk.out / "datapackage.json").write_text(text)
    assert "not a release" in desk.publish(good, *EDU, "--overwrite")


def test_out_is_a_dangling_link(desk: Desk, good: Path) -> None:
    desk.out.symlink_to(desk.desk / "nowhere")
    assert "exists" in desk.publish(good, *EDU)
    assert "not a release" in desk.publish(good, *EDU, "--overwrite")


def test_out_is_a_release_and_stays_without_overwrite(
    desk: Desk, good: Path, cli: Callable
) -> None:
    assert cli("publish", good, desk.out, *EDU, "--test-key").code == 0
    assert "--overwrite" in desk.publish(good, *EDU)


def test_out_is_a_release_and_is_replaced_with_overwrite(
    desk: Desk, good: Path, cli: Callable
) -> None:
    assert cli("publish", good, desk.out, *EDU, "--test-key").code == 0
    (desk.out / "notes.txt").write_text("of the old release")
    command = ("publish", good, desk.out, *EDU, "--test-key", "--overwrite", "--format", "csv")
    assert cli(*command).code == 0
    names = {file.name for file in desk.out.iterdir()}
    assert names == {"data.csv", "groups.csv", "margins.csv", "datapackage.json"}
    assert [file.name for file in desk.desk.iterdir()] == ["out"]


def test_a_failed_overwrite_keeps_the_old_release(desk: Desk, good: Path, cli: Callable) -> None:
    assert cli("publish", good, desk.out, *EDU, "--test-key").code == 0
    desk.publish(good, *EDU, *UNATTAINABLE, "--overwrite")


def test_an_empty_folder_is_replaced_only_with_overwrite(
    desk: Desk, good: Path, cli: Callable
) -> None:
    desk.out.mkdir()
    assert "exists" in desk.publish(good, *EDU)
    assert cli("publish", good, desk.out, *EDU, "--test-key", "--overwrite").code == 0


def test_folders_on_the_way_to_out_are_not_left_behind_either(
    desk: Desk, good: Path, cli: Callable
) -> None:
    before = desk.snapshot()
    outcome = cli("publish", good, desk.desk / "new" / "deeper" / "out", *EDU, *UNATTAINABLE)
    assert outcome.code == 2
    assert desk.snapshot() == before


def test_out_inside_a_file_or_without_a_place(desk: Desk, good: Path, cli: Callable) -> None:
    desk.file("file", "x")
    outcome = cli("publish", good, desk.desk / "file" / "out", *EDU)
    assert outcome.code == 2
    check_sentence(outcome.err)


def test_a_groups_file_that_exists_is_kept(desk: Desk, good: Path) -> None:
    existing = desk.file("groups.csv", "precious")
    assert "exists" in desk.audit(good, *EDU, "--groups", existing)


@pytest.mark.parametrize("name", ["groups.txt", "groups", "no/such/folder/groups.csv"])
def test_a_groups_file_of_a_bad_name(desk: Desk, good: Path, name: str) -> None:
    assert Path(name).name in desk.audit(good, *EDU, "--groups", desk.desk / name)


def test_exact_tails_without_a_groups_file(cli: Callable, good: Path) -> None:
    outcome = cli("audit", good, *EDU, "--exact-tails")
    assert outcome.code == 2
    assert "--groups" in outcome.err
    assert "unexpected happened" not in outcome.err


# --- broken files -----------------------------------------------------------------------------


@pytest.fixture
def parquet_bytes(good: Path) -> bytes:
    return good.read_bytes()


@pytest.mark.parametrize("share", [0.0, 0.01, 0.5, 0.999])
def test_a_truncated_parquet(desk: Desk, parquet_bytes: bytes, share: float) -> None:
    source = desk.source("cut.parquet", parquet_bytes[: int(share * len(parquet_bytes))])
    assert "Parquet" in desk.both(source, *EDU)


def test_a_parquet_with_zeros_in_the_middle(desk: Desk, parquet_bytes: bytes) -> None:
    broken = parquet_bytes[:20] + bytes(300) + parquet_bytes[320:]
    message = desk.both(desk.source("t.parquet", broken), *EDU)
    assert "TProtocol" not in message
    assert "Parquet" in message


def test_not_a_parquet(desk: Desk) -> None:
    source = desk.source("t.parquet", "Gender,Education\nsecret-cell,x\n" * 20)
    message = desk.both(source, *EDU)
    assert "is not a Parquet file" in message
    assert "secret-cell" not in message


@pytest.mark.parametrize("share", [0.0, 0.01, 0.5, 0.999])
def test_a_truncated_arrow_file(desk: Desk, small: pa.Table, share: float) -> None:
    pyarrow.feather.write_feather(small, desk.vault / "whole.feather")
    content = (desk.vault / "whole.feather").read_bytes()
    source = desk.source("cut.feather", content[: int(share * len(content))])
    assert "damaged" in desk.both(source, *EDU)


def test_a_truncated_gzip(desk: Desk) -> None:
    content = gzip.compress(b"a,s\n" + os.urandom(3000).hex().encode() + b",x\n1,y\n")
    desk.both(desk.source("t.csv.gz", content[: len(content) // 2]), "-s", "s", "--public=all")


def test_a_damaged_gzip(desk: Desk) -> None:
    content = bytearray(gzip.compress(b"a,s\n" + b"1,x\n2,y\n" * 500))
    content[14:30] = bytes(16)
    desk.both(desk.source("t.csv.gz", bytes(content)), "-s", "s", "--public=all")


def test_not_a_gzip(desk: Desk) -> None:
    assert "cannot be read" in desk.both(
        desk.source("t.csv.gz", "a,s\n1,x\n"), "-s", "s", "--public=all"
    )


@pytest.mark.parametrize(
    ("text", "line", "found"),
    [
        ("a,s\n1,x\n2,y\n3,secret-cell,9\n4,z\n", 4, 3),
        ("a,s\n1,x\nsecret-cell\n4,z\n", 3, 1),
        ("a,s\r\n1,x\r\n2,y\r\n3,secret-cell,9\r\n", 4, 3),
        ("a;s\n1;x\n2;y;secret-cell\n", 3, 3),
        ("a,s\n" + "1,x\n2,y\n" * 100_000 + "secret-cell\n", 200_002, 1),
    ],
)
def test_a_ragged_csv_names_the_line_and_quotes_nothing(
    desk: Desk, text: str, line: int, found: int
) -> None:
    message = desk.both(desk.source("t.csv", text), "-s", "s", "--public=all")
    assert f"Line {line} " in message
    assert f"has {found} field" in message
    assert "header has 2" in message
    assert "secret-cell" not in message


def test_ragged_standard_input(desk: Desk) -> None:
    message = desk.both("-", "-s", "s", "--public=all", stdin="a,s\n1,x\n2,y,secret-cell\n")
    assert "Line 3 " in message
    assert "secret-cell" not in message


def test_a_quote_that_is_never_closed(desk: Desk) -> None:
    message = desk.both(
        desk.source("t.csv", 'a,s\n1,x\n2,"secret-cell\n3,y\n'), "-s", "s", "--public=all"
    )
    assert "secret-cell" not in message
    assert "Invalid Input" not in message


@pytest.mark.parametrize("header", ["a,a,s", "a,A,s", "s,a,s"])
def test_a_csv_with_two_columns_of_one_name(desk: Desk, header: str) -> None:
    message = desk.both(
        desk.source("t.csv", f"{header}\n1,2,x\n1,2,y\n"), "-s", "s", "--public=all"
    )
    assert "two columns called" in message or "differ only in case" in message


def test_a_csv_column_without_a_name(desk: Desk) -> None:
    assert "Column 2" in desk.both(desk.source("t.csv", "a,,s\n1,2,x\n"), "-s", "s", "--public=all")


@pytest.mark.parametrize("text", ["é,s\n1,x\n2,y\n", "a,s\n1,é\n2,y\n",
                                  "a,s\n" + "1,x\n" * 100_000 + "1,é\n"])  # fmt: skip
def test_a_csv_that_is_not_utf8(desk: Desk, text: str) -> None:
    message = desk.both(desk.source("t.csv", text.encode("latin-1")), "-s", "s", "--public=all")
    assert "UTF-8" in message


@pytest.mark.parametrize("text", ['{"a": 1, "s": "x"}\n{"a": 2, "s": "secret-cell\n', "plain\n"])
def test_broken_json_lines(desk: Desk, text: str) -> None:
    message = desk.both(desk.source("t.jsonl", text), "-s", "s", "--public=all")
    assert "secret-cell" not in message


def test_a_data_frame_of_mixed_types_or_no_frame_at_all() -> None:
    import pandas as pd

    with pytest.raises(rp.ReconprivError, match="mixed types"):
        rp.read(pd.DataFrame({"a": [1, "x"], "s": ["u", "v"]}), sensitive="s", public="all")
    with pytest.raises(rp.ReconprivError, match="dict"):
        rp.read({"a": [1], "s": ["u"]}, sensitive="s", public="all")


def test_a_table_with_two_columns_of_one_name() -> None:
    table = pa.Table.from_arrays([pa.array([1]), pa.array([2]), pa.array(["x"])], ["a", "a", "s"])
    with pytest.raises(rp.ReconprivError, match="two columns called 'a'"):
        rp.read(table, sensitive="s", public="all")


def test_a_date_that_python_cannot_hold(desk: Desk) -> None:
    source = desk.vault / "t.parquet"
    duckdb.sql(
        "SELECT DATE '12000-01-01' + (i % 2)::INT AS far, (i % 3)::VARCHAR AS s FROM range(30) r(i)"
    ).write_parquet(str(source))
    assert "far" in desk.publish(source, "-s", "s", "--public=all")


# --- --sql ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "query", ["SELECT 1; SELECT 2", "DROP VIEW input", "CREATE TABLE x AS FROM input", "-- x"]
)
def test_sql_that_is_not_one_select(desk: Desk, good: Path, query: str) -> None:
    assert "one SELECT" in desk.both(good, *EDU, "--sql", query)


@pytest.mark.parametrize("query", ["SELEC * FROM input", "SELECT zzz FROM input", "FROM nowhere"])
def test_sql_that_does_not_work(cli: Callable, good: Path, query: str) -> None:
    outcome = cli("audit", good, *EDU, "--sql", query)
    assert outcome.code == 2
    assert outcome.err.startswith("error: The SQL query does not work")
    assert outcome.err.count("\n") == 1


@pytest.mark.parametrize("kind", ["INT", "HUGEINT", "UBIGINT", "DATE"])
def test_sql_that_cannot_convert_a_value_does_not_quote_it(
    cli: Callable, desk: Desk, kind: str
) -> None:
    source = desk.source("t.csv", "a,s\nsecret-cell,x\n1,y\n")
    outcome = cli(
        "audit", source, "-s", "s", "--public=all", "--sql", f"SELECT a::{kind} AS a, s FROM input"
    )
    assert outcome.code == 2
    assert "secret-cell" not in outcome.err


# --- keys -------------------------------------------------------------------------------------

HEX = "8c2f19d4a7b3605e" * 4


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "short"),
        (HEX[:-1], "short"),
        (HEX[:32] + "\n", "short"),
        (HEX + "0", "too long"),
        (HEX + "\n" + HEX + "\n", "too long"),
        ("z" + HEX[1:], "hexadecimal"),
        (b"\xff" * 64, "hexadecimal"),
        ("0" * 64, "not random"),
    ],
)
def test_bad_key_files(desk: Desk, good: Path, content: bytes | str, words: str) -> None:
    message = desk.publish(good, *EDU, "--key", desk.file("key", content))
    assert words in message
    assert "keygen" in message
    assert HEX[:16] not in message


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o620, 0o666])
def test_a_key_file_that_others_may_read_or_write(desk: Desk, good: Path, mode: int) -> None:
    message = desk.publish(good, *EDU, "--key", desk.file("key", HEX, mode))
    assert "readable by others" in message
    assert f"{mode:04o}" in message
    assert "chmod 600" in message
    assert HEX[:16] not in message


def test_a_missing_key_file(desk: Desk, good: Path) -> None:
    message = desk.publish(good, *EDU, "--key", desk.desk / "nope.key")
    assert "no key file" in message
    assert "keygen" in message


def test_a_folder_as_key_file(desk: Desk, good: Path) -> None:
    (desk.desk / "key").mkdir(mode=0o700)
    assert "regular file" in desk.publish(good, *EDU, "--key", desk.desk / "key")


def test_both_kinds_of_key(cli: Callable, desk: Desk, good: Path) -> None:
    outcome = cli("publish", good, desk.out, *EDU, "--key", desk.file("key", HEX), "--test-key")
    assert outcome.code == 2
    assert "--test-key" in outcome.err
    assert "unexpected happened" not in outcome.err
    assert not desk.out.exists()


def test_errors_of_the_key_in_python_quote_no_key(desk: Desk) -> None:
    for bad in (HEX[:-2] + "zz", HEX[:-2], bytes.fromhex(HEX)[:-1], bytes.fromhex(HEX) + b"x"):
        with pytest.raises(rp.ReconprivError) as caught:
            rp.Key.from_hex(bad) if isinstance(bad, str) else rp.Key(bad)
        assert HEX[:16] not in str(caught.value)
    assert HEX[:8] not in repr(rp.Key.from_hex(HEX))
    assert HEX[:8] not in str(rp.Key.from_hex(HEX))


# --- in a process of its own ------------------------------------------------------------------


@pytest.mark.parametrize(
    "args",
    [
        ("audit", "nope.csv", "-s", "s", "--public=all"),
        ("publish", "ragged.csv", "out", "-s", "s", "--public=all"),
        ("publish", "cut.parquet", "out", "-s", "s", "--public=all"),
        ("publish", "good.csv", "out", "-s", "s", "--public=all", "--key", "nope"),
    ],
)
def test_the_real_command_says_one_sentence_too(
    args: tuple[str, ...], process: Callable, tmp_path: Path
) -> None:
    (tmp_path / "good.csv").write_text("a,s\n1,x\n2,y\n")
    (tmp_path / "ragged.csv").write_text("a,s\n1,x\n2,y,z\n")
    (tmp_path / "cut.parquet").write_bytes(b"PAR1 and then nothing")
    before = sorted(os.listdir(tmp_path))
    outcome = process(*args, cwd=tmp_path)
    assert outcome.code == 2
    assert outcome.out == ""
    check_sentence(outcome.err)
    assert sorted(os.listdir(tmp_path)) == before


# --- a full disk ------------------------------------------------------------------------------


# --- Ctrl-C and a broken pipe -----------------------------------------------------------------


def test_an_empty_list_of_public_columns_is_refused_on_the_command_line(cli):
    done = cli("audit", "example:adult", "-s", "sex", "--public", "")
    assert done.code == 2 and "--public is empty" in done.err


def test_a_bad_groups_file_is_refused_before_the_table_is_read(cli):
    done = cli("audit", "no-such-table.csv", "-s", "x", "--public=all", "--groups", "verdicts.txt")
    assert done.code == 2 and "verdicts.txt" in done.err

"""Everything that can be wrong with an input: one sentence, exit code 2, nothing left behind.

Most of it is in tables: a source, options, and the words of the refusal, separated by ``|``; what a
``!`` precedes must not be there. ``Desk`` checks that audit and publish say the same.
"""

import gzip
import json
import os
import shlex
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

import reconpriv as rp
from refusals import Desk, check_sentence

ADULT = "-s occupation --public age,sex,race --missing value"
NO_ROLES, EDU, S = "-s Education", "-s Education --public=all", "-s s --public=all"
GOOD = object()  # a good table
SECRET = "!secret-cell"
ODD = [[[1], [2]] * 10, [b"\x00", b"\x01"] * 10, [{"x": 1}] * 20]
TWO = "a,s\n1,x\n2,x\n"
HOLES = "a,s\n" + "1,x\n1,y\n2,x\n2,\n,y\n" * 10
GROUP = "x,s\n" + "".join(f"g,{v}\n" for v in "aaaaaaaaaaaabcde") + "h,a\n" * 9
TIMES = pa.array(np.arange(20) * 86_400_000_000, pa.timestamp("us"))


@pytest.fixture
def desk(tmp_path, scratch, cli):
    return Desk(tmp_path, scratch, cli)


@pytest.fixture
def good(desk, small):
    return desk.source("good.parquet", small)


def made(desk, small, name, content):
    """The path of a source, which is not there if it has no content."""
    if content is None:
        return name if ":" in name else desk.vault / name
    return desk.source(name, small if content is GOOD else content)


def check(message, words):
    for word in words.split("|"):
        assert (word.removeprefix("!") in message) != word.startswith("!"), (word, message)


def cut(content, share):
    return content[: int(share * len(content))]


NAMES = "Did you mean 'Education'?"
LATIN = "é,s\n1,x\n2,y\n", "a,s\n1,é\n2,y\n", "a,s\n" + "1,x\n" * 100_000 + "1,é\n"
DAMAGED = bytearray(gzip.compress(b"a,s\n" + b"1,x\n2,y\n" * 500))
DAMAGED[14:30] = bytes(16)
BOTH = [
    # no such file or column
    *((name, None, EDU, f"no file|{Path(name).name}")
      for name in ("nope.parquet", "nope.csv", "no/such/folder.parquet", "nope")),
    ("*.parquet", None, EDU, "'*.parquet'"),
    ("t.docx", "abc", EDU, "t.docx|.parquet"),
    ("example:nope", None, EDU, "'nope'|adult"),
    *((GOOD, GOOD, f"-s {name} --public=all", f"'{name}'|{NAMES}")
      for name in ("Eduction", "education", "EDUCATION")),
    (GOOD, GOOD, f"{NO_ROLES} --public Gender,Rase", "'Rase'|'Race'"),
    (GOOD, GOOD, f"{EDU} --drop Gendre", "'Gendre'"),
    (GOOD, GOOD, "-s zzzzzz --public=all", "Gender, Race, Workclass, Education"),
    # empty tables
    *(("t.csv", text, S, "empty") for text in ("a,s\n", "a,s", "a,s\r\n", "")),
    ("t.jsonl", "", S, "empty"), ("t.csv.gz", gzip.compress(b""), S, "empty"),
    (GOOD, GOOD, f"{EDU} --sql \"FROM input WHERE Race = 'Martian'\"", "empty"),
    # roles
    (GOOD, GOOD, f"{NO_ROLES} --public Gender,Education", "'Education'|public"),
    (GOOD, GOOD, f"{EDU} --drop Education", "dropped"),
    (GOOD, GOOD, f"{NO_ROLES} --public Gender,Race --drop Race", "'Race'"),
    (GOOD, GOOD, f"{NO_ROLES} --public Gender,Gender", "twice"),
    *(("t.parquet", pa.table({"odd": column, "s": ["x", "y"] * 10}), S, "'odd'|--drop odd")
      for column in ODD),
    ("t.csv", TWO, S, "one value|--domain"),
    # p, tolerance, doubt
    *((GOOD, GOOD, f"{EDU} --retention={value}", f"between 0 and 1|got {float(value):g}")
      for value in ("0", "1", "-0.5", "1.5", "nan", "inf", "-inf")),
    *((GOOD, GOOD, f"{EDU} --doubt={value}", f"doubt of a policy|got {float(value):g}")
      for value in ("0", "1", "-0.5", "1.5", "nan", "inf")),
    *((GOOD, GOOD, f"{EDU} --tolerance={value}", f"tolerance of a policy|got {float(value):g}")
      for value in ("0", "-1", "nan", "-inf", "2", "inf")),
    # With p = 1/2 and m = 5 the limit of ε is 1 + (1-p)/(mp) = 1.2.
    *(("t.csv", GROUP, f"{S} --tolerance={value} --preset=paper", f"= 1.2.|ε = {value}")
      for value in ("1.21", "1.99")),
    (GOOD, GOOD, f"{EDU} --bound chernof", "'chernof'|chernoff-full"),
    (GOOD, GOOD, f"{EDU} --missing impute", "refuse, drop, value"),
    (GOOD, GOOD, f"{EDU} --threads 0", "got 0"),
    (GOOD, GOOD, f"{EDU} --memory lots", "'lots'"),
    (GOOD, GOOD, f"{EDU} --threads {'9' * 20}", "!memory as"),
    (GOOD, GOOD, f"{EDU} -p 1e-200", "leaves nothing to estimate"),
    (GOOD, GOOD, f"{EDU} -p 10", "got 10: did you mean 0.1?"),
    (GOOD, GOOD, f"{EDU} -e 20", "got 20: did you mean 0.2?"),
    (GOOD, GOOD, f"{EDU} -d 30", "got 30: did you mean 0.3?"),
    (GOOD, GOOD, f"{EDU} --exposed-above 25", "got 25: did you mean 0.25?"),
    # bins, groups and protection
    *(("example:adult", None, f"{ADULT} {options}", words)
      for options, words in (
          ("--bin =10", "--bin takes COLUMN=…"),
          ("--bin '\"open=10'", "--bin takes COLUMN=…"),
          ("--bin age=10 --bin age=5", "given twice for column 'age'"),
          ("--bin age=18,65", "below its first border, 18. Add a lower border"),
          ("--bin agee=10", "no column 'agee'"),
          ("--bin sex=10", "bins are for numbers"),
          ("--group sex=gone.csv", "There is no file of groups at gone.csv"),
          ("--group sex=gone.csv:level", "There is no file of groups at gone.csv"),
          ("--protect agee=10", "no column 'agee'"),
          ("--protect age=10 --protect age=5", "given twice"),
          ("--protect sex=10", "bins of numbers"),
          ("--protect age=10 --sampling paper", "exact totals"),
          ("--protect age=there.csv", "no file of groups"))),
    # margins
    *((GOOD, GOOD, f"{EDU} {options}", words)
      for options, words in (
          ("--margins 11", "ε of margins must be above 0 and at most 10; got 11"),
          ("--margins 20", "got 20: did you mean 0.2?"),
          ("--margins 1e20", "at most 10; got 1e+20."),
          ("--margins -1", "ε of margins must be above 0"),
          ("--margins nan", "ε of margins must be above 0"),
          ("--margins-rho 0", "ρ of margins must be above 0"),
          ("--margins-rho 1e20", "at most 1,000,000"),
          ("--margins 1 --margins-rho 0.01", "either --margins or --margins-rho"),
          ("--margins 0 --margins-delta 1e-6", "With --margins 0 there are no margins"),
          ("--margins 0 --margin-tables Race", "With --margins 0 there are no margins"),
          ("--margins 1 --margins-delta 0", "δ of margins"),
          ("--margins 1 --margin-tables Race,Race", "named twice"),
          ("--margins 1 --margin-tables Race+Race", "each column once"),
          ("--margins 1 --margin-tables Race+", "--margin-tables takes"),
          ("--margins 1 --margin-tables Education", "is the sensitive one"),
          ("--margins 1 --margin-tables nope", "'nope', which is not a public column"))),
    (GOOD, GOOD, f"{NO_ROLES} --public ''", "--public is empty"),
    # missing values
    ("t.csv", HOLES, S, "--missing drop|--missing value"),
    ("t.csv", "a,s\n1,\n2,\n", f"{S} --missing drop", "every record"),
    ("t.csv", "a,s\n1,\n2,\n", f"{S} --missing value", "one value"),
    # floats and times
    *(("t.parquet", pa.table({"a": [1, 2] * 10, "wage": values}), "-s wage --public=all",
       f"'wage'|Bin it|{option}")
      for values, option in (
          (pa.array([0.5, 1.5] * 10), "--bin wage="),
          (pa.array([1.0, 2.0] * 10, pa.float32()), "--bin wage="), (TIMES, "--sql"))),
    # broken files
    ("t.parquet", "Gender,Education\nsecret-cell,x\n" * 20, EDU,
     f"is not a Parquet file|{SECRET}"),
    ("t.csv.gz", cut(gzip.compress(b"a,s\n" + os.urandom(3000).hex().encode() + b",x\n1,y\n"), 0.5),
     S, ""),
    ("t.csv.gz", bytes(DAMAGED), S, ""),
    ("t.csv.gz", "a,s\n1,x\n", S, "cannot be read"),
    *(("t.csv", text, S, f"Line {line} |has {found} field|header has 2|{SECRET}")
      for text, line, found in (
          ("a,s\n1,x\n2,y\n3,secret-cell,9\n4,z\n", 4, 3),
          ("a,s\n1,x\nsecret-cell\n4,z\n", 3, 1),
          ("a,s\r\n1,x\r\n2,y\r\n3,secret-cell,9\r\n", 4, 3),
          ("a;s\n1;x\n2;y;secret-cell\n", 3, 3),
          ("a,s\n" + "1,x\n2,y\n" * 100_000 + "secret-cell\n", 200_002, 1))),
    ("t.csv", 'a,s\n1,x\n2,"secret-cell\n3,y\n', S, f"{SECRET}|!Invalid Input"),
    ("t.csv", "a,a,s\n1,2,x\n1,2,y\n", S, "two columns called"),
    ("t.csv", "a,A,s\n1,2,x\n1,2,y\n", S, "differ only in case"),
    ("t.csv", "s,a,s\n1,2,x\n1,2,y\n", S, "two columns called"),
    ("t.csv", "a,,s\n1,2,x\n", S, "Column 2"),
    *(("t.csv", text.encode("latin-1"), S, "UTF-8") for text in LATIN),
    *(("t.jsonl", text, S, SECRET)
      for text in ('{"a": 1, "s": "x"}\n{"a": 2, "s": "secret-cell\n', "plain\n")),
    # --sql
    *((GOOD, GOOD, f"{EDU} --sql {query!r}", "one SELECT")
      for query in ("SELECT 1; SELECT 2", "DROP VIEW input", "CREATE TABLE x AS FROM input",
                    "-- x")),
]  # fmt: skip


# What is compressed holds the time, so workers would call the same test by other names.
@pytest.mark.parametrize(("name", "content", "options", "words"), BOTH, ids=range(len(BOTH)))
def test_audit_and_publish_refuse_it_alike(desk, small, name, content, options, words):
    source = made(desk, small, "good.parquet" if name is GOOD else name, content)
    check(desk.both(source, *shlex.split(options)), words or "error")


def test_a_glob_over_different_kinds_of_file_and_a_folder_without_parquet(desk, small):
    desk.source("t1.parquet", small)
    desk.source("t2.csv", "Education\nx\n")
    (desk.vault / "empty").mkdir()
    assert "different kinds" in desk.both(desk.vault / "t*", *EDU.split())
    assert "'empty' holds no Parquet" in desk.both(desk.vault / "empty", *EDU.split())


def test_a_parquet_of_no_rows_is_empty(desk, small):
    assert "empty" in desk.both(desk.source("t.parquet", small.slice(0, 0)), *EDU.split())
    with pytest.raises(rp.ReconprivError, match="empty"):
        rp.read(small.slice(0, 0).to_pandas(), sensitive="Education", public="all")


@pytest.mark.parametrize(
    ("stdin", "words"),
    [("", "standard input is empty"), ("a,s\n1,x\n2,y,secret-cell\n", f"Line 3 |{SECRET}")],
)
def test_standard_input(desk, stdin, words):
    check(desk.both("-", *S.split(), stdin=stdin), words)


DROPPED = pa.table({"odd": [[1], [2]] * 10, "s": ["x", "y"] * 10})


@pytest.mark.parametrize(
    ("name", "content", "options", "codes"),
    [
        ("t.parquet", DROPPED, f"{S} --drop odd", (0,)),
        ("t.csv", GROUP, f"{S} --preset=paper -e 1.2", (0, 1)),
        ("t.csv", GROUP, f"{S} --preset=paper -e 1.2001", (2,)),
    ],
)
def test_what_is_just_good_enough(desk, cli, name, content, options, codes):
    assert cli("audit", desk.source(name, content), *options.split()).code in codes


@pytest.mark.parametrize(
    ("rows", "name", "content", "words"),
    [
        ("xx", "d.txt", "x\nx\n", "one value"),
        ("xy", "d.txt", "x\nz\n", "outside the declared domain|for example 'y'"),
        ("xy", "d.txt", "", "empty"),
        ("xy", "d.txt", "\n \n", "empty"),
        ("xy", "d.json", "[]", "empty"),
        ("xy", "d.json", "{'x'", "not valid JSON"),
        ("xy", "d.json", '{"x": 1}', "JSON array"),
        ("xy", "d.json", '"x"', "JSON array"),
        ("xy", "d.json", '[["x"], {"y": 1}, "x", "y"]', "array of values"),
        ("xy", "d.txt", b"\xff\xfe\x00x", "UTF-8"),
        # 3.7 is not 3, and true is not 1.
        ("12", "d.txt", "1\n2\nthree\n", "does not fit|integer"),
        ("12", "d.json", "[1, 2, 3.7]", "does not fit|integer"),
        ("12", "d.json", "[1, 2, true]", "does not fit|integer"),
        ("12", "d.json", '[1, 2, "2.5"]', "does not fit|integer"),
    ],
)
def test_bad_domains(desk, rows, name, content, words):
    source, domain = (
        desk.source("t.csv", f"a,s\nu,{rows[0]}\nv,{rows[1]}\n"),
        desk.file(name, content),
    )
    check(desk.both(source, *S.split(), "--domain", domain), words)


def test_a_missing_domain_file_and_a_folder(desk, good):
    (desk.desk / "folder").mkdir()
    assert "nope.txt" in desk.both(good, *EDU.split(), "--domain", desk.desk / "nope.txt")
    assert "cannot be read" in desk.both(good, *EDU.split(), "--domain", desk.desk / "folder")


@pytest.mark.parametrize(
    ("table", "values"),
    [
        (pa.table({"a": [1, 2], "s": ["x", "x"]}), ["x", "y"]),
        # More than 1,000 values are allowed if they are declared.
        (pa.table({"a": [1, 2] * 1001, "s": range(2002)}), range(2002)),
    ],
)
def test_a_larger_declared_domain_is_fine(cli, desk, table, values):
    domain = desk.file("domain.txt", "".join(f"{value}\n" for value in values))
    source = desk.source("t.parquet", table)
    outcome = cli("audit", source, *S.split(), "--domain", domain, "--json")
    assert outcome.code == 0
    assert json.loads(outcome.out)["domain_size"] == len(values)


UNATTAINABLE = "--preset paper -p 0.9 -e 0.9 -d 0.9"
EXACT = "--exposed-above 0 -d 0.45 --sampling"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("--sampling octaves", "'octaves'|octave, public"),
        ("--format xlsx", "'xlsx'|parquet, csv"),
        ("--unattainable ignore", "one-trial"),
        (f"{EXACT} octave", "no number of trials is private|--exposed-above 0.25"),
        (f"{EXACT} public", "no number of trials is private|--exposed-above 0.25"),
    ],
)
def test_publish_refuses(desk, good, options, words):
    check(desk.publish(good, *EDU.split(), *options.split()), words)


@pytest.mark.parametrize("sampling", ["octave", "public", "paper"])
def test_a_policy_that_no_trial_keeps_needs_one_trial(desk, good, small, cli, sampling):
    policy = (*EDU.split(), *UNATTAINABLE.split(), "--sampling", sampling)
    groups = len(set(zip(*(c.to_pylist() for c in small.columns[:-1]), strict=True)))
    counts = f"|{groups:,} group|{small.num_rows:,} record" if sampling == "public" else ""
    check(desk.publish(good, *policy), f"not even one trial|Lower p|one-trial{counts}")
    outcome = cli("publish", good, desk.out, *policy, "--unattainable", "one-trial", "--test-key",
                  "--json")  # fmt: skip
    assert outcome.code == 0, outcome.err
    summary = json.loads(outcome.out)
    assert summary["unattainable_groups"] > 0
    if sampling == "public":
        assert summary["trials"] == summary["groups"] == summary["unattainable_groups"]
        groups = pq.read_table(desk.out / "groups.parquet")
        assert set(groups["trials"].to_pylist()) == {1}


@pytest.mark.parametrize(
    ("missing", "records", "values"), [("drop", 40, ["x", "y"]), ("value", 50, ["x", "y", None])]
)
def test_missing_values_are_left_out_or_become_a_value(cli, desk, missing, records, values):
    source = desk.source("t.csv", HOLES)
    outcome = cli("publish", source, desk.out, *S.split(), "--missing", missing, "--test-key")
    assert outcome.code == 0, outcome.err
    data = pq.read_table(desk.out / "data.parquet")
    assert data.num_rows == records
    assert set(data["s"].to_pylist()) == set(values)
    manifest = json.loads((desk.out / "datapackage.json").read_text())
    assert manifest["reconpriv"]["domain"] == values
    if missing == "value":  # missing is a public value of its own
        groups = pq.read_table(desk.out / "groups.parquet")
        sizes = dict(zip(groups["a"].to_pylist(), groups["records"].to_pylist(), strict=True))
        assert sizes == {1: 20, 2: 20, None: 10}


@pytest.mark.parametrize("command", ["audit", "publish"])
def test_a_nearly_unique_public_column_is_named_loudly(command, small, process, desk):
    table = small.append_column("person no", pa.array([f"id-{i}" for i in range(4_000)]))
    source = desk.source("t.parquet", table)
    more = [desk.out, "--test-key"] if command == "publish" else []
    outcome = process(command, source, *more, *EDU.split(), "--keep-identifier", "person no")
    assert outcome.code == 0, outcome.err
    (warning,) = [line for line in outcome.err.splitlines() if "an identifier" in line]
    assert warning.startswith("warning: Public column 'person no'")
    assert "kept on request" in warning


# Of the second, the first rows lack it.
@pytest.mark.parametrize("ids", [np.arange(4_000), [None] * 1_900 + list(range(2_100))])
def test_an_identifier_is_a_warning_in_python_too(small, ids):
    table = small.append_column("id", pa.array(ids))
    with rp.read(table, sensitive="Education", public="all") as opened:
        with pytest.warns(rp.ReconprivWarning, match="'id' is nearly unique"):
            report = opened.audit(rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3))
        assert any("'id'" in note for note in report.warnings)
        assert any("'id'" in note for note in opened.warnings)


def test_the_hint_to_bin_works_as_it_stands(desk, cli):
    table = pa.table({"a": [1, 2] * 500, 'net "wage"': np.arange(1000) * 5.5})
    source = desk.source("t.parquet", table)
    message = desk.both(source, "-s", 'net "wage"', "--public=all")
    option = shlex.split(message.rstrip().removesuffix(".").split("of your choice with ", 1)[1])
    outcome = cli("audit", source, "-s", 'net "wage"', "--public=all", *option, "--json")
    assert outcome.code in (0, 1), outcome.err
    assert json.loads(outcome.out)["domain_size"] == 3


def test_more_than_1000_sensitive_values_are_refused(desk, cli):
    def source(values):
        table = pa.table({"a": [1, 2] * 1001, "s": [i % values for i in range(2002)]})
        return desk.source("t.parquet", table)

    check(desk.both(source(1001), *S.split()), "more than 1,000 distinct|Bin it")
    assert cli("audit", source(1000), *S.split()).code in (0, 1)


@pytest.mark.parametrize(
    "there",
    ["file", "link", "folder", '{"name": "reconpriv-like"}', '"reconpriv"', '["reconpriv"]', "[1",
     "null", "7"],
)  # fmt: skip
def test_out_is_something_else(desk, good, there):
    if there == "file":
        desk.file("out", "precious")
    elif there == "link":
        desk.out.symlink_to(desk.desk / "nowhere")
    else:
        desk.out.mkdir()
        name = "precious.txt" if there == "folder" else "datapackage.json"
        (desk.out / name).write_text(there)
    check(desk.publish(good, *EDU.split()), "--overwrite" if there == "folder" else "exists")
    check(desk.publish(good, *EDU.split(), "--overwrite"), "not a release")


def test_out_is_a_release(desk, good, cli):
    """It stays without --overwrite, and if the new one fails; with it, it is replaced."""
    publish = ("publish", good, desk.out, *EDU.split(), "--test-key")
    assert cli(*publish).code == 0
    assert "--overwrite" in desk.publish(good, *EDU.split())
    desk.publish(good, *EDU.split(), *UNATTAINABLE.split(), "--overwrite")
    (desk.out / "notes.txt").write_text("of the old release")
    assert cli(*publish, "--overwrite", "--format", "csv").code == 0
    names = {file.name for file in desk.out.iterdir()}
    assert names == {"data.csv", "groups.csv", "margins.csv", "datapackage.json"}
    assert [file.name for file in desk.desk.iterdir()] == ["out"]


def test_an_empty_folder_is_replaced_only_with_overwrite(desk, good, cli):
    desk.out.mkdir()
    assert "exists" in desk.publish(good, *EDU.split())
    assert cli("publish", good, desk.out, *EDU.split(), "--test-key", "--overwrite").code == 0


def test_folders_on_the_way_to_out(desk, good, cli):
    """They are not left behind either; and a file is no folder."""
    desk.file("file", "x")
    before = desk.snapshot()
    for place, policy in (("new/deeper/out", UNATTAINABLE), ("file/out", "")):
        outcome = cli("publish", good, desk.desk / place, *EDU.split(), *policy.split())
        assert outcome.code == 2
        check_sentence(outcome.err)
        assert desk.snapshot() == before


def test_the_file_of_groups(desk, good, cli):
    existing = desk.file("groups.csv", "precious")
    assert "exists" in desk.audit(good, *EDU.split(), "--groups", existing)
    for name in ("groups.txt", "groups", "no/such/folder/groups.csv"):
        message = desk.audit(good, *EDU.split(), "--groups", desk.desk / name)
        assert Path(name).name in message
    for source, options, words in (
        (good, "--exact-tails", "--groups"),
        # Before the table is read.
        ("no-such-table.csv", "--groups verdicts.txt", "verdicts.txt"),
    ):
        outcome = cli("audit", source, *EDU.split(), *options.split())
        assert outcome.code == 2 and words in outcome.err
        assert "unexpected happened" not in outcome.err


@pytest.mark.parametrize("share", [0.0, 0.01, 0.5, 0.999])
@pytest.mark.parametrize(("kind", "words"), [("parquet", "Parquet"), ("feather", "damaged")])
def test_a_truncated_file(desk, small, kind, words, share):
    whole = desk.vault / f"whole.{kind}"
    (pq.write_table if kind == "parquet" else pyarrow.feather.write_feather)(small, whole)
    source = desk.source(f"cut.{kind}", cut(whole.read_bytes(), share))
    assert words in desk.both(source, *EDU.split())


def test_a_data_frame_of_mixed_types_or_no_frame_at_all():
    import pandas as pd

    twice = pa.Table.from_arrays([pa.array([1]), pa.array([2]), pa.array(["x"])], ["a", "a", "s"])
    mixed = pd.DataFrame({"a": [1, "x"], "s": ["u", "v"]})
    for given, words in (
        (mixed, "mixed types"),
        ({"a": [1], "s": ["u"]}, "dict"),
        (twice, "two columns called 'a'"),
    ):
        with pytest.raises(rp.ReconprivError, match=words):
            rp.read(given, sensitive="s", public="all")


@pytest.mark.parametrize("query", ["SELEC * FROM input", "SELECT zzz FROM input", "FROM nowhere"])
def test_sql_that_does_not_work(cli, good, query):
    outcome = cli("audit", good, *EDU.split(), "--sql", query)
    assert outcome.code == 2
    assert outcome.err.startswith("error: The SQL query does not work")
    assert outcome.err.count("\n") == 1


@pytest.mark.parametrize("kind", ["INT", "HUGEINT", "UBIGINT", "DATE"])
def test_sql_that_cannot_convert_a_value_does_not_quote_it(cli, desk, kind):
    source = desk.source("t.csv", "a,s\nsecret-cell,x\n1,y\n")
    outcome = cli("audit", source, *S.split(), "--sql", f"SELECT a::{kind} AS a, s FROM input")
    assert outcome.code == 2
    assert "secret-cell" not in outcome.err


@pytest.mark.parametrize(
    "words",
    [
        "audit nope.csv",
        "publish ragged.csv out",
        "publish cut.parquet out",
        "publish good.csv out --key nope",
    ],
)
def test_the_real_command_says_one_sentence_too(words, process, tmp_path):
    (tmp_path / "good.csv").write_text("a,s\n1,x\n2,y\n")
    (tmp_path / "ragged.csv").write_text("a,s\n1,x\n2,y,z\n")
    (tmp_path / "cut.parquet").write_bytes(b"PAR1 and then nothing")
    before = sorted(os.listdir(tmp_path))
    outcome = process(*words.split(), *S.split(), cwd=tmp_path)
    assert outcome.code == 2
    assert outcome.out == ""
    check_sentence(outcome.err)
    assert sorted(os.listdir(tmp_path)) == before

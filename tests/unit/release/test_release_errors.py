"""Folders that are not releases, newer, damaged or altered ones; typos in a query; info."""

import json
import shutil

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import reconpriv as rp
from query_fixtures import (
    SAMPLING_RULES,
    accept_hashes,
    copy_release,
    edit_manifest,
    people,
    people_release,
)
from reconpriv.errors import InputError, MissingFileError, ReleaseError
from reconpriv.show.results.release import info_document
from reconpriv.show.text import as_text


@pytest.fixture(params=["octave", "paper"])
def folder(request, tmp_path):
    """A copy of a release, with and without a groups file, that a test may damage."""
    return copy_release(request.param, tmp_path / "release")


@pytest.fixture
def octave(tmp_path):
    return copy_release("octave", tmp_path / "release")


# --- folders and manifests -----------------------------------------------------------------------


def test_a_folder_that_is_not_there_is_missing(tmp_path):
    with pytest.raises(MissingFileError, match="no release folder"):
        rp.open(tmp_path / "nowhere")
    assert issubclass(MissingFileError, FileNotFoundError)


def test_a_folder_that_is_no_release_is_refused(tmp_path):
    with pytest.raises(ReleaseError, match=r"is not a release.*Give the folder of a release"):
        rp.open(tmp_path)


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "null", "{}", '{"resources": []}', b"\xff\xfe\x00", '"reconpriv"', "3"]
)
def test_a_manifest_without_our_block_makes_no_release(octave, text):
    content = text if isinstance(text, bytes) else text.encode()
    (octave / "datapackage.json").write_bytes(content)
    with pytest.raises(ReleaseError, match="is not a release"):
        rp.open(octave)


def test_a_release_of_a_newer_format_is_refused_with_what_to_do(octave):
    edit_manifest(octave, lambda m: m["reconpriv"].update(format_version=7))
    with pytest.raises(ReleaseError, match=r"format version 7.*reads up to 6.*newer reconpriv"):
        rp.open(octave)


@pytest.mark.parametrize("version", [None, "1", 1.5, [1]])
def test_a_format_version_that_is_none_is_refused(octave, version):
    edit_manifest(octave, lambda m: m["reconpriv"].update(format_version=version))
    with pytest.raises(ReleaseError, match="no format version"):
        rp.open(octave)


def _use(folder):
    """Everything an analyst may do with a release."""
    release = rp.open(folder)
    as_text(info_document(release))
    str(release)
    release.count("age < 25", job="nurse")
    release.to_arrow()


def _without(name):
    return lambda m: m["reconpriv"].pop(name)


def _with(name, value):
    return lambda m: m["reconpriv"].update({name: value})


@pytest.mark.parametrize(
    "damage",
    [
        *(_without(name) for name in ("format_version", "created_by", "sample_size", "retention",
          "epsilon", "delta", "bound", "sensitive", "domain", "public", "records")),
        *(lambda m, name=name: m["resources"][0].pop(name)
          for name in ("name", "path", "hash", "schema")),
        *(_with(name, value) for name, value in (
          ("retention", 0), ("retention", 1), ("retention", "half"), ("retention", None),
          ("epsilon", "x"), ("epsilon", None), ("delta", 5), ("records", "many"),
          ("records", None), ("domain", []), ("domain", ["nurse"]), ("domain", 5),
          ("public", ["height"]), ("sensitive", "income"), ("sample_size", "huge"),
          ("sample_size", []))),
    ],
)  # fmt: skip
def test_a_manifest_that_lacks_a_field_or_has_an_impossible_one_is_damaged(folder, damage):
    edit_manifest(folder, damage)
    with pytest.raises(ReleaseError, match="manifest"):
        _use(folder)


@pytest.mark.parametrize("resources", [None, [], {}, "data", [5]])
def test_a_manifest_without_resources_is_damaged(octave, resources):
    edit_manifest(octave, lambda m: m.update(resources=resources))
    with pytest.raises(ReleaseError, match="damaged"):
        rp.open(octave)


def test_a_manifest_cannot_point_outside_its_folder(octave):
    outside = octave.parent / "outside.parquet"
    shutil.move(octave / "data.parquet", outside)
    edit_manifest(octave, lambda m: m["resources"][0].update(path="../outside.parquet"))
    with pytest.raises(ReleaseError, match=r"lacks its file outside\.parquet"):
        rp.open(octave).count(age=20)


# --- files that do not match ---------------------------------------------------------------------


def _rewrite(file, change):
    pq.write_table(change(pq.read_table(file)), file)


@pytest.mark.parametrize("name", ["data.parquet", "groups.parquet"])
def test_a_file_that_was_touched_is_refused_by_its_hash(octave, name):
    with (octave / name).open("ab") as stream:
        stream.write(b" ")
    release = rp.open(octave)
    with pytest.raises(ReleaseError, match=rf"{name} does not match its manifest \(hash\)"):
        release.count(age=20)
    with pytest.raises(ReleaseError, match="hash"):
        release.to_arrow()


@pytest.mark.parametrize("name", ["data.parquet", "groups.parquet"])
def test_a_file_that_is_not_there_is_named(octave, name):
    (octave / name).unlink()
    with pytest.raises(ReleaseError, match=f"lacks its file {name}"):
        rp.open(octave).count(age=20)


def _column(table, name, values):
    return table.set_column(table.column_names.index(name), name, pa.array(values))


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (lambda t: t.rename_columns(["age", "Sex", "area", "job"]), "columns"),
        (lambda t: t.drop_columns(["region"]), "columns"),
        (lambda t: t.append_column("more", pa.array([1] * t.num_rows)), "columns"),
        (lambda t: t.select(["Sex", "age", "region", "job"]), "columns"),
        (lambda t: t.set_column(0, "age", t["age"].cast(pa.string())), "columns"),
        (lambda t: t.slice(1), "rows"),
        (lambda t: pa.concat_tables([t, t.slice(0, 3)]), "rows"),
        (lambda t: t.slice(0, 0), "rows"),
        (lambda t: _column(t, "job", ["wizard", *t["job"].to_pylist()[1:]]), "domain"),
    ],
)
def test_data_that_do_not_match_the_manifest_are_refused(folder, change, what):
    _rewrite(folder / "data.parquet", change)
    accept_hashes(folder)
    with pytest.raises(ReleaseError, match=rf"data\.parquet does not match .* \({what}\)"):
        rp.open(folder).count(age=20)


def test_a_data_file_that_is_no_parquet_is_refused(folder):
    (folder / "data.parquet").write_bytes(b"not parquet at all")
    accept_hashes(folder)
    with pytest.raises(rp.ReconprivError):
        rp.open(folder).count(age=20)


@pytest.mark.parametrize(
    "change",
    [
        lambda t: t.slice(1),
        lambda t: _column(t, "records", [r + 1 for r in t["records"].to_pylist()]),
        lambda t: t.drop_columns(["trials"]),
        lambda t: t.drop_columns(["records"]),
        lambda t: _column(t, "trials", [0] * t.num_rows),
        lambda t: _column(t, "trials", [-1] * t.num_rows),
        lambda t: _column(t, "trials", [None, *t["trials"].to_pylist()[1:]]),
        lambda t: _column(t, "trials", ["many"] * t.num_rows),
        lambda t: _column(t, "trials", [r + 1 for r in t["records"].to_pylist()]),
        lambda t: _column(t, "age", [99] * t.num_rows),
    ],
    ids=["rows", "records", "no trials", "no records", "zero trials", "negative trials",
         "missing trials", "text for trials", "more trials than records", "other groups"],
)  # fmt: skip
def test_a_groups_file_that_does_not_match_the_data_is_refused(octave, change):
    _rewrite(octave / "groups.parquet", change)
    accept_hashes(octave)
    with pytest.raises(ReleaseError, match=r"groups\.parquet does not match"):
        rp.open(octave).count(job="nurse")


# --- slips in a question -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ask", "near"),
    [
        (lambda r: r.count(agee=20), "'age'"),
        (lambda r: r.count(sex="F"), "'Sex'"),
        (lambda r: r.count("regoin = 'North'"), "'region'"),
        (lambda r: r.sql("SELECT count(*) FROM release WHERE jobb = 'nurse'"), "'job'"),
        (lambda r: r.sql("SELECT regions, count(*) FROM release GROUP BY regions"), "'region'"),
        (lambda r: r.crosstab(["regiom"]), "'region'"),
        (lambda r: r.crosstab(["REGION"]), "'region'"),
        (lambda r: r.count(AGE=20), "'age'"),
    ],
)
def test_an_unknown_column_is_refused_with_the_nearest(ask, near):
    with pytest.raises(InputError, match=rf"has no column .*Did you mean {near}\?"):
        ask(people_release("octave"))


def test_a_column_that_is_like_no_other_is_refused_with_all_there_are():
    with pytest.raises(InputError, match="It has: age, Sex, region, job"):
        people_release("octave").count(zzz=1)


@pytest.mark.parametrize(
    ("ask", "near"),
    [
        (lambda r: r.count(job="nurze"), "nurse"),
        (lambda r: r.count(job=["nurse", "bakr"]), "baker"),
        (lambda r: r.count("job = 'nurze'"), "nurse"),
        (lambda r: r.count("job IN ('clerc', 'nurse')"), "clerk"),
        (lambda r: r.count("job NOT IN ('clerc')"), "clerk"),
        (lambda r: r.count("job <> 'nurze'"), "nurse"),
        (lambda r: r.count(region="Noth"), "North"),
        (lambda r: r.count("region = 'Noth'"), "North"),
        (lambda r: r.count("'Noth' = region OR age = 20"), "North"),
        (lambda r: r.count(region=["Noth"]), "North"),
        (lambda r: r.count(job="NURSE"), "nurse"),
        (lambda r: r.count("job = 'NURSE'"), "nurse"),
    ],
)
def test_an_unknown_value_is_refused_with_the_nearest(ask, near):
    with pytest.raises(InputError, match=rf"has no value .*Did you mean '{near}'\?"):
        ask(people_release("octave"))


def test_a_value_that_is_like_no_other_is_refused_with_some_that_are_known():
    with pytest.raises(InputError, match="Known: baker, clerk, nurse, pilot"):
        people_release("octave").count(job="xyz")


@pytest.mark.parametrize("sampling", SAMPLING_RULES)
@pytest.mark.parametrize(
    "where", ["age = 99", "age > 99", "age = 20 AND age = 21", "false", "age IN (98, 99)"]
)
def test_an_empty_selection_counts_zero_exactly(sampling, where):
    release = people_release(sampling)
    answers = [
        release.count(where),
        release.count(where, job="nurse"),
        release.count(where, job=["nurse", None], estimator="constrained"),
        release.sql(f"SELECT count(*) FROM release WHERE {where} AND job = 'nurse'"),
    ]
    for answer in answers:
        assert (answer.count, answer.low, answer.high) == (0, 0, 0)
        assert answer.exact and answer.standard_error == 0 and answer.remarks == ()
        assert (answer.records, answer.groups, answer.trials) == (0, 0, 0)


def test_a_table_of_an_empty_selection_has_no_public_rows():
    release = people_release("octave")
    assert len(release.crosstab(["Sex"], "age = 99")) == 0
    assert release.crosstab(["Sex"], "age = 99").to_arrow().num_rows == 0
    assert len(release.frequencies("age = 99")) == 0


# --- the test key --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def test_key_release(tmp_path_factory):
    folder = tmp_path_factory.mktemp("test-key") / "release"
    with rp.read(people(), sensitive="job", public="all", missing="value") as table:
        table.publish(rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3), folder, key=rp.Key.test())
    return folder


def test_opening_a_release_made_with_the_test_key_warns(test_key_release):
    with pytest.warns(rp.ReconprivWarning, match="test key.*not for release"):
        release = rp.open(test_key_release)
    assert any("test key" in note for note in release.info()["warnings"])


def test_opening_a_release_made_with_a_secret_key_warns_of_nothing(recwarn):
    rp.open(people_release("octave").path)
    assert not recwarn.list


@pytest.mark.parametrize(
    "arguments", [("info",), ("query", "SELECT count(*) FROM release WHERE age = 20")]
)
def test_the_command_line_warns_of_the_test_key_on_standard_error(process, test_key_release,
                                                                  arguments):  # fmt: skip
    name, *rest = arguments
    done = process(name, test_key_release, *rest)
    assert done.code == 0
    assert done.err.count("test key") == 1 and done.err.startswith("warning: ")
    assert "test key" not in done.out


# --- the command line ----------------------------------------------------------------------------


@pytest.mark.parametrize("command", [("info",), ("query", "SELECT count(*) FROM release")])
def test_the_command_line_says_in_one_line_what_is_wrong_with_a_release(cli, tmp_path, command):
    name, *rest = command
    done = cli(name, tmp_path, *rest)
    assert done.code == 2 and done.out == ""
    assert done.err.startswith("error: ") and done.err.count("\n") == 1
    done = cli(name, tmp_path / "nowhere", *rest)
    assert done.code == 2 and "no release folder" in done.err


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("SELECT max(age) FROM release",), "Ask for a quantile"),
        (("SELECT count(*) FROM release WHERE agee = 20",), "Did you mean 'age'?"),
        (("SELECT count(*) FROM release WHERE job = 'nurze'",), "Did you mean 'nurse'?"),
        (("SELECT count(*) FROM release", "--confidence", "1.5"), "between 0 and 1"),
        (("SELECT count(*) FROM release", "--estimator", "em"), "mle, constrained"),
    ],
)
def test_the_command_line_refuses_a_bad_question_with_one_line_and_exit_2(cli, arguments, sentence):
    done = cli("query", people_release("octave").path, *arguments)
    assert done.code == 2 and done.out == ""
    assert done.err.startswith("error: ") and sentence in done.err
    assert done.err.count("\n") == 1


def test_the_parser_adds_no_lines_of_its_own(process):
    done = process("query", people_release("octave").path, "EXPLAIN SELECT count(*) FROM release")
    assert done.code == 2 and done.err.startswith("error: ") and done.err.count("\n") == 1


# --- info ----------------------------------------------------------------------------------------


def told(cli, sampling):
    done = cli("info", people_release(sampling).path)
    assert done.code == 0 and done.err == ""
    return " ".join(done.out.split())


@pytest.mark.parametrize("sampling", SAMPLING_RULES)
def test_info_tells_what_is_exact_what_is_estimated_and_what_p_means(cli, sampling):
    text = told(cli, sampling)
    assert f"{people_release(sampling).records:,} records" in text
    assert "Exact age, Sex, region." in text
    assert "Estimated job. With probability p = 0.5 a trial keeps its true value" in text
    assert "drawn at random from all 5 values (baker, clerk, nurse, pilot, (missing))" in text
    assert "plain counts are biased" in text
    assert "not in a population" in text
    assert "p = 0.5, tolerance 0.5, doubt 0.3" in text


@pytest.mark.parametrize(
    ("sampling", "sentences"),
    [
        ("none", ["no group was sampled", "no promise is made about groups"]),
        ("paper", ["Algorithm 1", "How many is not published"]),
        ("octave", ["fewer independent trials", "groups file says how many"]),
        ("public", ["as many as their size alone allows", "groups file says how many"]),
    ],
)
def test_info_tells_how_groups_were_sampled(cli, sampling, sentences):
    text = told(cli, sampling)
    assert all(sentence in text for sentence in sentences)
    others = {"none": "fewer independent trials", "paper": "groups file says how many"}
    assert others.get(sampling, "Algorithm 1") not in text


@pytest.mark.parametrize("sampling", SAMPLING_RULES)
def test_info_calls_public_counts_exact_only_where_they_are(cli, sampling):
    text = told(cli, sampling)
    assert ("alone are exact" in text) == (sampling != "paper")
    assert ("to within a few coin flips" in text) == (sampling == "paper")


def test_info_without_sampling_does_not_promise_reconstruction_privacy(cli):
    assert "In every group of" not in told(cli, "none")
    assert "Nothing is promised about groups" in told(cli, "none")
    assert "In every group of" in told(cli, "octave")


def test_info_as_json_is_what_a_program_needs(cli):
    done = cli("info", people_release("octave").path, "--json")
    facts = json.loads(done.out)
    assert facts["sensitive"] == "job" and facts["public"] == ["age", "Sex", "region"]
    assert facts["retention"] == 0.5 and facts["public_counts_exact"] is True
    assert facts["local_dp_epsilon"] == pytest.approx(np.log(1 + 0.5 * 5 / 0.5))
    assert facts["records"] == 3_000 and facts["warnings"] == []
    assert not any(secret in done.out for secret in ("seed", "host", "source"))


def test_the_published_groups_are_those_of_the_data(octave):
    data = pd.read_parquet(octave / "data.parquet")
    listed = pd.read_parquet(octave / "groups.parquet")
    counted = data.groupby(["age", "Sex", "region"], dropna=False).size()
    assert listed["records"].tolist() == counted.tolist()
    assert (listed["trials"] <= listed["records"]).all() and (listed["trials"] >= 1).all()

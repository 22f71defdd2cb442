"""Releases written for SPSS, Stata and SAS: the same records, and no silent loss."""

import datetime as dt
import json
from decimal import Decimal

import pyarrow as pa
import pyreadstat
import pytest

import reconpriv as rp
from formats_fixtures import write_survey
from reconpriv.columns.schema import ColumnLabels
from reconpriv.engines.duckdb.engine import DuckDBEngine, read_all
from reconpriv.release.export import export_table
from reconpriv.release.export_names import file_names

ENDINGS = [".sav", ".zsav", ".dta", ".xpt"]


@pytest.fixture(scope="module")
def release(tmp_path_factory, key):
    folder = tmp_path_factory.mktemp("export")
    with rp.read(write_survey(folder / "a.sav"), sensitive="income", public="all") as table:
        return table.publish(
            rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3), folder / "release", key=key
        )


@pytest.mark.parametrize("ending", [*ENDINGS, ".csv", ".parquet"])
def test_what_is_exported_reads_back(ending, release, tmp_path, count_rows):
    path = tmp_path / f"people{ending}"
    notes = release.export(path, plain=True)
    back = read_all(path)
    assert back.schema.equals(release.to_arrow().schema)
    assert count_rows(back) == count_rows(release.to_arrow())
    assert any("value labels" in note for note in notes) == (ending == ".xpt")


@pytest.mark.parametrize("ending", [".sav", ".dta"])
def test_labels_go_with_the_records(ending, release, tmp_path):
    release.export(tmp_path / f"a{ending}", plain=True)
    read = {".sav": pyreadstat.read_sav, ".dta": pyreadstat.read_dta}[ending]
    _, about = read(tmp_path / f"a{ending}", output_format="dict")
    assert about.column_names_to_labels["sex"] == "Sex of the person"
    assert about.variable_value_labels["income"] == {1: "low", 2: "middle", 3: "high"}
    assert about.variable_value_labels["sex"] == {1: "male", 2: "female", 3: "other"}
    assert about.file_label == "Randomised release (reconpriv)"


def test_an_exported_release_is_the_same_release_again(release, tmp_path, key):
    """Labels survive the round trip, so the manifest of what was exported has them, too."""
    release.export(tmp_path / "a.dta", plain=True)
    with rp.read(tmp_path / "a.dta", sensitive="income", public="all") as table:
        again = table.publish(
            rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3), tmp_path / "again", key=key
        )
    fields = [r.manifest["resources"][0]["schema"]["fields"] for r in (release, again)]
    assert fields[0] == fields[1]


def test_groups_can_be_exported(release, tmp_path):
    release.export(tmp_path / "groups.dta", groups=True)
    back = read_all(tmp_path / "groups.dta")
    assert back.column_names == ["sex", "region", "records", "trials"]
    assert sum(back["records"].to_pylist()) == release.records


def test_the_command(release, tmp_path, cli):
    file = tmp_path / "people.xpt"
    done = cli("export", release.path, file)
    script = file.with_suffix(".sas")
    assert (done.code, done.out) == (
        0,
        f"Records written to {file}.\n{script} shows how to count in it.\n",
    )
    assert "note: The value labels of column 'sex' are left out" in done.err
    assert cli("export", release.path, file).code == 2
    done = cli("export", release.path, file, "--overwrite", "--json")
    assert json.loads(done.out)["file"] == str(file)
    assert {path.name for path in tmp_path.iterdir()} == {"people.xpt", "people.sas"}


@pytest.mark.parametrize(
    ("name", "words"),
    [("a.sas7bdat", "Only SAS itself"), ("a.doc", "cannot be written"), ("no/a.sav", "no folder")],
)
def test_files_that_cannot_be_written(name, words, release, tmp_path):
    with pytest.raises(rp.errors.OutputError, match=words):
        release.export(tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def export(column, path, kind=None, name="x"):
    return export_table(pa.table({name: pa.array(column, kind)}), {}, path)


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize(
    ("column", "words"),
    [
        ([1, 2**60], "beyond 2\\^53"),
        ([1.0, float("inf")], "infinite"),
        ([Decimal("1.10")], "decimal"),
        (["a\0b"], "null character"),
        (["", None], "both empty and missing"),
    ],
)
def test_what_a_format_cannot_hold_is_refused(ending, column, words, tmp_path):
    with pytest.raises(rp.errors.OutputError, match=words):
        export(column, tmp_path / f"a{ending}")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("ending", [".sav", ".zsav", ".dta"])
def test_labels_of_codes_that_are_too_large_are_left_out(ending, tmp_path):
    said = ColumnLabels("", ((1, "one"), (9_999_999_999, "refused"), (-(2**40), "low")))
    path = tmp_path / f"a{ending}"
    notes = export_table(pa.table({"x": [1, 2]}), {"x": said}, path)
    assert notes == ("Labels of column 'x' for codes beyond 32 bits are left out.",)
    engine = DuckDBEngine(path)
    assert engine.labels["x"].values == ((1, "one"),)
    engine.close()


def test_what_the_writer_does_not_take_is_one_sentence(tmp_path, monkeypatch):
    def fail(*_, **__):
        raise OverflowError("4711 is in the table")

    monkeypatch.setattr(pyreadstat, "write_sav", fail)
    with pytest.raises(rp.errors.OutputError, match="cannot hold some value") as caught:
        export([1], tmp_path / "a.sav")
    assert "4711" not in str(caught.value) and list(tmp_path.iterdir()) == []


def test_limits_of_one_program(tmp_path):
    with pytest.raises(rp.errors.OutputError, match="ends in a blank"):
        export(["a "], tmp_path / "a.sav")
    with pytest.raises(rp.errors.OutputError, match="32,767 bytes"):
        export(["a" * 33_000], tmp_path / "a.xpt")
    with pytest.raises(rp.errors.OutputError, match="single microseconds"):
        export([dt.datetime(2020, 1, 1, 0, 0, 0, 1)], tmp_path / "a.sav")
    with pytest.raises(rp.errors.OutputError, match="too large or too small"):
        export([1e300], tmp_path / "a.xpt")
    assert list(tmp_path.iterdir()) == []
    export(["a "], tmp_path / "a.dta")
    assert read_all(tmp_path / "a.dta")["x"].to_pylist() == ["a "]


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize(
    ("column", "kind"),
    [
        ([1, None, 2**40], pa.int64()),
        ([-2_147_483_647, 2_147_483_647], pa.int64()),
        ([None, 1.25, -3e30], pa.float64()),
        (["é" * 3000, "b", None], pa.string()),
        ([dt.date(1961, 5, 7), None], pa.date32()),
        ([dt.datetime(2020, 1, 1, 1, 2, 3, 450), None], pa.timestamp("us")),
        ([dt.time(1, 2, 3, 4), None], pa.time64("us")),
    ],
)
def test_values_survive_the_round_trip(ending, column, kind, tmp_path):
    export(column, tmp_path / f"a{ending}", kind)
    back = read_all(tmp_path / f"a{ending}")["x"]
    assert back.to_pylist() == column
    assert back.type == kind


def test_notes_tell_what_was_changed(tmp_path):
    utc = pa.timestamp("us", "UTC")
    table = pa.table(
        {
            "is it": pa.array([True, None]),
            "when": pa.array([dt.datetime(2020, 1, 1, 12)] * 2, utc),
            "e": pa.array(["", "x"]),
        }
    )
    labels = {"when": ColumnLabels("ü" * 60), "e": ColumnLabels("", (("x", "an x"),))}
    notes = export_table(table, labels, tmp_path / "a.dta")
    assert notes == (
        "Column 'is it' holds 1 for true and 0 for false.",
        "Column 'when' is in UTC.",
        "Empty text in column 'e' counts as missing there.",
        "The value labels of column 'e' are left out: Stata files have none for such values.",
        "Column 'is it' is called is_it there.",
        "A label of column 'when' is cut to 80 bytes.",
    )
    values, about = pyreadstat.read_dta(tmp_path / "a.dta", output_format="dict")
    assert about.column_names_to_labels == {"is_it": "is it", "when": "ü" * 40, "e": None}
    assert values["is_it"] == [1, None]


@pytest.mark.parametrize(
    ("program", "names", "expected"),
    [
        (
            "Stata",
            ["a b", "a_b", "1st", "int", "größe"],
            ["a_b_2", "a_b", "v_1st", "v_int", "groe"],
        ),
        ("Stata", ["x" * 40, "x" * 41], ["x" * 32, "x" * 30 + "_2"]),
        ("SPSS", ["a.b", "with", "end.", "@x"], ["a.b", "v_with", "end", "@x"]),
        ("SAS", ["東京", "a-b", "_n_"], ["column", "a_b", "n"]),
    ],
)
def test_names_that_a_program_does_not_allow_are_changed(program, names, expected):
    assert list(file_names(names, program).values()) == expected


def test_without_the_extra_one_sentence_names_it(release, tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pyreadstat", None)
    with pytest.raises(rp.errors.OutputError, match=r"-m pip install '.*pyreadstat>="):
        release.export(tmp_path / "a.sav")


def test_a_release_without_groups_has_none_to_export(release, tmp_path, key):
    with rp.read(release.to_arrow(), sensitive="income", public="all") as table:
        plain = table.publish(
            rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3, sampling="none"),
            tmp_path / "plain",
            key=key,
        )
    with pytest.raises(rp.errors.ReleaseError, match="has no groups"):
        plain.export(tmp_path / "a.sav", groups=True)


def test_spss_names_texts_also_long_ones(tmp_path):
    named = (("a", "the first"), ("a text of more than eight bytes", "a long one"))
    table = pa.table({"x": pa.array([value for value, _ in named])})
    assert export_table(table, {"x": ColumnLabels("", named)}, tmp_path / "a.sav") == ()
    _, about = pyreadstat.read_sav(tmp_path / "a.sav", output_format="dict")
    assert about.variable_value_labels["x"] == dict(named)

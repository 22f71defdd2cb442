"""Labels: from a statistical file into the manifest, to the analyst, and in place of codes."""

import json

import polars as pl
import pytest

import reconpriv as rp
from formats_fixtures import SURVEY, VALUES, write, write_survey
from reconpriv.attacks.side_channels import attack_side_channels
from reconpriv.engines.duckdb.engine import DuckDBEngine
from reconpriv.release.manifest import Manifest

INCOME = [
    {"value": 1, "label": "low"},
    {"value": 2, "label": "middle"},
    {"value": 3, "label": "high"},
]
SEX = [
    {"value": 1, "label": "male"},
    {"value": 2, "label": "female"},
    {"value": 3, "label": "other"},
    {"value": 9},
]


def publish(source, out, key, **settings):
    settings = {"sensitive": "income", "public": "all", **settings}
    with rp.read(source, **settings) as table:
        return table.publish(rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3), out, key=key)


def fields(release, resource=0):
    described = release.manifest["resources"][resource]["schema"]["fields"]
    return {field["name"]: field for field in described}


@pytest.fixture(scope="module")
def labelled(tmp_path_factory, key):
    folder = tmp_path_factory.mktemp("labelled")
    return publish(write_survey(folder / "a.sav"), folder / "release", key)


@pytest.mark.parametrize("ending", [".sav", ".dta"])
def test_labels_describe_the_fields(ending, tmp_path, key):
    """A public value without a label is a category, too; the sensitive ones are the domain."""
    release = publish(write_survey(tmp_path / f"a{ending}"), tmp_path / "out", key)
    assert fields(release)["sex"] == {
        "name": "sex", "type": "integer", "title": "Sex of the person", "categories": SEX,
    }  # fmt: skip
    assert fields(release)["income"]["categories"] == INCOME
    assert fields(release)["income"]["title"] == "Income class"
    assert fields(release)["region"] == {"name": "region", "type": "string"}
    assert fields(release, 1)["sex"] == fields(release)["sex"]


def test_sas_files_have_variable_labels_only(tmp_path, key):
    release = publish(write_survey(tmp_path / "a.xpt"), tmp_path / "out", key)
    assert fields(release)["sex"] == {
        "name": "sex", "type": "integer", "title": "Sex of the person",
    }  # fmt: skip
    assert fields(release)["income"]["categories"] == [1, 2, 3]


def test_labels_change_nothing_but_the_manifest(labelled, tmp_path, key, files_of):
    plain = publish(write(SURVEY, tmp_path / "a.sav"), tmp_path / "plain", key)
    before, after = files_of(plain.path), files_of(labelled.path)
    assert {n for n in after if before[n] != after[n]} == {"datapackage.json"}
    assert "labels" not in plain.info()
    assert all("title" not in field for field in fields(plain).values())


def test_a_value_in_dropped_records_alone_is_no_category(tmp_path, key):
    """Value 9 of sex occurs only where income is missing, so it is not published."""
    dropped = SURVEY.with_columns(
        pl.when(pl.col("sex") == 9).then(None).otherwise(pl.col("income")).alias("income")
    )
    path = write(dropped, tmp_path / "a.dta", variable_value_labels=VALUES)
    release = publish(path, tmp_path / "out", key, missing="drop")
    assert fields(release)["sex"]["categories"] == SEX[:3]


def test_a_dropped_column_has_no_label_in_the_release(tmp_path, key):
    path = write_survey(tmp_path / "a.sav")
    release = publish(path, tmp_path / "out", key, drop=["sex"])
    assert "Sex of the person" not in (release.path / "datapackage.json").read_text()
    assert set(release.info()["labels"]) == {"income"}


def test_labels_of_numbers_go_into_the_description(tmp_path, key):
    frame = SURVEY.with_columns(rate=pl.Series([0.5, 1.5] * 80))
    labels = {"rate": {0.5: "half", 1.5: "more"}}
    path = write(frame, tmp_path / "a.sav", variable_value_labels=labels)
    release = publish(path, tmp_path / "out", key)
    assert fields(release)["rate"]["description"] == "0.5 = half; 1.5 = more"
    assert "categories" not in fields(release)["rate"]
    assert rp.open(release.path).info()["labels"]["rate"] == {
        "description": "0.5 = half; 1.5 = more"
    }


def test_the_analyst_is_told(labelled, cli):
    said = rp.open(labelled.path).info()["labels"]
    assert said["income"] == {"title": "Income class", "values": INCOME}
    shown = " ".join(cli("info", labelled.path).out.split())
    assert "sex (Sex of the person): 1 = male, 2 = female, 3 = other;" in shown
    assert "income (Income class): 1 = low, 2 = middle, 3 = high." in shown
    assert json.loads(cli("info", labelled.path, "--json").out)["labels"] == said


def test_the_analysts_report_shows_labels(labelled):
    from reconpriv.reports.analyst import analyst_html

    page = analyst_html(rp.open(labelled.path))
    assert "1 = male" in page
    assert "Sex of the person" in page


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("title", 7),
        ("description", ["x"]),
        ("categories", {"value": 1}),
        ("categories", [{"label": "x"}]),
        ("categories", [{"value": "x", "label": "y"}]),
        ("categories", [{"value": 1, "label": 2}]),
    ],
)
def test_malformed_labels_are_a_damaged_manifest(name, value, labelled, tmp_path):
    manifest = json.loads((labelled.path / "datapackage.json").read_text())
    manifest["resources"][0]["schema"]["fields"][0][name] = value
    (tmp_path / "datapackage.json").write_text(json.dumps(manifest))
    with pytest.raises(rp.errors.ReleaseError, match="damaged"):
        Manifest.read(tmp_path)


def test_labels_can_take_the_place_of_codes(tmp_path, key):
    """A code without a label becomes its own text."""
    path = write_survey(tmp_path / "a.dta")
    release = publish(path, tmp_path / "out", key, labels="apply")
    assert release.manifest["reconpriv"]["domain"] == ["high", "low", "middle"]
    assert set(release.to_arrow()["sex"].to_pylist()) == {"male", "female", "9"}
    assert fields(release)["sex"] == {
        "name": "sex", "type": "string", "title": "Sex of the person",
    }  # fmt: skip


def test_applied_labels_must_tell_values_apart(tmp_path):
    for labels in ({"income": {1: "low", 2: "low"}}, {"income": {1: "3"}}):
        path = write(SURVEY, tmp_path / "a.sav", variable_value_labels=labels)
        with pytest.raises(rp.errors.InputError, match="have the same label"):
            rp.read(path, sensitive="income", public="all", labels="apply")


def test_labels_of_a_column_that_is_left_out_need_not_tell_values_apart(tmp_path):
    labels = {"sex": {1: "same", 2: "same"}, "income": {1: "low", 2: "middle", 3: "high"}}
    path = write(SURVEY, tmp_path / "a.sav", variable_value_labels=labels)
    with rp.read(path, sensitive="income", public="all", drop="sex", labels="apply") as table:
        assert table.schema.domain == ("high", "low", "middle")
    with pytest.raises(rp.errors.InputError, match="Two values of column 'sex'"):
        rp.read(path, sensitive="income", public="all", labels="apply")


def test_labels_are_applied_only_where_there_are_some(tmp_path, cli):
    for source in (rp.dataset_path("adult"), SURVEY, write_survey(tmp_path / "a.xpt")):
        with pytest.raises(rp.errors.InputError, match="value labels"):
            rp.read(source, sensitive="income", public="all", labels="apply")
    with pytest.raises(rp.errors.InputError, match="no treatment of labels called 'x'"):
        rp.read(SURVEY, sensitive="income", public="all", labels="x")
    done = cli("audit", "example:adult", "-s", "occupation", "--public=all", "--labels", "apply")
    assert done.code == 2
    with pytest.raises(rp.errors.InputError, match="Only DuckDB reads"):
        rp.read(SURVEY, sensitive="income", public="all", labels="apply", engine="spark")


@pytest.mark.parametrize(
    ("sql", "kept"),
    [
        ("SELECT * FROM input WHERE sex < 9", {"sex": "sex", "income": "income"}),
        ("FROM input", {"sex": "sex", "income": "income"}),
        ("SELECT Sex AS gender, income + 1 AS income FROM input", {"gender": "sex"}),
        ("SELECT * REPLACE (income // 2 AS income) FROM input", {"sex": "sex"}),
        ("SELECT * RENAME (sex AS s) FROM input", {"s": "sex", "income": "income"}),
        ("SELECT * EXCLUDE (sex) FROM input", {"income": "income"}),
        ("SELECT * EXCLUDE (income), 4 - income AS income FROM input", {"sex": "sex"}),
        ("SELECT * EXCLUDE (INCOME), 4 - income AS Income FROM input", {"sex": "sex"}),
        ("SELECT sex AS income, * EXCLUDE (income, sex) FROM input", {"income": "sex"}),
        ("SELECT i.* EXCLUDE (i.income), 4 - i.income AS income FROM input i", {"sex": "sex"}),
        ("SELECT * EXCLUDE (income) RENAME (sex AS income) FROM input", {"income": "sex"}),
        ("SELECT *, 4 - income AS income FROM input", {}),
        ("SELECT * EXCLUDE (income), COLUMNS('income') + 1 FROM input", {}),
        ("SELECT * EXCLUDE (income), unnest({'income': 4 - income}) FROM input", {}),
        ("WITH input AS (SELECT 1 AS sex) SELECT * FROM input", {}),
        ("SELECT sex FROM (SELECT income AS sex FROM input)", {}),
        ("SELECT a.sex FROM input a JOIN input b ON a.sex = b.income", {}),
    ],
)
def test_a_query_keeps_labels_of_columns_that_it_leaves_alone(sql, kept, tmp_path):
    engine = DuckDBEngine(write_survey(tmp_path / "a.sav"), sql=sql)
    titles = {"sex": "Sex of the person", "income": "Income class"}
    names = {column.name for column in engine.columns()}
    found = {name: said.title for name, said in engine.labels.items() if name in names}
    engine.close()
    assert found == {new: titles[old] for new, old in kept.items()}


def test_an_attack_on_a_release_takes_no_labels(labelled, cli):
    for option in (("--labels", "apply"), ("--table", "x")):
        done = cli("attack", "side-channels", labelled.path, *option)
        assert (done.code, "has its columns" in done.err) == (2, True)


def test_labels_are_no_side_channel(tmp_path):
    with rp.read(write_survey(tmp_path / "a.sav"), sensitive="income", public="all") as table:
        found = attack_side_channels(table, rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3))
    assert {row["channel"] for row in found.table if row["leaks"] == "yes"} == set()

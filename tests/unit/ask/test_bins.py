"""Declared bins and groups: from every kind of source into a release, and queried there."""

from __future__ import annotations

import json
import sqlite3
import warnings

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import reconpriv as rp
from reconpriv.errors import InputError, ReleaseError

POLICY = rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3)
SCHOOL = {"BSc": "Degree", "MSc": "Degree", "HS": "School", "Primary": "School"}
ROLES = {
    "sensitive": "income",
    "public": "all",
    "bin": {"age": 10, "income": [0, 10_000, 20_000]},
    "group": {"school": SCHOOL},
}


@pytest.fixture(scope="module")
def people():
    """Whole numbers, numbers with parts, texts; some are missing, none of the incomes."""
    draw = np.random.default_rng(5)
    age = [None if draw.random() < 0.05 else int(a) for a in draw.integers(3, 108, 1_200)]
    income = np.round(draw.gamma(2, 8_000, 1_200), 2)
    school = [None if draw.random() < 0.05 else str(s) for s in draw.choice(list(SCHOOL), 1_200)]
    return pa.table({"age": age, "school": school, "income": income})


@pytest.fixture(scope="module")
def release(people, key, tmp_path_factory):
    folder = tmp_path_factory.mktemp("bins") / "release"
    with rp.read(people, **ROLES) as table:
        return table.publish(POLICY, folder, key=key)


def refusal(source, **roles):
    with pytest.raises(rp.ReconprivError) as caught:
        rp.read(source, **{"sensitive": "school", "public": "all", **roles}).close()
    return str(caught.value)


def labels_of(source, column, **roles):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with rp.read(
            source, **{"sensitive": "school", "public": "all", "missing": "drop", **roles}
        ) as table:
            recoding = table.schema.recoding(column)
            assert recoding is not None
            return list(recoding.labels)


def test_labels_are_ordered_and_read_as_declared(people, release):
    block = release.manifest["reconpriv"]
    assert block["domain"] == ["0 to under 10000", "10000 to under 20000", "20000 or more"]
    ages = ["0 to 9", *(f"{a} to {a + 9}" for a in range(10, 110, 10))]
    fields = {one["name"]: one for one in release.manifest["resources"][0]["schema"]["fields"]}
    assert fields["age"] == {
        "name": "age", "type": "string", "categories": ages, "categoriesOrdered": True
    }  # fmt: skip
    assert fields["income"]["categoriesOrdered"] is True
    assert fields["income"]["categories"] == block["domain"]
    # As text 100 to 109 would stand before 20 to 29; the missing age is last.
    assert [row["age"] for row, _ in release.crosstab(["age"])] == [*ages, None]
    assert [row["income"] for row, _ in release.frequencies()] == block["domain"]
    assert [row["school"] for row, _ in release.crosstab(["school"])] == ["Degree", "School", None]


def test_true_counts_by_bins_are_those_of_the_raw_numbers(people):
    incomes, ages = people["income"].to_numpy(), np.array(people["age"].to_pylist(), dtype=float)
    with rp.read(people, **ROLES) as table:
        assert table.count("income < 10000") == (incomes < 10_000).sum()
        assert table.count("income >= 10000 AND 70 > age") == ((incomes >= 1e4) & (ages < 70)).sum()
        assert table.count("age BETWEEN 20 AND 49") == ((ages >= 20) & (ages <= 49)).sum()
        assert table.count("NOT age <= 19.5") == (ages > 19).sum()  # a missing age is neither
        assert table.count("age >= -1e9") == np.isfinite(ages).sum()
        assert table.count("age > 1000") == 0
        assert table.count(age=None) == np.isnan(ages).sum()
        with pytest.raises(InputError, match=r"cuts the bin '60 to 69'.*60 or 70"):
            table.count("age < 65")
        with pytest.raises(InputError, match="'0 to under 10000'"):
            table.count("income <= 5000")
        assert table.count("age < 65", whole_bins=True) == (ages < 70).sum()


def test_public_counts_are_exact_and_a_cut_bin_is_not(people, release):
    ages = np.array(people["age"].to_pylist(), dtype=float)
    exact = release.count("age < 70")
    assert (exact.count, exact.exact) == ((ages < 70).sum(), True)
    whole = release.count("age < 65", whole_bins=True)
    assert (whole.count, whole.exact, whole.estimator) == (exact.count, False, "whole bins")
    assert whole.remarks == ("answered for age < 70: the bin '60 to 69' is counted whole",)
    assert str(whole) == f"{whole.count:,.0f} (whole bins)\n  note: {whole.remarks[0]}"
    assert "exact" not in whole._repr_html_()
    (many,) = release.count_many([{"age": 65}], whole_bins=True)
    assert not many.exact
    assert many.remarks[0].startswith("answered for age = '60 to 69'")
    table = release.frequencies("age < 65", whole_bins=True)
    assert all(whole.remarks[0] in estimate.remarks for _, estimate in table)
    grouped = release.sql(
        "SELECT school, count(*) FROM release WHERE age < 65 GROUP BY school", whole_bins=True
    )
    assert not any(estimate.exact for _, estimate in grouped)


@pytest.mark.parametrize(
    "condition",
    [
        "age + 1 < 70", "age LIKE '6%'", "abs(age) < 70", "age = school", "age < NULL",
        "age // 10 = 6", "school < 'M'", "school LIKE 'D%'", "upper(school) = 'DEGREE'",
        "CASE WHEN age < 70 THEN age ELSE '' END = ''", "age BETWEEN SYMMETRIC 70 AND 0",
    ],
)  # fmt: skip
def test_what_has_no_meaning_for_a_recoded_column_is_refused(release, condition):
    with pytest.raises(InputError) as caught:
        release.count(condition)
    assert "\n" not in str(caught.value)


def test_values_behind_a_group_are_known(release):
    with pytest.raises(InputError, match=r"part of the group 'Degree'.*school = 'Degree'"):
        release.count(school="BSc")
    both = release.count("school IN ('BSc', 'MSc')")
    assert both.exact
    assert both.count == release.count(school="Degree").count
    assert not release.count("school = 'BSc'", whole_bins=True).exact


@pytest.mark.parametrize("kind", ["parquet", "csv", "sqlite", "pandas", "polars"])
def test_the_same_release_from_every_kind_of_source(people, release, key, tmp_path, files_of, kind):
    if kind == "parquet":
        source: object = tmp_path / "people.parquet"
        pq.write_table(people, source)
    elif kind == "csv":
        source = tmp_path / "people.csv"
        pyarrow.csv.write_csv(people, source)
    elif kind == "sqlite":
        source = tmp_path / "people.sqlite"
        with sqlite3.connect(source) as connection:
            connection.execute("CREATE TABLE people (age INTEGER, school TEXT, income REAL)")
            rows = zip(*(column.to_pylist() for column in people.columns), strict=True)
            connection.executemany("INSERT INTO people VALUES (?, ?, ?)", rows)
    elif kind == "pandas":
        source = people.to_pandas(types_mapper={pa.int64(): __import__("pandas").Int64Dtype()}.get)
    else:
        import polars

        source = polars.from_arrow(people).lazy()
    with rp.read(source, **ROLES, table="people" if kind == "sqlite" else None) as table:
        table.publish(POLICY, tmp_path / "out", key=key)
    assert files_of(tmp_path / "out") == files_of(release.path)


@pytest.mark.parametrize("file_format", ["csv", "cells"])
@pytest.mark.parametrize("sampling", ["none", "octave"])
def test_every_format_is_read_back(people, key, tmp_path, file_format, sampling):
    policy = rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3, sampling=sampling)
    with rp.read(people, **ROLES) as table:
        table.publish(policy, tmp_path / "out", key=key, file_format=file_format)
        opened = rp.open(tmp_path / "out")
        assert opened.answerer.cells.schema.recodings == table.schema.recodings
        assert opened.count("age < 50").count == table.count("age < 50")


def test_a_frame_comes_back_with_bins_as_text(people, key):
    import pandas
    import polars

    for frame in (people.to_pandas(), polars.from_arrow(people), people):
        back = rp.publish(frame, POLICY, key=key, **ROLES)
        assert type(back) is type(frame)
        found = back["income"].to_list() if hasattr(back["income"], "to_list") else (
            back["income"].to_pylist()
        )  # fmt: skip
        assert set(found) == {"0 to under 10000", "10000 to under 20000", "20000 or more"}
    assert isinstance(people.to_pandas(), pandas.DataFrame)


def test_declared_bins_are_the_domain_whether_they_occur_or_not(people):
    bins = {"income": [-100, 0, 10_000, 10**8, 10**9]}
    with rp.read(people, sensitive="income", public="all", bin=bins) as table:
        assert table.schema.domain == (
            "-100 to under 0", "0 to under 10000", "10000 to under 100000000",
            "100000000 to under 1000000000", "1000000000 or more",
        )  # fmt: skip


def test_missing_sensitive_values_are_dropped_or_a_value(people):
    values = [float("nan") if i % 7 == 0 else v for i, v in enumerate(people["income"].to_pylist())]
    missing = int(np.isnan(values).sum())
    holes = people.set_column(2, "income", pa.array(values))
    bins = {"income": [0, 10_000]}
    with pytest.raises(InputError, match="missing in some records"):
        rp.read(holes, sensitive="income", public="all", bin=bins)
    with rp.read(holes, sensitive="income", public="all", bin=bins, missing="value") as table:
        assert table.schema.domain == ("0 to under 10000", "10000 or more", None)
        assert table.count(income=None) == missing
    with rp.read(holes, sensitive="income", public="all", bin=bins, missing="drop") as table:
        assert table.schema.records == len(values) - missing
        assert sum(int(batch.count.sum()) for batch in table.batches()) == table.schema.records


def test_the_range_of_bins_is_that_of_the_records_that_are_published():
    source = pa.table({"age": [1, 15, 99, 15, 1], "s": ["a", "b", None, "a", "b"]})
    assert labels_of(source, "age", sensitive="s", bin={"age": 10}) == ["0 to 9", "10 to 19"]


@pytest.mark.parametrize(
    ("bins", "labels"),
    [
        ([0, 1, 18], ["0", "1 to 17", "18 or more"]),
        ("0, 1, 17.5", ["0", "1 to 17", "18 or more"]),
        (50, ["0 to 49", "50 to 99", "100 to 149"]),
        ("5e1", ["0 to 49", "50 to 99", "100 to 149"]),
        ((-1000, 50), ["-1000 to 49", "50 or more"]),
    ],
)
def test_how_bins_of_whole_numbers_read(people, bins, labels):
    assert labels_of(people, "age", bin={"age": bins}) == labels


def test_texts_that_spell_numbers_are_binned_as_numbers(tmp_path):
    file = tmp_path / "a.csv"
    file.write_text("x,s\n12.50,a\n7,b\n+1e2,a\n,b\n-0.0,a\n")
    with rp.read(file, sensitive="s", public="all") as table:
        assert table.count(x="12.50") == 1  # as a value it is a text
    bins = ["0 to under 10", "10 to under 20", "20 or more"]
    assert labels_of(file, "x", sensitive="s", bin={"x": [0, 10, 20]}) == bins
    with rp.read(file, sensitive="s", public="all", bin={"x": [0, 10, 20]}) as table:
        assert [table.count(x=label) for label in bins] == [2, 1, 1]
    file.write_text("x,s\n12.50,a\n7,b\nn/a,a\n")
    assert "holds string values; bins are for numbers" in refusal(
        file, sensitive="s", bin={"x": 10}
    )


def test_how_bins_of_decimals_read():
    import decimal

    values = pa.array([decimal.Decimal("0.05"), decimal.Decimal("-1.20"), None])
    source = pa.table({"d": values, "s": ["a", "b", "a"]})
    assert labels_of(source, "d", sensitive="s", bin={"d": 0.5}) == [
        "-1.5 to under -1", "-1 to under -0.5", "-0.5 to under 0", "0 to under 0.5"
    ]  # fmt: skip
    with rp.read(source, sensitive="s", public="all", bin={"d": [-2, 0.05]}) as table:
        assert table.count("d >= 0.05") == 1


@pytest.mark.parametrize("declared", ["quantiles:4", rp.Quantiles(4)])
def test_quantiles_only_when_asked_for_and_with_a_warning(people, declared):
    with pytest.warns(rp.ReconprivWarning, match=r"'age' are quantiles.* published"):
        table = rp.read(
            people, sensitive="income", public="all", bin={"age": declared, "income": [0, 9_000]}
        )
    with table:
        assert any("quantiles" in note for note in table.warnings)
        ages = [a for a in people["age"].to_pylist() if a is not None]
        recoding = table.schema.recoding("age")
        shares = [table.count(age=label) / len(ages) for label in recoding.labels]
        assert len(shares) == 4
        assert all(abs(share - 0.25) < 0.03 for share in shares)
        assert recoding.borders[0] == min(ages)


def test_codes_and_truth_values_are_grouped_by_their_text(tmp_path):
    source = pa.table({
        "code": [1, 2, 30, 30], "ok": [True, False, None, True], "s": ["a", "b", "a", "b"]
    })  # fmt: skip
    groups = {"code": {1: "low", 2: "low", "*": "high"}, "ok": {True: "yes", False: "no"}}
    with rp.read(source, sensitive="s", public="all", group=groups) as table:
        assert table.count(code="high") == 2
        assert table.count("code IN (1, 2)") == 2
        assert table.count("ok = true") == 2
        assert table.count(ok=None) == 1


def test_a_hierarchy_is_asked_for_by_level(people, tmp_path):
    file = tmp_path / "school.csv"
    file.write_text(
        'value,kind,all\nMSc, Degree ,Any\nBSc,Degree,Any\n"HS",School,Any\n*,Rest,Other one\n'
    )
    rest = {"sensitive": "income", "public": "all", "bin": {"income": [0, 9_000]}}
    assert labels_of(people, "school", group={"school": file}, **rest) == [
        "Degree", "School", "Rest"
    ]  # fmt: skip
    for said in (f"{file}:all", (file, "all"), (str(file), 2), f"{file}:2"):
        assert labels_of(people, "school", group={"school": said}, **rest) == ["Any", "Other one"]
    message = refusal(people, group={"school": f"{file}:none"}, **rest)
    assert "has no level 'none'. It has: kind, all" in message


@pytest.mark.parametrize(
    ("bins", "words"),
    [
        ({"age": 0}, "must be above 0; got 0"),
        ({"age": "ten"}, "given by numbers; got 'ten'"),
        ({"age": "0,,5"}, "given by numbers; got ''"),
        ({"age": True}, "given by numbers; got True"),
        ({"age": float("nan")}, "given by numbers"),
        ({"age": [0]}, "at least two borders"),
        ({"age": [0, 10, 10]}, "must ascend"),
        (
            {"age": [20, 200]},
            'first border, 20. Add a lower border with bin={"age": [LOWER, 20, 200]}.',
        ),
        ({"age": [0, 0.2, 0.8]}, "No whole number lies between"),
        ({"age": 2.5}, "holds whole numbers; a bin width of 2.5"),
        ({"income": 0.001}, "more than 1,000 values. Choose wider bins"),
        ({"age": [0, 1e25]}, "beyond 64 bits"),
        ({"age": [0, "1.2345678901234567"]}, "more than 15 digits"),
        ({"age": "quantiles:1"}, "2 to 1,000 bins; got 1"),
        ({"age": "quantiles:x"}, "given by numbers"),
        ({"school": 10}, "holds string values; bins are for numbers"),
        ({"Age": 10}, "has no column 'Age'"),
        ({"gone": 10}, "has no column 'gone'"),
    ],
)
def test_bad_bins_are_refused_in_a_sentence(people, bins, words):
    message = refusal(people, sensitive="school", missing="drop", bin=bins)
    assert words in message
    assert "\n" not in message


@pytest.mark.parametrize(
    ("groups", "words"),
    [
        ({"school": {"BSc": "Degree"}}, "do not list, for example 'HS'. List every value, or"),
        ({"school": {}}, "are empty"),
        ({"school": {"BSc": ""}}, "has no name"),
        ({"school": {"BSc": None}}, "has no name"),
        ({"school": {"BSc": "HS", "HS": "x", "*": "y"}}, "has the name of a value in another"),
        ({"school": "nowhere.csv"}, "There is no file of groups at nowhere.csv"),
        ({"school": 5}, "a dictionary or a file, not of type int"),
        ({"income": {"1": "x"}}, "cannot be grouped one by one. Bin it with `bin`."),
    ],
)
def test_bad_groups_are_refused_in_a_sentence(people, groups, words):
    message = refusal(people, sensitive="age", group=groups, missing="drop")
    assert words in message
    assert "\n" not in message


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "needs a header"),
        ("value,group\n", "needs a header"),
        ("value\nBSc\n", "needs a header"),
        ("value,group\nBSc\n", "Row 2 of the file of groups"),
        ("value,group\nBSc,x\nBSc,y\n", "list 'BSc' twice"),
        ("value,group\nBSc,\n", "has no name"),
        (b"value,group\n\xff,x\n", "is not UTF-8 text"),
    ],
)
def test_a_bad_file_of_groups_is_refused(people, tmp_path, text, words):
    file = tmp_path / "groups.csv"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    assert words in refusal(people, sensitive="age", group={"school": file}, missing="drop")


def test_recodings_and_roles_must_agree(people):
    assert "both binned and grouped" in refusal(
        people, missing="drop", bin={"age": 10}, group={"age": {"*": "x"}}
    )
    assert "not published" in refusal(people, missing="drop", drop="age", bin={"age": 10})
    assert "are its domain already" in refusal(
        people, sensitive="income", bin={"income": [0, 5]}, domain=["a", "b"]
    )
    assert 'bin={"income": [0, 1000, 2000]}' in refusal(people, sensitive="income")
    infinite = pa.table({"x": [1.0, float("inf")], "school": ["a", "b"]})
    assert "infinite numbers" in refusal(infinite, bin={"x": [0, 5]})
    empty = pa.table({"x": pa.array([None, None], pa.int64()), "school": ["a", "b"]})
    assert "no value in any record" in refusal(empty, bin={"x": 10})
    assert "one value" in refusal(
        people, sensitive="school", group={"school": {"*": "x"}}, missing="drop"
    )


def edit(folder, change):
    file = folder / "datapackage.json"
    manifest = json.loads(file.read_text())
    change(manifest)
    file.write_text(json.dumps(manifest))


@pytest.mark.parametrize(
    "change",
    [
        lambda r: r.pop("age"),
        lambda r: r["age"].pop("borders"),
        lambda r: r["age"]["borders"].reverse(),
        lambda r: r["age"]["borders"].pop(),
        lambda r: r["age"]["borders"].__setitem__(0, "0"),
        lambda r: r["age"]["borders"].__setitem__(0, 1),
        lambda r: r["age"].update(whole=1),
        lambda r: r["age"].update(declared="guess"),
        lambda r: r["age"]["labels"].__setitem__(0, "none"),
        lambda r: r["age"].update(labels="0 to 9"),
        lambda r: r.update(age=[]),
        lambda r: r.update(gone=r["age"]),
        lambda r: r["school"]["groups"].pop(),
        lambda r: r["school"]["groups"][0].append("HS"),
        lambda r: r["school"].update(rest="none"),
        lambda r: r["income"]["labels"].reverse(),
        lambda r: r.clear(),
    ],
)
def test_a_damaged_recoding_is_refused(release, tmp_path, change):
    import shutil

    folder = tmp_path / "damaged"
    shutil.copytree(release.path, folder)
    rp.open(folder).count("age < 70")
    edit(folder, lambda manifest: change(manifest["reconpriv"]["recoded"]))
    if "age" not in json.loads((folder / "datapackage.json").read_text())["reconpriv"]["recoded"]:
        edit(folder, lambda m: m["reconpriv"].update(recoded=[]))
    with pytest.raises(ReleaseError, match=r"The manifest of .* is damaged"):
        rp.open(folder)


def test_info_and_report_say_which_columns_are_recoded(release, tmp_path):
    from reconpriv.show.results.release import release_words

    said = dict(release_words(release.info()))["Recoded"]
    assert "age: bins of equal width (0 to 9, 10 to 19" in said
    assert "school: groups of the original values (Degree, School)" in said
    release.report(tmp_path / "report.html")
    assert "bins of equal width" in (tmp_path / "report.html").read_text()


def test_labels_of_codes_do_not_stay_with_bins(tmp_path):
    import pandas
    import pyreadstat

    frame = pandas.DataFrame({"q": [1.0, 2.0, 3.0] * 20, "s": ["a", "b"] * 30})
    pyreadstat.write_sav(
        frame, str(tmp_path / "a.sav"), column_labels={"q": "A question"},
        variable_value_labels={"q": {1.0: "never", 2.0: "often"}},
    )  # fmt: skip
    with rp.read(tmp_path / "a.sav", sensitive="s", public="all", bin={"q": [0, 2]}) as table:
        assert table.labels["q"].title == "A question"
        assert table.labels["q"].values == ()
        released = table.publish(POLICY, tmp_path / "out", key=rp.Key.test())
    fields = released.manifest["resources"][0]["schema"]["fields"]
    assert fields[0]["title"] == "A question"
    assert fields[0]["categoriesOrdered"] is True


@pytest.mark.filterwarnings("ignore::reconpriv.ReconprivWarning")
@pytest.mark.parametrize("name", ["micro", "granularity", "side-channels", "repeat"])
def test_attacks_run_on_a_table_with_bins(people, name):
    from reconpriv.attacks.run import Effort, attack

    with rp.read(people, **{**ROLES, "bin": {"age": [0, 50], "income": [0, 9_000]}}) as table:
        found = attack(name, table, POLICY, Effort(releases=4)).as_dict()
    assert name != "side-channels" or {row["leaks"] for row in found["table"]} == {"no"}

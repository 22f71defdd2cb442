"""A release on disk: its layout, what it keeps, and what must never be in it."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import json
import math
import os
import re
import socket
import stat
from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import reconpriv as rp
from reconpriv.engines import record_file
from reconpriv.engines.duckdb import groups as duckdb_groups

CENSUS = ["Age", "Gender", "Education", "Marital", "Race", "Workclass", "Occupation"]
SAMPLING_RULES = ["paper", "octave", "public", "none"]


def manifest_of(folder):
    return json.loads((folder / "datapackage.json").read_text(encoding="utf-8"))


def data_of(folder):
    return pq.read_table(folder / "data.parquet")


# --- layout -----------------------------------------------------------------------------------


@pytest.mark.parametrize("file_format", ["parquet", "csv"])
@pytest.mark.parametrize("sampling", SAMPLING_RULES)
def test_a_release_has_just_these_files(census_release, sampling, file_format):
    folder = census_release("Education", sampling, file_format).path
    groups = {f"groups.{file_format}"} if sampling in ("octave", "public") else set()
    names = {file.name for file in folder.iterdir()}
    assert names == {f"data.{file_format}", "datapackage.json"} | groups


def test_nothing_is_left_beside_a_release(small, policy, key, tmp_path, scratch):
    with rp.read(small, sensitive="Education", public="all") as table:
        table.publish(policy, tmp_path / "desk" / "out", key=key)
    assert os.listdir(tmp_path / "desk") == ["out"]
    assert list(scratch.iterdir()) == []


def test_a_release_may_be_read_by_those_whom_the_umask_allows(small, policy, key, tmp_path):
    old = os.umask(0o027)
    try:
        with rp.read(small, sensitive="Education", public="all") as table:
            table.publish(policy, tmp_path / "out", key=key)
    finally:
        os.umask(old)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "out").iterdir()}
    assert stat.S_IMODE((tmp_path / "out").stat().st_mode) == 0o750
    assert set(modes.values()) == {0o640}


# --- manifest ---------------------------------------------------------------------------------


@pytest.mark.parametrize("file_format", ["parquet", "csv"])
@pytest.mark.parametrize("sampling", SAMPLING_RULES)
def test_the_manifest_names_every_file_with_its_bytes_and_hash(
    census_release, sampling, file_format
):
    folder = census_release("Education", sampling, file_format).path
    resources = manifest_of(folder)["resources"]
    assert {r["path"] for r in resources} == {f.name for f in folder.iterdir()} - {
        "datapackage.json"
    }
    for resource in resources:
        content = (folder / resource["path"]).read_bytes()
        assert resource["bytes"] == len(content)
        assert resource["hash"] == "sha256:" + hashlib.sha256(content).hexdigest()
        assert resource["format"] == file_format


def test_the_manifest_is_a_data_package_of_version_2(census_release):
    manifest = manifest_of(census_release("Education").path)
    assert manifest["$schema"] == "https://datapackage.org/profiles/2.0/datapackage.json"
    assert [resource["name"] for resource in manifest["resources"]] == ["data", "groups"]
    for resource in manifest["resources"]:
        assert resource["type"] == "table"
        assert resource["mediatype"] == "application/vnd.apache.parquet"
        assert "/" not in resource["path"]
        file = pq.ParquetFile(census_release("Education").path / resource["path"])
        fields = resource["schema"]["fields"]
        assert [field["name"] for field in fields] == file.schema_arrow.names
        assert resource["rows"] == file.metadata.num_rows


def test_field_types_are_those_of_the_table_schema(census_release):
    data = manifest_of(census_release("Education").path)["resources"][0]
    kinds = {field["name"]: field["type"] for field in data["schema"]["fields"]}
    assert kinds == dict.fromkeys(CENSUS, "string") | {"Age": "integer", "Occupation": "integer"}


def test_the_block_holds_the_policy_and_the_domain(census_release, census):
    manifest = manifest_of(census_release("Education").path)
    block = manifest["reconpriv"]
    assert block["format_version"] == 1
    assert (block["retention"], block["epsilon"], block["delta"]) == (0.5, 0.5, 0.3)
    assert (block["bound"], block["sample_size"]) == ("chernoff", "octave")
    assert block["sensitive"] == "Education"
    assert block["domain"] == sorted(set(census["Education"].to_pylist()))
    assert block["public"] == [name for name in CENSUS if name != "Education"]
    assert block["records"] == 148_318
    assert block["test_key"] is False
    assert "sampl" in block["method"]


ALLOWED = {
    "format_version", "created_by", "method", "sample_size", "retention", "epsilon", "delta",
    "bound", "unattainable", "sensitive", "domain", "public", "records", "test_key", "group_counts",
}  # fmt: skip


@pytest.mark.parametrize("sampling", SAMPLING_RULES)
def test_the_block_holds_nothing_else(census_release, sampling):
    """A new field must be thought about: it has to be derived from the published table."""
    manifest = manifest_of(census_release("Education", sampling).path)
    assert set(manifest["reconpriv"]) <= ALLOWED
    assert set(manifest) <= {"$schema", "name", "resources", "reconpriv"}


def test_a_declared_domain_is_published_in_full(small, policy, key, tmp_path):
    domain = [*sorted(set(small["Education"].to_pylist())), "none of these"]
    with rp.read(small, sensitive="Education", public="all", domain=domain) as table:
        table.publish(policy, tmp_path / "out", key=key)
    assert manifest_of(tmp_path / "out")["reconpriv"]["domain"] == sorted(domain)
    assert "none of these" in data_of(tmp_path / "out")["Education"].to_pylist()


def test_paper_mode_tells_no_trials(census_release):
    text = (census_release("Education", "paper").path / "datapackage.json").read_text()
    assert "trials" not in text
    assert "group_counts" not in text


@pytest.mark.parametrize("given", [rp.Key.test(), rp.Key.test().secret])
def test_the_test_key_is_flagged(given, small, policy, tmp_path):
    with rp.read(small, sensitive="Education", public="all") as table:
        release = table.publish(policy, tmp_path / "out", key=given)
    assert manifest_of(tmp_path / "out")["reconpriv"]["test_key"] is True
    assert any("test key" in note for note in release.warnings)


# --- data -------------------------------------------------------------------------------------


@pytest.mark.parametrize("sampling", SAMPLING_RULES)
@pytest.mark.parametrize("sensitive", ["Education", "Occupation"])
def test_records_are_sorted_by_group_then_value(census_release, sensitive, sampling):
    data = data_of(census_release(sensitive, sampling).path)
    assert data.column_names == [n for n in CENSUS if n != sensitive] + [sensitive]
    rows = list(zip(*(column.to_pylist() for column in data.columns), strict=True))
    assert rows == sorted(rows)


@pytest.mark.parametrize("sampling", ["octave", "public", "none"])
@pytest.mark.parametrize("sensitive", ["Education", "Occupation"])
def test_public_counts_of_all_groups_are_exactly_those_of_the_original(
    census_release, census, count_rows, sensitive, sampling
):
    public = [name for name in CENSUS if name != sensitive]
    original = count_rows(census.select(public))
    folder = census_release(sensitive, sampling).path
    assert count_rows(data_of(folder).select(public)) == original
    if sampling == "none":
        return
    groups = pq.read_table(folder / "groups.parquet")
    rows = zip(*(groups[name].to_pylist() for name in [*public, "records"]), strict=True)
    assert {row[:-1]: row[-1] for row in rows} == original


@pytest.mark.parametrize("sampling", ["octave", "public"])
def test_trials_lie_between_one_and_the_size(census_release, sampling):
    release = census_release("Education", sampling)
    groups = pq.read_table(release.path / "groups.parquet")
    records, trials = groups["records"].to_numpy(), groups["trials"].to_numpy()
    assert (trials >= 1).all()
    assert (trials <= records).all()
    assert int((trials < records).sum()) == release.written.sampled_groups
    assert int(trials.sum()) == release.written.trials


def test_public_trials_depend_on_the_size_alone(census_release, census):
    """Trials = min(|g|, floor s(1)), with s(1) from Eq. 10."""
    m = len(census["Education"].unique())
    t = 0.5 / m
    w = 0.5 + t
    limit = int(-2 * np.log(0.3) / (w * (0.25 / w) ** 2))
    groups = pq.read_table(census_release("Education", "public").path / "groups.parquet")
    records, trials = groups["records"].to_numpy(), groups["trials"].to_numpy()
    assert (trials == np.minimum(records, limit)).all()


def test_octave_trials_take_few_sizes(census_release):
    groups = pq.read_table(census_release("Education", "octave").path / "groups.parquet")
    records, trials = groups["records"].to_numpy(), groups["trials"].to_numpy()
    assert len(set(trials[trials < records].tolist())) <= 5  # octaves of f: 1, 1/2, … down to 1/16


def test_paper_mode_keeps_totals_up_to_coin_flips(census_release, census, count_rows):
    public = [name for name in CENSUS if name != "Education"]
    release = census_release("Education", "paper")
    original = count_rows(census.select(public))
    published = count_rows(data_of(release.path).select(public))
    assert set(published) == set(original)
    changed = {group for group in original if published[group] != original[group]}
    assert 0 < len(changed) <= release.written.sampled_groups == 355
    # A sum of at most so many coins; six standard deviations.
    coin_flips = sum(original[group] for group in changed)
    assert abs(release.records - 148_318) <= 6 * np.sqrt(coin_flips / 4)
    for group in changed:
        assert abs(published[group] - original[group]) <= 6 * np.sqrt(original[group] / 4)


@pytest.mark.parametrize("sampling", SAMPLING_RULES)
def test_sensitive_values_are_perturbed(census_release, census, count_rows, sampling):
    data = data_of(census_release("Education", sampling).path)
    unchanged = count_rows(data) & count_rows(census.select(data.column_names))
    assert unchanged.total() < 0.8 * 148_318


@pytest.mark.parametrize("sampling", SAMPLING_RULES)
def test_csv_and_parquet_hold_the_same_records(census_release, sampling):
    as_parquet = census_release("Education", sampling)
    as_csv = census_release("Education", sampling, "csv")
    names = ["data", "groups"] if sampling in ("octave", "public") else ["data"]
    for name in names:
        with (as_csv.path / f"{name}.csv").open(encoding="utf-8", newline="") as stream:
            header, *rows = csv.reader(stream)
        table = pq.read_table(as_parquet.path / f"{name}.parquet")
        assert header == table.column_names
        columns = [list(map(str, column.to_pylist())) for column in table.columns]
        assert rows == [list(row) for row in zip(*columns, strict=True)]


def test_a_csv_release_keeps_missing_apart_from_empty(policy, key, tmp_path):
    rows = [{"g": g, "s": s} for g in ("", None, 'a "b"', "c,d", "e\nf") for s in "xy" * 5]
    with rp.read(pa.Table.from_pylist(rows), sensitive="s", public="all") as table:
        table.publish(policy, tmp_path / "out", key=key, file_format="csv")
        before = table.audit(policy)
    with rp.read(tmp_path / "out" / "data.csv", sensitive="s", public="all") as again:
        after = again.audit(policy)
    groups = [{verdict.public["g"]: verdict.size for verdict in r.worst} for r in (before, after)]
    assert groups[0] == groups[1] == dict.fromkeys(["", None, 'a "b"', "c,d", "e\nf"], 10)


@pytest.mark.parametrize("file_format", ["parquet", "csv"])
def test_missing_as_a_value_of_the_domain_round_trips(file_format, policy, key, tmp_path):
    table = pa.table({"g": ["a", "b"] * 300, "s": ["x", None, "y", None, "z", "x"] * 100})
    with rp.read(table, sensitive="s", public="all", missing="value") as opened:
        assert opened.schema.domain == ("x", "y", "z", None)
        release = opened.publish(policy, tmp_path / "out", key=key, file_format=file_format)
    assert manifest_of(tmp_path / "out")["reconpriv"]["domain"] == ["x", "y", "z", None]
    with rp.read(
        tmp_path / "out" / f"data.{file_format}", sensitive="s", public="all", missing="value"
    ) as again:
        assert again.schema.domain == ("x", "y", "z", None)
        assert again.audit(policy).records == release.records == 600


def test_a_null_in_a_declared_domain_file_means_missing(policy, key, tmp_path):
    (tmp_path / "domain.json").write_text('["x", "y", "z", null]')
    table = pa.table({"g": ["a", "b"] * 30, "s": ["x", None, "y"] * 20})
    with rp.read(
        table, sensitive="s", public="all", missing="value", domain=tmp_path / "domain.json"
    ) as opened:
        assert opened.schema.domain == ("x", "y", "z", None)


# --- Parquet on disk --------------------------------------------------------------------------


def test_row_groups_have_a_fixed_size(monkeypatch, small, policy, key, tmp_path):
    monkeypatch.setattr(record_file, "ROWS_PER_ROW_GROUP", 300)
    with rp.read(small, sensitive="Education", public="all") as table:
        table.publish(policy, tmp_path / "out", key=key)
    metadata = pq.read_metadata(tmp_path / "out" / "data.parquet")
    sizes = [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)]
    assert sizes == [300] * 13 + [100]


def test_dictionaries_hold_just_the_values_in_their_row_group_sorted(
    monkeypatch, small, policy, key, tmp_path
):
    """A dictionary with more in it would tell of values that are not published there."""
    monkeypatch.setattr(record_file, "ROWS_PER_ROW_GROUP", 300)
    with rp.read(small, sensitive="Education", public="all") as table:
        table.publish(policy, tmp_path / "out", key=key)
    names = small.column_names
    file = pq.ParquetFile(tmp_path / "out" / "data.parquet", read_dictionary=names)
    for i in range(file.num_row_groups):
        group = file.read_row_group(i)
        for name in names:
            for chunk in group[name].chunks:
                assert chunk.dictionary.to_pylist() == sorted(set(chunk.to_pylist()))


def test_parquet_files_carry_no_metadata_of_ours(census_release):
    for file in ("data.parquet", "groups.parquet"):
        metadata = pq.read_metadata(census_release("Education").path / file)
        assert not metadata.metadata
        assert "parquet-cpp" in metadata.created_by


def test_groups_larger_than_batches_and_row_groups_change_no_cell(
    monkeypatch, key, count_rows, tmp_path
):
    """Each group has more than 1,000 cells; a batch holds 300, a row group 1,000 records."""
    rng = np.random.default_rng(8)
    table = pa.table({"g": [*"abc"] * 4_000, "s": rng.integers(0, 1_500, 12_000)})

    def published(name, sampling):
        policy = rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3, sampling=sampling)
        with rp.read(table, sensitive="s", public="all", domain=range(1_500)) as opened:
            opened.publish(policy, tmp_path / name, key=key)
        groups = tmp_path / name / "groups.parquet"
        rest = pq.read_table(groups).to_pydict() if groups.exists() else {}
        return count_rows(data_of(tmp_path / name)), rest

    whole = [published(f"whole-{size}", size) for size in SAMPLING_RULES]
    monkeypatch.setattr(duckdb_groups, "BATCH", 300)
    monkeypatch.setattr(record_file, "ROWS_PER_ROW_GROUP", 1_000)
    monkeypatch.setattr("reconpriv.protect.kernel._TRIALS_AT_ONCE", 10)
    monkeypatch.setattr("reconpriv.protect.kernel._COUNTS_AT_ONCE", 10)
    monkeypatch.setattr("reconpriv.cells.randomness.CHUNK", 997)
    assert [published(f"pieces-{size}", size) for size in SAMPLING_RULES] == whole


def test_many_small_batches_change_no_byte(
    monkeypatch, census_release, key, policy, files_of, tmp_path
):
    monkeypatch.setattr(duckdb_groups, "BATCH", 777)
    monkeypatch.setattr(duckdb_groups, "_KEEP", 0)
    monkeypatch.setattr("reconpriv.protect.kernel._COUNTS_AT_ONCE", 10_000)
    public = [name for name in CENSUS if name != "Education"]
    source = rp.dataset_path("census_workers")
    with rp.read(source, sensitive="Education", public=public) as table:
        table.publish(policy, tmp_path / "out", key=key)
    assert files_of(tmp_path / "out") == files_of(census_release("Education").path)


# --- one key, one release ---------------------------------------------------------------------


def test_an_audit_before_a_publication_changes_nothing(small, policy, key, files_of, tmp_path):
    with rp.read(small, sensitive="Education", public="all") as table:
        table.publish(policy, tmp_path / "one", key=key)
        table.audit(policy)
        table.publish(policy, tmp_path / "two", key=key)
    assert files_of(tmp_path / "one") == files_of(tmp_path / "two")


def test_without_a_key_every_release_is_another_and_says_so(small, policy, tmp_path):
    with rp.read(small, sensitive="Education", public="all") as table:
        releases = [table.publish(policy, tmp_path / name) for name in ("one", "two")]
    assert data_of(tmp_path / "one") != data_of(tmp_path / "two")
    for release in releases:
        assert any("independent sample" in note for note in release.warnings)
        assert release.manifest["reconpriv"]["test_key"] is False


def test_a_key_may_be_an_object_bytes_hex_or_a_file(small, policy, key, files_of, tmp_path):
    key.write(tmp_path / "key")
    forms = [key, key.secret, key.secret.hex(), tmp_path / "key", str(tmp_path / "key")]
    with rp.read(small, sensitive="Education", public="all") as table:
        for i, form in enumerate(forms):
            table.publish(policy, tmp_path / f"out{i}", key=form)
    contents = [files_of(tmp_path / f"out{i}") for i in range(len(forms))]
    assert all(content == contents[0] for content in contents)


def cells_by_group(folder):
    data = data_of(folder)
    cells: dict[tuple, Counter] = {}
    for *group, value in zip(*(column.to_pylist() for column in data.columns), strict=True):
        cells.setdefault(tuple(group), Counter())[value] += 1
    return cells


@pytest.mark.parametrize("which", ["largest", "new"])
@pytest.mark.parametrize("sampling", SAMPLING_RULES)
def test_one_added_record_changes_only_its_own_group(sampling, which, small, key, tmp_path):
    groups = Counter(zip(*(c.to_pylist() for c in small.columns[:-1]), strict=True))
    own = groups.most_common(1)[0][0] if which == "largest" else ("Male", "White", "Astronaut")
    row = pa.Table.from_pylist(
        [dict(zip(small.column_names, (*own, small["Education"][0].as_py()), strict=True))],
        schema=small.schema,
    )
    policy = rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3, sampling=sampling)
    for name, table in (("before", small), ("after", pa.concat_tables([row, small]))):
        with rp.read(table, sensitive="Education", public="all") as opened:
            opened.publish(policy, tmp_path / name, key=key)
    before, after = cells_by_group(tmp_path / "before"), cells_by_group(tmp_path / "after")
    assert before.pop(own, None) != after.pop(own)
    assert before == after


@pytest.mark.parametrize("at", [0, 1_000, 3_999])
def test_an_added_record_adds_a_trial_and_changes_none_where_nothing_is_sampled(
    at, small, key, count_rows, tmp_path
):
    policy = rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3, sampling="none")
    more = pa.concat_tables([small, small.slice(at, 1)])
    for name, table in (("before", small), ("after", more)):
        with rp.read(table, sensitive="Education", public="all") as opened:
            opened.publish(policy, tmp_path / name, key=key)
    before, after = (count_rows(data_of(tmp_path / name)) for name in ("before", "after"))
    assert (before - after).total() == 0
    assert (after - before).total() == 1


# --- secrets ----------------------------------------------------------------------------------


def readable(folder):
    """Everything of a release as somebody would read it: raw, decompressed and as metadata."""
    parts = []
    for file in folder.iterdir():
        parts += [file.name.encode(), file.read_bytes()]
        if file.suffix == ".parquet":
            table = pq.read_table(file)
            metadata = pq.read_metadata(file)
            text = io.StringIO()
            rows = zip(*table.to_pydict().values(), strict=True)
            csv.writer(text).writerows([table.column_names, *rows])
            parts += [text.getvalue().encode(), str(metadata.metadata).encode()]
            parts += [str(metadata.to_dict()).encode(), str(table.schema).encode()]
            parts += [buffer.to_pybytes() for column in table.columns for chunk in column.chunks
                      for buffer in chunk.buffers() if buffer is not None]  # fmt: skip
    return b"\n".join(parts)


def key_forms(secret):
    forms = []
    for value in (secret, secret[::-1]):
        plain, url = base64.b64encode(value), base64.urlsafe_b64encode(value)
        forms += [
            value, value[:8], value[-8:], value.hex().encode(), value.hex().upper().encode(),
            value.hex().encode()[:16], plain, plain[:16], url, base64.b32encode(value),
            str(list(value)).encode(), repr(value).encode(), str(int.from_bytes(value)).encode(),
        ]  # fmt: skip
    return forms


@pytest.fixture(scope="module")
def planted_counts():
    """Counts of sensitive values that are easy to look for."""
    return {"anthrax": 12_347, "botulism": 7_919, "cholera": 10_007, "dengue": 301}


@pytest.mark.parametrize(
    ("sampling", "file_format"),
    [*((size, "parquet") for size in SAMPLING_RULES), ("octave", "csv"), ("paper", "csv")],
)
def test_planted_secrets_are_not_in_a_release(
    sampling, file_format, planted_counts, process, tmp_path
):
    key = rp.Key(hashlib.sha256(b"a planted key").digest())
    folder = tmp_path / "hunter2-ward" / "site=northwing"
    folder.mkdir(parents=True)
    (tmp_path / "publisher-desk").mkdir()
    key.write(tmp_path / "publisher-desk" / "my-master.key")
    values = [value for value, count in planted_counts.items() for _ in range(count)]
    source = folder / "admissions-2031.parquet"
    table = pa.table({"region": ["north"] * len(values), "diagnosis": values})
    pq.write_table(table.replace_schema_metadata({"owner": "planted-owner"}), source)
    outcome = process(
        "publish", source, "out", "-s", "diagnosis", "--key", "publisher-desk/my-master.key",
        "--public", "region", "--sampling", sampling, "--format", file_format, cwd=tmp_path,
        env={"USER": "planted-user", "LOGNAME": "planted-user", "HOSTNAME": "planted-host"},
    )  # fmt: skip
    assert outcome.code == 0, outcome.err
    content = readable(tmp_path / "out")
    assert b"anthrax" in content  # the search works
    words = [
        "hunter2", "northwing", "site", "admissions", "2031", "publisher-desk", "master",
        "planted", "tmp", "seed", "example:",
    ]  # fmt: skip
    # A host name of two letters would be found in any compressed file.
    words += [socket.gethostname()] if len(socket.gethostname()) > 4 else []
    found = [word for word in words if word.encode() in content]
    assert found == []
    assert [form for form in key_forms(key.secret) if form in content] == []
    manifest = (tmp_path / "out" / "datapackage.json").read_text()
    # A hash of the published bytes may hold any digits by chance.
    manifest = re.sub("sha256:[0-9a-f]{64}", "", manifest)
    for count in planted_counts.values():
        assert str(count) not in manifest
        assert f"{count:,}" not in manifest
        assert f",{count}".encode() not in content
        assert count.to_bytes(8, "little") not in content
    shown = outcome.out + outcome.err
    assert not [form for form in key_forms(key.secret) if form.decode("latin-1") in shown]


def test_the_publishers_objects_show_no_key(small, policy, key, tmp_path):
    with rp.read(small, sensitive="Education", public="all") as table:
        release = table.publish(policy, tmp_path / "out", key=key)
    shown = " ".join([
        str(release), repr(release), release._repr_html_(), json.dumps(release.as_dict()),
        repr(table), repr(key), str(key), json.dumps(release.manifest), repr(policy),
    ])  # fmt: skip
    assert key.secret.hex()[:12] not in shown
    assert repr(key.secret)[2:20] not in shown


# --- Python -----------------------------------------------------------------------------------


def test_publish_returns_what_was_written(census_release):
    release = census_release("Education")
    summary = release.as_dict()
    assert summary["records"] == release.records == 148_318
    assert summary["groups"] == 39_376
    assert summary["sampled_groups"] == release.written.sampled_groups > 355
    assert summary["unattainable_groups"] == 0
    assert summary["release"] == str(release.path)
    assert release.manifest == manifest_of(release.path)
    assert "148,318" in str(release)
    assert "<table>" in release._repr_html_()


def test_publish_refuses_what_exists_and_overwrites_when_told(small, policy, key, tmp_path):
    with rp.read(small, sensitive="Education", public="all") as table:
        table.publish(policy, tmp_path / "out", key=key)
        with pytest.raises(rp.ReconprivError, match="exists already"):
            table.publish(policy, tmp_path / "out", key=key)
        table.publish(policy, tmp_path / "out", key=key, file_format="csv", overwrite=True)
    assert (tmp_path / "out" / "data.csv").exists()
    assert not (tmp_path / "out" / "data.parquet").exists()


def test_progress_is_reported(small, policy, key, tmp_path):
    seen: list[tuple[str, float]] = []
    with rp.read(small, sensitive="Education", public="all") as table:
        table.publish(policy, tmp_path / "out", key=key,
                      progress=lambda stage, done: seen.append((stage, done)))  # fmt: skip
    assert seen[-1] == ("publishing", pytest.approx(1.0))
    assert all(0 <= done <= 1 for _, done in seen)


@pytest.mark.parametrize("sampling", ["octave", "public", "paper", "none"])
@pytest.mark.parametrize("file_format", ["parquet", "csv"])
def test_what_is_not_a_number_is_missing_and_the_release_opens(sampling, file_format, tmp_path):
    raw = pa.table({"a": [math.nan, 2.0, None, -0.0, 0.0] * 40, "s": ["x", "y"] * 100})
    policy = rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3, sampling=sampling)
    with rp.read(raw, sensitive="s", public="all") as opened:
        assert sum(batch.groups for batch in opened.batches()) == 3
        opened.publish(policy, tmp_path / "r", key=rp.Key.generate(), file_format=file_format)
    release = rp.open(tmp_path / "r")
    if sampling != "paper":
        assert release.count(a=None).count == 80
        assert release.count("a = 0").count == 80


def test_a_waived_promise_is_said_in_manifest_info_and_warnings(tiny, tmp_path):
    policy = rp.Policy(retention=0.9, tolerance=0.9, doubt=0.9, unattainable="one-trial")
    with rp.read(tiny, sensitive="s", public="all") as opened:
        release = opened.publish(policy, tmp_path / "r", key=rp.Key.generate())
    assert release.manifest["reconpriv"]["unattainable"] == "one-trial"
    assert any("nothing is promised" in note for note in release.warnings)


@pytest.mark.parametrize(("sampling", "words"), [("paper", "leaks"), ("none", "only perturbs")])
def test_a_weak_sampling_is_warned_of(tiny, sampling, words, tmp_path):
    policy = rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3, sampling=sampling)
    with rp.read(tiny, sensitive="s", public="all") as opened:
        release = opened.publish(policy, tmp_path / "r", key=rp.Key.generate())
    assert any(words in note for note in release.warnings)

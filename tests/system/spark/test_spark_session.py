"""An existing session is used as it is; it reads a path as DuckDB does."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import reconpriv as rp
from spark_fixtures import PANDAS, VALUES, Choice, publish, published_by_both, table_of, write

pytestmark = [pytest.mark.filterwarnings(PANDAS)]


def state(spark: Any) -> dict[str, Any]:
    """What a guest must not change."""
    return {
        "settings": dict(spark.conf.getAll),
        "tables": [table.name for table in spark.catalog.listTables()],
        "tags": spark.getTags(),
        "alive": spark.range(3).count(),
    }


@pytest.fixture
def untouched(spark: Any) -> Iterator[None]:
    before = state(spark)
    yield
    assert state(spark) == before
    assert before["alive"] == 3


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "in").mkdir()
    table = pa.table({"a": [1, 2] * 100, "b": ["u", "v", "v", "u"] * 50, "s": list("xyxxz") * 40})
    return write(table, tmp_path / "in" / "t.parquet")


# --- sessions ------------------------------------------------------------------------------------


def test_a_data_frame_is_read_in_its_own_session(spark: Any, file: Path, untouched: None) -> None:
    frame = spark.read.parquet(str(file))
    with rp.read(frame, sensitive="s", public="all") as table:
        assert table.engine.name == "spark"
        assert table.engine.session.spark is spark
        table.audit(rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3))
    assert frame.count() == 200


def test_a_path_is_read_in_the_session_that_runs(spark: Any, file: Path, untouched: None) -> None:
    with rp.read(file, sensitive="s", public="all", engine="spark") as table:
        assert table.engine.session.spark is spark
        assert table.schema.records == 200


def test_a_session_of_another_thread_is_used_and_goes_on(
    spark: Any, file: Path, untouched: None
) -> None:
    """An active session is known in its own thread only."""
    records = []

    def read() -> None:
        with rp.read(file, sensitive="s", public="all", engine="spark") as table:
            records.append(table.schema.records)

    worker = threading.Thread(target=read)
    worker.start()
    worker.join()
    assert records == [200]


@pytest.mark.parametrize(
    "setting", [{"sql": "SELECT 1"}, {"master": "local"}, {"threads": 1}, {"memory": "1GB"}]
)
def test_a_data_frame_takes_no_settings_of_a_session(
    spark: Any, file: Path, setting: dict[str, Any]
) -> None:
    with pytest.raises(rp.ReconprivError, match="comes with its session"):
        rp.read(spark.read.parquet(str(file)), sensitive="s", public="all", **setting)


@pytest.mark.parametrize("setting", [{"master": "local"}, {"threads": 1}, {"memory": "1GB"}])
def test_a_running_session_keeps_its_settings(
    spark: Any, file: Path, setting: dict[str, Any], untouched: None
) -> None:
    with pytest.raises(rp.ReconprivError, match="already running"):
        rp.read(file, sensitive="s", public="all", engine="spark", **setting)


def test_settings_of_the_session_do_not_show_in_a_release(
    spark: Any, tmp_path: Path, key: rp.Key
) -> None:
    names = ["flag", "day", "zoned", "price", "weight", "beyond", "tiny"]
    file = write(table_of({n: VALUES[n] for n in names}, 600, seed=5), tmp_path / "t.parquet")
    settings = {
        "spark.sql.session.timeZone": "America/St_Johns",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "7",
        "spark.sql.execution.arrow.useLargeVarTypes": "true",
        "spark.sql.caseSensitive": "true",
        "spark.sql.ansi.enabled": "false",
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.shuffle.partitions": "4",
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        "spark.sql.files.maxPartitionBytes": "4096",
    }
    before = {name: spark.conf.get(name) for name in settings}
    try:
        for name, value in settings.items():
            spark.conf.set(name, value)
        by_duckdb, by_spark = published_by_both(
            spark, file, tmp_path / "out", Choice(key), sensitive="s"
        )
        with rp.read(spark.read.parquet(str(file)), sensitive="s", public="all") as table:
            groups = sum(batch.groups for batch in table.batches())
    finally:
        for name, value in before.items():
            spark.conf.set(name, value)
    assert by_spark == by_duckdb
    assert groups == 40


# --- CSV -----------------------------------------------------------------------------------------

TEXTS = {
    "integer": ("1", "-2"),
    "leading zero": ("02139", "10000"),
    "huge integer": ("12345678901234567890123", "1"),
    "number": ("1.5", "2.25"),
    "large number": ("12345678.5", "2.5"),
    "small number": ("0.0005", "0.25"),
    "negative zero": ("-0.0", "1.5"),
    "Java's spelling": ("1.0E10", "2.5"),
    "short spelling": ("1e10", "2.5"),
    "not a number": ("nan", "1.5"),
    "infinite": ("inf", "1.5"),
    "trailing zero": ("1.50", "2.5"),
    "boolean": ("true", "false"),
    "capital boolean": ("True", "False"),
    "date": ("2020-01-01", "0001-12-31"),
    "timestamp": ("2020-01-01 00:00:00", "2021-05-01 12:30:00.25"),
    "ISO timestamp": ("2020-01-01T00:00:00", "2020-01-02T00:00:00"),
    "zoned timestamp": ("2020-01-01 00:00:00+00", "2020-01-02 00:00:00+00"),
    "time": ("12:00:00", "13:00:00"),
    "quoted empty": ('""', "a"),
    "missing": ("", "a"),
    "all missing": ("", ""),
    "word null": ("null", "NULL"),
    "spaces": (" a", "b "),
    "quotes": ('"a ""q"" b"', '"x, y"'),
    "line feed": ('"a\nb"', "c"),
    "backslash": ("a\\b", '"c\\"'),
    "comment": ("#a", "//b"),
    "unicode": ("é\U0001f600", "\uffff"),
}


def test_a_csv_gives_the_same_bytes_whatever_its_texts_look_like(
    spark: Any, tmp_path: Path, key: rp.Key, untouched: None
) -> None:
    lines = [",".join([*TEXTS, "s"])]
    for i in range(400):
        values = [texts[(i >> (place % 4)) % 2] for place, texts in enumerate(TEXTS.values())]
        lines.append(",".join([*values, "xyz"[i * i % 3]]))
    file = tmp_path / "t.csv"
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    by_duckdb = publish(file, tmp_path / "duckdb", Choice(key), sensitive="s", public="all")
    by_spark = publish(
        file, tmp_path / "spark", Choice(key), sensitive="s", public="all", engine="spark"
    )
    kinds = [
        [(field["name"], field["type"]) for field in resource["schema"]["fields"]]
        for engine in ("duckdb", "spark")
        for resource in rp.open(tmp_path / engine).manifest["resources"][:1]
    ]
    assert kinds[1] == kinds[0]
    assert by_spark == by_duckdb


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("semicolon.csv", b"a;b;s\n1;u;x\n2;v;y\n1;u;y\n"),
        ("tabs.tsv", b"a\tb\ts\n1\tu\tx\n2\tv\ty\n1\tu\ty\n"),
        ("bars.txt", b"a|b|s\n1|u|x\n2|v|y\n1|u|y\n"),
        ("windows.csv", b"\xef\xbb\xbfa,b,s\r\n1,u,x\r\n2,v,y\r\n1,u,y\r\n"),
        ("packed.csv.gz", gzip.compress(b"a,b,s\n1,u,x\n2,v,y\n1,u,y\n", mtime=0)),
        ("50%20 off.csv", b"a,b,s\n1,u,x\n2,v,y\n1,u,y\n"),
    ],
)
def test_a_csv_is_read_alike_whatever_its_form(
    spark: Any, tmp_path: Path, name: str, content: bytes, policy: rp.Policy
) -> None:
    (tmp_path / name).write_bytes(content)
    found = []
    for engine in ("duckdb", "spark"):
        with rp.read(tmp_path / name, sensitive="s", public="all", engine=engine) as table:
            found.append((table.schema, table.audit(policy).as_dict()))
    assert found[0] == found[1]
    assert [column.kind.value for column in found[1][0].columns] == ["integer", "string", "string"]


# --- other inputs --------------------------------------------------------------------------------


def test_a_folder_and_a_pattern_of_parquet_are_read(spark: Any, file: Path) -> None:
    pq.write_table(pq.read_table(file).slice(0, 30), file.with_name("u.parquet"))
    for source in (file.parent, f"{file.parent}/*.parquet"):
        with rp.read(source, sensitive="s", public="all", engine="spark") as table:
            assert table.schema.records == 230


@pytest.mark.parametrize("name", ["x[1].parquet", "{a}*?.parquet", "50%20 off.parquet"])
def test_a_file_may_have_the_name_of_a_pattern(spark: Any, file: Path, name: str) -> None:
    file = file.rename(file.with_name(name))
    with rp.read(file, sensitive="s", public="all", engine="spark") as table:
        assert table.schema.records == 200


def test_a_query_over_the_input_gives_the_same_bytes(
    spark: Any, file: Path, tmp_path: Path, key: rp.Key, untouched: None
) -> None:
    sql = "SELECT a + 1 AS c, s FROM input WHERE b = 'u';"
    releases = [
        publish(
            file,
            tmp_path / str(i),
            Choice(key),
            sensitive="s",
            public="all",
            sql=sql,
            engine=engine,
        )
        for i, engine in enumerate(("duckdb", "spark", "spark"))
    ]
    assert releases[0] == releases[1] == releases[2]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT nope FROM input",
        "SELECT * FROM elsewhere",
        "SELEKT",
        "DROP VIEW IF EXISTS x",
        "CREATE TABLE mine AS SELECT 1 AS a, 'x' AS s",
        "SELECT * FROM input; CREATE TABLE mine AS SELECT 1 AS a",
        "SELECT CAST(b AS INT) AS b, s FROM input",
    ],
)
def test_anything_but_a_select_that_works_is_refused(
    spark: Any, file: Path, cli: Callable, sql: str, capfd: pytest.CaptureFixture, untouched: None
) -> None:
    outcome = cli("audit", file, "-s", "s", "--public=all", "--engine", "spark", "--sql", sql)
    assert outcome.code == 2 and outcome.err.startswith("error: ")
    assert outcome.err.count("\n") == 1 and outcome.out == ""
    captured = capfd.readouterr()
    assert "Traceback" not in captured.err and "'u'" not in captured.err + outcome.err


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("-", None, "cannot read standard input"),
        ("nowhere.parquet", None, "no such file"),
        ("nowhere.csv", None, "no such file"),
        ("t.jsonl", b'{"s": 1}\n', "read by DuckDB"),
        ("t.parquet", b"PAR1 secret PAR1", "truncated or is not a Parquet"),
        ("t.csv", b"", "empty"),
        ("t.csv", b"a,s\n", "empty"),
        ("t.csv", b"a,s\n1,x\nsecret,y,z\n", "fields"),
        ("t.csv", b"a,s\n1,x\nsecret\n", "fields"),
    ],
)
def test_an_input_that_cannot_be_read_is_refused_in_one_sentence(
    spark: Any, tmp_path: Path, cli: Callable, name: str, content: bytes | None, sentence: str
) -> None:
    path = Path(name) if name == "-" else tmp_path / name
    if content is not None:
        path.write_bytes(content)
    outcome = cli(
        "publish",
        path,
        tmp_path / "out",
        "-s",
        "s",
        "--public=all",
        "--engine",
        "spark",
        "--test-key",
    )
    assert outcome.code == 2, outcome.err
    assert outcome.err.startswith("error: ") and outcome.err.count("\n") == 1
    assert sentence in outcome.err
    assert "secret" not in outcome.err and str(tmp_path) not in outcome.err
    assert not (tmp_path / "out").exists()

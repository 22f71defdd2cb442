"""A first look at a table, and the publisher's own counts."""

import threading

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import reconpriv as rp


def test_a_summary_tells_kinds_values_and_what_is_missing():
    table = pa.table({"age": [30, 30, None], "pay": [1.5, 2.5, 0.5], "sex": ["f", "m", "f"]})
    summary = rp.describe(table)
    assert summary.records == 3
    age, pay, sex = summary.columns
    assert (age.kind, age.distinct, age.missing, age.low, age.high) == ("integer", 1, 1, "30", "30")
    assert (pay.kind, pay.numeric, sex.numeric) == ("number", True, False)
    assert sex.common == ("f", "m")


def test_a_summary_flags_identifiers_and_what_cannot_be_published():
    table = pa.table({"id": list(range(40)), "b": [0, 1] * 20, "nested": [[1]] * 40})
    number, b, nested = rp.describe(table).columns
    assert (number.identifier, b.identifier) == (True, False)
    assert (b.publishable, nested.publishable) == (True, False)


def test_a_summary_is_of_the_query_where_one_is_given():
    table = pa.table({"age": [31, 35, 42]})
    summary = rp.describe(table, sql="SELECT age // 10 * 10 AS age FROM input")
    assert (summary.columns[0].low, summary.columns[0].high) == ("30", "40")


def test_a_summary_of_many_columns_keeps_them_apart():
    table = pa.table({f"c{i}": [i, i, i + 1] for i in range(250)})
    summary = rp.describe(table)
    assert summary.records == 3
    assert [(column.name, column.low, column.high) for column in summary.columns] == [
        (f"c{i}", str(i), str(i + 1)) for i in range(250)
    ]


def test_an_empty_table_is_refused():
    with pytest.raises(rp.ReconprivError, match="empty"):
        rp.describe(pa.table({"a": pa.array([], pa.int64())}))


def test_true_counts_are_those_of_the_table():
    data = pa.table({"sex": ["f", "m", "f", "f"], "job": ["a", "b", "b", None]})
    with rp.read(data, sensitive="job", public="all", missing="value") as table:
        assert table.count() == 4
        assert table.count("sex = 'f'") == 3
        assert table.count("sex = 'f'", job="b") == 1
        assert table.count(job=None) == 1


def test_a_publication_can_be_stopped_from_another_thread(tmp_path):
    """An interrupt while the engine counts ends the work and leaves nothing."""
    file = tmp_path / "large.parquet"
    numbers = np.arange(3_000_000)
    pq.write_table(pa.table({"a": numbers, "b": numbers % 7}), file)
    done = threading.Event()

    def interrupt():
        while not done.wait(0.02):
            table.interrupt()

    with rp.read(file, sensitive="b", public="all") as table:
        worker = threading.Thread(target=interrupt)
        worker.start()
        with pytest.raises(KeyboardInterrupt):
            table.publish(
                rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3),
                tmp_path / "out",
                key=rp.Key.test(),
            )
        done.set()
        worker.join()
    assert [path.name for path in tmp_path.iterdir()] == ["large.parquet"]


def test_a_progress_function_may_stop_a_publication(tmp_path):
    class StoppedError(Exception):
        pass

    def stop(stage, done):
        raise StoppedError

    with (
        rp.read("example:adult", sensitive="income", public=["sex"]) as table,
        pytest.raises(StoppedError),
    ):
        table.publish(
            rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3),
            tmp_path / "out",
            key=rp.Key.test(),
            progress=stop,
        )
    assert list(tmp_path.iterdir()) == []

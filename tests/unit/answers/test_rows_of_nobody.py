"""Nobody has no row, however the table is asked for: what is known to be empty is left out."""

import pyarrow as pa
import pytest

import reconpriv as rp
from query_fixtures import numbered_key


@pytest.fixture(scope="module")
def release(tmp_path_factory):
    table = pa.table(
        {"region": ["n", "s"] * 40, "age": [1, 2, 3, 4] * 20, "job": list("xxyz") * 20}
    )
    policy = rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3, sampling="none")
    with rp.read(table, sensitive="job", public="all") as read:
        folder = tmp_path_factory.mktemp("nobody") / "r"
        return read.publish(policy, folder, key=numbered_key(1), keep_giveaway=["age", "region"])


@pytest.mark.parametrize("by", [["job"], ["region"], ["region", "job"]])
@pytest.mark.parametrize("where", ["age > 9", "job <> job", "job IS NULL", "age > 9 AND job = 'x'"])
def test_a_table_of_nobody_has_no_row(release, by, where):
    columns = ", ".join(by)
    for figure in ("count(*)", "avg(age)", "count(*) FILTER (WHERE region = 'n')"):
        sql = f"SELECT {columns}, {figure} FROM release WHERE {where} GROUP BY {columns}"
        assert len(release.sql(sql)) == 0
    table = release.crosstab(by, where, totals=True)
    assert len(table) == 0
    assert table.totals[-1].count.count == 0
    assert len(release.frequencies(where)) == 0


def test_a_row_that_may_have_somebody_stays(release):
    assert len(release.sql("SELECT job, count(*) FROM release WHERE age > 3 GROUP BY job")) == 3
    assert len(release.crosstab(["region"], "job = 'x'")) == 2

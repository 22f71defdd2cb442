"""Shares, averages and quantiles in SQL: every form, by rows, and which rows are shown."""

import numpy as np
import pytest

import reconpriv as rp
from query_fixtures import SAMPLING_RULES, people, people_release
from reconpriv.answers.tables import EstimateTable, FigureTable

FRAME = people().to_pandas()
SCORES = {"baker": 1, "clerk": 2, "nurse": 3, "pilot": 4}


@pytest.fixture(params=SAMPLING_RULES)
def release(request):
    return people_release(request.param)


def close(one, other):
    expected = other.value, other.low, other.high
    if other.value is None:
        return one.value is None and (one.low, one.high) == pytest.approx(expected[1:])
    # Limits of averages are searched for, from guesses that differ in their last digits.
    limits = pytest.approx(expected[1:], abs=0.005 * (other.high - other.low))
    return one.value == pytest.approx(other.value) and (one.low, one.high) == limits


def young(job):
    return "age < 30 AND job " + ("IS NULL" if job is None else f"= '{job}'")


@pytest.mark.parametrize(
    "form",
    [
        "share(*) FROM release WHERE Sex = 'F' AND job = 'nurse'",
        "share(job = 'nurse') FROM release WHERE Sex = 'F'",
        "share(*) FILTER (WHERE job = 'nurse') FROM release WHERE Sex = 'F'",
        "share(job = 'nurse') FILTER (WHERE Sex = 'F') FROM release",
        "avg(CASE WHEN job = 'nurse' THEN 1 ELSE 0 END) FROM release WHERE Sex = 'F'",
        "avg((job IS NOT DISTINCT FROM 'nurse')::INT) FROM release WHERE Sex = 'F'",
    ],
)
def test_all_ways_to_write_a_share(release, form):
    assert close(release.sql(f"SELECT {form}"), release.share("Sex = 'F'", job="nurse"))


@pytest.mark.parametrize(
    "form",
    [
        "count(*) FILTER (WHERE job = 'nurse')",
        "sum(CASE WHEN job = 'nurse' THEN 1 ELSE 0 END)",
        "count(CASE WHEN job = 'nurse' THEN 1 END)",
    ],
)
def test_all_ways_to_count_a_part(release, form):
    found, count = release.sql(f"SELECT {form} FROM release"), release.count(job="nurse")
    assert (found.count, found.low, found.high) == (count.count, count.low, count.high)


def test_averages_and_quantiles_equal_those_of_python(release):
    table = release.sql(
        "SELECT avg(age), sum(age), median(age), quantile(age, 0.9), avg(job), median(job)"
        " FROM release WHERE Sex = 'F'",
        scores=SCORES,
    )
    assert isinstance(table, FigureTable)
    ((_, found),) = table
    assert close(found[0], release.average("age", Sex="F"))
    assert close(found[1], release.sum("age", Sex="F"))
    assert close(found[2], release.median("age", Sex="F"))
    assert close(found[3], release.quantile("age", 0.9, Sex="F"))
    assert close(found[4], release.average("job", Sex="F", scores=SCORES))
    assert found[5].value == release.median("job", Sex="F", scores=SCORES).value


def test_every_row_is_the_answer_to_its_own_question(release):
    table = release.sql(
        "SELECT Sex, avg(age) AS mean, share(job = 'nurse'),"
        " median(age) FILTER (WHERE job = 'nurse') FROM release WHERE age < 30 GROUP BY Sex"
    )
    assert table.names[0] == "mean"
    for sex in ("F", "M"):
        mean, share, median = table[sex]
        assert close(mean, release.average("age", "age < 30", Sex=sex))
        assert close(share, release.share("age < 30", Sex=sex, job="nurse"))
        assert close(median, release.median("age", "age < 30", Sex=sex, job="nurse"))


def test_rows_by_the_sensitive_column(release):
    table = release.sql("SELECT job, avg(age), share(*), sum(age) FROM release GROUP BY job")
    assert len(table) == 5
    average, share, total = table["nurse"]
    assert close(average, release.average("age", job="nurse"))
    assert close(share, release.share(job="nurse"))
    assert close(total, release.sum("age", job="nurse"))
    assert sum(row[1][1].value for row in table) == pytest.approx(1)


def test_shares_by_the_sensitive_column_are_among_its_holders(release):
    forms = ("share(Sex = 'F')", "avg(CASE WHEN Sex = 'F' THEN 1 ELSE 0 END)")
    for form in forms:
        table = release.sql(f"SELECT job, {form} FROM release WHERE age < 30 GROUP BY job")
        assert len(table) == 5
        for labels, (found,) in table:
            asked = release.share("Sex = 'F'", among=young(labels["job"]))
            assert close(found, asked)
    table = release.sql("SELECT job, share(job = 'nurse') FROM release GROUP BY job")
    assert table["nurse"][0].value == pytest.approx(1)
    assert table["clerk"][0].value == pytest.approx(0)


def test_simultaneous_shares_by_the_sensitive_column_are_wider():
    release = people_release("octave")
    sql = "SELECT job, Sex, share(age < 30) FROM release GROUP BY job, Sex"
    plain, wide = release.sql(sql), release.sql(sql, simultaneous=True)
    level = 1 - 0.05 / len(plain)
    (found,) = wide["nurse", "F"]
    asked = release.share("age < 30", among={"job": "nurse", "Sex": "F"}, confidence=level)
    assert (found.low, found.high) == pytest.approx((asked.low, asked.high))


@pytest.mark.parametrize("figure", ["avg(age)", "sum(age)", "median(age)", "share(Sex = 'F')"])
def test_nobody_can_be_selected(figure):
    release, nobody = people_release("octave"), "FROM release WHERE job LIKE 'x%'"
    with pytest.raises(rp.ReconprivError, match="No record is in this selection"):
        release.sql(f"SELECT {figure} {nobody}")
    for _, (found,) in release.sql(f"SELECT Sex, {figure} {nobody} GROUP BY Sex"):
        assert (found.value, found.low, found.high) == (None, None, None)


@pytest.mark.parametrize("ask", ["count", "share", "frequencies"])
def test_a_condition_that_is_no_text_is_refused(ask):
    with pytest.raises(rp.ReconprivError, match="A condition is text in SQL; got dict"):
        getattr(people_release("octave"), ask)({"Sex": "F"})


def test_having_order_and_limit():
    release = people_release("octave")
    sql = "SELECT job, avg(age) AS mean FROM release WHERE job IS NOT NULL GROUP BY job"
    plain = release.sql(sql)
    means = {labels["job"]: one.value for labels, (one,) in plain}
    for order in ("mean DESC", "2 DESC", "avg(age) DESC"):
        found = release.sql(f"{sql} ORDER BY {order} LIMIT 2")
        names = [labels["job"] for labels, _ in found]
        assert names == sorted(means, key=means.get, reverse=True)[:2]
        assert "picked by its estimate" in found.rows[0][1][0].remarks[-1]
    counts = {labels["job"]: one.count for labels, one in release.crosstab(["job"])}
    found = release.sql(f"{sql} HAVING count(*) >= 300 AND mean > 0 ORDER BY job DESC")
    assert [labels["job"] for labels, _ in found] == sorted(
        (job for job, count in counts.items() if job and count >= 300), reverse=True
    )
    kept = release.sql("SELECT Sex, count(*) FROM release GROUP BY Sex HAVING 1500 < count(*)")
    assert isinstance(kept, EstimateTable)
    assert [labels["Sex"] for labels, _ in kept] == ["F"]


def test_simultaneous_intervals_are_wider():
    release = people_release("octave")
    sql = "SELECT age, share(job = 'nurse') AS s, avg(age) FROM release GROUP BY age"
    alone, together = release.sql(sql), release.sql(sql, simultaneous=True)
    for (_, one), (_, other) in zip(alone, together, strict=True):
        assert other[0].low <= one[0].low <= one[0].high <= other[0].high
    assert any(o[0].high > a[0].high for (_, a), (_, o) in zip(alone, together, strict=True))


def test_protected_releases_answer_by_share(tmp_path):
    policy = rp.Policy(
        retention=0.5, tolerance=0.5, doubt=0.3, sampling="public", protect={"age": 5}
    )
    from query_fixtures import numbered_key

    with rp.read(people(), sensitive="job", public="all", missing="value") as table:
        release = table.publish(policy, tmp_path / "r", key=numbered_key(1))
    assert release.average("age", Sex="F").exact
    found = release.average("age", job="nurse")
    assert any("protection group" in remark for remark in found.remarks)
    assert found.low <= found.value <= found.high
    whole = release.share("age BETWEEN 20 AND 24", job="nurse")
    assert not any("protection group" in remark for remark in whole.remarks)
    cut = release.share("age = 22", among={"job": "nurse"})
    assert any("protection group" in remark for remark in cut.remarks)


def test_bins_have_middles_and_medians(tmp_path):
    policy = rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3, sampling="octave")
    from query_fixtures import numbered_key

    source = people().drop_columns(["job"]).append_column("pay", people()["age"])
    with rp.read(source, sensitive="pay", public=["Sex"], bin={"pay": 5}) as table:
        release = table.publish(policy, tmp_path / "r", key=numbered_key(1))
    counts = {labels["pay"]: one.count for labels, one in release.frequencies()}
    middles = {"20 to 24": 22, "25 to 29": 27, "30 to 34": 32}
    expected = sum(middles[label] * count for label, count in counts.items()) / 3_000
    found = release.average("pay")
    assert found.value == pytest.approx(expected)
    assert "middle of its bin" in found.remarks[0]
    assert 22 <= found.low < found.value < found.high <= 32
    reached = np.cumsum(list(counts.values())) >= 1_500
    median = release.median("pay")
    assert median.value == list(counts)[int(np.argmax(reached))]
    assert (median.low, median.high) in {(20, 24), (20, 29), (25, 29), (20, 34), (25, 34)}

"""What the page says about people who stand out, records that are left out, and who gets what."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import reconpriv as rp
from reconpriv.core.obstacles import Accepted, unique_obstacle
from reconpriv.core.people import People
from reconpriv.core.single_records import SingleRecords
from reconpriv.studio import step_download
from reconpriv.studio.desk import Desk, Settled
from reconpriv.studio.plan import Roles
from reconpriv.studio.planned import plan_view
from reconpriv.studio.verdict import plain_verdict, record_verdict, verdict_card

POLICY = rp.Policy(0.5, 0.5, 0.3)
LEFT_OUT = "4,799 of 5,000; 201 without a sensitive value are left out"


def single(unique: int, below_k: int = 0) -> SingleRecords:
    return SingleRecords.of(
        k=5,
        records=1_000,
        unique=unique,
        below_k=max(unique, below_k),
        policy=POLICY,
        domain_size=3,
    )


@pytest.mark.parametrize(
    ("unique", "below", "kind"), [(0, 0, "good"), (0, 3, "info"), (2, 2, "warning")]
)
def test_the_colour_follows_the_number_of_unique_records(
    unique: int, below: int, kind: str
) -> None:
    assert record_verdict(single(unique, below))[0] == kind
    assert record_verdict(single(unique, below), refused=True)[0] == "error"


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    made = Desk(tmp_path_factory.mktemp("desk"))
    yield made
    made.close()


@pytest.fixture(scope="module")
def settled(desk: Desk, tmp_path_factory: pytest.TempPathFactory) -> Settled:
    """5,000 records, 201 of them without a sensitive value."""
    rows = range(5_000)
    values = [None if i < 201 else "uvw"[i % 3] for i in rows]
    data = pa.table({"a": [i % 7 for i in rows], "b": [i % 50 // 25 for i in rows], "x": values})
    file = tmp_path_factory.mktemp("table") / "t.parquet"
    pq.write_table(data, file)
    return desk.settle(desk.look(str(file)), Roles("x", ("a", "b"), missing="drop"))


def test_the_verdict_counts_who_stands_out_and_who_is_left_out(
    desk: Desk, settled: Settled
) -> None:
    report = desk.audit(settled, POLICY, worst=1)
    found = desk.tuner(settled).setting(POLICY)
    for html in (str(verdict_card(report, POLICY, found)), str(plain_verdict(report, ""))):
        assert f"<strong>Records: </strong>{LEFT_OUT}." in html.replace("\n", "").replace("  ", "")
        assert "of 4,799 records are unique on the public columns" in html
        assert "of 4,799 records are in groups of fewer than 5" in html
        assert '<div class="figure bad">' not in html
    alone = replace(report.single_records, unique=4_799, below_k=4_799)
    refused = unique_obstacle(4_799, 4_799, Accepted(), {"a": 12})
    assert refused is not None
    lost = replace(report, single_records=alone, dropped=0, obstacles=(refused,))
    html = str(verdict_card(lost, POLICY, found))
    assert "without a sensitive value are left out" not in html
    assert '<div class="figure bad">' in html
    first = html[html.index('class="notice') :]
    assert first.startswith('class="notice error"')
    assert "Not ready to publish: 4,799 of 4,799 records (100%)" in first
    assert "it would be 0.3% without 'a'" in first


def test_the_plan_counts_them_too(desk: Desk, settled: Settled) -> None:
    report = desk.audit(settled, POLICY, worst=1)
    html = str(plan_view(settled, POLICY, replace(report, single_records=single(2, 30))))
    assert LEFT_OUT in html
    assert "2 of 1,000 records (0.2%)" in html
    assert "30 of 1,000 records (3.0%)" in html
    assert "assumed to be one person, which was not checked" in html
    checked = replace(report, people=People(people=4_799, most=1))
    assert "one row each, as was checked" in str(plan_view(settled, POLICY, checked))
    assert "counting…" in str(plan_view(settled, POLICY, None))


def test_a_release_that_is_not_to_be_handed_out_is_marked() -> None:
    marks = str(step_download.release_marks(test_key=True, older=False))
    assert "test key: not for release" in marks
    assert "older" not in marks
    assert str(step_download.release_marks(test_key=False, older=False)) == ""


def test_nothing_secret_is_among_what_analysts_get() -> None:
    html = str(step_download.panel())
    give, keep = html.index("Give to analysts"), html.index("Keep secret")
    assert 0 < give < keep
    mine = {"get_key", "ledger", "internal_report", "get_script", "get_command"}
    for name in {"get_release", "analyst_report"} | mine:
        at = html.index(f'id="{name}"')
        assert (at > keep) == (name in mine), name

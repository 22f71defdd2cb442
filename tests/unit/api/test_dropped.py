"""Records without a sensitive value that are left out are counted, for the publisher alone."""

import pyarrow as pa
import pyarrow.csv
import pytest

import reconpriv as rp
from reconpriv.messages.phrases import kept_words
from reconpriv.reports.internal import find, internal_html

POLICY = rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3)
LEFT_OUT, KEPT = 1_234, 8_766
WORDS = "8,766 of 10,000 records; 1,234 without a sensitive value are left out"
VALUES = [None] * LEFT_OUT + ["u", "v", "w"] * (KEPT // 3)
TABLE = pa.table({"a": [i % 4 for i in range(LEFT_OUT + KEPT)], "x": VALUES})


@pytest.fixture
def file(tmp_path):
    made = tmp_path / "t.csv"
    pyarrow.csv.write_csv(TABLE, made)
    return made


def test_a_table_and_its_audit_know_how_many_were_left_out():
    with rp.read(TABLE, sensitive="x", public="all", missing="drop") as table:
        assert (table.dropped, table.schema.records) == (LEFT_OUT, KEPT)
        for policy in (
            POLICY,
            rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3, protect={"a": 2}),
        ):
            report = table.audit(policy)
            assert (report.dropped, report.records) == (LEFT_OUT, KEPT)
            assert report.as_dict()["dropped"] == LEFT_OUT
        assert f"{WORDS}. Sensitive column: x" in internal_html(find(table, POLICY))
    with rp.read(TABLE, sensitive="x", public="all", missing="value") as table:
        assert table.dropped == table.audit(POLICY).dropped == 0


def test_the_command_line_says_so(cli, file, tmp_path):
    said = cli("audit", file, "-s", "x", "--public", "a", "--missing", "drop", "--no-columns")
    assert WORDS.replace(" records", "") in said.out
    done = cli(
        "publish", file, tmp_path / "out", "-s", "x", "--public", "a", "--missing", "drop",
        "--test-key",
    )  # fmt: skip
    assert done.code == 0
    assert f"note: {WORDS}." in done.err


def test_the_count_stays_with_the_publisher(tmp_path, files_of):
    """Release and report are those of a table that never had the records."""
    found = []
    for name, rows in (("all", TABLE), ("kept", TABLE.slice(LEFT_OUT))):
        with rp.read(rows, sensitive="x", public="all", missing="drop") as table:
            release = table.publish(POLICY, tmp_path / name / "out", key=rp.Key.test())
        assert release.notes == ((f"{WORDS}.",) if name == "all" else ())
        release.report(tmp_path / name / "report.html")
        report = (tmp_path / name / "report.html").read_text(encoding="utf-8")
        info = {**release.info(), "release": ""}
        found.append((files_of(release.path), report, info))
    assert found[0] == found[1]


@pytest.mark.parametrize(
    ("dropped", "words"), [(0, "7"), (1, "7 of 8; 1 without a sensitive value is left out")]
)
def test_none_and_one(dropped, words):
    assert kept_words(7, dropped) == words

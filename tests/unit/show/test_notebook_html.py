"""What a notebook shows is well-formed and escaped; a release's view has nothing internal."""

from __future__ import annotations

import warnings
from html.parser import HTMLParser

import pyarrow as pa
import pytest

import reconpriv as rp
from reconpriv.attacks import attack
from reconpriv.show.document import Whisker
from reconpriv.show.html import notebook_html

POLICY = rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3)
NASTY = "<script>alert('&')</script>"
VOID = {"br"}


class Reader(HTMLParser):
    """Fails on a tag that is closed out of order; collects the text and the tags."""

    def __init__(self, html):
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.text: list[str] = []
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def shown(result):
    read = Reader(result._repr_html_())
    return " ".join(read.text), read.tags


@pytest.fixture(scope="module")
def table():
    cities = [NASTY, "Bonn", "Köln"]
    data = pa.table(
        {
            "city": [cities[i % 3] for i in range(3_000)],
            "illness": [("flu", "cold", NASTY)[(i // 3) % 7 % 3] for i in range(3_000)],
        }
    )
    with rp.read(data, sensitive="illness", public="all") as opened:
        yield opened


@pytest.fixture(scope="module")
def release(table, tmp_path_factory):
    made = table.publish(POLICY, tmp_path_factory.mktemp("html") / "release", key=rp.Key.test())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return rp.open(made.path)


def test_an_audit_shows_its_verdict_and_keeps_the_worst_groups_closed(table):
    text, tags = shown(table.audit(POLICY))
    assert text.startswith("Not private: 3 of 3 groups")
    assert "Worst groups (internal: not for release)" in text
    assert NASTY in text  # as text, not as a tag
    assert "script" not in tags
    assert "details" in tags
    assert "svg" in tags


def test_a_private_audit_says_so_in_green(table):
    report = table.audit(rp.Policy(retention=0.05, tolerance=0.1, doubt=0.05))
    assert report.private
    assert "Every group meets this policy" in shown(report)[0]
    assert "#2e8540" in report._repr_html_()


def test_a_release_shows_how_to_read_it_and_nothing_internal(release):
    text, tags = shown(release)
    assert "3,000" in text
    assert "test key" in text
    assert "How to read it" in text
    assert "sampled groups" not in text  # its publisher's figure: an opened release has none
    assert "script" not in tags


def test_an_estimate_shows_its_interval_as_a_picture(release):
    estimate = release.count(city=NASTY, illness=NASTY)
    text, tags = shown(estimate)
    assert f"{estimate.count:,.1f}" in text
    assert f"{estimate.low:,.1f} to {estimate.high:,.1f}" in text
    assert "note:" in text  # it rests on one micro group
    assert "script" not in tags
    assert tags.count("circle") == 1


def test_an_exact_count_has_no_interval(release):
    text, tags = shown(release.count(city="Bonn"))
    assert "1,000" in text
    assert "exact" in text
    assert "circle" not in tags


def test_a_cross_table_has_a_picture_a_row(release):
    rows = release.crosstab(["city", "illness"])
    text, tags = shown(rows)
    assert tags.count("circle") == len(rows) == 9
    assert NASTY in text
    assert "script" not in tags


def test_the_pictures_keep_within_their_frame(release):
    """An estimate may lie outside what is possible; its picture may not."""
    for low, place in ((-300, "4.0"), (90, "216.0")):
        assert f'cx="{place}"' in notebook_html([Whisker(low, low + 10, low + 20, 50)])


def test_an_attack_shows_its_rates_on_one_scale(table):
    result = attack("micro", table, POLICY)
    text, tags = shown(result)
    assert result.verdict in text
    assert tags.count("circle") == sum(
        rate is not None and rate.trials > 0
        for rate in (result.success, result.baseline, result.control)
    )
    assert "script" not in tags


def test_a_sweep_is_shown_too(table):
    text, tags = shown(table.tune(max_error=0.5))
    assert "Efficient settings" in text
    assert "table" in tags


def test_a_folder_with_a_strange_name_is_escaped(table, tmp_path):
    made = table.publish(POLICY, tmp_path / "<script>", key=rp.Key.test())
    text, tags = shown(made)
    assert "<script>" in text
    assert "script" not in tags

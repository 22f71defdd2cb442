"""Both reports: what they contain, what they must not, and that a real browser draws them."""

import datetime
import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from html import unescape
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import reconpriv as rp
from query_fixtures import numbered_key, people, people_release
from reconpriv.cells.cube import collect
from reconpriv.errors import InputError, OutputError
from reconpriv.estimate.counts import Settings
from reconpriv.messages.numbers import percent
from reconpriv.policy.presets import preset
from reconpriv.reports import lab, page
from reconpriv.reports.accuracy import error_bands
from reconpriv.reports.analyst import analyst_html
from reconpriv.reports.groups import GroupTally
from reconpriv.reports.internal import find, internal_html
from reconpriv.show.charts import drawing as charts

ADULT = ("example:adult", "-s", "occupation", "--public", "age,sex,race", "--missing", "value")
POLICY = rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3)
NASTY = "</script><script>alert(1)</script><img src=x onerror=alert(2)>&\"'"
CHARTS = {"internal": 4, "analyst": 2}


class Seen(HTMLParser):
    """The tags and the visible text of a page, scripts and styles apart."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.words, self.scripts, self.attributes = [], [], [], []
        self._inside = ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, name, value) for name, value in attrs]
        self._inside = tag

    def handle_endtag(self, tag):
        self._inside = ""

    def handle_data(self, data):
        (self.scripts if self._inside in ("script", "style") else self.words).append(data)

    @property
    def text(self):
        return " ".join(" ".join(self.words).split())


@pytest.fixture(scope="module")
def pages(adult, tmp_path_factory):
    """Both reports on the Adult table, written as a user would."""
    folder = tmp_path_factory.mktemp("reports")
    release = adult.publish(POLICY, folder / "release", key=numbered_key(1))
    adult.report(POLICY, folder / "internal.html", release=release, source="adult.parquet")
    rp.open(folder / "release").report(folder / "analyst.html")
    return folder


@pytest.fixture(scope="module")
def internal(pages):
    return (pages / "internal.html").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def analyst(pages):
    return (pages / "analyst.html").read_text(encoding="utf-8")


# The publisher's report.


def test_the_internal_report_holds_what_was_asked_for(pages, internal, adult):
    seen = Seen(internal)
    report, found = adult.audit(POLICY), adult.tuner().setting(POLICY)
    worst = report.worst[0]
    for word in (
        f"{report.violating_groups:,} of {report.groups:,} groups", "Group sizes against s_g",
        "Violating groups by attribute", "Exact tails beside the bound", "Worst groups",
        "What the attack lab found", "Trials kept", "Parameters and versions", "retention p",
        "adult.parquet", rp.__version__, "numpy", "duckdb", "independent trials",
        ", ".join(f"{name}={value}" for name, value in worst.public.items()),
        f"{worst.largest_frequency:.2f} ({worst.value})", f"{worst.size:,}",
    ):  # fmt: skip
        assert word in seen.text, word
    section = internal[internal.index('id="promise"') : internal.index('id="summary"')]
    words = Seen(section).text
    for word in (
        report.promise, report.not_promised, "neither the publisher's key",
        *map(percent, (found.reconstructed, found.worst_group, found.posterior)),
    ):  # fmt: skip
        assert word in words, word
    # Stamped on screen and, by its style, on every printed page.
    style = "".join(seen.scripts)
    assert seen.text.count(page.STAMP) >= 2 and page.STAMP in internal.split("</title>")[0]
    assert "@top-center" in style and page.STAMP in style
    assert re.search(r"\.watermark \{\s*display: block; position: fixed", style)
    assert (pages / "internal.html").stat().st_mode & 0o077 == 0


def test_a_promise_of_probabilities_names_what_is_exposed(tmp_path):
    policy = replace(preset("recommended"), margins=None, harmless=("nurse",))
    policy = replace(policy, unattainable="one-trial")
    with rp.read(people().slice(0, 900), sensitive="job", public="all", missing="value") as table:
        release = table.publish(policy, tmp_path / "r", key=numbered_key(3))
        internal = Seen(internal_html(find(table, policy))).text
    analyst = Seen(analyst_html(rp.open(release.path))).text
    for text in (internal, analyst):
        assert "more than 50 % too high with a probability of at least 5 %" in text
        assert 'that more than 25 % of them hold, except "nurse", an adversary' in text
        assert "are promised nothing" in text
    assert analyst.index("promised") < analyst.index("What is exact")
    assert "reconstructed" not in analyst  # figures on the raw table


TRIPLES = pa.table({"s": ["x", "y", "z"] * 60, "town": ["a", "b"] * 90})


@pytest.mark.parametrize(
    ("changed", "public", "words"),
    [
        ({"exposed_above": 0.9}, "all", "people reconstructed 0.00%"),
        ({"retention": 0.05, "tolerance": 0.1, "doubt": 0.05, "sampling": "none"}, "all",
         "nothing to attack"),
        ({"doubt": 0.1, "bound": "chebyshev", "sampling": "paper"}, "all",
         "Group sizes against s_g"),
        ({}, [], "(all records)"),
    ],
    ids=["nothing exposed", "no violations", "another bound", "nothing public"],
)  # fmt: skip
def test_policies_out_of_the_ordinary_have_an_internal_report(changed, public, words):
    with rp.read(TRIPLES, sensitive="s", public=public) as table:
        text = Seen(internal_html(find(table, replace(POLICY, **changed)))).text
    assert words in text
    assert "inf" not in text.replace("information", "").replace("infer", "")


def test_the_internal_report_shows_both_frontiers(adult):
    cube = collect(adult.batches(), adult.schema)
    found = lab.tradeoff(cube, POLICY)
    assert not found.setting.margins
    assert all(not s.margins and s.retention <= POLICY.retention for s in found.alone)
    assert all(s.margins_epsilon == 1.0 for s in found.with_margins)
    for front, least in ((found.alone, 11), (found.with_margins, 7)):
        assert len(front) >= least
        assert [s.error for s in front] == sorted(s.error for s in front)
        assert [s.group_error for s in front] == sorted(s.group_error for s in front)
    # At the same error of the adversary the analysts' is smaller with margins.
    for one in found.alone[::5]:
        safer = [s.error for s in found.with_margins if s.group_error >= 0.99 * one.group_error]
        assert min(safer, default=0.0) < one.error


def test_trials_and_totals_are_those_of_the_release(pages, adult):
    facts = GroupTally(adult.schema, POLICY)
    for batch in adult.batches():
        facts.add(batch)
    release = adult.publish(POLICY, pages / "again", key=numbered_key(1))
    assert facts.trials == release.written.trials
    assert facts.sampled_groups == release.written.sampled_groups
    assert sum(c[1] for c in facts.classes) == adult.schema.records
    assert sum(c[2] for c in facts.classes) == facts.trials
    report = adult.audit(POLICY)
    assert sum(count for *_, count, ok in facts.shapes if not ok) == report.violating_groups
    for shares in facts.shares.values():
        assert all(s.violating_records <= s.records for s in shares)


def test_a_large_table_is_not_attacked(adult, monkeypatch):
    monkeypatch.setattr(lab, "LAB_RECORDS", 10)
    cube = collect(adult.batches(), adult.schema)
    found, note = lab.run(cube, POLICY, adult.audit(POLICY))
    assert found == () and "Not run" in note
    assert lab.tradeoff(cube, POLICY) is None


@pytest.mark.parametrize("size", ["none", "paper", "octave", "public"])
def test_every_sampling_has_an_analyst_report(size):
    text = Seen(analyst_html(people_release(size))).text
    assert ("are exact" in text) == (size != "paper")
    assert "IS NULL" in text or "nurse" in text


# The analysts' report.


def test_the_analyst_report_holds_what_was_asked_for(analyst):
    text = Seen(analyst).text
    for word in (
        "What is exact, what is estimated", "Counts over these columns alone are exact",
        "Expected error by answer size", "How to ask", "reconpriv query release/", "rp.open(",
        "48,842 records", "typical error",
    ):  # fmt: skip
        assert word in text, word
    assert page.STAMP not in analyst


def test_the_analyst_report_is_a_function_of_the_release(pages):
    release = rp.open(pages / "release")
    assert analyst_html(release) == analyst_html(rp.open(pages / "release"))
    moved = pages / "elsewhere" / "release"
    shutil.copytree(pages / "release", moved)
    assert analyst_html(rp.open(moved)) == analyst_html(release)


def test_nothing_internal_is_in_the_analyst_report(tmp_path):
    """Neither key, source path, raw counts, f nor s_g, though all are at hand when it is made."""
    home = tmp_path / "secret-source-folder"
    home.mkdir()
    pa.parquet.write_table(people(), home / "secret-people.parquet")
    key = rp.Key(bytes(range(32)))
    with rp.read(
        home / "secret-people.parquet", sensitive="job", public="all", missing="value"
    ) as table:
        release = table.publish(POLICY, tmp_path / "out" / "release", key=key)
        report = table.audit(POLICY, worst=100)
        raw = table.workload(queries=200).answers
    html = analyst_html(release)
    specs = json.loads(re.search(r'<script id="charts"[^>]*>(.*?)</script>', html, re.S)[1])
    numbers = {float(n) for n in re.findall(r"\d+\.\d+", json.dumps(specs) + Seen(html).text)}
    for verdict in report.worst:
        assert verdict.largest_private_size not in numbers
        assert verdict.largest_frequency not in numbers or verdict.largest_frequency in (0.5, 1.0)
    text = Seen(html).text
    assert "secret" not in html and str(tmp_path) not in html
    assert bytes(range(32)).hex() not in html
    assert not re.search(r"s_g|largest f\b|violating", text)
    assert raw.size  # the truth was there to leak
    public = {float(v) for v in (0.5, 0.3)}
    assert public <= numbers


def check_bands(bands, answerer, values):
    """The median error of a band is near the standard errors that the release itself gives."""
    assert bands and all(b.tenth <= b.median <= b.ninetieth for b in bands)
    selected = [answerer.select(None, value) for value in values]
    for answer in answerer.count_many(selected, Settings()):
        band = next((b for b in bands if b.low <= answer.count < b.high), None)
        if band is not None:
            error = np.sqrt(2 / np.pi) * answer.standard_error / answer.count
            assert 0.4 * band.tenth <= error <= 2.5 * band.ninetieth


def test_error_bands_are_those_of_the_intervals():
    answerer = people_release("octave").answerer
    bands = error_bands(answerer)
    assert bands[-1].median < bands[0].median
    check_bands(bands, answerer, [{"Sex": s, "job": j} for s in "FM" for j in ("nurse", "clerk")])


@pytest.fixture(scope="module")
def with_margins(adult, tmp_path_factory):
    """Both reports on a publication with margins."""
    folder, policy = tmp_path_factory.mktemp("margins"), replace(POLICY, margins=1.0)
    release = adult.publish(policy, folder / "release", key=numbered_key(1))
    adult.report(policy, folder / "internal.html", release=release)
    release.report(folder / "analyst.html")
    return release, *(
        Seen((folder / name).read_text(encoding="utf-8")).text
        for name in ("internal.html", "analyst.html")
    )


def test_the_internal_report_says_what_margins_cost(with_margins, internal, adult):
    _, text, _ = with_margins
    cost = adult.audit(replace(POLICY, margins=1.0), columns=False).margins
    for word in (
        cost.sentence, "trials given up", f"{cost.trials_lost:,}", "rows left out",
        f"σ = {cost.variance**0.5:.3g}",
    ):  # fmt: skip
        assert word in text, word
    assert "rows left out" not in Seen(internal).text


def test_the_analysts_report_explains_margins(with_margins, analyst):
    release, _, text = with_margins
    margins = release.description.margins
    for word in (
        "Margins", f"±{1.96 * margins.variance**0.5:,.0f}", "rows left out",
        f"ρ = {margins.rho:g}", "sensitive value of one record", "release.margins()",
    ):  # fmt: skip
        assert word in text, word
    assert "argins" not in Seen(analyst).text


def test_error_bands_count_on_margins(with_margins):
    """Large counts are more accurate with margins, and small ones hardly worse."""
    answerer = with_margins[0].answerer
    both = error_bands(answerer)
    alone = error_bands(replace(answerer, measurements=answerer.told(margins=False)))
    (largest,) = (one for one in alone if one.low == both[-1].low)
    assert both[-1].median < 0.7 * largest.median
    check_bands(both, answerer, [{"occupation": "Sales"}])


def commands(html):
    blocks = re.findall(r"<pre[^>]*>(.*?)</pre>", html.split('<script id="charts"')[0], re.S)
    return [unescape(block) for block in blocks]


DAYS = [datetime.date(2020, 1, 1 + i % 3) for i in range(3)]


@pytest.mark.parametrize(("column", "values"), [
    ("job", [NASTY, NASTY, "other"]), ("where", ["it's", "it's", "a\\b!"]),
    ("class", ["$HOME `x` \\n", "x", "x"]), ('say "hi"', ["it's", 'say "hi"', "x"]),
    ("sélect", DAYS), ("Group", [True, False, True]),
])  # fmt: skip
def test_the_commands_of_the_report_run_as_they_stand(tmp_path, monkeypatch, cli, column, values):
    table = pa.table({"a b": ["x", "y'"] * 60, "n": [0.5, 1.5, 2.5, 0.5] * 30, column: values * 40})
    with rp.read(table, sensitive=column, public="all") as opened:
        opened.publish(
            rp.Policy(retention=0.5, tolerance=0.5, doubt=0.3),
            tmp_path / "r",
            key=rp.Key.generate(),
        )
    html = analyst_html(rp.open(tmp_path / "r"))
    *shell, script = commands(html)
    assert len(shell) == 3
    for command in shell:
        words = subprocess.run(["bash", "-c", f"printf '%s\\0' {command}"], capture_output=True,
                               check=True, env={"HOME": "/wrong"}).stdout  # fmt: skip
        name, *arguments = words.decode().split("\0")[:-1]
        assert name == "reconpriv" and arguments[1] == "r/"
        done = cli("query", tmp_path / "r", *arguments[2:])
        assert done.code == 0, done.err
    monkeypatch.chdir(tmp_path)
    exec(script, {})


# Both: escaping, no network, files.


@pytest.fixture(scope="module")
def nasty(tmp_path_factory):
    """Reports on a table whose names and values try to be markup."""
    folder = tmp_path_factory.mktemp("nasty")
    rng = np.random.default_rng(5)
    table = pa.table({
        f"{NASTY} column": rng.choice([NASTY, "b"], 400),
        "plain": rng.choice(["</style>", "<!--", "-->", "\u2028"], 400),
        f"s{NASTY}": rng.choice([f"v{NASTY}", "w", "]]>"], 400, p=[0.8, 0.1, 0.1]),
    })  # fmt: skip
    with rp.read(table, sensitive=f"s{NASTY}", public="all") as opened:
        release = opened.publish(POLICY, folder / "r", key=rp.Key.generate())
        opened.report(POLICY, folder / "internal.html", release=release, source=f"{NASTY}.csv")
    rp.open(folder / "r").report(folder / "analyst.html")
    return folder


@pytest.mark.parametrize("kind", ["internal", "analyst"])
def test_values_cannot_be_markup_and_nothing_is_fetched(nasty, kind):
    html = (nasty / f"{kind}.html").read_text(encoding="utf-8")
    seen = Seen(html)
    assert seen.tags.count("script") == 3 and "img" not in seen.tags
    assert not [a for a in seen.attributes if a[1].startswith("on")]
    assert "alert(1)" in seen.text  # it is shown, as text
    found = re.search(r'<script id="charts"[^>]*>(.*?)</script>', html, re.S)
    assert len(json.loads(found[1])) >= CHARTS[kind] - 1
    policy = next(v for t, n, v in seen.attributes if n == "content" and "default-src" in v)
    assert "default-src 'none'" in policy and "http" not in policy
    links = [v for _, name, v in seen.attributes if name in ("src", "href")]
    assert all(link.startswith("#") for link in links)


def test_a_report_is_not_written_over_anything(adult, pages, tmp_path):
    target = tmp_path / "x.html"
    target.write_text("mine")
    with pytest.raises(OutputError, match="exists already"):
        adult.report(POLICY, target)
    with pytest.raises(OutputError, match="exists already"):
        rp.open(pages / "release").report(target)
    with pytest.raises(OutputError, match="is a folder"):
        adult.report(POLICY, tmp_path)
    with pytest.raises(OutputError, match="no folder"):
        adult.report(POLICY, tmp_path / "no" / "x.html")
    assert target.read_text() == "mine"
    rp.open(pages / "release").report(target, overwrite=True)
    assert target.read_text().startswith("<!doctype html>")


def test_an_internal_report_is_refused_inside_a_release(adult, pages, cli, tmp_path):
    with pytest.raises(OutputError, match="must not be inside"):
        adult.report(POLICY, pages / "release" / "x.html")
    done = cli("publish", *ADULT, tmp_path / "r", "--test-key", "--report", tmp_path / "r" / "x")
    assert done.code == 2 and "inside the release" in done.err
    assert list(tmp_path.iterdir()) == []


def test_a_failure_half_way_leaves_nothing(adult, tmp_path, monkeypatch):
    def fail(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", fail)
    with pytest.raises(OutputError, match="No space left"):
        adult.report(POLICY, tmp_path / "x.html")
    assert list(tmp_path.iterdir()) == []


def test_without_altair_one_sentence_says_what_to_install(monkeypatch, adult, tmp_path, cli):
    charts.browser_scripts.cache_clear()
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    with pytest.raises(InputError, match=r"pip install .*'vl-convert-python>="):
        adult.report(POLICY, tmp_path / "x.html")
    done = cli("audit", *ADULT, "--report", tmp_path / "x.html")
    assert done.code == 2 and "'vl-convert-python>=" in done.err


# The command line.


def test_the_commands_write_both_reports(cli, tmp_path):
    table = tmp_path / "t.parquet"
    pa.parquet.write_table(TRIPLES, table)
    options = (table, "-s", "s", "--public", "town", "--preset", "paper")
    done = cli("publish", *options, tmp_path / "r", "--test-key", "--report", tmp_path / "i.html")
    assert done.code == 0
    assert "t.parquet" in Seen((tmp_path / "i.html").read_text(encoding="utf-8")).text
    done = cli("report", tmp_path / "r", "-o", tmp_path / "a.html", "--json")
    assert done.code == 0 and json.loads(done.out)["file"].endswith("a.html")
    assert "test key" in Seen((tmp_path / "a.html").read_text(encoding="utf-8")).text
    done = cli("audit", *options, "--report", tmp_path / "i.html")
    assert done.code == 2 and "exists already" in done.err
    rows = ("--sql", "SELECT * FROM input WHERE s <> 'z'")
    done = cli("audit", *options, *rows, "-p", 0.95, "--report", tmp_path / "j.html")
    assert done.code == 1 and (tmp_path / "j.html").exists()
    names = ["a.html", "i.html", "j.html", "r", "t.parquet"]
    assert sorted(f.name for f in tmp_path.iterdir()) == names


@pytest.mark.parametrize("folder", ["nowhere", "file"])
def test_report_on_what_is_no_release_exits_2(cli, tmp_path, folder):
    (tmp_path / "file").mkdir()
    done = cli("report", tmp_path / folder, "-o", tmp_path / "a.html")
    assert done.code == 2 and "Traceback" not in done.err
    assert not (tmp_path / "a.html").exists()


# A real browser.


@pytest.mark.parametrize("kind", ["internal", "analyst"])
def test_a_browser_draws_every_chart_and_runs_no_script_of_a_value(browser, pages, nasty, kind):
    """And a page is no wider than a phone."""
    shown = browser.new_page(viewport={"width": 390, "height": 800})
    for folder in (nasty, pages):
        shown.goto(f"file://{folder / kind}.html")
        shown.wait_for_selector("html[data-drawn]")
        assert shown.evaluate("Object.keys(document.documentElement.dataset)") == ["drawn"]
        assert shown.locator("img").count() == 0 and shown.locator("script").count() == 3
    assert shown.locator("html").get_attribute("data-drawn") == str(CHARTS[kind])
    assert shown.locator("svg.marks").count() == CHARTS[kind]
    assert shown.evaluate("document.documentElement.scrollWidth") <= 390
    shown.close()


def test_every_printed_page_of_the_internal_report_is_stamped(browser, pages, tmp_path):
    if shutil.which("pdftotext") is None:
        reason = "pdftotext (poppler-utils) is not installed"
        pytest.fail(reason) if os.environ.get("CI") == "true" else pytest.skip(reason)
    shown, pdf = browser.new_page(), tmp_path / "x.pdf"
    shown.goto(f"file://{pages / 'internal.html'}")
    shown.wait_for_selector("html[data-drawn]")
    shown.pdf(path=pdf, prefer_css_page_size=True)
    shown.close()
    text = subprocess.run(["pdftotext", pdf, "-"], capture_output=True, check=True).stdout.decode()
    sheets = text.split("\f")[:-1]
    assert len(sheets) >= 3
    assert all(page.STAMP in sheet for sheet in sheets)

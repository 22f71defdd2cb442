"""Every chart of the package uses one palette, and never relies on colour alone."""

import ast
import csv
import re
import subprocess
import sys

import pytest

from lab import attack_pictures
from lab.attacks import POLICY
from reconpriv.errors import InputError
from reconpriv.reports import charts as report_charts
from reconpriv.research.results import read_result
from reconpriv.research.run import EXPERIMENTS, NAMES
from reconpriv.show.charts import drawing as charts
from reconpriv.show.charts import palette
from repository import ROOT

ALLOWED = {colour.lower() for colour in palette.COLOURS} | {"none", "transparent", "white"}
SHAPES = [
    {"size": 3 * i, "limit": 20.0 + i, "groups": i, "series": name}
    for i, name in enumerate([report_charts.PRIVATE, report_charts.NOT_PRIVATE] * 3, start=1)
]
TAILS = [
    {"group": "g", "size": 10 * i, "series": name, "probability": 0.1 / i}
    for i in (1, 2)
    for name in ("bound", "exact tail")
]
BANDS = [
    {"answer": 10.0**i, "range": "r", "low": 0.1, "median": 0.2, "high": 0.3, "queries": 9}
    for i in (1, 2)
]
TRIALS = [{"class": "1", "kind": kind, "count": 5} for kind in ("records", "trials")]
SHARES = [{"value": "v", "share": 0.5, "low": 0.4, "high": 0.6, "count": 5.0, "low_count": 4.0,
           "high_count": 6.0}]  # fmt: skip


def painted(svg):
    return {colour.lower() for colour in re.findall(r'(?:fill|stroke)="([^"]+)"', svg)}


def reports():
    yield report_charts.sizes_chart(SHAPES, "sizes")
    yield report_charts.tails_chart(TAILS, 0.3, ("bound", "exact tail"), "tails")
    yield report_charts.trials_chart(TRIALS, ["1"], "trials")
    yield report_charts.error_chart(BANDS, "errors")
    yield report_charts.distribution_chart(SHARES, "shares")


def test_the_charts_of_reports_use_the_palette_alone(tmp_path):
    for number, spec in enumerate(reports()):
        path = tmp_path / f"{number}.svg"
        charts.save({**spec, "width": 300}, path)
        found = painted(path.read_text(encoding="utf-8"))
        assert found - ALLOWED == set(), spec["description"]
        assert len(found) > 2


@pytest.mark.parametrize("name", NAMES)
def test_the_figures_of_the_study_use_the_palette_alone(name, tmp_path):
    result = read_result(ROOT / "docs" / "experiments" / f"{name}.csv")
    for path in EXPERIMENTS[name].draw(result, tmp_path, "the committed run"):
        if path.suffix == ".svg":
            svg = path.read_text(encoding="utf-8")
            assert painted(svg) - ALLOWED == set()
            assert "clip-path" not in svg  # numbered by vl-convert, so bytes would differ
        assert path.stat().st_size > 10_000


def test_the_same_results_give_the_same_bytes(tmp_path):
    result = read_result(ROOT / "docs" / "experiments" / "distribution.csv")
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    first, second = (
        EXPERIMENTS["distribution"].draw(result, tmp_path / name, "the committed run")
        for name in "ab"
    )
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]


def test_the_pictures_of_attacks_use_the_palette_alone(tmp_path):
    docs = ROOT / "docs" / "attacks"
    attack_pictures.draw_micro(read_result(docs / "micro.csv").rows, 0.5, tmp_path / "a.svg")
    attack_pictures.draw_ratio(POLICY, tmp_path / "b.svg")
    attack_pictures.draw_repeat(read_result(docs / "repeat.csv").rows, tmp_path / "c.svg")
    attack_pictures.draw_side_channels(
        read_result(docs / "side-channels.csv").rows, tmp_path / "d.svg"
    )
    for path in sorted(tmp_path.glob("*.svg")):
        assert painted(path.read_text(encoding="utf-8")) - ALLOWED == set(), path.name


def test_a_chart_in_another_colour_would_be_found(tmp_path):
    """Vega's own blue comes back wherever a mark has no colour."""
    alt = charts.altair()
    chart = alt.Chart(charts.rows([{"x": 1}])).mark_point().encode(x="x:Q")
    charts.save(charts.figure([charts.panel(chart, 50, 50)]), tmp_path / "x.svg")
    assert painted((tmp_path / "x.svg").read_text(encoding="utf-8")) - ALLOWED == {"#4c78a8"}


def test_series_differ_in_more_than_their_colour():
    looks = [palette.FIRST, palette.SECOND, palette.THIRD, palette.PLAIN]
    assert len({look.shape for look in looks}) == len({look.colour for look in looks}) == 4
    lines = [palette.FIRST, palette.SECOND, palette.THIRD, palette.REFERENCE]
    assert len({look.dash for look in lines}) == 4
    assert palette.SAFE.shape != palette.EXPOSED.shape != palette.BOUND.shape


def test_no_other_module_names_a_colour_for_a_chart():
    """What the style sheets of pages say is for words and frames."""
    source = ROOT / "src" / "reconpriv"
    for file in (
        *source.glob("research/*.py"), *ROOT.glob("lab/*.py"), *source.glob("reports/charts.py"),
        *source.glob("studio/**/*.py"), source / "show" / "charts" / "drawing.py",
        source / "show" / "html.py",
        ROOT / "benchmarks" / "learning_comparison.py",
    ):  # fmt: skip
        texts = [
            node.value
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
            if isinstance(node, ast.Constant) and isinstance(node.value, str)
        ]
        assert not [text for text in texts if re.fullmatch(r"#[0-9a-fA-F]{6}", text)], file


def test_the_studio_draws_in_the_same_colours():
    from reconpriv.studio.pieces.risk_utility import legend

    assert painted(str(legend())) == {palette.GREEN.lower(), "currentcolor", "none"}


def test_what_is_missing_is_named_with_the_extra_that_brings_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "altair", None)
    with pytest.raises(InputError, match="altair and vl-convert-python") as caught:
        charts.altair("experiments")
    assert "experiments" in (caught.value.hint or "")


def test_altair_is_imported_only_where_something_is_drawn():
    code = (
        "import sys, reconpriv.cli, reconpriv.research.run, lab.attack_pictures,"
        " reconpriv.reports.internal, reconpriv.reports.analyst, reconpriv.show.html\n"
        "print([name for name in ('altair', 'vl_convert', 'matplotlib') if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert done.stdout.strip() == "[]"


def test_the_learning_comparison_is_drawn_from_its_table(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import learning_comparison

    with (ROOT / "docs" / "learning" / "comparison.csv").open(encoding="utf-8") as stream:
        learning_comparison.draw(list(csv.DictReader(stream)), tmp_path / "x.svg")
    svg = (tmp_path / "x.svg").read_text(encoding="utf-8")
    assert painted(svg) - ALLOWED == set()
    assert "corrected" in svg and "naive" in svg

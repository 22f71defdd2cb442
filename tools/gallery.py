"""Draw the charts of docs/gallery.md, from one release of the bundled table.

The charts of answers are those that `plot()` and `--chart` draw; those of the reports are taken
from the reports themselves.
"""

from __future__ import annotations

import json
import re
import tempfile
import warnings
from pathlib import Path

import reconpriv as rp
from reconpriv.show.charts import drawing, palette
from reconpriv.show.charts.chart import Chart

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "gallery"
PUBLIC = ["age", "sex", "race"]
WIDTH = 640
# Fonts differ: a reader's may be wider than the one that was measured here.
PADDING = {"left": 44, "right": 64, "top": 8, "bottom": 8}
_SPECS = re.compile(r'<script id="charts" type="application/json">(.*?)</script>', re.DOTALL)


def answers(release: rp.Release) -> dict[str, drawing.Spec]:
    """Charts of answers, by file name."""
    by_age = (
        "SELECT age // 10 * 10 AS decade, share(occupation = 'Exec-managerial') AS managers"
        " FROM release WHERE age < 80 GROUP BY decade ORDER BY decade"
    )
    charts: dict[str, Chart] = {
        "values": release.frequencies("age BETWEEN 30 AND 39", sex="Female").plot(),
        "by-age": release.sql(by_age).plot(),
        "two-columns": release.crosstab(["occupation", "sex"], shares="row", widest="10%").plot(),
        "comparison": release.compare(
            "sex = 'Female'", "sex = 'Male'", occupation="Exec-managerial"
        ).plot(),
        "regression": release.logistic("Exec-managerial", ["sex", "age"]).plot(),
    }
    return {f"answer-{name}": chart.printed for name, chart in charts.items()}


def report_charts(report: Path) -> dict[str, drawing.Spec]:
    """The charts of a report, by file name, in black on white and of a fixed width."""
    found = _SPECS.search(report.read_text(encoding="utf-8"))
    if found is None:
        raise SystemExit(f"{report.name} has no charts.")
    specs: dict[str, drawing.Spec] = json.loads(
        found[1].replace(f'"{palette.INK}"', f'"{palette.BLACK}"')
    )
    for spec in specs.values():
        spec["width"] = WIDTH
        spec["config"]["background"] = palette.WHITE
    kind = report.stem
    return {f"{kind}-{name.removeprefix('chart-')}": spec for name, spec in specs.items()}


def main() -> None:
    """Publish, answer, report and draw."""
    warnings.simplefilter("ignore", rp.ReconprivWarning)
    FOLDER.mkdir(exist_ok=True)
    with (
        tempfile.TemporaryDirectory() as name,
        rp.read("example:adult", sensitive="occupation", public=PUBLIC, missing="value") as table,
    ):
        folder = Path(name)
        release = table.publish(out=folder / "release", key=rp.Key.test())
        table.report(rp.preset("recommended"), folder / "internal.html", release=release)
        release.report(folder / "public.html")
        specs = answers(release)
        for report in ("public", "internal"):
            specs |= report_charts(folder / f"{report}.html")
    for file, spec in specs.items():
        spec["config"]["padding"] = PADDING
        drawing.save(spec, FOLDER / f"{file}.svg")


if __name__ == "__main__":
    main()

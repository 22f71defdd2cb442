"""Draw docs/figures/margins.svg, the README's figure, from the rows of the study."""

from __future__ import annotations

from pathlib import Path

from reconpriv.research.results import read_result
from reconpriv.show.charts import drawing as charts
from reconpriv.show.charts import palette
from reconpriv.show.charts.drawing import LegendEntry

DOCS = Path(__file__).resolve().parents[1] / "docs"
LOOKS = {"records alone": palette.SECOND, "records and margins": palette.FIRST}
SERIES = dict(zip(("none", "published"), LOOKS, strict=True))
NAMES = {"EDU": "Census: education is sensitive", "OCC": "Census: occupation is sensitive"}


def draw(target: Path) -> None:
    """A panel per table: the analysts' error against the adversary's success."""
    alt = charts.altair("experiments")
    result = read_result(DOCS / "experiments" / "margins.csv")
    panels = []
    for base, title in NAMES.items():
        rows = [
            {"x": row["adversary"], "y": row["error"], "series": SERIES[row["margins"]],
             "name": row["method"]}
            for row in result.select(base=base, retention=0.5)
            if row["margins"] in SERIES
        ]  # fmt: skip
        x = alt.X("x:Q", title="exposed groups an adversary gets right",
                  scale=alt.Scale(domain=[0.6, 1.06], nice=False),
                  axis=charts.percent_axis(values=[0.6, 0.7, 0.8, 0.9, 1.0]))  # fmt: skip
        y = alt.Y("y:Q", title="analysts' mean error", axis=charts.percent_axis(),
                  scale=alt.Scale(domain=[0, 0.14]))  # fmt: skip
        words = alt.Chart(charts.rows(rows)).mark_text(align="left", dx=6, dy=-7)
        layers = alt.layer(charts.lines(rows, LOOKS, x, y), words.encode(x=x, y=y, text="name:N"))
        panels.append(charts.panel(layers, 320, 170, title))
    figure = charts.figure(
        panels, entries=[LegendEntry(name, look) for name, look in LOOKS.items()]
    )
    charts.save(figure, target)


if __name__ == "__main__":
    draw(DOCS / "figures" / "margins.svg")

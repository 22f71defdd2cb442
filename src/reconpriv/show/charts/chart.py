"""The chart of a result: shown by a notebook, or written to a file that needs no network."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from reconpriv.errors import OutputError
from reconpriv.messages.arguments import checked
from reconpriv.messages.phrases import listed
from reconpriv.show import markup
from reconpriv.show.charts import drawing as charts
from reconpriv.show.charts import palette
from reconpriv.show.charts.answer_chart import answer_chart
from reconpriv.show.charts.drawing import Spec
from reconpriv.show.markup import Html, tag
from reconpriv.writing.file import check_file, whole_file

_DRAW = """
vegaEmbed("#chart", JSON.parse(document.getElementById("spec").textContent), {
  renderer: "svg", actions: false, tooltip: { theme: "custom" },
}).then(
  () => { document.documentElement.dataset.drawn = "1"; },
  (problem) => { document.documentElement.dataset.problem = String(problem); }
);
"""


@dataclass(frozen=True, repr=False)
class Chart:
    """Estimates with their intervals, drawn.

    ``spec`` is the Vega-Lite specification, with text and lines in the colour of the page;
    ``printed`` is the same in black on white.
    """

    spec: Spec
    printed: Spec
    table: str

    @classmethod
    def of(cls, result: Any, *, most: int, order: str) -> Chart:
        """The chart of a result, and its table for readers who want the numbers."""
        spec, printed = (
            answer_chart(result, most=most, order=order, ink=ink)
            for ink in (palette.INK, palette.BLACK)
        )
        printed["config"]["background"] = palette.WHITE
        return cls(spec, printed, result._repr_html_())

    def __repr__(self) -> str:
        return f"<chart: {' '.join(self.spec['title']['text'])}>"

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        # Inline, so that the drawing has the colours of the notebook and needs nothing else.
        return {"text/html": tag("div", Html(charts.drawn(self.spec))), "text/plain": repr(self)}

    @checked
    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the chart as .html, .svg, .png or .json (Vega-Lite), whole or not at all.

        The HTML file is self-contained, has tooltips, and follows the reader's light or dark mode.
        The other files are black on white.
        """
        file = Path(path)
        check_chart(file, overwrite=overwrite)
        written = _WRITERS[file.suffix.lower()](self)
        with whole_file(file, overwrite=overwrite) as work:
            work.write_bytes(written)

    def _html(self) -> bytes:
        data = json.dumps(self.spec, ensure_ascii=False, allow_nan=False)
        page = markup.document(
            " ".join(self.spec["title"]["text"]),
            tag("div", id="chart"),
            tag("details", tag("summary", "As a table"), Html(self.table)),
            tag("script", Html(markup.script_safe(data)), id="spec", type="application/json"),
            tag("script", Html(charts.browser_scripts())),
            tag("script", Html(_DRAW)),
            style=files("reconpriv.show").joinpath("chart.css").read_text(encoding="utf-8"),
            meta=[tag("meta", http_equiv="Content-Security-Policy", content=markup.NO_NETWORK)],
        )
        return page.encode()

    def _svg(self) -> bytes:
        return f"{charts.drawn(self.printed)}\n".encode()

    def _png(self) -> bytes:
        return charts.pixels(charts.drawn(self.printed))

    def _json(self) -> bytes:
        text = json.dumps(self.printed, indent=2, ensure_ascii=False, allow_nan=False)
        return f"{text}\n".encode()


_WRITERS: dict[str, Callable[[Chart], bytes]] = {
    ".html": Chart._html,
    ".svg": Chart._svg,
    ".png": Chart._png,
    ".json": Chart._json,
}


def check_chart(path: Path, *, overwrite: bool = False) -> None:
    """Refuse a chart that cannot be drawn or written, before any work is done."""
    if path.suffix.lower() not in _WRITERS:
        got = f"got {path.suffix!r}" if path.suffix else f"{path.name!r} has no ending"
        raise OutputError(f"A chart is a file ending in {listed(list(_WRITERS), 'or')}; {got}.")
    check_file(path, overwrite=overwrite)
    charts.altair()

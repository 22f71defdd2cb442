"""The risk-utility picture: the chart of the reports, with marks on top that follow a slider.

The chart is drawn once for a sweep, which takes a tenth of a second; a mark is only placed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from htmltools import HTML, Tag, tags

from reconpriv.messages.numbers import brief_percent
from reconpriv.reports.charts import ALONE, WITH_MARGINS, frontier_chart
from reconpriv.reports.risk_sections import frontier_rows
from reconpriv.show.charts import drawing, palette
from reconpriv.tuning.reach import within
from reconpriv.tuning.recommend import by_margins, frontier
from reconpriv.tuning.report import Setting, TuneReport

_LEFT, _RIGHT, _TOP, _BOTTOM = 68, 14, 38, 48
_ROOM = 1.15  # beside the outermost marks

Span = tuple[float, float]


@dataclass(frozen=True)
class Canvas:
    """Where a chart is drawn; the page shows the one that fits its window (studio.css)."""

    look: str
    width: int
    height: int

    @property
    def view(self) -> str:
        """All of it, with its axes."""
        return f"0 0 {_LEFT + self.width + _RIGHT} {_TOP + self.height + _BOTTOM}"


# On a phone, a wide one would have to scroll, or its words would be too small to read.
_CANVASES = (Canvas("roomy", 560, 250), Canvas("slim", 236, 250))


@dataclass(frozen=True)
class RiskUtility:
    """The best settings of a sweep by the analysts' error and the adversary's, as SVG."""

    svgs: tuple[str, ...]
    x: Span
    y: Span

    @classmethod
    def of(cls, report: TuneReport) -> RiskUtility | None:
        """The settings that no other beats, with and without margins; None if there is none.

        None of them lets a record reveal more than a recommendation may.
        """
        limit = math.inf if report.posterior_allowed is None else report.posterior_allowed
        allowed = within(report.settings, limit)
        series = dict(zip((ALONE, WITH_MARGINS), map(frontier, by_margins(allowed)), strict=True))
        rows = frontier_rows(series)
        if not rows:
            return None
        x, y = (_span([row[name] for row in rows]) for name in ("error", "group_error"))
        words = f"{len(rows)} settings by the analysts’ and the adversary’s expected error"
        spec = frontier_chart(rows, words)
        for layer in spec["layer"]:
            for axis, span in (("x", x), ("y", y)):
                layer["encoding"][axis]["scale"]["domain"] = list(span)
        spec |= {
            "autosize": "none",
            "padding": {"left": _LEFT, "right": _RIGHT, "top": _TOP, "bottom": _BOTTOM},
        }
        sizes = ({"width": one.width, "height": one.height} for one in _CANVASES)
        return cls(tuple(drawing.drawn(spec | size) for size in sizes), x, y)

    def picture(self) -> Tag:
        """The chart as it was drawn."""
        drawn = zip(self.svgs, _CANVASES, strict=True)
        return tags.div(*(tags.div(HTML(svg), class_=one.look) for svg, one in drawn),
                        class_="chart")  # fmt: skip

    def marks(self, current: Setting, suggested: Setting | None) -> Tag:
        """The current setting and the suggested one, for a layer of their own."""
        words = (
            f"Your setting: analysts {brief_percent(current.error)}, adversary"
            f" {brief_percent(current.group_error)}."
        )

        def drawn(on: Canvas) -> Tag:
            marks = [_ring(*self._place(current, on), 8)]
            if suggested is not None:
                marks.append(_diamond(*self._place(suggested, on)))
            return Tag("svg", *marks, {"aria-label": words}, viewBox=on.view, role="img",
                       class_=on.look)  # fmt: skip

        return tags.div(*map(drawn, _CANVASES), class_="marks")

    def _place(self, setting: Setting, on: Canvas) -> tuple[float, float]:
        x, y = _along(setting.error, self.x), _along(setting.group_error, self.y)
        return _LEFT + x * on.width, _TOP + (1 - y) * on.height


def _span(values: list[float]) -> Span:
    return min(values) / _ROOM, max(values) * _ROOM


def _along(value: float, span: Span) -> float:
    """Where a value lies on a logarithmic scale, from 0 to 1."""
    low, high = span
    return math.log(min(max(value, low), high) / low) / math.log(high / low)


def _ring(x: float, y: float, radius: float) -> Tag:
    return Tag("circle", cx=f"{x:.1f}", cy=f"{y:.1f}", r=f"{radius}", fill="none",
               stroke=palette.INK, stroke_width="3.5")  # fmt: skip


def _diamond(x: float, y: float, size: float = 9) -> Tag:
    points = f"{x:.1f},{y - size:.1f} {x + size:.1f},{y:.1f} {x:.1f},{y + size:.1f}"
    points += f" {x - size:.1f},{y:.1f}"
    return Tag("polygon", points=points, fill=palette.GREEN, class_="suggested")


def legend() -> Tag:
    """What the marks on top of the chart mean; the chart explains its own."""
    marks = ((_ring(8, 8, 5.5), "yours"), (_diamond(8, 8, 7), "suggested"))
    return tags.ul(
        *(
            tags.li(Tag("svg", mark, {"aria-hidden": "true"}, viewBox="0 0 16 16", class_="key"), w)
            for mark, w in marks
        ),
        class_="legend",
    )

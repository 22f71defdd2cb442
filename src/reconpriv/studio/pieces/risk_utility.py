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

_WIDTH, _HEIGHT = 560, 250
_LEFT, _RIGHT, _TOP, _BOTTOM = 68, 14, 38, 48
_VIEW = f"0 0 {_LEFT + _WIDTH + _RIGHT} {_TOP + _HEIGHT + _BOTTOM}"
_ROOM = 1.15  # beside the outermost marks

Span = tuple[float, float]


@dataclass(frozen=True)
class RiskUtility:
    """The best settings of a sweep by the analysts' error and the adversary's, as SVG."""

    svg: str
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
            "width": _WIDTH,
            "height": _HEIGHT,
            "autosize": "none",
            "padding": {"left": _LEFT, "right": _RIGHT, "top": _TOP, "bottom": _BOTTOM},
        }
        return cls(drawing.drawn(spec), x, y)

    def picture(self) -> Tag:
        """The chart as it was drawn."""
        return tags.div(HTML(self.svg), class_="chart")

    def marks(self, current: Setting, suggested: Setting | None) -> Tag:
        """The current setting and the suggested one, for a layer of their own."""
        words = (
            f"Your setting: analysts {brief_percent(current.error)}, adversary"
            f" {brief_percent(current.group_error)}."
        )
        drawn = [_ring(*self._place(current), 8)]
        if suggested is not None:
            drawn.append(_diamond(*self._place(suggested)))
        return Tag("svg", *drawn, {"aria-label": words}, viewBox=_VIEW, role="img")

    def _place(self, setting: Setting) -> tuple[float, float]:
        x, y = _along(setting.error, self.x), _along(setting.group_error, self.y)
        return _LEFT + x * _WIDTH, _TOP + (1 - y) * _HEIGHT


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

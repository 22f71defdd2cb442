"""Pictures as plain SVG: redrawn at every move of a slider, without scripts.

Colours and numbers match every other chart; the frame follows the page.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from htmltools import Tag, TagChild, tags

from reconpriv.messages.numbers import brief_percent, count
from reconpriv.show import palette
from reconpriv.tuning.report import Setting

Shown = Callable[[float], str]

Dot = tuple[str, int, float]
"""The colour of a dot, its width and its opacity."""
_SETTING: Dot = (palette.GREY, 5, 0.8)
_EFFICIENT: Dot = (palette.BLUE, 7, 1.0)
_MARGINS_COLOUR = palette.VERMILION

WIDTH, HEIGHT = 640, 320
_LEFT, _RIGHT, _TOP, _BOTTOM = 72, 16, 16, 56


@dataclass(frozen=True)
class Axis:
    """A linear or logarithmic scale from values to pixels."""

    low: float
    high: float
    begin: float
    end: float
    log: bool = False

    def __call__(self, value: float) -> float:
        """The pixel of a value, kept inside the picture."""
        low, high, at = self.low, self.high, min(max(value, self.low), self.high)
        if self.log:
            low, high, at = math.log(low), math.log(high), math.log(at)
        return self.begin + (at - low) / (high - low) * (self.end - self.begin)

    def ticks(self) -> list[float]:
        """Round numbers: 1, 2 and 5 of every decade, or about five evenly spaced ones."""
        if self.log:
            decades = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
            marks = [m * 10.0**d for d in decades for m in (1, 2, 5)]
        else:
            raw = (self.high - self.low) / 5
            power = 10.0 ** math.floor(math.log10(raw))
            step = next(m * power for m in (1, 2, 5, 10) if m * power >= raw)
            first = math.ceil(self.low / step - 1e-9)
            marks = [i * step for i in range(first, math.floor(self.high / step + 1e-9) + 1)]
        return [mark for mark in marks if self.low <= mark <= self.high]


@dataclass(frozen=True)
class RiskUtility:
    """The settings of a sweep by the analysts' error and the adversary's, on two log scales."""

    shown: tuple[Setting, ...]
    x: Axis
    y: Axis

    @classmethod
    def of(cls, settings: Sequence[Setting]) -> RiskUtility | None:
        """None if no setting can be published."""
        shown = tuple(s for s in settings if s.eligible and s.error > 0 and s.exposes)
        if not shown:
            return None
        x = Axis(*_padded([s.error for s in shown]), _LEFT, WIDTH - _RIGHT, log=True)
        y = Axis(*_padded([s.group_error for s in shown]), HEIGHT - _BOTTOM, _TOP, log=True)
        return cls(shown, x, y)

    def picture(self) -> Tag:
        """Every setting as a dot."""
        x, y = self.x, self.y
        front = [s for s in self.shown if s.efficient and s.margins is None]
        more = [s for s in self.shown if s.efficient and s.margins is not None]
        parts: list[TagChild] = [
            *_frame(x, y, "Analysts’ expected error of a count →", "Adversary’s error →"),
            self._dots([s for s in self.shown if s.margins is None], _SETTING),
            self._dots(front, _EFFICIENT),
            *([_triangles(self._places(more))] if more else []),
        ]
        return _svg(
            parts,
            f"{len(self.shown)} settings by the analysts’ and the adversary’s expected error,"
            f" {len(front) + len(more)} of them efficient"
            + (f", {len(more)} of these with margins." if more else "."),
        )

    def _places(self, settings: Sequence[Setting]) -> list[tuple[float, float]]:
        return [(self.x(s.error), self.y(s.group_error)) for s in settings]

    def _dots(self, settings: Sequence[Setting], dot: Dot) -> Tag:
        return _dots(self._places(settings), dot)

    def marker(self, current: Setting, suggested: Setting | None) -> Tag:
        """The current setting and the suggested one, in a separate layer: the dots stay."""
        words = (
            f"Your setting: analysts {brief_percent(current.error)}, adversary"
            f" {brief_percent(current.group_error)}."
        )
        at = self.x(current.error), self.y(current.group_error)
        marks = [_ring(*at, 8)]
        if suggested is not None:
            marks.append(_diamond(self.x(suggested.error), self.y(suggested.group_error)))
        return _svg(marks, words)


def group_sizes(sizes: Sequence[tuple[int, int, int, int]]) -> Tag:
    """Records by the size of their group."""
    top = max(records for *_, records in sizes)
    y = Axis(0, top * 1.08, HEIGHT - _BOTTOM, _TOP)
    room = (WIDTH - _LEFT - _RIGHT) / len(sizes)
    bars: list[TagChild] = []
    for i, (low, high, groups, records) in enumerate(sizes):
        left = _LEFT + i * room
        span = f"{low:,}" if low == high else f"{low:,}–{high:,}"
        title = f"{span}: {groups:,} groups, {records:,} records"
        bars += [
            Tag("rect", Tag("title", title), x=f"{left + room * 0.1:.1f}", y=f"{y(records):.1f}",
                width=f"{room * 0.8:.1f}", height=f"{y(0) - y(records):.1f}", rx="2",
                fill=palette.BLUE),
            _text(left + room / 2, HEIGHT - _BOTTOM + 20, f"{low:,}", "middle", i % 2),
        ]  # fmt: skip
    frame = _grid(None, y, None, count)
    label = "Records by the size of their group: " + "; ".join(
        f"{low:,} to {high:,}: {records:,}" for low, high, _, records in sizes
    )
    axis = _text((_LEFT + WIDTH - _RIGHT) / 2, HEIGHT - 7, "Records in the group (from)", "middle")
    return _svg([*frame, *bars, axis], label)


def _svg(parts: Sequence[TagChild], label: str) -> Tag:
    return Tag(
        "svg", *parts, {"aria-label": label}, viewBox=f"0 0 {WIDTH} {HEIGHT}", role="img",
        class_="chart",
    )  # fmt: skip


def _padded(values: Sequence[float]) -> tuple[float, float]:
    positive = [value for value in values if value > 0] or [1.0]
    return min(positive) / 1.15, max(positive) * 1.15


def _frame(x: Axis, y: Axis, x_title: str, y_title: str) -> list[TagChild]:
    middle = (_LEFT + WIDTH - _RIGHT) / 2
    return [
        *_grid(x, y, brief_percent, brief_percent),
        _text(middle, HEIGHT - 7, x_title, "middle"),
        Tag(
            "text", y_title, {"text-anchor": "middle"}, x="14", y=f"{HEIGHT / 2 - 16}",
            class_="label spare", transform=f"rotate(-90 14 {HEIGHT / 2 - 16})",
        ),
    ]  # fmt: skip


def _grid(x: Axis | None, y: Axis, show_x: Shown | None, show_y: Shown) -> list[TagChild]:
    lines: list[TagChild] = []
    for tick in y.ticks():
        at = y(tick)
        lines += [
            _line(_LEFT, at, WIDTH - _RIGHT, at),
            _text(_LEFT - 8, at + 4, show_y(tick), "end"),
        ]
    for tick in x.ticks() if x is not None and show_x is not None else []:
        assert x is not None and show_x is not None
        at = x(tick)
        lines += [
            _line(at, _TOP, at, HEIGHT - _BOTTOM),
            _text(at, HEIGHT - _BOTTOM + 20, show_x(tick), "middle"),
        ]
    return lines


def _line(x1: float, y1: float, x2: float, y2: float) -> Tag:
    return Tag(
        "line", x1=f"{x1:.1f}", y1=f"{y1:.1f}", x2=f"{x2:.1f}", y2=f"{y2:.1f}", class_="rule"
    )


def _text(x: float, y: float, words: str, anchor: str, spare: int = 0) -> Tag:
    """A label; a ``spare`` one is left out if there is little room."""
    kind = "label spare" if spare else "label"
    return Tag("text", words, {"text-anchor": anchor}, x=f"{x:.1f}", y=f"{y:.1f}", class_=kind)


def _dots(places: Sequence[tuple[float, float]], dot: Dot) -> Tag:
    """Round-ended strokes of zero length: one element, however many dots there are."""
    colour, width, opacity = dot
    path = "".join(f"M{x:.1f} {y:.1f}h0" for x, y in places)
    return Tag(
        "path", d=path, stroke=colour, stroke_width=width, stroke_opacity=opacity, class_="dots"
    )


def _triangles(places: Sequence[tuple[float, float]]) -> Tag:
    """Settings with margins: another shape as well as another colour."""
    path = "".join(f"M{x:.1f} {y - 5:.1f}l4.5 8h-9z" for x, y in places)
    return Tag("path", d=path, fill=_MARGINS_COLOUR)


def _ring(x: float, y: float, radius: float) -> Tag:
    return Tag(
        "circle", cx=f"{x:.1f}", cy=f"{y:.1f}", r=f"{radius}", fill="none", stroke=palette.INK,
        stroke_width="3.5",
    )  # fmt: skip


def _diamond(x: float, y: float, size: float = 9) -> Tag:
    points = f"{x},{y - size} {x + size},{y} {x},{y + size} {x - size},{y}"
    return Tag("polygon", points=points, fill=palette.GREEN, class_="suggested")


def legend() -> Tag:
    """What the marks of the risk-utility picture mean, drawn as they are there."""
    marks = (
        (_dots([(8, 8)], _SETTING), "a setting"),
        (_dots([(8, 8)], _EFFICIENT), "efficient: no other setting is better all round"),
        (_triangles([(8, 8)]), "efficient with margins"),
        (_ring(8, 8, 5.5), "yours"),
        (_diamond(8, 8, 7), "suggested"),
    )
    return tags.ul(
        *(
            tags.li(Tag("svg", mark, {"aria-hidden": "true"}, viewBox="0 0 16 16", class_="key"), w)
            for mark, w in marks
        ),
        class_="legend",
    )

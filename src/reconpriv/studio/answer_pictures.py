"""The picture of an answer: intervals with their estimates, and the truth as a mark.

Rows are HTML and places are percentages, so labels wrap and the marks keep their shape at any
width. The page may not run scripts of charts, so this draws the marks itself.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from htmltools import Tag, TagChild, tags

from reconpriv.messages.numbers import brief_percent, count
from reconpriv.queries.beside_truth import Line
from reconpriv.queries.questions import COUNT, SHARE
from reconpriv.show import palette
from reconpriv.studio.charts import Axis

_ROW = 26  # pixels
_MARGIN = 0.06
_LETTERS, _PHONE_LETTERS = 70, 22  # of all names on a scale
# A scale starts at 0 unless this share of it would be empty.
_EMPTY = 0.5
_NO_DIFFERENCE = {"points": 0.0, "difference": 0.0}
_AXES = {
    COUNT: "records",
    SHARE: "share of records",
    "points": "difference of the shares, in percentage points",
    "difference": "difference of the counts",
}


@dataclass(frozen=True)
class Panel:
    """Lines on one scale."""

    lines: tuple[Line, ...]
    kind: str
    axis: Axis


def panels(lines: Sequence[Line]) -> list[Panel]:
    """The lines that can be drawn, by what their numbers are; a ratio has no scale beside them."""
    kinds = dict.fromkeys(line.kind for line in lines if line.kind != "ratio")
    found = []
    for kind in kinds:
        drawn = tuple(line for line in lines if line.kind == kind and _numbers(line))
        if drawn:
            found.append(Panel(drawn, kind, _axis(drawn, kind)))
    return found


def picture(lines: Sequence[Line], title: str) -> Tag | None:
    """The picture, or None if there is no number to draw."""
    found = panels(lines)
    if not found:
        return None
    return tags.div(
        *(_drawn(panel, title, alone=len(lines) == 1) for panel in found),
        legend(found),
        class_="answer-picture",
    )


def _numbers(line: Line) -> list[float]:
    """The numbers of a line that a scale has to hold; none if an end is open."""
    if line.low is None or line.high is None:
        return []
    return [end for end in (line.low, line.high, line.value, line.truth) if end is not None]


def _axis(lines: Sequence[Line], kind: str) -> Axis:
    every = [number for line in lines for number in _numbers(line)]
    low, high = min(every), max(every)
    if lines[0].steps is not None:
        return Axis(low - 0.5, high + 0.5, 0.0, 100.0)
    if kind in _NO_DIFFERENCE:
        low, high = min(low, 0.0), max(high, 0.0)
    elif 0 <= low < _EMPTY * high:
        low = 0.0
    room = _MARGIN * ((high - low) or abs(high) or 1.0)
    begin = 0.0 if low == 0.0 and kind not in _NO_DIFFERENCE else low - room
    return Axis(begin, high + room, 0.0, 100.0)


def _drawn(panel: Panel, title: str, *, alone: bool) -> Tag:
    rows = [
        tags.div(
            None if alone else tags.span(line.label, class_="row-name"),
            _svg(_ROW, [*_rules(panel), *_marks(line, panel.axis)]),
            class_="row",
        )
        for line in panel.lines
    ]
    scale = _svg(20, _scale(panel))
    axis = tags.div(None if alone else tags.span(class_="row-name"), scale, class_="row scale")
    words = _AXES.get(panel.kind)
    named = tags.div(
        None if alone else tags.span(class_="row-name"), tags.span(words), class_="row axis-name"
    )
    return tags.div(
        *rows, axis, named if words else None, {"aria-label": f"Chart of the answer: {title}"},
        role="img", class_="panel alone" if alone else "panel",
    )  # fmt: skip


def _rules(panel: Panel) -> list[Tag]:
    found = [_rule(panel.axis(tick), "rule") for tick in _ticks(panel)]
    if panel.kind in _NO_DIFFERENCE:
        found.append(_rule(panel.axis(_NO_DIFFERENCE[panel.kind]), "reference"))
    return found


def _rule(at: float, kind: str) -> Tag:
    return Tag("line", x1=f"{at:.2f}%", x2=f"{at:.2f}%", y1="0", y2=f"{_ROW}", class_=kind)


def _ticks(panel: Panel) -> list[float]:
    """Round numbers; of classes, as many as have room for their names."""
    steps = panel.lines[0].steps
    if steps is None:
        return panel.axis.ticks()
    places = list(range(math.ceil(panel.axis.low), math.floor(panel.axis.high) + 1))
    apart = _apart([_named(panel, place) for place in places], _LETTERS)
    return [float(place) for place in places[::apart]]


def _apart(names: Sequence[str], letters: int) -> int:
    """Every how many-th of the names has room."""
    apart = 1
    while apart < len(names) and sum(map(len, names[::apart])) > letters:
        apart += 1
    return apart


def _scale(panel: Panel) -> list[Tag]:
    """The ticks with their names; a phone leaves out those that are to spare."""
    ticks = _ticks(panel)
    names = [_named(panel, tick) for tick in ticks]
    apart = _apart(names, _PHONE_LETTERS)
    found = []
    for i, (tick, name) in enumerate(zip(ticks, names, strict=True)):
        at = panel.axis(tick)
        anchor = "start" if at < 5 else "end" if at > 95 else "middle"
        kind = "label spare" if i % apart else "label"
        found.append(
            Tag("text", name, {"text-anchor": anchor}, x=f"{at:.2f}%", y="14", class_=kind)
        )
    return found


def _named(panel: Panel, tick: float) -> str:
    steps = panel.lines[0].steps
    if steps is not None:
        return str(steps.shown[int(tick)])
    tick = 0.0 if abs(tick) < 1e-12 else tick
    return {SHARE: brief_percent, "points": _points}.get(panel.kind, count)(tick)


def _points(value: float) -> str:
    return f"{100 * value:+.3g}" if value else "0"


def _marks(line: Line, axis: Axis) -> list[TagChild]:
    low, high, value, truth = line.low, line.high, line.value, line.truth
    assert low is not None and high is not None
    parts: list[TagChild] = []
    if not line.exact:
        parts.append(_bar(axis(low), axis(high)))
    if truth is not None:
        parts.append(_truth(f"{axis(truth):.2f}%", _ROW / 2))
    if value is not None:
        parts.append(_dot(f"{axis(value):.2f}%", _ROW / 2))
    return parts


def _bar(low: float, high: float) -> Tag:
    middle = f"{_ROW / 2}"
    return Tag(
        "line", x1=f"{low:.2f}%", x2=f"{high:.2f}%", y1=middle, y2=middle, stroke=palette.BLUE,
        class_="interval",
    )  # fmt: skip


def _dot(x: str, y: float) -> Tag:
    return Tag("circle", cx=x, cy=f"{y}", r="4.5", fill=palette.BLUE, class_="estimate")


def _truth(x: str, y: float) -> Tag:
    """A diamond around the dot: another shape as well as another colour."""
    shape = Tag("path", d="M0 -9L8 0L0 9L-8 0Z", fill="none", stroke=palette.VERMILION,
                class_="truth")  # fmt: skip
    return Tag("svg", shape, x=x, y=f"{y}", overflow="visible")


def _svg(height: int, parts: Sequence[TagChild]) -> Tag:
    return Tag("svg", *parts, width="100%", height=f"{height}")


def legend(found: Sequence[Panel]) -> Tag:
    """What the marks mean, drawn as they are there."""
    lines = [line for panel in found for line in panel.lines]
    marks: list[tuple[TagChild, str]] = [(_dot("8", 8), "estimate")]
    if not all(line.exact for line in lines):
        bar = Tag("line", x1="0", x2="16", y1="8", y2="8", stroke=palette.BLUE, class_="interval")
        marks.append((bar, "95 % interval"))
    if any(line.truth is not None for line in lines):
        marks.append((_truth("8", 8), "truth, in the studio only"))
    return tags.ul(
        *(
            tags.li(Tag("svg", mark, {"aria-hidden": "true"}, viewBox="-1 -2 18 20", class_="key"),
                    words)
            for mark, words in marks
        ),
        class_="legend",
    )  # fmt: skip

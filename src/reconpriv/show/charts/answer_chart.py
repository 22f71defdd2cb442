"""The chart of an answer: points with their intervals, as a Vega-Lite specification.

It is a dictionary of plain values. Text and lines have the colour ``ink``, so that a page may use
its own (``currentColor``) in light and dark; a file for print uses black on white.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from reconpriv.errors import InputError
from reconpriv.messages.numbers import PERCENT, TICK
from reconpriv.show.charts import drawing as charts
from reconpriv.show.charts import palette
from reconpriv.show.charts.answer_marks import Drawing, Mark, Scale, drawing_of, in_rows, row_order
from reconpriv.show.charts.drawing import Spec
from reconpriv.show.charts.palette import Look

MOST = 40  # rows that fit on a screen
ORDERS = ("auto", "table", "value")
_LINE = 15
_LABEL_LINES = 3
_LOOKS = (
    palette.FIRST, palette.SECOND, palette.THIRD, Look(palette.ORANGE, "circle"),
    Look(palette.PURPLE, "cross"), Look(palette.SKY, "triangle-down"),
)  # fmt: skip


@dataclass(frozen=True)
class Room:
    """How wide a chart may be: pixels of its scale, letters in a line, and ticks.

    With ``words``, each estimate stands beside its interval.
    """

    width: int = 380
    label: int = 34
    title: int = 76
    subtitle: int = 96
    axis: int | None = None
    ticks: int = 6
    words: bool = True


ROOMY = Room()
# A phone's; a table says what the estimates are.
SLIM = Room(width=160, label=18, title=40, subtitle=44, axis=26, ticks=3, words=False)


def answer_chart(
    answer: Any,
    *,
    most: int = MOST,
    order: str = "auto",
    ink: str = palette.INK,
    truths: Sequence[Any] = (),
    room: Room = ROOMY,
) -> Spec:
    """The Vega-Lite specification of an answer's chart.

    :param answer: an estimate, a figure, a table of them, a comparison or a regression.
    :param most: how many rows are drawn; if there are more, the chart says so.
    :param order: "table" keeps the order of the rows, "value" puts the largest first, "auto" does
        that only with names in alphabetical order, not with numbers and ranges.
    :param ink: the colour of text and lines.
    :param truths: the true value of every row, where somebody has the original table.
    :param room: how wide it may be.
    """
    if order not in ORDERS:
        raise InputError(f"The order of a chart is auto, table or value; got {order!r}.")
    if not isinstance(most, int) or isinstance(most, bool) or most < 1:
        raise InputError(f"A chart has at least one row; got most={most!r}.")
    found = drawing_of(answer, truths)
    notes = list(found.notes)
    series = list(dict.fromkeys(one.series for scale in found.scales for one in scale.marks))
    if not found.sortable and order == "auto":
        order = "table"
    parts = []
    ordered: dict[frozenset[str], list[str]] = {}  # panels with the same rows share their order
    for scale in found.scales:
        names = frozenset(one.label for one in scale.marks)
        rows = ordered.setdefault(names, row_order(scale.marks, order))
        parts.append(
            _panel(scale, in_rows(scale.marks, rows[:most]), found.series, series, ink, room)
        )
    longest = max(map(len, ordered.values()))
    if longest > most:
        notes.append(f"{most:,} of {longest:,} rows are drawn")
    return {
        "$schema": charts.altair().SCHEMA_URL,
        "config": charts.config(ink),
        "title": _title(found, notes, room),
        "description": f"{found.title}. {found.about}".strip(),
        "vconcat": parts,
        "spacing": 26,
        "resolve": {"scale": {"x": "independent", "y": "independent"}},
    }


def _title(found: Drawing, notes: Sequence[str], room: Room) -> Spec:
    marks = [one for scale in found.scales for one in scale.marks]
    level = f"{100 * found.confidence:g} %"
    said = []
    if any(not one.exact for one in marks):
        said.append(f"points are estimates, lines {level} intervals for the original table")
        if len(marks) == 1:
            said = [f"the line is the {level} interval for the original table"]
    if len(marks) > 1 and any(one.exact for one in marks):
        said.append("upright bars are exact")
    if any(one.wide for one in marks):
        said.append(f"hollow with a dashed line: wider than {found.limit}")
    if any(one.truth is not None for one in marks):
        said.append("diamonds are the truth")
    said += notes
    key = "; ".join(said)
    key = key[:1].upper() + key[1:]
    lines = [*_wrapped(found.about, room.subtitle, 3), *_wrapped(key, room.subtitle)]
    return {
        "text": _wrapped(found.title, room.title, 3),
        "subtitle": lines,
        "subtitlePadding": 6,
        "anchor": "start",
    }


def _wrapped(text: str, width: int, lines: int | None = None) -> list[str]:
    return textwrap.wrap(text, width, max_lines=lines, placeholder=" …")


def _panel(
    scale: Scale, marks: Sequence[Mark], column: str, series: Sequence[str], ink: str, room: Room
) -> Spec:
    """One scale: its reference, intervals, points and words."""
    low, high = _span(scale, marks)
    rows, lines = _table(marks, low, high, room.label)
    step = max(lines * _LINE + 7, (len(series) if column else 1) * 16 + 8)
    form = PERCENT if scale.unit == "share" else TICK
    ticks: Spec = {"format": form, "tickCount": room.ticks}
    if scale.unit == "points":
        ticks["labelExpr"] = f"format(100 * datum.value, '{TICK}')"
    span = {"domain": [low, high], "nice": False, "zero": False, "clamp": True}
    place, look = _place(scale.axis, rows, column, series), _look(column, series)

    def at(field: str) -> Spec:
        title = scale.axis if room.axis is None else _wrapped(scale.axis, room.axis)
        kind = {"field": field, "type": "quantitative", "title": title}
        return {**kind, "axis": ticks, "scale": span}

    def layer(test: str, mark: Spec, **encoding: Any) -> Spec:
        return {"transform": [{"filter": test}], "mark": mark, "encoding": {**place, **encoding}}

    layers: list[Spec] = []
    if scale.reference is not None:
        rule = {"type": "rule", "strokeDash": [4, 3], "color": ink, "opacity": 0.65}
        data = {"values": [{"at": scale.reference}]}
        layers.append({"mark": rule, "data": data, "encoding": {"x": at("at")}})
    line = {"type": "rule", "strokeWidth": 2, "opacity": 1}
    point = {"type": "point", "filled": True, "size": 62, "opacity": 1}
    hollow = {"type": "point", "filled": False, "size": 58, "opacity": 1, "strokeWidth": 1.6}
    upright = {"type": "tick", "thickness": 4, "size": 14, "opacity": 1, "orient": "vertical"}
    ends = {"x": at("from"), "x2": {"field": "to"}, "color": look["color"]}
    valued = "isValid(datum.value) &&"
    layers += [
        layer("!datum.exact && !datum.wide", line, **ends),
        layer("datum.wide", {**line, "strokeDash": [3, 3]}, **ends),
        layer(f"{valued} !datum.exact && !datum.wide", point, x=at("value"), **look),
        layer(f"{valued} datum.wide", hollow, x=at("value"), **look),
        layer(f"{valued} datum.exact", upright, x=at("value"), color=look["color"]),
    ]
    if any(one.truth is not None for one in marks):
        diamond = {"type": "point", "filled": False, "size": 150, "opacity": 1, "strokeWidth": 2}
        truth = {**diamond, "shape": "diamond", "color": palette.VERMILION}
        layers.append(layer("isValid(datum.truth)", truth, x=at("truth")))
    for field, side, end in (("below", "left", "from"), ("above", "right", "to")):
        arrow = {"type": "point", "filled": True, "size": 40, "opacity": 1}
        arrow["shape"] = f"triangle-{side}"
        layers.append(layer(f"datum.{field}", arrow, x=at(end), color=look["color"]))
    return {
        "data": {"values": rows},
        "width": room.width,
        "height": {"step": step, "for": "position"},
        "layer": [*layers, *_words(place, ink, room)],
    }


def _words(place: Spec, ink: str, room: Room) -> list[Spec]:
    """The name of every row on the left, and every estimate with its interval on the right."""
    text = {"type": "text", "baseline": "middle", "color": ink}
    # Not labels of the axis, which would hang from their first line.
    middle = {"expr": f"-{_LINE / 2} * (datum.lines - 1)"}
    name = {**text, "align": "right", "lineBreak": "\n", "lineHeight": _LINE, "dy": middle}
    names = {
        "transform": [{"filter": "datum.first"}],
        "mark": name,
        "encoding": {"y": place["y"], "x": {"value": -10}, "text": {"field": "label"}},
    }
    figures = {
        "mark": {**text, "align": "left"},
        "encoding": {**place, "x": {"value": room.width + 14}, "text": {"field": "words"}},
    }
    return [names, figures] if room.words else [names]


def _place(
    axis_title: str, rows: Sequence[dict[str, Any]], column: str, series: Sequence[str]
) -> Spec:
    """The row that a mark is in, and what its tooltip says."""
    axis = {"labels": False, "ticks": False, "domain": False, "grid": bool(column)}
    names = list(dict.fromkeys(row["label"] for row in rows))
    found: Spec = {
        "y": {"field": "label", "type": "nominal", "sort": names, "title": None,
              "axis": {**axis, "tickBand": "extent"}},
        "tooltip": [
            {"field": "name", "type": "nominal", "title": " "},
            {"field": "shown", "type": "nominal", "title": axis_title},
            {"field": "interval", "type": "nominal", "title": "interval"},
        ],
    }  # fmt: skip
    if column:
        apart = {"scale": {"paddingOuter": 0.25}, "sort": list(series)}
        found["yOffset"] = {"field": "series", "type": "nominal", **apart}
    return found


def _look(column: str, series: Sequence[str]) -> Spec:
    """Colour and shape: one for all marks, or one for each series, with a legend."""
    if not column:
        return {"color": {"value": palette.FIRST.colour}, "shape": {"value": "circle"}}
    looks = dict(zip(series, _LOOKS, strict=False))
    legend = {"titleOrient": "left", "columns": 3, "offset": 6}
    shared = {"field": "series", "type": "nominal", "title": column, "legend": legend}
    return {
        name: {
            **shared,
            "scale": {
                "domain": list(looks),
                "range": [getattr(one, part) for one in looks.values()],
            },
        }
        for name, part in (("color", "colour"), ("shape", "shape"))
    }


def _table(
    marks: Sequence[Mark], low: float, high: float, letters: int
) -> tuple[list[dict[str, Any]], int]:
    """The rows of a panel's data, and how many lines the longest label has."""
    rows: list[dict[str, Any]] = []
    lines = 1
    for place, one in enumerate(marks):
        wrapped = textwrap.wrap(
            one.label, letters, max_lines=_LABEL_LINES, placeholder=" …", break_on_hyphens=False
        )
        lines = max(lines, len(wrapped))
        first = place == 0 or marks[place - 1].label != one.label
        words = f"{one.shown}  ({one.interval})" + ("  wide" if one.wide else "")
        rows.append({
            "label": "\n".join(wrapped) or one.label,
            "name": " · ".join(part for part in (one.label, one.series) if part),
            "series": one.series, "value": _finite(one.value), "truth": _finite(one.truth),
            "from": max(one.low, low), "to": min(one.high, high),
            "below": one.low < low, "above": one.high > high,
            "exact": one.exact, "wide": one.wide and not one.exact,
            "lines": max(len(wrapped), 1), "first": first,
            "shown": one.shown, "interval": one.interval, "words": words,
        })  # fmt: skip
    return rows, lines


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _span(scale: Scale, marks: Sequence[Mark]) -> tuple[float, float]:
    """The ends of the axis: every finite value and limit, and 0 or the reference if it counts."""
    ends = [x for one in marks for x in (one.value, one.low, one.high, one.truth)]
    ends += [0.0] if scale.from_zero else []
    ends += [scale.reference]
    finite = [x for x in ends if x is not None and math.isfinite(x)]
    low, high = min(finite, default=0.0), max(finite, default=1.0)
    open_ended = any(math.isinf(x) for one in marks for x in (one.low, one.high))
    room = (high - low) * (0.2 if open_ended else 0.04) or abs(high) * 0.1 or 1.0
    starts_at_zero = low == 0 and scale.reference is None
    return (low if starts_at_zero else low - room), high + room

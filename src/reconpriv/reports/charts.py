"""The charts of the reports: drawn by the browser, with tooltips, in the colours of the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from reconpriv.messages.numbers import COUNT, PERCENT, TICK
from reconpriv.show.charts import drawing as charts
from reconpriv.show.charts import palette
from reconpriv.show.charts.drawing import Row, Spec
from reconpriv.show.charts.palette import INK, Look

PRIVATE, NOT_PRIVATE = "private", "not private"
ALONE, WITH_MARGINS, YOURS = "records alone", "with margins", "this policy"
_BLUE = palette.SAFE.colour


def _finished(chart: Any, description: str, height: int = 320) -> Spec:
    sized = chart.properties(
        width="container",
        height=height,
        description=description,
        autosize={"type": "fit-x", "contains": "padding"},
    )
    return {**charts.as_spec(sized), "config": charts.config(INK)}


def _tooltips(**shown: tuple[str, str]) -> list[Any]:
    """What a mark's tooltip shows: the title and format of each field."""
    alt = charts.altair()
    return [
        alt.Tooltip(f"{field}:{'Q' if form else 'N'}", title=title, format=form or alt.Undefined)
        for field, (title, form) in shown.items()
    ]


def _marks(rows: Sequence[Row], looks: Mapping[str, Look], title: str | None, faint: float) -> Any:
    """Points of several series; a click on the legend singles one out."""
    alt = charts.altair()
    choice = alt.selection_point(fields=["series"], bind="legend")
    return (
        alt.Chart(charts.rows(rows))
        .mark_point(filled=True, size=48, strokeWidth=0)
        .encode(
            color=alt.Color("series:N", title=title, scale=charts.scale(looks, "colour")),
            shape=alt.Shape("series:N", title=title, scale=charts.scale(looks, "shape")),
            opacity=alt.condition(choice, alt.value(0.85), alt.value(faint)),
        )
        .add_params(choice)
    )


def sizes_chart(rows: Sequence[Row], description: str) -> Spec:
    """Group sizes against s_g: a group below the line |g| = s_g is too large."""
    alt = charts.altair()
    (left, right), (low, top) = _span(rows, "size"), _span(rows, "limit")
    low *= 0.8
    right = max(right, 2 * left)  # one size alone gives no scale
    looks = {PRIVATE: palette.SAFE, NOT_PRIVATE: palette.EXPOSED}
    points = _marks(rows, looks, "Perturbation alone", 0.08).encode(
        x=alt.X("size:Q", title="records in the group, |g|", scale=_log(left * 0.85, right),
                axis=charts.log_axis(left, right)),
        y=alt.Y("limit:Q", title="largest private size, s_g", scale=_log(low, top),
                axis=charts.log_axis(low, top)),
        size=alt.Size("groups:Q", legend=None, scale=alt.Scale(type="sqrt", range=[18, 260])),
        tooltip=_tooltips(
            size=("|g|", COUNT), limit=("s_g", ",.1f"), groups=("groups", COUNT),
            series=("verdict", ""),
        ),
    )  # fmt: skip
    low_end, high_end = max(left, low), min(right, top)
    ends = [low_end, high_end] if low_end < high_end else []  # the line lies outside
    line = (
        alt.Chart(charts.rows({"size": end, "limit": end} for end in ends))
        .mark_line(color=INK, strokeDash=[5, 4], opacity=0.7, strokeWidth=1.5)
        .encode(x="size:Q", y="limit:Q")
    )
    return _finished(alt.layer(points, line), description, 360)


def _log(low: float, high: float) -> Any:
    return charts.altair().Scale(type="log", domain=[low, high * 1.05], nice=False)


def _span(rows: Sequence[Row], field: str) -> tuple[float, float]:
    found = [row[field] for row in rows]
    return min(found), max(found)


def tails_chart(rows: Sequence[Row], doubt: float, series: Sequence[str], description: str) -> Spec:
    """The bound and the exact tails of the worst groups, with the doubt as a line."""
    alt = charts.altair()
    looks = dict(zip(series, (palette.BOUND, palette.EXPOSED), strict=True))
    points = _marks(rows, looks, None, 0.07).encode(
        x=alt.X("size:Q", title="records in the group, |g|", scale=alt.Scale(type="log"),
                axis=charts.log_axis(*_span(rows, "size"))),
        y=alt.Y(
            "probability:Q",
            title="smaller tail",
            scale=alt.Scale(type="log", domain=[1e-6, 1], clamp=True),
            axis=alt.Axis(format=PERCENT, values=[10.0**i for i in range(-6, 1)]),
        ),
        tooltip=_tooltips(
            group=("group", ""), size=("|g|", COUNT), series=("tail", ""),
            probability=("probability", ".2e"),
        ),
    )  # fmt: skip
    return _finished(alt.layer(points, charts.level(doubt, f"doubt {doubt:g}", INK)), description)


def trials_chart(rows: Sequence[Row], order: Sequence[str], description: str) -> Spec:
    """Records, and the independent trials that they are published from, by size of the group."""
    alt = charts.altair()
    looks = {"records": Look(palette.SKY), "trials": palette.SAFE}
    chart = (
        alt.Chart(charts.rows(rows))
        .mark_bar()
        .encode(
            x=alt.X(
                "class:N",
                title="records in the group",
                sort=list(order),
                axis=alt.Axis(labelAngle=-35),
            ),
            xOffset=alt.XOffset("kind:N", sort=list(looks)),
            y=alt.Y("count:Q", title="count", axis=alt.Axis(format=TICK, tickCount=6)),
            color=alt.Color("kind:N", title=None, scale=charts.scale(looks, "colour")),
            tooltip=_tooltips(**{
                "class": ("group size", ""), "kind": ("what", ""), "count": ("count", COUNT),
            }),
        )
    )  # fmt: skip
    return _finished(chart, description, 280)


def error_chart(rows: Sequence[Row], description: str) -> Spec:
    """The expected relative error by the size of the answer: median, and 10 to 90%."""
    alt = charts.altair()
    base = alt.Chart(charts.rows(rows)).encode(
        x=alt.X(
            "answer:Q",
            title="size of the answer (records)",
            scale=alt.Scale(type="log", nice=False, padding=6),
            axis=charts.log_axis(*_span(rows, "answer")),
        )
    )
    band = base.mark_area(opacity=0.3, color=_BLUE).encode(
        y=alt.Y(
            "low:Q",
            title="expected relative error",
            scale=alt.Scale(type="log"),
            axis=alt.Axis(format=PERCENT, values=[10.0**i for i in range(-5, 6)]),
        ),
        y2="high:Q",
    )
    line = base.mark_line(color=_BLUE, point={"color": _BLUE, "size": 45}).encode(
        y="median:Q",
        tooltip=_tooltips(
            range=("answers", ""), median=("median error", ".1%"), low=("10% are below", ".1%"),
            high=("10% are above", ".1%"), queries=("queries", COUNT),
        ),
    )  # fmt: skip
    return _finished(alt.layer(band, line), description)


def frontier_chart(rows: Sequence[Row], description: str) -> Spec:
    """The analysts' error against the adversary's: a line per series, and this policy."""
    alt = charts.altair()
    shown = {row["series"] for row in rows}
    looks = {ALONE: palette.FIRST, WITH_MARGINS: palette.SECOND, YOURS: Look(INK, "diamond")}
    looks = {name: look for name, look in looks.items() if name in shown}
    (left, right), (low, top) = _span(rows, "error"), _span(rows, "group_error")
    base = alt.Chart(charts.rows(rows)).encode(
        x=alt.X("error:Q", title="analysts' expected error of a count",
                scale=_log(left * 0.9, right), axis=_share_axis(left, right)),
        y=alt.Y("group_error:Q", title="adversary's error, most exposed group",
                scale=_log(low * 0.9, top), axis=_share_axis(low, top)),
        color=alt.Color("series:N", title=None, scale=charts.scale(looks, "colour")),
    )  # fmt: skip
    line = (
        base.transform_filter(alt.datum.series != YOURS)
        .mark_line(strokeWidth=1.6, opacity=0.7)
        .encode(
            order="error:Q",
            strokeDash=alt.StrokeDash("series:N", title=None, scale=charts.scale(looks, "dash")),
        )
    )
    points = base.mark_point(filled=True, opacity=1).encode(
        shape=alt.Shape("series:N", title=None, scale=charts.scale(looks, "shape")),
        size=alt.condition(alt.datum.series == YOURS, alt.value(170), alt.value(60)),
        tooltip=_tooltips(
            series=("policies", ""), policy=("policy", ""), error=("analysts' error", ".1%"),
            group_error=("adversary's error", ".1%"),
        ),
    )  # fmt: skip
    return _finished(alt.layer(line, points), description, 360)


def _share_axis(low: float, high: float) -> Any:
    """An axis of shares with 1, 2 and 5 of every decade."""
    found = charts.log_axis(low, high)
    found.format = PERCENT
    return found


def distribution_chart(rows: Sequence[Row], description: str) -> Spec:
    """The estimated sensitive distribution with its intervals."""
    alt = charts.altair()
    base = alt.Chart(charts.rows(rows)).encode(
        y=alt.Y("value:N", title=None, sort=[row["value"] for row in rows])
    )
    share = alt.X("share:Q", title="share of records", axis=alt.Axis(format=PERCENT, tickCount=8))
    tooltip = _tooltips(
        value=("value", ""), count=("estimate", ",.0f"), low_count=("from", ",.0f"),
        high_count=("to", ",.0f"),
    )  # fmt: skip
    bars = base.mark_bar(color=_BLUE, opacity=0.7).encode(x=share, tooltip=tooltip)
    ends = base.mark_rule(color=INK, strokeWidth=1.6).encode(x="low:Q", x2="high:Q")
    return _finished(alt.layer(bars, ends), description, 28 + 20 * len(rows))

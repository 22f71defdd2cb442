"""The charts of the reports as Vega-Lite specifications, made with altair."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from reconpriv.reports.page import needs_extra

Row = dict[str, Any]
Spec = dict[str, Any]

# Two colours that can be told apart by everybody, on white and on black; shapes differ as well.
BLUE, RED = "#3b82c4", "#d9622b"
PRIVATE, EXPOSED = "private", "not private"


def _altair() -> Any:
    try:
        import altair  # noqa: PLC0415 - an extra
    except ModuleNotFoundError:
        raise needs_extra() from None
    return altair


def _finished(chart: Any, description: str, height: int = 320) -> Spec:
    sized = chart.properties(
        width="container",
        height=height,
        description=description,
        autosize={"type": "fit-x", "contains": "padding"},
    )
    spec: Spec = sized.to_dict()
    # Written by altair for its own page; the report has one configuration for all charts.
    spec.pop("config", None)
    return spec


def sizes_chart(rows: Sequence[Row], description: str) -> Spec:
    """Group sizes against s_g: a group below the line |g| = s_g is too large."""
    alt = _altair()
    left, right = (f(row["size"] for row in rows) for f in (min, max))
    low, top = (f(row["limit"] for row in rows) for f in (min, max))
    low *= 0.8
    right = max(right, 2 * left)  # one size alone gives no scale
    choice = alt.selection_point(fields=["verdict"], bind="legend")
    verdict = alt.Scale(domain=[PRIVATE, EXPOSED], range=[BLUE, RED])
    points = (
        alt.Chart(alt.Data(values=list(rows)))
        .mark_point(filled=True, strokeWidth=0)
        .encode(
            x=alt.X("size:Q", title="records in the group, |g|", scale=_log(left, right)),
            y=alt.Y("limit:Q", title="largest private size, s_g", scale=_log(low, top)),
            color=alt.Color("verdict:N", title="Perturbation alone", scale=verdict),
            shape=alt.Shape(
                "verdict:N",
                title="Perturbation alone",
                scale=alt.Scale(domain=[PRIVATE, EXPOSED], range=["circle", "triangle-up"]),
            ),
            size=alt.Size("groups:Q", legend=None, scale=alt.Scale(type="sqrt", range=[18, 260])),
            opacity=alt.condition(choice, alt.value(0.75), alt.value(0.08)),
            tooltip=[
                alt.Tooltip("size:Q", title="|g|", format=","),
                alt.Tooltip("limit:Q", title="s_g", format=",.1f"),
                alt.Tooltip("groups:Q", title="groups", format=","),
                alt.Tooltip("verdict:N", title="verdict"),
            ],
        )
        .add_params(choice)
    )
    low_end, high_end = max(left, low), min(right, top)
    ends = [low_end, high_end] if low_end < high_end else []  # the line lies outside
    line = (
        alt.Chart(alt.Data(values=[{"size": end, "limit": end} for end in ends]))
        .mark_line(color="currentColor", strokeDash=[5, 4], opacity=0.7, strokeWidth=1.5)
        .encode(x="size:Q", y="limit:Q")
    )
    return _finished(alt.layer(points, line), description, 360)


def _log(low: float, high: float) -> Any:
    return _altair().Scale(type="log", domain=[low, high * 1.05], nice=False)


def tails_chart(rows: Sequence[Row], delta: float, series: Sequence[str], description: str) -> Spec:
    """The bound and the exact tails of the worst groups, with δ as a line."""
    alt = _altair()
    shapes = ["circle", "triangle-down", "square"][: len(series)]
    colours = ["#8a6fc2", RED, BLUE][: len(series)]
    choice = alt.selection_point(fields=["what"], bind="legend")
    points = (
        alt.Chart(alt.Data(values=list(rows)))
        .mark_point(filled=True, size=48)
        .encode(
            x=alt.X("size:Q", title="records in the group, |g|", scale=alt.Scale(type="log")),
            y=alt.Y(
                "probability:Q",
                title="smaller tail",
                scale=alt.Scale(type="log", domain=[1e-6, 1], clamp=True),
                axis=alt.Axis(format="~p", values=[1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1]),
            ),
            color=alt.Color("what:N", title=None, scale=alt.Scale(domain=series, range=colours)),
            shape=alt.Shape("what:N", title=None, scale=alt.Scale(domain=series, range=shapes)),
            opacity=alt.condition(choice, alt.value(0.75), alt.value(0.07)),
            tooltip=[
                alt.Tooltip("group:N", title="group"),
                alt.Tooltip("size:Q", title="|g|", format=","),
                alt.Tooltip("what:N", title="tail"),
                alt.Tooltip("probability:Q", title="probability", format=".2e"),
            ],
        )
        .add_params(choice)
    )
    rule = (
        alt.Chart(alt.Data(values=[{"delta": delta}]))
        .mark_rule(color="currentColor", strokeDash=[5, 4], opacity=0.8)
        .encode(y="delta:Q")
    )
    name = (
        alt.Chart(alt.Data(values=[{"delta": delta, "name": f"δ = {delta:g}"}]))
        .mark_text(align="right", dx=-4, dy=-8, color="currentColor", fontSize=12)
        .encode(y="delta:Q", x=alt.value("width"), text="name:N")
    )
    return _finished(alt.layer(points, rule, name), description)


def trials_chart(rows: Sequence[Row], order: Sequence[str], description: str) -> Spec:
    """Records, and the independent trials that they are published from, by size of the group."""
    alt = _altair()
    kinds = ["records", "trials"]
    chart = (
        alt.Chart(alt.Data(values=list(rows)))
        .mark_bar()
        .encode(
            x=alt.X(
                "class:N",
                title="records in the group",
                sort=list(order),
                axis=alt.Axis(labelAngle=-35),
            ),
            xOffset=alt.XOffset("kind:N", sort=kinds),
            y=alt.Y("count:Q", title="count", axis=alt.Axis(format="~s")),
            color=alt.Color(
                "kind:N", title=None, scale=alt.Scale(domain=kinds, range=["#98a2ad", BLUE])
            ),
            tooltip=[
                alt.Tooltip("class:N", title="group size"),
                alt.Tooltip("kind:N", title="what"),
                alt.Tooltip("count:Q", title="count", format=","),
            ],
        )
    )
    return _finished(chart, description, 280)


def error_chart(rows: Sequence[Row], description: str) -> Spec:
    """The expected relative error by the size of the answer: median, and 10 to 90 %."""
    alt = _altair()
    base = alt.Chart(alt.Data(values=list(rows))).encode(
        x=alt.X(
            "answer:Q",
            title="size of the answer (records)",
            scale=alt.Scale(type="log", nice=False, padding=6),
            axis=alt.Axis(format="~s", tickCount=6),
        )
    )
    band = base.mark_area(opacity=0.22, color=BLUE).encode(
        y=alt.Y(
            "low:Q",
            title="expected relative error",
            scale=alt.Scale(type="log"),
            axis=alt.Axis(format="~%", values=[10.0**i for i in range(-5, 6)]),
        ),
        y2="high:Q",
    )
    line = base.mark_line(color=BLUE, point={"color": BLUE, "size": 45}).encode(
        y="median:Q",
        tooltip=[
            alt.Tooltip("range:N", title="answers"),
            alt.Tooltip("median:Q", title="median error", format=".1%"),
            alt.Tooltip("low:Q", title="10 % are below", format=".1%"),
            alt.Tooltip("high:Q", title="10 % are above", format=".1%"),
            alt.Tooltip("queries:Q", title="queries", format=","),
        ],
    )
    return _finished(alt.layer(band, line), description)


def distribution_chart(rows: Sequence[Row], description: str) -> Spec:
    """The estimated sensitive distribution with its intervals."""
    alt = _altair()
    base = alt.Chart(alt.Data(values=list(rows))).encode(
        y=alt.Y("value:N", title=None, sort=[row["value"] for row in rows])
    )
    share = alt.X("share:Q", title="share of records", axis=alt.Axis(format="~%"))
    tooltip = [
        alt.Tooltip("value:N", title="value"),
        alt.Tooltip("count:Q", title="estimate", format=",.0f"),
        alt.Tooltip("low_count:Q", title="from", format=",.0f"),
        alt.Tooltip("high_count:Q", title="to", format=",.0f"),
    ]
    bars = base.mark_bar(color=BLUE, opacity=0.55).encode(x=share, tooltip=tooltip)
    ends = base.mark_rule(color="currentColor", strokeWidth=1.6).encode(x="low:Q", x2="high:Q")
    return _finished(alt.layer(bars, ends), description, 28 + 20 * len(rows))

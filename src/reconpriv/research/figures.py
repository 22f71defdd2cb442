"""The figures of the study as SVG and PNG, with the default of each parameter marked."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from reconpriv.messages.numbers import TICK
from reconpriv.research.data import BASES
from reconpriv.research.margins import ADULT, EVERY_ROW, TABLES, WITH, WITHOUT
from reconpriv.research.results import Result, Row
from reconpriv.research.setting import DEFAULT, METHODS, SWEEPS
from reconpriv.show.charts import drawing as charts
from reconpriv.show.charts import palette
from reconpriv.show.charts.drawing import LegendEntry, Spec
from reconpriv.show.charts.palette import Look

_METHODS = {
    "UP": ("UP (perturbation alone)", palette.PLAIN),
    "RP": ("RP (the paper's Algorithm 1)", palette.FIRST),
    "octave": ("octave (hardened, default)", palette.SECOND),
    "public": ("public (hardened)", palette.THIRD),
}
_AXES = {
    "retention": "retention probability p",
    "epsilon": "relative error ε",
    "delta": "tail probability δ",
    "records": "records |D|",
}
_MARGINS = {
    WITHOUT: ("records alone", palette.SECOND),
    WITH: ("records and margins (ε = 1)", palette.FIRST),
    EVERY_ROW: ("margins with every row, groups given away", palette.THIRD),
}
_WIDTH, _HEIGHT = 300, 170


def distribution(result: Result, label: str) -> dict[str, Spec]:
    """Figure 1: the share of every sensitive value, a panel per table."""
    alt = charts.altair()
    panels = []
    for base in BASES:
        found = result.select(base=base)
        title = f"{base}-{found[0]['records'] // 1000}K: {BASES[base]}, {len(found)} values"
        values = [{"rank": row["rank"], "share": row["frequency"]} for row in found]
        bars = alt.Chart(charts.rows(values)).mark_bar(color=palette.BLUE)
        ticks = alt.Axis(values=list(range(1, len(found) + 1, 5)), labelAngle=0)
        x = alt.X("rank:O", title="sensitive value, most frequent first", axis=ticks)
        top = math.ceil(10 * values[0]["share"]) / 10
        y = alt.Y("share:Q", title="share of records", axis=charts.percent_axis(),
                  scale=alt.Scale(domain=[0, top]))  # fmt: skip
        panels.append(charts.panel(bars.encode(x=x, y=y), _WIDTH, _HEIGHT, title))
    title = "Figure 1: distribution of the sensitive attribute"
    return {"figure-1-distribution": charts.figure(panels, title, note=label)}


def violations(result: Result, label: str) -> dict[str, Spec]:
    """Figures 2 and 4: violating groups and the records in them, along the four sweeps."""
    looks = {"groups": palette.FIRST, "records in them": palette.SECOND}
    figures = {}
    for number, base in ((2, "EDU"), (4, "OCC")):
        values = [
            {
                "parameter": row["parameter"],
                "x": row["value"],
                "series": name,
                "y": row[field] / 100,
            }
            for row in result.select(base=base)
            for name, field in zip(looks, ("percent_groups", "percent_records"), strict=True)
        ]
        figures[f"figure-{number}-violations-{base.lower()}"] = _sweeps(
            values, looks, f"Figure {number}: {base}, violating micro groups", label, "violating"
        )
    return figures


def error(result: Result, label: str) -> dict[str, Spec]:
    """Figures 3 and 5: the mean relative error of every method, along the four sweeps."""
    looks = dict(_METHODS.values())
    figures = {}
    for number, base in ((3, "EDU"), (5, "OCC")):
        values = [
            {"parameter": row["parameter"], "x": row["value"], "series": _METHODS[method][0],
             "y": row["error"], "low": row["error"] - row["spread"],
             "high": row["error"] + row["spread"]}
            for method in METHODS
            for row in result.select(base=base, method=method)
        ]  # fmt: skip
        note = f"{label}; bars: standard deviation over {result.rows[0]['keys']} keys"
        title = f"Figure {number}: {base}, relative error of count queries"
        figures[f"figure-{number}-error-{base.lower()}"] = _sweeps(
            values, looks, title, note, "mean relative error"
        )
    return figures


def _sweeps(
    values: Sequence[Row], looks: Mapping[str, Look], title: str, note: str, y_title: str
) -> Spec:
    """Four panels, one for each parameter, on one scale, with the default marked."""
    top = max(row[field] for row in values for field in ("y", "high") if field in row)
    entries = [LegendEntry(name, look) for name, look in looks.items()]
    panels = [_sweep(values, looks, parameter, y_title, top) for parameter in SWEEPS]
    return charts.figure(
        panels,
        title,
        note=note,
        entries=[*entries, LegendEntry("default", palette.REFERENCE, "line")],
    )


def _sweep(
    values: Sequence[Row], looks: Mapping[str, Look], parameter: str, y_title: str, top: float
) -> Spec:
    alt = charts.altair()
    found = [row for row in values if row["parameter"] == parameter]
    ticks = list(SWEEPS[parameter])
    margin = 0.06 * (ticks[-1] - ticks[0])
    shown = alt.Axis(values=ticks, format=TICK, grid=False)
    span = alt.Scale(domain=[ticks[0] - margin, ticks[-1] + margin], nice=False, zero=False)
    x = alt.X("x:Q", title=_AXES[parameter], axis=shown, scale=span)
    first = parameter in list(SWEEPS)[::2]
    y = alt.Y("y:Q", title=y_title if first else None, axis=charts.percent_axis(labels=first),
              scale=alt.Scale(domain=[0, top], nice=True))  # fmt: skip
    default = alt.Chart(charts.rows([{"x": getattr(DEFAULT, parameter)}])).mark_rule(
        color=palette.REFERENCE.colour, strokeDash=list(palette.REFERENCE.dash), strokeWidth=1.5
    )
    parts = [default.encode(x="x:Q"), charts.lines(found, looks, x, y)]
    if found and "low" in found[0]:
        bars = alt.Chart(charts.rows(found)).mark_rule(strokeWidth=1.5, opacity=0.6)
        parts.append(bars.encode(x=x, y="low:Q", y2="high:Q", color=charts.colour(looks)))
    return charts.panel(alt.layer(*parts), _WIDTH, _HEIGHT)


def dp_tables(result: Result, label: str) -> dict[str, Spec]:
    """Exact probability against the printed share and the simulated one."""
    del label  # the paper's own groups as well as ours
    alt = charts.altair()
    looks = {
        "printed in the paper (of 100 draws)": palette.FIRST,
        f"OpenDP's Laplace ({result.rows[0]['trials']:,} draws)": Look(
            palette.VERMILION, palette.CROSS
        ),
    }
    printed, simulated = looks
    values = [
        {"x": row["exact"], "y": row["printed"] / 100, "series": printed}
        for row in result.rows
        if row["printed"] != ""
    ]
    values += [{"x": r["exact"], "y": r["simulated"], "series": simulated} for r in result.rows]
    top = max(max(row["x"], row["y"]) for row in values)
    x = alt.X("x:Q", title="exact probability of a tail", axis=charts.percent_axis())
    y = alt.Y("y:Q", title="share of draws in the tail", axis=charts.percent_axis())
    equal = alt.Chart(charts.rows([{"x": 0, "y": 0}, {"x": top, "y": top}])).mark_line(
        color=palette.GREY, strokeWidth=1
    )
    dots = charts.points(alt.Chart(charts.rows(values)).encode(x=x, y=y), looks, 26, 0.75)
    panel = charts.panel(alt.layer(equal.encode(x=x, y=y), dots), 430, 320)
    entries = [LegendEntry(name, look, "mark") for name, look in looks.items()]
    entries.append(LegendEntry("equal", Look(palette.GREY), "line"))
    title = "Tables 4 and 5: the ratio attack on noisy answers"
    return {"tables-4-5-ratio": charts.figure([panel], title, entries=entries, width=460)}


def margins(result: Result, label: str) -> dict[str, Spec]:
    """Figures 6 and 7: what margins give analysts and adversaries, and the error by p."""
    label = f"EDU and OCC: {label}"
    figures = {"figure-6-margins": _trade(result, label)}
    if len({row["retention"] for row in result.rows}) > 1:
        figures["figure-7-margins-by-p"] = _margins_by_p(result, label)
    return figures


def _trade(result: Result, label: str) -> Spec:
    """The analysts' error against the adversary's success, a panel per table."""
    alt = charts.altair()
    looks = dict(_MARGINS.values())
    panels = []
    for base in TABLES:
        found = [
            {"x": row["adversary"], "y": row["error"], "series": _MARGINS[row["margins"]][0],
             "name": row["method"], "below": row["margins"] == EVERY_ROW}
            for row in result.select(base=base, retention=DEFAULT.retention)
            if base == ADULT or row["margins"] != EVERY_ROW
        ]  # fmt: skip
        low = math.floor(10 * min(row["x"] for row in found)) / 10
        span = alt.Scale(domain=[low, 1.0 + 0.18 * (1.0 - low)], nice=False)
        x = alt.X("x:Q", title="violating groups estimated within ±50 %", scale=span,
                  axis=charts.percent_axis(values=_shares(low)))  # fmt: skip
        y = alt.Y("y:Q", title="mean relative error", axis=charts.percent_axis(),
                  scale=alt.Scale(domain=[0, 1.08 * max(row["y"] for row in found)]))  # fmt: skip
        layers = [charts.lines(found, looks, x, y)]
        for below in (False, True):
            some = alt.Chart(charts.rows([row for row in found if row["below"] == below]))
            words = some.mark_text(align="left", dx=6, dy=11 if below else -7)
            layers.append(words.encode(x=x, y=y, text="name:N"))
        panels.append(charts.panel(alt.layer(*layers), _WIDTH, _HEIGHT, _name(result, base)))
    return charts.figure(
        panels,
        "Figure 6: the analysts' error against the adversary's success",
        note=f"p = {DEFAULT.retention:g}; {label}; nearer to the lower left is better",
        entries=[LegendEntry(name, look) for name, look in looks.items()],
    )


def _shares(low: float) -> list[float]:
    """Ticks from a tenth to 100 %, every 5 % or 10 %."""
    step = 5 if low > 0.7 else 10
    return [percent / 100 for percent in range(round(100 * low), 101, step)]


def _name(result: Result, base: str) -> str:
    records = result.select(base=base)[0]["records"]
    what = "occupation by age, sex, race" if base == ADULT else BASES[base]
    return f"{base}, {records:,} records: {what}"


def _margins_by_p(result: Result, label: str) -> Spec:
    """The error against p, a panel per table: each sampling rule with margins, UP without."""
    alt = charts.altair()
    series = {
        "UP (perturbation alone)": ("none", WITHOUT, palette.PLAIN),
        "none with margins": ("none", WITH, palette.FIRST),
        "octave with margins": ("octave", WITH, palette.SECOND),
        "public with margins": ("public", WITH, palette.THIRD),
    }
    looks = {name: look for name, (_, _, look) in series.items()}
    ticks = list(SWEEPS["retention"])
    x = alt.X("x:Q", title=_AXES["retention"], scale=alt.Scale(domain=[0.05, 0.95], nice=False),
              axis=alt.Axis(values=ticks, format=TICK, grid=False))  # fmt: skip
    panels = []
    for base in TABLES:
        found = [
            {"x": row["retention"], "y": row["error"], "series": name}
            for name, (method, margins, _) in series.items()
            for row in result.select(base=base, method=method, margins=margins)
        ]
        y = alt.Y("y:Q", title="mean relative error", axis=charts.percent_axis(),
                  scale=alt.Scale(domainMin=0))  # fmt: skip
        panels.append(
            charts.panel(charts.lines(found, looks, x, y), _WIDTH, _HEIGHT, _name(result, base))
        )
    return charts.figure(
        panels,
        "Figure 7: relative error with margins",
        note=f"margins of every public attribute, ε = 1, δ = 1e-9; {label}",
        entries=[LegendEntry(name, look) for name, look in looks.items()],
    )

"""One picture for each attack."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from reconpriv.attacks.granularity import Attempt
from reconpriv.attacks.result import Row
from reconpriv.messages.numbers import TICK
from reconpriv.policy.policy import Policy
from reconpriv.show.charts import drawing as charts
from reconpriv.show.charts import palette
from reconpriv.show.charts.drawing import LegendEntry
from reconpriv.show.charts.palette import Look
from reconpriv.theory.arrays import Floats
from reconpriv.theory.ratio import ratio_tails

_MODES = ("none", "paper", "octave", "public")
_BASES = {"EDU": palette.FIRST, "OCC": palette.SECOND}
_MLE, _ATTACK = Look(palette.ORANGE, "circle"), Look(palette.BLUE, palette.CROSS)


def _log(low: float, high: float, base: int = 10) -> Any:
    return charts.altair("attacks").Scale(type="log", base=base, domain=[low, high], nice=False)


def draw_micro(rows: Sequence[Row], tolerance: float, path: Path) -> None:
    """The error in the most frequent value by sampling rule, and how often it is tolerated."""
    alt = charts.altair("attacks")
    values = [
        {
            "mode": row["sampling"],
            "series": row["table"],
            **{f"q{share}": row[f"error {share}%"] for share in (10, 25, 50, 75, 90)},
            "under": row["within tolerance"],
            "exact": row["with copies"] or row["exact tails"],
        }
        for row in rows
    ]
    base = alt.Chart(charts.rows(values)).encode(
        x=alt.X("mode:N", title="sampling rule", sort=list(_MODES), axis=alt.Axis(labelAngle=0)),
        xOffset=alt.XOffset("series:N", scale=alt.Scale(paddingInner=0.15)),
        color=charts.colour(_BASES),
    )
    title = alt.Y("q10:Q", title="relative error of the largest f", axis=charts.percent_axis())
    errors = alt.layer(
        base.mark_rule(strokeWidth=1.5).encode(y=title, y2="q90:Q"),
        base.mark_bar(width=11).encode(y="q25:Q", y2="q75:Q"),
        charts.points(base.encode(y="q50:Q"), _BASES, 45).encode(
            color=alt.value(palette.WHITE), stroke=alt.value(palette.BLACK)
        ),
        charts.level(tolerance, "tolerance"),
    )
    share = alt.Scale(domain=[0, 1])
    under = alt.Y("under:Q", title="violating groups told within the tolerance", scale=share,
                  axis=charts.percent_axis())  # fmt: skip
    rates = alt.layer(
        base.mark_bar(opacity=0.4).encode(y=under),
        base.mark_tick(thickness=2, width=26, opacity=1).encode(
            y="exact:Q", color=alt.value(palette.BLACK)
        ),
        charts.points(base.encode(y="under:Q"), _BASES, 45),
    )
    entries = [LegendEntry(name, look, "mark") for name, look in _BASES.items()]
    entries.append(LegendEntry("exact prediction", palette.PLAIN, "line"))
    panels = [
        charts.panel(errors, 280, 240, "line: 10 to 90%, bar: 25 to 75%, mark: median"),
        charts.panel(rates, 280, 240, "measured over 20 keys"),
    ]
    charts.save(charts.figure(panels, entries=entries), path)


def draw_ratio(policy: Policy, path: Path) -> None:
    """The larger and the smaller exact tail over |g|·f, for two λ."""
    alt = charts.altair("attacks")
    looks = {
        "λ = 0.1, too high": Look(palette.BLUE),
        "λ = 0.1, too low": Look(palette.BLUE, dash=(6, 3)),
        "λ = 0.05, too high": Look(palette.VERMILION, dash=(9, 2, 2, 2)),
        "λ = 0.05, too low": Look(palette.VERMILION, dash=(2, 2)),
    }
    counts = np.geomspace(0.3, 300, 160)
    panels = []
    for f in (0.25, 0.8):
        values = []
        for privacy in (0.1, 0.05):
            tails = ratio_tails(counts / f, f, privacy=privacy, epsilon=policy.tolerance)
            for side, tail in (("too high", tails.above), ("too low", tails.below)):
                values += [
                    {"x": x, "y": y, "series": f"λ = {privacy}, {side}"}
                    for x, y in zip(counts.tolist(), tail.tolist(), strict=True)
                ]
        x = alt.X("x:Q", title="records that hold the value, |g|·f", scale=_log(0.3, 300),
                  axis=alt.Axis(values=[1, 10, 100], format=TICK))  # fmt: skip
        y = alt.Y("y:Q", title="exact tail of the noisy ratio" if f == 0.25 else None,
                  axis=charts.percent_axis(), scale=alt.Scale(domain=[0, 0.7]))  # fmt: skip
        drawn = charts.lines(values, looks, x, y, marks=False)
        level = charts.level(policy.doubt, "doubt")
        panels.append(charts.panel(alt.layer(level, drawn), 290, 220, f"f = {f}"))
    entries = [LegendEntry(name, look, "line") for name, look in looks.items()]
    charts.save(charts.figure(panels, entries=entries), path)


def draw_granularity(kept: dict[str, dict[str, Attempt]], path: Path) -> None:
    """True f against the attack's and the MLE's, for every scaled sampling rule."""
    alt = charts.altair("attacks")
    looks = {"MLE": _MLE, "granularity attack": _ATTACK}
    ticks = [0.1, 0.2, 0.5, 1.0]
    panels = []
    for size in ("paper", "octave", "public"):
        found = [kept["EDU 500K"][size], kept["OCC 500K"][size]]
        values = [
            {"x": truth, "y": float(np.clip(guess, 0.05, 1.1)), "series": name}
            for one in found
            for name, guesses in zip(looks, (one.mle, one.frequency), strict=True)
            for truth, guess in zip(one.truth.tolist(), guesses.tolist(), strict=True)
        ]
        first = size == "paper"
        x = alt.X("x:Q", title="true largest f", scale=_log(0.08, 1.05),
                  axis=alt.Axis(values=ticks, format=TICK))  # fmt: skip
        y = alt.Y("y:Q", title="inferred f" if first else None, scale=_log(0.05, 1.1),
                  axis=alt.Axis(values=ticks, format=TICK, labels=first))  # fmt: skip
        truth = charts.rows([{"x": end, "y": end} for end in (0.08, 1.0)])
        drawn = alt.layer(
            charts.points(alt.Chart(charts.rows(values)).encode(x=x, y=y), looks, 16, 0.6),
            alt.Chart(truth).mark_line(color=palette.BLACK, strokeWidth=1).encode(x=x, y=y),
        )
        panels.append(charts.panel(drawn, 195, 210, size))
    entries = [LegendEntry(name, look, "mark") for name, look in looks.items()]
    entries.append(LegendEntry("the truth", palette.PLAIN, "line"))
    charts.save(charts.figure(panels, entries=entries, columns=3), path)


def draw_repeat(rows: Sequence[Row], path: Path) -> None:
    """The error of the average over k releases, with fresh keys and with one."""
    alt = charts.altair("attacks")
    looks = {
        "EDU, fresh keys": palette.FIRST,
        "EDU, one key": Look(palette.BLUE, "circle", (2, 2)),
        "OCC, fresh keys": palette.SECOND,
        "OCC, one key": Look(palette.VERMILION, "diamond", (2, 2)),
    }
    first = {row["table"]: row["root mean square error"] for row in reversed(rows)}
    values, expected = [], []
    for row in rows:
        base, k = row["table"], row["releases"]
        measured = row["root mean square error"]
        values.append({"x": k, "y": measured, "series": f"{base}, fresh keys"})
        values.append({"x": k, "y": first[base], "series": f"{base}, one key"})
        expected.append({"x": k, "y": first[base] / k**0.5, "base": base})
    times = sorted({row["releases"] for row in rows})
    x = alt.X("x:Q", title="releases k", scale=_log(times[0] * 0.9, times[-1] * 1.1, 2),
              axis=alt.Axis(values=times, format=TICK, grid=False))  # fmt: skip
    errors = [row["y"] for row in (*values, *expected)]
    y = alt.Y("y:Q", title="root mean square relative error of f",
              scale=_log(min(errors) * 0.9, max(errors) * 1.1),
              axis=charts.percent_axis(values=[0.02, 0.03, 0.05, 0.1, 0.2, 0.3, 0.5]))  # fmt: skip
    falling = alt.Chart(charts.rows(expected)).mark_line(color=palette.GREY, strokeWidth=1)
    drawn = alt.layer(falling.encode(x=x, y=y, detail="base:N"), charts.lines(values, looks, x, y))
    entries = [LegendEntry(name, look) for name, look in looks.items()]
    entries.append(LegendEntry("1/√k", Look(palette.GREY), "line"))
    figure = charts.figure([charts.panel(drawn, 400, 260)], entries=entries, width=420)
    charts.save(figure, path)


def draw_differencing(estimates: tuple[Floats, Floats, Floats], path: Path) -> None:
    """X minus Y against the local estimate: on the diagonal, unless Y is from another release."""
    alt = charts.altair("attacks")
    looks = {"Y of another release (control)": _MLE, "X and Y of one release": _ATTACK}
    local, global_, mixed = (one.tolist() for one in estimates)
    low, high = -0.6, 2.0
    values = [
        {"x": x, "y": y, "series": name}
        for name, guesses in zip(looks, (mixed, global_), strict=True)
        for x, y in zip(local, guesses, strict=True)
        if low <= y <= high and 0 <= x <= 1.4
    ]
    x = alt.X("x:Q", title="local estimate F'", axis=alt.Axis(tickCount=7),
              scale=alt.Scale(domain=[0, 1.4], nice=False))  # fmt: skip
    y = alt.Y("y:Q", title="estimate as X minus Y", scale=alt.Scale(domain=[low, high], nice=False))
    drawn = charts.points(alt.Chart(charts.rows(values)).encode(x=x, y=y), looks, 24, 0.65)
    entries = [LegendEntry(name, look, "mark") for name, look in looks.items()]
    figure = charts.figure([charts.panel(drawn, 400, 260)], entries=entries, width=420)
    charts.save(figure, path)


def draw_side_channels(rows: Sequence[Row], path: Path) -> None:
    """Channels by sampling rule: a dot if nothing leaks, a cross if something does."""
    alt = charts.altair("attacks")
    looks = {"no": Look(palette.GREEN), "yes": Look(palette.VERMILION, palette.CROSS)}
    names = list(dict.fromkeys(row["channel"] for row in rows))
    values = [
        {"mode": row["sampling"], "channel": row["channel"], "series": row["leaks"]} for row in rows
    ]
    base = alt.Chart(charts.rows(values)).encode(
        x=alt.X("mode:N", title="sampling rule", sort=list(_MODES),
                scale=alt.Scale(domain=list(_MODES)), axis=alt.Axis(labelAngle=0, ticks=False)),
        y=alt.Y("channel:N", title=None, sort=names, axis=alt.Axis(labelLimit=260, ticks=False)),
    )  # fmt: skip
    entries = [
        LegendEntry("nothing but the published rows", looks["no"], "mark"),
        LegendEntry("tells more", looks["yes"], "mark"),
    ]
    drawn = charts.panel(charts.points(base, looks, 90), 340, 24 * len(names))
    charts.save(charts.figure([drawn], entries=entries, width=340), path)

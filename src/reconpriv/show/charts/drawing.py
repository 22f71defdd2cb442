"""Charts as Vega-Lite, made with altair and drawn by vl-convert: one look, no browser, no network.

Both packages are extras and slow to import, so they are imported only when something is drawn.
"""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from reconpriv.errors import OutputError
from reconpriv.extras import needs
from reconpriv.messages.numbers import PERCENT, TICK
from reconpriv.show.charts import palette
from reconpriv.show.charts.palette import Look
from reconpriv.writing.file import whole_file

Row = dict[str, Any]
Spec = dict[str, Any]

_FONT = 12
_KEY_ROW = 20
_SCALE = 2  # PNG pixels per pixel of the drawing: sharp on a good screen


def altair(extra: str = "report") -> Any:
    """Altair, if vl-convert is installed too; otherwise an error that says what to install."""
    with needs(extra, "Charts need altair and vl-convert-python."):
        import altair as alt  # noqa: PLC0415 - an extra
        import vl_convert  # noqa: F401, PLC0415
    return alt


def _version() -> str:
    """The version of Vega-Lite that altair writes, as vl-convert names it."""
    return ".".join(altair().SCHEMA_VERSION.lstrip("v").split(".")[:2])


@cache
def browser_scripts() -> str:
    """Vega, Vega-Lite and vega-embed as one script, in the version that altair writes for."""
    altair()
    import vl_convert  # noqa: PLC0415

    # The type stub knows no version, and requires an argument that is optional.
    converter: Any = vl_convert
    version = _version()
    # Bundling takes two seconds.
    name = f"vega-lite-{version}-by-vl-convert-{converter.__version__}.js"
    script = kept(name, lambda: str(converter.javascript_bundle(vl_version=version)))
    return script.replace("</script", "<\\/script")


def cache_folder() -> Path:
    """Where they are kept: ``reconpriv`` in ``XDG_CACHE_HOME`` or ``~/.cache``."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "reconpriv"


def kept(name: str, make: Callable[[], str]) -> str:
    """A script by name, made once; made again if it cannot be read or kept, or was changed.

    Its first line is the hash of the rest, so a damaged file is noticed. A file that others own or
    may write is not used: the script runs in the publisher's browser, beside the raw table.
    """
    path: Path | None = None
    with suppress(OSError, RuntimeError):  # RuntimeError: there is no home
        path = cache_folder() / name
        if (found := _read(path)) is not None:
            return found
    script = make()
    if path is not None:
        with suppress(OSError, OutputError):
            _write(path, script)
    return script


def _read(path: Path) -> str | None:
    if not path.is_file():
        return None
    about = path.stat()
    if about.st_uid != os.getuid() or about.st_mode & 0o022:
        return None
    digest, _, script = path.read_bytes().partition(b"\n")
    return script.decode() if digest == _digest(script) else None


def _write(path: Path, script: str) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with whole_file(path, overwrite=True, private="a script") as work:
        work.write_bytes(_digest(script.encode()) + b"\n" + script.encode())


def _digest(script: bytes) -> bytes:
    return hashlib.sha256(script).hexdigest().encode()


def save(figure: Spec, *paths: Path) -> None:
    """Write a static figure, as SVG or PNG depending on the extension."""
    svg = drawn(figure)
    for path in paths:
        if path.suffix == ".svg":
            path.write_text(svg + "\n", encoding="utf-8")
        else:
            path.write_bytes(pixels(svg))


def drawn(figure: Spec) -> str:
    """A figure as SVG."""
    version = _version()
    import vl_convert  # noqa: PLC0415

    return str(vl_convert.vegalite_to_svg(figure, vl_version=version))


def pixels(svg: str) -> bytes:
    """A drawing as PNG."""
    altair()
    import vl_convert  # noqa: PLC0415

    return bytes(vl_convert.svg_to_png(svg, scale=_SCALE))


def config(ink: str) -> Spec:
    """The look of axes, legends and titles; ``ink`` is the colour of lines and text."""
    words = {"labelColor": ink, "titleColor": ink, "labelFontSize": _FONT,
             "titleFontSize": _FONT, "titleFontWeight": 500, "titlePadding": 7}  # fmt: skip
    lines = {"domainColor": ink, "tickColor": ink, "gridColor": ink, "gridOpacity": 0.13,
             "domainOpacity": 0.4, "tickOpacity": 0.4}  # fmt: skip
    return {
        "background": "transparent",
        "padding": 8,
        "font": "system-ui, sans-serif",
        "view": {"stroke": None},
        "axis": {**words, **lines},
        "legend": {**words, "orient": "top", "symbolOpacity": 1, "labelLimit": 260},
        "axisX": {"labelFlush": False},
        "title": {"color": ink, "subtitleColor": ink, "anchor": "start", "fontSize": 13,
                  "fontWeight": 600, "subtitleFontSize": _FONT, "offset": 12},
        "text": {"color": ink, "fontSize": _FONT},
    }  # fmt: skip


def rows(values: Iterable[Row]) -> Spec:
    """Rows as the data of a chart.

    Altair's own class would check each row by its schema, and it copies lists again and again.
    """
    return {"values": tuple(values)}


def percent_axis(**more: Any) -> Any:
    """An axis of shares."""
    return altair().Axis(format=PERCENT, **{"tickCount": 5, **more})


def log_axis(low: float, high: float) -> Any:
    """An axis of counts with 1, 2 and 5 of every decade."""
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    return altair().Axis(format=TICK, values=[m * 10.0**d for d in decades for m in (1, 2, 5)])


def scale(looks: Mapping[str, Look], part: str) -> Any:
    """A scale from the names of series to their ``colour``, ``shape`` or ``dash``."""
    found = [getattr(look, part) for look in looks.values()]
    return altair().Scale(domain=list(looks), range=[_plain(one) for one in found])


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def lines(
    values: Sequence[Row], looks: Mapping[str, Look], x: Any, y: Any, *, marks: bool = True
) -> Any:
    """One line per series (the field ``series``), with marks if there are few points."""
    alt = altair()
    base = alt.Chart(rows(values)).encode(x=x, y=y, color=colour(looks))
    line = base.mark_line(strokeWidth=1.8).encode(
        strokeDash=alt.StrokeDash("series:N", scale=scale(looks, "dash"), legend=None)
    )
    return alt.layer(line, points(base, looks)) if marks else line


def points(base: Any, looks: Mapping[str, Look], size: int = 40, opacity: float = 1.0) -> Any:
    """The marks of all series of a chart that already has its x and y."""
    alt = altair()
    return base.mark_point(filled=True, size=size, opacity=opacity).encode(
        color=colour(looks), shape=alt.Shape("series:N", scale=scale(looks, "shape"), legend=None)
    )


def colour(looks: Mapping[str, Look]) -> Any:
    """The colour of the field ``series``."""
    return altair().Color("series:N", scale=scale(looks, "colour"), legend=None)


def level(value: float, name: str, ink: str = palette.BLACK) -> Any:
    """A dashed horizontal line across the chart, with its name at the left end."""
    alt = altair()
    base = alt.Chart(rows([{"level": value, "name": name}])).encode(y="level:Q")
    rule = base.mark_rule(color=ink, strokeDash=[5, 4], opacity=0.8)
    words = base.mark_text(align="left", dy=-7, color=ink)
    return alt.layer(rule, words.encode(text="name:N", x=alt.value(4)))


@dataclass(frozen=True)
class LegendEntry:
    """An entry of the key: what a mark, a line or both stand for."""

    words: str
    look: Look
    drawn: str = "line and mark"


def key(entries: Sequence[LegendEntry], width: int) -> Spec:
    """The key below a figure, in as many rows as the width needs."""
    alt = altair()
    at: list[Row] = []
    x = y = 0.0
    for number, entry in enumerate(entries):
        wide = 32 + _width(entry.words) + 20
        if x and x + wide > width:
            x, y = 0.0, y + _KEY_ROW
        at.append({"x": x, "mid": x + 12, "end": x + 24, "text": x + 32, "y": y,
                   "series": str(number), "words": entry.words, "drawn": entry.drawn})  # fmt: skip
        x += wide
    height = y + _KEY_ROW
    looks = {str(i): entry.look for i, entry in enumerate(entries)}

    def place(field: str, top: float = width) -> Any:
        span = alt.Scale(domain=[0, top], nice=False, zero=False)
        return alt.X(f"{field}:Q", axis=None, scale=span)

    down = alt.Y("y:Q", axis=None, scale=alt.Scale(domain=[height - 10, -10], nice=False))

    def of(kind: str) -> Any:
        found = [row for row in at if kind in row["drawn"]]
        return alt.Chart(rows(found)).encode(y=down)

    dash = alt.StrokeDash("series:N", scale=scale(looks, "dash"), legend=None)
    parts = [
        of("line").mark_rule(strokeWidth=1.8).encode(x=place("x"), x2="end:Q", strokeDash=dash,
                                                     color=colour(looks)),
        points(of("mark").encode(x=place("mid")), looks),
        of("").mark_text(align="left", baseline="middle").encode(x=place("text"), text="words:N"),
    ]  # fmt: skip
    return panel(alt.layer(*parts), width, int(height))


def _width(words: str) -> float:
    """About how wide a text is, in pixels."""
    return sum(3.5 if c in " ijlft.,'()|-" else 8.2 if c.isupper() else 6.6 for c in words)


def as_spec(chart: Any) -> Spec:
    """A chart as Vega-Lite with its rows in their places, so that it can be part of a figure."""
    with altair().data_transformers.enable(consolidate_datasets=False):
        return dict(chart.to_dict(validate=False))


def panel(chart: Any, width: int, height: int, title: str = "") -> Spec:
    """A chart of a given size, with a plain title if it needs one."""
    spec = as_spec(chart.properties(width=width, height=height))
    if title:
        spec["title"] = {"text": title, "fontWeight": 500, "fontSize": _FONT, "frame": "group",
                         "offset": 8}  # fmt: skip
    return spec


def figure(
    panels: Sequence[Spec],
    title: str = "",
    *,
    note: str = "",
    entries: Sequence[LegendEntry] = (),
    columns: int = 2,
    width: int = 620,
) -> Spec:
    """Panels beside and below each other with one title and one key.

    Assembled here rather than by altair, which would copy all data again and again.
    """
    parts = [*panels, *([key(entries, width)] if entries else [])]
    for part in parts:
        del part["config"], part["$schema"]
    apart = {"scale": dict.fromkeys(("x", "y", "color", "shape", "strokeDash"), "independent")}
    body = {"concat": list(panels), "columns": columns, "spacing": 18, "resolve": apart}
    whole: Spec = {
        "$schema": altair().SCHEMA_URL,
        "config": {**config(palette.BLACK), "background": palette.WHITE},
        "vconcat": [body, *parts[len(panels) :]],
        "spacing": 10,
        "resolve": apart,
    }
    if title:
        whole["title"] = {"text": title, **({"subtitle": note} if note else {})}
    return whole

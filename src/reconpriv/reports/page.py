"""The shell of a report: one HTML file with its style, its scripts and its data, and no network."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from importlib.resources import files
from typing import Any

from reconpriv.errors import InputError
from reconpriv.extras import install_hint

Cell = str | int | float | None
STAMP = "INTERNAL - NOT FOR RELEASE"

# Nothing may be fetched; Vega compiles its expressions, which needs 'unsafe-eval'.
_SECURITY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline' 'unsafe-eval';"
    " img-src data:"
)


@dataclass(frozen=True)
class Chart:
    """A Vega-Lite specification with the words and the table that stand beside it."""

    name: str
    spec: dict[str, Any]
    caption: str
    head: tuple[str, ...] = ()
    rows: tuple[tuple[Cell, ...], ...] = ()


@dataclass(frozen=True)
class Section:
    """A heading with HTML below it, already escaped, and charts."""

    name: str
    title: str
    html: str
    charts: tuple[Chart, ...] = ()
    after: str = ""


def page(title: str, lead: str, sections: Sequence[Section], *, internal: bool) -> str:
    """The whole file. ``lead`` is HTML; an internal page says so on screen and on every sheet."""
    charts = [chart for section in sections for chart in section.charts]
    stamp = f'<div class="stamp" role="note">{STAMP}</div>' if internal else ""
    mark = f'<div class="watermark" aria-hidden="true">{STAMP}</div>' if internal else ""
    top = (
        f'@page {{ @top-center {{ content: "{STAMP}"; font: 700 9pt sans-serif;'
        " color: #b3261e; } }"
    )
    links = "".join(f'<li><a href="#{s.name}">{escape(s.title)}</a></li>' for s in sections)
    body = "".join(_section(section) for section in sections)
    specs = json.dumps({c.name: c.spec for c in charts}, ensure_ascii=False, allow_nan=False)
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{_SECURITY}">
<meta name="robots" content="noindex">
<title>{escape(title)}{f" ({STAMP})" if internal else ""}</title>
<style>{_asset("style.css")}{top if internal else ""}</style>
</head>
<body>
{stamp}{mark}
<main>
<header><h1>{escape(title)}</h1>{lead}
<nav aria-label="On this page"><ul>{links}</ul></nav></header>
{body}
</main>
<script id="charts" type="application/json">{script_safe(specs)}</script>
<script>{vega_scripts()}</script>
<script>{_asset("page.js")}</script>
</body>
</html>
"""


def script_safe(text: str) -> str:
    """JSON that no value can end early: a data value may hold a closing script tag."""
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


@cache
def vega_scripts() -> str:
    """Vega, Vega-Lite and vega-embed as one script, from the version that altair writes for."""
    try:
        import altair  # noqa: PLC0415 - an extra
        import vl_convert  # noqa: PLC0415
    except ModuleNotFoundError:
        raise needs_extra() from None
    version = ".".join(altair.SCHEMA_VERSION.lstrip("v").split(".")[:2])
    # Its type stub asks for an argument that is optional.
    bundle: Any = vl_convert.javascript_bundle
    return str(bundle(vl_version=version)).replace("</script", "<\\/script")


def needs_extra() -> InputError:
    """What to say where altair or vl-convert is not installed."""
    return InputError("Reports need altair and vl-convert-python.", hint=install_hint("report"))


@cache
def _asset(name: str) -> str:
    return files("reconpriv.reports").joinpath(name).read_text(encoding="utf-8")


def _section(section: Section) -> str:
    charts = "".join(_figure(chart) for chart in section.charts)
    return (
        f'<section id="{section.name}"><h2>{escape(section.title)}</h2>{section.html}{charts}'
        f"{section.after}</section>"
    )


def _figure(chart: Chart) -> str:
    more = ""
    if chart.rows:
        more = f"<details><summary>As a table</summary>{table(chart.head, chart.rows)}</details>"
    return (
        f'<figure><div class="chart" id="{chart.name}"></div>'
        f"<figcaption>{escape(chart.caption)}</figcaption>{more}</figure>"
    )


def paragraph(text: str, kind: str = "") -> str:
    """A paragraph of plain text."""
    return f'<p class="{kind}">{words(text)}</p>' if kind else f"<p>{words(text)}</p>"


def words(text: str) -> str:
    """Plain text as HTML; what stands between backticks is code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text))


def figures(pairs: Iterable[tuple[str, str, str]]) -> str:
    """Large numbers with their names and a remark."""
    cards = "".join(
        f"<div><dt>{escape(name)}</dt><dd>{escape(value)}"
        f"{f'<small>{escape(remark)}</small>' if remark else ''}</dd></div>"
        for name, value, remark in pairs
    )
    return f'<dl class="figures">{cards}</dl>'


def facts(pairs: Iterable[tuple[str, str]]) -> str:
    """Names and what they are."""
    rows = "".join(
        f'<tr><th scope="row">{escape(name)}</th><td>{words(value)}</td></tr>'
        for name, value in pairs
    )
    return f'<div class="scroll"><table class="facts"><tbody>{rows}</tbody></table></div>'


def table(head: Sequence[str], rows: Iterable[Sequence[Cell]]) -> str:
    """A table; numbers are set to the right, and a wide one scrolls by itself."""
    body = [list(row) for row in rows]
    number = [any(_is_number(row[i]) for row in body) for i in range(len(head))]
    long = [any(len(shown(row[i])) > 16 for row in body) for i in range(len(head))]
    kind = [
        'class="n"' if n else 'class="t"' if many else ""
        for n, many in zip(number, long, strict=True)
    ]
    heads = "".join(
        f'<th scope="col" {"class=n" if n else ""}>{escape(h)}</th>'
        for h, n in zip(head, number, strict=True)
    )
    lines = "".join(
        "<tr>"
        + "".join(f"<td {k}>{escape(shown(c))}</td>" for c, k in zip(row, kind, strict=True))
        + "</tr>"
        for row in body
    )
    return (
        '<div class="scroll" tabindex="0" role="region" aria-label="Table"><table>'
        f"<thead><tr>{heads}</tr></thead><tbody>{lines}</tbody></table></div>"
    )


def _is_number(cell: Cell) -> bool:
    return cell.endswith(" %") if isinstance(cell, str) else cell is not None


def copyable(command: str) -> str:
    """A command with a button that copies it."""
    return (
        f'<div class="copy"><pre tabindex="0">{escape(command)}</pre>'
        '<button type="button">Copy</button></div>'
    )


def shown(value: Cell) -> str:
    """A cell for reading."""
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:,.3g}" if abs(value) < 1000 else f"{value:,.0f}"
    return f"{value:,}" if isinstance(value, int) else value


def percent(share: float) -> str:
    """A share for reading, down to one in ten thousand."""
    if 0 < share < 1e-4:
        return "< 0.01 %"
    return f"{100 * share:.2f} %" if share < 0.01 else f"{100 * share:.1f} %"


def label(value: Any) -> str:
    """A value of the data for reading."""
    return "(missing)" if value is None else str(value)

"""The shell of a report: one HTML file with its style, scripts and data, and no network access."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from reconpriv.messages import numbers
from reconpriv.show import charts, markup
from reconpriv.show.markup import Html, script_safe, tag, words

Cell = str | int | float | None
STAMP = "INTERNAL - NOT FOR RELEASE"


@dataclass(frozen=True)
class Chart:
    """A Vega-Lite specification with the text and the table that accompany it."""

    name: str
    spec: dict[str, Any]
    caption: str
    head: tuple[str, ...] = ()
    rows: tuple[tuple[Cell, ...], ...] = ()


@dataclass(frozen=True)
class Section:
    """A heading and what is below it: HTML and charts."""

    name: str
    title: str
    parts: tuple[Html | Chart, ...]


def page(title: str, lead: Html, sections: Sequence[Section], *, internal: bool) -> str:
    """The whole file; an internal page says so on screen and on every printed sheet."""
    specs = {p.name: p.spec for s in sections for p in s.parts if isinstance(p, Chart)}
    data = json.dumps(specs, ensure_ascii=False, allow_nan=False)
    top = (
        f'@page {{ @top-center {{ content: "{STAMP}"; font: 700 9pt sans-serif;'
        " color: #b3261e; } }"
    )
    links = [tag("li", tag("a", s.title, href=f"#{s.name}")) for s in sections]
    navigation = tag("nav", tag("ul", links), aria_label="On this page")
    return markup.document(
        f"{title} ({STAMP})" if internal else title,
        tag("div", STAMP, class_="stamp", role="note") if internal else None,
        tag("div", STAMP, class_="watermark", aria_hidden="true") if internal else None,
        tag("main", tag("header", tag("h1", title), lead, navigation), map(_section, sections)),
        tag("script", Html(script_safe(data)), id="charts", type="application/json"),
        tag("script", Html(charts.browser_scripts())),
        tag("script", Html(_asset("page.js"))),
        style=_asset("style.css") + (top if internal else ""),
        meta=[
            tag("meta", http_equiv="Content-Security-Policy", content=markup.NO_NETWORK),
            tag("meta", name="robots", content="noindex"),
        ],
    )


@cache
def _asset(name: str) -> str:
    return files("reconpriv.reports").joinpath(name).read_text(encoding="utf-8")


def _section(section: Section) -> Html:
    parts = [_figure(part) if isinstance(part, Chart) else part for part in section.parts]
    return tag("section", tag("h2", section.title), parts, id=section.name)


def _figure(chart: Chart) -> Html:
    more = None
    if chart.rows:
        more = tag("details", tag("summary", "As a table"), table(chart.head, chart.rows))
    return tag(
        "figure",
        tag("div", class_="chart", id=chart.name),
        tag("figcaption", chart.caption),
        more,
    )


def paragraph(text: str, kind: str = "") -> Html:
    """A paragraph of plain text."""
    return tag("p", words(text), class_=kind or None)


def figures(pairs: Iterable[tuple[str, str, str]]) -> Html:
    """Large numbers with their names and a remark."""
    cards = [
        tag("div", tag("dt", name), tag("dd", value, tag("small", remark) if remark else None))
        for name, value, remark in pairs
    ]
    return tag("dl", cards, class_="figures")


def facts(pairs: Iterable[tuple[str, str]]) -> Html:
    """Names and values."""
    rows = [
        tag("tr", tag("th", name, scope="row"), tag("td", words(value))) for name, value in pairs
    ]
    return tag("div", tag("table", tag("tbody", rows), class_="facts"), class_="scroll")


def table(head: Sequence[str], rows: Iterable[Sequence[Cell]]) -> Html:
    """A table with numbers aligned right; a wide one scrolls by itself."""
    body = [list(row) for row in rows]
    texts = [[numbers.cell(value) for value in row] for row in body]
    kinds = []
    for i in range(len(head)):
        is_number = any(_is_number(row[i]) for row in body)
        is_long = any(len(row[i]) > 16 for row in texts)
        kinds.append({"class_": "n" if is_number else "t" if is_long else None})
    return tag(
        "div", markup.table(head, texts, kinds), class_="scroll", tabindex="0", role="region",
        aria_label="Table",
    )  # fmt: skip


def _is_number(cell: Cell) -> bool:
    return cell.endswith("%") if isinstance(cell, str) else cell is not None


def copyable(command: str) -> Html:
    """A command with a button that copies it."""
    return tag(
        "div", tag("pre", command, tabindex="0"), tag("button", "Copy", type="button"),
        class_="copy",
    )  # fmt: skip

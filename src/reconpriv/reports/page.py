"""The shell of a report: one HTML file with its style, scripts and data, and no network access."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from reconpriv.messages.numbers import cell
from reconpriv.policy.promise import AGAINST, sentences
from reconpriv.show import markup
from reconpriv.show.charts import drawing as charts
from reconpriv.show.document import Document, Facts, Field, Paragraph, Plot, number
from reconpriv.show.html import as_html
from reconpriv.show.markup import Html, script_safe, tag

# The title of the section with :func:`promised`.
PROMISED = "What is promised, and against whom"
STAMP = "INTERNAL - NOT FOR RELEASE"


@dataclass(frozen=True)
class Section:
    """A heading, which the page links to, and the document below it."""

    name: str
    title: str
    parts: Document


def page(title: str, lead: Document, sections: Sequence[Section], *, internal: bool) -> str:
    """The whole file; an internal page says so on screen and on every printed sheet."""
    specs = {p.name: p.spec for s in sections for p in s.parts if isinstance(p, Plot)}
    data = json.dumps(specs, ensure_ascii=False, allow_nan=False)
    top = (
        f'@page {{ @top-center {{ content: "{STAMP}"; font: 700 9pt sans-serif;'
        " color: #b3261e; } }"
    )
    links = [tag("li", tag("a", s.title, href=f"#{s.name}")) for s in sections]
    navigation = tag("nav", tag("ul", links), aria_label="On this page")
    body = [tag("section", tag("h2", s.title), as_html(s.parts), id=s.name) for s in sections]
    return markup.document(
        f"{title} ({STAMP})" if internal else title,
        tag("div", STAMP, class_="stamp", role="note") if internal else None,
        tag("div", STAMP, class_="watermark", aria_hidden="true") if internal else None,
        tag("main", tag("header", tag("h1", title), as_html(lead), navigation), body),
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


def promised(policy: Mapping[str, Any], *more: tuple[str, str]) -> Document:
    """What a policy promises in two sentences, and against whom; ``more`` are further facts."""
    said = [Paragraph(text, "promise", name) for name, text in sentences(policy)]
    return [*said, Facts([("Against", AGAINST), *more])]


def note(text: str) -> Paragraph:
    """What explains the parts above it."""
    return Paragraph(text, "note")


def short(name: str) -> Field:
    """A column of numbers of any size, in few digits."""
    return number(name, cell)

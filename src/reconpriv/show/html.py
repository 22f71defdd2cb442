"""A document as HTML: for a notebook, in its colours, and for pages with a style sheet."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from reconpriv.messages.numbers import percent, unbroken
from reconpriv.show import markup
from reconpriv.show.charts import palette
from reconpriv.show.charts.drawing import drawn
from reconpriv.show.document import (
    Bar,
    Cards,
    Closed,
    Document,
    Facts,
    Field,
    Grid,
    Heading,
    Headline,
    OnPage,
    OnTerminal,
    Paragraph,
    Plot,
    Profiles,
    ShareBar,
    Snippet,
    Whisker,
)
from reconpriv.show.markup import Html, join, lines, tag, words

_WIDTH, _HEIGHT = 220, 14
_LONG = 16  # letters from which on the cells of a column may wrap
_LEFT = {"style": "text-align:left"}


@dataclass(frozen=True)
class Dress:
    """How a place looks: the attributes of what has a role in a document.

    ``frame`` is put around a table that may be too wide; a plot is ``drawn`` by this function.
    """

    attributes: Mapping[str, Mapping[str, Any]]
    plot: Callable[[Plot], Html]
    frame: Mapping[str, Any] = field(default_factory=dict)

    def __call__(self, role: str) -> Mapping[str, Any]:
        """The attributes of a role."""
        return self.attributes.get(role, {})


def _tone(colour: str) -> dict[str, str]:
    return {"style": f"font-weight:600;color:{colour}"}


def static(plot: Plot) -> Html:
    """A plot as SVG, drawn here: it needs no script."""
    return Html(drawn(plot.spec))


def _place(plot: Plot) -> Html:
    """Where the scripts of a page draw a plot."""
    return tag("div", class_="chart", id=plot.name)


NOTEBOOK = Dress(
    {
        "verdict ": _tone("inherit"), "verdict good": _tone(palette.GOOD),
        "verdict fair": _tone(palette.FAIR), "verdict bad": _tone(palette.BAD),
        "promise": {"style": "margin:0.5em 0;padding-left:0.9em;border-left:4px solid"
                    f" {palette.BLUE}"},
        "figure": {"style": "font-size:1.6em;font-weight:600;padding-right:0.5em"},
        "note": {"style": "font-size:smaller"}, "text": _LEFT, "long": _LEFT,
        "name": {"style": "text-align:left;font-weight:normal"},
        "number": {"style": "text-align:right;white-space:nowrap;"
                   "font-variant-numeric:tabular-nums"},
    },
    static,
)  # fmt: skip
_CLASSES = {"number": "n", "long": "t"}
_ROLES = ("lead", "note", "promise", "number", "long", "facts",
          "verdict ", "verdict good", "verdict fair", "verdict bad")  # fmt: skip
PAGE = Dress(
    {role: {"class_": _CLASSES.get(role, role.strip())} for role in _ROLES},
    _place,
    {"class_": "scroll", "tabindex": "0", "role": "region", "aria_label": "Table"},
)


def as_html(shown: Document, dress: Dress = PAGE) -> Html:
    """The parts of a document that pages show."""
    return join(_RENDERERS[type(part)](part, dress) for part in shown)


def notebook_html(shown: Document) -> str:
    """Everything that a notebook shows of a result."""
    body = as_html(shown, NOTEBOOK)
    return tag("div", body, class_="reconpriv", style="max-width:60em")


def _headline(part: Headline, dress: Dress) -> Html:
    first = tag("p", words(part.text), **dress(f"verdict {part.tone}"))
    return join(first, (tag("p", words(text)) for text in part.rest))


def _paragraph(part: Paragraph, dress: Dress) -> Html:
    named = tag("b", f"{part.name}: ") if part.name else None
    return tag("p", named, words(unbroken(part.text)), **dress(part.kind))


def _facts(part: Facts, dress: Dress) -> Html:
    quotes = [
        _paragraph(Paragraph(value, "promise", name.capitalize()), dress)
        for name, value in part.rows
        if name in part.quoted
    ]
    rows = [
        tag("tr", tag("th", name, scope="row", **dress("name")),
            tag("td", words(value), **dress("text")))
        for name, value in part.rows if name not in part.quoted
    ]  # fmt: skip
    table = tag("table", tag("tbody", rows), **dress("facts"))
    return join(quotes, tag("div", table, class_="scroll") if dress.frame else table)


def _grid(part: Grid, dress: Dress) -> Html:
    cells = [
        [_PICTURES[type(value)](value) if one.picture else lines(one.written(value))
         for one, value in zip(part.fields, row, strict=True)]
        for row in part.rows
    ]  # fmt: skip
    roles = [dress(_role(one, [row[i] for row in cells])) for i, one in enumerate(part.fields)]
    table = markup.table(
        [one.name for one in part.fields] if part.headed else [], cells, roles,
        caption=tag("caption", part.title, **dress("text"))
        if part.title and not part.closed else None,
    )  # fmt: skip
    shown = join(
        tag("div", table, **dress.frame) if dress.frame else table,
        (tag("p", line, **dress("note")) for line in part.note.splitlines()),
    )
    return tag("details", tag("summary", part.title), shown) if part.closed else shown


def _role(one: Field, cells: Sequence[str]) -> str:
    """How a column is aligned, and whether it may wrap."""
    if one.right:
        return "number"
    is_long = not one.picture and any(len(cell) > _LONG for cell in cells)
    return "long" if is_long else "text"


def _cards(part: Cards, dress: Dress) -> Html:
    cards = [
        tag("div", tag("dt", one.name),
            tag("dd", tag("span", one.figure, **dress("figure")),
                tag("small", one.remark) if one.remark else None),
            class_=one.tone or None)
        for one in part.cards
    ]  # fmt: skip
    return tag("dl", cards, class_="figures")


def _plot(part: Plot, dress: Dress) -> Html:
    table = part.table and tag("details", tag("summary", "As a table"), _grid(part.table, dress))
    return tag("figure", dress.plot(part), tag("figcaption", part.caption), table or None)


def _profiles(part: Profiles, _: Dress) -> Html:
    def row(name: str, share: float, remark: str) -> Html:
        filled = tag("i", style=f"width:{100 * share:.1f}%;background:{part.colour}")
        track = tag("span", filled, class_="track")
        return tag("div", tag("span", name), track, tag("span", percent(share)), class_="row",
                   title=f"{name}: {remark}")  # fmt: skip

    columns = [
        tag("section", tag("h3", name), (row(*bar) for bar in bars)) for name, bars in part.columns
    ]
    return tag("div", columns, class_="attributes")


def _snippet(part: Snippet, _: Dress) -> Html:
    button = tag("button", "Copy", type="button")
    return tag("div", tag("pre", part.text, tabindex="0"), button, class_="copy")


def _svg(said: str, *inner: Html) -> Html:
    return tag(
        "svg", tag("title", said), *inner, width=_WIDTH, height=_HEIGHT,
        viewBox=f"0 0 {_WIDTH} {_HEIGHT}", role="img", aria_label=said,
        style="vertical-align:middle",
    )  # fmt: skip


def _rect(share: float, colour: str, opacity: float) -> Html:
    wide = f"{_WIDTH * share:.1f}"
    return tag("rect", width=wide, height=_HEIGHT, fill=colour, fill_opacity=opacity)


def _bar(one: Bar) -> Html:
    return _svg(f"{one.share:.0%} of the longest", _rect(one.share, palette.INK, 0.55))


def _share_bar(part: ShareBar, _: Dress) -> Html:
    said = f"{percent(part.share)} of the records {part.are}"
    picture = _svg(said, _rect(1, palette.INK, 0.15), _rect(part.share, part.colour, 1))
    return tag("div", picture, " ", tag("small", said))


def _whisker(one: Whisker) -> Html:
    """The interval, clipped to the line."""
    ends = (one.low, one.value, one.high)
    low_at, at, high_at = (_WIDTH * min(max(x / one.top, 0.0), 1.0) for x in ends)
    middle = _HEIGHT / 2

    def line(start: float, end: float, **more: object) -> Html:
        return tag("line", x1=f"{start:.1f}", x2=f"{end:.1f}", y1=middle, y2=middle, **more)

    place = f"{min(max(at, 4.0), _WIDTH - 4.0):.1f}"
    return _svg(
        f"{one.low:,.4g} to {one.high:,.4g} on a line from 0 to {one.top:,.4g}",
        line(0, _WIDTH, stroke=palette.INK, stroke_opacity=0.25),
        line(low_at, high_at, stroke=one.colour, stroke_width=4, stroke_opacity=0.6),
        tag("circle", cx=place, cy=middle, r=4, fill=one.colour),
    )


_PICTURES: dict[type, Callable[[Any], Html]] = {
    Bar: _bar,
    Whisker: _whisker,
    type(None): lambda _: Html(""),
}
_RENDERERS: dict[type, Callable[[Any, Dress], Html]] = {
    Headline: _headline,
    Heading: lambda part, _: tag("h3", part.text),
    Paragraph: _paragraph,
    Facts: _facts,
    Grid: _grid,
    ShareBar: _share_bar,
    Whisker: lambda part, _: _whisker(part),
    Cards: _cards,
    Plot: _plot,
    Profiles: _profiles,
    Snippet: _snippet,
    Closed: lambda part, dress: tag(
        "details", tag("summary", part.title), as_html(part.parts, dress)
    ),
    OnPage: lambda part, dress: as_html(part.parts, dress),
    OnTerminal: lambda *_: Html(""),
}

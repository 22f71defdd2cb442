"""The pieces of what a notebook shows: self-contained, in the colours of the page around it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.table import Table as RichTable

from reconpriv.messages.numbers import percent, unbroken
from reconpriv.show import markup, palette
from reconpriv.show.markup import Html, join, lines, tag, words

TONES = {"good": palette.GOOD, "fair": palette.FAIR, "bad": palette.BAD}
LEFT = {"style": "text-align:left"}
RIGHT = {"style": "text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums"}
_WIDTH, _HEIGHT = 220, 14


def headed_tables(
    verdict: str, colour: str, tables: Iterable[RichTable], *, before: str = "", after: str = ""
) -> str:
    """A bold line with tables below it, and what comes before and after."""
    shade = {"green": palette.GOOD, "red": palette.BAD}.get(colour, colour)
    return box(
        tag("p", before) if before else None,
        headline(verdict, shade),
        tag("p", after) if after else None,
        map(html_table, tables),
    )


def html_table(table: RichTable, pictures: Sequence[Html] = ()) -> Html:
    """A rich table as an HTML table, with a picture at the end of each row."""
    title, note = str(table.title or "").strip(), table.caption
    columns = [RIGHT if column.justify == "right" else LEFT for column in table.columns]
    head = [str(column.header) for column in table.columns] if table.show_header else []
    body: list[list[Html]] = [
        [lines(getattr(cell, "plain", None) or str(cell)) for cell in row]
        for row in zip(*(column.cells for column in table.columns), strict=True)
    ]
    if pictures:
        columns, head = [*columns, LEFT], [*head, ""]
        body = [[*row, picture] for row, picture in zip(body, pictures, strict=True)]
    caption = tag("caption", title, **LEFT) if title else None
    return join(
        markup.table(head, body, columns, caption=caption),
        tag("p", tag("small", str(note))) if note else None,
    )


def box(*parts: markup.Child) -> str:
    """Everything that a notebook shows of a result."""
    return tag("div", *parts, class_="reconpriv", style="max-width:60em")


def closed(title: str, inner: Html) -> Html:
    """What is shown only when its title is clicked."""
    return tag("details", tag("summary", title), inner)


def headline(text: str, colour: str = "inherit") -> Html:
    """The verdict, in bold."""
    return tag("p", words(text), style=f"font-weight:600;color:{colour}")


def quoted(name: str, text: str) -> Html:
    """A statement that stands out from the figures around it."""
    line = f"margin:0.5em 0;padding-left:0.9em;border-left:4px solid {palette.BLUE}"
    return tag("p", tag("b", f"{name}: "), words(unbroken(text)), style=line)


def _svg(said: str, *inner: Html) -> Html:
    return tag(
        "svg", tag("title", said), *inner, width=_WIDTH, height=_HEIGHT,
        viewBox=f"0 0 {_WIDTH} {_HEIGHT}", role="img", aria_label=said,
        style="vertical-align:middle",
    )  # fmt: skip


def _rect(share: float, colour: str, opacity: float) -> Html:
    wide = f"{_WIDTH * share:.1f}"
    return tag("rect", width=wide, height=_HEIGHT, fill=colour, fill_opacity=opacity)


def bar(share: float) -> Html:
    """A bar as long as its share of the longest."""
    return _svg(f"{share:.0%} of the longest", _rect(share, palette.INK, 0.55))


def share_bar(share: float, colour: str, are: str) -> Html:
    """A share of the records as a bar, with a sentence."""
    said = f"{percent(share)} of the records {are}"
    picture = _svg(said, _rect(1, palette.INK, 0.15), _rect(share, colour, 1))
    return tag("div", picture, " ", tag("small", said))


def whisker(low: float, value: float, high: float, top: float, colour: str = palette.BLUE) -> Html:
    """An interval with its value on a line from 0 to ``top``, clipped to that range."""
    low_at, at, high_at = (_WIDTH * min(max(x / top, 0.0), 1.0) for x in (low, value, high))
    middle = _HEIGHT / 2

    def line(start: float, end: float, **more: object) -> Html:
        return tag("line", x1=f"{start:.1f}", x2=f"{end:.1f}", y1=middle, y2=middle, **more)

    return _svg(
        f"{low:,.4g} to {high:,.4g} on a line from 0 to {top:,.4g}",
        line(0, _WIDTH, stroke=palette.INK, stroke_opacity=0.25),
        line(low_at, high_at, stroke=colour, stroke_width=4, stroke_opacity=0.6),
        tag("circle", cx=f"{min(max(at, 4.0), _WIDTH - 4.0):.1f}", cy=middle, r=4, fill=colour),
    )

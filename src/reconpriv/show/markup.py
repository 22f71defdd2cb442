"""HTML from elements. Text is escaped; only what these functions made, or ``Html``, is markup."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

# Nothing may be fetched; Vega compiles its expressions, which needs 'unsafe-eval'.
NO_NETWORK = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline' 'unsafe-eval';"
    " img-src data:"
)
_VOID = frozenset({"br", "hr", "img", "link", "meta"})


class Html(str):
    """Text that is already markup. Adding to it or formatting it gives plain text again."""

    __slots__ = ()


Child = str | int | float | None | Iterable["Child"]


def join(*children: Child) -> Html:
    """Concatenate children, leaving out None."""
    return Html("".join(_written(child) for child in children))


def _written(child: Child) -> str:
    if child is None:
        return ""
    if isinstance(child, Html):
        return child
    if isinstance(child, str | int | float):
        return escape(str(child), quote=False)
    return join(*child)


def tag(name: str, /, *children: Child, **attributes: Any) -> Html:
    """An element: ``class_`` is class, ``aria_label`` is aria-label; None and False are omitted."""
    said = "".join(_attribute(key, value) for key, value in attributes.items())
    end = "" if name in _VOID else f"{join(*children)}</{name}>"
    return Html(f"<{name}{said}>{end}")


def _attribute(key: str, value: Any) -> str:
    if value is None or value is False:
        return ""
    name = key.rstrip("_").replace("_", "-")
    return f" {name}" if value is True else f' {name}="{escape(str(value))}"'


def words(text: str) -> Html:
    """Plain text, with text between backticks as code."""
    return Html(re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text, quote=False)))


def lines(text: str) -> Html:
    """Plain text with its line breaks."""
    return Html("<br>".join(escape(line, quote=False) for line in text.splitlines()))


def script_safe(text: str) -> str:
    """JSON that no value can end early: a data value may contain a closing script tag."""
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def table(
    head: Sequence[Child],
    rows: Iterable[Sequence[Child]],
    columns: Sequence[Mapping[str, Any]] = (),
    *,
    caption: Html | None = None,
    **attributes: Any,
) -> Html:
    """A table; ``columns`` are the attributes of the cells in each column, headings included."""
    body = [list(row) for row in rows]
    columns = columns or [{}] * max([len(head), *map(len, body)], default=0)
    heads = [tag("th", text, scope="col", **c) for text, c in zip(head, columns, strict=False)]
    return tag(
        "table",
        caption,
        tag("thead", tag("tr", heads)) if heads else None,
        tag(
            "tbody",
            (tag("tr", [tag("td", x, **c) for x, c in zip(r, columns, strict=True)]) for r in body),
        ),
        **attributes,
    )


def document(title: str, *body: Child, style: str, meta: Sequence[Html] = ()) -> str:
    """A whole page that fits a phone and declares its language and encoding."""
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        meta,
        tag("title", title),
        tag("style", Html(style)),
    )
    return f"<!doctype html>\n{tag('html', head, tag('body', *body), lang='en')}\n"

"""Small pieces of the page that several steps use."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from htmltools import HTML, Tag, TagChild, tags
from shiny import ui

from reconpriv.show.document import Part
from reconpriv.show.html import Dress, as_html, static


def card(title: str, *children: TagChild, intro: str = "", class_: str = "") -> Tag:
    """A titled block."""
    return tags.section(
        tags.h3(title),
        tags.p(intro, class_="muted") if intro else None,
        *children,
        class_=f"card {class_}".strip(),
    )


def button(id: str, label: TagChild, *, primary: bool = False, disabled: bool = False) -> Tag:
    """A button whose clicks Shiny counts."""
    return tags.button(
        label,
        id=id,
        type="button",
        class_=f"button action-button{' primary' if primary else ''}",
        disabled="" if disabled else None,
    )


def download_link(id: str, label: str) -> Tag:
    """A small button that downloads a file."""
    return ui.download_button(id, label).add_class("button small")


def choice(id: str, label: str, options: Mapping[str, str], chosen: str, help: str = "") -> Tag:
    """A plain select with its label; ``help`` explains it to who asks."""
    return tags.div(
        tags.div(
            tags.label(label, {"for": id}), why(label, help) if help else None, class_="named"
        ),
        select(id, options, chosen),
        class_="field",
    )


def field(id: str, label: str, *more: TagChild, **attributes: Any) -> Tag:
    """A text box with its label, and what is ``more`` below it."""
    shared = {"type": "text", "spellcheck": "false", "autocomplete": "off"}
    return tags.div(
        tags.label(label, {"for": id}), tags.input(id=id, **shared | attributes), *more,
        class_="field",
    )  # fmt: skip


def check(id: str, label: TagChild, help: str, *, checked: bool = False) -> Tag:
    """A checkbox with its label and a line of help below."""
    return tags.label(
        tags.input(id=id, type="checkbox", checked="" if checked else None),
        titled(label, help),
        class_="check",
    )


def titled(title: TagChild, help: str) -> Tag:
    """What can be chosen, with a line of help below."""
    return tags.span(title, tags.span(help, class_="muted"))


def options(
    kind: str,
    id: str,
    choices: Mapping[str, TagChild],
    ticked: Collection[str] = (),
    *,
    look: str = "check",
    **attributes: str,
) -> Tag:
    """A group of inputs of a ``kind`` (radio or checkbox), read by Shiny as one."""
    attributes["class_"] = f"shiny-input-{kind}group {attributes.get('class_', '')}".strip()
    return tags.div(
        *(
            tags.label(
                tags.input(
                    type=kind, name=id, value=value, checked="" if value in ticked else None
                ),
                tags.span(content),
                class_=look,
            )
            for value, content in choices.items()
        ),
        id=id,
        role="group",
        **attributes,
    )


def select(
    id: str, options: Mapping[str, str], chosen: str, *, label: str | None = None, class_: str = ""
) -> Tag:
    """The bare select; ``label`` names it if no label element does."""
    return tags.select(
        *(
            tags.option(text, value=value, selected="" if value == chosen else None)
            for value, text in options.items()
        ),
        {"aria-label": label},
        id=id,
        class_=class_ or None,
    )


def dial(
    id: str,
    symbol: str,
    label: str,
    help: str,
    value: float | None,
    span: tuple[float, float, float],
) -> Tag:
    """A slider with a number beside it; either moves the other (studio.js)."""
    low, high, step = span
    named = f"{label} {symbol}" if symbol else label
    shared: dict[str, str | float | bool | HTML | None] = {
        "data-dial": id,
        "data-shiny-no-bind-input": "",
        "aria-describedby": f"{id}_fault",
    }
    return tags.div(
        tags.div(
            tags.label(
                tags.span(symbol, class_="symbol") if symbol else None, " ", label,
                {"for": f"{id}_number"},
            ),
            why(label, help),
            class_="named",
        ),
        tags.input(
            shared, {"aria-label": f"{named}, slider"}, type="range", id=f"{id}_range",
            min=low, max=high, step=step, value=value,
        ),
        tags.input(shared, type="number", id=f"{id}_number", min=0, step=step, value=value),
        tags.p(id=f"{id}_fault", class_="fault"),
        class_="dial",
    )  # fmt: skip


def notice(text: str, kind: str = "error", *, lead: str = "") -> Tag | None:
    """An explanation at the place it concerns; announced to screen readers."""
    if not text:
        return None
    marks = {"error": "✕", "warning": "!", "good": "✓", "info": "i"}
    return tags.div(
        tags.span(marks[kind], {"aria-hidden": "true"}, class_="mark"),
        tags.p(tags.strong(lead) if lead else None, text),
        class_=f"notice {kind}",
    )


def alert_place(id: str) -> Tag:
    """Where explanations for one place appear."""
    return tags.div(ui.output_ui(id), role="alert", class_="alert-place")


def result(
    content: TagChild, *, current: bool, why: str = "Recomputing…", edit: int | None = None
) -> Tag:
    """A result; one for another table or policy is greyed out, with the reason.

    ``edit`` counts the changes of controls that the result knows of: the page greys it at once if
    there were more (studio.js).
    """
    busy = not current and why.endswith("…")
    return tags.div(
        tags.p(why, class_=f"recomputing{' working' if busy else ''}"),
        tags.div(content, class_="old"),
        {"aria-busy": "true" if busy else None, "data-edit": None if edit is None else str(edit)},
        class_="result" if current else "result stale",
    )


def facts(pairs: Sequence[tuple[str, TagChild]]) -> Tag:
    """Names and values, one row each."""
    return tags.dl(
        *(tags.div(tags.dt(name), tags.dd(value)) for name, value in pairs), class_="facts"
    )


def grid(
    head: Sequence[str], rows: Sequence[Sequence[TagChild]], *, label: str, numbers: int = 0
) -> Tag:
    """A table whose last ``numbers`` columns hold numbers."""
    width = len(head)
    columns = [(name, "number" if i >= width - numbers else None) for i, name in enumerate(head)]

    def line(row: Sequence[TagChild]) -> Tag:
        cells = zip(row, columns, strict=True)
        return tags.tr(*(tags.td(cell, {"data-head": h}, class_=c) for cell, (h, c) in cells))

    return tags.div(
        tags.table(
            tags.thead(tags.tr(*(tags.th(h, scope="col", class_=c) for h, c in columns))),
            tags.tbody(*map(line, rows)),
        ),
        {"aria-label": label},
        class_="grid",
        role="region",
        tabindex="0",
    )


_DRESS = Dress(
    {"number": {"class_": "number"}, "note": {"class_": "help"}},
    static,
    {"class_": "grid wide", "tabindex": "0", "role": "region", "aria_label": "Table"},
)


def document(*parts: Part) -> HTML:
    """Parts of a result, as every surface shows them."""
    return HTML(as_html(parts, _DRESS))


def why(term: str, explanation: str) -> Tag:
    """A question mark that explains a term in a sentence."""
    return tags.details(
        tags.summary("?", {"aria-label": f"What is {term}?"}),
        tags.p(explanation, class_="help"),
        class_="why",
    )


def footer(step: int, next_label: str | None = None, *, note: str = "") -> Tag:
    """Back and continue, always in sight, and above them what is to be said about the step."""
    return tags.div(
        alert_place(note) if note else None,
        tags.div(
            button(f"back_{step}", "Back") if step > 1 else None,
            button(f"next_{step}", next_label, primary=True) if next_label else None,
            class_="ways",
        ),
        class_="footer",
    )

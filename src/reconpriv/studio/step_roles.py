"""Step 2: what each column is, and how numbers are binned."""

from __future__ import annotations

from typing import Any

from htmltools import Tag, TagList, tags
from shiny import Inputs, reactive, render, req, ui

import reconpriv as rp
from reconpriv.studio.desk import Opened, Settled, explain
from reconpriv.studio.jobs import Job
from reconpriv.studio.live import Live
from reconpriv.studio.parts import alert_place, choice, footer, grid, notice, select
from reconpriv.studio.plan import Roles

ROLES = {"public": "Public", "sensitive": "Sensitive", "drop": "Leave out"}
MISSING = {"refuse": "Stop and tell me", "drop": "Leave them out", "value": "A value of its own"}


def panel() -> Tag:
    """The static part."""
    return tags.div(
        tags.p(
            tags.strong("Sensitive"), " is the one column to protect; it will be randomised. ",
            tags.strong("Public"), " columns are published as they are, and are what an adversary"
            " is taken to know about a person. ", tags.strong("Leave out"),
            " names, numbers and anything nearly unique.",
            class_="lead",
        ),
        ui.output_ui("columns"),
        alert_place("roles_note"),
        footer(2, "Continue to policy"),
    )  # fmt: skip


def serve(input: Inputs, live: Live) -> None:
    """The reactive part."""
    note = live.note("roles")

    def done(settled: Settled) -> None:
        note.set("")
        live.settled.set(settled)
        live.desk.step = 3
        live.step.set(3)

    job: Job[Settled] = Job(live.desk.pool, done, lambda error: note.set(explain(error)))

    @render.ui
    def columns() -> TagList:
        opened = live.opened()
        req(opened is not None)
        assert opened is not None
        return roles_form(opened, live.desk.draft)

    @reactive.effect
    def _() -> None:
        opened = live.opened()
        req(opened is not None)
        assert opened is not None
        live.desk.draft |= _read_form(input, opened)

    @reactive.effect
    @reactive.event(input.next_2)
    async def _() -> None:
        opened = live.opened()
        if opened is None:
            return
        try:
            roles = chosen_roles(_read_form(input, opened), opened)
        except rp.ReconprivError as error:
            note.set(explain(error))
            return
        settled = live.settled()
        if settled is not None and (settled.opened, settled.roles) == (opened, roles):
            note.set("")
            await live.go(3)
        else:
            job.start(lambda: live.desk.settle(opened, roles))

    @render.ui
    def roles_note() -> Tag | None:
        if job.busy():
            return tags.p("Counting groups…", class_="working")
        return notice(note())


def _read_form(input: Inputs, opened: Opened) -> dict[str, Any]:
    """The form as it stands: role and bin width by column name."""
    columns, n = opened.summary.columns, opened.number
    return {
        "roles": {c.name: input[f"role_{n}_{i}"]() for i, c in enumerate(columns) if c.publishable},
        "widths": {c.name: input[f"width_{n}_{i}"]() for i, c in enumerate(columns) if c.numeric},
        "missing": input.missing(),
    }


def chosen_roles(form: dict[str, Any], opened: Opened) -> Roles:
    """The roles, or an explanation of what is wrong with them."""
    from reconpriv.errors import InputError  # noqa: PLC0415 - only where it is raised

    roles: dict[str, str] = form["roles"]
    sensitive = [name for name, role in roles.items() if role == "sensitive"]
    if len(sensitive) != 1:
        raise InputError(
            "Choose exactly one column as sensitive.",
            hint="It is the one whose values are to be protected.",
        )
    public = tuple(name for name, role in roles.items() if role == "public")
    if not public:
        raise InputError(
            "Make at least one column public.", hint="Groups are made of public columns."
        )
    widths = {}
    for column in opened.summary.columns:
        width = form["widths"].get(column.name)
        if roles.get(column.name) == "drop" or not width:
            continue
        if not width > 0:
            raise InputError(f"The bin width of {column.name!r} must be above 0; got {width:g}.")
        widths[column.name] = float(width)
    return Roles(sensitive[0], public, form["missing"], widths)


def roles_form(opened: Opened, draft: dict[str, Any]) -> TagList:
    """A row a column, as it was left where the draft knows it."""
    roles, widths = draft.get("roles", {}), draft.get("widths", {})
    rows = []
    for i, column in enumerate(opened.summary.columns):
        field = f"{opened.number}_{i}"
        role = roles.get(column.name) or _first_role(column, draft.get("sensitive"))
        width = widths.get(column.name)
        rows.append(
            (
                tags.div(
                    tags.strong(column.name),
                    tags.span("identifier?", class_="tag warning") if column.identifier else None,
                ),
                column.kind,
                _values(column),
                select(f"role_{field}", ROLES, role, label=f"Role of {column.name}", class_="role")
                if column.publishable
                else "cannot be published",
                tags.input(
                    {"aria-label": f"Bin width of {column.name}"}, id=f"width_{field}",
                    type="number", min=0, step="any", placeholder="none", value=width,
                )
                if column.numeric
                else tags.span("–", {"aria-hidden": "true"}, class_="muted nothing"),
            )
        )  # fmt: skip
    head = ("Column", "Kind", "Values", "Role", "Bin width")
    return TagList(
        grid(head, rows, label="Roles of the columns"),
        tags.p(
            "A bin width of 10 turns 37 into 30: wider bins make larger groups and fewer of them.",
            class_="help",
        ),
        choice(
            "missing",
            "Records without a sensitive value",
            MISSING,
            draft.get("missing", "refuse"),
        ),
    )


def _first_role(column: Any, sensitive: str | None) -> str:
    if column.name == sensitive:
        return "sensitive"
    return "drop" if column.identifier else "public"


def _values(column: Any) -> Tag:
    if not column.publishable:
        return tags.span("cannot be published", class_="muted")
    span = (
        f"{_number(column.low)} to {_number(column.high)}"
        if column.numeric
        else ", ".join(column.common)
    )
    missing = f", {column.missing:,} missing" if column.missing else ""
    return tags.div(
        tags.span(f"{column.distinct:,} values{missing}"),
        tags.span(span, class_="sample", title=span),
    )


def _number(text: str | None) -> str:
    """Thousands apart, where the number is whole."""
    return f"{int(text):,}" if text and text.lstrip("-").isdigit() else str(text)

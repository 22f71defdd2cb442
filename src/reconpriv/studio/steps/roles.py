"""Step 2: what each column is, how numbers are binned and texts grouped."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from typing import Any

from htmltools import Tag, TagList, tags
from shiny import Inputs, reactive, render, ui

import reconpriv as rp
from reconpriv.errors import InputError
from reconpriv.studio.pieces.parts import alert_place, choice, footer, grid, notice, select
from reconpriv.studio.pieces.proposed import Proposed, proposal_of, serve_giveaways
from reconpriv.studio.pieces.remedy_words import MISSING, ROWS_PER_PERSON
from reconpriv.studio.work.background import Job
from reconpriv.studio.work.live import Live, present
from reconpriv.studio.work.plan import DeclaredRoles
from reconpriv.studio.work.workspace import LoadedTable, Opened, explain

ROLES = {
    "public": "Public",
    "sensitive": "Sensitive",
    "person": "Person’s number",
    "drop": "Leave out",
}

_HELP = (
    "Bins: a width (", tags.code("10"), " turns 37 into 30 to 39), borders (",
    tags.code("0, 18, 65"), " makes 0 to 17, 18 to 64, 65 or more; with ", tags.code("top:99"),
    " after them, the last is 65 to 99), or ", tags.code("quantiles:5"),
    ", whose borders are read off the data and published; for dates ", tags.code("month"), ", ",
    tags.code("quarter"), " or ", tags.code("year"), ". Groups: one line per value, ",
    tags.code("value,group"), "; ", tags.code("*,group"), " takes all other values. Fewer values"
    " make larger groups of people; after that, only whole bins can be asked about.",
)  # fmt: skip


def panel() -> Tag:
    """The static part."""
    return tags.div(
        tags.p(
            tags.strong("Sensitive"), " is the one column to protect; it will be randomised. ",
            tags.strong("Public"), " columns are published as they are, and are what an adversary"
            " is assumed to know about a person. ", tags.strong("Person’s number"),
            " is the column that says who a row is about; it is never published. ",
            tags.strong("Leave out"), " names, codes and anything nearly unique.",
            class_="lead",
        ),
        ui.output_ui("columns"),
        tags.div(ui.output_ui("giveaway_note"), {"aria-live": "polite"}),
        alert_place("roles_note"),
        footer(2, "Continue to policy"),
    )  # fmt: skip


def serve(input: Inputs, live: Live) -> None:
    """The reactive part."""
    note = live.note("roles")

    def done(loaded: LoadedTable) -> None:
        note.set("")
        live.loaded.set(loaded)
        live.workspace.step = 3
        live.step.set(3)

    job: Job[LoadedTable] = Job(live.workspace.pool, done, lambda error: note.set(explain(error)))

    @render.ui
    def columns() -> TagList:
        opened, draft = present(live.opened()), live.workspace.draft
        return roles_form(opened, draft, proposal_of(opened, draft))

    @reactive.effect
    def _() -> None:
        live.workspace.draft |= _read_form(input, present(live.opened()))

    def roles_now() -> dict[str, str]:
        opened = live.opened()
        return {} if opened is None else _read_form(input, opened)["roles"]

    serve_giveaways(live, roles_now)

    @reactive.effect
    @reactive.event(input.next_2)
    async def _() -> None:
        opened = present(live.opened())
        try:
            roles = chosen_roles(_read_form(input, opened))
        except rp.ReconprivError as error:
            note.set(explain(error))
            return
        loaded = live.loaded()
        if loaded is not None and (loaded.opened, loaded.roles) == (opened, roles):
            note.set("")
            await live.go(3)
        else:
            job.start(lambda: live.workspace.load(opened, roles))

    @render.ui
    def roles_note() -> Tag | None:
        if job.busy():
            return tags.p("Counting groups…", class_="working")
        return notice(note())


def _read_form(input: Inputs, opened: Opened) -> dict[str, Any]:
    """The form's current state: role, bins and groups by column name."""
    columns, n = list(enumerate(opened.summary.columns)), opened.number
    return {
        "roles": {c.name: input[f"role_{n}_{i}"]() for i, c in columns if c.publishable},
        "bins": {c.name: input[f"bins_{n}_{i}"]() for i, c in columns if _has_bins(c)},
        "groups": {c.name: input[f"groups_{n}_{i}"]() for i, c in columns if _is_text(c)},
        "missing": input.missing(),
        "rows_per_person": input.rows_per_person(),
    }


def chosen_roles(form: dict[str, Any]) -> DeclaredRoles:
    """The roles, or an explanation of what is wrong with them."""
    sensitive, person, public = (
        [name for name, role in form["roles"].items() if role == wanted]
        for wanted in ("sensitive", "person", "public")
    )
    if len(sensitive) != 1:
        raise InputError(
            "Choose exactly one column as sensitive.",
            hint="It is the one whose values are to be protected.",
        )
    if len(person) > 1:
        raise InputError("Choose at most one column as the person’s number.")
    if not public:
        raise InputError(
            "Make at least one column public.", hint="Groups are made of public columns."
        )
    kept = {*sensitive, *public}
    bins = {n: said.strip() for n, said in form["bins"].items() if n in kept and said.strip()}
    groups = {
        name: read_groups(name, said)
        for name, said in form["groups"].items()
        if name in kept and said.strip()
    }
    rows = form["rows_per_person"] if person else "refuse"
    return DeclaredRoles(
        sensitive[0], tuple(public), form["missing"], bins, groups, "".join(person), rows
    )


def read_groups(column: str, text: str) -> dict[str, str]:
    """Lines of value,group as a dictionary; * stands for all other values."""
    found: dict[str, str] = {}
    for number, row in enumerate(csv.reader(text.splitlines(), skipinitialspace=True), start=1):
        if not row or (number == 1 and row == ["value", "group"]):
            continue
        if len(row) != 2 or not row[1].strip():
            raise InputError(
                f"Line {number} of the groups of {column!r} is not of the form value,group.",
                hint='Put a value that holds a comma between double quotes ("a, b",group).',
            )
        value, group = row[0].strip(), row[1].strip()
        if found.setdefault(value, group) != group:
            raise InputError(f"The groups of {column!r} list {value[:40]!r} twice.")
    return found


def _has_bins(column: Any) -> bool:
    return bool(column.numeric or column.dated)


def _is_text(column: Any) -> bool:
    return bool(column.kind == "string")


def roles_form(opened: Opened, draft: dict[str, Any], proposal: Mapping[str, Proposed]) -> TagList:
    """One row per column, as the draft has it, if it does; otherwise as proposed."""
    roles, bins, groups = (draft.get(name, {}) for name in ("roles", "bins", "groups"))
    rows = []
    for i, column in enumerate(opened.summary.columns):
        field, first = f"{opened.number}_{i}", proposal[column.name]
        rows.append(
            (
                tags.div(
                    tags.strong(column.name),
                    tags.span("identifier?", class_="tag warning") if column.identifier else None,
                ),
                column.kind,
                _values(column),
                _role(column.name, field, roles.get(column.name) or first.role, first)
                if column.publishable
                else "cannot be published",
                _recoding(
                    column, field, bins.get(column.name, first.bins), groups.get(column.name)
                ),
            )
        )
    head = ("Column", "Kind", "Values", "Role", "Bins or groups")
    return TagList(
        grid(head, rows, label="DeclaredRoles of the columns"),
        tags.p(*_HELP, class_="help"),
        choice(
            "missing", "Records without a sensitive value", MISSING, draft.get("missing", "refuse")
        ),
        choice(
            "rows_per_person",
            "People with several rows",
            ROWS_PER_PERSON,
            draft.get("rows_per_person", "refuse"),
            "A vote over the rows of one person undoes the randomisation. If one row of each is"
            " kept, the key decides which.",
        ).add_class("person-only"),
    )


def _role(name: str, field: str, role: str, first: Proposed) -> Tag:
    """The choice of a role, why one is proposed, and what the choice did to another column."""
    chosen = select(f"role_{field}", ROLES, role, label=f"Role of {name}", class_="role")
    chosen.attrs["data-role"] = role
    return tags.div(
        chosen,
        tags.p(f"Proposed: {ROLES[first.role]}. {first.reason}", class_="help reason")
        if first.reason
        else None,
        tags.p({"data-column": name}, role="status", class_="help role-said"),
        class_="role-cell",
    )


def _recoding(column: Any, field: str, bins: str | None, groups: str | None) -> Tag:
    """The field for bins of a number or a date, or for groups of texts."""
    if _has_bins(column):
        return tags.input(
            {"aria-label": f"Bins of {column.name}"}, id=f"bins_{field}", type="text",
            placeholder="as they are", value=bins or "", spellcheck="false", autocomplete="off",
        )  # fmt: skip
    if _is_text(column):
        return tags.details(
            tags.summary("Groups"),
            tags.textarea(
                groups or "", {"aria-label": f"Groups of {column.name}"}, id=f"groups_{field}",
                rows="5", placeholder="value,group", spellcheck="false", autocomplete="off",
            ),
            {"open": ""} if groups else {},
        )  # fmt: skip
    return tags.span("–", {"aria-hidden": "true"}, class_="muted nothing")


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
    """With thousands separators, if the number is whole."""
    return f"{int(text):,}" if text and text.lstrip("-").isdigit() else str(text)

"""Step 2: what each column is, how numbers are binned and texts grouped."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from htmltools import Tag, TagList, tags
from shiny import Inputs, reactive, ui
from shiny.types import SilentException

import reconpriv as rp
from reconpriv.errors import InputError
from reconpriv.proposals import Proposal
from reconpriv.studio.pieces.columns_check import serve_columns_check
from reconpriv.studio.pieces.parts import choice, footer, grid, notice, select
from reconpriv.studio.pieces.remedy_words import MISSING, ROWS_PER_PERSON
from reconpriv.studio.work.background import Computation
from reconpriv.studio.work.live import Live, present
from reconpriv.studio.work.plan import DeclaredRoles
from reconpriv.studio.work.settings import roles_place
from reconpriv.studio.work.workspace import LoadedTable, Opened, explain

ROLES = {
    "public": "Public",
    "sensitive": "Sensitive",
    "person": "Person’s number",
    "drop": "Leave out",
}

_SHOWN = 4  # values of a column, beside its role
_HELP = (
    "Bins: a width (", tags.code("10"), " turns 37 into 30 to 39), borders (",
    tags.code("0, 18, 65"), " makes 0 to 17, 18 to 64, 65 or more; with ", tags.code("top:99"),
    " after them, the last is 65 to 99), or ", tags.code("quantiles:5"),
    ", whose borders are read off the data and published; for dates ", tags.code("month"), ", ",
    tags.code("quarter"), " or ", tags.code("year"), ". Groups: one line per value, ",
    tags.code("value,group"), "; ", tags.code("*,group"), " takes all other values. Fewer values"
    " make larger groups of people; after that, only whole bins can be asked about.",
)  # fmt: skip


def panel(_: dict[str, Any]) -> Tag:
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
        tags.div(
            tags.label("Find a column", {"for": "find_column"}, class_="sr"),
            tags.input(id="find_column", type="search", placeholder="Find a column",
                       autocomplete="off", spellcheck="false",
                       **{"data-shiny-no-bind-input": ""}),
            tags.span(id="found_columns", class_="muted", role="status"),
            tags.span("Set all that are shown:", class_="muted"),
            *(
                tags.button(ROLES[role], {"data-give": role}, type="button", class_="button small")
                for role in ("public", "drop")
            ),
            class_="bulk",
        ),
        ui.output_ui("columns"),
        tags.div(ui.output_ui("giveaway_note"), {"aria-live": "polite"}),
        tags.div(ui.output_ui("columns_check"), {"aria-live": "polite"}),
        footer(2, "Continue to policy", note="roles_note"),
    )  # fmt: skip


def serve(live: Live) -> None:
    """The reactive part."""
    input, workspace, note = live.input, live.workspace, live.note("roles")

    def done(loaded: LoadedTable) -> None:
        live.loaded.set(loaded)
        live.go(3)

    job = live.job("roles", done)

    def columns() -> TagList:
        opened, draft = present(live.opened()), workspace.draft
        return roles_form(opened, draft.get(roles_place(opened), {}), proposal_of(opened, draft))

    def form() -> dict[str, Any]:
        return read_form(input, present(live.opened()))

    @reactive.effect
    def _() -> None:
        live.remember({roles_place(present(live.opened())): form()})

    serve_giveaways(live, lambda: form()["roles"])
    serve_columns_check(live, lambda: chosen_roles(form()))

    def load() -> None:
        opened, loaded = present(live.opened()), live.loaded()
        try:
            roles = chosen_roles(form())
        except rp.ReconprivError as error:
            note.set(explain(error))
            return
        except SilentException:
            note.set("The columns are still being drawn. Press “Continue” once more.")
            return
        if loaded is not None and (loaded.opened, loaded.roles) == (opened, roles):
            note.set("")
            live.go(3)
        else:
            job.start(lambda: workspace.load(opened, roles))

    def roles_note() -> Tag | None:
        counting = tags.p("Counting groups…", class_="working")
        return counting if job.busy() else notice(note())

    # What was wrong with the roles need not be wrong with others; a click comes after a change.
    @reactive.effect(priority=1)
    @reactive.event(form, ignore_init=True)
    def _() -> None:
        note.set("")

    live.show("columns", columns)
    live.on("next_2", load)
    live.show("roles_note", roles_note)


def proposal_of(opened: Opened, draft: Mapping[str, Any]) -> dict[str, Proposal]:
    """What is proposed, and the sensitive column that was named when the studio was started."""
    found = {one.column: one for one in opened.proposals.columns}
    named = draft.get("sensitive")
    if named in found:
        found[named] = replace(found[named], role="sensitive", reason="", bins="")
    return found


def giveaways(opened: Opened, proposals: rp.Proposals) -> dict[str, str]:
    """The columns to leave out only because they tell the sensitive one, with the reason."""
    before = set(opened.proposals.named("drop"))
    return {
        one.column: one.reason
        for one in proposals.columns
        if one.role == "drop" and one.column not in before
    }


def giveaway_notice(opened: Opened, proposals: rp.Proposals) -> Tag | None:
    """Which columns tell the sensitive one."""
    found = giveaways(opened, proposals)
    if not found:
        return None
    words = "; ".join(f"{name!r} {reason}" for name, reason in found.items())
    it = "it is" if len(found) == 1 else "they are"
    return notice(
        f"{words}. Randomising a value protects nobody if a public column tells it, so {it} left"
        " out unless you say otherwise.",
        "warning",
        lead=f"Columns that tell {proposals.sensitive!r}: ",
    )


def serve_giveaways(live: Live, roles: Callable[[], Mapping[str, str]]) -> None:
    """Once a column is sensitive, leave out those that tell its value, and say so.

    ``roles`` are those of the form. If the proposals cannot be made, the audit names the columns.
    """
    proposals: Computation[tuple[Opened, str], rp.Proposals] = Computation(
        live.workspace.report_pool, lambda key: rp.propose_roles(key[0].source, sensitive=key[1])
    )

    @reactive.calc
    def key() -> tuple[Opened, str] | None:
        """The open table and the column of it that is sensitive in the form."""
        opened = live.opened()
        names = [name for name, role in roles().items() if role == "sensitive"]
        return (opened, names[0]) if opened is not None and len(names) == 1 else None

    @reactive.calc
    def current() -> rp.Proposals | None:
        return proposals.result(key())

    reactive.effect(lambda: proposals.request(key()))

    @reactive.effect
    @reactive.event(current)
    async def _() -> None:
        opened, now = live.opened(), current()
        # Only once: whoever makes such a column public again has read why it was left out.
        if opened is None or now is None or not live.workspace.acts_first(opened, now):
            return
        names = [column.name for column in opened.summary.columns]
        await live.send("leave-out", {
            f"role_{opened.number}_{names.index(name)}": f"Left out: it {reason}."
            for name, reason in giveaways(opened, now).items()
        })  # fmt: skip

    def giveaway_note() -> Tag | None:
        opened, now = live.opened(), current()
        return None if opened is None or now is None else giveaway_notice(opened, now)

    live.show("giveaway_note", giveaway_note)


def read_form(input: Inputs, opened: Opened) -> dict[str, Any]:
    """The form's current state: role, bins and groups by column name."""
    columns, n = list(enumerate(opened.summary.columns)), opened.number
    binned = binned_columns(opened)
    return {
        "roles": {c.name: input[f"role_{n}_{i}"]() for i, c in columns if c.publishable},
        "bins": {c.name: input[f"bins_{n}_{i}"]() for i, c in columns if c.name in binned},
        "groups": {
            c.name: input[f"groups_{n}_{i}"]()
            for i, c in columns
            if _is_text(c) and c.name not in binned
        },
        "missing": input["missing"](),
        "rows_per_person": input["rows_per_person"](),
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


def binned_columns(opened: Opened) -> set[str]:
    """Numbers and dates, and texts that are all numbers, as decimals in a CSV are (1.50)."""
    known = {one.name for one in opened.summary.columns if one.numeric or one.dated}
    return known | set(opened.proposals.bins)


def _is_text(column: Any) -> bool:
    return bool(column.kind == "string")


def roles_form(opened: Opened, draft: dict[str, Any], proposal: Mapping[str, Proposal]) -> TagList:
    """One row per column, as the draft has it, if it does; otherwise as proposed."""
    roles, bins, groups = (draft.get(name, {}) for name in ("roles", "bins", "groups"))
    rows, binned = [], binned_columns(opened)
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
                _bins(column, field, bins.get(column.name, first.bins))
                if column.name in binned
                else _groups(column, field, groups.get(column.name)),
            )
        )
    head = ("Column", "Kind", "Values", "Role", "Bins or groups")
    return TagList(
        grid(head, rows, label="Roles of the columns"),
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


def _role(name: str, field: str, role: str, first: Proposal) -> Tag:
    """The choice of a role, why one is proposed, and what the choice did to another column."""
    chosen = select(f"role_{field}", ROLES, role, label=f"Role of {name}", class_="role")
    chosen.attrs["data-role"] = role
    why = first.reason
    if not why or why == f"{first.distinct:,} values":  # which is in the row already
        proposed = None
    else:
        words = f"Proposed: {ROLES[first.role]}. {why[:1].upper()}{why[1:]}."
        proposed = tags.p(words, class_="help reason")
    said = tags.p({"data-column": name}, role="status", class_="help role-said")
    return tags.div(chosen, proposed, said, class_="role-cell")


def _bins(column: Any, field: str, bins: str | None) -> Tag:
    """The field for bins of a number or a date."""
    return tags.input(
        {"aria-label": f"Bins of {column.name}"}, id=f"bins_{field}", type="text",
        placeholder="as they are", value=bins or "", spellcheck="false", autocomplete="off",
    )  # fmt: skip


def _groups(column: Any, field: str, groups: str | None) -> Tag:
    """The field for groups of texts; a dash where there is nothing to group."""
    if not _is_text(column):
        return tags.span("–", {"aria-hidden": "true"}, class_="muted nothing")
    shown = len(column.common) == column.distinct
    words = "List its values" if shown else f"List the {len(column.common)} most frequent"
    return tags.details(
        tags.summary("Groups"),
        tags.button(
            words, {"data-values": f"groups_{field}", "data-list": json.dumps(column.common)},
            type="button", class_="button small",
        ),
        tags.textarea(
            groups or "", {"aria-label": f"Groups of {column.name}"}, id=f"groups_{field}",
            rows="5", placeholder="value,group", spellcheck="false", autocomplete="off",
        ),
        {"open": ""} if groups else {},
    )  # fmt: skip


def _values(column: Any) -> Tag:
    if not column.publishable:
        return tags.span("cannot be published", class_="muted")
    span = (
        f"{_number(column.low)} to {_number(column.high)}"
        if column.numeric
        else ", ".join(column.common[:_SHOWN])
    )
    missing = f", {column.missing:,} missing" if column.missing else ""
    return tags.div(
        tags.span(f"{column.distinct:,} values{missing}"),
        tags.span(span, class_="sample", title=span),
    )


def _number(text: str | None) -> str:
    """With thousands separators, if the number is whole."""
    return f"{int(text):,}" if text and text.lstrip("-").isdigit() else str(text)

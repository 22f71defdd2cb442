"""The controls of the policy step: a preset, what counts as exposed, how strong, how published."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping
from typing import Any

from htmltools import Tag, TagList, tags
from shiny import reactive, render, ui

import reconpriv as rp
from reconpriv.columns.schema import Value, json_value
from reconpriv.errors import PolicyError
from reconpriv.messages.numbers import label
from reconpriv.policy.presets import DEFAULT, PRESETS, Fitted, Preset, policy_for
from reconpriv.policy.protection import HOW
from reconpriv.policy.sampling_rules import offered
from reconpriv.studio.pieces.changes import policy_changes
from reconpriv.studio.pieces.parts import button, card, choice, dial, options, why
from reconpriv.studio.pieces.remedy_words import UNATTAINABLE
from reconpriv.studio.work.live import Live
from reconpriv.studio.work.settings import harmless_place
from reconpriv.studio.work.workspace import LoadedTable, explain
from reconpriv.theory.tails.bounds import BOUNDS

# The inputs of the page, each named as the field of a policy; the numbers with their symbols, if
# any.
_DIALS = {"exposed_above": "φ", "retention": "p", "tolerance": "", "doubt": "", "margins": "M"}
_PROTECT = "protect"
_SHOWN = (*_DIALS, "bound", "sampling", "unattainable")
# Under "More": what most people leave as the preset has it.
_SPECIAL = ("retention", "tolerance", "doubt", "bound", "sampling", "unattainable", _PROTECT)


def controls_of(policy: rp.Policy) -> dict[str, Any]:
    """A policy as its controls show it, but for its harmless values and its protection groups."""
    margins = policy.wanted_margins
    shown = {name: getattr(policy, name) for name in _SHOWN}
    epsilon = margins.round_epsilon or margins.epsilon
    return {**shown, "bound": policy.tail_bound.name, "margins": epsilon}


START = {"preset": DEFAULT.name, **controls_of(DEFAULT.policy), _PROTECT: ""}


def policy_of(controls: dict[str, Any], harmless: tuple[Value, ...] = ()) -> rp.Policy:
    """The policy that the controls show."""
    shown = {name: controls[name] for name in _SHOWN} | {"margins": controls["margins"] or None}
    protect = protection_of(controls.get(_PROTECT, ""))
    return rp.Policy(**shown, protect=protect, harmless=harmless)


def protection_of(text: str) -> dict[str, str] | None:
    """Lines of column,how as the protection of a policy; None if there are none."""
    found: dict[str, str] = {}
    for number, row in enumerate(csv.reader(text.splitlines(), skipinitialspace=True), start=1):
        if not row:
            continue
        name, how = row[0].strip(), ",".join(row[1:]).strip()
        if not how or name in found:
            raise PolicyError(f"Line {number} of the protection is no new column,how.", hint=HOW)
        found[name] = how
    return found or None


def faults_of(controls: dict[str, Any]) -> dict[str, str]:
    """What is wrong with the number of each dial, taken alone; empty where nothing is."""

    def fault(control: str) -> str:
        if controls[control] is None:
            name = "the ε of margins" if control == "margins" else _DIALS[control] or control
            return f"Enter a number for {name}."
        try:
            policy_of({**START, control: controls[control]})
        except rp.ReconprivError as error:
            return explain(error)
        return ""

    return {control: fault(control) for control in _DIALS}


def panel(at: dict[str, Any]) -> Tag:
    """The static part: all controls, from the most general to the most special."""

    def turned(field: str, label: str, help: str, span: tuple[float, float, float]) -> Tag:
        return dial(field, _DIALS[field], label, help, at[field], span)

    def chosen(id: str, label: str, choices: Mapping[str, str], help: str = "") -> Tag:
        return choice(id, label, choices, at[id], help)

    return tags.div(
        card(
            "Policy",
            chosen("preset", "Preset", {name: name for name in PRESETS},
                   "A policy with a name. The recommended one is right for most tables."),
            ui.output_ui("preset_words"),
            turned("margins", "Margins", "Margins are noisy tables of the sensitive column by each"
                   " public one; they make analysts’ counts more accurate. M is their ε, as in"
                   " differential privacy. 0: none; 1 is usual. Lower: stricter.",
                   (0.0, 4.0, 0.1)),
            turned("exposed_above", "Which values are protected", "Only values that more than this"
                   " share of a group hold count as exposed, and are protected from being"
                   " reconstructed. 0: every value. Lower: stricter.", (0.0, 0.9, 0.05)),
            ui.output_ui("harmless_choice"),
            tags.details(
                tags.summary("More"),
                turned("retention", "Retention", "How often a value is kept; otherwise it is drawn"
                       " at random. Higher: better counts, less deniability.", (0.05, 0.95, 0.01)),
                turned("tolerance", "Tolerance", "How close to the truth an estimate of a group"
                       " must come to count as a reconstruction; 0.5 is ±50 %. Higher: stricter.",
                       (0.05, 1.0, 0.05)),
                turned("doubt", "Doubt", "The smallest probability with which an adversary’s"
                       " estimate must miss by more than the tolerance, in each direction. Higher:"
                       " stricter.", (0.01, 0.99, 0.01)),
                chosen("bound", "Tail bound",
                       {one.name: one.label or one.name for one in BOUNDS.values()},
                       "How it is proved that an estimate misses often enough. With exact tails,"
                       " the doubt is a probability."),
                chosen("sampling", "Sampling rule", {one.name: one.label for one in offered()},
                       _sampling_help()),
                tags.div(
                    tags.div(
                        tags.label("Protection groups", {"for": _PROTECT}),
                        why("a protection group", "Promise the same to whoever pools over these"
                            " public columns: one line each, such as age,10 or age,0,18,65 or"
                            " race,* or town,merge."),
                        class_="named",
                    ),
                    tags.textarea(
                        at[_PROTECT], {"data-update-on": "blur"}, id=_PROTECT, rows="2",
                        placeholder="column,how", spellcheck="false", autocomplete="off",
                    ),
                    class_="field",
                ),
                chosen("unattainable", "Groups that cannot be made private", UNATTAINABLE,
                       "In such a group not even one random record keeps the promise."),
                {"open": ""} if any(at[name] != START[name] for name in _SPECIAL) else {},
                class_="more",
            ),
        ),
        class_="dials",
    )  # fmt: skip


def _sampling_help() -> str:
    """What a large group's trials depend on; the other sampling rules have their own warnings."""
    said = [f"{one.name.capitalize()}: {one.explanation}" for one in offered() if one.recommended]
    return " ".join(["How many trials a large group keeps.", *said])


def serve(live: Live) -> None:
    """Every change becomes a policy, or an explanation of why it cannot."""
    input = live.input
    _serve_presets(live)

    @reactive.effect
    async def _() -> None:
        controls = {name: input[name]() for name in (*_SHOWN, _PROTECT)}
        live.remember({**controls, "preset": input.preset()})
        loaded, faults = live.loaded(), faults_of(controls)
        await live.send("faults", faults)
        note, policy = " ".join(filter(None, faults.values())), None
        try:
            if not note:
                policy = policy_of(controls, _chosen_harmless(live, loaded))
                policy.check_sampling()
                if loaded is not None and policy.harmless:
                    policy.harmless_in(loaded.table.schema)
        except rp.ReconprivError as error:
            note, policy = explain(error), None
        live.note("policy").set(note)
        live.policy.set(policy)

    def harmless_choice() -> Tag | None:
        loaded = live.loaded()
        return None if loaded is None else harmless_boxes(loaded, _remembered(live, loaded))

    @render.text
    def harmless_count() -> str:
        policy = live.policy()
        many = 0 if policy is None else len(policy.harmless)
        return f"{many} chosen" if many else "none"

    live.show("harmless_choice", harmless_choice)


def suited(preset: Preset, loaded: LoadedTable | None) -> Fitted:
    """A preset for the table; the recommended one depends on it."""
    if loaded is None:
        return Fitted(preset.policy, ())
    return policy_for(preset.name, loaded.table.schema)


def _serve_presets(live: Live) -> None:
    def preset() -> Preset:
        return PRESETS[live.input.preset()]

    async def take() -> None:
        loaded = live.loaded()
        values = controls_of(suited(preset(), loaded).policy) | {_PROTECT: ""}
        await live.send("controls", values | ({} if loaded is None else {_boxes_id(loaded): []}))

    # Not at first: the controls of a page that is loaded again may have been changed.
    reactive.effect(reactive.event(live.input.preset, ignore_init=True)(take))
    live.on("preset_again", take)

    # A preset that nobody changed follows the table.
    @reactive.effect
    @reactive.event(live.loaded)
    async def _() -> None:
        if live.policy() == preset().policy != suited(preset(), live.loaded()).policy:
            await take()

    def words() -> TagList:
        suits, broken = suited(preset(), live.loaded()), live.note("policy")() != ""
        return said_of(preset(), suits, live.policy(), broken=broken)

    live.show("preset_words", words)


def said_of(
    preset: Preset, suited: Fitted, policy: rp.Policy | None, *, broken: bool = False
) -> TagList:
    """What a preset is for, what was chosen for the table, and what was changed since.

    Without a policy, the controls may be ``broken``: they show none that can be used.
    """
    changed = [] if policy is None else policy_changes(suited.policy, policy)
    changed += ["a policy that cannot be used"] if broken else []
    return TagList(
        tags.p(" ".join((preset.sentence, *suited.notes)), class_="help preset-sentence"),
        tags.div(
            tags.p(
                tags.strong(f"Changed from {preset.name}"), f": {'; '.join(changed)}.",
                class_="help",
            ),
            button("preset_again", f"Back to {preset.name}").add_class("small"),
            class_="changed",
        )
        if changed
        else None,
    )  # fmt: skip


def harmless_boxes(loaded: LoadedTable, chosen: list[str]) -> Tag:
    """A box for each value of the sensitive column."""
    name = loaded.roles.sensitive
    return tags.details(
        tags.summary("Harmless values: ", ui.output_text("harmless_count", inline=True)),
        tags.p(f"Values of {name} that nobody would mind others knowing. They are randomised like"
               " the rest, but not tested.", class_="help"),
        options(
            "checkbox", _boxes_id(loaded), {c: label(v) for c, v in _codes(loaded).items()}, chosen,
            class_="boxes", aria_label=f"Harmless values of {name}", tabindex="0",
        ),
        {"open": ""} if chosen else {},
        class_="field harmless",
    )  # fmt: skip


def _boxes_id(loaded: LoadedTable) -> str:
    """Different whenever a table is opened: no box is taken for one of another column."""
    names = [column.name for column in loaded.opened.summary.columns]
    return f"harmless_{loaded.opened.number}_{names.index(loaded.roles.sensitive)}"


def _codes(loaded: LoadedTable) -> dict[str, Value]:
    """The values of the sensitive column by the text that stands for each in the page."""
    return {json.dumps(json_value(value)): value for value in loaded.table.schema.domain}


def _remembered(live: Live, loaded: LoadedTable, now: list[str] | None = None) -> list[str]:
    """The boxes that are ticked for this table and column: elsewhere they may not be right."""
    place = harmless_place(loaded.opened, loaded.roles.sensitive)
    if now is not None:
        live.remember({place: now})
    found: list[str] = live.workspace.draft.get(place, [])
    return found


def _chosen_harmless(live: Live, loaded: LoadedTable | None) -> tuple[Value, ...]:
    """The values whose boxes are ticked, as the domain orders them."""
    if loaded is None:
        return ()
    boxes = _boxes_id(loaded)
    now = list(live.input[boxes]() or ()) if boxes in live.input else None
    chosen = _remembered(live, loaded, now)
    return tuple(value for code, value in _codes(loaded).items() if code in chosen)

"""The controls of the policy step: a preset, what counts as exposed, how strong, how published."""

from __future__ import annotations

import json
from typing import Any

from htmltools import Tag, TagList, tags
from shiny import Inputs, reactive, render, ui

import reconpriv as rp
from reconpriv.core.sample_sizes import offered
from reconpriv.messages.numbers import label
from reconpriv.presets import DEFAULT, PRESETS, RECOMMENDED, Fitted, Preset, fitted
from reconpriv.schema import Value, json_value
from reconpriv.studio.changes import policy_changes
from reconpriv.studio.desk import Settled, explain
from reconpriv.studio.live import Live
from reconpriv.studio.parts import button, card, check, choice, dial
from reconpriv.studio.remedy_words import UNATTAINABLE
from reconpriv.theory.bounds import BOUNDS

_DIALS = {"p": "retention", "e": "epsilon", "d": "delta", "phi": "exposed_above"}
_CHOICES = ("bound", "sample_size", "unattainable", "news_only")
_MARGINS = "m"
_NUMBERS = {"phi": "φ", "p": "p", "e": "ε", "d": "δ", _MARGINS: "the ε of margins"}


def controls_of(policy: rp.Policy) -> dict[str, Any]:
    """A policy as its controls show it, except for its harmless values."""
    margins = policy.wanted_margins
    return {
        **{control: getattr(policy, name) for control, name in _DIALS.items()},
        _MARGINS: 0.0 if margins is None else margins.round_epsilon or margins.epsilon,
        **{name: getattr(policy, name) for name in _CHOICES},
        "bound": policy.tail_bound.name,
    }


START = {"preset": DEFAULT.name, **controls_of(DEFAULT.policy)}


def policy_of(controls: dict[str, Any], harmless: tuple[Value, ...] = ()) -> rp.Policy:
    """The policy that the controls show."""
    return rp.Policy(
        **{name: controls[control] for control, name in _DIALS.items()},
        **{name: controls[name] for name in _CHOICES},
        margins=controls[_MARGINS] or None,
        harmless=harmless,
    )


def faults_of(controls: dict[str, Any]) -> dict[str, str]:
    """What is wrong with the number of each dial, taken alone; empty where nothing is."""

    def fault(control: str) -> str:
        if controls[control] is None:
            return f"Enter a number for {_NUMBERS[control]}."
        try:
            policy_of({**START, control: controls[control]})
        except rp.ReconprivError as error:
            return explain(error)
        return ""

    return {control: fault(control) for control in _NUMBERS}


def panel(at: dict[str, Any]) -> Tag:
    """The static part: all controls, from the most general to the most special."""
    return tags.div(
        card(
            "Policy",
            choice("preset", "Preset", {one.name: one.name for one in PRESETS.values()},
                   at["preset"]),
            ui.output_ui("preset_words"),
            _part(
                "What counts as exposed",
                dial("phi", "φ", "Exposed above", "Protect only values that more than this share"
                     " of a group hold. 0: every value. Lower: stricter.", at["phi"],
                     (0.0, 0.9, 0.05)),
                ui.output_ui("harmless_choice"),
                check("news_only", "News only", "Protect a value only where its share of the group"
                      " differs from that of the whole table by more than ε.",
                      checked=at["news_only"]),
            ),
            _part(
                "How well it is protected",
                dial("p", "p", "Retention", "How often a value is kept. Higher: better counts, less"
                     " deniability.", at["p"], (0.05, 0.95, 0.01)),
                dial("e", "ε", "Relative error", "A reconstruction that is off by more than this"
                     " counts as safe. Higher: stricter.", at["e"], (0.05, 1.0, 0.05)),
                dial("d", "δ", "Tail", "How often it must be off: no more rarely than this, as far"
                     " as the bound can tell. Higher: stricter.", at["d"], (0.01, 0.99, 0.01)),
                choice("bound", "Tail bound",
                       {one.name: one.label or one.name for one in BOUNDS.values()}, at["bound"],
                       "How to prove that an error is rare. With exact tails, δ is a"
                       " probability."),
            ),
            _part(
                "How it is published",
                choice("sample_size", "Sample size", {one.name: one.label for one in offered()},
                       at["sample_size"], _sample_size_help()),
                dial("m", "M", "Margins", "The ε of noisy tables beside the records, which make"
                     " analysts’ counts more accurate. 0: none; 1 is usual. Lower: stricter.",
                     at["m"], (0.0, 4.0, 0.1)),
                choice("unattainable", "Groups that cannot be made private", UNATTAINABLE,
                       at["unattainable"]),
            ),
        ),
        class_="dials",
    )  # fmt: skip


def _part(title: str, *controls: Tag) -> Tag:
    return tags.section(tags.h4(title), *controls, class_="controls")


def _sample_size_help() -> str:
    """What a large group's trials depend on; the other sample sizes have their own warnings."""
    said = [f"{one.name.capitalize()}: {one.explanation}" for one in offered() if one.recommended]
    return " ".join(["How many trials a large group keeps.", *said])


def serve(input: Inputs, live: Live) -> None:
    """Every change becomes a policy, or an explanation of why it cannot."""
    _serve_presets(input, live)
    _serve_harmless(live)

    @reactive.effect
    async def _() -> None:
        controls = {name: input[name]() for name in (*_DIALS, *_CHOICES, _MARGINS)}
        live.remember({**controls, "preset": input.preset()})
        settled, faults = live.settled(), faults_of(controls)
        await live.session.send_custom_message("studio-faults", {**faults})
        if any(faults.values()):
            live.policy.set(None)
            live.note("policy").set(" ".join(filter(None, faults.values())))
            return
        try:
            policy = policy_of(controls, _chosen_harmless(input, live, settled))
            policy.check_sampling()
            if settled is not None and policy.harmless:
                policy.harmless_in(settled.table.schema)
        except rp.ReconprivError as error:
            live.policy.set(None)
            live.note("policy").set(explain(error))
            return
        live.note("policy").set("")
        live.policy.set(policy)


async def show_controls(live: Live, values: dict[str, Any]) -> None:
    """Set controls to these values, by name; the page reports back what they are now."""
    await live.session.send_custom_message("studio-controls", values)


def suited(preset: Preset, settled: Settled | None) -> Fitted:
    """A preset for the table; the recommended one depends on it."""
    if settled is None or preset is not RECOMMENDED:
        return Fitted(preset.policy, ())
    return fitted(preset.policy, settled.table.schema, retention=True, margins=True)


def _serve_presets(input: Inputs, live: Live) -> None:
    async def take() -> None:
        settled = live.settled()
        values = controls_of(suited(PRESETS[input.preset()], settled).policy)
        await show_controls(live, values | ({} if settled is None else {_boxes_id(settled): []}))

    # Not at first: the controls of a page that is loaded again may have been changed.
    @reactive.effect
    @reactive.event(input.preset, ignore_init=True)
    async def _() -> None:
        await take()

    @reactive.effect
    @reactive.event(input.preset_again)
    async def _() -> None:
        await take()

    # A preset that nobody changed follows the table.
    @reactive.effect
    @reactive.event(live.settled)
    async def _() -> None:
        preset = PRESETS[input.preset()]
        policy = suited(preset, live.settled()).policy
        if live.policy() == preset.policy != policy:
            await take()

    @render.ui
    def preset_words() -> TagList:
        preset = PRESETS[input.preset()]
        return said_of(preset, suited(preset, live.settled()), live.policy())


def said_of(preset: Preset, suited: Fitted, policy: rp.Policy | None) -> TagList:
    """What a preset is for, what was chosen for the table, and what was changed since."""
    changed = [] if policy is None else policy_changes(suited.policy, policy)
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


def _serve_harmless(live: Live) -> None:
    @render.ui
    def harmless_choice() -> Tag | None:
        settled = live.settled()
        return None if settled is None else harmless_boxes(settled, _remembered(live, settled))

    @render.text
    def harmless_count() -> str:
        policy = live.policy()
        many = 0 if policy is None else len(policy.harmless)
        return f"{many} chosen" if many else "none"


def harmless_boxes(settled: Settled, chosen: list[str]) -> Tag:
    """A box for each value of the sensitive column."""
    name = settled.roles.sensitive
    return tags.details(
        tags.summary("Harmless values: ", ui.output_text("harmless_count", inline=True)),
        tags.p(f"Values of {name} that nobody would mind others knowing. They are randomised like"
               " the rest, but not tested.", class_="help"),
        tags.div(
            *(
                tags.label(
                    tags.input(type="checkbox", name=_boxes_id(settled), value=code,
                               checked="" if code in chosen else None),
                    tags.span(label(value)),
                    class_="check",
                )
                for code, value in _codes(settled).items()
            ),
            {"aria-label": f"Harmless values of {name}", "tabindex": "0"},
            id=_boxes_id(settled),
            class_="shiny-input-checkboxgroup boxes",
            role="group",
        ),
        {"open": ""} if chosen else {},
        class_="field harmless",
    )  # fmt: skip


def _boxes_id(settled: Settled) -> str:
    """Different whenever a table is opened: no box is taken for one of another column."""
    names = [column.name for column in settled.opened.summary.columns]
    return f"harmless_{settled.opened.number}_{names.index(settled.roles.sensitive)}"


def _codes(settled: Settled) -> dict[str, Value]:
    """The values of the sensitive column by the text that stands for each in the page."""
    return {json.dumps(json_value(value)): value for value in settled.table.schema.domain}


def _draft_of(settled: Settled) -> str:
    """Where the choice is kept: for this table and column, since elsewhere it may not be right."""
    return f"harmless in {settled.opened.identity}: {settled.roles.sensitive}"


def _remembered(live: Live, settled: Settled) -> list[str]:
    found: list[str] = live.desk.draft.get(_draft_of(settled), [])
    return found


def _chosen_harmless(input: Inputs, live: Live, settled: Settled | None) -> tuple[Value, ...]:
    """The values whose boxes are ticked, as the domain orders them."""
    if settled is None:
        return ()
    boxes = _boxes_id(settled)
    if boxes in input:
        live.remember({_draft_of(settled): list(input[boxes]() or ())})
    chosen = _remembered(live, settled)
    return tuple(value for code, value in _codes(settled).items() if code in chosen)

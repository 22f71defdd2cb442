"""Step 4: a key, a progress bar, a cancel button."""

from __future__ import annotations

from pathlib import Path

from htmltools import Tag, tags
from shiny import Inputs, reactive, render, ui

import reconpriv as rp
from reconpriv.studio.desk import CancelledError, Published, Settled, explain, in_page_words
from reconpriv.studio.jobs import Job
from reconpriv.studio.live import Live
from reconpriv.studio.parts import alert_place, button, card, facts, footer, notice
from reconpriv.studio.plan import Plan

KEYS = {
    "generate": ("Generate a new key", "For a first release. Download the key afterwards and keep"
                 " it: with it a second release of the same table gives no second sample away."),
    "own": ("Use my key", "For a table that was published before, or a key you keep already."),
    "test": ("Use the test key", "For trying things out: everybody knows it, so the release is"
             " marked as not for release."),
}  # fmt: skip
_POLL_SECONDS = 0.15


def panel() -> Tag:
    """The static part."""
    radios = tags.fieldset(
        tags.legend("Key"),
        tags.div(
            *(
                tags.label(
                    tags.input(type="radio", name="key_kind", value=name,
                               checked="" if name == "generate" else None),
                    tags.span(tags.strong(title), tags.span(words, class_="muted")),
                    class_="radio",
                )
                for name, (title, words) in KEYS.items()
            ),
            id="key_kind",
            class_="shiny-input-radiogroup",
            role="group",
        ),
    )  # fmt: skip
    own = tags.div(
        tags.div(
            tags.label("64 hexadecimal digits", {"for": "key_text"}),
            tags.input(id="key_text", type="password", autocomplete="off", spellcheck="false"),
            class_="field",
        ),
        ui.input_file("key_file", "or a key file", button_label="Choose a file…",
                      placeholder="Nothing chosen", width="100%"),
        {"data-shown-by": "key_kind", "data-shown-value": "own"},
        class_="own-key",
        hidden="",
    )  # fmt: skip
    return tags.div(
        tags.div(
            card("What will be published", ui.output_ui("plan_facts")),
            card("Secret key", radios, own, alert_place("key_note_place"),
                 intro="The key decides every random draw. Who has it can undo the randomisation."),
            class_="cards two",
        ),
        alert_place("publish_note"),
        tags.div(ui.output_ui("publishing"), {"aria-live": "polite"}),
        footer(4, "Continue to download"),
    )  # fmt: skip


def serve(input: Inputs, live: Live) -> None:
    """The reactive part."""
    note, key_note = live.note("publish"), live.note("key")

    def done(published: Published) -> None:
        note.set("")
        live.published.set(published)

    def failed(error: BaseException) -> None:
        stopped = isinstance(error, CancelledError)
        note.set("Cancelled; nothing was left behind." if stopped else explain(error))

    job: Job[Published] = Job(live.desk.pool, done, failed)
    _serve_views(live, job)

    @reactive.effect
    @reactive.event(input.publish)
    def _() -> None:
        settled, policy = live.settled(), live.policy()
        if settled is None or policy is None:
            note.set("Choose a policy that can be used first.")
            return
        try:
            key = chosen_key(input)
        except rp.ReconprivError as error:
            key_note.set(explain(error))
            return
        key_note.set("")
        note.set("")
        plan = Plan(
            settled.opened.source, settled.roles, policy, key.is_test, settled.opened.uploaded
        )
        generated = input.key_kind() == "generate"
        live.desk.cancel.clear()
        live.desk.progress = ("starting", 0.0)
        job.start(lambda: live.desk.publish(settled, plan, key, generated=generated))

    @reactive.effect
    @reactive.event(input.cancel)
    def _() -> None:
        live.desk.stop()

    @reactive.effect
    @reactive.event(input.next_4)
    async def _() -> None:
        if live.published() is None:
            note.set("Publish first: there is nothing to download yet.")
        else:
            await live.go(5)


def _serve_views(live: Live, job: Job[Published]) -> None:
    note, key_note = live.note("publish"), live.note("key")

    @render.ui
    def plan_facts() -> Tag | None:
        settled, policy = live.settled(), live.policy()
        if settled is None or policy is None:
            return tags.p("Choose roles and a policy first.", class_="muted")
        return facts(plan_rows(settled, policy))

    @render.ui
    def key_note_place() -> Tag | None:
        return notice(key_note())

    @render.ui
    def publish_note() -> Tag | None:
        text = note()
        return notice(text, "info" if text.startswith("Cancelled") else "error")

    @reactive.effect
    async def _() -> None:
        if job.busy():
            reactive.invalidate_later(_POLL_SECONDS)
            stage, done = live.desk.progress
            message: dict[str, object] = {"stage": f"{stage.capitalize()}…", "done": done}
            await live.session.send_custom_message("studio-progress", message)

    @render.ui
    def publishing() -> Tag:
        if job.busy():
            return progress_card()
        return result_card(live.published(), live.settled(), live.policy())


def chosen_key(input: Inputs) -> rp.Key:
    """The key that the form describes."""
    kind = input.key_kind()
    if kind == "test":
        return rp.Key.test()
    if kind == "generate":
        return rp.Key.generate()
    text = input.key_text().strip()
    files = input.key_file()
    if not text and files:
        # Read and removed at once: a key has no business in a temporary folder.
        file = Path(files[0]["datapath"])
        if file.exists():
            text = file.read_text(encoding="ascii", errors="replace").strip()
            file.unlink()
    return rp.Key.from_hex(text)


def plan_rows(settled: Settled, policy: rp.Policy) -> list[tuple[str, str]]:
    """The plan in words."""
    roles, chosen = settled.roles, policy.as_dict()
    return [
        ("Table", settled.opened.shown),
        ("Records", f"{settled.table.schema.records:,}"),
        ("Sensitive", f"{roles.sensitive} ({settled.table.schema.domain_size} values)"),
        ("Public", ", ".join(roles.public)),
        *([("Recoded", roles.recoded)] if roles.recoded else []),
        (
            "Policy",
            f"p = {chosen['retention']:g}, ε = {chosen['epsilon']:g}, δ = {chosen['delta']:g}",
        ),
        ("Bound", chosen["bound"]),
        ("Sample size", chosen["sample_size"]),
    ]


def progress_card() -> Tag:
    """A bar and a way out; the bar moves by messages, since a new button would lose the focus."""
    return tags.section(
        tags.label("Starting…", {"for": "progress"}, id="progress_label"),
        tags.progress(id="progress", max="1", value="0"),
        button("cancel", "Cancel"),
        class_="card working-card",
    )


def result_card(
    published: Published | None, settled: Settled | None, policy: rp.Policy | None
) -> Tag:
    """The publish button, and below it what was published last."""
    if published is None:
        return tags.section(button("publish", "Publish", primary=True), class_="publish-row")
    summary = published.release.as_dict()
    same = published.settled is settled and published.plan.policy == policy
    words = (
        f"Published: {summary['records']:,} records in {summary['groups']:,} groups,"
        f" {summary['sampled_groups']:,} of them sampled, {summary['trials']:,} independent trials."
    )
    return tags.section(
        notice(words, "good"),
        None
        if same
        else notice("Your settings have changed since; publish again to use them.", "warning"),
        *(notice(in_page_words(text), "warning") for text in published.release.warnings),
        tags.div(button("publish", "Publish again"), class_="publish-row"),
    )

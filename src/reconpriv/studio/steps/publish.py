"""Step 4: a key, a progress bar, a cancel button."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from htmltools import Tag, tags
from shiny import reactive, req, ui

import reconpriv as rp
from reconpriv.messages.phrases import kept_words, share_words
from reconpriv.messages.remedies import Control, worded
from reconpriv.show.results.release import margins_line, policy_line
from reconpriv.studio.pieces.changes import same_key_means, since_release
from reconpriv.studio.pieces.consents import (
    Consent,
    arguments_of,
    consent_cards,
    consents_after,
    consents_to,
    refused_by,
    ticked_boxes,
)
from reconpriv.studio.pieces.key_choice import (
    key_fields,
    key_notice,
    key_options,
    key_radios,
    unused_key_box,
)
from reconpriv.studio.pieces.parts import alert_place, button, card, facts, footer, notice
from reconpriv.studio.pieces.remedy_words import ROWS_PER_PERSON, page_words
from reconpriv.studio.pieces.verdict import promise_rows
from reconpriv.studio.work.background import Job
from reconpriv.studio.work.keys import UnknownLedgerError, Uploads, chosen_key
from reconpriv.studio.work.ledgers import ARCHIVE
from reconpriv.studio.work.live import Candidate, Live, present
from reconpriv.studio.work.plan import KEY_FILE, PublicationPlan
from reconpriv.studio.work.workspace import CancelledError, Published, explain

_POLL_SECONDS = 0.15


def panel(draft: dict[str, Any]) -> Tag:
    """The static part."""
    return tags.div(
        tags.div(
            card("What will be published", ui.output_ui("plan_facts")),
            card("Secret key", ui.output_ui("key_choice"), key_fields(draft),
                 alert_place("key_note_place"), ui.output_ui("unused_key"),
                 intro="The key decides every random draw. Anyone who has it can undo the"
                 " randomisation."),
            class_="cards two",
        ),
        ui.output_ui("consents"),
        tags.div(ui.output_ui("publishing"), {"aria-live": "polite"}),
        footer(4, "Continue to download", note="publish_note"),
    )  # fmt: skip


def serve(live: Live) -> None:
    """The reactive part."""
    input, workspace = live.input, live.workspace
    note, key_note = live.note("publish"), live.note("key")
    unknown: reactive.Value[rp.Key | None] = reactive.value(None)
    # What a ledger refused, and what was ticked when it did; a change of settings makes both void.
    refused: reactive.Value[tuple[Candidate | None, list[Control]]] = reactive.value((None, []))
    ticked: dict[Candidate, dict[str, tuple[str, ...]]] = {}
    uploads: Uploads = {}

    def refusals() -> list[Control]:
        candidate, controls = refused()
        return controls if candidate == live.candidate else []

    def asked() -> list[Consent]:
        """What stands in the way of the table as it is now, and what its ledger refused."""
        audit = live.latest(live.audits)
        return [*([] if audit is None else consents_to(audit.found)), *consents_after(refusals())]

    def done(published: Published) -> None:
        refused.set((None, []))
        unknown.set(None)
        live.published.set(published)

    def failed(error: BaseException) -> None:
        # It may be refused for two reasons, one after the other: each keeps its box.
        refused.set((live.candidate, list(dict.fromkeys([*refusals(), *refused_by(error)]))))
        stopped = isinstance(error, CancelledError)
        note.set("Cancelled; nothing was left behind." if stopped else explain(error))

    job: Job[Published] = Job(workspace.pool, done, failed)

    def publish() -> None:
        candidate = live.candidate
        if candidate is None:
            note.set(f"First choose a policy that can be used. {live.note('policy')()}".strip())
            return
        try:
            unused = unknown() if "key_unused" in input and input.key_unused() else None
            key = chosen_key(input, workspace, candidate.loaded.opened, uploads, unused)
        except rp.ReconprivError as error:
            if isinstance(error, UnknownLedgerError):
                unknown.set(error.key)
            key_note.set(explain(error))
            return
        for place in (key_note, note):
            place.set("")
        ticked.clear()
        ticked[candidate] = ticked_boxes(input, asked())
        accepted, consents = arguments_of(ticked[candidate])
        plan = replace(_plan(candidate, test_key=key.is_test), accepted=accepted)
        generated = input.key_kind() in ("generate", "another")
        workspace.cancel.clear()
        workspace.progress = ("starting", 0.0)
        job.start(
            lambda: workspace.publish(candidate.loaded, plan, key, generated=generated, **consents)
        )

    def consents() -> Tag:
        candidate = live.candidate
        return consent_cards(asked(), {} if candidate is None else ticked.get(candidate, {}))

    _serve_views(live, job)
    _serve_key(live)

    _serve_sight(live, job)
    live.on("publish", publish)
    live.show("consents", consents)
    live.show("unused_key", lambda: None if unknown() is None else unused_key_box())


def _serve_sight(live: Live, job: Job[Published]) -> None:
    """The choice of a key is kept, and what comes of a click stays in sight."""
    input, key_note = live.input, live.note("key")

    @reactive.effect
    def _() -> None:
        live.remember({"key_kind": input.key_kind(), "key_path": input.key_path()})

    @reactive.effect
    @reactive.event(live.published, job.busy, key_note, ignore_init=True)
    async def _() -> None:
        await live.send("look", {"id": "key_note_place" if key_note() else "publishing"})


def _serve_views(live: Live, job: Job[Published]) -> None:
    """The plan, what is running, and what came of it."""
    workspace, note = live.workspace, live.note("publish")

    def plan_facts() -> Tag | None:
        candidate, audit = live.candidate, live.latest(live.audits)
        if candidate is None:
            return tags.p("Choose roles and a policy first.", class_="muted")
        return plan_view(candidate, None if audit is None else audit.found)

    def publish_note() -> Tag | None:
        if note():
            return notice(note(), "info" if note().startswith("Cancelled") else "error")
        made = live.published()
        if made is None or job.busy():
            return None
        return notice(f"Published {made.loaded.opened.shown} at {made.made:%H:%M}.", "good")

    @reactive.effect
    async def _() -> None:
        if job.busy():
            reactive.invalidate_later(_POLL_SECONDS)
            stage, done = workspace.progress
            await live.send("progress", {"stage": f"{stage.capitalize()}…", "done": done})

    live.on("cancel", workspace.stop)
    first = "Publish first: there is nothing to download yet."
    live.on("next_4", lambda: live.go_if(live.published() is not None, 5, "publish", first))
    live.show("plan_facts", plan_facts)
    live.show("key_note_place", lambda: notice(live.note("key")()))
    live.show("publish_note", publish_note)
    live.show("publishing", lambda: progress_card() if job.busy() else result_card(live))


def plan_view(candidate: Candidate, report: rp.AuditReport | None) -> Tag:
    """The plan in words, and how many people stand out, once they are counted."""
    (loaded, policy), single = candidate, None if report is None else report.single_records
    roles, schema, wanted = loaded.roles, loaded.table.schema, policy.wanted_margins
    rows = ROWS_PER_PERSON[roles.rows_per_person].lower()
    said = {
        "Table": loaded.opened.shown,
        "Records": kept_words(schema.records, loaded.table.dropped),
        "Unique records": "counting…",
        "Sensitive": f"{roles.sensitive} ({schema.domain_size} values)",
        "Public": ", ".join(roles.public),
        "Person’s number": f"{roles.person} (not published; people with several rows: {rows})"
        if roles.person
        else "",
        "Recoded": roles.recoded,
        "Policy": policy_line(policy.as_dict()),
        "Sampling rule": policy.sampling,
        "Margins": wanted.words,
        "Protection": ", ".join(
            f"{name}: {how}" for name, how in policy.wanted_protection.as_dict().items()
        ),
        **dict(promise_rows(policy, report)),
    }
    if single is not None:
        below = f"{share_words(single.below_k, single.records)} in groups below {single.k}"
        said["Unique records"] = f"{share_words(single.unique, single.records)}; {below}"
    return tags.div(facts([(name, words) for name, words in said.items() if words]))


def _serve_key(live: Live) -> None:
    """The choice of a key is redrawn whenever the table, or its key, changes."""
    workspace, ledgers = live.workspace, live.workspace.ledgers

    def key_choice() -> Tag | None:
        live.published()
        opened = present(live.loaded()).opened
        newer = opened.identity not in workspace.keys.keys
        kind = workspace.draft.get("key_kind", "")
        return key_radios(key_options(workspace.key_of(opened), newer=newer), kind)

    def key() -> rp.Key:
        return present(workspace.key_of(present(workspace.loaded).opened)).key

    def ledger() -> str:
        req(ledgers.keeps(key()))
        return str(ledgers.archive(key(), workspace.folder("zip")))

    live.show("key_choice", key_choice)
    live.offer("get_table_key", KEY_FILE, lambda: [key().secret.hex() + "\n"])
    live.offer("get_table_ledger", ARCHIVE, ledger)


def _plan(candidate: Candidate, *, test_key: bool) -> PublicationPlan:
    loaded, opened = candidate.loaded, candidate.loaded.opened
    return PublicationPlan(opened.source, loaded.roles, candidate.policy, test_key, opened.uploaded)


def progress_card() -> Tag:
    """A bar and a cancel button; messages move the bar, since a new button would lose the focus."""
    return tags.section(
        tags.label("Starting…", {"for": "progress"}, id="progress_label"),
        tags.progress(id="progress", max="1", value="0"),
        button("cancel", "Cancel"),
        class_="card working-card",
    )


def result_card(live: Live) -> Tag:
    """The publish button, below the last publication, its key, and what has changed since."""
    published, loaded, policy = live.published(), live.loaded(), live.policy()
    if published is None:
        return tags.section(button("publish", "Publish", primary=True), class_="publish-row")
    summary = published.release.as_dict()
    changed = since_release(published, live.opened(), loaded, policy)
    known = None if loaded is None else live.workspace.key_of(loaded.opened)
    words = (
        f"Published {published.loaded.opened.shown} at {published.made:%H:%M}:"
        f" {summary['records']:,} records in {summary['groups']:,} groups,"
        f" {summary['sampled_groups']:,} of them sampled, {summary['trials']:,} independent trials."
    )
    means, candidate = "", live.candidate
    if known is not None and candidate is not None:
        schema = candidate.loaded.table.schema
        means = same_key_means(known, _plan(candidate, test_key=False), schema)
    other = loaded is None or loaded.opened.identity != published.loaded.opened.identity
    label = "Publish" if other else "Publish again"
    return tags.section(
        notice(words, "good"),
        notice(f"{margins_line(summary['margins'])}.", "info", lead="Margins: ")
        if "margins" in summary
        else None,
        None
        if known is None
        else key_notice(
            known,
            fresh=published.generated and published.key.secret == known.key.secret,
            kept=live.workspace.ledgers.keeps(known.key),
        ),
        notice(f"Changed since: {'; '.join(changed)}. {means}".strip(), "warning")
        if changed
        else None,
        notice("It is the release from before, byte for byte.", "info")
        if published.again
        else None,
        *(notice(worded(text, page_words), "warning") for text in published.warnings),
        *(notice(text, "info") for text in published.release.notes),
        tags.div(button("publish", label, primary=bool(changed)), class_="publish-row"),
    )

"""Step 4: a key, a progress bar, a cancel button."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from htmltools import Tag, tags
from shiny import Inputs, reactive, render, req, ui

import reconpriv as rp
from reconpriv.messages.remedies import worded
from reconpriv.show.release_words import margins_line
from reconpriv.studio.changes import same_key_means, since_release
from reconpriv.studio.desk import (
    CancelledError,
    Desk,
    Opened,
    Published,
    Settled,
    explain,
)
from reconpriv.studio.given_key import (
    UnknownLedgerError,
    Uploads,
    given_key,
    key_fields,
    unused_key_box,
)
from reconpriv.studio.jobs import Job
from reconpriv.studio.keys import TableKey
from reconpriv.studio.ledgers import ARCHIVE
from reconpriv.studio.live import Live
from reconpriv.studio.obstacles import Asked, accepted, asked_about, obstacle_cards
from reconpriv.studio.parts import alert_place, button, card, footer, notice
from reconpriv.studio.plan import KEY_FILE, Plan
from reconpriv.studio.planned import plan_view
from reconpriv.studio.refusals import Refusals
from reconpriv.studio.remedy_words import TEST_KEY, page_words

TEST = (TEST_KEY, "For trying things out: everybody knows it, so the release is marked as"
        " not for release.")  # fmt: skip
COST = (
    "the release is an independent second sample: averaged with the first, it reveals more"
    " about every group than the policy allows."
)
_POLL_SECONDS = 0.15


def panel() -> Tag:
    """The static part."""
    return tags.div(
        tags.div(
            card("What will be published", ui.output_ui("plan_facts")),
            card("Secret key", ui.output_ui("key_choice"), key_fields(),
                 alert_place("key_note_place"), ui.output_ui("unused_key"),
                 intro="The key decides every random draw. Anyone who has it can undo the"
                 " randomisation."),
            class_="cards two",
        ),
        ui.output_ui("obstacles"),
        alert_place("publish_note"),
        ui.output_ui("refusal_boxes"),
        tags.div(ui.output_ui("publishing"), {"aria-live": "polite"}),
        footer(4, "Continue to download"),
    )  # fmt: skip


def serve(input: Inputs, live: Live) -> None:
    """The reactive part."""
    note, key_note = live.note("publish"), live.note("key")
    refusals = Refusals(input, live)
    unknown: reactive.Value[rp.Key | None] = reactive.value(None)
    uploads: Uploads = {}

    def done(published: Published) -> None:
        note.set("")
        refusals.note(None)
        unknown.set(None)
        live.published.set(published)

    def failed(error: BaseException) -> None:
        stopped = isinstance(error, CancelledError)
        refusals.note(error)
        note.set("Cancelled; nothing was left behind." if stopped else explain(error))

    job: Job[Published] = Job(live.desk.pool, done, failed)
    _serve_views(live, job)
    _serve_key(input, live)

    @render.ui
    def refusal_boxes() -> Tag:
        return refusals.cards()

    @render.ui
    def unused_key() -> Tag | None:
        return None if unknown() is None else unused_key_box()

    @reactive.effect
    @reactive.event(input.publish)
    def _() -> None:
        settled, policy = live.settled(), live.policy()
        if settled is None or policy is None:
            fault = live.note("policy")()
            note.set(f"First choose a policy that can be used. {fault}".strip())
            return
        try:
            unused = unknown() if "key_unused" in input and input.key_unused() else None
            key = chosen_key(input, live.desk, settled.opened, uploads, unused)
        except UnknownLedgerError as error:
            unknown.set(error.key)
            key_note.set(explain(error))
            return
        except rp.ReconprivError as error:
            key_note.set(explain(error))
            return
        key_note.set("")
        note.set("")
        said = accepted(input, _asked(live))
        plan = replace(_plan(settled, policy, test_key=key.is_test), **said)
        generated = input.key_kind() in ("generate", "another")
        live.desk.cancel.clear()
        live.desk.progress = ("starting", 0.0)
        words = refusals.words()
        job.start(lambda: live.desk.publish(settled, plan, key, generated=generated, **words))

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
        return plan_view(settled, policy, _audit(live))

    @render.ui
    def obstacles() -> Tag:
        return obstacle_cards(_asked(live))

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
        return result_card(live)


def _serve_key(input: Inputs, live: Live) -> None:
    """The choice of a key is redrawn whenever the table, or its key, changes."""

    @render.ui
    def key_choice() -> Tag | None:
        live.published()
        settled = live.settled()
        if settled is None:
            return None
        with reactive.isolate():
            test = "key_kind" in input and input.key_kind() == "test"
        opened, desk = settled.opened, live.desk
        newer = opened.identity not in desk.keys.keys
        return key_radios(key_options(desk.key_of(opened), newer=newer), test=test)

    @render.download_button(filename=KEY_FILE, media_type="text/plain")
    def get_table_key() -> Iterator[str]:
        settled = live.desk.settled
        known = None if settled is None else live.desk.key_of(settled.opened)
        req(known is not None)
        assert known is not None
        yield known.key.secret.hex() + "\n"

    @render.download_button(filename=ARCHIVE, media_type="application/zip")
    def get_table_ledger() -> str:
        settled, desk = live.desk.settled, live.desk
        known = None if settled is None else desk.key_of(settled.opened)
        req(known is not None and desk.ledgers.keeps(known.key))
        assert known is not None
        return str(desk.ledgers.archive(known.key, desk.folder("zip")))


def key_options(known: TableKey | None, *, newer: bool = False) -> dict[str, tuple[str, str]]:
    """The keys to choose from, each with a title and an explanation; the first is the default.

    ``newer`` means that the key is that of an earlier upload of the same name.
    """
    if known is None:
        return {
            "generate": (
                "Generate a new key",
                "For a first release. The studio keeps it as this table’s key and offers it for"
                " download.",
            ),
            "own": (
                "Use my key",
                "For a table that was published before, or a key you already have.",
            ),
            "test": TEST,
        }
    title = f"Use this table’s key ({known.origin})"
    words = "Publishing again with the same settings gives no second sample away."
    if newer:
        title = f"Use the key of the earlier {known.shown} ({known.origin})"
        words = (
            "A different file of this name was published before. A table that has grown or"
            " been corrected keeps its key."
        )
    return {
        "table": (title, words),
        "own": ("Use another key of mine", f"If it is not the key of the first release, {COST}"),
        "another": (
            "Make another key",
            f"With a new key, {COST} It replaces the key above: download that one first.",
        ),
        "test": TEST,
    }


def key_radios(options: dict[str, tuple[str, str]], *, test: bool) -> Tag:
    """The choice itself; the test key stays selected if it was."""
    chosen = "test" if test else next(iter(options))
    return tags.fieldset(
        tags.legend("Key"),
        tags.div(
            *(
                tags.label(
                    tags.input(type="radio", name="key_kind", value=name,
                               checked="" if name == chosen else None),
                    tags.span(tags.strong(title), tags.span(words, class_="muted")),
                    class_="radio",
                )
                for name, (title, words) in options.items()
            ),
            id="key_kind",
            class_="shiny-input-radiogroup",
            role="group",
        ),
    )  # fmt: skip


def chosen_key(
    input: Inputs,
    desk: Desk,
    opened: Opened,
    uploads: Uploads | None = None,
    unused: rp.Key | None = None,
) -> rp.Key:
    """The key that the form describes; a table that has one gets another only on request.

    ``uploads`` are those that were read before, ``unused`` is a key that is said to be new. Any
    other that comes without its ledger is refused: a new one would know of no earlier release.
    """
    kind, known = input.key_kind(), desk.key_of(opened)
    if kind == "test":
        return rp.Key.test()
    # A form drawn before the first release still says "generate" for a moment after it.
    if kind in ("table", "generate") and known is not None:
        return known.key
    if kind in ("table", "generate", "another"):
        return rp.Key.generate()
    given = given_key(input, {} if uploads is None else uploads)
    if given.ledger is not None:
        desk.ledgers.take(given.key, given.ledger, given.trials)
    elif not desk.ledgers.knows(given.key) and given.key != unused:
        raise UnknownLedgerError(given.key)
    return given.key


def _audit(live: Live) -> rp.AuditReport | None:
    """The audit of the table as it is now, if there is one."""
    audit = live.audit()
    return audit.found if audit is not None and audit.settled is live.settled() else None


def _asked(live: Live) -> list[Asked]:
    report = _audit(live)
    return [] if report is None else asked_about(report)


def _plan(settled: Settled, policy: rp.Policy, *, test_key: bool) -> Plan:
    opened = settled.opened
    return Plan(opened.source, settled.roles, policy, test_key, opened.uploaded)


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
    published, settled, policy = live.published(), live.settled(), live.policy()
    if published is None:
        return tags.section(button("publish", "Publish", primary=True), class_="publish-row")
    summary = published.release.as_dict()
    changed = since_release(published, live.opened(), settled, policy)
    known = None if settled is None else live.desk.key_of(settled.opened)
    words = (
        f"Published {published.settled.opened.shown} at {published.made:%H:%M}:"
        f" {summary['records']:,} records in {summary['groups']:,} groups,"
        f" {summary['sampled_groups']:,} of them sampled, {summary['trials']:,} independent trials."
    )
    means = ""
    if known is not None and settled is not None and policy is not None:
        means = same_key_means(known.uses[-1], _plan(settled, policy, test_key=False))
    other = settled is None or settled.opened.identity != published.settled.opened.identity
    label = "Publish" if other else "Publish again"
    return tags.section(
        notice(words, "good"),
        notice(f"{margins_line(summary['margins'])}.", "info", lead="Margins: ")
        if "margins" in summary
        else None,
        None
        if known is None
        else key_notice(
            known, fresh=_fresh(published, known), kept=live.desk.ledgers.keeps(known.key)
        ),
        notice(f"Changed since: {'; '.join(changed)}. {means}".strip(), "warning")
        if changed
        else None,
        *(notice(worded(text, page_words), "warning") for text in published.release.warnings),
        *(notice(text, "info") for text in published.release.notes),
        tags.div(button("publish", label, primary=bool(changed)), class_="publish-row"),
    )


def _fresh(published: Published, known: TableKey) -> bool:
    """Whether the last publication generated this key."""
    return published.generated and published.key.secret == known.key.secret


def key_notice(known: TableKey, *, fresh: bool, kept: bool = True) -> Tag:
    """The key of this table and its ledger, for the user to save; ``kept`` if they are here."""
    words = (
        f"A new key was made for {known.shown}. Download it now and keep it apart from the release,"
        " readable by you alone. The studio keeps it until it closes; without it, the next release"
        " of this table is a second sample."
        if fresh
        else f"The key of {known.shown} ({known.origin}) is kept until the studio closes."
    )
    links = [_small_download("get_table_key", "Download the key")]
    if kept:
        words += (
            " Its ledger records what was published with it. Save it beside the key, and give both"
            " the next time, here or on the command line. It continues the one that you gave or"
            " downloaded here before. If any other ledger of this key turns up, keep it, and give"
            " it together with the key."
        )
        links.append(_small_download("get_table_ledger", "Download its ledger"))
    elif known.key.file is not None:
        words += f" This release is recorded in {known.key.file.name}.ledger, beside the key."
    return tags.div(
        tags.span("i", {"aria-hidden": "true"}, class_="mark"),
        tags.div(tags.p(words), tags.div(*links, class_="key-links")),
        class_="notice info key-notice",
    )


def _small_download(id: str, title: str) -> Tag:
    return ui.download_button(id, title).add_class("button small")

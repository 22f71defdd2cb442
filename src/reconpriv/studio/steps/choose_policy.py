"""Step 3: a policy; its figures, its audit and the risk-utility picture follow the controls."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from htmltools import Tag, TagList, tags
from shiny import reactive, ui

import reconpriv as rp
from reconpriv.attacks.pool import pooled_share, quickly_pooled
from reconpriv.messages.remedies import worded
from reconpriv.studio.pieces import policy_controls, targets
from reconpriv.studio.pieces.parts import button, card, footer, notice
from reconpriv.studio.pieces.remedy_words import page_words
from reconpriv.studio.pieces.risk_utility import legend
from reconpriv.studio.pieces.searches import SECONDS, Sweep, try_settings, unfinished
from reconpriv.studio.pieces.targets import WISHES, TuningRequest, fault_of, suggestion
from reconpriv.studio.pieces.verdict import columns_table, details_cards, verdict_card
from reconpriv.studio.work.background import Computation
from reconpriv.studio.work.live import Candidate, Live
from reconpriv.studio.work.workspace import LoadedTable
from reconpriv.tuning.report import Setting, Target
from reconpriv.tuning.tuner import Tuner

_POLL_SECONDS = 0.25
START = {**policy_controls.START, "max_error": 0.1}
STEP = 3
# Up to so many, each column's effect is computed unasked: it takes a second or two.
_QUICK_CELLS, _QUICK_COLUMNS = 20_000, 24


def panel(draft: dict[str, Any]) -> Tag:
    """The static part: controls on the left, answers on the right."""
    at = {**START, **draft}
    answers = tags.div(
        tags.div(ui.output_ui("verdict"), {"aria-live": "polite"}),
        tags.div(ui.output_ui("hints")),
        card(
            "Risk and utility",
            tags.div(
                tags.div(
                    ui.output_ui("picture"),
                    tags.div(ui.output_ui("marker"), class_="layer"),
                    class_="layers",
                ),
                {"aria-label": "Risk and utility, drawn"},
                class_="scroller",
                role="region",
                tabindex="0",
            ),
            legend(),
            targets.panel(at),
            intro="Policies that protect single records at least as well as yours. Further right,"
            " analysts’ counts are less accurate; further up, an adversary learns less about the"
            " most exposed group. The lines join the policies that no other beats.",
        ),
        tags.div(ui.output_ui("details")),
        tags.div(ui.output_ui("columns_part")),
        class_="answers",
    )  # fmt: skip
    return tags.div(
        tags.div(policy_controls.panel(at), answers, class_="split"),
        footer(3, "Continue to publish", note="policy_note"),
    )


def setting_of(one: Candidate) -> Setting:
    """What a policy would do to a table, from its cells in memory."""
    tuner = one.loaded.tuner
    return tuner.setting(one.policy.on(tuner.schema))


def pooled_of(one: Candidate) -> float:
    """The share of people, by a publication in memory."""
    tuner = one.loaded.tuner
    return pooled_share(tuner.cube, one.policy.on(tuner.schema))


class PolicyResults:
    """What is computed about the table and the policy in force; each result knows its own.

    The tuner counts the table once; ``settings`` are figures of a policy, ``pooled`` the share of
    people whom an adversary reconstructs by neighbouring groups, ``columns`` what an audit would be
    without each column.
    """

    def __init__(self, live: Live) -> None:
        work, self.live = live.workspace, live
        self.tuners: Computation[LoadedTable, Tuner] = Computation(work.pool, work.tuner)
        self.settings: Computation[Candidate, Setting] = Computation(work.quick_pool, setting_of)
        self.pooled: Computation[Candidate, float] = Computation(work.report_pool, pooled_of)
        self.sweeps: Computation[TuningRequest, Sweep] = Computation(
            work.sweep_pool, lambda request: try_settings(request, self.sweeps.step)
        )
        self.columns: Computation[Candidate, rp.AuditReport] = Computation(
            work.report_pool,
            lambda one: work.audit_columns(one.loaded, one.policy, self.columns.step),
        )
        self.patient: reactive.Value[bool] = reactive.value(False)

    def request(self) -> TuningRequest | None:
        """What a suggestion would have to answer now."""
        one, input = self.live.candidate, self.live.input
        target = Target(**{name: input[name]() for name in WISHES})
        seconds = math.inf if self.patient() else SECONDS
        return None if one is None else TuningRequest(one, target, input.weaker(), seconds)

    def sweep_of_table(self) -> Sweep | None:
        """The latest sweep of the table, for whatever policy."""
        known = self.sweeps.latest()
        here = known is not None and known.key.candidate.loaded is self.live.loaded()
        return known.found if known is not None and here else None

    def best(self) -> Setting | None:
        """The suggestion for the current policy and targets."""
        known = self.sweeps.result(self.request())
        return None if known is None else suggestion(known.report)


def serve(live: Live) -> None:
    """The reactive part."""
    results = PolicyResults(live)
    policy_controls.serve(live)
    _serve_work(live, results)
    _serve_verdict(live, results)
    _serve_picture(live, results)
    _serve_columns(live, results)
    _serve_targets(live, results)

    async def go_on() -> None:
        words = live.note("policy")() or "First choose a policy that can be used."
        live.go_if(live.policy() is not None, STEP + 1, "policy", words)
        if live.policy() is None:
            await live.send("blame", {})

    live.on("next_3", go_on)


def _serve_work(live: Live, results: PolicyResults) -> None:
    """Figures at once; the sweep and the audit once the dials are at rest."""
    # The candidate once no dial moves.
    rested: reactive.Value[Candidate | None] = reactive.value(None)
    live.on("still", lambda: rested.set(live.candidate))

    # Before the audit: the figures of a policy come from these counts alone.
    @reactive.effect
    @reactive.event(live.loaded, live.step)
    def _() -> None:
        if live.step() == STEP:
            results.tuners.request(live.loaded())

    # At first together with the figures: a verdict is shown only once single records and columns
    # are known. Later the figures come first, because each would slow the other.
    @reactive.effect
    def _() -> None:
        one, step = live.candidate, live.step()
        if one is None or step not in (STEP, STEP + 1):
            return
        judged = (results.settings.result(one), results.settings.fault(one),
                  results.tuners.fault(one.loaded))  # fmt: skip
        if step > STEP or live.latest(live.audits) is None or (rested() == one and any(judged)):
            live.audits.request(one)

    # What runs for another policy would slow the figures of this one.
    @reactive.effect(priority=1)
    def _() -> None:
        one = live.candidate
        results.sweeps.keep(lambda request: request.candidate == one)
        results.columns.keep(lambda candidate: candidate == one)

    @reactive.effect
    def _() -> None:
        one = live.candidate
        if one is not None and results.tuners.result(one.loaded) is not None:
            results.settings.request(one)

    # Not while a dial moves, and after the verdict: if that takes long, so does a sweep.
    @reactive.effect
    def _() -> None:
        wanted = results.request()
        if wanted is None or live.step() != STEP or fault_of(wanted.target):
            return
        one = wanted.candidate
        if results.settings.result(one) is None or rested() != one:
            return
        results.sweeps.request(wanted)

    # After the sweep, which it would slow, and it cannot be cancelled.
    @reactive.effect
    def _() -> None:
        wanted = results.request()
        if wanted is None or live.step() != STEP:
            return
        one = wanted.candidate
        if results.settings.result(one) is None or rested() != one:
            return
        searched = (fault_of(wanted.target), results.sweeps.result(wanted),
                    results.sweeps.fault(wanted))  # fmt: skip
        if any(searched) and quickly_pooled(one.loaded.tuner.cube):
            results.pooled.request(one)


def _serve_verdict(live: Live, results: PolicyResults) -> None:
    def verdict() -> Tag | None:
        one, audit = live.candidate, live.latest(live.audits)
        refused = one is None or live.audits.fault(one)
        if audit is None:
            return None if refused else tags.p("Counting the groups…", class_="working")
        loaded, judged = audit.key.loaded, live.latest(results.settings)
        fault = results.tuners.fault(loaded) or (one and results.settings.fault(one))
        if fault or (refused and judged is None):
            words = verdict_card(audit.found, audit.key.policy, None, note=no_picture(fault or ""))
            return shown(words, current=audit.key == one)
        if judged is None:
            return tags.p("Judging the policy…", class_="working")
        share, failed = results.pooled.result(judged.key), results.pooled.fault(judged.key)
        measuring = share is None and not failed and quickly_pooled(loaded.tuner.cube)
        found = replace(judged.found, pooled=share)
        words = verdict_card(audit.found, judged.key.policy, found, measuring=measuring)
        return shown(words, current=judged.key == one)

    def details() -> Tag | None:
        audit = live.latest(live.audits)
        if audit is None:
            return None
        return shown(details_cards(audit.found), current=audit.key == live.candidate)

    shown = live.result
    live.show(
        "policy_note", lambda: notice(live.note("policy")() or live.audits.fault(live.candidate))
    )
    live.show("verdict", verdict)
    live.show("details", details)


def _serve_picture(live: Live, results: PolicyResults) -> None:
    # Drawn anew for a sweep, not for every move of a slider: it is large.
    def picture() -> Tag:
        known, failed = results.sweep_of_table(), results.sweeps.failure()
        fault = results.tuners.fault(live.loaded())
        if failed is not None and failed.key.candidate.loaded is live.loaded():
            fault = failed.fault
        if known is not None and not fault and known.chart is not None:
            return known.chart.picture()
        if known is None and not fault:
            return tags.div(class_="chart empty")
        none = "None of the settings tried can be published for this table."
        return tags.p(no_picture(fault) if fault else none, class_="empty-state")

    def marker() -> Tag | None:
        known, judged = results.sweep_of_table(), live.latest(results.settings)
        if known is None or known.chart is None or judged is None:
            return None
        if not judged.found.exposes or not judged.found.error > 0:
            return None
        mark = known.chart.marks(judged.found, results.best())
        return mark if judged.key == live.candidate else mark.add_class("stale")

    live.show("picture", picture)
    live.show("marker", marker)


def no_picture(fault: str) -> str:
    """Why settings cannot be tried out."""
    return f"There is no picture: {fault}" if fault else ""


def _serve_targets(live: Live, results: PolicyResults) -> None:
    """Where the current policy stands, and what would be better."""

    @reactive.effect
    def _() -> None:
        live.remember({name: live.input[name]() for name in (*WISHES, "weaker")})

    def serve_standing(name: str) -> None:
        def standing() -> Tag | None:
            judged, wanted = live.latest(results.settings), results.request()
            if judged is None or wanted is None:
                return None
            line = targets.standing(name, wanted.target, judged.found)
            return line if judged.key == wanted.candidate else line.add_class("stale")

        live.show(f"stands_{name}", standing)

    for name in WISHES:
        serve_standing(name)

    def advice() -> Tag | None:
        wanted = results.request()
        if wanted is None:
            return None
        if fault := fault_of(wanted.target):
            return notice(fault)
        one, known = wanted.candidate, results.sweeps.result(wanted)
        if known is not None:
            words = targets.advice(known.report, wanted.target, whole=known.whole)
            found = TagList(None if known.whole else unfinished(known), words)
            return live.result(found, current=True)
        faults = (results.tuners.fault(one.loaded), results.settings.fault(one),
                  results.sweeps.fault(wanted))  # fmt: skip
        return (
            None
            if any(faults)
            else tags.p(
                "Looking for a suggestion…", tags.span(id="sweep_progress"), class_="working"
            )
        )

    def progress_words(tried: int, settings: int) -> str:
        return f" {tried:,} of {settings:,} settings tried" if settings else ""

    def try_all() -> None:
        results.patient.set(True)

    # A larger search is for the settings that it was asked for.
    @reactive.effect
    @reactive.event(lambda: live.candidate)
    def _() -> None:
        results.patient.set(False)

    async def recommend() -> None:
        chosen = results.best()
        if chosen is not None:
            await live.send("controls", policy_controls.controls_of(chosen.policy))

    _tell_progress(live, results.sweeps, "sweep_progress", progress_words)
    live.on("try_all", try_all)
    live.show("advice", advice)
    live.on("recommend", recommend)

    @reactive.effect
    def _() -> None:
        ui.update_action_button("recommend", disabled=results.best() is None)


def _tell_progress(
    live: Live, work: Computation[Any, Any], place: str, words: Callable[[int, int], str]
) -> None:
    """Say on the page how far a piece of work is, as long as it runs."""

    @reactive.effect
    async def _() -> None:
        if work.busy():
            reactive.invalidate_later(_POLL_SECONDS)
            await live.send("say", {"id": place, "words": words(*work.progress)})


def _serve_columns(live: Live, results: PolicyResults) -> None:
    """What each column does, and what would help: at once if quick, otherwise on request."""

    def quick(report: rp.AuditReport) -> bool:
        loaded = live.loaded()
        columns = 0 if loaded is None else len(loaded.roles.public)
        return report.cells <= _QUICK_CELLS and columns <= _QUICK_COLUMNS

    @reactive.effect
    def _() -> None:
        audit = live.audits.result(live.candidate)
        if audit is not None and quick(audit):
            results.columns.request(live.candidate)

    def hints() -> Tag | None:
        known = live.latest(results.columns)
        if known is None or not known.found.hints:
            return None
        now = known.key == live.candidate
        shown = live.result(hint_card(known.found), current=now)
        return shown if now or quick(known.found) else None

    def columns_part() -> Tag | None:
        audit, known = live.latest(live.audits), live.latest(results.columns)
        if audit is None:
            return None
        now = known is not None and known.key == live.candidate
        running = quick(audit.found) or results.columns.busy()
        fault = results.columns.fault(live.candidate)
        content: Tag | TagList
        if known is not None and (now or running):
            content = live.result(columns_table(known.found), current=now)
        elif running and not fault:
            content = tags.p(
                "Counting the table without each column…", tags.span(id="columns_progress"),
                class_="working",
            )  # fmt: skip
        else:
            content = TagList(notice(fault), button("try_columns", "Count it without each column"))
        return card("Columns", content)

    _tell_progress(
        live, results.columns, "columns_progress", lambda done, _: f" {done} %" if done else ""
    )
    live.on("try_columns", lambda: results.columns.request(live.candidate))
    live.show("hints", hints)
    live.show("columns_part", columns_part)


def hint_card(report: rp.AuditReport) -> Tag:
    """What would make a better release."""
    notes = (notice(worded(hint, page_words), "info") for hint in report.hints)
    return card("What would help", *notes)

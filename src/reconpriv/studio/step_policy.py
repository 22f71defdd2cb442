"""Step 3: a policy; its figures, its audit and the risk-utility picture follow the controls."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any

from htmltools import Tag, TagList, tags
from shiny import Inputs, reactive, render, ui

import reconpriv as rp
from reconpriv.studio import neighbours, policy_controls, targets
from reconpriv.studio.charts import RiskUtility, legend
from reconpriv.studio.desk import CancelledError, Desk, Settled, explain
from reconpriv.studio.jobs import Job
from reconpriv.studio.judged import Judged, shown
from reconpriv.studio.live import Live
from reconpriv.studio.obstacles import serve_hints
from reconpriv.studio.parts import alert_place, button, card, footer, notice
from reconpriv.studio.policy_controls import show_controls
from reconpriv.studio.targets import (
    DECIMALS,
    WISHES,
    Asked,
    dials_of,
    fault_of,
    searched,
    standing,
    suggestion,
    target_of,
)
from reconpriv.studio.verdict import columns_table, details_cards, plain_verdict, verdict_card
from reconpriv.theory.bounds import resolve_bound
from reconpriv.tuning.report import Setting, TuneReport
from reconpriv.tuning.sweep import USUAL_MARGINS, sweep

_PLAIN_BOUND = "chernoff"
START = {**policy_controls.START, "max_error": 0.1}
STEP = 3
_WORST = 6
# Up to this many, each column's effect is computed unasked: it takes a second or two.
_QUICK_CELLS = 20_000


def panel(draft: dict[str, Any]) -> Tag:
    """The static part: controls on the left, answers on the right."""
    at = {**START, **draft}
    answers = tags.div(
        tags.div(
            alert_place("policy_note"),
            tags.div(ui.output_ui("verdict"), {"aria-live": "polite"}),
        ),
        tags.div(ui.output_ui("hints")),
        card(
            "Risk and utility",
            tags.div(
                ui.output_ui("picture"),
                tags.div(ui.output_ui("marker"), class_="layer"),
                class_="layers",
            ),
            legend(),
            targets.panel(at),
            intro="Each mark is a policy. Further right, analysts’ counts are less accurate;"
            " further up, an adversary learns less about the most exposed group.",
        ),
        tags.div(ui.output_ui("details")),
        tags.div(ui.output_ui("columns_part")),
        class_="answers",
    )  # fmt: skip
    return tags.div(
        tags.div(policy_controls.panel(at), answers, class_="split"),
        footer(3, "Continue to publish"),
    )


@dataclass(frozen=True)
class Counted:
    """A table's cells, ready for any policy; or the reason why policies cannot be tried on it."""

    settled: Settled
    tuner: Any = None
    reason: str = ""


@dataclass(frozen=True)
class Picture:
    """What is known about a table's settings; the suggestion answers what was ``asked``."""

    settled: Settled
    asked: Asked
    report: TuneReport | None = None
    chart: RiskUtility | None = None
    reason: str = ""


@dataclass(frozen=True)
class Answers:
    """What the page knows so far; each result knows what it is about.

    ``fault`` says why a policy cannot be audited; ``rested`` is the policy once no dial moves.
    """

    counted: reactive.Value[Counted | None]
    setting: reactive.Value[Judged[Setting] | None]
    picture: reactive.Value[Picture | None]
    columns: reactive.Value[Judged[rp.AuditReport] | None]
    fault: reactive.Value[Judged[str] | None]
    rested: reactive.Value[rp.Policy | None]


def serve(input: Inputs, live: Live) -> None:
    """The reactive part."""
    nothing: list[Any] = [reactive.value(None) for _ in fields(Answers)]
    answers = Answers(*nothing)
    policy_controls.serve(input, live)

    @reactive.calc
    def asked() -> Asked | None:
        """What a suggestion would have to answer now."""
        policy = live.policy()
        wishes = {name: input[name]() for name in WISHES}
        return None if policy is None else Asked(policy, target_of(wishes), input.weaker())

    _serve_work(input, live, answers, asked)
    _serve_views(live, answers, asked)
    _serve_columns(input, live, answers)
    _serve_targets(input, live, answers, asked)

    @reactive.effect
    @reactive.event(input.next_3)
    async def _() -> None:
        note = live.note("policy")
        if live.policy() is None:
            note.set(note() or "First choose a policy that can be used.")
        else:
            await live.go(4)


def _serve_work(
    input: Inputs, live: Live, answers: Answers, asked: Callable[[], Asked | None]
) -> None:
    """Figures at once; the sweep and the audit once the dials are at rest."""
    note = live.note("policy")

    def failed(error: BaseException) -> None:
        if not isinstance(error, CancelledError):
            note.set(explain(error))

    def answered(found: Judged[Setting]) -> None:
        if found.holds_for(live.settled(), live.policy()):
            note.set("")
        answers.setting.set(found)

    quick: Job[Judged[Setting]] = Job(live.desk.quick_pool, answered, failed)

    def judged(found: Judged[rp.AuditReport] | Judged[str]) -> None:
        if isinstance(found.found, str):
            answers.fault.set(Judged(found.settled, found.policy, found.found))
        else:
            live.audit.set(Judged(found.settled, found.policy, found.found))

    slow: Job[Judged[rp.AuditReport] | Judged[str]] = Job(live.desk.pool, judged, failed)
    counting: Job[Counted] = Job(live.desk.pool, answers.counted.set, failed)
    sweeping: Job[Picture] = Job(live.desk.sweep_pool, answers.picture.set, failed)
    rested = answers.rested

    @reactive.effect
    @reactive.event(input.still)
    def _() -> None:
        rested.set(live.policy())

    # Before the audit: the figures of a policy come from these counts alone.
    @reactive.effect
    @reactive.event(live.settled, live.step)
    def _() -> None:
        settled, known = live.settled(), answers.counted()
        if settled is None or live.step() != STEP or (known and known.settled is settled):
            return
        counting.start(lambda: count_cells(live.desk, settled))

    # Before the sweep: a verdict is shown only once single records and columns are known.
    @reactive.effect
    @reactive.event(input.still, live.settled, live.step)
    def _() -> None:
        settled, policy, known = live.settled(), live.policy(), live.audit()
        if settled is None or policy is None or live.step() not in (STEP, STEP + 1):
            return
        if known is None or not known.holds_for(settled, policy):
            slow.start(lambda: audited(live.desk, settled, policy))

    @reactive.effect
    @reactive.event(
        rested, live.settled, live.step, input.weaker, *(input[name] for name in WISHES),
        answers.setting,
    )  # fmt: skip
    def _() -> None:
        settled, wanted, known = live.settled(), asked(), answers.picture()
        if settled is None or wanted is None or live.step() != STEP or fault_of(wanted.target):
            return
        # Not while a dial moves, and after the verdict: if that takes long, so does a sweep.
        judged = answers.setting()
        ready = judged is not None and judged.holds_for(settled, wanted.policy)
        new = known is None or known.settled is not settled or known.asked != wanted
        counted = answers.counted()
        if new and ready and rested() == wanted.policy and counted is not None:
            sweeping.start(lambda: try_settings(counted, wanted))

    @reactive.effect
    def _() -> None:
        settled, policy, counted = live.settled(), live.policy(), answers.counted()
        if settled is None or policy is None or counted is None or counted.settled is not settled:
            return
        with reactive.isolate():
            known = answers.setting()
        if known is not None and known.holds_for(settled, policy):
            return
        if (tuner := counted.tuner) is not None:
            quick.start(lambda: Judged(settled, policy, tuner.setting(tuner.settled(policy))))


def _serve_views(live: Live, answers: Answers, asked: Callable[[], Asked | None]) -> None:
    def tuner() -> Any:
        counted = answers.counted()
        return None if counted is None else counted.tuner

    pooled = neighbours.serve(live, answers.rested, answers.setting, tuner)

    def fault() -> str:
        """Why the current policy cannot be audited; empty if nothing is known against it."""
        found = answers.fault()
        current = found is not None and found.holds_for(live.settled(), live.policy())
        return found.found if found is not None and current else ""

    @render.ui
    def policy_note() -> Tag | None:
        return notice(live.note("policy")() or fault())

    @render.ui
    def verdict() -> Tag | None:
        settled, policy = live.settled(), live.policy()
        if live.note("policy")() or fault() or settled is None or policy is None:
            return None
        judged, counted, audit = answers.setting(), answers.counted(), live.audit()
        waiting = tags.p("Counting and trying settings…", class_="working")
        if counted is None or counted.settled is not settled:
            return waiting
        if audit is None or audit.settled is not settled:
            return waiting
        if counted.reason:
            words = plain_verdict(audit.found, counted.reason)
            return shown(words, current=audit.holds_for(settled, policy))
        if judged is None or judged.settled is not settled:
            return waiting
        found, measuring = neighbours.with_share(judged, pooled(), counted.tuner)
        words = verdict_card(audit.found, judged.policy, found, measuring=measuring)
        return shown(words, current=judged.holds_for(settled, policy))

    @render.ui
    def picture() -> Tag:
        known, counted, settled = answers.picture(), answers.counted(), live.settled()
        if counted is not None and counted.settled is settled and counted.reason:
            return tags.p(counted.reason, class_="empty-state")
        if known is None or known.settled is not settled:
            return tags.div(class_="chart empty")
        if known.chart is None or known.report is None:
            words = known.reason or "None of the settings tried can be published for this table."
            return tags.p(words, class_="empty-state")
        return known.chart.picture()

    @render.ui
    def marker() -> Tag | None:
        known, judged, settled = answers.picture(), answers.setting(), live.settled()
        if known is None or known.chart is None or known.settled is not settled:
            return None
        found = None if judged is None or judged.settled is not settled else judged.found
        if judged is None or found is None or not found.exposes or not found.error > 0:
            return None
        answered = known.report is not None and known.asked == asked()
        best = suggestion(known.report) if answered and known.report is not None else None
        mark = known.chart.marker(found, best)
        return mark if judged.holds_for(settled, live.policy()) else mark.add_class("stale")

    @render.ui
    def details() -> Tag | None:
        audit, settled, policy = live.audit(), live.settled(), live.policy()
        if audit is None or audit.settled is not settled or policy is None:
            return None
        return shown(details_cards(audit.found), current=audit.holds_for(settled, policy))


def _serve_targets(
    input: Inputs, live: Live, answers: Answers, asked: Callable[[], Asked | None]
) -> None:
    """Where the current policy stands, and what would be better."""

    def judged() -> Judged[Setting] | None:
        found, settled = answers.setting(), live.settled()
        return found if found is not None and found.settled is settled else None

    @reactive.effect
    def _() -> None:
        live.remember({name: input[name]() for name in (*WISHES, "weaker")})

    for name in WISHES:
        _serve_standing(name, live, judged, asked)

    @reactive.calc
    def offer() -> TuneReport | None:
        """What was found for the current policy and targets."""
        known, wanted = answers.picture(), asked()
        if known is None or known.settled is not live.settled() or known.asked != wanted:
            return None
        return known.report

    @render.ui
    def advice() -> Tag | None:
        known, counted, wanted = answers.picture(), answers.counted(), asked()
        if wanted is None or (known and known.reason) or (counted and counted.reason):
            return None
        if fault := fault_of(wanted.target):
            return notice(fault)
        report = offer()
        if report is None:
            return tags.p("Looking for a suggestion…", class_="working")
        return tags.div(targets.advice(report, wanted))

    @reactive.effect
    def _() -> None:
        report = offer()
        usable = report is not None and suggestion(report) is not None
        ui.update_action_button("recommend", disabled=not usable)

    @reactive.effect
    @reactive.event(input.recommend)
    async def _() -> None:
        report = offer()
        best = None if report is None else suggestion(report)
        if best is None:
            return
        chosen = {"sample_size": best.sample_size, "bound": best.bound}
        await show_controls(live, {**dials_of(best), **chosen})


def _serve_columns(input: Inputs, live: Live, answers: Answers) -> None:
    """What each column does: at once if that is quick, otherwise on request."""
    note: reactive.Value[str] = reactive.value("")
    serve_hints(live, answers.columns, quick)

    def failed(error: BaseException) -> None:
        note.set("" if isinstance(error, CancelledError) else explain(error))

    def done(found: Judged[rp.AuditReport]) -> None:
        note.set("")
        answers.columns.set(found)

    job: Job[Judged[rp.AuditReport]] = Job(live.desk.report_pool, done, failed)

    def start(audit: Judged[rp.AuditReport]) -> None:
        settled, policy = audit.settled, audit.policy
        job.start(lambda: Judged(settled, policy, live.desk.audit_columns(settled, policy)))

    @reactive.effect
    def _() -> None:
        audit = live.audit()
        if audit is not None and audit.holds_for(live.settled(), live.policy()) and quick(audit):
            start(audit)

    @reactive.effect
    @reactive.event(input.try_columns)
    def _() -> None:
        audit = live.audit()
        if audit is not None and audit.holds_for(live.settled(), live.policy()):
            start(audit)

    @render.ui
    def columns_part() -> Tag | None:
        audit, known = live.audit(), answers.columns()
        settled, policy = live.settled(), live.policy()
        if audit is None or audit.settled is not settled or policy is None:
            return None
        current = known is not None and known.holds_for(settled, policy)
        here = known is not None and known.settled is settled
        content: Tag | TagList
        if known is not None and (current or (here and (quick(audit) or job.busy()))):
            content = shown(columns_table(known.found), current=current)
        elif quick(audit) or job.busy():
            content = tags.p("Counting the table without each column…", class_="working")
        else:
            content = TagList(notice(note()), button("try_columns", "Count it without each column"))
        return card("Columns", content, intro="What the audit, and the analysts’ error, would be"
                    " without each public column.")  # fmt: skip


def quick(audit: Judged[rp.AuditReport]) -> bool:
    """Whether the table can be recounted without each column whenever the dials are at rest."""
    return audit.found.cells <= _QUICK_CELLS


def _serve_standing(
    name: str,
    live: Live,
    judged: Callable[[], Judged[Setting] | None],
    asked: Callable[[], Asked | None],
) -> None:
    @live.session.output(id=f"stands_{name}")
    @render.ui
    def _() -> Tag | None:
        found, wanted = judged(), asked()
        if found is None or wanted is None:
            return None
        line = standing(name, wanted.target, found.found)
        return line if found.holds_for(live.settled(), wanted.policy) else line.add_class("stale")


def audited(desk: Desk, settled: Settled, policy: rp.Policy) -> Judged[Any]:
    """The audit of a policy, or why there is none: a margin table may give groups away."""
    try:
        return Judged(settled, policy, desk.audit(settled, policy, worst=_WORST))
    except rp.ReconprivError as error:
        return Judged(settled, policy, explain(error))


def count_cells(desk: Desk, settled: Settled) -> Counted:
    """Count a table once for all policies; it may be too small or too even for the workload."""
    try:
        return Counted(settled, desk.tuner(settled))
    except rp.ReconprivError as error:
        return Counted(settled, reason=f"There is no picture for this table: {explain(error)}")


def try_settings(counted: Counted, asked: Asked) -> Picture:
    """Try many settings around a policy."""
    tuner, policy = counted.tuner, counted.tuner.settled(asked.policy)
    try:
        # What one record reveals depends on p alone; without sampling that is quick to compute.
        plain = replace(policy, bound=_PLAIN_BOUND, sample_size="none", margins=None)
        bound = resolve_bound(_bound_for_sampling(policy))
        # Without exact tails, settings with and without margins are judged quickly.
        both = [None, policy.wanted_margins or USUAL_MARGINS]
        report = sweep(
            tuner,
            margins=None if bound.lattice else both,
            target=searched(asked, tuner.setting(plain).posterior),
            bound=bound,
            current=policy,
            decimals=DECIMALS,
        )
    except rp.ReconprivError as error:
        words = f"There is no picture for this policy: {explain(error)}"
        return Picture(counted.settled, asked, reason=words)
    return Picture(counted.settled, asked, report, RiskUtility.of(report.settings))


def _bound_for_sampling(policy: rp.Policy) -> str:
    """The policy's bound if settings with a sample can use it; otherwise the plain one."""
    bound = policy.tail_bound
    return bound.name if bound.sizes_classes else _PLAIN_BOUND

"""Step 3: p, ε, δ, bound and sample size; the audit and the risk-utility picture answer live."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from htmltools import Tag, tags
from shiny import Inputs, reactive, render, ui

import reconpriv as rp
from reconpriv.studio import targets
from reconpriv.studio.charts import RiskUtility, legend
from reconpriv.studio.desk import CancelledError, Desk, Settled, explain
from reconpriv.studio.jobs import Job
from reconpriv.studio.live import Live
from reconpriv.studio.parts import alert_place, card, choice, dial, footer, notice
from reconpriv.studio.targets import (
    WISHES,
    Asked,
    fault_of,
    same_policy,
    standing,
    suggestion,
    target_of,
)
from reconpriv.studio.targets import advice as advice_words
from reconpriv.studio.verdict import Judged, details_cards, plain_verdict, shown, verdict_card
from reconpriv.tuning.report import Setting, TuneReport
from reconpriv.tuning.sweep import sweep

START = {"p": 0.5, "e": 0.5, "d": 0.3, "bound": "chernoff", "sample_size": "octave",
         "unattainable": "refuse", "max_error": 0.1}  # fmt: skip
BOUNDS = {
    "chernoff": "Chernoff (the paper’s)",
    "chernoff-full": "Chernoff in full",
    "hoeffding": "Hoeffding",
    "bernstein": "Bernstein",
    "chebyshev": "Chebyshev",
    "markov": "Markov",
    "exact": "Exact tails",
}
SAMPLE_SIZES = {
    "octave": "Octave (default)",
    "public": "Public",
    "paper": "Paper (leaks)",
    "none": "None: perturb only",
}
UNATTAINABLE = {"refuse": "Refuse to publish", "one-trial": "Keep one trial each"}
STEP = 3
_WORST = 6


def panel(draft: dict[str, Any]) -> Tag:
    """The static part: dials on the left, answers on the right."""
    at = {**START, **draft}
    dials = tags.div(
        card(
            "Policy",
            dial("p", "p", "Retention", "How often a value is kept. Higher: better counts, less"
                 " deniability.", at["p"], (0.05, 0.95, 0.01)),
            dial("e", "ε", "Relative error", "A reconstruction that is off by more than this counts"
                 " as safe. Higher: stricter.", at["e"], (0.05, 1.0, 0.05)),
            dial("d", "δ", "Tail", "Such an error must not be provably rarer than this. Higher:"
                 " stricter.", at["d"], (0.01, 0.99, 0.01)),
            choice("sample_size", "Sample size", SAMPLE_SIZES, at["sample_size"],
                   "What the trials of a large group may depend on. Octave: on its largest"
                   " frequency to a power of ½. Public: on its size alone."),
            choice("bound", "Tail bound", BOUNDS, at["bound"],
                   "How it is proved that an error is rare."),
            choice("unattainable", "Groups that no sample makes private", UNATTAINABLE,
                   at["unattainable"]),
        ),
        class_="dials",
    )  # fmt: skip
    answers = tags.div(
        tags.div(
            alert_place("policy_note"),
            tags.div(ui.output_ui("verdict"), {"aria-live": "polite"}),
        ),
        card(
            "Risk and utility",
            tags.div(
                ui.output_ui("picture"),
                tags.div(ui.output_ui("marker"), class_="layer"),
                class_="layers",
            ),
            legend(),
            targets.panel(at),
            intro="Each dot is a policy. Right: analysts’ counts are less accurate. Up: an"
            " adversary learns less about the most exposed group.",
        ),
        tags.div(ui.output_ui("details")),
        class_="answers",
    )  # fmt: skip
    return tags.div(tags.div(dials, answers, class_="split"), footer(3, "Continue to publish"))


@dataclass(frozen=True)
class Picture:
    """What is known about a table's settings; the suggestion answers what was ``asked``."""

    settled: Settled
    asked: Asked
    tuner: Any = None
    report: TuneReport | None = None
    chart: RiskUtility | None = None
    reason: str = ""


@dataclass(frozen=True)
class Answers:
    """What the page knows, as it comes in; each result knows what it is about."""

    setting: reactive.Value[Judged[Setting] | None]
    picture: reactive.Value[Picture | None]
    audit: reactive.Value[Judged[rp.AuditReport] | None]


def serve(input: Inputs, live: Live) -> None:
    """The reactive part."""
    answers = Answers(reactive.value(None), reactive.value(None), reactive.value(None))
    _serve_dials(input, live)

    @reactive.calc
    def asked() -> Asked | None:
        """What a suggestion would have to answer now."""
        policy = live.policy()
        wishes = {name: input[name]() for name in WISHES}
        return None if policy is None else Asked(policy, target_of(wishes), input.weaker())

    _serve_work(input, live, answers, asked)
    _serve_views(live, answers)
    _serve_targets(input, live, answers, asked)

    @reactive.effect
    @reactive.event(input.next_3)
    async def _() -> None:
        note = live.note("policy")
        if live.policy() is None:
            note.set(note() or "Choose a policy that can be used first.")
        else:
            await live.go(4)


def _serve_work(
    input: Inputs, live: Live, answers: Answers, asked: Callable[[], Asked | None]
) -> None:
    """Figures at once; the sweep and the audit when the dials have come to rest."""
    note = live.note("policy")

    def failed(error: BaseException) -> None:
        if not isinstance(error, CancelledError):
            note.set(explain(error))

    def answered(found: Judged[Setting]) -> None:
        if found.holds_for(live.settled(), live.policy()):
            note.set("")
        answers.setting.set(found)

    quick: Job[Judged[Setting]] = Job(live.desk.quick_pool, answered, failed)
    slow: Job[Judged[rp.AuditReport]] = Job(live.desk.pool, answers.audit.set, failed)
    sweeping: Job[Picture] = Job(live.desk.pool, answers.picture.set, failed)

    @reactive.effect
    @reactive.event(
        input.still, live.settled, live.step, input.weaker, *(input[name] for name in WISHES)
    )
    def _() -> None:
        settled, wanted, known = live.settled(), asked(), answers.picture()
        if settled is None or wanted is None or live.step() != STEP or fault_of(wanted.target):
            return
        mine = known is not None and known.settled is settled
        if mine and known is not None and known.asked == wanted:
            return
        tuner = known.tuner if mine and known is not None else None
        sweeping.start(lambda: try_settings(live.desk, settled, tuner, wanted))

    @reactive.effect
    def _() -> None:
        settled, policy, picture = live.settled(), live.policy(), answers.picture()
        if settled is None or policy is None or picture is None or picture.settled is not settled:
            return
        with reactive.isolate():
            known = answers.setting()
        if known is not None and known.holds_for(settled, policy):
            return
        if (tuner := picture.tuner) is not None:
            quick.start(lambda: Judged(settled, policy, tuner.setting(policy)))

    @reactive.effect
    @reactive.event(input.still, live.settled, live.step)
    def _() -> None:
        settled, policy, known = live.settled(), live.policy(), answers.audit()
        if settled is None or policy is None or live.step() != STEP:
            return
        if known is None or not known.holds_for(settled, policy):
            audit = live.desk.audit
            slow.start(lambda: Judged(settled, policy, audit(settled, policy, worst=_WORST)))


def _serve_views(live: Live, answers: Answers) -> None:
    @render.ui
    def policy_note() -> Tag | None:
        return notice(live.note("policy")())

    @render.ui
    def verdict() -> Tag | None:
        settled, policy = live.settled(), live.policy()
        if live.note("policy")() or settled is None or policy is None:
            return None
        judged, picture, audit = answers.setting(), answers.picture(), answers.audit()
        waiting = tags.p("Counting and trying settings…", class_="working")
        if picture is None or picture.settled is not settled:
            return waiting
        if picture.reason:
            if audit is None or audit.settled is not settled:
                return waiting
            card = plain_verdict(audit.found, picture.reason)
            return shown(card, current=audit.holds_for(settled, policy))
        if judged is None or judged.settled is not settled:
            return waiting
        one_trial = judged.policy.unattainable == "one-trial"
        card = verdict_card(settled, judged.found, one_trial=one_trial)
        return shown(card, current=judged.holds_for(settled, policy))

    @render.ui
    def picture() -> Tag:
        known = answers.picture()
        if known is None or known.settled is not live.settled():
            return tags.div(class_="chart empty")
        if known.chart is None or known.report is None:
            words = known.reason or "No setting of the sweep can be published on this table."
            return tags.p(words, class_="empty-state")
        return known.chart.picture(suggestion(known.report))

    @render.ui
    def marker() -> Tag | None:
        known, judged, settled = answers.picture(), answers.setting(), live.settled()
        if known is None or known.chart is None or known.settled is not settled:
            return None
        if judged is None or judged.settled is not settled or not judged.found.error > 0:
            return None
        mark = known.chart.marker(judged.found)
        return mark if judged.holds_for(settled, live.policy()) else mark.add_class("stale")

    @render.ui
    def details() -> Tag | None:
        audit, settled, policy = answers.audit(), live.settled(), live.policy()
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
        live.keep({name: input[name]() for name in (*WISHES, "weaker")})

    for name in WISHES:
        _serve_standing(name, live, judged, asked)

    @reactive.calc
    def offer() -> tuple[TuneReport, Setting] | None:
        """The suggestion with the figures of the policy it is compared with, if both are known."""
        known, mine, wanted = answers.picture(), judged(), asked()
        if known is None or known.report is None or mine is None or wanted is None:
            return None
        fresh = known.settled is live.settled() and known.asked == wanted
        ready = fresh and mine.holds_for(live.settled(), wanted.policy)
        return (known.report, mine.found) if ready else None

    @render.ui
    def advice() -> Tag | None:
        known, wanted = answers.picture(), asked()
        if wanted is None or (known is not None and known.reason):
            return None
        if fault := fault_of(wanted.target):
            return notice(fault)
        found = offer()
        if found is None:
            return tags.p("Looking for a suggestion…", class_="working")
        return tags.div(advice_words(*found, weaker=wanted.weaker))

    @reactive.effect
    async def _() -> None:
        found = offer()
        best = None if found is None else suggestion(found[0])
        usable = best is not None and found is not None and not same_policy(best, found[1])
        ui.update_action_button("recommend", disabled=not usable)

    @reactive.effect
    @reactive.event(input.recommend)
    async def _() -> None:
        found = offer()
        best = None if found is None else suggestion(found[0])
        if best is None:
            return
        chosen: dict[str, object] = {"p": best.retention, "e": best.epsilon, "d": best.delta}
        await live.session.send_custom_message("studio-dials", chosen)
        ui.update_select("sample_size", selected=best.sample_size)
        ui.update_select("bound", selected=best.bound)


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


def _serve_dials(input: Inputs, live: Live) -> None:
    """Every change becomes a policy, or an explanation of why it cannot be one."""

    @reactive.effect
    def _() -> None:
        names = ("bound", "sample_size", "unattainable")
        values = {name: input[name]() for name in ("p", "e", "d", *names)}
        live.keep(values)
        try:
            policy = rp.Policy(
                values["p"], values["e"], values["d"], **{name: values[name] for name in names}
            )
            policy.check_sampling()
        except rp.ReconprivError as error:
            live.policy.set(None)
            live.note("policy").set(explain(error))
            return
        live.note("policy").set("")
        live.policy.set(policy)


def try_settings(desk: Desk, settled: Settled, tuner: Any, asked: Asked) -> Picture:
    """Try many settings; a table too small or too even for the workload has no such picture."""
    if settled is not desk.settled:
        raise CancelledError
    try:
        tuner = tuner or settled.table.tuner()
        report = sweep(tuner, target=asked.target, bound=_bound_for_sampling(asked.policy))
    except rp.ReconprivError as error:
        words = f"There is no picture for this table: {explain(error)}"
        return Picture(settled, asked, reason=words)
    return Picture(settled, asked, tuner, report, RiskUtility.of(report.settings))


def _bound_for_sampling(policy: rp.Policy) -> str:
    """The bound of the policy where settings with a sample can have it."""
    chosen = policy.as_dict()
    try:
        replace(policy, sample_size="octave").check_sampling()
    except rp.ReconprivError:
        return str(START["bound"])
    return str(chosen["bound"])

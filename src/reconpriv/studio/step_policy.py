"""Step 3: p, ε, δ, bound and sample size; the audit and the risk-utility picture answer live."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from htmltools import Tag, tags
from shiny import Inputs, reactive, render, ui

import reconpriv as rp
from reconpriv.studio.charts import RiskUtility, group_sizes, legend
from reconpriv.studio.desk import CancelledError, Desk, Settled, explain, in_page_words
from reconpriv.studio.jobs import Job
from reconpriv.studio.live import Live
from reconpriv.studio.parts import (
    alert_place,
    button,
    card,
    choice,
    dial,
    figures,
    footer,
    grid,
    notice,
)
from reconpriv.tuning.report import Setting, Target, TuneReport
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
            tags.div(
                tags.label("Largest error analysts can live with", {"for": "max_error"}),
                tags.input(id="max_error", type="number", min=0.01, max=2, step=0.01,
                           value=at["max_error"]),
                button("recommend", "Use the suggested setting"),
                class_="field joined",
            ),
            ui.output_ui("advice"),
            intro="Each dot is a policy. Right: analysts’ counts are less accurate. Up: the group"
            " that an adversary can tell best is told worse.",
        ),
        tags.div(ui.output_ui("details")),
        class_="answers",
    )  # fmt: skip
    return tags.div(tags.div(dials, answers, class_="split"), footer(3, "Continue to publish"))


@dataclass(frozen=True)
class Picture:
    """What is known about a table's settings."""

    settled: Settled
    tuner: Any = None
    report: TuneReport | None = None
    chart: RiskUtility | None = None
    reason: str = ""


@dataclass(frozen=True)
class Answers:
    """What the page knows about the current policy, as it comes in."""

    setting: reactive.Value[Setting | None]
    picture: reactive.Value[Picture | None]
    audit: reactive.Value[rp.AuditReport | None]


def serve(input: Inputs, live: Live) -> None:
    """The reactive part."""
    answers = Answers(reactive.value(None), reactive.value(None), reactive.value(None))
    _serve_dials(input, live)
    _serve_work(input, live, answers)
    _serve_views(input, live, answers)
    note = live.note("policy")

    @reactive.effect
    @reactive.event(input.recommend)
    async def _() -> None:
        picture = answers.picture()
        report = picture.report if picture is not None else None
        best = None if report is None else report.recommended or report.nearest
        if best is not None:
            chosen: dict[str, object] = {"p": best.retention, "e": best.epsilon, "d": best.delta}
            await live.session.send_custom_message("studio-dials", chosen)
            ui.update_select("sample_size", selected=best.sample_size)

    @reactive.effect
    @reactive.event(input.next_3)
    async def _() -> None:
        if live.policy() is None:
            note.set(note() or "Choose a policy that can be used first.")
        else:
            await live.go(4)


def _serve_work(input: Inputs, live: Live, answers: Answers) -> None:
    """Figures at once; the sweep once a table; the audit when the dials have come to rest."""
    note = live.note("policy")

    def failed(error: BaseException) -> None:
        if not isinstance(error, CancelledError):
            note.set(explain(error))

    def answered(found: Setting) -> None:
        note.set("")
        answers.setting.set(found)

    quick: Job[Setting] = Job(live.desk.quick_pool, answered, failed)
    slow: Job[rp.AuditReport] = Job(live.desk.pool, answers.audit.set, failed)
    sweeping: Job[Picture] = Job(live.desk.pool, answers.picture.set, failed)

    @reactive.effect
    def _() -> None:
        settled, wanted = live.settled(), input.max_error()
        if settled is None or live.step() != STEP:
            return
        with reactive.isolate():
            known = answers.picture()
        tuner = known.tuner if known is not None and known.settled is settled else None
        sweeping.start(lambda: try_settings(live.desk, settled, tuner, wanted))

    @reactive.effect
    def _() -> None:
        policy, picture = live.policy(), answers.picture()
        if policy is None or picture is None or picture.settled is not live.settled():
            return
        if (tuner := picture.tuner) is not None:
            quick.start(lambda: tuner.setting(policy))

    @reactive.effect
    @reactive.event(input.still, live.settled, live.step)
    def _() -> None:
        settled, policy = live.settled(), live.policy()
        if settled is not None and policy is not None and live.step() == STEP:
            slow.start(lambda: live.desk.audit(settled, policy, worst=_WORST))


def _serve_views(input: Inputs, live: Live, answers: Answers) -> None:
    @render.ui
    def policy_note() -> Tag | None:
        return notice(live.note("policy")())

    @render.ui
    def verdict() -> Tag | None:
        if live.note("policy")():
            return None
        settled, found, picture = live.settled(), answers.setting(), answers.picture()
        audit = answers.audit()
        if picture is not None and picture.reason and audit is not None:
            return plain_verdict(audit, picture.reason)
        if settled is None or found is None or picture is None or picture.settled is not settled:
            return tags.p("Counting and trying settings…", class_="working")
        return verdict_card(settled, found, one_trial=input.unattainable() == "one-trial")

    @render.ui
    def picture() -> Tag:
        known = answers.picture()
        if known is None or known.settled is not live.settled():
            return tags.div(class_="chart empty")
        if known.chart is None or known.report is None:
            words = known.reason or "No setting of the sweep can be published on this table."
            return tags.p(words, class_="empty-state")
        return known.chart.picture(known.report.recommended or known.report.nearest)

    @render.ui
    def marker() -> Tag | None:
        known, found = answers.picture(), answers.setting()
        if known is None or known.chart is None or found is None or not found.error > 0:
            return None
        return known.chart.marker(found)

    @render.ui
    def advice() -> Tag | None:
        known = answers.picture()
        if known is None or known.report is None:
            return None
        return tags.p(known.report.verdict, class_="help")

    @render.ui
    def details() -> Tag | None:
        report = answers.audit()
        return None if report is None else details_cards(report)


def _serve_dials(input: Inputs, live: Live) -> None:
    """Every change becomes a policy, or an explanation of why it cannot be one."""

    @reactive.effect
    def _() -> None:
        names = ("bound", "sample_size", "unattainable")
        values = {name: input[name]() for name in ("p", "e", "d", *names)}
        live.desk.draft |= values
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


def try_settings(desk: Desk, settled: Settled, tuner: Any, max_error: float | None) -> Picture:
    """Try many settings; a table too small or too even for the workload has no such picture."""
    if settled is not desk.settled:
        raise CancelledError
    try:
        tuner = tuner or settled.table.tuner()
        report = sweep(tuner, target=Target(max_error=max_error or None))
    except rp.ReconprivError as error:
        return Picture(settled, reason=f"There is no picture for this table: {explain(error)}")
    return Picture(settled, tuner, report, RiskUtility.of(report.settings))


def verdict_card(settled: Settled, found: Setting, *, one_trial: bool) -> Tag:
    """One verdict across risk and utility, then its figures."""
    records = settled.table.schema.records
    kind, words = _verdict(found, one_trial)
    risky = "bad" if found.violating_groups else "good"
    return tags.section(
        tags.h3("Verdict", class_="sr"),
        notice(words, kind),
        figures(
            [
                (f"{found.violating_groups:,}", "groups at risk if only perturbed", risky),
                (f"{found.violating_records / records:.1%}", "of the records are in them", risky),
                (f"{found.trials / records:.1%}", "of the records stay independent trials", ""),
                (f"{found.error:.1%}", "expected error of analysts’ counts", ""),
                (f"{found.group_error:.1%}", "adversary’s error in the best told group", ""),
                (f"{found.posterior:.0%}", "most that a belief of 10 % can grow to", ""),
            ]
        ),
        class_="card",
    )


def plain_verdict(report: rp.AuditReport, reason: str) -> Tag:
    """What the audit alone can say."""
    risky = "bad" if report.violating_groups else "good"
    words = (
        f"{report.violating_groups:,} groups would be open to reconstruction if only perturbed;"
        " publishing samples them."
        if report.violating_groups
        else "Every group is private: perturbing alone keeps this policy."
    )
    return tags.section(
        notice(words, "good"),
        figures(
            [
                (f"{report.violating_groups:,}", "groups at risk if only perturbed", risky),
                (
                    f"{report.violating_records / report.records:.1%}",
                    "of the records are in them",
                    risky,
                ),
            ]
        ),
        tags.p(reason, class_="help"),
        class_="card",
    )


def _verdict(found: Setting, one_trial: bool) -> tuple[str, str]:
    cost = f"Expect analysts’ counts to be off by {found.error:.0%} on average."
    if found.unattainable_groups and not one_trial:
        return "error", (
            f"This policy cannot be kept: in {found.unattainable_groups:,} groups not even one"
            " trial is private. Lower p, ε or δ, or let such groups keep one trial."
        )
    if found.unattainable_groups:
        return "warning", (
            f"Nothing is promised for {found.unattainable_groups:,} groups, which keep one trial;"
            " the other groups keep the policy."
        )
    if found.sample_size == "none" and found.violating_groups:
        return "warning", (
            f"Without sampling {found.violating_groups:,} groups stay open to reconstruction."
        )
    if found.sample_size == "paper":
        return "warning", (
            "The paper’s sample size leaks the largest frequency of large groups; use octave or"
            " public for a release."
        )
    if found.sampled_groups:
        return "good", (
            f"This policy can be kept: {found.sampled_groups:,} groups are published from a sample"
            f" of their records. {cost}"
        )
    return "good", f"Every group is private: perturbing alone keeps this policy. {cost}"


def details_cards(report: rp.AuditReport) -> Tag:
    """The groups behind the figures."""
    rows = [
        (
            ", ".join("–" if v is None else str(v) for v in verdict.public.values()),
            f"{verdict.size:,}",
            f"{verdict.largest_frequency:.2f}",
            f"{verdict.largest_private_size:,.1f}",
            "private" if verdict.private else "at risk",
            f"{_tail(verdict.upper_tail)} / {_tail(verdict.lower_tail)}",
        )
        for verdict in report.worst
    ]
    head = ("Group", "Records", "Largest f", "Private up to", "Verdict", "Exact tails")
    return tags.div(
        *(notice(in_page_words(text), "warning") for text in report.warnings),
        card(
            "Groups by size",
            group_sizes(report.size_distribution),
            intro=f"{report.records:,} records in {report.groups:,} groups. Records in small groups"
            " are hidden by chance; large groups are what sampling is for.",
        ),
        card(
            "Most exposed groups",
            grid(head, rows, label="Most exposed groups", numbers=5),
            intro="Internal, not for release. Exact tails: how often an estimate is more than ε too"
            " high / too low.",
        ),
        class_="stack",
    )


def _tail(probability: float) -> str:
    return "<0.1%" if probability < 0.001 else f"{probability:.1%}"

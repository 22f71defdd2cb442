"""What the page says about a policy: before and after publishing, and the groups behind it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

from htmltools import Tag, TagChild, tags

import reconpriv as rp
from reconpriv.studio.charts import group_sizes
from reconpriv.studio.desk import Settled, in_page_words
from reconpriv.studio.parts import card, figures, grid, notice
from reconpriv.tuning.report import Setting

T = TypeVar("T")
Figure = tuple[str, str, str]


@dataclass(frozen=True)
class Judged(Generic[T]):
    """A result, and what it was computed for: it holds for nothing else."""

    settled: Settled
    policy: rp.Policy
    found: T

    def holds_for(self, settled: Settled | None, policy: rp.Policy | None) -> bool:
        """Whether it is about this table with this policy."""
        return self.settled is settled and self.policy == policy


def shown(content: TagChild, *, current: bool, class_: str = "") -> Tag:
    """A result; one for another table or policy is greyed, and said to be recomputed."""
    if current:
        return tags.div(content, class_=f"judged {class_}".strip())
    return tags.div(
        tags.p("Recomputing…", class_="working recomputing"),
        tags.div(content, class_="old"),
        {"aria-busy": "true"},
        class_=f"judged stale {class_}".strip(),
    )


def verdict_card(settled: Settled, found: Setting, *, one_trial: bool) -> Tag:
    """A sentence on what the release will leave; then before, after, and what it costs."""
    records = settled.table.schema.records
    kind, words = group_verdict(found, one_trial=one_trial)
    return tags.section(
        tags.h3("Verdict", class_="sr"),
        notice(words, kind),
        before_and_after(
            [
                (f"{found.violating_groups:,}", "groups open to reconstruction", ""),
                (f"{found.violating_records / records:.1%}", "of the records are in them", ""),
            ],
            [
                left_open(found, one_trial=one_trial),
                (f"{found.trials / records:.1%}", "of the records stay independent trials", ""),
            ],
        ),
        figures(
            [
                (f"{found.error:.1%}", "expected error of analysts’ counts", ""),
                (f"{found.group_error:.1%}", "adversary’s error in the most exposed group", ""),
                (f"{found.posterior:.0%}", "most that a belief of 10 % can grow to", ""),
            ]
        ),
        class_="card",
    )


def plain_verdict(report: rp.AuditReport, reason: str) -> Tag:
    """What the audit alone can say, where no setting can be tried out on the table."""
    policy = report.policy
    kind, words = audit_verdict(report)
    after = (
        (f"{report.violating_groups:,}", "groups open to reconstruction", "bad")
        if policy.sample_size == "none" and report.violating_groups
        else ("–", "not known without a try: publishing says it", "")
        if report.violating_groups
        else ("0", "groups open to reconstruction", "good")
    )
    return tags.section(
        notice(words, kind),
        before_and_after(
            [
                (f"{report.violating_groups:,}", "groups open to reconstruction", ""),
                (
                    f"{report.violating_records / report.records:.1%}",
                    "of the records are in them",
                    "",
                ),
            ],
            [after],
        ),
        tags.p(reason, class_="help"),
        class_="card",
    )


def before_and_after(before: list[Figure], after: list[Figure]) -> Tag:
    """Two columns that cannot be taken for one another."""
    columns = (
        ("Before", "the raw table, only perturbed", before),
        ("After", "what the release leaves", after),
    )
    return tags.div(
        *(
            tags.section(
                tags.h4(title, tags.span(f": {words}", class_="muted")),
                figures(numbers),
                class_=title.lower(),
            )
            for title, words, numbers in columns
        ),
        class_="before-after",
    )


def left_open(found: Setting, *, one_trial: bool) -> Figure:
    """The number that decides the verdict, in its colour."""
    if found.sample_size == "none":
        tone = "bad" if found.violating_groups else "good"
        return f"{found.violating_groups:,}", "groups stay open to reconstruction", tone
    if found.unattainable_groups:
        count = f"{found.unattainable_groups:,}"
        if one_trial:
            return count, "groups keep one trial, without a promise", "warn"
        return count, "groups in which not even one trial is private", "bad"
    if found.sample_size == "paper" and found.sampled_groups:
        return f"{found.sampled_groups:,}", "groups whose largest frequency leaks", "warn"
    return "0", "groups open to reconstruction", "good"


def group_verdict(found: Setting, *, one_trial: bool) -> tuple[str, str]:
    """The kind of notice, and the sentence on what a release with this policy leaves."""
    cost = f"Expect analysts’ counts to be off by {found.error:.0%} on average."
    if found.unattainable_groups and found.sample_size != "none" and not one_trial:
        return "error", (
            f"This policy cannot be kept: in {found.unattainable_groups:,} groups not even one"
            " trial is private. Lower p, ε or δ, or let such groups keep one trial."
        )
    if found.unattainable_groups and found.sample_size != "none":
        return "warning", (
            f"Nothing is promised for {found.unattainable_groups:,} groups, which keep one trial;"
            " the other groups keep the policy."
        )
    if found.sample_size == "none" and found.violating_groups:
        return "error", (
            f"Without sampling {found.violating_groups:,} groups stay open to reconstruction."
        )
    if found.sample_size == "paper" and found.sampled_groups:
        return "warning", (
            "The paper’s sample size leaks the largest frequency of large groups; use octave or"
            " public for a release."
        )
    if found.sampled_groups:
        return "good", (
            "No group stays open to reconstruction:"
            f" {found.sampled_groups:,} groups are published from a sample of their records. {cost}"
        )
    return "good", f"Every group is private: perturbing alone keeps this policy. {cost}"


def audit_verdict(report: rp.AuditReport) -> tuple[str, str]:
    """The same from an audit alone."""
    count = f"{report.violating_groups:,}"
    if not report.violating_groups:
        return "good", "Every group is private: perturbing alone keeps this policy."
    if report.policy.sample_size == "none":
        return "error", f"Without sampling {count} groups stay open to reconstruction."
    return "info", (
        f"{count} groups are open to reconstruction if only perturbed; publishing samples them."
    )


def details_cards(report: rp.AuditReport) -> Tag:
    """The groups behind the figures."""
    rows = [
        (
            group_name(verdict),
            f"{verdict.size:,}",
            f"{verdict.largest_frequency:.2f}",
            f"{verdict.largest_private_size:,.1f}",
            "private" if verdict.private else "at risk",
            f"{_tail(verdict.upper_tail)} / {_tail(verdict.lower_tail)}",
        )
        for verdict in report.worst
    ]
    head = ("Group", "Records", "Largest f", "Private up to", "If only perturbed", "Exact tails")
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


def group_name(verdict: rp.GroupVerdict) -> str:
    """The columns with their values."""
    return ", ".join(f"{n}={'–' if v is None else v}" for n, v in verdict.public.items())


def _tail(probability: float) -> str:
    return "<0.1%" if probability < 0.001 else f"{probability:.1%}"

"""An audit: the verdict first, then its three parts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reconpriv.messages.numbers import limit
from reconpriv.messages.phrases import frequency_words, group_words, kept_words, share_words
from reconpriv.messages.remedies import Words, python_words, worded
from reconpriv.show.charts import palette
from reconpriv.show.document import (
    Bar,
    Document,
    Facts,
    Field,
    Grid,
    Headline,
    OnPage,
    Paragraph,
    ShareBar,
    figure,
    number,
)
from reconpriv.show.results.release import PROMISED, margins_line, policy_line

if TYPE_CHECKING:
    from reconpriv.auditing.audit_report import AuditReport
    from reconpriv.protect.margins.planned import MarginCost


def audit_document(report: AuditReport, words: Words = python_words) -> Document:
    """Verdict first, then the figures, the columns, the sizes and the worst groups."""
    first, *rest = (worded(sentence, words) for sentence in report.sentences)
    every = max(report.records, 1)
    return [
        Headline(first, report.standing, tuple(rest)),
        OnPage(
            [
                ShareBar(report.violating_records / every, "are in groups that are not private",
                         palette.VERMILION),
                ShareBar(report.single_records.unique / every, "are unique on the public columns",
                         palette.ORANGE),
            ]
        ),
        _figures(report),
        *(Paragraph(worded(hint, words)) for hint in report.hints),
        *([columns_grid(report)] if any(one.without for one in report.columns) else []),
        *([Paragraph(worded(report.columns_sentence, words))] if report.columns else []),
        sizes_grid(report),
        *([worst_grid(report)] if report.worst else []),
    ]  # fmt: skip


def _figures(report: AuditReport) -> Facts:
    """What was audited, how much of it is not private, and how many records are unique."""
    single, people, errors = report.single_records, report.people, report.errors
    over = report.protection
    by = ", ".join(report.public)
    rows = [
        ("records", kept_words(report.records, report.dropped)),
        *([] if people is None else [("people", f"{people.people:,}")]),
        (f"{report.group_word}s", f"{report.groups:,} (by {by or 'nothing'})")
        if over
        else ("groups", f"{report.groups:,} (public: {by or 'none'})"),
        ("pooled over", over.words),
        ("sensitive", f"{report.sensitive} ({report.domain_size} values)"),
        ("left out", ", ".join(report.left_out)),
        ("policy", policy_line(report.policy.as_dict())),
        ("promised", report.promise),
        ("not promised", report.not_promised),
        ("violating groups", f"{report.violating_groups:,}"),
        ("violating records", f"{report.violating_records:,}"),
        ("unique records", share_words(single.unique, single.records)),
        (f"in groups below {single.k}", share_words(single.below_k, single.records)),
    ]
    if errors is not None:
        alone = f"{errors.plain:.1%} with perturbation alone, which promises nothing about groups"
        expected = f"{errors.published:.1%} of an analyst's count, on average ({alone})"
        rows.append(("expected error", expected))
    return Facts([*rows, *margins_rows(report.margins)], quoted=PROMISED)


def margins_rows(cost: MarginCost) -> list[tuple[str, str]]:
    """What the margins are and what they cost, in figures; nothing if there are none."""
    rows = [("margins", margins_line(cost.as_dict()))]
    if cost.counted:
        groups = "1 group" if cost.groups == 1 else f"{cost.groups:,} groups"
        lost = f"{cost.trials_lost:,} of {cost.trials:,}, in {groups}"
        rows += [
            ("trials given up", f"{lost} (sampling rule {cost.sampling})"),
            ("from margins", f"worth up to {cost.most_trials:,.3g} trials about one group"),
        ]
    return rows


def columns_grid(report: AuditReport) -> Grid:
    """The table as it is and without each public column."""
    below = f"below {report.single_records.k}"
    now = None if report.errors is None else report.errors.alone
    rows: list[tuple[object, ...]] = [
        ("(as it is)", "", *report.figures.shown, None if now is None else f"{now:.1%}")
    ]
    for column in report.columns:
        name = f"{column.name} (nearly unique)" if column.identifier else column.name
        then, error = column.without, None
        if then is not None and then.error is not None and then.error_now is not None:
            error = f"{then.error_now:.1%} → {then.error:.1%}"
        rows.append((name, column.distinct, *(then.shown if then else [None] * 4), error))
    return Grid(
        [Field("without"), *map(number, ("values", "groups", "at risk", "unique", below)),
         figure("error")],
        rows,
        "Public columns: what the audit would be without each",
        "at risk: records in groups that could be reconstructed if the table were only perturbed."
        " error: expected mean relative error of the questions that do not use the column, with it"
        f" → without it{report.margins.aside}.",
    )  # fmt: skip


def sizes_grid(report: AuditReport) -> Grid:
    """How many groups and records there are of each size."""
    most = max([1, *(row[3] for row in report.size_distribution)])
    rows = [
        (str(low) if low == high else f"{low:,} to {high:,}", groups, records, Bar(records / most))
        for low, high, groups, records in report.size_distribution
    ]
    fields = [figure("records in group"), number("groups"), number("records")]
    title = f"{report.group_word.capitalize()} sizes"
    return Grid([*fields, Field("", picture=True)], rows, title)


def worst_grid(report: AuditReport) -> Grid:
    """The groups farthest from private, with their true figures: internal."""
    rows = [
        (
            f"{group_words(one.public)}\nf = {frequency_words(one.largest_frequency, one.value)}",
            one.size,
            one.largest_private_size,
            min(one.bound_above, one.bound_below),
            f"{_probability(one.upper_tail)} / {_probability(one.lower_tail)}",
        )
        for one in report.worst
    ]
    return Grid(
        [Field("group"), number("size"), number("s_g", limit), number("bound", _probability),
         figure("exact tails")],
        rows,
        f"Worst {report.group_word}s (internal: not for release)",
        "f: the largest exposed frequency in the group, with its value. size above s_g, or bound"
        " below the doubt: not private. exact tails: the true probability that the estimate of the"
        " most"
        " exposed value is too high / too low by more than the tolerance.",
        closed=True,
    )  # fmt: skip


def _probability(value: float) -> str:
    return "< 0.01%" if value < 1e-4 else f"{value:.2%}"  # rounding may make it -0.0

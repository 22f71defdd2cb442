"""An audit on a terminal and in a notebook: the verdict first, then its three parts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.table import Table as RichTable
from rich.text import Text

from reconpriv.messages.numbers import limit
from reconpriv.messages.phrases import frequency_words, group_words, kept_words, share_words
from reconpriv.messages.remedies import Words, python_words, worded
from reconpriv.show import palette
from reconpriv.show.markup import tag
from reconpriv.show.markup import words as with_code
from reconpriv.show.notebook import TONES, bar, box, closed, headline, html_table, quoted, share_bar
from reconpriv.show.release_words import margins_line, policy_line
from reconpriv.show.text import pairs_table

if TYPE_CHECKING:
    from reconpriv.core.audit_report import AuditReport
    from reconpriv.core.column_risk import ExpectedErrors, Figures
    from reconpriv.core.margin_cost import MarginCost


def audit_view(report: AuditReport, words: Words = python_words) -> RenderableType:
    """Verdict first, then the figures, the columns, the sizes and the worst groups."""
    parts: list[RenderableType] = [verdict(report, words), audit_figures(report)]
    parts += [Text(f"\n{worded(hint, words)}") for hint in report.hints]
    if report.columns:
        parts += [columns_table(report), Text(f"\n{worded(report.columns_sentence, words)}")]
    parts.append(sizes(report))
    if report.worst:
        parts.append(worst_groups(report))
    return Group(*parts)


def verdict(report: AuditReport, words: Words = python_words) -> Text:
    """The audit in a few sentences, the worst finding in bold."""
    first, *rest = (worded(sentence, words) for sentence in report.sentences)
    styles = {"bad": "bold red", "fair": "bold yellow", "good": "bold green"}
    text = Text(first, style=styles[report.standing])
    return Text.assemble(text, *(f" {sentence}" for sentence in rest), "\n")


def audit_figures(report: AuditReport, *, promise: bool = True) -> RichTable:
    """What was audited, how much of it is not private, and how many records are unique."""
    single = report.single_records
    rows = [
        ("records", kept_words(report.records, report.dropped)),
        (f"{report.group_word}s", f"{report.groups:,} (by {', '.join(report.public) or 'nothing'})")
        if report.protection is not None
        else ("groups", f"{report.groups:,} (public: {', '.join(report.public) or 'none'})"),
        ("sensitive", f"{report.sensitive} ({report.domain_size} values)"),
        ("policy", policy_line(report.policy.as_dict())),
        *(_promise_rows(report) if promise else []),
        ("violating groups", f"{report.violating_groups:,}"),
        ("violating records", f"{report.violating_records:,}"),
        ("unique records", share_words(single.unique, single.records)),
        (f"in groups below {single.k}", share_words(single.below_k, single.records)),
    ]
    if report.left_out:
        rows.insert(3, ("left out", ", ".join(report.left_out)))
    if report.people is not None:
        rows.insert(1, ("people", f"{report.people.people:,}"))
    if report.protection is not None:
        rows.insert(2, ("pooled over", report.protection.words))
    if report.errors is not None:
        rows.append(("expected error", _expected(report.errors)))
    if report.margins is not None:
        rows += margins_rows(report.margins)
    return pairs_table(rows)


def _promise_rows(report: AuditReport) -> list[tuple[str, str]]:
    """What is promised and, unless nothing is, what is not."""
    rows = [("promised", report.promise), ("not promised", report.not_promised)]
    return [row for row in rows if row[1]]


def margins_rows(cost: MarginCost) -> list[tuple[str, str]]:
    """What the margins are and what they cost, in figures."""
    rows = [("margins", margins_line(cost.as_dict()))]
    if cost.counted:
        groups = "1 group" if cost.groups == 1 else f"{cost.groups:,} groups"
        lost = f"{cost.trials_lost:,} of {cost.trials:,}, in {groups}"
        rows += [
            ("trials given up", f"{lost} (sample size {cost.sample_size})"),
            ("from margins", f"worth up to {cost.most_trials:,.3g} trials about one group"),
        ]
    return rows


def columns_table(report: AuditReport) -> RichTable:
    """The table as it is and without each public column."""
    table = RichTable(
        title="\nPublic columns: what the audit would be without each",
        title_justify="left",
        box=None,
        padding=(0, 2, 0, 0),
        caption=_columns_caption(report) if any(c.without for c in report.columns) else None,
        caption_justify="left",
    )
    table.add_column("without", overflow="fold")
    below = f"below {report.single_records.k}"
    for heading in ("values", "groups", "at risk", "unique", below, "error"):
        table.add_column(heading, justify="right", no_wrap=True)
    now = "-" if report.errors is None else f"{report.errors.alone:.1%}"
    table.add_row("(as it is)", "", *_counts(report.figures), now)
    for column in report.columns:
        name = f"{column.name} (nearly unique)" if column.identifier else column.name
        then = column.without
        counts = _counts(then) if then is not None else ("-", "-", "-", "-")
        error = "-"
        if then is not None and then.error is not None and then.error_now is not None:
            error = f"{then.error_now:.1%} → {then.error:.1%}"
        table.add_row(Text(name), f"{column.distinct:,}", *counts, error)
    return table


def _expected(errors: ExpectedErrors) -> str:
    """The error of counts as published, next to that of a table that is only perturbed."""
    return (
        f"{errors.published:.1%} of an analyst's count, on average ({errors.plain:.1%} with"
        " perturbation alone, which promises nothing about groups)"
    )


def _columns_caption(report: AuditReport) -> str:
    return (
        "at risk: records in groups that could be reconstructed if the table were only perturbed."
        " error: expected mean relative error of the questions that do not use the column, with it"
        " → without it" + ("." if report.margins is None else "; from the records alone.")
    )


def _counts(figures: Figures) -> tuple[str, str, str, str]:
    return (
        f"{figures.groups:,}",
        f"{figures.violating_records:,}",
        f"{figures.unique:,}",
        f"{figures.below_k:,}",
    )


def sizes(report: AuditReport) -> RichTable:
    """How many groups and records there are of each size."""
    title = f"\n{report.group_word.capitalize()} sizes"
    table = RichTable(title=title, title_justify="left", box=None, padding=(0, 2, 0, 0))
    for heading in ("records in group", "groups", "records"):
        table.add_column(heading, justify="right")
    for low, high, groups, records in report.size_distribution:
        size = str(low) if low == high else f"{low:,} to {high:,}"
        table.add_row(size, f"{groups:,}", f"{records:,}")
    return table


def worst_groups(report: AuditReport) -> RichTable:
    """The groups farthest from private, with their true figures: internal."""
    table = RichTable(
        title=f"\nWorst {report.group_word}s (internal: not for release)",
        title_justify="left",
        box=None,
        padding=(0, 2, 0, 0),
        caption="f: the largest exposed frequency in the group, with its value. size above s_g, or"
        " bound below δ: not private. exact tails: the true probability that the estimate of the"
        " most exposed value is more than ε too high / too low.",
        caption_justify="left",
    )
    table.add_column("group", overflow="fold")
    for heading in ("size", "s_g", "bound", "exact tails"):
        table.add_column(heading, justify="right", no_wrap=True)
    for group in report.worst:
        f = frequency_words(group.largest_frequency, group.value)
        table.add_row(
            Text(f"{group_words(group.public)}\nf = {f}"),
            f"{group.size:,}",
            limit(group.largest_private_size),
            _probability(min(group.bound_above, group.bound_below)),
            f"{_probability(group.upper_tail)} / {_probability(group.lower_tail)}",
        )
    return table


def _probability(number: float) -> str:
    return "< 0.01%" if 0 <= number < 1e-4 else f"{number:.2%}"


def audit_html(report: AuditReport) -> str:
    """Verdict, figures, sizes as bars; the worst groups are collapsed, as they are internal."""
    share = report.violating_records / max(report.records, 1)
    alone = report.single_records.unique / max(report.records, 1)
    most = max([1, *(row[3] for row in report.size_distribution)])
    return box(
        headline(report.sentences[0], TONES[report.standing]),
        [tag("p", with_code(text)) for text in (*report.sentences[1:], *report.hints)],
        [quoted(name.capitalize(), text) for name, text in _promise_rows(report)],
        share_bar(share, palette.VERMILION, "are in groups that are not private"),
        share_bar(alone, palette.ORANGE, "are unique on the public columns"),
        html_table(audit_figures(report, promise=False)),
        html_table(sizes(report), [bar(row[3] / most) for row in report.size_distribution]),
        [html_table(columns_table(report)), tag("p", report.columns_sentence)]
        if report.columns else None,
        closed("Worst groups (internal)", html_table(worst_groups(report)))
        if report.worst else None,
    )  # fmt: skip

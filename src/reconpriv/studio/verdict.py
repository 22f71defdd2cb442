"""What the page says about a policy: groups, single records, columns; before and after."""

from __future__ import annotations

from htmltools import Tag, TagList, tags

import reconpriv as rp
from reconpriv.core.sample_sizes import recommended
from reconpriv.core.single_records import SingleRecords
from reconpriv.messages.numbers import limit, unbroken
from reconpriv.messages.phrases import frequency_words, group_words, kept_words, listed
from reconpriv.messages.remedies import worded
from reconpriv.promise import ONE_ROW, sentences
from reconpriv.studio.charts import group_sizes
from reconpriv.studio.obstacles import obstacle_words, obstacles_of, unique_obstacle
from reconpriv.studio.parts import card, figures, grid, notice
from reconpriv.studio.remedy_words import page_words
from reconpriv.tuning.report import Setting
from reconpriv.tuning.risk import CLOSE

Figure = tuple[str, str, str]
Said = tuple[str, str]  # a kind of notice, and its text
_NO_IDENTIFIER = "good", "no public column is nearly unique."
_WORST_FIRST = ("error", "warning", "info", "good")


def verdict_card(
    report: rp.AuditReport, policy: rp.Policy, found: Setting, *, measuring: bool = False
) -> Tag:
    """What a release with this policy leaves exposed; from the audit, only the table's counts.

    They do not depend on the policy, so moving a slider need not wait for them. ``measuring``
    says that the share of people exposed by neighbouring groups is to follow.
    """
    single, records = single_records(report, policy), report.records
    return tags.section(
        tags.h3("Verdict", class_="sr"),
        promise_block(report, policy),
        warning_notices(report),
        verdict_parts(report, policy, group_verdict(policy, found)),
        before_and_after(
            [
                (f"{found.violating_groups:,}", "groups open to reconstruction", ""),
                (f"{found.violating_records / records:.1%}", "of the records are in them", ""),
            ],
            [
                left_open(policy, found),
                error_figure(found),
            ],
        ),
        tags.h4("What an adversary learns"),
        figures(learnt(found, single, measuring=measuring), "four"),
        tags.h4("Who stands out"),
        figures(standing_out(report), "four"),
        tags.h4("What analysts get"),
        figures(
            [
                (f"{found.error:.1%}", "expected error of a count", ""),
                (f"{found.trials / records:.1%}", "of the records remain independent trials", ""),
            ],
            "four",
        ),
        class_="card verdict",
    )


def promise_rows(policy: rp.Policy, report: rp.AuditReport | None) -> list[tuple[str, str]]:
    """What a publication with this policy would promise and not, if the audit is this."""
    checked = report is not None and report.one_row_per_person
    said = sentences(policy.publishable().as_dict() | {ONE_ROW: checked})
    return [(name, unbroken(text)) for name, text in said]


def promise_block(report: rp.AuditReport, policy: rp.Policy) -> Tag:
    """The promise, and what it leaves open."""
    said = promise_rows(policy, report)
    parts = (tags.p(tags.strong(f"{name}: "), text) for name, text in said)
    return tags.blockquote(*parts, class_="promise")


def warning_notices(report: rp.AuditReport) -> TagList:
    """What to look at before anything is published, such as a typo in a list of groups."""
    warned = (worded(text, page_words) for text in report.source_warnings)
    return TagList(*(notice(text, "warning") for text in warned))


def error_figure(found: Setting) -> Figure:
    """How far off an adversary is where the release tells the most."""
    if not found.exposes:
        return "–", "no group has a value that counts as exposed", ""
    return f"{found.group_error:.1%}", "adversary’s error in the most exposed group", ""


def learnt(found: Setting, single: SingleRecords, *, measuring: bool) -> list[Figure]:
    """What a release would tell about groups, without and with their neighbours, and one record."""
    within = f"within ±{CLOSE:.0%}"
    return [
        (
            f"{found.reconstructed:.1%}",
            f"of the people are in groups whose most exposed value is estimated {within} from the"
            " group’s own records",
            "",
        ),
        _with_neighbours(found.pooled, measuring=measuring),
        (
            f"{found.worst_group:.1%}",
            f"chance of an estimate {within} in the most exposed group",
            "",
        ),
        (f"{single.posterior:.0%}", "the most a belief of 10 % about one record can grow to", ""),
    ]


def standing_out(report: rp.AuditReport) -> list[Figure]:
    """How many records are alone, or nearly so, on the public columns; red if too many are."""
    single = report.single_records
    of = f"of {single.records:,} records are"
    tone = "" if unique_obstacle(report) is None else "bad"
    return [
        (f"{single.unique:,}", f"{of} unique on {single.columns}", tone),
        (f"{single.below_k:,}", f"{of} in groups of fewer than {single.k}", ""),
    ]


def _with_neighbours(share: float | None, *, measuring: bool) -> Figure:
    words = "of the people, if the adversary also uses neighbouring groups"
    if share is not None:
        return f"{share:.1%}", words, ""
    if measuring:
        return "…", f"{words}: being measured", ""
    return "–", f"{words}: not measured, since the table has too many groups", ""


def plain_verdict(report: rp.AuditReport, reason: str) -> Tag:
    """What the audit alone can say, if no setting can be tried out on the table."""
    single, count = report.single_records, f"{report.violating_groups:,}"
    kind, _ = audit_verdict(report)
    unknown = ("–", "groups open to reconstruction: publish to find out", "")
    number = (count, "groups open to reconstruction", {"error": "bad"}.get(kind, "good"))
    return tags.section(
        promise_block(report, report.policy),
        warning_notices(report),
        verdict_parts(report, report.policy, audit_verdict(report)),
        before_and_after(
            [
                (count, "groups open to reconstruction", ""),
                (
                    f"{report.violating_records / report.records:.1%}",
                    "of the records are in them",
                    "",
                ),
            ],
            [unknown if kind == "info" else number],
        ),
        figures(
            [
                *standing_out(report),
                (f"{single.posterior:.0%}", "the most a belief of 10 % can grow to", ""),
            ]
        ),
        tags.p(reason, class_="help"),
        class_="card verdict",
    )


def margin_verdict(report: rp.AuditReport, policy: rp.Policy) -> Said | None:
    """What margins cost the groups; an audit of another policy does not know."""
    if policy.margins is None:
        return None
    if report.margins is None or report.policy.as_dict() != policy.as_dict():
        return "info", "counting what they cost the groups…"
    return "info", report.margins.sentence


def verdict_parts(report: rp.AuditReport, policy: rp.Policy, groups: Said) -> TagList:
    """Obstacles, groups, single records, columns; margins and dropped records; worst first."""
    margins = margin_verdict(report, policy)
    kept = f"{kept_words(report.records, report.dropped)}."
    parts = [
        *((one.about.capitalize(), ("error", obstacle_words(one))) for one in obstacles_of(report)),
        ("Groups", groups),
        (
            "Single records",
            record_verdict(
                single_records(report, policy), refused=unique_obstacle(report) is not None
            ),
        ),
        *([] if _identifiers(report) else [("Columns", _NO_IDENTIFIER)]),
        *([] if margins is None else [("Margins", margins)]),
        *([("Records", ("info", kept))] if report.dropped else []),
    ]
    parts.sort(key=lambda part: _WORST_FIRST.index(part[1][0]))
    return TagList(
        *(
            notice(words[0].upper() + words[1:], kind, lead=f"{name}: ")
            for name, (kind, words) in parts
        ),
    )


def single_records(report: rp.AuditReport, policy: rp.Policy) -> SingleRecords:
    """The counts of an audit under another policy; only what a value reveals depends on it."""
    counted = report.single_records
    return SingleRecords.of(
        k=counted.k,
        records=counted.records,
        unique=counted.unique,
        below_k=counted.below_k,
        policy=policy,
        domain_size=report.domain_size,
    )


def record_verdict(single: SingleRecords, *, refused: bool = False) -> Said:
    """How many people are unique, and what their value reveals; red if they are ``refused``."""
    kind = "warning" if single.unique else "info" if single.below_k else "good"
    return "error" if refused else kind, single.sentence


def before_and_after(before: list[Figure], after: list[Figure]) -> Tag:
    """Two columns that cannot be mistaken for each other."""
    columns = (
        ("Before", "the raw table, if only perturbed", before),
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


def left_open(policy: rp.Policy, found: Setting) -> Figure:
    """The number that decides the verdict on groups, in its colour."""
    if not found.sampling.samples:
        tone = "bad" if found.violating_groups else "good"
        return f"{found.violating_groups:,}", "groups stay open to reconstruction", tone
    if found.unattainable_groups:
        count = f"{found.unattainable_groups:,}"
        if policy.unattainable == "one-trial":
            return count, "groups keep one trial, without a promise", "warn"
        return count, "groups in which not even one trial is private", "bad"
    if found.sampling.leaks and found.sampled_groups:
        return f"{found.sampled_groups:,}", "groups whose largest exposed frequency leaks", "warn"
    return "0", "groups beyond the limit of the policy", "good"


def group_verdict(policy: rp.Policy, found: Setting) -> Said:
    """How exposed a release with this policy leaves the groups at risk."""
    if not found.sampling.samples:
        if found.violating_groups:
            return "error", (
                f"without sampling, {found.violating_groups:,} of them stay open to reconstruction."
            )
    elif found.unattainable_groups:
        if policy.unattainable == "one-trial":
            return "warning", (
                f"nothing is promised for {found.unattainable_groups:,} groups, which keep one"
                " trial; all other groups meet the policy."
            )
        return "error", (
            f"this policy cannot be met: in {found.unattainable_groups:,} groups not even one"
            " trial is private. Lower p, ε or δ, or let such groups keep one trial."
        )
    elif found.sampling.leaks and found.sampled_groups:
        return "warning", (
            f"sample size {found.sample_size} leaks the largest exposed frequency of large groups;"
            f" use {listed(recommended(), 'or')} for a release."
        )
    elif found.sampled_groups:
        return "good", (
            f"all of them meet the policy; {found.sampled_groups:,} are published from a sample of"
            " their records."
        )
    return "good", "all of them are private: perturbation alone is enough for this policy."


def audit_verdict(report: rp.AuditReport) -> Said:
    """The same from an audit alone."""
    count = f"{report.violating_groups:,}"
    if not report.violating_groups:
        return "good", "all of them are private: perturbation alone is enough for this policy."
    if not report.policy.sampling.samples:
        return "error", f"without sampling, {count} of them stay open to reconstruction."
    return "info", (
        f"{count} of them are open to reconstruction if only perturbed; publishing samples them."
    )


def details_cards(report: rp.AuditReport) -> Tag:
    """The groups behind the figures."""
    rows = [
        (
            group_words(verdict.public),
            frequency_words(verdict.largest_frequency, verdict.value),
            f"{verdict.size:,}",
            limit(verdict.largest_private_size),
            "private" if verdict.private else "at risk",
            f"{_tail(verdict.upper_tail)} / {_tail(verdict.lower_tail)}",
        )
        for verdict in report.worst
    ]
    head = ("Group", "Largest f", "Records", "Private up to", "Before", "Exact tails")
    return tags.div(
        card(
            "Groups by size",
            group_sizes(report.size_distribution),
            intro=f"{report.records:,} records in {report.groups:,} groups. Sampling is for"
            " the large groups; the people who can be singled out are in the smallest ones.",
        ),
        card(
            "Most exposed groups",
            grid(head, rows, label="Most exposed groups", numbers=4),
            intro="Internal, not for release. f: the share of the most frequent value. Before:"
            " the raw table, if only perturbed. Exact tails: how often an estimate is more than ε"
            " too high / too low.",
        ),
        class_="stack",
    )


def columns_table(report: rp.AuditReport) -> TagList:
    """What the table would be like without each public column."""
    now = report.figures
    rows: list[tuple[str, ...]] = [
        (
            "as it is",
            f"{now.groups:,}",
            f"{now.violating_records / report.records:.1%}",
            f"{now.unique:,}",
            "–" if report.errors is None else f"{report.errors.alone:.1%}",
        )
    ]
    for column in report.columns:
        if (then := column.without) is None:
            continue
        error = "–"
        if then.error is not None and then.error_now is not None:
            error = f"{then.error:.1%} (now {then.error_now:.1%})"
        rows.append(
            (
                f"without {column.name}",
                f"{then.groups:,}",
                f"{then.violating_records / report.records:.1%}",
                f"{then.unique:,}",
                error,
            )
        )
    head = ("Table", "Groups", "At risk", "Unique", "Analysts’ error")
    return TagList(
        tags.p(worded(report.columns_sentence, page_words)) if not _identifiers(report) else None,
        grid(head, rows, label="The table without each column", numbers=4),
        tags.p(
            "At risk: the share of records in groups open to reconstruction before sampling."
            " Unique: records unique on the public columns. The error without a column is for"
            " the questions that do not use it; in brackets, the same questions now."
            + ("" if report.margins is None else " All errors here are without margins."),
            class_="help",
        ),
    )


def _identifiers(report: rp.AuditReport) -> list[str]:
    return [column.name for column in report.columns if column.identifier]


def _tail(probability: float) -> str:
    return "<0.1%" if probability < 0.001 else f"{probability:.1%}"

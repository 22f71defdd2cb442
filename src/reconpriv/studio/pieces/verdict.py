"""What the page says about a policy: groups, single records, columns; before and after."""

from __future__ import annotations

from dataclasses import dataclass, replace

from htmltools import HTML, Tag, TagList, tags

import reconpriv as rp
from reconpriv.auditing.obstacles import UNIQUE
from reconpriv.auditing.single_records import SingleRecords
from reconpriv.messages.numbers import unbroken
from reconpriv.messages.phrases import kept_words, listed
from reconpriv.messages.remedies import worded
from reconpriv.policy.promise import ONE_ROW, sentences
from reconpriv.policy.sampling_rules import recommended
from reconpriv.reports.risk_sections import learnt_cards
from reconpriv.show.document import Card, Cards, Paragraph
from reconpriv.show.results import audit
from reconpriv.studio.pieces.consents import obstacle_words, obstacles_of
from reconpriv.studio.pieces.parts import card, document, notice
from reconpriv.studio.pieces.remedy_words import page_words
from reconpriv.tuning.report import Setting
from reconpriv.tuning.risk import CLOSE

_WORST_FIRST = {"error": "bad", "warning": "warn", "info": "", "good": "good"}


@dataclass(frozen=True)
class ReleaseVerdict:
    """How exposed a release leaves the groups: a kind of notice, a sentence, and its figure."""

    kind: str
    sentence: str
    number: str
    label: str

    @property
    def card(self) -> Card:
        """The number that decides, in the colour of the verdict."""
        return Card(self.label, self.number, "", _WORST_FIRST[self.kind])


def verdict_card(
    report: rp.AuditReport,
    policy: rp.Policy,
    found: Setting | None,
    *,
    note: str = "",
    measuring: bool = False,
) -> Tag:
    """What a release with this policy leaves exposed.

    The audit may be that of another policy: only the counts of the table are taken from it, so a
    slider need not wait for another. ``found`` are the figures of this policy; without them, the
    audit has to be its own, and ``note`` says why. ``measuring`` says that the share of people
    exposed by neighbouring groups is to follow.
    """
    single = single_records(report, policy)
    groups = audited_groups(report) if found is None else group_verdict(found)
    counted = report if found is None else found
    warned = (worded(text, page_words) for text in report.source_warnings)
    promised = (Paragraph(text, "promise", name) for name, text in promise_rows(policy, report))
    return tags.section(
        tags.h3("Verdict", class_="sr"),
        tags.blockquote(document(*promised), class_="promise"),
        *(notice(text, "warning") for text in warned),
        verdict_notices(report, policy, groups, single),
        before_and_after(
            Card("groups open to reconstruction", f"{counted.violating_groups:,}"),
            Card("of the records are in them", f"{counted.violating_records / report.records:.1%}"),
            after=[groups.card, *([] if found is None else [error_card(found)])],
        ),
        tags.h4("What an adversary learns"),
        figures(*learnt_cards(single, found, pooled="…" if measuring else "–")),
        None if found is None else tags.p(both_true(found), class_="help both"),
        tags.h4("Who stands out"),
        figures(*standing_out(report)),
        tags.p(note, class_="help") if found is None else TagList(
            tags.h4("What analysts get"),
            figures(
                Card("expected error of a count", f"{found.error:.1%}"),
                Card("of the records remain independent trials",
                     f"{found.trials / report.records:.1%}"),
            ),
        ),
        class_="card verdict",
    )  # fmt: skip


def both_true(found: Setting) -> str:
    """How all groups can meet a policy although much is learnt about them."""
    policy, share = found.policy, found.reconstructed
    if not share > 0.0 or not found.sampling_rule.samples:
        return ""
    if not policy.tail_bound.exact or policy.tolerance != CLOSE:
        often = "an estimate misses often enough, not if every estimate misses"
    else:
        often = (
            f"an estimate misses by more than ±{policy.tolerance:.0%} with a chance of at least"
            f" {policy.doubt:.0%} in each direction. It may come closer with a chance of up to"
            f" {1.0 - 2.0 * policy.doubt:.0%}"
        )
    return (
        f"Both are true: a group meets the policy if {often}. Over all people, the chance that it"
        f" comes within ±{CLOSE:.0%} is {share:.1%}."
    )


def figures(*cards: Card) -> HTML:
    """Large figures side by side."""
    return document(Cards(cards))


def promise_rows(policy: rp.Policy, report: rp.AuditReport | None) -> list[tuple[str, str]]:
    """What a publication with this policy would promise and not, if the audit is this."""
    checked = report is not None and report.one_row_per_person
    said = sentences(policy.publishable().as_dict() | {ONE_ROW: checked})
    return [(name, unbroken(text)) for name, text in said]


def error_card(found: Setting) -> Card:
    """How far off an adversary is where the release tells the most."""
    if not found.exposes:
        return Card("no group has a value that counts as exposed", "–")
    return Card("adversary’s error in the most exposed group", f"{found.group_error:.1%}")


def standing_out(report: rp.AuditReport) -> list[Card]:
    """How many records are alone, or nearly so, on the public columns; red if too many are."""
    single = report.single_records
    of = f"of {single.records:,} records are"
    tone = "bad" if too_many_unique(report) else ""
    return [
        Card(f"{of} unique on {single.columns}", f"{single.unique:,}", "", tone),
        Card(f"{of} in groups of fewer than {single.k}", f"{single.below_k:,}"),
    ]


def too_many_unique(report: rp.AuditReport) -> bool:
    """True if the number of unique records stands in the way of a publication."""
    return any(one.about == UNIQUE for one in report.obstacles)


def margins_sentence(report: rp.AuditReport, policy: rp.Policy) -> str:
    """What margins cost the groups; an audit of another policy does not know."""
    if report.policy.as_dict() == policy.as_dict():
        return report.margins.sentence
    return "counting what they cost the groups…" if policy.margins else ""


def verdict_notices(
    report: rp.AuditReport, policy: rp.Policy, groups: ReleaseVerdict, single: SingleRecords
) -> TagList:
    """Obstacles, groups, single records, columns; margins and dropped records; worst first."""
    parts = [(one.about.capitalize(), "error", obstacle_words(one)) for one in obstacles_of(report)]
    parts += [
        ("Groups", groups.kind, groups.sentence),
        ("Single records", record_kind(single, refused=too_many_unique(report)), single.sentence),
    ]
    if not any(column.identifier for column in report.columns):
        parts.append(("Columns", "good", "no public column is nearly unique."))
    parts.append(("Margins", "info", margins_sentence(report, policy)))
    if report.dropped:
        parts.append(("Records", "info", f"{kept_words(report.records, report.dropped)}."))
    parts.sort(key=lambda part: list(_WORST_FIRST).index(part[1]))
    return TagList(
        *(notice(f"{w[0].upper()}{w[1:]}", kind, lead=f"{name}: ") for name, kind, w in parts if w)
    )


def single_records(report: rp.AuditReport, policy: rp.Policy) -> SingleRecords:
    """The counts of an audit under another policy; only what a value reveals depends on it."""
    return replace(report.single_records, policy=policy)


def record_kind(single: SingleRecords, *, refused: bool = False) -> str:
    """The colour of the verdict on single records; red if they are ``refused``."""
    if refused:
        return "error"
    return "warning" if single.unique else "info" if single.below_k else "good"


def before_and_after(*before: Card, after: list[Card]) -> Tag:
    """Two columns that cannot be mistaken for each other."""
    columns = (
        ("Before", "the raw table, if only perturbed", before),
        ("After", "what the release leaves", after),
    )
    return tags.div(
        *(
            tags.section(
                tags.h4(title, tags.span(f": {words}", class_="muted")),
                figures(*cards),
                class_=title.lower(),
            )
            for title, words, cards in columns
        ),
        class_="before-after",
    )


def group_verdict(found: Setting) -> ReleaseVerdict:
    """How exposed a release with this policy leaves the groups at risk."""
    few = f"{found.unattainable_groups:,}"
    sampled = f"{found.sampled_groups:,}"
    if not found.sampling_rule.samples:
        return _unsampled(found.violating_groups)
    if found.unattainable_groups and found.policy.unattainable == "one-trial":
        return ReleaseVerdict(
            "warning",
            f"nothing is promised for {few} groups, which keep one trial; all other groups meet"
            " the policy.",
            few,
            "groups keep one trial, without a promise",
        )
    if found.unattainable_groups:
        return ReleaseVerdict(
            "error",
            f"this policy cannot be met: in {few} groups not even one trial is private. Lower p,"
            " the tolerance or the doubt, or let such groups keep one trial.",
            few,
            "groups in which not even one trial is private",
        )
    if found.sampling_rule.leaks and found.sampled_groups:
        return ReleaseVerdict(
            "warning",
            f"sampling rule {found.sampling} leaks the largest exposed frequency of large groups;"
            f" use {listed(recommended(), 'or')} for a release.",
            sampled,
            "groups whose largest exposed frequency leaks",
        )
    said = (
        f"all of them meet the policy; {sampled} are published from a sample of their records."
        if found.sampled_groups
        else _ENOUGH
    )
    return ReleaseVerdict("good", said, "0", "groups beyond the limit of the policy")


_ENOUGH = "all of them are private: perturbation alone is enough for this policy."


def _unsampled(violating: int) -> ReleaseVerdict:
    said = f"without sampling, {violating:,} of them stay open to reconstruction."
    return ReleaseVerdict(
        "error" if violating else "good",
        said if violating else _ENOUGH,
        f"{violating:,}",
        "groups stay open to reconstruction",
    )


def audited_groups(report: rp.AuditReport) -> ReleaseVerdict:
    """The same from an audit alone, which knows no more than what perturbation leaves open."""
    if report.private or not report.policy.sampling_rule.samples:
        return _unsampled(report.violating_groups)
    refused = report.unattainable_groups and report.policy.unattainable == "refuse"
    unknown = "groups open to reconstruction: publish to find out"
    return ReleaseVerdict("error" if refused else "info", report.groups_sentence, "–", unknown)


def details_cards(report: rp.AuditReport) -> Tag:
    """The groups behind the figures."""
    sizes = audit.sizes_grid(report)
    drawn = replace(sizes.fields[-1], name="records, drawn")
    return tags.div(
        card(
            "Records by the size of their group",
            document(replace(sizes, title="", fields=(*sizes.fields[:-1], drawn))),
            intro=f"{report.records:,} records in {report.groups:,} {report.group_word}s. Sampling"
            " is for the large groups; the people who can be singled out are in the smallest ones.",
        ),
        card(
            "Most exposed groups",
            document(replace(audit.worst_grid(report), title="", closed=False)),
        ),
        class_="stack",
    )


def columns_table(report: rp.AuditReport) -> TagList:
    """What the table would be like without each public column."""
    named = any(column.identifier for column in report.columns)  # among the notices above
    return TagList(
        None if named else tags.p(worded(report.columns_sentence, page_words)),
        document(replace(audit.columns_grid(report), title="")),
    )

"""What is about to be published, in words, and how many people stand out in it."""

from __future__ import annotations

from htmltools import Tag, tags

import reconpriv as rp
from reconpriv.messages.phrases import kept_words, share_words
from reconpriv.studio.desk import Settled
from reconpriv.studio.parts import facts
from reconpriv.studio.plan import Roles
from reconpriv.studio.remedy_words import ROWS_PER_PERSON
from reconpriv.studio.verdict import promise_rows


def plan_view(settled: Settled, policy: rp.Policy, report: rp.AuditReport | None) -> Tag:
    """The plan, and how many people stand out, once they are counted."""
    rows = plan_rows(settled, policy, report)
    if report is None:
        rows.insert(2, ("Unique records", "counting…"))
    else:
        single = report.single_records
        rows[2:2] = [
            ("Unique records", share_words(single.unique, single.records)),
            (f"In groups below {single.k}", share_words(single.below_k, single.records)),
        ]
    return tags.div(facts(rows))


def plan_rows(
    settled: Settled, policy: rp.Policy, report: rp.AuditReport | None
) -> list[tuple[str, str]]:
    """The plan in words."""
    roles, chosen, table = settled.roles, policy.as_dict(), settled.table
    return [
        ("Table", settled.opened.shown),
        ("Records", kept_words(table.schema.records, table.dropped)),
        ("Sensitive", f"{roles.sensitive} ({table.schema.domain_size} values)"),
        ("Public", ", ".join(roles.public)),
        *([("Person’s number", _person(roles))] if roles.person else []),
        *([("Recoded", roles.recoded)] if roles.recoded else []),
        (
            "Policy",
            f"p = {chosen['retention']:g}, ε = {chosen['epsilon']:g}, δ = {chosen['delta']:g}",
        ),
        ("Bound", chosen["bound"]),
        ("Sample size", chosen["sample_size"]),
        *([("Margins", policy.wanted_margins.words)] if policy.wanted_margins else []),
        *promise_rows(policy, report),
    ]


def _person(roles: Roles) -> str:
    rows = ROWS_PER_PERSON[roles.rows_per_person].lower()
    return f"{roles.person} (not published; people with several rows: {rows})"

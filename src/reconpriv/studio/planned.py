"""What is about to be published, in words, and how many people stand out in it."""

from __future__ import annotations

from htmltools import Tag, tags

import reconpriv as rp
from reconpriv.core.single_records import SingleRecords
from reconpriv.messages.phrases import kept_words, share_words
from reconpriv.promise import promise
from reconpriv.studio.desk import Settled
from reconpriv.studio.parts import facts, notice


def plan_view(settled: Settled, policy: rp.Policy, single: SingleRecords | None) -> Tag:
    """The plan, and how many people stand out; in red if most do."""
    rows = plan_rows(settled, policy)
    if single is None:
        rows.insert(2, ("Unique records", "counting…"))
    else:
        rows[2:2] = [
            ("Unique records", share_words(single.unique, single.records)),
            (f"In groups below {single.k}", share_words(single.below_k, single.records)),
        ]
    warned = single is not None and single.mostly_unique
    words = "Most records are unique on the public columns: whoever knows these finds the person."
    return tags.div(facts(rows), notice(words) if warned else None)


def plan_rows(settled: Settled, policy: rp.Policy) -> list[tuple[str, str]]:
    """The plan in words."""
    roles, chosen, table = settled.roles, policy.as_dict(), settled.table
    return [
        ("Table", settled.opened.shown),
        ("Records", kept_words(table.schema.records, table.dropped)),
        ("Sensitive", f"{roles.sensitive} ({table.schema.domain_size} values)"),
        ("Public", ", ".join(roles.public)),
        *([("Recoded", roles.recoded)] if roles.recoded else []),
        (
            "Policy",
            f"p = {chosen['retention']:g}, ε = {chosen['epsilon']:g}, δ = {chosen['delta']:g}",
        ),
        ("Bound", chosen["bound"]),
        ("Sample size", chosen["sample_size"]),
        *([("Margins", policy.wanted_margins.words)] if policy.wanted_margins else []),
        ("Promise", promise(policy.publishable().as_dict())),
    ]

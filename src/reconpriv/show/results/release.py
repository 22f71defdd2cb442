"""A release as its publisher and its analysts read it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reconpriv.auditing.single_records import K
from reconpriv.messages.phrases import share_words
from reconpriv.show.document import Closed, Document, Facts, Headline, OnPage, Paragraph
from reconpriv.show.results.audit import PROMISED
from reconpriv.show.results.release_words import margins_line, policy_line, release_words

if TYPE_CHECKING:
    from reconpriv.release.release import Release


def release_document(release: Release) -> Document:
    """What was published, in a few lines, and how to read it."""
    return [
        Headline(f"Release {release.place}"),
        _figures(release),
        OnPage([Paragraph(note) for note in release.warnings]),
        Closed("How to read it", [Facts(release_words(release.info()))]),
    ]


def _figures(release: Release) -> Facts:
    """Records, policy and, for the publisher, what was sampled."""
    summary, over = release.as_dict(), release.description.protect
    policy = summary["policy"]
    rows = [
        ("records", f"{summary['records']:,}"),
        ("policy", f"{policy_line(policy)}, sample size {policy['sample_size']}"),
        ("promised", release.promise),
        ("not promised", release.not_promised),
    ]
    if over:
        rows.append(("pooled over", over.words))
    if release.written is not None:
        rows += [
            ("protection groups" if over else "groups", f"{summary['groups']:,}"),
            ("sampled groups", f"{summary['sampled_groups']:,}"),
            ("independent trials", f"{summary['trials']:,}"),
            (
                "alone in such a group" if over else "unique records",
                share_words(summary["unique_records"], summary["records"]),
            ),
            (
                f"in groups below {K}",
                share_words(summary["records_in_groups_below_5"], summary["records"]),
            ),
        ]
        if summary["unattainable_groups"]:
            rows.append(
                (
                    "kept one trial",
                    f"{summary['unattainable_groups']:,} groups in which not even one is private",
                )
            )
    if release.description.margins:
        rows.append(("margins", margins_line(summary["margins"])))
    if release.tables:
        rows.append(("tables", ", ".join(release.tables)))
    return Facts(rows, quoted=PROMISED)


def info_document(release: Release) -> Document:
    """A release in words that an analyst understands."""
    facts = release.info()
    title = f"{facts['records']:,} records, {facts['created_by']}"
    return [Paragraph(title), Facts(release_words(facts), spaced=True)]

"""A release as its publisher and its analysts read it, on a terminal and in a notebook."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.table import Table as RichTable
from rich.text import Text

from reconpriv.core.single_records import K
from reconpriv.messages.phrases import share_words
from reconpriv.show.markup import tag, words
from reconpriv.show.notebook import box, closed, headline, html_table, quoted
from reconpriv.show.release_words import margins_line, policy_line, release_words
from reconpriv.show.text import pairs_table

if TYPE_CHECKING:
    from reconpriv.release.release import Release


def release_view(release: Release) -> RenderableType:
    """What was published, in a few lines."""
    return Group(Text(f"Release {release.place}\n", style="bold"), release_figures(release))


def release_figures(release: Release, *, promise: bool = True) -> RichTable:
    """Records, policy and, for the publisher, what was sampled."""
    summary = release.as_dict()
    policy = summary["policy"]
    promised = [("promised", release.promise), ("not promised", release.not_promised)]
    rows = [
        ("records", f"{summary['records']:,}"),
        ("policy", f"{policy_line(policy)}, sample size {policy['sample_size']}"),
        *(promised if promise else []),
    ]
    protect = release.description.protect
    if protect is not None:
        rows.append(("pooled over", protect.words))
    if release.written is not None:
        rows += [
            ("groups" if protect is None else "protection groups", f"{summary['groups']:,}"),
            ("sampled groups", f"{summary['sampled_groups']:,}"),
            ("independent trials", f"{summary['trials']:,}"),
            (
                "unique records" if protect is None else "alone in such a group",
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
    if release.description.margins is not None:
        rows.append(("margins", margins_line(summary["margins"])))
    if release.tables:
        rows.append(("tables", ", ".join(release.tables)))
    return pairs_table(rows)


def info_view(release: Release) -> RenderableType:
    """A release in words that an analyst understands."""
    facts = release.info()
    table = RichTable(show_header=False, box=None, padding=(0, 2, 1, 0))
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    for name, text in release_words(facts):
        table.add_row(name, Text(text))
    return Group(Text(f"{facts['records']:,} records, {facts['created_by']}\n"), table)


def release_html(release: Release) -> str:
    """What was published and how to read it."""
    explained = [
        (tag("dt", tag("b", name)), tag("dd", words(text)))
        for name, text in release_words(release.info())
    ]
    return box(
        headline(f"Release {release.place}"),
        quoted("Promised", release.promise),
        quoted("Not promised", release.not_promised),
        html_table(release_figures(release, promise=False)),
        [tag("p", note) for note in release.warnings],
        closed("How to read it", tag("dl", explained)),
    )

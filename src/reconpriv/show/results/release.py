"""A release as its publisher and its analysts read it, on the terminal and in the report."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from typing import TYPE_CHECKING, Any

from reconpriv.auditing.single_records import K
from reconpriv.columns.recoding import PERIODS
from reconpriv.messages.numbers import brief, label
from reconpriv.messages.phrases import listed, share_words
from reconpriv.policy.promise import AGAINST, sentences
from reconpriv.policy.sampling_rules import SAMPLING_RULES
from reconpriv.show.document import Closed, Document, Facts, Headline, OnPage, Paragraph

if TYPE_CHECKING:
    from reconpriv.release.release import Release

PROMISED = ("promised", "not promised")


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
        ("policy", f"{policy_line(policy)}, sampling rule {policy['sampling']}"),
        ("promised", release.promise),
        ("not promised", release.not_promised),
    ]
    rows.append(("pooled over", over.words))
    if release.written is not None:
        rows += [
            (f"{over.group_word}s", f"{summary['groups']:,}"),
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
    rows.append(("margins", margins_line(release.description.margins.as_dict())))
    rows.append(("tables", ", ".join(release.tables)))
    return Facts(rows, quoted=PROMISED)


def info_document(release: Release) -> Document:
    """A release in words that an analyst understands."""
    facts = release.info()
    title = f"{facts['records']:,} records, {facts['created_by']}"
    return [Paragraph(title), Facts(release_words(facts), spaced=True)]


_SHOWN = 12


def policy_line(policy: dict[str, Any]) -> str:
    """The parameters of a policy on one line."""
    return (
        f"p = {policy['retention']:g}, tolerance {policy['tolerance']:g},"
        f" doubt {policy['doubt']:g}, bound {policy['bound']}"
        + (f", exposed above {policy['exposed_above']:g}" if policy.get("exposed_above") else "")
        + (f", {len(policy['harmless'])} harmless" if policy.get("harmless") else "")
        + (", news only" if policy.get("news_only") else "")
    )


def margins_line(margins: dict[str, Any]) -> str:
    """Margins on one line, from their block in the manifest or in an audit; empty without any."""
    tables = margins["tables"]
    if not tables:
        return ""
    left_out = sum(one["left_out"] for one in tables)
    return f"{privacy_words(margins)}, σ = {sqrt(margins['variance']):.3g}; {_tables(tables)}" + (
        f"; {left_out:,} {'row' if left_out == 1 else 'rows'} left out" if left_out else ""
    )


def privacy_words(margins: dict[str, Any]) -> str:
    """The ε and δ of margins."""
    return f"ε = {margins['epsilon']:.3g}, δ = {brief(margins['delta'])}"


def _tables(tables: list[dict[str, Any]]) -> str:
    names = _first([one["name"] for one in tables])
    return f"{len(tables)} {'table' if len(tables) == 1 else 'tables'} ({names})"


def _first(words: Sequence[str]) -> str:
    """The first few words, and whether there are more."""
    return ", ".join([*words[:_SHOWN], *(["…"] if len(words) > _SHOWN else [])])


def noise_reach(margins: dict[str, Any]) -> float:
    """How far from the truth 95 of 100 counts in margins are at most."""
    return 1.96 * sqrt(margins["variance"])


def margin_words(facts: dict[str, Any]) -> list[tuple[str, str]]:
    """What the margins of a release are and how far off their counts are; nothing if none."""
    if "margins" not in facts:
        return []
    margins = facts["margins"]
    tables, sigma = margins["tables"], sqrt(margins["variance"])
    left_out = sum(one["left_out"] for one in tables)
    said = (
        f"counts of {facts['sensitive']} by {listed([one['name'] for one in tables])}, each with"
        f" random noise: about 95 of 100 are within ±{noise_reach(margins):,.0f} of the truth (σ ="
        f" {sigma:.3g}). They are published as drawn, so some may be below 0. All of them"
        f" together are differentially private ({privacy_words(margins)}; ρ = {margins['rho']:g}),"
        " which limits what they tell about the value of any one record. Estimates combine"
        " them with the records; each answer says how much of it rests on them."
    )
    if left_out:
        rows, are = ("row", "is") if left_out == 1 else ("rows", "are")
        said += f" {left_out:,} {rows} that would have given a group away {are} left out."
    return [("Margins", said)]


def protection_words(facts: dict[str, Any]) -> list[tuple[str, str]]:
    """What protection groups pool over, and how to ask; nothing if there are none."""
    parts = [
        f"{name} ({_first(said.get('labels', [])) or 'ignored'})"
        for name, said in facts.get("protect", {}).items()
    ]
    if not parts:
        return []
    return [
        (
            "Protection",
            f"records that differ only in {listed(parts)} form a protection group. Their"
            f" {facts['sensitive']} values were dealt at random within it, so they say nothing"
            " about a part of it. A question about a part is answered by its share of the group,"
            " and the answer says so; ask about whole bins to avoid that.",
        )
    ]


def _label_words(labels: dict[str, Any]) -> list[tuple[str, str]]:
    """The labels of the columns and of their codes, in a paragraph."""
    parts = []
    for name, said in labels.items():
        title = f" ({said['title']})" if "title" in said else ""
        values = [f"{one['value']} = {one['label']}" for one in said.get("values", [])]
        meaning = _first(values) or said.get("description", "")
        parts.append(f"{name}{title}" + (f": {meaning}" if meaning else ""))
    return [("Labels", "; ".join(parts) + ".")] if parts else []


def _recoded_words(recoded: dict[str, Any]) -> list[tuple[str, str]]:
    """Which columns hold bins or groups, and how to ask about them."""
    if not recoded:
        return []
    how = {
        "width": "bins of equal width",
        "borders": "bins between declared borders",
        "quantiles": "bins between quantiles of the original table",
        "groups": "groups of the original values",
        **{period: f"{period}s" for period in PERIODS},
    }
    parts = [
        f"{name}: {how[said['declared']]} ({_first(said['labels'])})"
        for name, said in recoded.items()
    ]
    rule = (
        "A condition that cuts a bin or a group cannot be answered unless whole bins are allowed."
    )
    return [("Recoded", f"{'; '.join(parts)}. {rule}")]


def release_words(facts: dict[str, Any]) -> list[tuple[str, str]]:
    """Named paragraphs, from what ``Release.info`` returns."""
    policy = f"{policy_line(facts)}, sampling rule {facts['sampling']}."
    return [*promise_words(facts), *reading_words(facts), ("Policy", policy)]


def reading_words(facts: dict[str, Any]) -> list[tuple[str, str]]:
    """What is exact, what is estimated, and what to keep in mind."""
    p, m, sensitive = facts["retention"], len(facts["domain"]), facts["sensitive"]
    public = ", ".join(facts["public"]) or "none"
    shown = _first([label(value) for value in facts["domain"]])
    recoded = any(name in facts.get("recoded", {}) for name in facts["public"])
    kept = "its own values, or the bin or group of each" if recoded else "its own values"
    exact = (
        f"Counts over these columns alone are exact: each record keeps {kept}."
        if facts["public_counts_exact"]
        else "Counts over these columns alone are right to within a few coin flips in large groups."
    )
    rule = SAMPLING_RULES[facts["sampling"]]
    groups = rule.for_analysts
    if rule.samples:
        groups += (
            " A count for one full combination of public values rests on few trials; counts over"
            " many do not."
        )
    return [
        *_label_words(facts.get("labels", {})),
        *_recoded_words(facts.get("recoded", {})),
        ("Exact", f"{public}. {exact}"),
        (
            "Estimated",
            f"{sensitive}. With probability p = {p:g} a trial keeps its true value; otherwise it is"
            f" drawn at random from all {m} values ({shown}), and"
            " nothing shows which were drawn. So do not read rows one by one, and do not count them"
            " directly: plain counts are biased. Ask reconpriv, which undoes the mixing and gives"
            " an interval.",
        ),
        *margin_words(facts),
        *protection_words(facts),
        ("Groups", groups),
        (
            "Intervals",
            "are for the count in the original table, not in a population it was drawn from.",
        ),
    ]


def promise_words(facts: dict[str, Any]) -> list[tuple[str, str]]:
    """What is promised and what is not, against whom, and what one record tells."""
    return [*sentences(facts), ("Against", AGAINST), ("One record", record_words(facts))]


def record_words(facts: dict[str, Any]) -> str:
    """What one published value tells about its person."""
    level = f"{facts['local_dp_epsilon']:.3g}-locally differentially private"
    return f"One randomised answer is {level}."

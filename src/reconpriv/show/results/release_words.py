"""What a release is, in words that an analyst understands: for the terminal and for the report."""

from __future__ import annotations

from math import sqrt
from typing import Any

from reconpriv.columns.periods import PERIODS
from reconpriv.messages.numbers import brief
from reconpriv.messages.phrases import listed
from reconpriv.policy.promise import AGAINST, sentences
from reconpriv.policy.sample_sizes import SAMPLE_SIZES

_SHOWN = 12


def policy_line(policy: dict[str, Any]) -> str:
    """The parameters of a policy on one line."""
    return (
        f"p = {policy['retention']:g}, ε = {policy['epsilon']:g}, δ = {policy['delta']:g},"
        f" bound {policy['bound']}"
        + (f", exposed above {policy['exposed_above']:g}" if policy.get("exposed_above") else "")
        + (f", {len(policy['harmless'])} harmless" if policy.get("harmless") else "")
        + (", news only" if policy.get("news_only") else "")
    )


def margins_line(margins: dict[str, Any]) -> str:
    """Margins on one line, from their block in the manifest or in an audit."""
    tables = margins["tables"]
    left_out = sum(one["left_out"] for one in tables)
    return f"{privacy_words(margins)}, σ = {sqrt(margins['variance']):.3g}; {_tables(tables)}" + (
        f"; {left_out:,} {'row' if left_out == 1 else 'rows'} left out" if left_out else ""
    )


def privacy_words(margins: dict[str, Any]) -> str:
    """The ε and δ of margins."""
    return f"ε = {margins['epsilon']:.3g}, δ = {brief(margins['delta'])}"


def _tables(tables: list[dict[str, Any]]) -> str:
    names = ", ".join(one["name"] for one in tables[:_SHOWN]) + (
        ", …" if len(tables) > _SHOWN else ""
    )
    return f"{len(tables)} {'table' if len(tables) == 1 else 'tables'} ({names})"


def margin_words(facts: dict[str, Any]) -> list[tuple[str, str]]:
    """What the margins of a release are and how far off their counts are; nothing if none."""
    margins = facts.get("margins")
    if margins is None:
        return []
    tables, sigma = margins["tables"], sqrt(margins["variance"])
    left_out = sum(one["left_out"] for one in tables)
    said = (
        f"counts of {facts['sensitive']} by {listed([one['name'] for one in tables])}, each with"
        f" random noise: about 95 of 100 are within ±{1.96 * sigma:,.0f} of the truth (σ ="
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
    protect = facts.get("protect")
    if protect is None:
        return []
    parts = []
    for name, said in protect.items():
        labels = said.get("labels", [])
        shown = ", ".join(labels[:_SHOWN]) + (", …" if len(labels) > _SHOWN else "")
        parts.append(f"{name} ({shown})" if labels else f"{name} (ignored)")
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
        listed = ", ".join(values[:_SHOWN]) + (", …" if len(values) > _SHOWN else "")
        meaning = listed or said.get("description", "")
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
    parts = []
    for name, said in recoded.items():
        shown = ", ".join(said["labels"][:_SHOWN]) + (", …" if len(said["labels"]) > _SHOWN else "")
        parts.append(f"{name}: {how[said['declared']]} ({shown})")
    return [
        (
            "Recoded",
            "; ".join(parts) + ". A condition that cuts a bin or a group cannot be answered unless"
            " whole bins are allowed.",
        )
    ]


def release_words(facts: dict[str, Any]) -> list[tuple[str, str]]:
    """Named paragraphs, from what ``Release.info`` returns."""
    return [*promise_words(facts), *reading_words(facts), ("Policy", _policy_words(facts))]


def reading_words(facts: dict[str, Any]) -> list[tuple[str, str]]:
    """What is exact, what is estimated, and what to keep in mind."""
    p, m, sensitive = facts["retention"], len(facts["domain"]), facts["sensitive"]
    public = ", ".join(facts["public"]) or "none"
    shown = ", ".join("(missing)" if v is None else str(v) for v in facts["domain"][:_SHOWN])
    recoded = any(name in facts.get("recoded", {}) for name in facts["public"])
    kept = "its own values, or the bin or group of each" if recoded else "its own values"
    exact = (
        f"Counts over these columns alone are exact: each record keeps {kept}."
        if facts["public_counts_exact"]
        else "Counts over these columns alone are right to within a few coin flips in large groups."
    )
    sampling = SAMPLE_SIZES[facts["sample_size"]]
    groups = sampling.for_analysts
    if sampling.samples:
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
            f" drawn at random from all {m} values ({shown}{', …' if m > _SHOWN else ''}), and"
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


def _policy_words(facts: dict[str, Any]) -> str:
    return f"{policy_line(facts)}, sample size {facts['sample_size']}."


def record_words(facts: dict[str, Any]) -> str:
    """What one published value tells about its person."""
    level = f"{facts['local_dp_epsilon']:.3g}-locally differentially private"
    return f"One randomised answer is {level}."

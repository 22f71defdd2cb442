"""What a policy promises and what it does not: two sentences for people who know no statistics.

Policies come as plain values, as an audit, a summary and a manifest have them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reconpriv.messages.phrases import listed
from reconpriv.policy.sampling_rules import SAMPLING_RULES
from reconpriv.theory.tails.bounds import BOUNDS

ONE_ROW = "one_row_per_person"
REFUSED = "None: a release with this policy is refused."
AGAINST = (
    "Anyone who has the release and knows this program, the policy and the public values of"
    " everybody in the table, but neither the publisher's key nor anybody's sensitive value."
)

# On which tables, how many groups are told within ±50 % by what similar groups tell, and how many
# by the group itself: with exact bounds (preset recommended) and with others (Chernoff's).
# docs/threat-model.md and docs/recommended.md have the figures.
MEASURED = {
    True: ("eleven real tables", "72 to 100 %", "62 to 72 %"),
    False: ("three real tables", "90 to 99.7 %", "87 to 91 %"),
}


def sentences(policy: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Both sentences, each with its name."""
    return [("Promised", promise(policy)), ("Not promised", not_promised(policy))]


def promise(policy: Mapping[str, Any]) -> str:
    """What an adversary can and cannot work out about a group."""
    if not SAMPLING_RULES[policy["sampling"]].samples:
        return (
            "Nothing is promised about groups: the larger a group, the better an adversary can"
            " estimate how many of it hold a value; only single values are protected, since each"
            f" was drawn at random with a probability of {_percent(1 - policy['retention'])}."
        )
    said = _in_probabilities(policy) if _exact(policy) else _by_bound(policy)
    # What happens where no number of trials will do is an exception, which must not be left out.
    open_groups = policy.get("unattainable") == "one-trial"
    every = "Wherever this can be achieved, in every" if open_groups else "In every"
    return f"{every} group of {_people(policy)}, and for every value {_exposed(policy)}, {said}."


def not_promised(policy: Mapping[str, Any]) -> str:
    """What is left open: by any policy, and by this one."""
    said = ["Who is in the table is not hidden"]
    if SAMPLING_RULES[policy["sampling"]].samples:
        said += _left_open(policy)
    if not policy.get(ONE_ROW):
        said.append("each row is assumed to be one person, which was not checked")
    return f"{'; '.join(said[:-1])}; and {said[-1]}." if said[1:] else f"{said[0]}."


def _left_open(policy: Mapping[str, Any]) -> list[str]:
    """What the promise about groups does not cover."""
    rule = SAMPLING_RULES[policy["sampling"]]
    said = [
        "somebody who is alone in their group, or in one too small to be sampled, is protected only"
        f" by the chance of {_percent(1 - policy['retention'])} that the value published for them"
        " was drawn at random",
        _similar(policy),
    ]
    if _exact(policy):
        seen = _percent(round(1 / (1 + policy["tolerance"]), 2))
        said.append(
            f"where more than about {seen} of a group hold a value, too high means above 100 %,"
            " which anybody can see"
        )
    if policy.get("unattainable") == "one-trial":
        said.append("groups where it cannot be achieved keep one record and are promised nothing")
    if rule.leaks:
        said.append(
            f"with sampling rule {rule.name}, the number of records drawn from a large group"
            " gives away how many hold its most frequent protected value"
        )
    if policy.get("margins") and not rule.counts_margins:
        said.append("whoever uses the noisy tables (margins) may come closer")
    return said


def _exact(policy: Mapping[str, Any]) -> bool:
    """True if the doubt is a probability."""
    bound = BOUNDS.get(policy["bound"])
    return bound is not None and bound.exact


def _in_probabilities(policy: Mapping[str, Any]) -> str:
    off, often = _percent(policy["tolerance"]), _percent(policy["doubt"])
    return (
        f"{_estimate(policy)} is more than {off} too high with a probability of at least {often},"
        f" more than {off} too low with a probability of at least {often}, and so within {off} of"
        f" the truth with a probability of at most {_percent(max(1 - 2 * policy['doubt'], 0.0))}"
    )


def _by_bound(policy: Mapping[str, Any]) -> str:
    off, often = _percent(policy["tolerance"]), _percent(policy["doubt"])
    return (
        f"so few records count that an inequality of statistics ({policy['bound']}) cannot show"
        f" {_estimate(policy)} to be more than {off} too high, or too low, with a probability below"
        f" {often}; the true probability, often far smaller, is not promised"
    )


def _estimate(policy: Mapping[str, Any]) -> str:
    """The estimate that the promise is about, and what it is made from."""
    rule = SAMPLING_RULES[policy["sampling"]]
    records = "the group's published records"
    if rule.coin_flips:
        # The coin flips that copy them are not among the exact tails.
        records = "the records drawn from the group, each counted once"
    elif policy.get("margins") and rule.counts_margins:
        records += " alone or with the noisy tables beside them (margins)"
    return (
        "an adversary's best estimate of how many hold it that is right on average, made from"
        f" {records},"
    )


def _people(policy: Mapping[str, Any]) -> str:
    """Who is in a group that the promise is about."""
    people = "people (one row each, as was checked)" if policy.get(ONE_ROW) else "people"
    columns = [*(policy.get("protect") or ())]
    coarse = f" after coarsening {listed(columns)}" if columns else ""
    return f"{people} who agree on all public columns{coarse}"


def _exposed(policy: Mapping[str, Any]) -> str:
    """Which values a policy protects."""
    above = policy.get("exposed_above", 0.0)
    said = f"that more than {_percent(above)} of them hold" if above else "that occurs among them"
    if policy.get("news_only", False):
        said += (
            f" and whose share is more than {_percent(policy['tolerance'])} above or below its"
            " share"
            " of the whole table"
        )
    harmless = [_value(value) for value in policy.get("harmless", ())]
    return f"{said}, except {listed(harmless)}" if harmless else said


def _similar(policy: Mapping[str, Any]) -> str:
    """What an estimate can do that does not rest on the group, with figures of both kinds."""
    if policy.get("protect"):
        return (
            "whoever combines such groups, or knows what people like them are like, may come closer"
        )
    tables, similar, own = MEASURED[_exact(policy)]
    return (
        "whoever combines similar groups, or knows what people like them are like, may come closer"
        f" (on {tables}, within 50 % of the truth in {similar} of the groups instead of"
        f" {own})"
    )


def _percent(share: float) -> str:
    return f"{100.0 * share:.6g} %"


def _value(value: Any) -> str:
    """A value in quotes if it is text: one called "none" must not read as none of them."""
    if value is None:
        return "a missing value"
    return f'"{value}"' if isinstance(value, str) else str(value)

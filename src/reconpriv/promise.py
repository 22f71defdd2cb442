"""What a policy promises, as a sentence that a data steward can sign.

Policies come as plain values, as an audit, a summary and a manifest have them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reconpriv.core.sample_sizes import SAMPLE_SIZES
from reconpriv.messages.phrases import listed
from reconpriv.theory.bounds import BOUNDS

ONE_ROW = "one_row_per_person"
NOTHING = "Nothing is promised about groups: each record is only perturbed."
REFUSED = "None: a release with this policy is refused."


def promise(policy: Mapping[str, Any]) -> str:
    """The promise of a publication with this policy, and what it calls exposed."""
    said = guarantee(policy)
    if said == NOTHING:
        return said
    parts = (said, exposed_words(policy), pooled_words(policy), rows_words(policy))
    return " ".join(filter(None, parts))


def rows_words(policy: Mapping[str, Any]) -> str:
    """Whether each row is known to be one person, or only assumed to be."""
    if policy.get(ONE_ROW):
        return "Each row is one person (checked)."
    return "Each row is assumed to be one person; that was not checked."


def guarantee(policy: Mapping[str, Any]) -> str:
    """The promise alone."""
    if not SAMPLE_SIZES[policy["sample_size"]].samples:
        return NOTHING
    bound = BOUNDS.get(policy["bound"])
    exact = bound is not None and bound.lattice
    return _in_probabilities(policy) if exact else _by_bound(policy)


def against(policy: Mapping[str, Any]) -> str:
    """Whom the promise is made against, and what it leaves open."""
    known = (
        "anyone who has the release and knows this program, the policy and the public values of"
        " everybody in the table, but not the publisher's key."
    )
    if guarantee(policy) == NOTHING:
        return f"Only the value of a single record is protected, against {known}"
    known = known[0].upper() + known[1:]
    if policy.get("protect"):
        return (
            f"{known} They may pool the groups within a protection group. Pooling beyond it may"
            " tell them more."
        )
    return (
        f"{known} They judge a group by its own {_sources(policy)}. Pooling it with similar groups"
        " may tell them more."
    )


def exceptions(policy: Mapping[str, Any]) -> str:
    """Who is promised nothing; empty if every group is promised the same, against everybody."""
    if guarantee(policy) == NOTHING:
        return ""
    said = []
    if policy.get("unattainable") == "one-trial":
        said.append(
            "Groups in which not even one trial is private keep one; they are promised nothing."
        )
    if SAMPLE_SIZES[policy["sample_size"]].leaks:
        said.append(
            f"With sample size {policy['sample_size']}, the number of trials of a large group gives"
            " its largest exposed frequency away: nothing is promised against whoever reads it off."
        )
    return " ".join(said)


def pooled_words(policy: Mapping[str, Any]) -> str:
    """What protection groups are; empty if the promise is not about them."""
    columns = [*(policy.get("protect") or ())]
    if not columns:
        return ""
    return (
        "A protection group holds the people who agree on all public columns after coarsening"
        f" {listed(columns)}."
    )


def exposed_words(policy: Mapping[str, Any]) -> str:
    """Which values a policy protects."""
    above = policy.get("exposed_above", 0.0)
    harmless = [_value(value) for value in policy.get("harmless", ())]
    news = policy.get("news_only", False)
    if not above and not harmless and not news:
        return "Every value that occurs in a group is exposed."
    if above:
        said = f"A value is exposed in a group if more than {_percent(above)} of the group hold it"
    elif news:
        said = "A value that occurs in a group is exposed"
    else:
        said = "Every value that occurs in a group is exposed"
    if news:
        near = (
            "its share differs from that in the whole table by more than"
            f" {_percent(policy['epsilon'])} of the latter"
        )
        said += f" and {near}" if above else f" if {near}"
    if harmless and (above or news):
        said += f"; {listed(harmless)} {'is' if len(harmless) == 1 else 'are'} never exposed"
    elif harmless:
        said += f", except {listed(harmless)}"
    return f"{said}."


def _in_probabilities(policy: Mapping[str, Any]) -> str:
    off, often = _percent(policy["epsilon"]), _percent(policy["delta"])
    # The coin flips that copy the trials of `paper` are not among the exact tails.
    records = "trials" if SAMPLE_SIZES[policy["sample_size"]].coins else "records"
    if _sources(policy) != "records":
        records = "records, alone or weighed with the margins,"
    return (
        f"{_where(policy)}, an estimate of an exposed value's share from the group's own"
        f" {records} is more than {off} too high with a probability of at least {often}, and more"
        f" than {off} too low with a probability of at least {often}."
    )


def _by_bound(policy: Mapping[str, Any]) -> str:
    off, often = _percent(policy["epsilon"]), _percent(policy["delta"])
    return (
        f"{_where(policy)}, the {policy['bound']} bound cannot show that an estimate of an"
        f" exposed value's share from the group's own {_sources(policy)} is more than {off} too"
        f" high with a probability below {often}, nor that it is more than {off} too low. What is"
        " promised is this criterion, not a probability: the true probabilities are smaller than"
        " the bound, and only the exact bound promises those."
    )


def _sources(policy: Mapping[str, Any]) -> str:
    """What a group is estimated from where the promise is made."""
    counted = policy.get("margins") and SAMPLE_SIZES[policy["sample_size"]].counts_margins
    return "records and the margins" if counted else "records"


def _where(policy: Mapping[str, Any]) -> str:
    group = "protection group" if policy.get("protect") else "group"
    # What happens where no number of trials will do is an exception, which must not be left out.
    left_out = policy.get("unattainable") == "one-trial"
    return f"In every {group}" + (" that some number of trials keeps private" if left_out else "")


def _percent(share: float) -> str:
    return f"{100.0 * share:.6g} %"


def _value(value: Any) -> str:
    """A value in quotes if it is text: one called "none" must not read as none of them."""
    if value is None:
        return "a missing value"
    return f'"{value}"' if isinstance(value, str) else str(value)

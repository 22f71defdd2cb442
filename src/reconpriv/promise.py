"""What a policy promises, as a sentence that a data steward can sign.

Policies come as plain values, as an audit, a summary and a manifest have them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reconpriv.core.sample_sizes import SAMPLE_SIZES
from reconpriv.messages.phrases import listed
from reconpriv.theory.bounds import BOUNDS

NOTHING = "Nothing is promised about groups: each record is only perturbed."
REFUSED = "None: a release with this policy is refused."


def promise(policy: Mapping[str, Any]) -> str:
    """The promise of a publication with this policy, and what it calls exposed."""
    said = guarantee(policy)
    if said == NOTHING:
        return said
    return " ".join(filter(None, (said, exposed_words(policy), pooled_words(policy))))


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
        "Anyone who has the release and knows this program, the policy and the public values of"
        " everybody in the table, but not the publisher's key."
    )
    if guarantee(policy) == NOTHING:
        return known
    if policy.get("protect"):
        return (
            f"{known} They may pool the groups within a protection group. Pooling beyond it may"
            " tell them more."
        )
    return (
        f"{known} They judge a group by its own records. Pooling it with similar groups may tell"
        " them more."
    )


def exceptions(policy: Mapping[str, Any]) -> str:
    """Which groups are promised nothing; empty if each is promised the same."""
    if policy.get("unattainable") != "one-trial" or guarantee(policy) == NOTHING:
        return ""
    return "Groups in which not even one trial is private keep one; they are promised nothing."


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
    return (
        f"{_where(policy)}, an estimate of an exposed value's share from the group's own"
        f" {records} is more than {off} too high with a probability of at least {often}, and more"
        f" than {off} too low with a probability of at least {often}."
    )


def _by_bound(policy: Mapping[str, Any]) -> str:
    off, often = _percent(policy["epsilon"]), _percent(policy["delta"])
    records = "own records and the margins" if policy.get("margins") else "own records"
    return (
        f"{_where(policy)}, the {policy['bound']} bound cannot show that an estimate of an"
        f" exposed value's share from the group's {records} is more than {off} too high with a"
        f" probability below {often}, nor that it is more than {off} too low. The true"
        " probabilities are smaller than the bound; only the exact bound makes them a promise."
    )


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

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


def promise(policy: Mapping[str, Any]) -> str:
    """The promise of a publication with this policy, and what it calls exposed."""
    if not SAMPLE_SIZES[policy["sample_size"]].samples:
        return NOTHING
    bound = BOUNDS.get(policy["bound"])
    exact = bound is not None and bound.lattice
    said = _in_probabilities(policy) if exact else _by_bound(policy)
    return f"{said} {exposed_words(policy)}{_pooled_words(policy)}"


def _pooled_words(policy: Mapping[str, Any]) -> str:
    """What protection groups are, if the promise is about them."""
    columns = [*(policy.get("protect") or ())]
    if not columns:
        return ""
    return (
        " A protection group holds the people who agree on all public columns after coarsening"
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
        near = f"its share differs by more than {_percent(policy['epsilon'])} of that in the table"
        said += f" and {near}" if above else f" if {near}"
    if harmless:
        said += f"; {listed(harmless)} {'is' if len(harmless) == 1 else 'are'} never exposed"
    return f"{said}."


def _in_probabilities(policy: Mapping[str, Any]) -> str:
    off, often = _percent(policy["epsilon"]), _percent(policy["delta"])
    return (
        f"In every {_group(policy)}, an estimate of an exposed value's share from the group's own"
        " records is"
        f" more than {off} too high with a probability of at least {often}, and more than {off} too"
        f" low with a probability of at least {often}."
    )


def _by_bound(policy: Mapping[str, Any]) -> str:
    off, often = _percent(policy["epsilon"]), _percent(policy["delta"])
    records = "own records and the margins" if policy.get("margins") else "own records"
    return (
        f"In every {_group(policy)}, the {policy['bound']} bound cannot show that an estimate of an"
        f" exposed value's share from the group's {records} is more than {off} too high with a"
        f" probability below {often}, nor that it is more than {off} too low. The true"
        " probabilities are smaller than the bound; only the exact bound makes them a promise."
    )


def _group(policy: Mapping[str, Any]) -> str:
    return "protection group" if policy.get("protect") else "group"


def _percent(share: float) -> str:
    return f"{100.0 * share:.6g} %"


def _value(value: Any) -> str:
    return "a missing value" if value is None else str(value)

"""The order in which values are shown, which need not be the order in which they are stored."""

from __future__ import annotations

from collections.abc import Iterable

from reconpriv.recoding import Recoding
from reconpriv.schema import Value


def sorted_for_display(values: Iterable[Value], recoding: Recoding | None = None) -> list[Value]:
    """Values in the order that a reader expects, a missing one last; they come sorted.

    Bins and groups stand in the order of their declaration.
    """
    if recoding is None:
        return list(values)
    place = {label: i for i, label in enumerate(recoding.labels)}
    return sorted(values, key=lambda value: place.get(value, len(place)))

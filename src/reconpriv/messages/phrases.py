"""Pieces of sentences that several reports share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from reconpriv.messages.one_line import shortened


def group_words(public: Mapping[str, Any]) -> str:
    """A group by its public values, each with the name of its column."""
    named = (
        f"{shortened(name)}={'(missing)' if v is None else shortened(str(v))}"
        for name, v in public.items()
    )
    return ", ".join(named) or "(all records)"


def frequency_words(frequency: float, value: Any) -> str:
    """The largest frequency of a group with the value behind it."""
    return f"{frequency:.2f} ({'missing' if value is None else shortened(str(value))})"


def listed(words: Sequence[str], last: str = "and") -> str:
    """a, b and c; or a, b or c."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} {last} {words[-1]}"


def share_words(part: int, whole: int) -> str:
    """A number of records with their share, which is never rounded to none or all."""
    share = part / max(whole, 1)
    if 0 < share < 0.0005:
        percent = "under 0.1%"
    elif 0.995 <= share < 1:
        percent = "over 99%"
    else:
        percent = f"{share:.0%}" if share >= 0.0995 or part == 0 else f"{share:.1%}"
    return f"{part:,} of {whole:,} records ({percent})"


def kept_words(kept: int, dropped: int, noun: str = "") -> str:
    """How many records there are and, if some were dropped, out of how many."""
    if not dropped:
        return f"{kept:,}{noun}"
    are = "is" if dropped == 1 else "are"
    without = f"{dropped:,} without a sensitive value {are} left out"
    return f"{kept:,} of {kept + dropped:,}{noun}; {without}"


def dropped_note(kept: int, dropped: int) -> tuple[str, ...]:
    """The same as a note for the publisher; nothing if none was dropped."""
    return (f"{kept_words(kept, dropped, ' records')}.",) if dropped else ()

"""The sorted values of an attribute, possibly many millions."""

from __future__ import annotations

import bisect
import datetime as dt
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, overload

import pyarrow as pa
import pyarrow.compute as pc

from reconpriv.ask.text_codes import PATTERN
from reconpriv.columns.kinds import in_utc
from reconpriv.columns.schema import Value

_FEW = 1 << 17  # up to this many values are looked up in a dictionary, more by bisection


@dataclass(frozen=True)
class Values(Sequence[Value]):
    """Sorted Arrow values, a missing one last, as a sequence of Python objects."""

    array: pa.Array
    _positions: dict[Value, int] = field(default_factory=dict, repr=False, compare=False)

    def __len__(self) -> int:
        return len(self.array)

    @overload
    def __getitem__(self, index: int) -> Value: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Value]: ...
    def __getitem__(self, index: Any) -> Any:
        """One value, or a list of several."""
        found = self.array[index]
        if isinstance(index, slice):
            return found.to_pylist()
        value = found.as_py()
        # One NaN is not equal to another, but it is equal to itself where labels are looked up.
        return math.nan if isinstance(value, float) and math.isnan(value) else value

    def __iter__(self) -> Iterator[Value]:
        """All of them, in batches."""
        for first in range(0, len(self.array), _FEW):
            yield from self.array.slice(first, _FEW).to_pylist()

    def __contains__(self, value: object) -> bool:
        return self.position(value) >= 0

    @cached_property
    def numeric_text(self) -> bool:
        """True if these are text codes that all look like numbers."""
        return bool(0 < len(self.codes) == len(self) - self.array.null_count)

    @cached_property
    def codes(self) -> Values:
        """Those that are text codes and look like numbers."""
        present = self.array.drop_null()
        if not (pa.types.is_string(present.type) or pa.types.is_large_string(present.type)):
            return Values(present.slice(0, 0))
        return Values(present.filter(pc.match_substring_regex(present, f"^(?:{PATTERN})$")))

    def position(self, value: Value) -> int:
        """The position of a value, or -1 if it does not occur."""
        if isinstance(value, dt.datetime):
            zoned = dt.UTC if self.array.type.tz is not None else None
            value = in_utc(value).replace(tzinfo=zoned)
        if len(self) <= _FEW:
            if not self._positions:
                self._positions.update({one: i for i, one in enumerate(self)})
            return self._positions.get(value, -1)
        present = len(self) - self.array.null_count
        if value is None:
            return present if self.array.null_count else -1
        place = bisect.bisect_left(self, value, hi=present)
        return place if place < present and self[place] == value else -1

"""The position of a value among those of a column."""

import pyarrow as pa
import pytest

from reconpriv.ask import values


@pytest.mark.parametrize("few", [2, 100])
def test_values_are_found_by_dictionary_and_by_bisection(few, monkeypatch):
    monkeypatch.setattr(values, "_FEW", few)
    some = values.Values(pa.array(["", "a", "b", "é", None]))
    assert [some.position(one) for one in ["", "a", "b", "é", None, "c", "zz"]] == [
        0, 1, 2, 3, 4, -1, -1,
    ]  # fmt: skip
    assert "b" in some
    assert "x" not in some
    assert list(some) == ["", "a", "b", "é", None]
    assert values.Values(pa.array([1, 2])).position(None) == -1

"""The same key gives the same bytes as the releases in tests/data/before."""

import pytest

import before
import reconpriv as rp
from before import CASES, FLU, HOME, check_same, publish


@pytest.mark.parametrize("name", sorted(CASES))
def test_the_same_key_gives_the_same_bytes_as_before(name, tmp_path):
    publish(name, tmp_path / "now")
    check_same(HOME / name, tmp_path / "now")


def test_the_comparison_notices_another_key(tmp_path, monkeypatch):
    monkeypatch.setattr(before, "KEY", rp.Key(bytes(range(2, 34))))
    publish("octave-csv", tmp_path / "now")
    with pytest.raises(AssertionError):
        check_same(HOME / "octave-csv", tmp_path / "now")


@pytest.mark.parametrize("name", sorted(CASES))
def test_a_release_of_before_still_opens_and_answers(name):
    found = rp.open(HOME / name).count(disease="flu", confidence=0.999)
    assert found.low <= FLU <= found.high

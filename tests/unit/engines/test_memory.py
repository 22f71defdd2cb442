"""Sizes of memory as text."""

from __future__ import annotations

import pytest

from reconpriv.engines.base import memory_bytes


@pytest.mark.parametrize(
    ("text", "size"), [("2GB", 2 * 10**9), ("500 MiB", 500 * 2**20), ("1.5kb", 1500), ("10", 10)]
)
def test_sizes_of_memory(text: str, size: int) -> None:
    assert memory_bytes(text) == size

"""Evaluators share a database: each sees its own rows, and none changes it for the others."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest

from reconpriv.engines.local import Evaluator
from reconpriv.errors import InputError


def test_each_has_its_own_rows_also_after_another_was_closed() -> None:
    one, two = Evaluator(pa.table({"x": [1, 2, 3]})), Evaluator(pa.table({"x": ["a", "b"]}))
    assert two.mask("x = 'a'").tolist() == [True, False]
    assert one.mask("x > 1").tolist() == [False, True, True]
    one.close()
    assert two.mask("x = 'b'").tolist() == [False, True]
    two.close()


def test_threads_do_not_see_each_others_rows() -> None:
    def right(number: int) -> bool:
        mine = Evaluator(pa.table({"x": [number, number + 1]}))
        found = [mine.mask(f"x = {number}").tolist() for _ in range(5)]
        mine.close()
        return found == [[True, False]] * 5

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(right, range(40)))


@pytest.mark.parametrize("more", ["SET errors_as_json = false", "SET threads = 2", "ATTACH 'x.db'"])
def test_no_condition_changes_the_database(more: str) -> None:
    one = Evaluator(pa.table({"x": [1]}))
    with pytest.raises(InputError, match="cannot be evaluated"):
        one.mask(f"x = 1; {more}")
    one.close()

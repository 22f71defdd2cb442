"""How many threads may be asked for."""

from __future__ import annotations

import pytest

from reconpriv.engines.base import check_threads
from reconpriv.errors import InputError


@pytest.mark.parametrize("threads", [0, -1, 1_025, 10**6, 10**20])
def test_a_number_of_threads_that_no_machine_has_is_refused(cli, threads) -> None:
    with pytest.raises(InputError, match="must be 1 to 1,024; got"):
        check_threads(threads)
    done = cli("audit", "example:adult", "-s", "sex", "--public", "race", f"--threads={threads}")
    assert done.code == 2 and "must be 1 to 1,024" in done.err


@pytest.mark.parametrize("threads", [None, 1, 1_024])
def test_others_are_not(threads) -> None:
    check_threads(threads)

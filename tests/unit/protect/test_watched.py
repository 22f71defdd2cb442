"""What tasks tell those who watch a publication."""

from types import SimpleNamespace

import pytest

import reconpriv as rp
from reconpriv.errors import OutputError
from reconpriv.protect.watched import Watched


def watched_with(key):
    return Watched(SimpleNamespace(key=key), ())


def test_what_a_task_tells_is_read_with_the_same_key_alone():
    told = watched_with(rp.Key.test()).told()
    watched_with(rp.Key.test()).join(told)
    other = told[:-1] + bytes([told[-1] ^ 1])
    for key, changed in [(rp.Key.generate(), told), (rp.Key.test(), other)]:
        with pytest.raises(OutputError, match="was changed before it was read"):
            watched_with(key).join(changed)

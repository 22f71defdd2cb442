"""Tables that stay open, for tests that publish the same one many times."""

from typing import Any

import reconpriv as rp

_known: dict[tuple[int, str], tuple[rp.Table, Any]] = {}


def opened(table: Any, **roles: Any) -> rp.Table:
    """The table with these roles, opened once."""
    name = id(table), repr(roles)
    if name not in _known:
        # The source is kept as well, so that no other one gets its id.
        _known[name] = rp.read(table, **roles), table
    return _known[name][0]


def close_all() -> None:
    """Close every table."""
    for one, _ in _known.values():
        one.close()
    _known.clear()

"""Only the command that was asked for is built."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy

import typer
from typer.main import get_command_name


def with_asked_command(app: typer.Typer, words: Sequence[str]) -> typer.Typer:
    """The app with the command that the first word names; the whole app if it names none.

    Typer would evaluate the annotations of every command at each start, which takes longer than
    an audit of a small table. Help and completion do need them all.
    """
    asked = [
        one
        for one in app.registered_commands
        if one.callback is not None
        and (one.name or get_command_name(one.callback.__name__)) in words[:1]
    ]
    if not asked:
        return app
    small = copy(app)
    small.registered_commands = asked
    return small

"""Options that are given more than once: a list adds up, and nothing else may be repeated.

The parser keeps the last value of an option that takes one, and drops the others without a word.
"""

from __future__ import annotations

from copy import copy
from typing import Any

from typer.core import TyperOption

from reconpriv.cli.process.output import reported
from reconpriv.errors import PolicyError
from reconpriv.messages.phrases import listed
from reconpriv.messages.redaction import without_folders, without_secrets


def refuse_repeated(command: Any, ctx: Any, words: list[str]) -> None:
    """Refuse the words of a command if an option that takes one value has several.

    A switch may be repeated, but not together with its opposite.
    """
    if ctx.resilient_parsing:  # the shell completes a line that need not be right yet
        return
    parser = command.make_parser(ctx)
    options = [one for one in command.get_params(ctx) if isinstance(one, TyperOption)]
    for option in options:
        collecting = copy(option)
        collecting.multiple = True
        collecting.add_to_parser(parser, ctx)  # in place of the option itself
    given = parser.parse_args(list(words))[0]
    for option in options:
        values = given.get(option.name, [])
        if len(set(values) if option.is_flag else values) > 1 and not option.multiple:
            with reported():
                raise _repeated(option, values)


def _repeated(option: Any, values: list[Any]) -> PolicyError:
    name = max(option.opts, key=len)
    if option.is_flag:
        return PolicyError(f"Give either {name} or {option.secondary_opts[0]}, not both.")
    often = "twice" if len(values) == 2 else f"{len(values)} times"
    shown = listed([repr(without_secrets(without_folders(v, [v]), [v])) for v in values])
    return PolicyError(f"{name} is given {often}: {shown}.", hint="It takes one value.")

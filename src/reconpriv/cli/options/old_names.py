"""Names that options had before: accepted, left out of the help, and announced when used."""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy
from typing import Any

from reconpriv.errors import PolicyError

OLD_OPTIONS = {"--tolerance": "--epsilon", "--doubt": "--delta", "--sampling": "--sample-size"}


def old_name_of(option: Any) -> str:
    """What a parser calls the values that came by the old name of an option."""
    return f"old name of {option.name}"


def with_old_names(parser: Any, options: Iterable[Any], ctx: Any, *, apart: bool = False) -> Any:
    """A parser that also takes options by their old names; ``apart`` lists what came by these."""
    for option in options:
        for new in OLD_OPTIONS.keys() & set(option.opts):
            old = copy(option)
            old.opts, old.secondary_opts = [OLD_OPTIONS[new]], []
            if apart:
                old.name, old.multiple = old_name_of(option), True
            old.add_to_parser(parser, ctx)
    return parser


def used_old_names(options: Iterable[Any], given: dict[str, Any]) -> list[str]:
    """A sentence for each old name that was used; an error if the new one is there, too."""
    found = []
    for option in options:
        if not given.get(old_name_of(option)):
            continue
        new = next(name for name in option.opts if name in OLD_OPTIONS)
        if given.get(option.name):
            raise PolicyError(
                f"{OLD_OPTIONS[new]} is the old name of {new}, and both are given.",
                hint=f"Give {new} alone.",
            )
        found.append(f"{OLD_OPTIONS[new]} is now called {new}; the old name is accepted for now.")
    return found

"""How the words of a command line are parsed: nothing is dropped, and no secret is repeated."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from pathlib import Path
from typing import Any

from typer.core import TyperCommand, TyperGroup, TyperOption

from reconpriv.cli.options.choices import fill_in
from reconpriv.cli.options.old_names import old_name_of, used_old_names, with_old_names
from reconpriv.cli.process.output import TYPED, reported, say_all
from reconpriv.errors import PolicyError
from reconpriv.messages.one_line import sentence
from reconpriv.messages.phrases import listed
from reconpriv.messages.redaction import without_folders, without_secrets

# What stands for a path in the usage of a command.
_PATHS = ("DIR", "FILE", "KEY", "OUT", "RELEASE", "TABLE")


class Command(TyperCommand):
    """A command whose help may name what is registered, whose options are all heard.

    Its paths are not empty: an empty one would mean the current folder.
    """

    def get_params(self, ctx: Any) -> list[Any]:
        """All options and arguments, ready for display."""
        fill_in(self.params)
        return super().get_params(ctx)

    def make_parser(self, ctx: Any) -> Any:
        """A parser that also takes the old names of options."""
        return with_old_names(super().make_parser(ctx), self.params, ctx)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the words of the command."""
        any_empty = "" in args
        _refuse_repeated(self, ctx, args)
        rest = super().parse_args(ctx, args)
        for one in self.params if any_empty else ():
            if ctx.params.get(one.name) in ("", Path()) and one.metavar in _PATHS:
                with reported():
                    name = one.opts[0] if one.opts[0].startswith("-") else one.metavar
                    raise PolicyError(f"{name} is empty.", hint="Is a variable not set?")
        return rest


def _refuse_repeated(command: Any, ctx: Any, words: list[str]) -> None:
    """Refuse the words of a command if an option that takes one value has several.

    The parser would keep the last one and drop the others without a word. A switch may be repeated,
    but not together with its opposite.
    """
    if ctx.resilient_parsing:  # the shell completes a line that need not be right yet
        return
    parser = command.make_parser(ctx)
    options = [one for one in command.get_params(ctx) if isinstance(one, TyperOption)]
    for option in options:
        collecting = copy(option)
        collecting.multiple = True
        collecting.add_to_parser(parser, ctx)  # in place of the option itself
    given = with_old_names(parser, options, ctx, apart=True).parse_args(list(words))[0]
    try:
        notes = used_old_names(options, given)
        for option in options:
            values = given.get(option.name, []) + given.get(old_name_of(option), [])
            if len(set(values) if option.is_flag else values) > 1 and not option.multiple:
                raise _repeated(option, values)
    except PolicyError:
        with reported():  # not around the check itself: after it, signals are ignored
            raise
    say_all("note", notes)


def _repeated(option: Any, values: list[Any]) -> PolicyError:
    name = max(option.opts, key=len)
    if option.is_flag:
        return PolicyError(f"Give either {name} or {option.secondary_opts[0]}, not both.")
    often = "twice" if len(values) == 2 else f"{len(values)} times"
    shown = listed([repr(without_secrets(without_folders(v, [v]), [v])) for v in values])
    return PolicyError(f"{name} is given {often}: {shown}.", hint="It takes one value.")


class Commands(TyperGroup):
    """Typer quotes the words it does not understand, which may include a URL."""

    def make_context(self, info_name: str | None, args: list[str], *more: Any, **extra: Any) -> Any:
        """Parse the words before the command."""
        self._words = list(args)
        TYPED[:] = self._words
        with self._quoted_safely():
            return super().make_context(info_name, args, *more, **extra)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the options before the command."""
        _refuse_repeated(self, ctx, args)
        return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Parse the words of the command and run it."""
        with self._quoted_safely():
            return super().invoke(ctx)

    @contextmanager
    def _quoted_safely(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            # Typer has no public name for its usage errors; they all have a message.
            message = getattr(error, "message", None)
            if isinstance(message, str):
                safe = sentence(without_secrets(without_folders(message, self._words), self._words))
                error.message = safe  # type: ignore[attr-defined]
            raise

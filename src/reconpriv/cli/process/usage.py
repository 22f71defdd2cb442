"""The group of all commands: usage errors do not repeat a password, a key or a folder."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from typer.core import TyperGroup

from reconpriv.cli.options.repeated import refuse_repeated
from reconpriv.cli.process.typed import TYPED
from reconpriv.messages.one_line import sentence
from reconpriv.messages.redaction import without_folders, without_secrets


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
        refuse_repeated(self, ctx, args)
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

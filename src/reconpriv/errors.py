"""Errors, each in one sentence: what is wrong, what was given, and a hint.

Every error is a :class:`ReconprivError` and also the builtin a Python user would expect.
"""

from __future__ import annotations

import sys
import warnings
from typing import Any

from reconpriv.messages.one_line import sentence
from reconpriv.messages.redaction import without_secrets
from reconpriv.messages.remedies import Advice, Remedy, Words, worded


class ReconprivError(Exception):
    """Base of every error that reconpriv raises on purpose."""

    def __init__(self, what: str, *, hint: str | Remedy = "") -> None:
        """Join the sentence and its hint; programs can read each separately."""
        # A login or a key given in the wrong place must not be repeated in a message.
        self.what = sentence(without_secrets(what))
        self.advice = Advice(hint)
        self.hint = sentence(without_secrets(self.advice))
        super().__init__(f"{self.what} {self.hint}".strip())

    def worded(self, words: Words) -> str:
        """The whole message in a surface's words; ``str`` uses Python's."""
        hint = sentence(without_secrets(worded(self.advice, words)))
        return f"{self.what} {hint}".strip()


class InputError(ReconprivError, ValueError):
    """The table, a column or a value cannot be used as it is."""


class RolesError(InputError):
    """Some columns have no role yet; ``proposals`` has one for each."""

    def __init__(self, what: str, proposals: Any, *, hint: str | Remedy = "") -> None:
        """Add the proposals, a line for each column, to what is shown."""
        super().__init__(what, hint=hint)
        self.proposals = proposals

    def __str__(self) -> str:
        """The sentence, the proposals and the arguments that accept them."""
        lines = "".join(f"\n  {one}" for one in self.proposals.lines())
        return f"{self.what}{lines}\nTo accept this, add: {self.proposals.arguments()}"


class PolicyError(ReconprivError, ValueError):
    """A parameter is out of range, or two of them do not go together."""


class MissingFileError(ReconprivError, FileNotFoundError):
    """There is no such file."""


class OutputError(ReconprivError, OSError):
    """The release could not be written; nothing half-written is left."""


class KeyFileError(ReconprivError, ValueError):
    """The secret key is missing, malformed or exposed. Never quotes the key."""


class LedgerError(ReconprivError, ValueError):
    """The ledger of a key is torn, edited or exposed, or forbids what was asked for."""


class SecondSampleError(LedgerError):
    """The ledger knows this table with other settings, and nobody said that this is meant."""


class RoleChangeError(LedgerError):
    """The ledger knows a column in another role, and nobody said that this is meant."""


class UnattainableError(ReconprivError, ValueError):
    """Some groups cannot be made private by any number of trials."""


class ReleaseError(ReconprivError, ValueError):
    """The folder is not a release, or its files do not match its manifest."""


class ReconprivWarning(UserWarning):
    """Something a publisher should look at before a release goes out."""


def warn_caller(note: str) -> None:
    """Warn the code that called into this package, however deep inside the reason was found."""
    frame, level = sys._getframe(1), 2
    package = __name__.split(".")[0]
    while frame.f_back and frame.f_globals.get("__name__", "").split(".")[0] == package:
        frame, level = frame.f_back, level + 1
    warnings.warn(note, ReconprivWarning, stacklevel=level)

"""How the command line words a remedy: the options that a user would type."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

from reconpriv.messages.commands import assigned, columns_option
from reconpriv.messages.remedies import Control, Remedy, worded

if TYPE_CHECKING:
    from reconpriv.proposals import Proposals

# Every other option has the same name as the argument in Python.
_OTHER_NAMES = {Control.DATABASE: "--to"}


def option_words(remedy: Remedy) -> str:
    """A remedy as an option, with its value if that is known."""
    control, value = remedy.control, remedy.value
    commands = {
        Control.KEY: f"reconpriv keygen {value}",
        Control.LEDGER: f"reconpriv ledger verify {shlex.quote(f'{value}')}",
    }
    if control in commands:
        return remedy.by(commands[control])
    if control is Control.WITHDRAW and isinstance(value, tuple):
        return remedy.by(f"reconpriv ledger withdraw {shlex.join(value)} --why REASON")
    option = _OTHER_NAMES.get(control, f"--{control.replace('_', '-')}")
    if value is None or value is True:
        return remedy.by(option)
    if not isinstance(value, tuple):
        return remedy.by(f"{option} {shlex.quote(f'{value}')}")
    if control is Control.BIN:
        return remedy.by(f"{option} {_bins(*value)}")
    return remedy.by(columns_option(option, value))


def proposal_options(proposals: Proposals) -> list[str]:
    """The options that give columns the proposed roles."""
    found = [columns_option("--public", proposals.named("public"))]
    found += [columns_option("--drop", names) for names in [proposals.named("drop")] if names]
    found += [f"--person {shlex.quote(name)}" for name in proposals.named("person")]
    return found + [f"--bin {_bins(name, bins)}" for name, bins in proposals.bins.items()]


def as_options(value: Any) -> Any:
    """A value for JSON, with every message in it worded for the command line."""
    if isinstance(value, dict):
        return {name: as_options(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [as_options(one) for one in value]
    return worded(value, option_words) if isinstance(value, str) else value


def _bins(column: str, *borders: str) -> str:
    """A column with its bin borders, as a shell takes it."""
    return shlex.quote(assigned(column, ",".join(borders)))

"""The command that reads the ledger of a key, and takes back what nobody got."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from reconpriv.cli.options import shared as opt
from reconpriv.cli.options.declared import argument, option
from reconpriv.cli.process.output import give, show_json
from reconpriv.cli.process.streams import echo
from reconpriv.errors import PolicyError

if TYPE_CHECKING:
    from reconpriv.ledger.ledger import Ledger

ACTIONS = ("show", "verify", "repair", "withdraw")
EXIT_NOT_SOUND = 1


def ledger(
    action: str = argument(
        "|".join(ACTIONS),
        "Show the publications; check every line and the count of trials; remove a last line that"
        " lacks its end and a count that is not sound; or withdraw a release that was never handed"
        " out.",
    ),
    key: Path = argument("KEY", "The key file beside the ledger."),
    line: int | None = argument(
        "LINE", "With withdraw: the line of the publication, as show numbers it.", None
    ),
    why: str | None = option("--why REASON", "With withdraw: why nobody got the release."),
    json: bool = opt.JSON,
) -> None:
    """Show or check what was published with a key: the ledger beside the key file.

    verify exits 0 if every line is as it was written and the count of trials goes
    with them, 1 if not. show refuses a ledger that fails verification. withdraw
    records that a release was never handed out, so that it no longer counts; its
    reason is kept in the ledger as you type it.
    """
    sound = True
    _check(action, key, line, why)
    from reconpriv.ledger.ledger import Ledger

    found = Ledger(key)
    match action:
        case "show":
            give(found, json=json)
        case "withdraw":
            assert line is not None
            assert why is not None
            done = found.withdraw(line, why=why)
            show_json({"withdrawn": line, "done": done}) if json else echo(" ".join(done))
        case _:
            sound = _verify(found, key, repair=action == "repair", json=json)
    if not sound:
        raise typer.Exit(EXIT_NOT_SOUND)


def _check(action: str, key: Path, line: int | None, why: str | None) -> None:
    """Refuse an action that there is not, and what does not go with it."""
    if action not in ACTIONS:
        raise PolicyError(
            f"A ledger cannot be asked to {action!r}.", hint=f"Choose one of: {', '.join(ACTIONS)}."
        )
    if action != "withdraw" and (line is not None or why is not None):
        raise PolicyError(f"Only withdraw takes a line and a reason, not {action}.")
    if action == "withdraw" and (line is None or why is None):
        file = shlex.quote(str(key))
        raise PolicyError(
            "A withdrawal needs the line of a publication and a reason.",
            hint=f"See the lines with: reconpriv ledger show {file}; then:"
            f" reconpriv ledger withdraw {file} LINE --why REASON.",
        )


def _verify(found: Ledger, key: Path, *, repair: bool, json: bool) -> bool:
    """Say whether a ledger is sound, perhaps after a repair."""
    repaired = found.repair() if repair else ()
    check = found.check()
    if json:
        show_json(check.as_dict() | ({"repaired": bool(repaired)} if repair else {}))
        return check.sound
    if repair:
        echo(" ".join(repaired) or "There was nothing to repair.")
    echo(check.verdict)
    if check.repairable:
        echo(f"To repair it: reconpriv ledger repair {shlex.quote(str(key))}")
    return check.sound

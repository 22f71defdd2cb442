"""A publish command as text, ready to paste into a shell."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from reconpriv.messages.nearest import in_list, quoted

if TYPE_CHECKING:
    from reconpriv.policy.margin_settings import Margins
    from reconpriv.policy.policy import Policy
    from reconpriv.policy.protection import Protection

OUT = "release"
_TEXT_WIDTH = 78

# An option with its value, or a switch with None.
Part = tuple[str, str | None]


def publish_command(source: str, parts: Iterable[Part], *, variable: bool = False) -> str:
    """The command that publishes a table with these options, over as many lines as it takes.

    With ``variable`` the source is the name of an environment variable that holds it.
    """
    table = f'"${source}"' if variable else shlex.quote(source)
    return folded([f"reconpriv publish {table} {OUT}/", *map(written, parts)])


GROUPS_FILE = "groups.csv"
FileOf = Callable[[Mapping[str, str]], str]
"""The name of a file that holds these groups."""


def policy_parts(policy: Policy, file_of: FileOf = lambda _: GROUPS_FILE) -> list[Part]:
    """The options that stand for a policy; a user's own bound has none.

    Whatever a preset decides is there, so that the command means the same with any default.
    ``file_of`` names the files of the groups that protection pools over.
    """
    plain = policy.as_dict()
    parts: list[Part] = [
        ("-p", repr(plain["retention"])),
        ("-e", repr(plain["tolerance"])),
        ("-d", repr(plain["doubt"])),
        ("--bound", plain["bound"]),
        ("--sampling", plain["sampling"]),
        ("--exposed-above", repr(policy.exposed_above or 0)),
    ]
    if policy.harmless:
        values = ("NULL" if value is None else str(value) for value in policy.harmless)
        parts.append(("--harmless", listed(values)))
    if plain["unattainable"] != "refuse":
        parts.append(("--unattainable", plain["unattainable"]))
    parts += protect_parts(policy.wanted_protection, file_of)
    return parts + margin_parts(policy.wanted_margins)


def protect_parts(protection: Protection, file_of: FileOf) -> list[Part]:
    """The options that stand for protection groups."""

    def how(said: Any) -> str:
        if isinstance(said, Mapping):
            return file_of(said)
        return ",".join(map(str, said)) if isinstance(said, list) else str(said)

    return [("--protect", assigned(name, how(said))) for name, said in protection.as_dict().items()]


def margin_parts(margins: Margins) -> list[Part]:
    """The options that stand for margins; defaults are left out."""
    if not margins.rho:
        return [("--margins", "0")]
    epsilon = margins.round_epsilon
    parts: list[Part] = [
        ("--margins-rho", repr(margins.rho)) if epsilon is None else ("--margins", repr(epsilon))
    ]
    if not margins.usual_delta:
        parts.append(("--margins-delta", repr(margins.delta)))
    if margins.tables is not None:
        tables = ("+".join(in_list(name, "+") for name in names) for names in margins.tables)
        parts.append(("--margin-tables", ",".join(tables)))
    return parts


def listed(names: Iterable[str]) -> str:
    """Names separated by commas, quoted if they must be."""
    return ",".join(map(in_list, names))


def assigned(name: str, said: str) -> str:
    """COLUMN=WHAT, with the column quoted if it must be."""
    plain = name == name.strip() and not set(name) & {"=", '"'}
    return f"{name if plain else quoted(name)}={said}"


def columns_option(option: str, names: Iterable[str]) -> str:
    """An option that takes columns, as a shell takes it."""
    return written((option, listed(names)))


def folded(words: Sequence[str]) -> str:
    """Words on lines of readable length, with a continuation mark on all but the last."""
    lines = [words[0]]
    for one in words[1:]:
        if len(lines[-1]) + len(one) + 1 <= _TEXT_WIDTH:
            lines[-1] += f" {one}"
        else:
            lines.append(f"  {one}")
    return " \\\n".join(lines) + "\n"


def written(part: Part) -> str:
    """An option as a shell takes it."""
    option, value = part
    return option if value is None else f"{option} {shlex.quote(value)}"

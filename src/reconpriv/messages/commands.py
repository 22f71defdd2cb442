"""A publish command as text, ready to paste into a shell."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reconpriv.policy import Policy

OUT = "release"
_TEXT_WIDTH = 78
_MARGINS_DELTA = 1e-9  # of a publication, unless another is given

# An option with its value, or a switch with None.
Part = tuple[str, str | None]


def publish_command(source: str, parts: Iterable[Part], *, variable: bool = False) -> str:
    """The command that publishes a table with these options, over as many lines as it takes.

    With ``variable`` the source is the name of an environment variable that holds it.
    """
    table = f'"${source}"' if variable else shlex.quote(source)
    return _folded([f"reconpriv publish {table} {OUT}/", *map(_written, parts)])


def policy_parts(policy: Policy) -> list[Part]:
    """The options that stand for a policy; a user's own bound has none."""
    plain = policy.as_dict()
    parts: list[Part] = [
        ("-p", repr(plain["retention"])),
        ("-e", repr(plain["epsilon"])),
        ("-d", repr(plain["delta"])),
        ("--bound", plain["bound"]),
        ("--sample-size", plain["sample_size"]),
    ]
    if plain["unattainable"] != "refuse":
        parts.append(("--unattainable", plain["unattainable"]))
    return [*parts, *_margin_parts(policy)]


def _margin_parts(policy: Policy) -> list[Part]:
    margins = policy.wanted_margins
    if margins is None:
        return []
    epsilon, plain = margins.round_epsilon, margins.as_dict()
    parts: list[Part] = [
        ("--margins-rho", repr(margins.rho)) if epsilon is None else ("--margins", f"{epsilon:g}")
    ]
    if plain["delta"] != _MARGINS_DELTA:
        parts.append(("--margins-delta", repr(plain["delta"])))
    if plain["tables"] is not None:
        tables = ["+".join(map(_in_tables, names)) for names in plain["tables"]]
        parts.append(("--margin-tables", ",".join(tables)))
    return parts


def listed(names: Iterable[str]) -> str:
    """Names separated by commas, quoted if they must be."""
    return ",".join(map(_in_list, names))


def columns_option(option: str, names: Iterable[str]) -> str:
    """An option that takes columns, as a shell takes it."""
    return _written((option, listed(names)))


def _folded(words: Sequence[str]) -> str:
    """Words on lines of readable length, with a continuation mark on all but the last."""
    lines = [words[0]]
    for one in words[1:]:
        if len(lines[-1]) + len(one) + 1 <= _TEXT_WIDTH:
            lines[-1] += f" {one}"
        else:
            lines.append(f"  {one}")
    return " \\\n".join(lines) + "\n"


def _written(part: Part) -> str:
    option, value = part
    return option if value is None else f"{option} {shlex.quote(value)}"


def _in_tables(name: str) -> str:
    return f'"{name}"' if "+" in name and _in_list(name) == name else _in_list(name)


def _in_list(name: str) -> str:
    plain = name == name.strip() and not set(name) & {",", '"'}
    return name if plain else '"' + name.replace('"', '""') + '"'

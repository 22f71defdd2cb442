"""A publish command as text, ready to paste into a shell."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reconpriv.core.margins import Margins
    from reconpriv.policy import Policy

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


def policy_parts(policy: Policy) -> list[Part]:
    """The options that stand for a policy; a user's own bound has none.

    Whatever a preset decides is there, so that the command means the same with any default.
    """
    plain = policy.as_dict()
    parts: list[Part] = [
        ("-p", repr(plain["retention"])),
        ("-e", repr(plain["epsilon"])),
        ("-d", repr(plain["delta"])),
        ("--bound", plain["bound"]),
        ("--sample-size", plain["sample_size"]),
        ("--exposed-above", repr(policy.exposed_above or 0)),
    ]
    if policy.harmless:
        values = ("NULL" if value is None else str(value) for value in policy.harmless)
        parts.append(("--harmless", listed(values)))
    if policy.news_only:
        parts.append(("--news-only", None))
    if plain["unattainable"] != "refuse":
        parts.append(("--unattainable", plain["unattainable"]))
    return parts + margin_parts(policy.wanted_margins)


def margin_parts(margins: Margins | None) -> list[Part]:
    """The options that stand for margins; defaults are left out."""
    if margins is None:
        return [("--margins", "0")]
    epsilon = margins.round_epsilon
    parts: list[Part] = [
        ("--margins-rho", repr(margins.rho)) if epsilon is None else ("--margins", repr(epsilon))
    ]
    if not margins.usual_delta:
        parts.append(("--margins-delta", repr(margins.delta)))
    if margins.tables is not None:
        tables = ("+".join(_in_list(name, "+") for name in names) for names in margins.tables)
        parts.append(("--margin-tables", ",".join(tables)))
    return parts


def listed(names: Iterable[str]) -> str:
    """Names separated by commas, quoted if they must be."""
    return ",".join(map(_in_list, names))


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


def _in_list(name: str, more: str = "") -> str:
    plain = name == name.strip() and not set(name) & {",", '"', *more}
    return name if plain else '"' + name.replace('"', '""') + '"'

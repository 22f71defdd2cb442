"""Write docs/reference/cli.md from the commands themselves; a test fails when it is out of date."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import typer.main

from reconpriv.cli.app import app
from reconpriv.cli.options.choices import fill_in
from wrap_markdown import wrapped

PAGE = Path(__file__).resolve().parents[1] / "docs" / "reference" / "cli.md"
HEAD = """# Commands

<!-- Written by tools/cli_reference.py. -->

`reconpriv COMMAND --help` says the same on the terminal. `TABLE`, `-s` and the options of the
groups *Table* and *Policy* mean the same in every command. Exit codes:
[scripts](../how-to/scripts.md).
"""


def reference() -> str:
    """The whole page."""
    root = typer.main.get_command(app)
    commands: dict[str, Any] = root.commands  # type: ignore[attr-defined]
    for command in commands.values():
        fill_in(command.params)
    listed = [
        f"| [`{name}`](#reconpriv-{name}) | {_first(command.help)} |"
        for name, command in commands.items()
    ]
    parts = [HEAD, "| command | what it does |\n|---|---|\n" + "\n".join(listed) + "\n"]
    parts += [_section(f"reconpriv {name}", command) for name, command in commands.items()]
    return wrapped("\n".join(parts))


def _section(name: str, command: Any) -> str:
    arguments = [p for p in command.params if not p.opts[0].startswith("-")]
    options = [p for p in command.params if p.opts[0].startswith("-")]
    line = " ".join([name, *("[OPTIONS]" for _ in options[:1]), *map(_placeholder, arguments)])
    parts = [f"## {name}\n", f"```text\n{line}\n```\n", _plain(command.help) + "\n"]
    if example := _plain(command.epilog).removeprefix("Example").strip():
        parts.append(f"Example:\n\n```text\n{example}\n```\n")
    if arguments:
        rows = [f"| `{_placeholder(p).strip('[]')}` | {_plain(p.help)} |" for p in arguments]
        parts.append("| argument | |\n|---|---|\n" + "\n".join(rows) + "\n")
    panels: dict[str, list[Any]] = {}
    for option in options:
        panels.setdefault(getattr(option, "rich_help_panel", None) or "Options", []).append(option)
    for panel, members in panels.items():
        rows = [f"| {_names(p)} | {_described(p)} |" for p in members]
        heading = "option" if panel == "Options" else f"*{panel}*"
        parts.append(f"| {heading} | |\n|---|---|\n" + "\n".join(rows) + "\n")
    return "\n".join(parts)


def _names(option: Any) -> str:
    short_first = sorted([*option.opts, *option.secondary_opts], key=len)
    value = "" if option.is_flag else f" {option.metavar or 'VALUE'}"
    names = ", ".join(f"`{name}`" for name in short_first[:-1])
    last = f"`{short_first[-1]}{value}`".replace("|", "/")
    return f"{names}, {last}" if names else last


def _described(option: Any) -> str:
    text = _plain(option.help)
    if option.required:
        return f"{text} **Required.**"
    if option.is_flag or option.default is None or option.default == ():
        return text
    return f"{text} Default: `{option.default}`."


def _placeholder(argument: Any) -> str:
    name = (argument.metavar or argument.name.upper()).strip("[]").replace("|", "/")
    return name if argument.required else f"[{name}]"


def _first(text: str | None) -> str:
    return _plain(text).split("\n\n")[0]


def _plain(text: str | None) -> str:
    """Remove terminal markup and put each paragraph on one line."""
    unmarked = re.sub(r"\[/?(bold|italic|dim)\]", "", text or "").replace("\b", "")
    paragraphs = re.split(r"\n\s*\n", unmarked.strip())
    return "\n\n".join(" ".join(part.split()) for part in paragraphs)


if __name__ == "__main__":
    PAGE.write_text(reference(), encoding="utf-8")
    sys.stdout.write(f"{PAGE}\n")

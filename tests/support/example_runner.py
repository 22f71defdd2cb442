"""Runs the code blocks of a Markdown page, in order, in one folder.

- ```python blocks share one namespace. A ```text block right below one is what it prints.
- ```console blocks: lines that start with "$ " are commands ("> " continues one), the lines below
  are their output, compared if there are any. ```sh blocks are scripts.
- "…" or "..." in an output stands for anything; white space is ignored.
- What a command prints on standard error may be left out.
- `<!-- not run: reason -->` on the line above a block skips it; `<!-- needs NAME -->` does so where
  there is no such program (in CI it must be there); `<!-- exits 1 -->` says that its commands exit
  with that code.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from reconpriv.cli.app import app

SHELL = ("sh", "bash", "shell")
RUN = ("python", "console", *SHELL)
KNOWN = (*RUN, "text", "json", "sql", "toml", "csv", "yaml", "html", "r")
_OPEN = re.compile(r"^(?P<indent> *)```(?P<language>[^\s`]*)")
_COMMENT = re.compile(r"^\s*<!-- (?P<what>not run: .+|needs \w+|exits \d+) -->\s*$")


@dataclass(frozen=True)
class Block:
    """A code block with the comment above it."""

    language: str
    text: str
    line: int
    note: str = ""
    follows_on: bool = False
    """Whether only blank lines separate it from the block before."""

    @property
    def skipped(self) -> bool:
        return self.note.startswith("not run: ") or self._lacks_program

    @property
    def _lacks_program(self) -> bool:
        needed = self.note.removeprefix("needs ") if self.note.startswith("needs ") else ""
        return bool(needed) and os.environ.get("CI") != "true" and shutil.which(needed) is None

    @property
    def code(self) -> int:
        return int(self.note.removeprefix("exits ")) if self.note.startswith("exits ") else 0


@dataclass
class Runner:
    """The folder and the names of one page."""

    page: Path
    folder: Path
    names: dict[str, Any] = field(default_factory=lambda: {"__name__": "__main__"})

    def run_page(self) -> int:
        """Run every block and compare its output; return how many were run."""
        printed: str | None = None
        done = 0
        for block in blocks(self.page.read_text(encoding="utf-8")):
            if block.language == "text" and block.follows_on and printed is not None:
                self._compare(block, block.text, printed)
            printed = None
            if block.skipped or block.language not in RUN:
                continue
            if block.language == "python":
                printed = self._python(block)
            elif block.language == "console":
                self._console(block)
            else:
                self._bash(block, "set -e\n" + block.text)
            done += 1
        return done

    def _python(self, block: Block) -> str:
        source = "\n" * block.line + block.text  # so a traceback gives the page's own line
        stream = io.StringIO()
        with contextlib.redirect_stdout(stream), contextlib.chdir(self.folder):
            exec(compile(source, str(self.page), "exec"), self.names)
        return stream.getvalue()

    def _console(self, block: Block) -> None:
        steps = list(commands(block.text))
        code = 0
        for (command, shown), (following, _) in zip(steps, [*steps[1:], ("", "")], strict=True):
            asks = command == "echo $?"
            out, err, code = self._command(f"(exit {code}); {command}" if asks else command)
            if shown and not matches(shown, out):  # otherwise a warning was left out
                self._compare(block, shown, err + out)
            if following != "echo $?":
                assert code == block.code, f"{self._at(block)}: {command}\n{err}{out}(exit {code})"

    def _bash(self, block: Block, script: str) -> None:
        out, err, code = self._shell(script)
        assert code == block.code, f"{self._at(block)}: exit {code}\n{err}{out}"

    def _command(self, command: str) -> tuple[str, str, int]:
        """Run a plain reconpriv command in this process, which is quick, and any other in bash."""
        joined = command.replace("\\\n", " ")
        if not joined.startswith("reconpriv ") or _needs_shell(joined):
            return self._shell(command)
        with contextlib.chdir(self.folder):
            result = CliRunner().invoke(app, shlex.split(joined)[1:])
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result.stdout, result.stderr, result.exit_code

    def _shell(self, script: str) -> tuple[str, str, int]:
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        done = subprocess.run(
            ["bash", "-c", script],
            cwd=self.folder,
            env={**os.environ, "PATH": path},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        return done.stdout, done.stderr, done.returncode

    def _compare(self, block: Block, shown: str, printed: str) -> None:
        assert matches(shown, printed), f"{self._at(block)} shows\n{shown}\nbut it is\n{printed}"

    def _at(self, block: Block) -> str:
        return f"{self.page.name}, line {block.line}"


def blocks(text: str) -> Iterator[Block]:
    """The fenced code blocks of a page."""
    lines = text.splitlines()
    i, end = 0, -1
    while i < len(lines):
        opened = _OPEN.match(lines[i])
        if not opened:
            i += 1
            continue
        indent = opened["indent"]
        close = next(j for j in range(i + 1, len(lines)) if lines[j].rstrip() == f"{indent}```")
        comment = _COMMENT.match(lines[i - 1]) if i else None
        yield Block(
            opened["language"],
            "\n".join(line.removeprefix(indent) for line in lines[i + 1 : close]) + "\n",
            i + 1,
            comment["what"] if comment else "",
            end >= 0 and not any(line.strip() for line in lines[end + 1 : i]),
        )
        i, end = close + 1, close


def commands(text: str) -> Iterator[tuple[str, str]]:
    """The commands of a console block, each with the output shown for it."""
    command, shown = "", ""
    for line in text.splitlines():
        if line.startswith("$ "):
            if command:
                yield command, shown.strip()
            command, shown = line[2:], ""
        elif line.startswith("> ") and not shown:
            command += "\n" + line[2:]
        else:
            shown += line + "\n"
    assert command, "a console block has a line that starts with '$ '"
    yield command, shown.strip()


def _needs_shell(command: str) -> bool:
    """Whether it has a pipe, a redirection, a variable or a second command."""
    words = shlex.shlex(command, posix=True, punctuation_chars=True)
    words.whitespace_split = True
    return "$" in command or any(set(word) <= set("();<>|&") for word in words if word)


def matches(shown: str, printed: str) -> bool:
    """Whether an output matches the one shown; … matches anything, white space any white space."""
    parts = re.split(r"…|\.\.\.", " ".join(shown.split()))
    pattern = ".*".join(re.escape(part) for part in parts)
    return re.fullmatch(pattern.strip(), " ".join(printed.split()), flags=re.DOTALL) is not None

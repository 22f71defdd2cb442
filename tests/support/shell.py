"""What a shell offers, as its completion asks for it, and what it makes of a command."""

from __future__ import annotations

import subprocess

from typer.testing import CliRunner

from reconpriv.cli.app import app


def offers(words: str) -> list[str]:
    """What bash offers for the last of the words."""
    environment = {
        "_RECONPRIV_COMPLETE": "complete_bash",
        "COMP_WORDS": words,
        "COMP_CWORD": str(len(words.split(" ")) - 1),
    }
    return CliRunner().invoke(app, [], prog_name="reconpriv", env=environment).stdout.split()


def pasted(command: str) -> list[str]:
    """The words that a shell makes of a command, as bash itself splits them."""
    script = f"set -- {command.strip().removeprefix('reconpriv ')}; printf '%s\\0' \"$@\""
    done = subprocess.run(["bash", "-c", script], check=True, capture_output=True, text=True)
    return done.stdout.split("\0")[:-1]

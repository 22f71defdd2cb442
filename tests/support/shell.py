"""What a shell offers, as its completion asks for it."""

from __future__ import annotations

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

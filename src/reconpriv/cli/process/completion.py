"""What a shell offers for the name of a table."""

from __future__ import annotations

import os
from collections.abc import MutableMapping
from pathlib import Path

from reconpriv.datasets import NAMES

_PREFIX = "example:"
_SPLIT = "_RECONPRIV_SPLIT_WORD"  # set if bash split the word at its colon


def tables(incomplete: str) -> list[str]:
    """The bundled tables that match, and files too; empty leaves completion to the shell."""
    if os.environ.get(_SPLIT):
        return [name for name in NAMES if name.startswith(incomplete)]
    examples = [name for name in (_PREFIX + n for n in NAMES) if name.startswith(incomplete)]
    if not examples:
        return []
    files = sorted(path.name for path in Path().glob(f"{incomplete}*") if path.name[0] != ".")
    return [*examples, *files]


def mend_split_word(environ: MutableMapping[str, str]) -> None:
    """Rejoin ``example:adult``: bash treats a colon as a separate word.

    Bash replaces only the part after the colon, so only that part is completed.
    """
    if environ.get("_RECONPRIV_COMPLETE") != "complete_bash":
        return
    words = environ.get("COMP_WORDS", "").split("\n")
    current = int(environ.get("COMP_CWORD", "0"))
    apart = [_PREFIX[:-1], ":"]
    if words[max(current - 1, 0) : current + 1] == apart:  # the cursor is right after the colon
        first, begun = current - 1, ""
    elif words[max(current - 2, 0) : current] == apart:
        first, begun = current - 2, "".join(words[current : current + 1])
    else:
        return
    environ["COMP_WORDS"] = "\n".join([*words[:first], begun])
    environ["COMP_CWORD"] = str(first)
    environ[_SPLIT] = "1"

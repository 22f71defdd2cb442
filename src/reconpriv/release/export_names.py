"""Names of columns that a statistical program accepts."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

# Letters, and what else a name may hold; and its longest length in bytes.
_RULES = {
    "SPSS": (r"[A-Za-z@][A-Za-z0-9_.$#@]*(?<![._])", 64),
    "Stata": (r"[A-Za-z_][A-Za-z0-9_]*", 32),
    "SAS": (r"[A-Za-z_][A-Za-z0-9_]*", 32),
}
_RESERVED = {
    "SPSS": "all and by eq ge gt le lt ne not or to with",
    "Stata": "_all _b byte _coef _cons double float if in int long _n _N _pi _pred _rc _skip"
    " strL using with _variables",
    "SAS": "_all_ _character_ _n_ _null_ _numeric_ _error_",
}


def file_names(names: Sequence[str], program: str) -> dict[str, str]:
    """A name that the program accepts for each of these, its own if that will do."""
    kept = {name for name in names if _allowed(name, program)}
    taken = {name.lower() for name in kept}
    found = {}
    for name in names:
        new = name if name in kept else _free(_plain(name, program), taken, program)
        taken.add(new.lower())
        found[name] = new
    return found


def _allowed(name: str, program: str) -> bool:
    pattern, longest = _RULES[program]
    reserved = {word.lower() for word in _RESERVED[program].split()}
    numbered = program == "Stata" and re.fullmatch(r"str\d+", name)
    fits = len(name) <= longest and name.lower() not in reserved and not numbered
    return fits and re.fullmatch(pattern, name) is not None


def _plain(name: str, program: str) -> str:
    """The name in letters without accents, digits and underscores."""
    bare = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
    plain = re.sub(r"\W+", "_", bare).strip("_") or "column"
    plain = plain[: _RULES[program][1]].rstrip("_")
    return plain if _allowed(plain, program) else f"v_{plain}"[: _RULES[program][1]].rstrip("_")


def _free(name: str, taken: set[str], program: str) -> str:
    longest, number, found = _RULES[program][1], 1, name
    while found.lower() in taken:
        number += 1
        found = f"{name[: longest - len(str(number)) - 1]}_{number}"
    return found

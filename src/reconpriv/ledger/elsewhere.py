"""What the ledgers of other keys in the same folder know, by hashes that need no key.

They are salted, and of names that every manifest shows anyway. By them a ledger whose key is lost
still tells that it knows a table.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from reconpriv.cells.randomness import new_salt
from reconpriv.columns.schema import Schema
from reconpriv.ledger.entries import WITHDRAWAL
from reconpriv.ledger.file import SUFFIX, Body, unchecked_bodies
from reconpriv.ledger.roles import IN_MANIFESTS, Clash, Role, clashes, folded, roles_of

_MOST_BYTES = 1 << 24


def open_marks(schema: Schema) -> Body:
    """What a line says to those who do not have its key: ``hash`` is the sensitive column."""
    salt = new_salt()
    said: Body = {"salt": salt, "hash": _open_hash(schema.sensitive.name, salt)}
    for name, role in roles_of(schema).items():
        if role in IN_MANIFESTS:
            said.setdefault(role.value, []).append(_open_hash(folded(name), salt))
    return said


def known_elsewhere(own: Path, schema: Schema) -> list[str]:
    """A warning for each other ledger that has this table, or a column of it in another role."""
    found = []
    for path in sorted(own.parent.glob(f"*{SUFFIX}")):
        known = [] if path == own else list(_known(path))
        if any(_open_hash(schema.sensitive.name, one["salt"]) == one["hash"] for one in known):
            found.append(
                f"The ledger {path.name} in the same folder has a table with this sensitive column:"
                " if it is this table, a new key makes a second, independent sample, which can be"
                " averaged with the first."
            )
        changed = dict.fromkeys(clash for one in known for clash in _clashes(schema, one))
        found += [
            f"In the ledger {path.name} in the same folder, {clash.name!r} was {clash.once}, and"
            f" this release makes it {clash.now}: if it is the same column, one release tells what"
            " the other hides."
            for clash in changed
        ]
    return found


def _clashes(schema: Schema, known: Body) -> tuple[Clash, ...]:
    def mark(role: Role, name: str) -> str:
        return f"{role}:{_open_hash(name, known['salt'])}"

    said = [(Role.SENSITIVE, known["hash"])]
    said += [(role, one) for role in IN_MANIFESTS for one in known.get(role.value, [])]
    return clashes(roles_of(schema), mark, frozenset(f"{role}:{one}" for role, one in said))


def _known(path: Path) -> Iterator[Body]:
    """What the lines of a file say that may be a ledger, without those that were withdrawn."""
    try:
        with path.open("rb") as stream:
            bodies = list(unchecked_bodies(stream.read(_MOST_BYTES)))
    except OSError:
        return
    gone = [body.get("of") for body in bodies if body.get("what") == WITHDRAWAL]
    for body in bodies:
        if _is_sound(body.get("known")) and body.get("line") not in gone:
            yield body["known"]


def _is_sound(known: Any) -> bool:
    """Whether it is as :func:`open_marks` made it; nobody vouches for another key's ledger."""
    if not isinstance(known, dict) or not isinstance(known.get("hash"), str):
        return False
    try:
        _open_hash("", known["salt"])
    except (KeyError, TypeError, ValueError):
        return False
    return all(isinstance(known.get(role.value, []), list) for role in IN_MANIFESTS)


def _open_hash(name: str, salt: str) -> str:
    return hashlib.blake2b(name.encode(), digest_size=16, salt=bytes.fromhex(salt)).hexdigest()

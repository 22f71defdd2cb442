"""Which role a column has in a publication, and which roles it must not have had before.

A column that is public in one release and sensitive in another is told by the first whatever the
second hides. A ledger knows names only by their hashes, so each role that a column does not have is
looked for by the hash that a line would then hold.
"""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from reconpriv.cells.randomness import new_salt
from reconpriv.columns.schema import Schema
from reconpriv.ledger.entries import WITHDRAWAL
from reconpriv.ledger.file import SUFFIX, Body, unchecked_bodies
from reconpriv.messages.one_line import shortened
from reconpriv.messages.phrases import listed


class Role(StrEnum):
    """What a column is for; the value is the word for it, and part of what is hashed."""

    SENSITIVE = "sensitive"
    PUBLIC = "public"
    PERSON = "the person's number"


IN_MANIFESTS = (Role.SENSITIVE, Role.PUBLIC)
"""The roles of columns whose names every release shows."""

Marking = Callable[[Role, str], str]
"""A hash of a role and a name."""


@dataclass(frozen=True)
class Clash:
    """A column that has one role now and had another one before, in a line of a date."""

    name: str
    now: Role
    once: Role
    line: int = 0
    date: str = ""


def roles_of(schema: Schema) -> dict[str, Role]:
    """The role of every column that has one, by name."""
    found = dict.fromkeys((one.name for one in schema.public), Role.PUBLIC)
    if schema.person is not None:
        found[schema.person.name] = Role.PERSON
    return found | {schema.sensitive.name: Role.SENSITIVE}


def folded(name: str) -> str:
    """A name without what is often changed on the way: case, outer blanks, ways to write é."""
    return unicodedata.normalize("NFKC", name).casefold().strip()


def role_marks(roles: dict[str, Role], mark: Marking) -> frozenset[str]:
    """What a line says of these roles."""
    return frozenset(mark(role, folded(name)) for name, role in roles.items())


def clashes(roles: dict[str, Role], mark: Marking, known: frozenset[str]) -> list[Clash]:
    """The columns that a line knows in another role.

    Lines from before roles were recorded have the hashes of unfolded names. A table may have two
    columns whose names differ in blanks only: a role that it gives to one of them is no clash.
    """
    before = known - role_marks(roles, mark)
    return [
        Clash(name, now, once)
        for name, now in roles.items()
        for once in Role
        if once is not now and before & {mark(once, name), mark(once, folded(name))}
    ]


def clash_words(found: Sequence[Clash], *, done: bool = False) -> str:
    """What changes, or has changed, and what comes of it, in a sentence."""
    named = [(repr(shortened(one.name)), one) for one in found]
    once = listed([f"{name} was {one.once} ({one.date[:10]})" for name, one in named])
    now = listed([f"{name} {one.now}" for name, one in named])
    makes, tells = ("makes", "tells") if done else ("would make", "would tell")
    return (
        f"With this key {once}, and this release {makes} {now}: one {tells} what the other hides."
    )


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
        changed = dict.fromkeys(clash for one in known for clash in _open_clashes(schema, one))
        found += [
            f"In the ledger {path.name} in the same folder, {clash.name!r} was {clash.once}, and"
            f" this release makes it {clash.now}: if it is the same column, one release tells what"
            " the other hides."
            for clash in changed
        ]
    return found


def _open_clashes(schema: Schema, known: Body) -> list[Clash]:
    def mark(role: Role, name: str) -> str:
        return f"{role}:{_open_hash(name, known['salt'])}"

    said = {f"{role}:{one}" for role in IN_MANIFESTS for one in known.get(role.value, [])}
    return clashes(roles_of(schema), mark, frozenset(said | {f"{Role.SENSITIVE}:{known['hash']}"}))


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
    """True if it is as :func:`open_marks` made it; nobody vouches for another key's ledger."""
    try:
        _open_hash("", known["salt"])
        lists = [known.get(role.value, []) for role in IN_MANIFESTS]
        return isinstance(known["hash"], str) and all(isinstance(one, list) for one in lists)
    except (AttributeError, KeyError, TypeError, ValueError):
        return False


def _open_hash(name: str, salt: str) -> str:
    return hashlib.blake2b(name.encode(), digest_size=16, salt=bytes.fromhex(salt)).hexdigest()

"""Which role a column has in a publication, and which roles it must not have had before.

A column that is public in one release and sensitive in another is told by the first whatever the
second hides. A ledger knows names only by their hashes, so each role that a column does not have is
looked for by the hash that a line would then hold.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from reconpriv.columns.schema import Schema
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


def clashes(roles: dict[str, Role], mark: Marking, known: frozenset[str]) -> tuple[Clash, ...]:
    """The columns that a line knows in another role.

    Lines from before roles were recorded have the hashes of unfolded names. A table may have two
    columns whose names differ in blanks only: a role that it gives to one of them is no clash.
    """
    before = known - role_marks(roles, mark)
    return tuple(
        Clash(name, now, once)
        for name, now in roles.items()
        for once in Role
        if once is not now and before & {mark(once, name), mark(once, folded(name))}
    )


def clash_words(found: tuple[Clash, ...], *, done: bool = False) -> str:
    """What changes, or has changed, and what comes of it, in a sentence."""
    names = [repr(shortened(one.name)) for one in found]
    pairs = list(zip(names, found, strict=True))
    once = listed([f"{name} was {one.once} ({one.date[:10]})" for name, one in pairs])
    now = listed([f"{name} {one.now}" for name, one in pairs])
    makes, tells = ("makes", "tells") if done else ("would make", "would tell")
    return (
        f"With this key {once}, and this release {makes} {now}: one {tells} what the other hides."
    )
